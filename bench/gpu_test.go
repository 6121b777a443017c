//go:build gpu && linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"overcomplete/internal/testonly/emulator"
)

// emulated is whether the tests run on the emulated driver, as in package kernels.
var emulated = os.Getenv("OVERCOMPLETE_LIBCUDA") == ""

// asProgram has the tests' program be bench, for gpu.sh.
const asProgram = "OVERCOMPLETE_TEST_BENCH"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
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

// small are flags that make the benchmark small. So few words don't stream: it takes more.
const small = "--repeats 1 --compare-words 200 --compare-epochs 2 --scaling 100,250 --scaling-epochs 1 --stream-words 400"

// The benchmark, small, in two goes, down to the table that it prints.
func TestGPU(t *testing.T) {
	dir := t.TempDir()
	path, torch := filepath.Join(dir, "bench.json"), filepath.Join(dir, "torch.json")
	flags := "gpu --words 300 --dim 8 --atoms 24 --epochs 2 " + small + " --json " + path
	var out bytes.Buffer
	for _, parts := range []string{"scale compare", "train encode profile"} {
		out.Reset()
		if err := run(strings.Fields(flags+" "+parts), &out); err != nil {
			t.Fatal(err)
		}
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Agreement) != 6 || len(r.Trainings) != 7 || len(r.Profiles) != 4 || len(r.Encodings) != 4 || len(r.Scaling) != 2 {
		t.Fatalf("%+v", r)
	}
	best := r.Trainings[0]
	if best.Recipe != "best" || best.Words != 300 || best.CodeSeconds != 0 || best.Sparsity < 0.9 {
		t.Errorf("%+v", best)
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
		if parts := trained.DictionarySeconds + trained.CodeSeconds; trained.Recipe == "paper" && math.Abs(parts/trained.Seconds-1) > 1e-9 {
			t.Errorf("passes took %v s of %v", parts, trained.Seconds)
		}
	}
	for _, p := range r.Profiles {
		var sum float64
		for _, k := range p.Kernels {
			sum += k.Seconds
			if floor := max(k.Bytes/r.Peaks.CopyBytes, k.Flops/r.Peaks.TF32Flops); math.Abs(k.FloorSeconds-floor) > 1e-12 ||
				floor == 0 && (k.Name != "totals" || k.Step != "dictionary 4") { // which adds up no rows
				t.Errorf("%+v", k)
			}
		}
		if p.Training.Recipe == "best" { // whose kernels are of no program
			if !slices.ContainsFunc(p.Kernels, func(k Kernel) bool { return k.Name == "move_atoms" && k.Launches == 2*2*1 }) {
				t.Errorf("%+v", p.Kernels)
			}
		} else if steps := p.Kernels[0].Step; !strings.HasPrefix(steps, "dictionary") && !strings.HasPrefix(steps, "code") {
			t.Errorf("step %q", steps)
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
	products := []Product{{Program: "torch", Name: "decode", Rows: 10, Columns: 20, Depth: 30, Seconds: 1e-6}}
	if err := writeJSON(torch, Report{Trainings: []Training{peer}, Products: products}); err != nil {
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
	if !strings.Contains(table.String(), "0.012") { // 2·10·20·30 flops in a µs
		t.Errorf("the table lacks the peer's product:\n%s", &table)
	}

	// What is there is not merged with what other flags give.
	before, _ := os.ReadFile(path)
	for _, other := range []string{
		"--words 301", "--dim 9", "--atoms 25", "--epochs 3", "--repeats 2", "--compare-words 201", "--compare-epochs 3",
		"--scaling 100", "--scaling-epochs 2", "--stream-words 401",
	} {
		err := run(strings.Fields(flags+" "+other+" scale"), io.Discard)
		name, value, _ := strings.Cut(other, " ")
		if status(err, io.Discard) != 2 || !strings.Contains(err.Error(), name+" ") || !strings.Contains(err.Error(), strconv.Quote(value)) {
			t.Errorf("with %s: error %v", other, err)
		}
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, before) {
		t.Error("what was measured with other flags has changed")
	}

	for want, change := range map[string]func(r *Report){
		"is of another": func(r *Report) { r.Device = "another" },
		"invalid char":  nil,
	} {
		if err := os.WriteFile(torch, []byte("{nonsense"), 0o666); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			changed := r
			change(&changed)
			if err := writeJSON(torch, changed); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := os.ReadFile(torch)
		err := run(strings.Fields("gpu --json "+torch+" scale"), io.Discard)
		if after, _ := os.ReadFile(torch); status(err, io.Discard) != 2 || !strings.Contains(err.Error(), want) || !bytes.Equal(after, before) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, args := range []string{"gpu nonsense", "gpu --scaling 100,nonsense"} {
		if err := run(strings.Fields(args), io.Discard); status(err, io.Discard) != 2 || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: error %v", args, err)
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
	err := run(strings.Fields("gpu --dim 8 --atoms 24 --scaling 1000000,100 --scaling-epochs 1 --json "+path+" scale"), io.Discard)
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
	path := filepath.Join(t.TempDir(), "bench.json")
	small := func(parts string) error {
		return run(strings.Fields("gpu --words 100 --dim 8 --atoms 24 --epochs 2 --repeats 1 --compare-words 60 --compare-epochs 1 "+
			"--scaling 20 --scaling-epochs 1 --json "+path+" "+parts), io.Discard)
	}
	if err := small("peaks"); err != nil { // which has more launches
		t.Fatal(err)
	}
	t.Setenv("EMULATED_FAIL_LAUNCH", "700") // of every context: the longer trainings
	err := small("compare train scale")
	if err == nil || !strings.Contains(err.Error(), "100 words, method A, fp16: kernels: ") {
		t.Fatalf("error %v", err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Agreement) == 0 || len(r.Trainings) != 7 || r.Trainings[6].Problem == "" || len(r.Scaling) != 1 || r.Scaling[0].Problem == "" {
		t.Errorf("%+v\n%+v\n%+v", r.Agreement, r.Trainings, r.Scaling)
	}
}
