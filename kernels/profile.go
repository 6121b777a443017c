//go:build gpu

package kernels

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gorgonia.org/cu"
)

// KernelTime is what the launches of a kernel took together, and the least
// that they had to do, as the head of its source file counts it.
type KernelTime struct {
	Name     string
	Launches int
	Seconds  float64
	Bytes    float64 // to and from the device's memory, each matrix once
	Flops    float64 // of the tensor cores, with TF32 factors
}

// profile times launches.
type profile struct {
	on       bool
	launches []timedLaunch
}

// timedLaunch is a launch between two events of its stream.
type timedLaunch struct {
	kernel     string
	args       []any
	start, end cu.Event
}

// timed starts to time a launch, if it is to be timed; what it returns, called
// after the launch, ends that.
func (g *gpu) timed(kernel string, s cu.Stream, args []any) (end func()) {
	if !g.profile.on {
		return func() {}
	}
	l := timedLaunch{kernel, args, g.timer(), g.timer()}
	g.record(l.start, s)
	return func() {
		g.record(l.end, s)
		g.profile.launches = append(g.profile.launches, l)
	}
}

// timer is an event that remembers when the stream came to it.
func (g *gpu) timer() (e cu.Event) {
	if g.err == nil {
		var err error
		e, err = cu.MakeEvent(cu.DefaultEvent)
		g.check("cuEventCreate", err)
	}
	return e
}

// seconds is the time between two timers that the device has come to. It
// releases them.
func (g *gpu) seconds(start, end cu.Event) float64 {
	if g.err != nil {
		return 0
	}
	milliseconds, err := start.Elapsed(end)
	g.check("cuEventElapsedTime", err)
	g.check("cuEventDestroy", cu.DestroyEvent(&start))
	g.check("cuEventDestroy", cu.DestroyEvent(&end))
	return milliseconds / 1000
}

// StartProfile has every kernel timed from now on. That keeps kernels apart
// that could follow each other at once, and costs a few microseconds each:
// passes take longer than without.
func (b *Backend) StartProfile() { b.gpu.profile.on = true }

// Profile ends what [Backend.StartProfile] began. It returns the kernels that
// were launched, those that took the most time first.
func (b *Backend) Profile() ([]KernelTime, error) { return b.gpu.times(b.work) }

// StartProfile is [Backend.StartProfile] for encoding.
func (e *Encoder) StartProfile() { e.gpu.profile.on = true }

// Profile is [Backend.Profile] for encoding.
func (e *Encoder) Profile() ([]KernelTime, error) { return e.gpu.times(work) }

// times ends a profile. Work is a launch's floor.
func (g *gpu) times(work func(timedLaunch) (bytes, flops float64)) ([]KernelTime, error) {
	g.enter()
	defer g.leave()
	for _, s := range []cu.Stream{g.compute, g.load} { // those that run kernels
		g.synchronize(s)
	}
	var times []KernelTime
	for _, l := range g.profile.launches {
		i := slices.IndexFunc(times, func(t KernelTime) bool { return t.Name == l.kernel })
		if i < 0 {
			i = len(times)
			times = append(times, KernelTime{Name: l.kernel})
		}
		bytes, flops := work(l)
		times[i].Launches++
		times[i].Seconds += g.seconds(l.start, l.end)
		times[i].Bytes += bytes
		times[i].Flops += flops
	}
	g.profile = profile{}
	slices.SortStableFunc(times, func(a, b KernelTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return times, g.err
}

// work is a launch's floor, also for the row machine, whose steps differ.
func (b *Backend) work(l timedLaunch) (bytes, flops float64) {
	size := func(i int) float64 { return float64(l.args[i].(int)) }
	switch l.kernel {
	case "body":
		s := b.stepOf(func(m stepMemory) bool { return m.body == l.args[0] })
		return 4 * size(8) * size(9) * float64(s.traffic()), 0
	case "totals":
		s := b.stepOf(func(m stepMemory) bool { return m.totals == l.args[0] })
		return 8 * size(5) * float64(s.rowTotals()), 0
	}
	return work(l)
}

// work is a launch's floor. Of what depends on the numbers, nonzeros and rows
// that need no scaling, it counts none.
func work(l timedLaunch) (bytes, flops float64) {
	size := func(i int) float64 { return float64(l.args[i].(int)) }
	name, precision, _ := strings.Cut(l.kernel, "_")
	products := 1.0 // a product of numbers
	if precision == string(FP32) {
		products = 3
	}
	switch {
	case name == "decode":
		words, atoms, dim := size(3), size(4), size(6)
		return 4 * (words*atoms + atoms*dim + words*dim), products * 2 * words * atoms * dim
	case name == "accumulate":
		words, atoms, dim := size(4), size(5), size(7)
		return 4 * (words*atoms + words*dim + 2*atoms*dim), products * 4 * words * atoms * dim
	case name == "correlate":
		words, atoms, dim := size(5), size(6), size(8)
		return 20*words*atoms + 4*(words+atoms)*dim, products * 2 * words * atoms * dim
	case l.kernel == "finish_codes":
		return 4 * size(2) * size(3), 0
	case l.kernel == "pack_codes":
		return 4 * size(2) * size(3), 0
	case l.kernel == "random_codes":
		return 4 * size(1) * size(2), 0
	case l.kernel == "fista_residuals":
		return 4 * size(7) * (4*size(9) + size(8)), 0
	case name == "fista":
		words, atoms, dim := size(6), size(7), size(9)
		return 12*words*atoms + 4*(words+atoms)*dim, products * 2 * words * atoms * dim
	case l.kernel == "keep_largest":
		return 12 * size(2) * size(3), 0
	}
	return 0, 0
}

// stepOf finds a step by its memory on the device.
func (b *Backend) stepOf(is func(stepMemory) bool) *step {
	for _, p := range []*program{b.dictionaryStep, b.codeStep} {
		if i := slices.IndexFunc(p.steps, is); i >= 0 {
			return p.executable.steps[i]
		}
	}
	return &step{}
}

// traffic is how many matrices the body reads that it has not written, and how
// many it writes.
func (s *step) traffic() (matrices int) {
	here := make(map[int]bool) // what a row's warp has at hand
	touch := func(v int32, write bool) {
		m := s.vectors[v].matrix
		if m >= 0 && (write || !here[m]) {
			matrices++
			here[m] = true
		}
	}
	for _, in := range s.body {
		switch {
		case in.op <= opDivVV:
			touch(in.a, false)
			touch(in.b, false)
		case in.op <= opRowSum:
			touch(in.a, false)
		}
		if in.op < opRowSum {
			touch(in.dst, true)
		}
	}
	return matrices
}

// rowTotals is how many numbers of each row are summed.
func (s *step) rowTotals() (n int) {
	for _, in := range s.totals {
		if in.op == opTotal {
			n++
		}
	}
	return n
}

// Peaks are what a device can do, measured.
type Peaks struct {
	CopyBytes float64 // a second, read and written, of a copy in its own memory
	TF32Flops float64 // a second, of mma.sync on registers alone
}

const (
	peakThreads = 256
	peakBlocks  = 4 // a multiprocessor, which has room for 8 warps a part
	peakFlops   = 8 * 2 * 16 * 8 * 8
)

// Measure measures a GPU that does nothing else, in a context of its own. It
// takes part of a second and up to 2 GiB.
func Measure(device int) (Peaks, error) {
	g, err := openGPU(device)
	if err != nil {
		return Peaks{}, err
	}
	p := g.measure()
	return p, g.close()
}

func (g *gpu) measure() (p Peaks) {
	g.enter()
	defer g.leave()
	free, _, err := cu.MemInfo()
	g.check("cuMemGetInfo", err)
	bytes := min(1<<30, free/4)
	from, to := g.alloc(bytes), g.alloc(bytes)
	p.CopyBytes = 2 * float64(bytes) / g.best(func() {
		g.check("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(to, from, bytes, g.compute))
	})

	multiprocessors, err := cu.Device(g.device.Index).Attribute(cu.MultiprocessorCount)
	g.check("cuDeviceGetAttribute", err)
	blocks := max(1, peakBlocks*multiprocessors)
	out := g.alloc(4 * int64(blocks) * peakThreads)
	// Enough steps that starting the kernel does not count.
	const enough = 0.01
	for steps := 16; g.err == nil; steps *= 2 {
		seconds := g.best(func() {
			g.launch("peak_tf32", grid{blocks, 1, peakThreads, 0}, g.compute, out, steps)
		})
		p.TF32Flops = peakFlops * float64(steps) * float64(blocks) * peakThreads / 32 / seconds
		if seconds > enough {
			break
		}
	}
	return p
}

// best is the shortest time that the device takes for what f starts.
func (g *gpu) best(f func()) float64 {
	const runs = 5
	best := math.Inf(1)
	for range runs {
		start, end := g.timer(), g.timer()
		g.record(start, g.compute)
		f()
		g.record(end, g.compute)
		g.synchronize(g.compute)
		best = min(best, g.seconds(start, end))
	}
	return best
}
