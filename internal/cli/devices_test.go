package cli

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/kernels"
)

func TestPrintDevices(t *testing.T) {
	t.Parallel()
	old := kernels.GPU{Index: 1, Name: "Tesla T4", Major: 7, Minor: 5, Total: 15 << 30, Driver: "12.4"}
	for _, tt := range []struct {
		name   string
		gpus   []kernels.GPU
		err    error
		memory uint64
		want   string
	}{
		{"GPUs", []kernels.GPU{
			{Index: 0, Name: "NVIDIA H200", Major: 9, Minor: 0, Total: 141 << 30, Driver: "12.4", UUID: "GPU-8932f937-d72c"}, old,
		}, nil, 5 << 28, "CPU: 3 processors, 1.2 GiB memory, avx2 kernels: it has them\n" +
			"GPU 0: NVIDIA H200, compute capability 9.0, 141.0 GiB memory, driver for CUDA 12.4, GPU-8932f937-d72c\n" +
			"GPU 1: Tesla T4, compute capability 7.5, 15.0 GiB memory, driver for CUDA 12.4\n" +
			old.Usable().Error() + "\n"},
		{"none", nil, errors.New("GPU unavailable: none is there"), 0, "CPU: 3 processors, avx2 kernels: it has them\nGPU unavailable: none is there\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := findDevices(tt.gpus, tt.err)
			if err != nil {
				t.Fatal(err)
			}
			d.CPU.Processors, d.CPU.Memory, d.CPU.Kernels, d.CPU.Why = 3, tt.memory, "avx2", "it has them"
			var b strings.Builder
			if d.print(&b); b.String() != tt.want {
				t.Errorf("%v\n%swant\n%s", err, &b, tt.want)
			}
		})
	}
	if reason := old.Usable().Error(); !strings.Contains(reason, "7.5") || !strings.Contains(reason, "8.0") {
		t.Errorf("a GPU that is too old: %s", reason)
	}
}

// devices lists the CPU and all GPUs, or the reason why there are none.
func TestDevices(t *testing.T) {
	t.Parallel()
	gpus, err := kernels.GPUs()
	if (len(gpus) > 0) != (err == nil) || err != nil && !errors.Is(err, kernels.ErrUnavailable) {
		t.Fatalf("%d GPUs, error %v", len(gpus), err)
	}
	dir, _ := clitest.Sample(t)
	stdout, stderr := dir.MustRun(t, "devices")
	if lines := strings.Count(stdout, "\n"); stderr != "" || !strings.HasPrefix(stdout, "CPU: ") || lines < 2 {
		t.Errorf("%q, standard error %q", stdout, stderr)
	}
	if err != nil && !strings.Contains(stdout, err.Error()) {
		t.Errorf("%q does not say %q", stdout, err)
	}

	with := func(kernels, line string) (code int, stdout, stderr string) {
		cmd := dir.Command(strings.Fields(line)...)
		cmd.Env = append(cmd.Env, "OVERCOMPLETE_CPU="+kernels)
		return clitest.Output(t, cmd)
	}
	if _, stdout, _ := with("generic", "devices"); !strings.Contains(stdout, "generic kernels: OVERCOMPLETE_CPU asks for it\n") {
		t.Error(stdout)
	}
	for _, line := range []string{"devices", "paper train in.txt -o model --device cpu --quiet"} {
		if code, stdout, stderr := with("mmx", line); code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, `overcomplete: cpu: no such kernels: OVERCOMPLETE_CPU is "mmx"`) {
			t.Errorf("%s: exit code %d, %q, standard error %q", line, code, stdout, stderr)
		}
	}

	stdout, stderr = dir.MustRun(t, "devices --json")
	var listed struct {
		CPU         struct{ Processors int }
		GPUs        []struct{ Name string }
		Unavailable string `json:"gpus_unavailable"`
	}
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil || stderr != "" {
		t.Fatalf("%v: %s, standard error %q", err, stdout, stderr)
	}
	if listed.CPU.Processors != runtime.GOMAXPROCS(0) || listed.GPUs == nil || len(listed.GPUs) != len(gpus) {
		t.Errorf("%s", stdout)
	}
	if (listed.Unavailable == "") != (err == nil) {
		t.Errorf("unavailable for %q, want %v", listed.Unavailable, err)
	}
}

// devices --check succeeds for the CPU. A difference beyond its limit is an error that asks for a report.
func TestCheckDevice(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	stdout, _ := dir.MustRun(t, "devices --check --device cpu --workers 1 --json")
	var listed struct{ Check deviceCheck }
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil {
		t.Fatal(err)
	}
	c := &listed.Check
	if c.Device != "CPU" || c.Failed != "" || len(c.Differences) != 4 || len(c.Rates) != 3 || !(c.FLOPS > 1e8) {
		t.Errorf("%+v", c)
	}
	for _, r := range c.Rates {
		if share := r.FLOPs / r.Seconds / c.FLOPS; !(share > 0 && share < 1) {
			t.Errorf("%s runs at %v of the peak", r.Step, share)
		}
	}

	c.Device, c.Differences[1].Value = "GPU 0, NVIDIA H200", math.NaN()
	var b strings.Builder
	if err := c.judge(nil); err != nil {
		t.Fatal(err)
	}
	const want = "GPU 0, NVIDIA H200 failed the check: encode: loss in float64 differs by NaN (limit 0.0001); don't use it, and report " +
		"the output of this command with --json, and of overcomplete version and nvidia-smi -q"
	if err := c.err(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if c.print(&b); !strings.Contains(b.String(), "NaN  1e-04  FAILED\n") {
		t.Error(b.String())
	}
	for _, line := range []string{"devices --workers 1", "devices --device cpu --json"} {
		if code, _, stderr := dir.Run(t, line); code != exitUsage || !strings.Contains(stderr, "has no effect without --check") {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}

// The floor of a kernel is the larger of its flops over the peak of their precision and its bytes over the bandwidth.
func TestKernelFloor(t *testing.T) {
	c := deviceCheck{FLOPS: 100, Bandwidth: 10}
	rate := map[string]float64{"tf32": 100, "fp32": 25}
	for range 2 {
		c.add(kernels.Timing{Kernel: "decode_tf32", Seconds: 8, FLOPs: 300, Bytes: 10}, rate)
	}
	c.add(kernels.Timing{Kernel: "decode_fp32", Seconds: 10, FLOPs: 100, Bytes: 50}, rate)
	c.add(kernels.Timing{Kernel: "gather", Seconds: 4, Bytes: 30}, rate)
	want := []kernelTime{{"decode_tf32", 2, 16, 600, 20, 6}, {"decode_fp32", 1, 10, 100, 50, 5}, {"gather", 1, 4, 0, 30, 3}}
	if !slices.Equal(c.Kernels, want) {
		t.Errorf("%+v, want %+v", c.Kernels, want)
	}
}
