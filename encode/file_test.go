package encode_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// File saves the codes of [encode.Model] and records the file, whatever the training input was.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path, out := filepath.Join(dir, "other.txt"), filepath.Join(dir, "out")
	testonly.Must(t, os.WriteFile(path, []byte("a 1 0.5 0\nb 0 2 0\nc 0.1 0 3\n"), 0o666))
	m := untrained(3, 1, 0, 0, 0, 1, 0, 0, 0, 1)
	learned := m.Info.Training.Input
	o := encode.Options{Lambda: 0.1, Steps: encode.DefaultSteps, Nonzeros: 2}
	shown := 0
	info, source, err := encode.File(t.Context(), m, []string{path}, out, cpu.Device{}, o, encode.FileOptions{Show: func(b *vectors.Sparse) { shown += b.Rows }})
	testonly.Must(t, err)
	saved, err := model.Open(out)
	testonly.Must(t, err)
	x, read, err := vectors.Read(t.Context(), []string{path}, vectors.ReadOptions{})
	testonly.Must(t, err)
	want, err := encode.Model(t.Context(), m, x, cpu.Device{}, o)
	testonly.Must(t, err)
	if !reflect.DeepEqual(saved.Codes, want.Codes) || shown != 3 {
		t.Errorf("codes are %+v, want %+v; %d rows were shown, want 3", saved.Codes, want.Codes, shown)
	}
	of := model.Input{Name: "other.txt", SHA256: read.SHA256, Rows: 3, Dim: 3}
	if !reflect.DeepEqual(info.Encoding.Input, of) || !reflect.DeepEqual(info.Training.Input, learned) || info.Encoding.Error != want.Info.Encoding.Error || !reflect.DeepEqual(saved.Info, info) || source.SHA256 != read.SHA256 {
		t.Errorf("returned info\n%+v\nsaved\n%+v\nwant input\n%+v", info, saved.Info, of)
	}
	if !reflect.DeepEqual(m.Info.Training.Input, learned) || m.Info.Encoding != nil {
		t.Errorf("File changed its argument to %+v", m.Info)
	}

	// A failed call keeps the existing model and leaves no other file.
	rejected := errors.New("rejected")
	for _, tt := range []struct {
		text string
		o    encode.FileOptions
		want string
	}{
		{"a 1 0.5 0\n", encode.FileOptions{}, "already exists"},
		{"a 1 0.5\n", encode.FileOptions{Replace: true}, "other.txt: vectors differ in length from the dictionary's atoms (got 2 numbers, want 3)"},
		{"a 1 0.5 0\nb 1 2 x\n", encode.FileOptions{Replace: true}, "other.txt:2"},
		{"a 1 0.5 0\n", encode.FileOptions{Replace: true, Accept: func(*model.Encoding) error { return rejected }}, rejected.Error()},
	} {
		testonly.Must(t, os.WriteFile(path, []byte(tt.text), 0o666))
		_, _, err := encode.File(t.Context(), m, []string{path}, out, cpu.Device{}, o, tt.o)
		testonly.ErrorSays(t, tt.text, err, tt.want)
		if is, err := model.Open(out); err != nil || !reflect.DeepEqual(is, saved) {
			t.Errorf("%q: the model is now %+v, error %v", tt.text, is, err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 2 {
			t.Errorf("%q: the folder now has %v", tt.text, names)
		}
	}
}
