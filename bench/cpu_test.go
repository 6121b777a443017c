package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// tiny makes a benchmark of a few milliseconds.
const tiny = "--words 150 --dim 8 --atoms 24 --epochs 3 "

// readJSON reads what a benchmark has written.
func readJSON(t *testing.T, path string, report any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, report); err != nil {
		t.Fatal(err)
	}
}

// benchCPU runs "bench cpu" and returns its table and what it wrote as JSON.
func benchCPU(t *testing.T, flags string) (table string, r CPUReport) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.json")
	var out bytes.Buffer
	if err := run(strings.Fields("cpu "+flags+" --json "+path), &out); err != nil {
		t.Fatal(err)
	}
	readJSON(t, path, &r)
	return out.String(), r
}

func (r *CPUReport) figure(t *testing.T, name string) Figure {
	t.Helper()
	for _, f := range r.Figures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no figure %q", name)
	return Figure{}
}

// All that the machine can be asked for is there, and each number is what the
// others make of it.
func TestCPU(t *testing.T) {
	table, r := benchCPU(t, tiny)
	var again bytes.Buffer
	if err := r.print(&again); err != nil || again.String() != table {
		t.Errorf("the table\n%s\nof the JSON, error %v\n%s", table, err, &again)
	}
	if r.Words != 150 || r.Dim != 8 || r.Atoms != 24 || r.Epochs != 3 || r.Vectors != "generated" || r.Machine.Cores != runtime.GOMAXPROCS(0) {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{
		fmaCore, fmaAll, memoryRead, memoryBoth, codePass, "code pass, S and Q", "dictionary pass", trainFloor, training, trainingAll,
		hash, "reading text, one core", "reading text, all cores", "writing sparse text", "writing codes.npz",
	} {
		f := r.figure(t, name)
		sorted := slices.Sorted(slices.Values(f.Repeats))
		if len(sorted) != repeats || sorted[0] <= 0 || f.Value != sorted[repeats/2] {
			t.Errorf("%+v", f)
		}
		if f.Against != "" {
			limit := r.figure(t, f.Against)
			if f.Unit != limit.Unit || math.Abs(f.Ratio*limit.Value/f.Value-1) > 1e-12 {
				t.Errorf("%+v against %+v", f, limit)
			}
		}
		if !strings.Contains(table, fmt.Sprintf("%.4g %s", f.Value, f.Unit)) {
			t.Errorf("%s is %v %s, which is not in\n%s", name, f.Value, f.Unit, table)
		}
	}
	// A word's share of the whole.
	if all, word := r.figure(t, trainingAll), r.figure(t, training); math.Abs(1e6*all.Value/(150*3)/word.Value-1) > 1e-12 {
		t.Errorf("%v s in all, %v µs a word and epoch", all.Value, word.Value)
	}
	// Nothing is faster than FMA in registers, which is its floor.
	if f := r.figure(t, training); f.Ratio < 1 {
		t.Errorf("training takes %v of its floor", f.Ratio)
	}
}

// Vectors may be those of a file.
func TestCPUVectors(t *testing.T) {
	x := generate(seed, 3, 4)
	path := filepath.Join(t.TempDir(), "three.txt")
	if err := os.WriteFile(path, glove(x), 0o666); err != nil {
		t.Fatal(err)
	}
	_, r := benchCPU(t, "--atoms 8 --epochs 1 --vectors "+path)
	if r.Vectors != "three.txt" || r.Words != 3 || r.Dim != 4 {
		t.Errorf("%+v", r)
	}
}

// script writes a program for the shell, that stands in for a peer.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "peer")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// A peer that is not here, or fails, is a line that says so.
func TestPeersMissing(t *testing.T) {
	for name, test := range map[string]struct{ python, authors, pythonNote, authorsNote string }{
		"not given": {"", "", "not here: no --python", "not here: no --authors"},
		"no such":   {"/no/python", "/no/sparse", "not here: fork/exec /no/python", "not here: fork/exec /no/sparse"},
		"no module": {script(t, "echo no module >&2; exit 3"), script(t, "echo Iteration: 1 >&2; exit 1"), "not here: no module", "ended after 0 epochs"},
		"failing":   {script(t, "echo first >&2; echo broken >&2; exit 1"), script(t, ""), "exit status 1: broken", "ended after 0 epochs"},
	} {
		t.Run(name, func(t *testing.T) {
			table, r := benchCPU(t, fmt.Sprintf("%s--python=%s --authors=%s", tiny, test.python, test.authors))
			for peer, note := range map[string]string{product: test.pythonNote, learning: test.pythonNote, authors: test.authorsNote} {
				if f := r.figure(t, peer); f.Value != 0 || f.Repeats != nil || !strings.Contains(f.Note, note) || !strings.Contains(table, f.Note) {
					t.Errorf("%+v, want a note %q", f, note)
				}
			}
		})
	}
}

// The authors' program is asked for the same training, and ended once it has told
// enough. This one would never end.
func TestAuthorsProgram(t *testing.T) {
	arguments := filepath.Join(t.TempDir(), "arguments")
	peer := script(t, `echo "$@" >`+arguments+`
head -n 1 "$1" >>`+arguments+`
i=0
while true; do
	i=$((i + 1))
	printf '\nIteration: %d\n1\r2\r3\r\nError per example: 1' $i >&2
done
`)
	_, r := benchCPU(t, tiny+"--python= --authors "+peer)
	f := r.figure(t, authors)
	if len(f.Repeats) != authorsEpochs || f.Value <= 0 || f.Against != training || f.Note != "150 words, 3 epochs" {
		t.Errorf("%+v", f)
	}
	given, err := os.ReadFile(arguments)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(given), "\n")
	if fields := strings.Fields(lines[0]); len(fields) != 6 || strings.Join(fields[1:5], " ") != "3 0.5 1e-05 1" {
		t.Errorf("its arguments are %q", lines[0])
	}
	if fields := strings.Fields(lines[1]); len(fields) != 9 || fields[0] != "word0" {
		t.Errorf("its first vector is %q", lines[1])
	}

	// It cannot make 25 dimensions of 8.
	_, r = benchCPU(t, "--words 20 --dim 8 --atoms 25 --epochs 1 --python= --authors "+peer)
	if f := r.figure(t, authors); f.Value != 0 || !strings.Contains(f.Note, "multiple of 8") {
		t.Errorf("%+v", f)
	}
}

// The peers in Python run, and say the same objective of our codes as training
// does.
func TestPeersInPython(t *testing.T) {
	python, ok := os.LookupEnv("OVERCOMPLETE_PYTHON")
	if !ok {
		t.Skip("set OVERCOMPLETE_PYTHON to a Python with NumPy, SciPy and scikit-learn")
	}
	_, r := benchCPU(t, tiny)
	if f := r.figure(t, product); len(f.Repeats) != repeats || f.Value <= 0 || !strings.HasPrefix(f.Note, "NumPy ") {
		t.Errorf("%+v", f)
	}
	if f := r.figure(t, learning); f.Value <= 0 || f.Against != trainingAll || !strings.HasPrefix(f.Note, "scikit-learn ") {
		t.Errorf("%+v", f)
	}

	// Of so few words the sample is all.
	b := CPUReport{python: python, x: generate(seed, 150, 8), Words: 150, Dim: 8, Atoms: 24, Epochs: 3}
	b.Machine.Cores, b.dir = 1, t.TempDir()
	if err := b.train(); err != nil {
		t.Fatal(err)
	}
	last := b.model.Info.Training.Epochs[2]
	for _, seconds := range []float64{0, 600} {
		result, err := b.learn(seconds)
		if err != nil {
			t.Fatal(err)
		}
		// Training adds up residuals that were rounded to float32.
		if math.Abs(result.Ours/last.Objective-1) > 1e-5 {
			t.Errorf("scikit-learn's script finds %v for our objective, training %v", result.Ours, last.Objective)
		}
		if result.Reached != (result.Objective <= result.Ours) || !result.Reached && result.Seconds < seconds || result.Words == 0 {
			t.Errorf("given %v s: %+v", seconds, result)
		}
	}
}

func TestMistakesExitWith2(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.txt")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"", "nonsense", "cpu more", "cpu --words", "cpu --words x", "cpu --words 0", "cpu --dim -3", "cpu --atoms 1e3", "cpu --epochs 4294967296",
		"cpu --nonsense", "cpu --vectors " + empty, "cpu --vectors " + filepath.Join(dir, "none"), "cpu --words 5 --vectors " + empty,
		"growth --words 5", "growth --words 5,5", "growth --atoms 5,x", "growth --atoms ,", "growth --program " + filepath.Join(dir, "none"), "growth more",
		"vectors --dim 0 x.npy", "vectors", "table",
	} {
		var told bytes.Buffer
		err := run(strings.Fields(args), io.Discard)
		if got := status(err, &told); got != 2 || told.Len() == 0 {
			t.Errorf("bench %s: status %d, %v", args, got, err)
		}
	}
	t.Setenv("OVERCOMPLETE_CPU", "sse")
	for _, args := range []string{"cpu " + tiny, "growth --words 5,6"} {
		if got := status(run(strings.Fields(args), io.Discard), io.Discard); got != 2 {
			t.Errorf("bench %s with a level that there is not: status %d", args, got)
		}
	}
}
