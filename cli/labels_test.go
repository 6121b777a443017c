package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// A printed table, edited in a spreadsheet and imported, sets the labels that all commands print.
func TestLabels(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	const before = "dimension\tlabel\tnote\twords\n0\t\t\tclose write read\n1\t\t\tmonth week day\n2\t\t\tday write\n"
	checkOutput(t, dir, "labels model", before)
	dir.Write(t, "labels.tsv", []byte("\ufeffdimension\twords\tnote\tlabel\r\n1\tmonth\t\"of \"\"time\"\"\"\tcalendar\r\n0\t\t\tfiles <&>\r\n"))
	fromFile := dir.Command("labels", "model", "--import", "-")
	fromFile.Stdin = bytes.NewReader(dir.Read(t, "labels.tsv"))
	if code, _, stderr := clitest.Output(t, fromFile); code != 0 || stderr != "2 labels\n" {
		t.Errorf("%q", stderr)
	}
	checkPrints(t, dir, "labels model --import labels.tsv", "", "2 labels\n")
	const after = "dimension\tlabel\tnote\twords\n0\tfiles <&>\t\tclose\n1\tcalendar\t\"of \"\"time\"\"\"\tmonth\n2\t\t\tday\n"
	checkOutput(t, dir, "labels model -n 1", after)
	checkPrints(t, dir, "labels model --json", `"dimension": 0 … "name": "files <&>" … "dimension": 1 … "name": "calendar" … "note": "of \"time\""`, "")
	checkTable(t, dir, "top model 1 2 -n 2", `dimension  variance  label       words
        1  1.33e+00  calendar    month week
        2  1.46e-01  day, write  day write
`)
	// Importing the printed table changes nothing; an empty name and note remove a label.
	stdout, _ := dir.MustRun(t, "labels model -n 1")
	dir.Write(t, "again.tsv", []byte(stdout))
	dir.MustRun(t, "labels model --import again.tsv")
	checkOutput(t, dir, "labels model -n 1", after)
	dir.Write(t, "less.tsv", []byte("dimension\tlabel\n0\t\n"))
	dir.MustRun(t, "labels model --import less.tsv")
	checkTable(t, dir, "top model 0 1 -n 1", `dimension  variance  label               words
        0  1.33e+00  close, write, read  close
        1  1.33e+00  calendar            month
`)
}

// The printed table contains every label and note unchanged, for import.
func TestLabelsRoundTrip(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	names := []string{"a\u00a0b \u00ad \u202ec", `\u00a0 \x1b "quoted" \`, "\u200d\u2028\ufeff\U000e0001\ufffd-é"}
	table := "dimension\tlabel\tnote\n"
	for k, name := range names {
		table += fmt.Sprintf("%d\t\"%s\"\t\"note %[2]s\"\n", k, strings.ReplaceAll(name, `"`, `""`))
	}
	dir.Write(t, "labels.tsv", []byte(table))
	dir.MustRun(t, "labels model --import labels.tsv")
	labels := string(dir.Read(t, "model/labels.json"))
	stdout, _ := dir.MustRun(t, "labels model")
	checkParts(t, "labels model", stdout, strings.ReplaceAll(strings.Join(names, " … "), `"`, `""`))
	dir.Write(t, "again.tsv", []byte(stdout))
	dir.MustRun(t, "labels model --import again.tsv")
	if again := string(dir.Read(t, "model/labels.json")); again != labels {
		t.Errorf("labels\n%s\nafter import of the printed table\n%s", labels, again)
	}
}

func TestLabelsImportRefuses(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, readable())
	for table, want := range map[string]string{
		"":                                     "the first line lacks the columns",
		"dimension,label\n1,a\n":               "the first line lacks the columns",
		"dimension\tlabel\n0\ta\n1\n":          "line 3: wrong number of fields",
		"dimension\tlabel\n0\ta\nx\tb\n":       `row 2: "x" is no number of a dimension`,
		"dimension\tlabel\n0\ta\n3\tb\n":       "row 2: no dimension 3 (want 0 to 2)",
		"dimension\tlabel\n0\ta\n1\tb\n0\tc\n": "row 3: dimension 0 has two labels",
		"dimension\tlabel\n0\ta\x00b\n":        `row 1: dimension 0: the name isn't one line of UTF-8 text (got "a\x00b")`,
		"dimension\tlabel\n0\t\"a\nb\"\n":      `row 1: dimension 0: the name isn't one line of UTF-8 text (got "a\nb")`,
		"dimension\tlabel\n0\t\xff\n":          `the name isn't one line of UTF-8 text (got "\xff")`,
	} {
		dir.Write(t, "labels.tsv", []byte(table))
		checkRefusals(t, dir, "labels model --import labels.tsv", map[string]string{"": want})
	}
	dir.Write(t, "model/labels.json", []byte(`[{"dimension": 3, "name": "a"}]`))
	const damaged = "labels.json: no dimension 3"
	checkRefusals(t, dir, "", map[string]string{"labels model": damaged, "top model": damaged, "explain model day": damaged, "explore model --port 0": damaged})
}

// Encoded words are described by the words, labels and neighbours of the model that encoded them.
func TestExplainVocabulary(t *testing.T) {
	t.Parallel()
	m := readable()
	m.Dictionary.Atoms = []float32{1, 0, 0, 1, .6, .8}
	dir := clitest.Save(t, m)
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n1\tcalendar\n"))
	dir.MustRun(t, "labels model --import labels.tsv")
	dir.Write(t, "new.txt", []byte("season 0 4\nclose 3 0\n"))
	dir.MustRun(t, "encode model new.txt -o enc --exact --lambda 0.01")
	checkPrints(t, dir, "explain enc season close --vocabulary model --dimensions 1 -n 2 --neighbours 2",
		"nearest: month 1.00, week 1.00\n …   calendar  month week\n … nearest: read 1.00, close 1.00\n …   close, write, read  close write\n", "")
	other := readable()
	other.Dictionary.Atoms = []float32{1, 0, 0, 1, .6, .9}
	testonly.Must(t, other.Save(dir.Path("other"), false))
	checkRefusals(t, dir, "", map[string]string{
		"explain enc season --vocabulary other":     "enc was not encoded with the dictionary of other; --vocabulary must be the model that encoded it",
		"explain enc season --vocabulary nothing":   "nothing: no such file",
		"explain new.txt season --vocabulary model": "new.txt is not a model; --vocabulary describes the codes that encode wrote",
	})
}

// Commands that show dimensions warn if the training isn't complete, and don't use labels.
func TestCheckpointsAreNotNamed(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o model --method B --epochs 1")
	testonly.Must(t, os.Mkdir(dir.Path("model/state"), 0o777))
	for _, line := range []string{"top model", "explain model word1", "nearest model word1", "compare model word1 word2",
		"export model -f jsonl -o -", "explore model --export page.html --words word1"} {
		if _, stderr := dir.MustRun(t, line); stderr != "warning: model is a checkpoint: its training isn't finished; paper train --resume resumes it\n" {
			t.Errorf("%s: %q", line, stderr)
		}
	}
	checkPrints(t, dir, "encode model in.txt -o encoded --quiet", "encoded: ", "warning: model is a checkpoint: its training isn't finished, and its dictionary will change\n")
	// A dictionary without codes has nothing to show, but can encode.
	m := dir.Model(t, "encoded")
	m.Codes, m.Info.Encoding = nil, nil
	testonly.Must(t, m.Save(dir.Path("learned"), false))
	dir.MustRun(t, "encode learned in.txt -o again --nonzeros 4")
	dir.Write(t, "labels.tsv", []byte("dimension\tlabel\n0\ta\n"))
	checkRefusals(t, dir, "", map[string]string{
		"top learned":                      "learned has a dictionary and no codes: encode makes them\n",
		"labels model --import labels.tsv": "is a checkpoint, whose dimensions change until training ends",
	})
}
