package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// metrics returns the metrics of each line of a benchmark, by unit.
func metrics(t *testing.T, out, name string) (all []map[string]float64) {
	t.Helper()
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark"+name) {
			continue
		}
		values := make(map[string]float64)
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			values[fields[i+1]] = v
		}
		all = append(all, values)
	}
	return all
}

func TestCPU(t *testing.T) {
	var out bytes.Buffer
	testonly.Must(t, run(strings.Fields("cpu --words 150 --dim 8 --atoms 24 --epochs 3 --count 2"), &out))
	machine, training := metrics(t, out.String(), "Machine"), metrics(t, out.String(), "Training/V=150/L=8/K=24")
	encoding := metrics(t, out.String(), "Encoding/L=8/K=24")
	if len(machine) != 2 || len(training) != 2 || len(encoding) != 2 {
		t.Fatal(out.String())
	}
	for i, m := range encoding {
		if r := m["product-GMAC/s"] / machine[i]["byte-core-GMAC/s"] / (m["product-%byte"] / 100); math.Abs(r-1) > 1e-2 || !(m["rows/s"] > 0) {
			t.Errorf("%v", m)
		}
	}
	for i, m := range training {
		if r := m["ns/row/epoch"] * 150 / m["ns/op"]; math.Abs(r-1) > 1e-3 {
			t.Errorf("an epoch is %v times its rows", r)
		}
		if r := m["codes-GFLOP/s"] / machine[i]["FMA-GFLOP/s"] / (m["codes-%FMA"] / 100); math.Abs(r-1) > 1e-2 {
			t.Errorf("the share of FMA is wrong by a factor of %v", r)
		}
		if m["floor-%"] < 100 || !(m["objective"] > 0) {
			t.Errorf("%v", m)
		}
	}
}

func TestMistakesExitWith2(t *testing.T) {
	for _, args := range []string{
		"", "nonsense", "cpu more", "cpu --words", "cpu --words 0", "cpu --atoms 1e3", "cpu --epochs 4294967296", "cpu --nonsense",
		"vectors --dim 0 x.npy", "vectors", "table",
	} {
		var message bytes.Buffer
		err := run(strings.Fields(args), io.Discard)
		if got := status(err, &message); got != 2 || message.Len() == 0 {
			t.Errorf("bench %s: status %d, %v", args, got, err)
		}
	}
	t.Setenv("OVERCOMPLETE_CPU", "sse")
	if got := status(run([]string{"cpu"}, io.Discard), io.Discard); got != 2 {
		t.Errorf("a level that this processor lacks: status %d", got)
	}
}

// The tests that gpu.sh names exist.
func TestGPUSmoke(t *testing.T) {
	script := testonly.ReadFile(t, "gpu.sh")
	var tests []string
	files, _ := filepath.Glob("../kernels/*_test.go")
	for _, file := range files {
		source := testonly.ReadFile(t, file)
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

// before is called before the tests. gpu_full_test.go replaces it.
var before = func() {}

// TestMain runs the commands of [hostBench.spawn].
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "host" {
		main()
	}
	before()
	os.Exit(m.Run())
}

// Both commands read, encode and write every format, and the times of the stages add up to the wall-clock time.
func TestHost(t *testing.T) {
	var out bytes.Buffer
	testonly.Must(t, run(strings.Fields("host --rows 2500 --dim 8 --atoms 24 --nonzeros 3 --count 1 --dir "+t.TempDir()), &out))
	for _, format := range formatNames() {
		if floors := metrics(t, out.String(), "HostFloor/format="+format); len(floors) != 1 || !(floors[0]["read-sha256-ms"] > 0) {
			t.Errorf("floors of %s: %v", format, floors)
		}
		for command, stages := range map[string][]string{
			"train": {"read", "choose", "learn", "encode", "commit"}, "encode": {"learn", "encode", "commit"},
		} {
			runs := metrics(t, out.String(), "Host/command="+command+"/format="+format)
			if len(runs) == 0 {
				t.Errorf("no run of %s on %s in %s", command, format, out.String())
			}
			for _, r := range runs {
				sum := 0.0
				for _, stage := range stages {
					sum += r[stage+"-ms"]
				}
				if !(sum > 0 && sum < r["ns/op"]/1e6) || !(r["cpu-ms"] > 0) {
					t.Errorf("%s of %s: %v", command, format, r)
				}
			}
		}
	}
}

// gpu.sh names kernels that exist, and at least one size of each kernel for the sanitizer.
func TestGPUScriptNames(t *testing.T) {
	script := testonly.ReadFile(t, "gpu.sh")
	source := testonly.ReadFile(t, "../kernels/kernel_test.go")
	files, err := filepath.Glob("../kernels/ptx/*.ptx")
	testonly.Must(t, err)
	var entries []string
	for _, file := range files {
		ptx := testonly.ReadFile(t, file)
		for _, m := range regexp.MustCompile(`\.entry (\w+)`).FindAllSubmatch(ptx, -1) {
			entries = append(entries, string(m[1]))
		}
	}
	counted := regexp.MustCompile(`(?m)^  count (?:\w+|"[a-z ]+") \d+ "([^"]+)"`).FindAllSubmatch(script, -1)
	for _, m := range counted {
		for name := range strings.FieldsSeq(string(m[1])) {
			if !slices.ContainsFunc(entries, regexp.MustCompile("^"+name+"$").MatchString) {
				t.Errorf("ncu: no kernel %s", name)
			}
		}
	}
	sizes := strings.Split(string(regexp.MustCompile(`\./\(([0-9_|]+)\)'`).FindSubmatch(script)[1]), "|")
	tests := regexp.MustCompile(`(?m)^\t\t\{"([^"]+)", (?:products|rows).*?, (shapes|codes|\[\]\[3\]int.*)\},$`).FindAllStringSubmatch(string(source), -1)
	shared := regexp.MustCompile(`(?s)(shapes|codes) :?= (\[\]\[3\]int\{.*?\}\n?\})`).FindAllStringSubmatch(string(source), -1)
	if len(counted) != 3 || len(tests) < 15 {
		t.Fatalf("%d lines of kernels to count and %d tests", len(counted), len(tests))
	}
	for _, test := range tests {
		for _, s := range shared {
			if s[1] == test[2] {
				test[2] = s[2]
			}
		}
		if !slices.ContainsFunc(sizes, func(size string) bool {
			numbers := strings.Split(size, "_")
			for strings.HasSuffix(size, "_0") { // a table names leading sizes only
				size, numbers = strings.TrimSuffix(size, "_0"), numbers[:len(numbers)-1]
			}
			return strings.Contains(test[2], "{"+strings.Join(numbers, ", ")+"}")
		}) {
			t.Errorf("sanitize: no size of %s among %v", test[1], test[2])
		}
	}
}
