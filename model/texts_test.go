package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/modeldir"
	"overcomplete/testonly"
	"overcomplete/vectors"
)

// textModel returns a testModel whose rows are texts with unusual characters.
func textModel() *Model {
	m := testModel(4, 3, 5, true)
	m.Codes.IDs = []string{"d-1", "d-2", "d-3", "d-4"}
	m.Codes.Texts = &vectors.Texts{
		Text:    []string{"two\nlines, \"quoted\" \\ <b>", "", "\x00\x1b[31m שלום e\u0301\u2028", ""},
		Columns: []vectors.Column{{Name: "label", Values: []string{"0", "", "1", "1"}}, {Name: "a\"b", Values: []string{"x", "y", "z", "\n"}}},
	}
	m.Info.Encoding.SetKind(m.Codes.Texts)
	return m
}

func TestOpenBadTexts(t *testing.T) {
	dir := saved(t, textModel())
	path := filepath.Join(dir, modeldir.Texts)
	good := testonly.ReadFile(t, path)
	_, rest, _ := strings.Cut(string(good), "\n")
	for content, want := range map[string]string{
		"":                               "texts.jsonl: truncated: fewer rows than the 4 that model.json says",
		string(good)[:len(good)-1]:       "truncated: the last line has no end",
		string(good) + "\n":              "more rows than the 4",
		string(good) + rest:              "more rows than the 4",
		"[]\n" + rest:                    `line 1, "[]": want an object of strings`,
		`{"id":1}` + "\n" + rest:         `want an object of strings`,
		`{"id":"x","label":""}` + "\n":   `line 1: there is no "text"`,
		`{"text":"x","label":""}` + "\n": `line 1: there is no "id"`,
		`{"id":"x","text":"","label":"","a\"b":"","c":""}` + "\n":            "line 1 has 5 values, model.json says 4",
		`{"id":"","text":"","label":"","a\"b":""}` + "\n":                    "line 1, \"\": the word is empty",
		`{"id":"t0","id":"tX","text":"","label":"","a\"b":""}` + "\n" + rest: "line 1: a key is repeated",
		strings.Repeat("\x00", 1<<18):                                        "line 1",
	} {
		testonly.Must(t, os.WriteFile(path, []byte(content), 0o666))
		_, err := Open(dir)
		testonly.ErrorSays(t, fmt.Sprintf("%.60q", content), err, want)
		if _, err := readAll(dir); err == nil {
			t.Errorf("%.60q: read by rows", content)
		}
	}
	testonly.Must(t, os.Remove(path))
	_, err := Open(dir)
	testonly.ErrorSays(t, "without texts", err, modeldir.Texts)
}

// If split accepts a changed line, it returns the values of parse.
func TestSplitLines(t *testing.T) {
	const special = "\"\\{},:u0a \x00\n\x7f\xff"
	m := textModel()
	var file bytes.Buffer
	testonly.Must(t, writeRows(&file, m.Codes.IDs, m.Codes.Texts, 0))
	r := newRowReader(&file, m.Info.Encoding)
	rng := rand.New(rand.NewPCG(1, 2))
	for line := range bytes.Lines(bytes.Clone(file.Bytes())) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		want, err := r.parse(line)
		if got, ok := r.split(line); err != nil || !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q, error %v", line, got, ok, want, err)
		}
		for range 2000 {
			changed := bytes.Clone(line)
			for range 1 + rng.IntN(3) {
				changed[rng.IntN(len(line))] = special[rng.IntN(len(special))]
			}
			changed = changed[:len(line)-rng.IntN(2)]
			got, ok := r.split(changed)
			if want, err := r.parse(changed); ok && (err != nil || !slices.Equal(got, want)) {
				t.Fatalf("%q: %q; want %q, error %v", changed, got, want, err)
			}
		}
	}
}
