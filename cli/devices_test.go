package cli

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"overcomplete/kernels"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

func TestPrintDevices(t *testing.T) {
	t.Parallel()
	old := kernels.GPU{Index: 1, Name: "Tesla T4", Major: 7, Minor: 5, Total: 15 << 30, Driver: "12.4"}
	for _, tt := range []struct {
		gpus   []kernels.GPU
		err    error
		memory uint64
		want   string
	}{
		{[]kernels.GPU{
			{Index: 0, Name: "NVIDIA H200", Major: 9, Minor: 0, Total: 141 << 30, Driver: "12.4", UUID: "GPU-8932f937-d72c"}, old,
		}, nil, 5 << 28, "CPU: 3 processors, 1.2 GiB memory, avx2 kernels: it has them\n" +
			"GPU 0: NVIDIA H200, compute capability 9.0, 141.0 GiB memory, driver for CUDA 12.4, GPU-8932f937-d72c\n" +
			"GPU 1: Tesla T4, compute capability 7.5, 15.0 GiB memory, driver for CUDA 12.4\n" +
			old.Usable().Error() + "\n"},
		{nil, errors.New("GPU unavailable: none is there"), 0, "CPU: 3 processors, avx2 kernels: it has them\nGPU unavailable: none is there\n"},
	} {
		d, err := findDevices(tt.gpus, tt.err)
		testonly.Must(t, err)
		d.CPU.Processors, d.CPU.Memory, d.CPU.Kernels, d.CPU.Why = 3, tt.memory, "avx2", "it has them"
		var b strings.Builder
		if d.print(&b); b.String() != tt.want {
			t.Errorf("%d GPUs:\n%swant\n%s", len(tt.gpus), &b, tt.want)
		}
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
	other := "GPU 0: "
	if err != nil {
		other = err.Error()
	}
	checkPrints(t, dir, "devices", "CPU: … "+other, "")

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

	listed := runJSON[devices](t, dir, "devices --json")
	if listed.CPU.Processors != runtime.GOMAXPROCS(0) || listed.GPUs == nil || len(listed.GPUs) != len(gpus) {
		t.Errorf("%+v", listed)
	}
	if (listed.Unavailable == "") != (err == nil) {
		t.Errorf("unavailable for %q, want %v", listed.Unavailable, err)
	}
}
