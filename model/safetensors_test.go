package model

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/internal/safetensors"
	"overcomplete/testonly"
)

func writeSafetensors(t *testing.T, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	testonly.Must(t, m.WriteSafetensors(&b))
	return b.Bytes()
}

// The file contains all parts of the model and nothing else. TestSafetensorsReadsWhatWeWrite reads a model of words in
// Python.
func TestWriteSafetensors(t *testing.T) {
	alone := testModel(5, 2, 3, true)
	alone.Codes, alone.Info.Encoding = nil, nil
	codes := []string{"codes.data", "codes.indices", "codes.indptr"}
	for _, tt := range []struct {
		m     *Model
		names []string
	}{
		{testModel(1, 1, 2, false), append(codes, "dictionary", "words")},
		{textModel(), append(codes, "dictionary", "mean", "texts")},
		{themeModel(), append(codes, "dictionary", "mean", "themes", "words")},
		{alone, []string{"dictionary", "mean"}},
	} {
		content := writeSafetensors(t, tt.m)
		f, err := safetensors.Open(bytes.NewReader(content), int64(len(content)))
		testonly.Must(t, err)
		if got := f.Names(); !slices.Equal(got, tt.names) {
			t.Errorf("tensors %q, want %q", got, tt.names)
		}
		if themes := tt.m.Dictionary.Themes; themes != nil {
			a, err := f.Array("themes")
			testonly.Must(t, err)
			if got, err := npy.Read[float32](a, 4, tt.m.Dictionary.Dim); err != nil || !slices.Equal(got, themes) {
				t.Errorf("themes %v, %v, want %v", got, err, themes)
			}
		}
		if slices.Contains(tt.names, "texts") {
			if want := testonly.ReadFile(t, filepath.Join(saved(t, tt.m), modeldir.Texts)); !bytes.Contains(content, want) {
				t.Errorf("no texts %q", want)
			}
		}
	}
}

// openings has all functions that read a model.
var openings = map[string]func(dir string) (*Model, error){"Open": Open, "OpenDictionary": OpenDictionary, "Rows": readAll}

// An exported model isn't a model to open.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	testonly.Must(t, os.WriteFile(path, writeSafetensors(t, testModel(4, 2, 3, true)), 0o666))
	if Is(path) {
		t.Error("the file is a model")
	}
	for name, open := range openings {
		if _, err := open(path); err == nil || err.Error() != path+": not a model (got a file, want a directory with model.json); if it is an exported model, use the directory that it was exported from" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
