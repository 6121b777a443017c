package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/atomicfile"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// exportModel returns a model of method B:
//
//	A = 0 0.5 0 0 0 0 0 0 0     D = 1  2
//	    0 0   0 0 0 0 0 0 2         …
//	                                17 18
func exportModel() *model.Model {
	m := &model.Model{
		Info: model.Info{
			Format:   model.FormatVersion,
			Input:    model.Input{Name: "in.txt", Words: 2, Dim: 2},
			Training: train.Paper(),
		},
		Codes: &vectors.Sparse{
			Words: []string{"New York", "Rome"},
			CSR:   vectors.CSR{Rows: 2, Cols: 9, Ptr: []int64{0, 1, 2}, Index: []int32{1, 8}, Value: []float32{0.5, 2}},
		},
		Dictionary: model.Dictionary{Dim: 2, Atoms: make([]float32, 18)},
	}
	m.Info.Training.Method, m.Info.Training.Atoms = "B", 9
	for i := range m.Dictionary.Atoms {
		m.Dictionary.Atoms[i] = float32(i + 1)
	}
	return m
}

// saveModel returns the path of a directory that holds nothing but m, "model".
func saveModel(t *testing.T, m *model.Model) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := m.Save(filepath.Join(dir, "model"), false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// export runs the command in dir and returns its standard output.
func export(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	t.Chdir(dir)
	var stdout bytes.Buffer
	cmd := newExport()
	cmd.SetArgs(append([]string{"model"}, args...))
	cmd.SetOut(&stdout)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return stdout.String(), err
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestExport(t *testing.T) {
	const dense = "New%20York 0 0.5 0 0 0 0 0 0 0\nRome 0 0 0 0 0 0 0 0 2\n"
	zeros := strings.Repeat("\x00", 9*4)
	tests := []struct {
		format string
		files  map[string]string // content, or only part of it if that is binary
	}{
		{"glove", map[string]string{"out.x": dense}},
		{"word2vec", map[string]string{"out.x": "2 9\n" + dense}},
		{"word2vec-binary", map[string]string{"out.x": "2 9\nNew%20York " + zeros[:4] + "\x00\x00\x00\x3f" + zeros[:7*4] + "\nRome " + zeros[:8*4] + "\x00\x00\x00\x40\n"}},
		{"authors", map[string]string{
			"out.x":      strings.ReplaceAll(dense, "\n", " \n"),
			"out.x_dict": "2 9 1 3 5 7 9 11 13 15 17 2 4 6 8 10 12 14 16 18 \n",
		}},
		{"sparse", map[string]string{"out.x": "New%20York 1:0.5\nRome 8:2\n"}},
		{"csr", map[string]string{"out.x": "\x00\x00\x00\x3f\x00\x00\x00\x40"}},
		{"binary", map[string]string{"out.x": "\x00\x00\x80\x3f\x00\x00\x80\x3f"}},
		{"bits", map[string]string{"out.x": "\x40\x00\x00\x80"}},
		{"safetensors", map[string]string{"out.x": "\x00\x00\x00\x3f\x00\x00\x00\x40"}},
		{"arrow", map[string]string{"out.x": "ARROW1"}},
		{"parquet", map[string]string{"out.x": "PAR1"}},
		{"projector", map[string]string{
			"out.x":          "0\t0.5\t0\t0\t0\t0\t0\t0\t0\n0\t0\t0\t0\t0\t0\t0\t0\t2\n",
			"out_metadata.x": "New%20York\nRome\n",
		}},
	}
	var tested []string
	for _, tt := range tests {
		tested = append(tested, tt.format)
		dir := saveModel(t, exportModel())
		if _, err := export(t, dir, "--format", tt.format, "-o", "out.x", "--escape"); err != nil {
			t.Errorf("%s: %v", tt.format, err)
			continue
		}
		if got := names(t, dir); len(got) != 1+len(tt.files) {
			t.Errorf("%s: there are %q", tt.format, got)
		}
		for name, want := range tt.files {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			}
			if binary := slices.Contains([]string{"csr", "binary", "bits", "safetensors", "arrow", "parquet"}, tt.format); !binary && string(got) != want || !strings.Contains(string(got), want) {
				t.Errorf("%s: %s is\n%q, want\n%q", tt.format, name, got, want)
			}
		}

		stdout, err := export(t, dir, "--format", tt.format, "-o", "-", "--escape")
		if len(tt.files) > 1 {
			wantUsageError(t, err, "2 files")
		} else if content, _ := os.ReadFile(filepath.Join(dir, "out.x")); err != nil || stdout != string(content) {
			t.Errorf("%s: standard output is not what the file is: %q, %v", tt.format, stdout, err)
		}
	}
	if !slices.Equal(tested, formatNames()) {
		t.Errorf("formats %q are not all that there are, %q", tested, formatNames())
	}
}

func wantUsageError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !isUsage(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line of bad usage with %q", err, want)
	}
}

func TestExportRefuses(t *testing.T) {
	methodA := exportModel()
	methodA.Info.Training.Method = "A"
	for _, tt := range []struct {
		name string
		args string
		want string
	}{
		{"unknown format", "--format csv -o out", `"csv" is unknown, want one of glove, `},
		{"word with a space", "--format glove -o out", `word 1, "New York"`},
		{"word with a space in binary", "--format word2vec-binary -o out", `word 1, "New York"`},
		{"how to write it", "--format glove -o -", "--escape"},
		{"signs lost", "--format binary -o out", "method B"},
		{"signs lost in bits", "--format bits -o out", "method B"},
		{"existing", "--format csr -o existing", "already exists; --force"},
		{"existing second", "--format authors --escape -o out", "out_dict: already exists"},
		{"directory", "--format csr --force -o model", "not a regular file"},
		{"empty name", "--format csr --output=", "-o is empty"},
		{"no parent", "--format csr -o nowhere/out", "no such file"},
	} {
		dir := saveModel(t, methodA)
		for _, name := range []string{"existing", "out_dict"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		stdout, err := export(t, dir, strings.Fields(tt.args)...)
		wantUsageError(t, err, tt.want)
		if stdout != "" {
			t.Errorf("%s: wrote %q", tt.name, stdout)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"existing", "model", "out_dict"}) {
			t.Errorf("%s: left %q", tt.name, got)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "existing")); string(got) != "old" {
			t.Errorf("%s: the existing file holds %q, %v", tt.name, got, err)
		}
	}

	dir := saveModel(t, exportModel())
	if err := os.Truncate(filepath.Join(dir, "model", "codes.npz"), 100); err != nil {
		t.Fatal(err)
	}
	_, err := export(t, dir, "--format", "csr", "-o", "out")
	wantUsageError(t, err, "model: codes.npz: ")
	if got := names(t, dir); !slices.Equal(got, []string{"model"}) {
		t.Errorf("bad model: left %q", got)
	}
}

// A model can be read from what it was exported to.
func TestExportFromSafetensors(t *testing.T) {
	dir := saveModel(t, exportModel())
	for _, args := range [][]string{
		{"export", "model", "-f", "safetensors", "-o", "m.safetensors"},
		{"export", "model", "-f", "csr", "-o", "of-directory"},
		{"export", "m.safetensors", "-f", "csr", "-o", "of-file"},
	} {
		t.Chdir(dir)
		var stderr bytes.Buffer
		if code := run(t.Context(), args, io.Discard, &stderr); code != 0 {
			t.Fatalf("%q: exit code %d, %s", args, code, &stderr)
		}
	}
	files := tree(t, dir)
	if of := files[filepath.Join(dir, "of-file")]; of == "" || of != files[filepath.Join(dir, "of-directory")] {
		t.Error("the file and the directory hold different codes")
	}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"export", "of-file", "-f", "csr", "-o", "x"}, io.Discard, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "of-file: ") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}

// Whatever reads a model takes what it was exported to.
func TestSafetensorsAsModel(t *testing.T) {
	sampleDir(t)
	// With as many dimensions as words, the dictionary would do for vectors.
	mustRun(t, "train --recipe paper in.txt -o dir --center --epochs 3 -k 60")
	mustRun(t, "export dir -f safetensors -o file")
	for _, line := range []string{
		"top MODEL", "explain MODEL word1", "encode MODEL in.txt -o MODEL.encoded --json --quiet",
		"heatmap MODEL word1,word2 word3 -o MODEL.svg", "intrusion make X=MODEL -n 2 -o MODEL.json",
	} {
		ofDir, _ := mustRun(t, strings.ReplaceAll(line, "MODEL", "dir"))
		ofFile, _ := mustRun(t, strings.ReplaceAll(line, "MODEL", "file"))
		if ofFile != strings.ReplaceAll(ofDir, "dir", "file") {
			t.Errorf("%s: of the file\n%s\nof the directory\n%s", line, ofFile, ofDir)
		}
	}
	for _, ending := range []string{".svg", ".json"} {
		if ofDir, ofFile := string(readFile(t, "dir"+ending)), string(readFile(t, "file"+ending)); ofFile != strings.ReplaceAll(ofDir, `"dir"`, `"file"`) {
			t.Errorf("%s files differ", ending)
		}
	}
}

// Whatever reads dense vectors says that a model is none.
func TestSafetensorsAsVectors(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o dir --epochs 1 -k 60")
	mustRun(t, "export dir -f safetensors -o file")
	for _, line := range []string{"train --recipe paper file -o out", "encode dir file -o out"} {
		code, stdout, stderr := command(line)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, "file: is a model, not dense vectors; ") {
			t.Errorf("%s: exit code %d, %s%s", line, code, stdout, stderr)
		}
	}
}

// What is in a model's directory is the model's own.
func TestExportKeepsOutOfModels(t *testing.T) {
	dir := saveModel(t, exportModel())
	if err := os.Symlink(filepath.Join("model", "codes.npz"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	before := tree(t, dir)
	for _, name := range []string{"model/codes.npz", "model/out", "link"} {
		_, err := export(t, dir, "--format", "csr", "--force", "-o", name)
		wantUsageError(t, err, name+": is in the directory of a model")
	}
	if after := tree(t, dir); !maps.Equal(before, after) {
		t.Errorf("changed files; there are %q", slices.Sorted(maps.Keys(after)))
	}
}

// A writerFunc is called for each Write.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// An export can be interrupted between any two writes.
func TestExportInterrupted(t *testing.T) {
	m := exportModel()
	m.Codes.Words[0] = strings.Repeat("long", 100_000) // more than any buffer holds
	t.Chdir(saveModel(t, m))
	ctx, cancel := context.WithCancel(context.Background())
	writes := 0
	stdout := writerFunc(func(p []byte) (int, error) {
		writes++
		cancel()
		return len(p), nil
	})
	var stderr bytes.Buffer
	code := run(ctx, []string{"export", "model", "-f", "glove", "-o", "-"}, stdout, &stderr)
	if code != exitInterrupted || writes != 1 {
		t.Errorf("exit code %d after %d writes, %s", code, writes, &stderr)
	}
}

func TestExportForce(t *testing.T) {
	dir := saveModel(t, exportModel())
	out := filepath.Join(dir, "out")
	if err := os.WriteFile(out, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := export(t, dir, "--format", "glove", "-o", "out")
	if _, ok := errors.AsType[*atomicfile.OutputError](err); !ok {
		t.Errorf("error %v", err)
	}
	// A failure after the file was begun leaves the old one.
	if _, err := export(t, dir, "--format", "glove", "-o", "out", "--force"); err == nil {
		t.Error("a word with a space: no error")
	}
	if got, _ := os.ReadFile(out); string(got) != "old" {
		t.Errorf("the old file holds %q", got)
	}
	if _, err := export(t, dir, "--format", "sparse", "-o", "out", "--force", "--escape"); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(out); string(got) != "New%20York 1:0.5\nRome 8:2\n" {
		t.Errorf("the file holds %q", got)
	}
}

// What is written for the Embedding Projector is read with its words as a list, and refused
// without them: its first numbers are no words.
func TestProjectorIsReadBack(t *testing.T) {
	m := exportModel()
	dir := saveModel(t, m)
	if _, err := export(t, dir, "--format", "projector", "-o", "out.tsv"); err != nil {
		t.Fatal(err)
	}
	got, _, err := vectors.Read(t.Context(), "out.tsv", vectors.ReadOptions{WordList: "out_metadata.tsv"})
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
	for _, line := range []string{"transform out.tsv --method thresh1 -o -", "train --recipe paper out.tsv -o new", "top out.tsv"} {
		if code, _, stderr := command(line); code != exitUsage || !strings.Contains(stderr, "out.tsv: no line begins with a word") || !strings.Contains(stderr, "--words") {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

// Commands read tables as they read text.
func TestCommandsReadTables(t *testing.T) {
	tables, err := filepath.Abs("../../vectors/columnar/testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("lists.txt", []byte("a 1 2\nb 3 4\nc 5 6\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	results := func(path string) string {
		mustRun(t, "train --recipe paper "+path+" -o model -k 5 --epochs 2 --quiet --force")
		mustRun(t, "encode model "+path+" -o encoded --quiet --force")
		transformed, _ := mustRun(t, "transform "+path+" --method thresh2 -o -")
		top, _ := mustRun(t, "top "+path)
		return fmt.Sprint(transformed, top, *openModel(t, "model").Codes, *openModel(t, "encoded").Codes)
	}
	want := results("lists.txt")
	for _, name := range []string{"lists.arrow", "stream.arrow", "lists.parquet"} {
		if got := results(filepath.Join(tables, name)); got != want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, want)
		}
	}
	if _, stderr := mustRun(t, "transform "+filepath.Join(tables, "bare.parquet")+" --method thresh1 -o -"); stderr != "warning: bare.parquet: no words: its rows are called by their numbers, from 0; train and encode take a list of words (--words), all commands a .npz with an array of words\n" {
		t.Errorf("standard error is %q", stderr)
	}
}
