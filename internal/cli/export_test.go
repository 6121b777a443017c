package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/model"
	"overcomplete/vectors"
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
		files  map[string]string // content, or only part of it if that is binary
	}{
		{"glove", map[string]string{"out.x": dense}},
		{"word2vec", map[string]string{"out.x": "2 9\n" + dense}},
		{"word2vec-binary", map[string]string{"out.x": "2 9\nNew%20York " + zeros[:4] + "\x00\x00\x00\x3f" + zeros[:7*4] + "\nRome " + zeros[:8*4] + "\x00\x00\x00\x40\n"}},
		{"sparse", map[string]string{"out.x": "New%20York 1:0.5\nRome 8:2\n"}},
		{"csr", map[string]string{"out.x": "\x00\x00\x00\x3f\x00\x00\x00\x40"}},
		{"binary", map[string]string{"out.x": "\x00\x00\x80\x3f\x00\x00\x80\x3f"}},
		{"bits", map[string]string{"out.x": "\x40\x00\x00\x80"}},
		{"svmlight", map[string]string{"out.x": "0 2:0.5 # New%20York\n0 9:2 # Rome\n"}},
		{"jsonl", map[string]string{"out.x": `{"id":"New%20York","indices":[1],"values":[0.5],"names":["New%20York"]}` + "\n" +
			`{"id":"Rome","indices":[8],"values":[2],"names":["Rome"]}` + "\n"}},
		{"opensearch", map[string]string{"out.x": `{"index":{"_id":"New%20York"}}` + "\n" + `{"id":"New%20York","features":{"1 New%20York":0.5}}` + "\n" +
			`{"index":{"_id":"Rome"}}` + "\n" + `{"id":"Rome","features":{"8 Rome":2}}` + "\n"}},
		{"safetensors", map[string]string{"out.x": "\x00\x00\x00\x3f\x00\x00\x00\x40"}},
		{"arrow", map[string]string{"out.x": "ARROW1"}},
		{"parquet", map[string]string{"out.x": "PAR1"}},
		{"topics", map[string]string{"out.x": "id,topic,label,theme\nNew%20York,0,\"New%20York, Rome\",0\nRome,0,\"New%20York, Rome\",0\n"}},
		{"projector", map[string]string{
			"out.x":          "0\t0.5\t0\t0\t0\t0\t0\t0\t0\n0\t0\t0\t0\t0\t0\t0\t0\t2\n",
			"out_metadata.x": "New%20York\nRome\n",
		}},
	}
	var tested []string
	for _, tt := range tests {
		tested = append(tested, tt.format)
		dir := clitest.Save(t, exportModel())
		escape := " --escape"
		if tt.format == "csr" || tt.format == "binary" || tt.format == "bits" { // without words
			escape = ""
		}
		if code, _, stderr := dir.Run(t, "export model -o out.x -f "+tt.format+escape); code != 0 {
			t.Errorf("%s: exit code %d, %s", tt.format, code, stderr)
			continue
		}
		if got := dir.Names(t); len(got) != 1+len(tt.files) {
			t.Errorf("%s: there are %q", tt.format, got)
		}
		for name, want := range tt.files {
			got, err := os.ReadFile(dir.Path(name))
			if err != nil {
				t.Error(err)
			}
			if binary := slices.Contains([]string{"csr", "binary", "bits", "safetensors", "arrow", "parquet"}, tt.format); !binary && string(got) != want || !strings.Contains(string(got), want) {
				t.Errorf("%s: %s is\n%q, want\n%q", tt.format, name, got, want)
			}
		}

		toStdout := "export model -o - -f " + tt.format + escape
		if len(tt.files) > 1 {
			checkRefused(t, dir, toStdout, []string{"2 files"}, dir.Tree(t))
		} else if stdout, _ := dir.MustRun(t, toStdout); stdout != string(dir.Read(t, "out.x")) {
			t.Errorf("%s: standard output is not what the file is: %q", tt.format, stdout)
		}
	}
	if !slices.Equal(tested, formatNames()) {
		t.Errorf("formats %q are not all that there are, %q", tested, formatNames())
	}
}

func ofMethod(r model.Recipe, method model.Method) model.Recipe {
	c := r.Base()
	c.Method = method
	return r.With(c)
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	methodA := exportModel()
	methodA.Info.Training.Recipe = ofMethod(methodA.Info.Training.Recipe, model.Signed)
	dir := clitest.Save(t, methodA)
	for _, name := range []string{"existing", "out_metadata"} {
		dir.Write(t, name, []byte("old"))
	}
	before := dir.Tree(t)
	for _, tt := range []struct{ args, want string }{
		{"--format csv -o out", `"csv", want glove, `},
		{"--format glove -o out", `word 1, "New York"`},
		{"--format glove -o -", "--escape"},
		{"--format binary -o out", "method B"},
		{"--format csr -o existing", "already exists; --force"},
		{"--format projector --escape -o out", "out_metadata: already exists"},
		{"--format csr --force -o model", "not a regular file"},
	} {
		checkRefused(t, dir, "export model "+tt.args, []string{tt.want}, before)
	}

	dir = clitest.Save(t, exportModel())
	if err := os.Truncate(dir.Path("model/codes.npz"), 100); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, dir, "export model --format csr -o out", []string{"model: codes.npz: "}, dir.Tree(t))
}

// Commands that read a model also read its safetensors file.
func TestSafetensorsAsModel(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	// With as many dimensions as words, the dictionary would do for vectors.
	dir.MustRun(t, "paper train in.txt -o dir --center --epochs 3 -k 60")
	dir.MustRun(t, "export dir -f safetensors -o file")
	for _, line := range []string{
		"top MODEL", "explain MODEL word1", "encode MODEL in.txt -o MODEL.encoded --json --quiet",
		"intrusion make X=MODEL -n 2 -o MODEL.tsv",
	} {
		ofDir, _ := dir.MustRun(t, strings.ReplaceAll(line, "MODEL", "dir"))
		ofFile, _ := dir.MustRun(t, strings.ReplaceAll(line, "MODEL", "file"))
		if ofFile != strings.ReplaceAll(ofDir, "dir", "file") {
			t.Errorf("%s: of the file\n%s\nof the directory\n%s", line, ofFile, ofDir)
		}
	}
	if ofDir, ofFile := string(dir.Read(t, "dir.tsv")), string(dir.Read(t, "file.tsv")); ofFile != ofDir {
		t.Error("the tests differ")
	}
}

// Commands that read dense vectors refuse a model.
func TestSafetensorsAsVectors(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o dir --epochs 1 -k 60")
	dir.MustRun(t, "export dir -f safetensors -o file")
	for _, line := range []string{"paper train file -o out", "encode dir file -o out"} {
		code, stdout, stderr := dir.Run(t, line)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, "file: is a model, not dense vectors; ") {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
	}
}

// Exports don't write into a model's directory.
func TestExportKeepsOutOfModels(t *testing.T) {
	t.Parallel()
	dir := clitest.Save(t, exportModel())
	if err := os.Symlink(filepath.Join("model", "codes.npz"), dir.Path("link")); err != nil {
		t.Skip(err)
	}
	before := dir.Tree(t)
	for _, name := range []string{"model/codes.npz", "model/out", "link"} {
		checkRefused(t, dir, "export model --format csr --force -o "+name, []string{name + ": is in the directory of a model"}, before)
	}
}

// A writerFunc is called for each Write.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// An export can be interrupted between any two writes.
func TestExportInterrupted(t *testing.T) {
	t.Parallel()
	m := exportModel()
	m.Codes.Words[0] = strings.Repeat("long", 100_000) // more than any buffer holds
	dir := clitest.Save(t, m)
	ctx, cancel := context.WithCancel(context.Background())
	writes := 0
	stdout := writerFunc(func(p []byte) (int, error) {
		writes++
		cancel()
		return len(p), nil
	})
	var stderr bytes.Buffer
	code := run(ctx, []string{"export", dir.Path("model"), "-f", "glove", "-o", "-"}, stdout, &stderr)
	if code != exitInterrupted || writes != 1 {
		t.Errorf("exit code %d after %d writes, %s", code, writes, &stderr)
	}
}

// Files for the Embedding Projector are read with their words as a list, and refused
// without them: its first numbers are no words.
func TestProjectorIsReadBack(t *testing.T) {
	t.Parallel()
	m := exportModel()
	dir := clitest.Save(t, m)
	dir.MustRun(t, "export model --format projector -o out.tsv")
	got, _, err := vectors.Read(t.Context(), []string{dir.Path("out.tsv")}, vectors.ReadOptions{WordList: dir.Path("out_metadata.tsv")})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Words, m.Codes.Words) || got.Dim != m.Codes.Cols {
		t.Errorf("%d dimensions of %q", got.Dim, got.Words)
	}
	for i := range got.Words {
		want := make([]float32, got.Dim)
		index, value := m.Codes.Row(i)
		for n, k := range index {
			want[k] = value[n]
		}
		if !slices.Equal(got.Row(i), want) {
			t.Errorf("row %d is %v, want %v", i, got.Row(i), want)
		}
	}
	for line, advised := range map[string]bool{"paper train out.tsv -o new": true, "top out.tsv": false} { // --words of top is another one
		if code, _, stderr := dir.Run(t, line); code != exitUsage || !strings.Contains(stderr, "out.tsv: no line begins with a word") || strings.Contains(stderr, "names that file") != advised {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}
