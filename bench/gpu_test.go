//go:build gpu && linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"overcomplete/kernels/emulator"
)

// emulated is whether the tests run on the emulated driver, as in package kernels.
var emulated = os.Getenv("OVERCOMPLETE_LIBCUDA") == ""

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if emulated {
			dir, err := os.MkdirTemp("", "")
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			defer os.RemoveAll(dir)
			library, err := emulator.Build(dir)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			os.Setenv("OVERCOMPLETE_LIBCUDA", library)
		}
		return m.Run()
	}())
}

// All of the benchmark, small, down to the table that it prints.
func TestGPU(t *testing.T) {
	dir := t.TempDir()
	path, torch := filepath.Join(dir, "bench.json"), filepath.Join(dir, "torch.json")
	var out bytes.Buffer
	err := run(strings.Fields("gpu --words 300 --dim 8 --atoms 24 --epochs 2 --repeats 1 --compare-words 200 --compare-epochs 2 "+
		"--scaling 100,250 --scaling-epochs 1 --json "+path), &out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Agreement) != 6 || len(r.Trainings) != 6 || len(r.Profiles) != 3 || len(r.Encodings) != 4 || len(r.Scaling) != 2 {
		t.Fatalf("%+v", r)
	}
	for _, a := range r.Agreement {
		if !a.Agree || !a.SameBits || a.CPU.Objective == 0 || a.CPU.Objective == a.GPU.Objective && a.GPU.Precision == "tf32" {
			t.Errorf("%+v", a)
		}
	}
	for _, trained := range append(r.Trainings, r.Scaling...) {
		if trained.Problem != "" || !(trained.Seconds > 0 && trained.EpochSeconds > 0 && trained.Objective > 0) ||
			trained.Seconds < float64(trained.Epochs-1)*trained.EpochSeconds {
			t.Errorf("%+v", trained)
		}
	}
	for _, p := range r.Profiles {
		var sum float64
		for _, k := range p.Kernels {
			sum += k.Seconds
			if floor := max(k.Bytes/r.Peaks.CopyBytes, k.Flops/r.Peaks.TF32Flops); math.Abs(k.FloorSeconds-floor) > 1e-12 || floor == 0 {
				t.Errorf("%+v", k)
			}
		}
		if len(p.Kernels) < 6 || sum > p.Training.Seconds || sum == 0 {
			t.Errorf("%d kernels took %v s of %v", len(p.Kernels), sum, p.Training.Seconds)
		}
	}

	for _, e := range r.Encodings {
		var sum float64
		for _, k := range e.Kernels {
			sum += k.Seconds
		}
		if e.Problem != "" || !e.Agree || !e.SameBits || e.Objective == e.CPUObjective && e.Precision == "tf32" ||
			math.Abs(e.WordsPerSecond*e.Seconds-300) > 1e-6 || !(e.CPUWordsPerSecond > 0) || len(e.Kernels) < 6 || sum == 0 {
			t.Errorf("%+v", e)
		}
	}

	peer := r.Trainings[0]
	peer.Program, peer.Seconds = "peer", 3*peer.Seconds
	if err := writeJSON(torch, Report{Trainings: []Training{peer}}); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := run([]string{"table", path, torch}, &table); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "correlate_tf32") && !strings.Contains(table.String(), line) {
			t.Errorf("%q is not in\n%s", line, &table)
		}
	}
	for _, line := range strings.Split(table.String(), "\n") {
		if strings.HasPrefix(line, "peer") && !strings.HasSuffix(strings.TrimSpace(line), "3.00") {
			t.Errorf("a peer that takes three times as long: %s", line)
		}
	}
}

// A training that does not fit is a line in the report; the rest still runs.
func TestGPUOutOfMemory(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("EMULATED_MEMORY", "5000000")
	path := filepath.Join(t.TempDir(), "bench.json")
	err := run(strings.Fields("gpu --words 100 --dim 8 --atoms 24 --epochs 1 --repeats 1 --compare-words 100 --compare-epochs 1 "+
		"--scaling 1000000,100 --scaling-epochs 1 --json "+path), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	large, small := r.Scaling[0], r.Scaling[1]
	if !strings.Contains(large.Problem, "not enough memory") || small.Problem != "" || small.Seconds == 0 {
		t.Errorf("%+v\n%+v", large, small)
	}
}

// A kernel that fails ends its training, is told with its place, and makes the
// benchmark fail. Nothing works after it in the process; what was measured before it is
// kept.
func TestGPUFails(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("EMULATED_FAIL_LAUNCH", "700") // of every context: the longer trainings
	path := filepath.Join(t.TempDir(), "bench.json")
	err := run(strings.Fields("gpu --words 100 --dim 8 --atoms 24 --epochs 2 --repeats 1 --compare-words 60 --compare-epochs 1 "+
		"--scaling 20 --scaling-epochs 1 --json "+path), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "100 words, method A, tf32: kernels: ") {
		t.Fatalf("error %v", err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Agreement) == 0 || len(r.Trainings) != 6 || r.Trainings[0].Problem == "" || len(r.Scaling) != 1 || r.Scaling[0].Problem == "" {
		t.Errorf("%+v\n%+v\n%+v", r.Agreement, r.Trainings, r.Scaling)
	}
}
