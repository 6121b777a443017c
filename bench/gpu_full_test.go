//go:build gpu && full && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// All of gpu.sh, small, without PyTorch. The kernels' tests are a program that fails as Go's do when they panic; its
// output is shown, and the rest runs. With END it ends the script instead.
func TestGPUScript(t *testing.T) {
	if !emulated {
		t.Skip("needs the emulated driver")
	}
	bundle, results := newBundle(t), filepath.Join(t.TempDir(), "results")
	script, err := os.ReadFile("gpu.sh")
	if err != nil {
		t.Fatal(err)
	}
	const failing = `#!/bin/sh
echo "panic: device $CUDA_VISIBLE_DEVICES, $CUDA_CACHE_PATH"
[ -n "$END" ] || exit 2
parent() { cut -d' ' -f4 "/proc/$1/stat"; }
kill "$(parent "$(parent $PPID)")" # above the stage's shell and timeout
exec sleep 600
`
	if err := os.WriteFile(filepath.Join(bundle, "kernels.test"), []byte(failing), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bundle, "gpu.sh"), append([]string{results}, strings.Fields(small)...)...)
	cmd.Env = append(bundleEnvironment(bundle), "PYTHON=false", "CUDA_VISIBLE_DEVICES=3,1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v, want exit status 1\n%s", err, out)
	}
	if want := "panic: device 3, " + results + "/jit-cache\n"; !strings.Contains(string(out), want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
	stages, err := os.ReadFile(filepath.Join(results, "stages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(stages)) {
		got = append(got, strings.Join(strings.Fields(line)[:2], " "))
	}
	want := "device passed, smoke failed, sanitize skipped, train passed, encode passed, command passed, ncu passed, " +
		"tests failed, compare passed, scale passed, torch skipped"
	if strings.Join(got, ", ") != want {
		t.Errorf("stages are %v, want %s\n%s", got, want, out)
	}
	measured, err := os.ReadFile(filepath.Join(results, "bench-train.txt"))
	if lines := metrics(t, string(measured), "GPUTraining/"); err != nil || len(lines) != 8 {
		t.Errorf("error %v\n%s", err, measured)
	}
	commands, err := os.ReadFile(filepath.Join(results, "bench-command.txt"))
	if lines := metrics(t, string(commands), "GPUCommand/"); err != nil || len(lines) != 3 || !(lines[0]["ns/op"] > 0) {
		t.Errorf("error %v\n%s", err, commands)
	}

	packed, err := exec.Command("tar", "-tzf", results+".tar.gz").Output()
	if names := string(packed); err != nil || !strings.Contains(names, "./bench-train.txt\n") || !strings.Contains(names, "./bench-scale.txt\n") || strings.Contains(names, "jit-cache") {
		t.Errorf("error %v, packed are\n%s", err, names)
	}

	// If the script is ended, it leaves the results so far.
	ended := exec.Command(cmd.Path, results)
	ended.Env = append(cmd.Env, "STAGES=tests", "END=1", "ARCHIVE="+results+".ended.tar.gz")
	out, _ = ended.CombinedOutput()
	log, err := exec.Command("tar", "-xzOf", results+".ended.tar.gz", "./tests.log").Output()
	if ended.ProcessState.ExitCode() != 143 || err != nil || !strings.HasPrefix(string(log), "panic: device 3") {
		t.Errorf("%v, error %v, log %s\n%s", ended.ProcessState, err, log, out)
	}

	// A stage that runs again leaves the others' results as they are.
	again := exec.Command(cmd.Path, cmd.Args[1:]...)
	again.Env = append(cmd.Env, "STAGES=scale device")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	stages, err = os.ReadFile(filepath.Join(results, "stages.txt"))
	if lines := strings.Split(strings.TrimSpace(string(stages)), "\n"); err != nil || len(lines) != len(got)-1 || !strings.HasPrefix(lines[len(lines)-2], "device ") {
		t.Errorf("error %v\n%s", err, stages)
	}
	if again, err := os.ReadFile(filepath.Join(results, "bench-train.txt")); err != nil || string(again) != string(measured) {
		t.Errorf("error %v, %s", err, again)
	}
	again = exec.Command(cmd.Path, results)
	again.Env = append(cmd.Env, "STAGES=scales")
	if out, err := again.CombinedOutput(); again.ProcessState.ExitCode() != 2 || string(out) != "gpu.sh: STAGES has scales, which is none\n" {
		t.Errorf("%v, %s", err, out)
	}

	// The parts that the instructions name have all stages, and end in less than 9 minutes, even
	// if each stage must be killed.
	instructions, err := os.ReadFile(filepath.Join("results", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	kill := regexp.MustCompile(`timeout --kill-after=(\d+) `).FindStringSubmatch(string(script))
	left := map[string]int{} // seconds, of stages that no part has
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
