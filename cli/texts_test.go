package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"overcomplete/interpret/topics"
	"overcomplete/model"
	"overcomplete/testonly/clitest"
	"overcomplete/vectors"
)

// textsModel returns a model of texts with a dimension for each subject: 0 is rain, the positive pole of 1 is banks,
// and its negative pole is cats.
func textsModel(t *testing.T) clitest.Dir {
	texts := []string{"heavy rain today", "rain and\nmore rain", "the rain stopped today", "rain today", "a bank", "the bank of money", "", "money in a bank", "a \x1b[31mcat", "the cat sleeps"}
	codes := [][]float32{{3, 0}, {2, 0}, {2.5, 0}, {4, 0}, {0, 2}, {0, 3}, {0, 1}, {1, 2.5}, {0, -1}, {0, -2}}
	var ids []string
	for i := range texts {
		ids = append(ids, "d"+string(rune('0'+i)))
	}
	m := clitest.NewModel(ids, codes)
	m.Dictionary.Atoms = []float32{1, 0, 0, 1}
	m.Codes.Texts = &vectors.Texts{Text: texts}
	m.Info.Encoding.SetKind(m.Codes.Texts)
	return clitest.Save(t, m)
}

// If rows are texts, dimensions are labelled by keywords, and texts are printed on one line without control
// characters, with the ids that commands accept.
func TestTexts(t *testing.T) {
	t.Parallel()
	dir := textsModel(t)
	for line, want := range map[string]string{
		"nearest model rain":         "4 texts contain all words; the best:\n  d1  rain and more rain\n",
		"nearest model RAIN -n 1":    "the best:\n  d1  rain and more rain\n",
		"nearest model rain --json":  `"kind": "search" … "total": 4`,
		"top model 0 -n 2":           "label        texts\n … rain, today …     4  d3  rain today\n                   3  d0  heavy rain today\n",
		"top model 1 --json":         `"word": "d5" … "text": "the bank of money" … "label": "bank, money"`,
		"explain model d1":           "d1: 1 of 2 dimensions\nrain and more rain\nnearest:\n  1.00  d0  heavy rain today\n … rain, today  rain today",
		"explain model d6 --json":    "\"word\": \"d6\",\n    \"text\": \"\",\n", // an empty text
		"explain model d6":           "d6: 1 of 2 dimensions\nnearest:\n",
		"explain model sleeps":       "d9: 1 of 2 dimensions\nthe cat sleeps\n …   1.00  d8  a \\x1b[31mcat\n … cat",
		"nearest model d7 - d3":      "d7  money in a bank − d3  rain today\n … d5  the bank of money",
		"nearest model heavy rain":   "d0  heavy rain today\n … 1.000  d1  rain and more rain",
		`nearest model "of money"`:   "1 text contains all words; the best:\n  d5  the bank of money\n  d7  money in a bank\n",
		"compare model d0 d7 --json": `"texts": [ … "d0",`,
		"compare model d0 d7":        "d0  heavy rain today\nd7  money in a bank\nd0, d7: cosine 0.371\n",
		"labels model":               "0\t\t\train today … 1\t\t\tbank money",
	} {
		checkPrints(t, dir, line, want, "")
	}
	checkRefusals(t, dir, "", map[string]string{
		"explain model rain": `4 texts match "rain"; name one by its id, such as d1, d3`,
		"explain model snow": `"snow" is no id, and no text has all of its words`,
		"nearest model snow": `"snow" is no id`,

		`nearest model "d0 snow"`:   `no text has a word of "d0"`,
		"nearest model dimension 1": `"dimension 1" is a dimension, not a word: see overcomplete top, or search the texts for '"dimension 1"'`,
	})
}

// A search that finds one text shows the words that it found, even if another sentence is the text's excerpt.
func TestNearestShowsWords(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel([]string{"a", "b"}, [][]float32{{1}, {2}})
	m.Codes.Texts = &vectors.Texts{Text: []string{"Joe wrote:\n> The goalie's mask hides well.\nI am sure.", "a bank"}}
	m.Info.Encoding.SetKind(m.Codes.Texts)
	checkPrints(t, clitest.Save(t, m), "nearest model goalie mask", "a  The goalie's mask hides well.\n", "")
}

// Stop words leave the labels of all commands until they are removed.
func TestStopWords(t *testing.T) {
	t.Parallel()
	dir := datedModel(t)
	dir.Write(t, "stop.txt", []byte("\ufeffRain\r\n\r\nbank\r\n"))
	before, _ := dir.MustRun(t, "topics model")
	checkPrints(t, dir, "labels model --stop-words stop.txt", "", "2 stop words")
	for _, line := range []string{"topics model", "top model", "labels model", "labels model --topics 2", "explain model d3 --json", "export model -f topics -o -"} {
		stdout, _ := dir.MustRun(t, line)
		for _, label := range []string{"rain\n", "\train", `"label": "rain`, ",rain,", "bank  "} {
			if strings.Contains(stdout, label) {
				t.Errorf("%s:\n%s\nhas %q", line, stdout, label)
			}
		}
	}
	checkRefusals(t, dir, "", map[string]string{"train stop.txt -o model --force": "because it has stop words"})
	dir.Write(t, "empty.txt", nil)
	dir.MustRun(t, "labels model --stop-words empty.txt")
	checkOutput(t, dir, "topics model", before)
	if _, err := os.Stat(dir.Path("model/stop_words.txt")); err == nil {
		t.Error("an empty file leaves stop words")
	}
	dir.Write(t, "bad.txt", []byte("a\n\xff\n"))
	checkRefusals(t, dir, "", map[string]string{
		"labels model --stop-words bad.txt":         "bad.txt: line 2: the stop word isn't one line of UTF-8 text",
		"labels model --stop-words none.txt":        "none.txt: no such file",
		"labels model --stop-words stop.txt --json": "give --json or --stop-words, not both",

		"labels model --stop-words stop.txt --import bad.txt": "bad.txt: the first line lacks the columns",
	})
	dir.Write(t, "model/stop_words.txt", []byte("a\n\xff\n"))
	checkRefusals(t, dir, "", map[string]string{"topics model": "stop_words.txt: line 2"})
}

// datedModel returns a model of 40 texts with two topics. Dates of the first topic are from January to May 2024, except
// one of the year 9999. Dates of the second topic are from May. The last text has no date.
func datedModel(t *testing.T) clitest.Dir {
	var ids []string
	var codes [][]float32
	texts := vectors.Texts{Columns: []vectors.Column{{Name: "day"}, {Name: "almost"}, {Name: "far"}, {Name: "gaps"}, {Name: "none"}}}
	for i := range 40 {
		ids, codes = append(ids, fmt.Sprintf("d%d", i)), append(codes, []float32{float32(1 - i%2), float32(i % 2)})
		day := fmt.Sprintf("2024-%02d-%02d", 1+i/2%5, 1+i/2)
		if i%2 == 1 {
			day = fmt.Sprintf("2024-05-%02dT23:30:00-05:00", 1+i/2)
		}
		if i == 0 {
			day = "9999-12-31"
		}
		if i == 39 {
			day = ""
		}
		texts.Add(fmt.Sprintf("%s number %d", []string{"rain", "bank"}[i%2], i), []string{day, []string{day, "soon"}[i/39], []string{"2025-03-01", "1960-12-31", "3000-01-01"}[max(0, i-2)/13], []string{"2024-01-05", " ", "2024-03-31", "2026-05-01"}[i/10], " "})
	}
	m := clitest.NewModel(ids, codes)
	m.Dictionary.Atoms, m.Dictionary.Themes = []float32{1, 0, 0, 1}, []float32{1, 0, 0, 1}
	m.Info.Training.Themes = &model.Themes{Topics: 2, Splits: []int32{1}}
	m.Codes.Texts = &texts
	m.Info.Encoding.SetKind(m.Codes.Texts)
	return clitest.Save(t, m)
}

// Columns of dates are ordered, and topics show their course. An error or a warning names a value that isn't a date.
func TestDates(t *testing.T) {
	t.Parallel()
	dir := datedModel(t)
	gap := strings.Repeat("·", 25)
	const warned = "warning: column \"almost\" isn't shown over time: row 40: not a date (got \"soon\""
	for _, tt := range []struct{ flags, stdout, stderr string }{
		{"day --by month", "day by month, 39 of 40 rows: 2024-01 ▂▂▂▂█…▁ 9999-12, most in 2024-05: 57 %\n" +
			" … bank\n         day by month: 2024-01 ····█…· 9999-12, most in 2024-05: 95 %\n" +
			" … rain\n         day by month: 2024-01 ▆████…▂ 9999-12, most in 2024-02: 20 %\n", ""},
		{"gaps --by month", "gaps by month, 30 of 40 rows: 2024-01 █·█" + gap + "█ 2026-05, most in 2024-01: 25 %\n" +
			" … bank\n         gaps by month: 2024-01 █·█" + gap + "█ 2026-05, most in 2024-01: 25 %\n", ""},
		{"far", "far by century, all rows: 1900–1999 ▇", ""},
		{"none", "bank", "warning: column \"none\" is empty\n"},
		{"day", "day by week, 39 of 40 rows: 2024-01-01 ", ""},
		{"almost", "almost: 2024-01-06 5 %, 2024-01-11 5 %, ", warned},
	} {
		checkPrints(t, dir, "topics model --column "+tt.flags, tt.stdout, tt.stderr)
	}
	got := runJSON[topics.Table](t, dir, "topics model --column day --by month --json")
	if got.By != "month" || len(got.Periods) != 6 || !got.Periods[5].AfterGap || len(got.Topics[1].Values) != 6 {
		t.Errorf("%+v", got)
	}
	checkRefusals(t, dir, "", map[string]string{
		"topics model --by month":                 "--by requires --column",
		"topics model --column almost --by month": `--by month, column "almost": row 40: not a date (got "soon", want such as 2024-03-05`,
		"topics model --column day --by hour":     `--by hour, column "day": no period "hour" (want one of day, week,`,
	})
}

// A model of texts has topics unless --topics is 0. A model of words has topics only if --topics is given. Commands can
// show another number of topics than the training's.
func TestTopics(t *testing.T) {
	t.Parallel()
	dir, x := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o words -k 20")
	dir.MustRun(t, "train in.txt -o topics -k 20 --topics 3")
	dir.MustRun(t, "train in.txt -o texts -k 20 --rows texts")
	dir.MustRun(t, "train in.txt -o none -k 20 --rows texts --topics 0")
	stdout, _ := dir.MustRun(t, "train in.txt -o few -k 20 --topics 20")
	few := runJSON[struct{ Topics []any }](t, dir, "topics few --json").Topics
	if len(few) == 20 || !strings.Contains(stdout, fmt.Sprintf("\n%d topics (", len(few))) {
		t.Errorf("%d topics:\n%s", len(few), stdout)
	}
	for _, line := range []string{"topics topics --json", "topics topics --topics 5 --json"} {
		got := runJSON[struct {
			Topics, Subtopics []struct{ Count int }
			Rows, Dimensions  []*int
		}](t, dir, line)
		rows := 0
		for _, topic := range got.Topics {
			rows += topic.Count
		}
		themed := slices.ContainsFunc(got.Dimensions, func(theme *int) bool { return theme != nil })
		if len(got.Topics) < 2 || len(got.Subtopics) == 0 || rows != x.Len() || len(got.Rows) != x.Len() || len(got.Dimensions) != 20 || !themed {
			t.Errorf("%s: %+v", line, got)
		}
	}
	stdout, _ = dir.MustRun(t, "topics topics")
	dir.MustRun(t, "encode topics in.txt -o again")
	checkOutput(t, dir, "topics again", stdout)
	stdout, _ = dir.MustRun(t, "export topics -f topics -o -")
	if lines := strings.Split(stdout, "\n"); lines[0] != "id,topic,label,theme" || len(lines) != x.Len()+2 || strings.Count(lines[1], ",") < 3 {
		t.Errorf("%d lines, the first are %q", len(lines), lines[:2])
	}
	// A label stays with its topic for any number of topics.
	table, _ := dir.MustRun(t, "labels topics --topics 3")
	rows := strings.Split(table, "\n")
	id, _, _ := strings.Cut(rows[2], "\t")
	if rows[0] != "topic\tlabel\tnote\tproposed\twords" || len(rows) != 22 || strings.Contains(table, "\t\n") { // 3 topics and their subtopics
		t.Errorf("%q", table)
	}
	dir.Write(t, "labels.tsv", []byte("topic\tlabel\n"+id+"\tMine\n"))
	dir.MustRun(t, "labels topics --import labels.tsv")
	for _, line := range []string{"topics topics", "topics topics --topics 4", "export topics -f topics -o -", "labels topics --topics 3"} {
		stdout, _ := dir.MustRun(t, line)
		other, _ := dir.MustRun(t, "topics topics --topics 4 --json")
		if want := line != "topics topics --topics 4" || strings.Contains(other, `"id": `+id+","); strings.Contains(stdout, "Mine") != want {
			t.Errorf("%s, after topic %s got a label:\n%s", line, id, stdout)
		}
	}
	// With --vocabulary, encoded rows get the topic labels of their model, including labels that a person set.
	stdout, _ = dir.MustRun(t, "topics topics") // has the label
	checkOutput(t, dir, "topics again --vocabulary topics", stdout)
	checkPrints(t, dir, "topics texts", "topic", "")
	checkRefusals(t, dir, "", map[string]string{
		"topics again --vocabulary texts":    "again was not encoded with the dictionary of texts",
		"topics words":                       "words has no topics: if its texts aren't empty, train it with --topics 20",
		"topics none":                        "none has no topics",
		"export none -f topics -o x":         "none has no topics",
		"topics topics --topics 1000":        "--topics is 1000",
		"topics topics --topics 0":           "--topics is 0",
		"labels words --topics 3":            "words has no topics",
		"labels topics --topics 3 -n 8":      "give -n or --topics, not both",
		"explore words --embed cat --port 0": "--embed finds texts, and the rows of words are words",
		"topics in.txt":                      "in.txt: not a model",
		"topics topics --column x":           `topics has no column "x"; it has none`,
		"train in.txt -o x --topics -1":      "--topics is -1",
		"train in.txt -o x --topics many":    "--topics",
	})
}
