package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"overcomplete/cpu"
	"overcomplete/internal/parallel"
	"overcomplete/internal/selfcheck"
	"overcomplete/internal/simd"
	"overcomplete/internal/table"
	"overcomplete/kernels"
)

// deviceCheck is the result of devices --check.
type deviceCheck struct {
	Device    string         `json:"device"`
	Precision string         `json:"precision"`
	Size      selfcheck.Size `json:"size"`
	selfcheck.Result
	FLOPS     float64      `json:"peak_flops,omitempty"`     // of matrix products, per second
	Bandwidth float64      `json:"peak_bandwidth,omitempty"` // of device memory, in bytes per second
	Kernels   []kernelTime `json:"kernels,omitempty"`
	Failed    string       `json:"failed,omitempty"`
}

// kernelTime is the time and the work of all launches of a kernel.
type kernelTime struct {
	Kernel   string  `json:"kernel"`
	Launches int     `json:"launches"`
	Seconds  float64 `json:"seconds"`
	FLOPs    float64 `json:"flops,omitempty"`
	Bytes    float64 `json:"bytes,omitempty"`
	Floor    float64 `json:"floor,omitempty"` // seconds at the GPU's peak rates; 0 if unknown
}

// Sizes of a check: on a GPU one block of the default recipe, on a CPU fewer rows.
var (
	gpuCheck = selfcheck.Size{Rows: 4096, Compared: 512, Dim: 300, Atoms: 3000}
	cpuCheck = selfcheck.Size{Rows: 512, Compared: 256, Dim: 300, Atoms: 3000}
)

// runCheck checks the device of --device; by default the GPU if it is usable, otherwise the CPU. A nil size is
// the default size. A fault of the device is no error, but is reported in Failed.
func runCheck(ctx context.Context, f *deviceFlags, size *selfcheck.Size, log io.Writer) (*deviceCheck, error) {
	index, cuda, _ := f.cuda()
	gpu, err := kernels.Find(index)
	if f.device == "cpu" || err != nil && !cuda {
		return checkCPU(ctx, f, cpuCheck)
	}
	if err != nil {
		return nil, usagef("--device %s: %w", f.device, err)
	}
	if size == nil {
		size = &gpuCheck
	}
	c := &deviceCheck{Device: fmt.Sprintf("GPU %d, %s", index, gpu.Name), Precision: f.precision, Size: *size, FLOPS: gpu.FLOPS, Bandwidth: gpu.Bandwidth}
	rate := map[string]float64{"fp16": 2 * gpu.FLOPS, "tf32": gpu.FLOPS, "fp32": gpu.FLOPS / 3}
	c.FLOPS = rate[f.precision]
	device := chosenDevice{f, log}.gpu(index)
	if c.Result, err = selfcheck.Run(ctx, device, cpu.Device{Workers: f.workers}, *size); err == nil {
		device.Timed = func(t kernels.Timing) { c.add(t, rate) }
		_, err = selfcheck.Run(ctx, device, nil, *size)
	}
	slices.SortFunc(c.Kernels, func(a, b kernelTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return c, c.judge(err)
}

// add adds a launch to the kernel's total. rate is the peak of each precision, in flops per second; names of
// kernels with matrix products end with their precision.
func (c *deviceCheck) add(t kernels.Timing, rate map[string]float64) {
	i := slices.IndexFunc(c.Kernels, func(k kernelTime) bool { return k.Kernel == t.Kernel })
	if i < 0 {
		i = len(c.Kernels)
		c.Kernels = append(c.Kernels, kernelTime{Kernel: t.Kernel})
	}
	k := &c.Kernels[i]
	k.Launches++
	k.Seconds += t.Seconds
	k.FLOPs += t.FLOPs
	k.Bytes += t.Bytes
	if c.FLOPS > 0 && c.Bandwidth > 0 {
		products := 0.
		if t.FLOPs > 0 {
			products = t.FLOPs / rate[t.Kernel[strings.LastIndexByte(t.Kernel, '_')+1:]]
		}
		k.Floor += max(products, t.Bytes/c.Bandwidth)
	}
}

// checkCPU checks the CPU, without a reference.
func checkCPU(ctx context.Context, f *deviceFlags, size selfcheck.Size) (*deviceCheck, error) {
	level, _, err := simd.Choose()
	if err != nil {
		return nil, usageError{err}
	}
	c := &deviceCheck{Device: "CPU", Precision: "fp32", Size: size, FLOPS: peakFMA(level, cmp.Or(f.workers, runtime.GOMAXPROCS(0)))}
	c.Result, err = selfcheck.Run(ctx, cpu.Device{Workers: f.workers}, nil, size)
	return c, c.judge(err)
}

// peakFMA measures the peak rate of multiply-adds between registers, in flops per second.
func peakFMA(level *simd.Kernels, workers int) (best float64) {
	const times, tries = 200_000, 10
	for range tries {
		flops, start := make([]float64, workers), time.Now()
		parallel.With(make([]struct{}, workers), workers, func(_ struct{}, i int) { flops[i] = level.FMA(times) })
		best = max(best, float64(workers)*flops[0]/time.Since(start).Seconds())
	}
	return best
}

// judge sets Failed if err is a failure of the device or a difference exceeds its limit. It returns an error
// only if the check was cancelled.
func (c *deviceCheck) judge(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		c.Failed = err.Error()
		return nil
	}
	for _, d := range c.Differences {
		if !d.OK() {
			c.Failed = fmt.Sprintf("%s: %s differs by %.2g (limit %.2g)", d.Step, d.Metric, d.Value, d.Limit)
			return nil
		}
	}
	return nil
}

// err returns the error of a failed check.
func (c *deviceCheck) err() error {
	if c.Failed == "" {
		return nil
	}
	report := "the output of this command with --json, and of overcomplete version"
	if c.Device != "CPU" {
		report += " and nvidia-smi -q"
	}
	return fmt.Errorf("%s failed the check: %s; don't use it, and report %s", c.Device, c.Failed, report)
}

func (c *deviceCheck) print(b *strings.Builder) {
	fmt.Fprintf(b, "\nCheck of %s, %s: %d rows, %d → %d\n", c.Device, c.Precision, c.Size.Rows, c.Size.Dim, c.Size.Atoms)
	differences := table.Table{{"step", "compared", "difference", "limit", ""}}
	for _, d := range c.Differences {
		differences = append(differences, []string{d.Step, d.Metric, fmt.Sprintf("%.1e", d.Value), fmt.Sprintf("%.0e", d.Limit), verdict(d)})
	}
	b.WriteString(differences.Text("llrrl"))
	b.WriteByte('\n')
	steps := table.Table{{"step", "rows", "ms", "rows/s ↑", "GFLOP/s ↑", "% of peak ↑"}}
	for _, r := range c.Rates {
		steps = append(steps, []string{r.Step, fmt.Sprint(r.Rows), fmt.Sprintf("%.2f", 1000*r.Seconds), fmt.Sprintf("%.0f", float64(r.Rows)/r.Seconds),
			fmt.Sprintf("%.0f", 1e-9*r.FLOPs/r.Seconds), percent(r.FLOPs/r.Seconds, c.FLOPS)})
	}
	b.WriteString(steps.Text("lr"))
	if len(c.Kernels) == 0 {
		return
	}
	b.WriteByte('\n')
	kernels := table.Table{{"kernel", "launches", "ms", "floor ms", "% of peak ↑", "GFLOP/s ↑", "GB/s ↑"}}
	for _, k := range c.Kernels {
		kernels = append(kernels, []string{k.Kernel, fmt.Sprint(k.Launches), fmt.Sprintf("%.2f", 1000*k.Seconds), orDash("%.2f", 1000*k.Floor), percent(k.Floor, k.Seconds),
			orDash("%.0f", 1e-9*k.FLOPs/k.Seconds), orDash("%.0f", 1e-9*k.Bytes/k.Seconds)})
	}
	b.WriteString(kernels.Text("lr"))
}

func verdict(d selfcheck.Difference) string {
	if d.OK() {
		return "ok"
	}
	return "FAILED"
}

// percent formats 100·part/whole, or – if either is 0, which means unknown.
func percent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return orDash("%.1f", 100*part/whole)
}

// orDash formats x, or – for 0, which means unknown.
func orDash(format string, x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf(format, x)
}
