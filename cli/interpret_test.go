package cli

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// readable is a model of method B with readable dimensions:
//
//	read  1 0 0      month 0 3 0
//	write 2 0 .5     week  0 2 0
//	close 3 0 0      day   0 1 1
func readable() *model.Model { return clitest.NewModel(readableWords, readableCodes) }

var (
	readableWords = []string{"read", "write", "close", "month", "week", "day"}
	readableCodes = [][]float32{{1, 0, 0}, {2, 0, .5}, {3, 0, 0}, {0, 3, 0}, {0, 2, 0}, {0, 1, 1}}
)

func TestTopAndExplain(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	dir.Write(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkOutput(t, dir, "top model --words 2 --dimensions 2", `dimension  variance  label               words
        0  1.33e+00  close, write, read  close write
        1  1.33e+00  month, week, day    month week
`)
	checkTable(t, dir, "top model 2", `dimension  variance  label       words
        2  1.46e-01  day, write  day write
`)
	checkTable(t, dir, "top dense.txt 1", `dimension  variance  label         words
        1  3.89e-01  −read, write  read write
                     close         close
`)
	dir.Write(t, "bad.txt", []byte("read 1 -1\nbad 1 x\nwrite 2 -.5\nclose -3 .5\n"))
	checkPrints(t, dir, "top bad.txt 1 --skip-bad", "3.89e-01  −read, write  read write\n …   close         close\n", "warning: bad.txt: ")
	dir.Write(t, "negative.txt", []byte("read 1 -1\nwrite 2 -.5\nclose 3 0\n"))
	checkTable(t, dir, "top negative.txt 1", `dimension  variance  label         words
        1  1.67e-01  −read, write  read write
`)
	checkOutput(t, dir, "explain model WRITE -n 2 --neighbours 0", `write: 2 of 3 dimensions
dimension   weight  label               words
        0        2  close, write, read  close write
        2      0.5  day, write          day write
`)
}

// A steered score is printed as the sum of the cosine and the parts of the dimensions.
func TestSteering(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	checkOutput(t, dir, "nearest model write --more 1 --less 2=0.4 --dimensions 1 -n 3", `write
 score = cosine + parts of the steered dimensions
cosine  word  dimensions, % of the cosine
 0.970 = 0.970 + 0.000 month, week, day (1) + 0.000 day, write (2)
 0.970  read  close, write, read (0) 100 · 0 others 0
 0.970 = 0.970 + 0.000 month, week, day (1) + 0.000 day, write (2)
 0.970  close  close, write, read (0) 100 · 0 others 0
 0.500 = 0.000 + 0.500 month, week, day (1) + 0.000 day, write (2)
 0.000  month  0 others 0
`)
	h := runJSON[neighbourhood](t, dir, "nearest model day - week --more 0,2=3 --less 1=0.1 --json")
	if len(h.Nearest) != 3 {
		t.Fatalf("%+v", h)
	}
	for _, n := range h.Nearest {
		sum := n.Cosine.Sum
		for _, d := range n.Steered {
			sum += d.Part
		}
		if len(n.Steered) != 3 || n.Steered[1].Weight != 3 || n.Steered[2].Weight != -0.1 || math.Abs(sum-*n.Score) > 1e-12 {
			t.Errorf("%+v", n)
		}
	}
	texts := textsModel(t)
	checkOutput(t, texts, "nearest model bank --more 0 -n 2", "3 texts contain all words; the best:\n 0.186  d7  money in a bank\n 0.000  d4  a bank\n")
	checkPrints(t, texts, "nearest model money --more 0 --json -n 1", `"kind": "search" … "total": 2 … "word": "d7" … "text": "money in a bank" … `+
		`"score": 0.18569533817705186 … "dimension": 0 … "label": "rain, today" … "weight": 0.5 … "part": 0.18569533817705186`, "")
	checkRefusals(t, dir, "nearest model write ", map[string]string{
		"--more=":             `--more is empty, want a dimension from 0 to 2`,
		"--more 3":            `--more is "3", want a dimension from 0 to 2`,
		"--less 1,x":          `--less is "x", want a dimension`,
		"--more 1=3e38":       `want a positive number up to 1000000 after =`,
		"--more 1 --less 1=2": `--less is "1=2", but dimension 1 already has a weight`,
		"--less 1=":           `--less is "1=", want a positive number up to 1000000 after =`,
		"--more 1=-2":         `--more is "1=-2", want a positive number`,
		"--more 1=nan":        `want a positive number`,
	})
}

// Dimensions are sorted by their better pole. Dimensions without a score are omitted.
func TestTopBySort(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, clitest.NewModel(readableWords, [][]float32{{1, -1, 0}, {2, -2, 1}, {-1, 2, 0}, {-.5, -4, 0}, {0, 1, 0}, {0, 1, 0}}))
	c := &intrusion.Accuracy{
		Scores:   []*intrusion.PoleAccuracy{{Dimension: 0, Matched: .8}, {Dimension: 1, Matched: .1}},
		Negative: &intrusion.Accuracy{Scores: []*intrusion.PoleAccuracy{{Dimension: 1, Matched: .9}}},
	}
	testonly.Must(t, c.Save(t.Context(), dir.Path("model/intrusion.json")))
	checkTable(t, dir, "top model --sort intrusion -n 2", `dimension  variance  intrusion  label                 words
        1  4.25e+00       90 %  −month, write, read   month write
                          10 %  close, week, day      close week
        0  9.79e-01       80 %  write, read           write read
                                −close, month         close month
`)
	top := runJSON[[]topDimension](t, dir, "top model --sort intrusion -n 1 --dimensions 1 --json")
	if len(top) != 1 || len(top[0].Poles) != 2 || top[0].Variance != 4.25 {
		t.Fatalf("%+v", top)
	}
	if p := top[0].Poles[0]; !p.Negative || *p.Score != .9 || p.Words[0].Word != "month" || p.Words[0].Value != -4 {
		t.Errorf("%+v", top)
	}
	checkTable(t, dir, "labels model -n 1", "dimension\tlabel\tnote\twords\n0\t\t\twrite − close\n1\t\t\tclose − month\n2\t\t\twrite\n")
	// Two words have dimensions 0 and 2 in common. The mean cosine of any two is
	// (3/√10 + 1 − 1/√2 − 2/√5)/15 = 0.023.
	alike := clitest.Save(t, clitest.NewModel(readableWords, [][]float32{{1, 0, 1}, {2, 0, 1}, {0, 1, 0}, {0, 2, 0}, {-1, 0, 0}, {0, 0, 0}}))
	checkTable(t, alike, "top model --sort coherence", `dimension  variance  coherence  label         words
        0  8.89e-01       0.98  write, read   write read
                                −week         week
        2  2.22e-01       0.98  read, write   read write
        1  5.83e-01      -0.02  month, close  month close
`)
	testonly.Must(t, readable().Save(dir.Path("smaller"), false))
	c.Scores[1].Dimension = 3
	testonly.Must(t, c.Save(t.Context(), dir.Path("smaller/intrusion.json")))
	const damaged = "smaller/intrusion.json: … no word intrusion accuracy of 3 dimensions"
	checkRefusals(t, dir, "", map[string]string{"top smaller --sort intrusion": damaged, "explore smaller --port 0": damaged})
}

// Words are printed so that they can be told apart, and never as commands to the terminal.
func TestOddWords(t *testing.T) {
	t.Parallel()
	const persian = "می\u200cخواهم" // such words contain a joiner
	m := readable()
	m.Codes.IDs = []string{"New York", "\x1b[2Jread", " ", `"`, persian, "ça,va"}
	m.Codes.Value[5] = 1e-5
	dir := clitest.Save(t, m)
	checkTable(t, dir, "top model 0 1", `dimension  variance  label                     words
        0  1.33e+00   , \x1b[2Jread, New York  " " "\x1b[2Jread" "New York"
        1  1.22e+00  ", ça,va, `+persian+`        "\"" ça,va `+persian+`
`)
	checkTable(t, dir, "explain model ça,va "+persian+" --words 1 --neighbours 2", `ça,va: 2 of 3 dimensions
nearest: " 0.71, `+persian+` 0.71
dimension   weight  label               words
        1        1  ", ça,va, `+persian+`  "\""
        2        1  ça,va, \x1b[2Jread  ça,va

`+persian+`: 1 of 3 dimensions
nearest: " 1.00, ça,va 0.71
dimension   weight  label               words
        1    1e-05  ", ça,va, `+persian+`  "\""
`)
	if _, _, stderr := dir.Run(t, "explain model [2Jread"); strings.Contains(stderr, "\x1b") || !strings.Contains(stderr, `similar ones are "\x1b[2Jread"`) {
		t.Errorf("%q", stderr)
	}
}

func TestExplainDense(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	dir.Write(t, "dense.txt", []byte("read 1 -1\nwrite 2 -.5\nclose -3 .5\n"))
	checkTable(t, dir, "explain dense.txt read --dimensions 1 --neighbours 1", `read: 2 of 2 dimensions
nearest: write 0.86
dimension   weight  label        words
        0        1  write, read  write read
and 1 weaker ones
`)
	got := runJSON[[]explanation](t, dir, "explain dense.txt read --json --dimensions 0")
	want := labelledWeight{"−read, write", 1, -1, []string{"read", "write"}}
	if len(got) != 1 || len(got[0].Dimensions) != 2 || !reflect.DeepEqual(got[0].Dimensions[1], want) {
		t.Errorf("%+v", got)
	}
}

func TestInterpretRefuses(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	dir.Write(t, "bad.txt", []byte("a 1 2\nb 1 x\n"))
	dir.Write(t, "same.txt", []byte("read 1 2\nwrite 3 4\n"))
	dir.Write(t, "photos/cat.jpg", []byte("a cat"))
	checkRefusals(t, dir, "", map[string]string{
		"top":                           "no arguments are given … top --help",
		"top nowhere":                   "nowhere: no such file",
		"top photos":                    "photos/cat.jpg: unknown format of vectors … photos: not a model: it has no model.json",
		"top bad.txt":                   `bad.txt:2: … "b"`,
		"top model 3":                   `"3" is not a dimension … 0 to 2`,
		"top model -- -1":               `"-1" is not a dimension`,
		"top model 1 --dimensions 2":    "--dimensions",
		"top model 1 2 1":               `dimension "1" is given twice`,
		"top model --sort intrusion":    `model has no scores … "overcomplete intrusion auto model --input VECTORS --reference VECTORS --save"`,
		"top model --sort size":         `--sort is "size", want variance, intrusion or coherence`,
		"top model 1 --sort variance":   "--sort … not both",
		"top same.txt --sort intrusion": "same.txt: not a model, which stores scores",
		"explain model":                 "one argument is given",
		"explain model raed":            `"raed" … 6 rows … similar ones are read`,
		"explain model xylophone":       `"xylophone" … none is spelled like it`,
	})
}
