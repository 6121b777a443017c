//go:build gpu && full && linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/emulator"
)

// emulated is true if the tests run on the emulated driver, as in package kernels.
var emulated = os.Getenv("OVERCOMPLETE_TEST_GPU") == ""

// asProgram makes the tests' program run as bench, for gpu.sh.
const asProgram = "OVERCOMPLETE_TEST_BENCH"

func init() {
	before = func() {
		if os.Getenv(asProgram) != "" {
			main()
		}
		if emulated {
			library, err := emulator.Build()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Setenv("OVERCOMPLETE_LIBCUDA", library)
		}
	}
}

// newBundle makes a folder with all files that gpu.sh needs, and stand-ins for NVIDIA's tools. Time limits are twenty
// times as long, because a GPU is faster than the emulator.
func newBundle(t *testing.T) string {
	t.Helper()
	bundle := t.TempDir()
	timeout, err := exec.LookPath("timeout")
	testonly.Must(t, err)
	for name, text := range map[string]string{
		"timeout": "#!/usr/bin/env bash\nshift\nlimit=$1\nshift\nexec '" + timeout + "' $((20*limit)) \"$@\"\n",
		"bench":   "#!/bin/sh\n" + asProgram + "=1 exec '" + os.Args[0] + "' \"$@\"\n",
	} {
		testonly.Must(t, os.WriteFile(filepath.Join(bundle, name), []byte(text), 0o777))
	}
	for name, source := range map[string]string{
		"gpu.sh": "gpu.sh", "compute-sanitizer": "testdata/tools.sh", "ncu": "testdata/tools.sh", "nvidia-smi": "testdata/tools.sh",
	} {
		testonly.Must(t, os.WriteFile(filepath.Join(bundle, name), testonly.ReadFile(t, source), 0o777))
	}
	if out, err := exec.Command("go", "build", "-o", bundle, "-tags", "gpu", "overcomplete").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bundle
}

// gpu.sh runs all stages, at small sizes and without PyTorch. The stand-in for the kernels' tests fails like a Go test
// that panics: gpu.sh shows its output and runs the other stages.
func TestGPUScript(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	bundle, results := newBundle(t), filepath.Join(t.TempDir(), "results")
	script := testonly.ReadFile(t, "gpu.sh")
	const failing = "#!/bin/sh\necho \"panic: device $CUDA_VISIBLE_DEVICES, $CUDA_CACHE_PATH\"\nexit 2\n"
	testonly.Must(t, os.WriteFile(filepath.Join(bundle, "kernels.test"), []byte(failing), 0o777))
	cmd := exec.Command(filepath.Join(bundle, "gpu.sh"), append([]string{results}, strings.Fields("--count 1 --few-words 200")...)...)
	cmd.Env = append(os.Environ(), "WORDS=300", "DIM=8", "ATOMS=24", "EPOCHS=2", "LENGTHS=5 12", "OVERCOMPLETE_TEST_GPU=",
		"PATH="+bundle+":"+os.Getenv("PATH"), "PYTHON=false", "CUDA_VISIBLE_DEVICES=3,1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v, want exit status 1\n%s", err, out)
	}
	if want := "panic: device 3, " + results + "/jit-cache\n"; !strings.Contains(string(out), want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
	stages := testonly.ReadFile(t, filepath.Join(results, "stages.txt"))
	var got []string
	for line := range strings.Lines(string(stages)) {
		got = append(got, strings.Join(strings.Fields(line)[:2], " "))
	}
	want := "device passed, smoke failed, train passed, encode passed, torch skipped, command passed, ncu passed, sanitize skipped, " +
		"tests failed, scale passed, tune passed"
	if strings.Join(got, ", ") != want {
		t.Errorf("stages are %v, want %s\n%s", got, want, out)
	}
	measured, err := os.ReadFile(filepath.Join(results, "bench-train.txt"))
	if lines := metrics(t, string(measured), "GPUTraining/"); err != nil || len(lines) != 6 {
		t.Errorf("error %v\n%s", err, measured)
	}
	commands, err := os.ReadFile(filepath.Join(results, "bench-command.txt"))
	if lines := metrics(t, string(commands), "GPUCommand/"); err != nil || len(lines) != 3 || !(lines[0]["ns/op"] > 0) {
		t.Errorf("error %v\n%s", err, commands)
	}

	// The parts in the instructions include all stages. Each part ends in less than 9 minutes, even if each of its
	// stages must be killed.
	instructions := testonly.ReadFile(t, filepath.Join("results", "README.md"))
	kill := regexp.MustCompile(`timeout --kill-after=(\d+) `).FindStringSubmatch(string(script))
	left := map[string]int{} // seconds of the stages that no part includes
	for _, m := range regexp.MustCompile(`(?m)^stage (\w+) (\d+) `).FindAllStringSubmatch(string(script), -1) {
		for _, number := range []string{m[2], kill[1]} {
			n, _ := strconv.Atoi(number)
			left[m[1]] += n
		}
	}
	for _, part := range regexp.MustCompile(`STAGES="(.*)" gpu-bundle/gpu.sh`).FindAllStringSubmatch(string(instructions), -1) {
		seconds := 0
		if part[1] == "first" {
			part = regexp.MustCompile(`(?m)^first="(.*)"`).FindStringSubmatch(string(script))
		}
		for _, stage := range strings.Fields(part[1]) {
			seconds += left[stage]
			delete(left, stage)
		}
		if seconds == 0 || seconds >= 540 {
			t.Errorf("%s may take %d s", part[1], seconds)
		}
	}
	if len(left) > 0 {
		t.Errorf("no part has %v", left)
	}
}
