package model

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func writeSafetensors(t *testing.T, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteSafetensors(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSafetensorsRoundTrip(t *testing.T) {
	for _, m := range []*Model{testModel(50, 3, 7, true), testModel(1, 1, 2, false)} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		content := writeSafetensors(t, m)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		expectModel(t, path, m)
		if !bytes.Equal(content, writeSafetensors(t, m)) {
			t.Error("equal models give different files")
		}
	}
}

// A damaged file, or one whose parts don't agree, is refused with its name.
func TestOpenBadSafetensors(t *testing.T) {
	m := testModel(4, 2, 3, true)
	m.Dictionary.Atoms[0] = 1
	whole := string(writeSafetensors(t, m))
	path := filepath.Join(t.TempDir(), "m.safetensors")
	check := func(content, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
	for n := range len(whole) {
		check(whole[:n], "")
	}
	for _, text := range []string{"", "# Overcomplete\n\nA program\n", "the 0.1 0.2\n"} {
		check(text, "not a model: neither a directory nor a .safetensors file")
	}
	for _, tt := range []struct{ old, new, want string }{
		{`{"__metadata__"`, `{"__metadatum_"`, `"__metadatum_"`},
		{`"model.json":`, `"motel.json":`, `its metadata has no "model.json"`},
		{`\"format\":1`, `\"format\":5`, "format version is 5, want 1"},
		{`\"words\":4`, `\"words\":5`, `tensor "words": 4 words, model.json says 5`},
		{`\"words\":4`, `\"words\":-`, "model.json: "},
		{`\"dim\":2`, `\"dim\":3`, "array of shape ["},
		{`\"center\":true`, `\"center\":null`, `there is a tensor "mean", but model.json says that the input was not centred`},
		{`[3,2]`, `[2,3]`, `array of shape [2 3], want [3 2]`},
		{`"mean":`, `"meas":`, `no tensor "mean"`},
		{"word 3", "word\n3", `tensor "words": more words than the 4`},
		{"\x00\x00\x80\x3f", "\x00\x00\x80\x7f", "value 0 is +Inf"},
	} {
		if !strings.Contains(whole, tt.old) {
			t.Fatalf("no %q to replace", tt.old)
		}
		check(strings.ReplaceAll(whole, tt.old, tt.new), tt.want)
	}
	m.Codes.Words[1] = "a\nb"
	if err := m.WriteSafetensors(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "line break") {
		t.Errorf("a newline in a word: error %v", err)
	}
	if !reflect.DeepEqual(testModel(4, 2, 3, true).Codes.CSR, m.Codes.CSR) {
		t.Error("writing changed the model")
	}
}
