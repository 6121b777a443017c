//go:build gpu && linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// newBundle makes a folder with all that gpu.sh needs but the kernels' tests, and stand-ins for NVIDIA's tools. A time
// limit is twenty times as long: a GPU is faster.
func newBundle(t *testing.T) string {
	t.Helper()
	bundle := t.TempDir()
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"timeout": "#!/usr/bin/env bash\nshift\nlimit=$1\nshift\nexec '" + timeout + "' $((20*limit)) \"$@\"\n",
		"bench":   "#!/bin/sh\n" + asProgram + "=1 exec '" + os.Args[0] + "' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(bundle, name), []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, source := range map[string]string{
		"gpu.sh": "gpu.sh", "compute-sanitizer": "testdata/tools.sh", "ncu": "testdata/tools.sh", "nvidia-smi": "testdata/tools.sh",
	} {
		text, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(bundle, name), text, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	goRun(t, "build", "-tags", "gpu", "-o", bundle, "overcomplete")
	return bundle
}

func goRun(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func bundleEnvironment(bundle string) []string {
	return append(os.Environ(), "WORDS=300", "DIM=8", "ATOMS=24", "EPOCHS=2", "OVERCOMPLETE_TEST_GPU=",
		"PATH="+bundle+":"+os.Getenv("PATH"))
}

// The stages with NVIDIA's tools pass, are skipped where a tool is refused, and fail on errors. The sanitizer runs every
// kernel in each of its tools, and ncu profiles each kernel that gpu.sh names.
func TestGPUTools(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	bundle := newBundle(t)
	goRun(t, "test", "-c", "-tags", "gpu", "-o", filepath.Join(bundle, "kernels.test"), "overcomplete/kernels")
	for tools, want := range map[string]string{
		"":        "device passed, sanitize passed, ncu passed",
		"refused": "device passed, sanitize skipped, ncu skipped",
		"errors":  "sanitize failed",
	} {
		t.Run("tools "+tools, func(t *testing.T) {
			results := filepath.Join(t.TempDir(), "results")
			cmd := exec.Command(filepath.Join(bundle, "gpu.sh"), results)
			cmd.Env = append(bundleEnvironment(bundle), "STAGES="+regexp.MustCompile(` \w+(,|$)`).ReplaceAllString(want, ""), "TOOLS="+tools)
			out, _ := cmd.CombinedOutput()
			stages, err := os.ReadFile(filepath.Join(results, "stages.txt"))
			got := regexp.MustCompile(`(?m)^(\w+) +(\w+).*\n`).ReplaceAllString(string(stages), "$1 $2, ")
			if err != nil || got != want+", " {
				t.Fatalf("error %v, stages are %s want %s\n%s", err, got, want, out)
			}
			log, err := os.ReadFile(filepath.Join(results, "sanitize.log"))
			runs := regexp.MustCompile(`(?m)^--- \w+check$`).Split(string(log), -1)[1:]
			if tools == "refused" {
				return
			}
			if clocks, err := os.ReadFile(filepath.Join(results, "clocks.csv")); err != nil || !strings.HasPrefix(string(clocks), "timestamp, ") {
				t.Errorf("error %v, clocks are %s", err, clocks)
			}
			if err != nil || len(runs) != 4 { // the first one probes
				t.Fatalf("error %v, %d runs, want 4\n%s", err, len(runs), log)
			}
			for _, run := range runs[1:] {
				sanitized(t, run)
			}
		})
	}
}

// sanitized checks that a tool has run every kernel of TestKernels.
func sanitized(t *testing.T, log string) {
	t.Helper()
	source, err := os.ReadFile("../kernels/kernel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	kernels := regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", (products|rows)`).FindAllStringSubmatch(string(source), -1)
	if len(kernels) < 16 {
		t.Fatalf("TestKernels has %d kernels", len(kernels))
	}
	for _, kernel := range kernels {
		if !strings.Contains(log, fmt.Sprintf("--- PASS: TestKernels/%s/", strings.ReplaceAll(kernel[1], " ", "_"))) {
			t.Errorf("%s has not run", kernel[1])
		}
	}
}

// The tests that gpu.sh names exist.
func TestGPUSmoke(t *testing.T) {
	script, err := os.ReadFile("gpu.sh")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	files, _ := filepath.Glob("../kernels/*_test.go")
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			tests = append(tests, m[1])
		}
	}
	patterns := regexp.MustCompile(`'\^(Test\w*)\(?([\w|]*)\)?\$`).FindAllStringSubmatch(string(script), -1)
	if len(patterns) < 3 {
		t.Fatalf("gpu.sh has %d patterns of tests", len(patterns))
	}
	for _, pattern := range patterns {
		for name := range strings.SplitSeq(pattern[2], "|") {
			if !slices.Contains(tests, pattern[1]+name) {
				t.Errorf("there is no %s", pattern[1]+name)
			}
		}
	}
}
