package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// exportModel returns a model of method B:
//
//	A = 0 0.5 0 0 0 0 0 0 0     D = 1  2
//	    0 0   0 0 0 0 0 0 2         …
//	                                17 18
func exportModel() *model.Model {
	m := clitest.NewModel([]string{"New York", "Rome"}, [][]float32{{1: 0.5, 8: 0}, {8: 2}})
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(i + 1)
	}
	m.Info.Training.Themes = &model.Themes{Topics: 1, Splits: []int32{}}
	m.Dictionary.Themes = append([]float32{1}, make([]float32, m.Dictionary.Dim-1)...)
	return m
}

func TestExport(t *testing.T) {
	t.Parallel()
	const dense = "New%20York 0 0.5 0 0 0 0 0 0 0\nRome 0 0 0 0 0 0 0 0 2\n"
	zeros := strings.Repeat("\x00", 9*4)
	tests := []struct {
		format string
		want   string // content, or a part of it if the format is binary
	}{
		{"glove", dense},
		{"word2vec", "2 9\n" + dense},
		{"word2vec-binary", "2 9\nNew%20York " + zeros[:4] + "\x00\x00\x00\x3f" + zeros[:7*4] + "\nRome " + zeros[:8*4] + "\x00\x00\x00\x40\n"},
		{"csr", "\x00\x00\x00\x3f\x00\x00\x00\x40"},
		{"binary", "\x00\x00\x80\x3f\x00\x00\x80\x3f"},
		{"jsonl", `{"id":"New%20York","dimensions":9,"indices":[1],"values":[0.5]}` + "\n" +
			`{"id":"Rome","dimensions":9,"indices":[8],"values":[2]}` + "\n"},
		{"opensearch", `{"index":{"_id":"New%20York"}}` + "\n" + `{"id":"New%20York","features":{"1":0.5}}` + "\n" +
			`{"index":{"_id":"Rome"}}` + "\n" + `{"id":"Rome","features":{"8":2}}` + "\n"},
		{"labels", "{\n\"1\": \"New York\",\n\"8\": \"Rome\"\n}\n"},
		{"safetensors", "\x00\x00\x00\x3f\x00\x00\x00\x40"},
		{"parquet", "PAR1"},
		{"topics", "id,topic,label,theme\nNew%20York,0,\"New%20York, Rome\",0\nRome,0,\"New%20York, Rome\",0\n"},
	}
	var tested []string
	for _, tt := range tests {
		tested = append(tested, tt.format)
		dir := clitest.Save(t, exportModel())
		flags := " --escape"
		if tt.format == "csr" || tt.format == "binary" || tt.format == "labels" { // these formats contain no words, or contain them unchanged
			flags = ""
		}
		if tt.format != "labels" { // labels always belong to the exported codes
			flags += " --vocabulary model"
		}
		if code, _, stderr := dir.Run(t, "export model -o out.x -f "+tt.format+flags); code != 0 {
			t.Errorf("%s: exit code %d, %s", tt.format, code, stderr)
			continue
		}
		if got := dir.Names(t); len(got) != 2 {
			t.Errorf("%s: there are %q", tt.format, got)
		}
		got := string(dir.Read(t, "out.x"))
		if binary := slices.Contains([]string{"csr", "binary", "safetensors", "parquet"}, tt.format); !binary && got != tt.want || !strings.Contains(got, tt.want) {
			t.Errorf("%s: the file is\n%q, want\n%q", tt.format, got, tt.want)
		}
		if stdout, _ := dir.MustRun(t, "export model -o - -f "+tt.format+flags); stdout != got {
			t.Errorf("%s: standard output differs from the file: %q", tt.format, stdout)
		}
	}
	if !slices.Equal(tested, formatNames()) {
		t.Errorf("formats %q are not all that there are, %q", tested, formatNames())
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	methodA := exportModel()
	h := methodA.Info.Training.Recipe.(model.Paper)
	h.Method = model.Signed
	methodA.Info.Training.Recipe = h
	dir := clitest.Save(t, methodA)
	other := exportModel()
	other.Dictionary.Atoms[0]++
	another := clitest.Save(t, other).Path("model")
	dir.Write(t, "existing", []byte("old"))
	checkRefusals(t, dir, "export model ", map[string]string{
		"--format csv -o out":                         `"csv", want glove, `,
		"--format glove -o out":                       `word 1, "New York"`,
		"--format glove -o -":                         "--escape",
		"--format binary -o out":                      "method B",
		"--format csr -o existing":                    "already exists; --force",
		"--format csr -o out --vocabulary " + another: "model was not encoded with the dictionary of " + another,
		"--format csr -o out --vocabulary existing":   "existing: ",
		"--format csr --force -o model":               "not a regular file",
	})

	dir = clitest.Save(t, exportModel())
	testonly.Must(t, os.Truncate(dir.Path("model/codes.npz"), 100))
	checkRefusals(t, dir, "export model ", map[string]string{"--format csr -o out": "model: codes.npz: "})
}

// Exports don't write into a model's directory.
func TestExportKeepsOutOfModels(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, exportModel())
	if err := os.Symlink(filepath.Join("model", "codes.npz"), dir.Path("link")); err != nil {
		t.Skip(err)
	}
	const inside = ": is in the directory of a model"
	checkRefusals(t, dir, "export model --format csr --force -o ", map[string]string{
		"model/codes.npz": "model/codes.npz" + inside, "model/out": "model/out" + inside, "link": "link" + inside,
	})
}
