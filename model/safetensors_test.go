package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/internal/safetensors"
)

func writeSafetensors(t *testing.T, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteSafetensors(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The file contains all parts of the model and nothing else. TestSafetensorsReadsWhatWeWrite reads it in Python.
func TestWriteSafetensors(t *testing.T) {
	alone := testModel(5, 2, 3, true)
	alone.Codes, alone.Info.Encoding = nil, nil
	codes := []string{"codes.data", "codes.indices", "codes.indptr"}
	for _, tt := range []struct {
		m     *Model
		names []string
	}{
		{testModel(50, 3, 7, true), append(codes, "dictionary", "mean", "words")},
		{testModel(1, 1, 2, false), append(codes, "dictionary", "words")},
		{textModel(), append(codes, "dictionary", "mean", "texts")},
		{themeModel(), append(codes, "dictionary", "mean", "themes", "words")},
		{alone, []string{"dictionary", "mean"}},
	} {
		m := tt.m
		content := writeSafetensors(t, m)
		if !bytes.Equal(content, writeSafetensors(t, m)) {
			t.Error("equal models give different files")
		}
		f, err := safetensors.Open(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Names(); !slices.Equal(got, tt.names) {
			t.Errorf("tensors %q, want %q", got, tt.names)
		}
		dim := m.Dictionary.Dim
		expectTensor(t, f, "dictionary", m.Dictionary.Atoms, m.Dictionary.Len(), dim)
		if m.Dictionary.Mean != nil {
			expectTensor(t, f, "mean", m.Dictionary.Mean, dim)
		}
		if m.Dictionary.Themes != nil {
			expectTensor(t, f, "themes", m.Dictionary.Themes, len(m.Dictionary.Themes)/dim, dim)
		}
		dir := filepath.Join(t.TempDir(), "model")
		save(t, dir, false, m)
		for name, file := range map[string]string{"words": modeldir.Words, "texts": modeldir.Texts} {
			if !slices.Contains(tt.names, name) {
				continue
			}
			r, err := f.Text(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if want, _ := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s are %q, %v, want %q", name, got, err, want)
			}
		}
		if c := m.Codes; c != nil {
			expectTensor(t, f, "codes.indptr", c.Ptr, len(c.Ptr))
			expectTensor(t, f, "codes.indices", c.Index, len(c.Index))
			expectTensor(t, f, "codes.data", c.Value, len(c.Value))
		}
		info, err := os.ReadFile(filepath.Join(dir, modeldir.Info))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := cmp.Or(json.Unmarshal([]byte(f.Metadata["model.json"]), &got), json.Unmarshal(info, &want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("model.json is %v, %v, want %v", got, err, want)
		}
	}
}

func expectTensor[T npy.Element](t *testing.T, f *safetensors.File, name string, want []T, shape ...int) {
	t.Helper()
	a, err := f.Array(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := npy.Read[T](a, shape...); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s is %v, %v, want %v", name, got, err, want)
	}
}

func TestWriteSafetensorsRefuses(t *testing.T) {
	m := testModel(4, 2, 3, true)
	m.Codes.IDs[1] = "a\nb"
	var b bytes.Buffer
	if err := m.WriteSafetensors(&b); err == nil || !strings.Contains(err.Error(), "line break") || b.Len() > 0 {
		t.Errorf("a newline in a word: error %v, %d bytes", err, b.Len())
	}
}

// An exported model isn't a model to open.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := os.WriteFile(path, writeSafetensors(t, testModel(4, 2, 3, true)), 0o666); err != nil {
		t.Fatal(err)
	}
	if Is(path) {
		t.Error("the file is a model")
	}
	for name, open := range map[string]func(string) (*Model, error){"Open": Open, "OpenDictionary": OpenDictionary, "Rows": readAll} {
		if _, err := open(path); err == nil || err.Error() != path+": not a model (got a file, want a directory with model.json); if it is an exported model, use the directory that it was exported from" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
