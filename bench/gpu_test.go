//go:build gpu && linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"overcomplete/internal/testonly/emulator"
)

// emulated is whether the tests run on the emulated driver, as in package kernels.
var emulated = os.Getenv("OVERCOMPLETE_TEST_GPU") == ""

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

// small are flags that make the benchmark small.
const small = "--count 1 --compare-words 200"

func TestGPU(t *testing.T) {
	var out bytes.Buffer
	if err := run(strings.Fields("gpu --words 300 --dim 8 --atoms 24 --epochs 2 "+small), &out); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"GPUTraining/recipe=best/": 2, "GPUTraining/recipe=paper/": 6, "GPUEncoding/": 2, "GPUScaling/": 7, "GPUCheck/": 9,
	} {
		lines := metrics(t, out.String(), name)
		if len(lines) != want {
			t.Errorf("%d lines of %s, want %d", len(lines), name, want)
		}
		for _, m := range lines {
			if !(m["ns/op"] > 0) {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	if err := run(strings.Fields("gpu nonsense"), io.Discard); status(err, io.Discard) != 2 || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error %v", err)
	}
}

// Too little memory for one training, or a kernel that fails, is reported; what was measured before is
// printed. Only the failure fails the benchmark.
func TestGPUFails(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	t.Setenv("EMULATED_MEMORY", "5000000")
	var out bytes.Buffer
	if err := run(strings.Fields("gpu --words 800 --dim 8 --atoms 24 scale"), &out); err != nil {
		t.Fatal(err)
	}
	if lines := metrics(t, out.String(), "GPUScaling/"); len(lines) != 4 {
		t.Errorf("want the results of 100 to 800 rows:\n%s", &out)
	}
	t.Setenv("EMULATED_MEMORY", "")
	t.Setenv("EMULATED_FAIL_LAUNCH", "700") // of every context: the longer trainings
	out.Reset()
	err := run(strings.Fields("gpu --words 100 --dim 8 --atoms 24 --epochs 2 --count 1 --compare-words 60 train"), &out)
	if err == nil || !strings.Contains(err.Error(), "GPUTraining/recipe=paper/method=A/precision=tf32/V=100/L=8/K=24: kernels: ") {
		t.Errorf("error %v\n%s", err, &out)
	}
}
