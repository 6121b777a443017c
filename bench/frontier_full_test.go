//go:build full && !gpu

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly/evaltest"
)

// Each series has a row for each setting and seed. Its numbers agree with the saved models.
func TestFrontier(t *testing.T) {
	data, x := evaltest.Write(t)
	dir := t.TempDir()
	for name, dim := range map[string]int{"x.txt": x.Dim, "half.txt": x.Dim / 2} {
		text := ""
		for i, id := range x.IDs {
			text += id + " " + strings.Trim(fmt.Sprint(x.Row(i)[:dim]), "[]") + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"20news-bydate", "trec", "sst2", "np-bracketing"} {
		if err := os.RemoveAll(filepath.Join(data, folder)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out")
	if err := run([]string{"frontier", "-data", data, "-reference", filepath.Join(dir, "half.txt"), "-seeds", "2", filepath.Join(dir, "x.txt"), out}, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "frontier.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	if want := 2 * (2*(2*3+2*4) + 2*3 + 1); len(rows) != want { // 5, 10 and 30 nonzeros of 60; four λ
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	m, err := model.Open(filepath.Join(out, "B, paper, 0.5, seed 2"))
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Info.Training.Recipe.(model.Paper); r.Lambda != 0.5 || r.Seed != 2 || r.Method != model.Nonnegative {
		t.Errorf("trained with %+v", r)
	}
	want := fmt.Sprintf("B, paper\t0.5\t2\t%.6g\t%.6g\t", float64(m.Codes.Nonzeros())/float64(m.Codes.Rows), m.Info.Encoding.Error)
	if !strings.Contains(string(text), want) {
		t.Errorf("no row %q in\n%s", want, text)
	}
	if _, err := os.Stat(filepath.Join(out, "frontier.png")); err != nil {
		t.Error(err)
	}
}
