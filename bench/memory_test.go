//go:build !gpu

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/vectors"
)

func TestMemory(t *testing.T) {
	dir := t.TempDir()
	path, figure := filepath.Join(dir, "memory.json"), filepath.Join(dir, "figure")
	var out bytes.Buffer
	err := run(strings.Fields("memory --words 300,900 --atoms 20 --dim 6 --train-words 200 --json "+path+" --plot "+figure), &out)
	if err != nil {
		t.Fatal(err)
	}
	var r MemoryReport
	readJSON(t, path, &r)
	var again bytes.Buffer
	if err := r.print(&again); err != nil || again.String() != out.String() {
		t.Errorf("the table\n%s\nof the JSON, error %v\n%s", &out, err, &again)
	}
	for i, want := range []string{"300 train", "300 encode", "900 train", "900 encode"} {
		// The runtime alone takes some megabytes.
		if m := r.Runs[i]; fmt.Sprint(m.Words, " ", m.Command) != want || m.Bytes < 1e6 || m.Bytes > 1e9 || m.Seconds <= 0 {
			t.Errorf("%+v, want %s", m, want)
		}
	}
	svg, err := os.ReadFile(figure + ".svg")
	if err != nil || !strings.Contains(string(svg), ">encode<") {
		t.Errorf("the figure lacks a legend, error %v", err)
	}
}

func TestWriteBinary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bin")
	const words, dim = 10007, 3 // in two parts
	err := writeBinary(path, words, dim, func(first, n int) *vectors.Dense { return generateFrom(seed, first, n, dim) })
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := vectors.Read(context.Background(), path, vectors.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := generate(seed, words, dim); !slices.Equal(got.Words, want.Words) || !slices.Equal(got.Data, want.Data) {
		t.Error("read other vectors")
	}
}
