//go:build full && !gpu

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/internal/testonly/evaltest"
	"overcomplete/vectors"
)

func TestVocabulary(t *testing.T) {
	data, x := evaltest.Write(t)
	dir := t.TempDir()
	file, path, figure := filepath.Join(dir, "x.bin"), filepath.Join(dir, "r.json"), filepath.Join(dir, "figure")
	for i := range x.Data {
		x.Data[i] += 2 // so that centred vectors are others
	}
	if err := writeBinary(file, x.Len(), x.Dim, x.Slice); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"vocabulary", "--vectors", file, "--data", data, "--json", path, "--plot", figure}, &out); err != nil {
		t.Fatal(err)
	}
	var r VocabularyReport
	readJSON(t, path, &r)
	var again bytes.Buffer
	if err := r.print(&again); err != nil || again.String() != out.String() {
		t.Errorf("the table\n%s\nof the JSON, error %v\n%s", &out, err, &again)
	}
	if len(r.Rows) != 5 || r.Words != x.Len() || r.Dim != x.Dim || r.Rows[0].Average == r.Rows[4].Average {
		t.Fatalf("%+v", r)
	}
	for i, v := range r.Rows {
		if trained := i > 0 && i < 4; v.Average < 20 || v.Average > 100 || v.Similarity == 0 || trained != (v.Seconds > 0 && v.Bytes > 1e6 && v.Error > 0 && v.Zeros > 0) {
			t.Errorf("%+v", v)
		}
	}
	svg, err := os.ReadFile(figure + ".svg")
	if err != nil || !strings.Contains(string(svg), ">all words teach<") {
		t.Errorf("the figure lacks a name, error %v", err)
	}
	for args, want := range map[string]string{"vocabulary --vectors " + file: "--data", "vocabulary --data x --vectors nowhere.txt": "nowhere.txt"} {
		if err := run(strings.Fields(args), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
}
