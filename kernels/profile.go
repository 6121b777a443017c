//go:build gpu

package kernels

import (
	"cmp"
	"math"
	"slices"

	"gorgonia.org/cu"

	"overcomplete/kernels/internal/driver"
)

// KernelTime is what the launches of a kernel by one step took together, and the least
// that they had to do, as the head of its source file counts it.
type KernelTime struct {
	Name     string
	Step     string // of a training's program, such as "dictionary 1"; "" for launches by none
	Launches int
	Seconds  float64
	Bytes    float64 // to and from the device's memory, each matrix once
	Flops    float64 // of the tensor cores, with TF32 factors

	// What its threads take.
	Registers int
	Local     int     // bytes of memory, where registers don't do
	Occupancy float64 // share of a multiprocessor's threads that run at once, if there are enough
}

// timedLaunch is a launch between two marks of its stream.
type timedLaunch struct {
	launch
	step       string
	start, end cu.Event
}

// mark makes an event that remembers when the stream came to it.
func (g *gpu) mark(s cu.Stream) cu.Event {
	e := g.event(cu.DefaultEvent)
	g.record(e, s)
	return e
}

// seconds is the time between two marks that the device has come to. It
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
// that could follow each other at once, or as one graph, and costs a few
// microseconds each: passes take longer than without.
func (g *gpu) StartProfile() { g.profiling = true }

// Profile ends what StartProfile began. It returns the kernels that were launched,
// those that took the most time first.
func (g *gpu) Profile() ([]KernelTime, error) {
	defer g.enter()()
	for _, s := range []cu.Stream{g.compute, g.load} { // those that run kernels
		g.synchronize(s)
	}
	var times []KernelTime
	for _, l := range g.profile {
		i := slices.IndexFunc(times, func(t KernelTime) bool { return t.Name == l.kernel && t.Step == l.step })
		if i < 0 {
			i = len(times)
			times = append(times, g.resources(l))
		}
		times[i].Launches++
		times[i].Seconds += g.seconds(l.start, l.end)
		times[i].Bytes += l.bytes
		times[i].Flops += l.flops
	}
	g.profiling, g.profile = false, nil
	slices.SortStableFunc(times, func(a, b KernelTime) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return times, g.err
}

// resources is what the threads of a launch take.
func (g *gpu) resources(l timedLaunch) KernelTime {
	t := KernelTime{Name: l.kernel, Step: l.step}
	if g.err != nil {
		return t
	}
	f := g.function(l.kernel)
	for attribute, value := range map[cu.FunctionAttribute]*int{cu.NumRegs: &t.Registers, cu.LocalSizeBytes: &t.Local} {
		var err error
		*value, err = f.Attribute(attribute)
		g.check("cuFuncGetAttribute of "+l.kernel, err)
	}
	blocks, err := f.MaxActiveBlocksPerMultiProcessor(l.threads, int64(l.shared))
	g.check("cuOccupancyMaxActiveBlocksPerMultiprocessor of "+l.kernel, err)
	most, err := cu.Device(g.device.Index).Attribute(cu.MaxThreadsPerMultiprocessor)
	g.check("cuDeviceGetAttribute", err)
	t.Occupancy = float64(blocks*l.threads) / float64(most)
	return t
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

// Peaks are what a device is and can do: the first are what it says, the others measured.
type Peaks struct {
	Multiprocessors int
	Clock           float64 // a second, at most
	L2Size          float64 // bytes

	CopyBytes   float64 // a second, read and written, of a copy in its own memory
	L2Bytes     float64 // a second, read by all multiprocessors
	TF32Flops   float64 // a second, of mma.sync on registers alone
	FP16Flops   float64 // the same of factors that are halves, with sums that are floats
	Launch      float64 // seconds from one kernel's begin to the next one's, of kernels that do nothing
	GraphLaunch float64 // the same in a graph
}

// Measure measures a GPU that does nothing else, in a context of its own. It
// takes a few seconds at most and up to 2 GiB.
func Measure(device int) (Peaks, error) {
	g, err := Device{Index: device}.open("peak")
	if err != nil {
		return Peaks{}, err
	}
	return g.measure(), g.Close()
}

func (g *gpu) measure() (p Peaks) {
	defer g.enter()()
	attribute := func(a cu.DeviceAttribute) int {
		n, err := cu.Device(g.device.Index).Attribute(a)
		g.check("cuDeviceGetAttribute", err)
		return n
	}
	p.Multiprocessors = attribute(cu.MultiprocessorCount)
	p.Clock, p.L2Size = 1000*float64(attribute(cu.ClockRate)), float64(attribute(cu.L2CacheSize))
	bytes := min(1<<30, g.room()/4)
	from, to := alloc[byte](g, int(bytes)), alloc[byte](g, int(bytes))
	p.CopyBytes = 2 * float64(bytes) / g.best(func() {
		g.check("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), bytes, g.compute))
	})

	blocks := max(1, 4*p.Multiprocessors) // each has room for 8 warps a part
	out := alloc[float32](g, blocks*peakThreads)
	// rate launches with steps enough that starting the kernel does not count.
	rate := func(of func(steps int32) launch) (l launch, seconds float64) {
		const enough = 0.01
		for steps := int32(16); seconds < enough && g.err == nil; steps *= 2 {
			l = of(steps)
			seconds = g.best(func() { g.queue(l, g.compute) })
		}
		return l, seconds
	}
	for precision, flops := range map[Precision]*float64{TF32: &p.TF32Flops, FP16: &p.FP16Flops} {
		l, seconds := rate(func(steps int32) launch { return peak{out: out, steps: steps}.launch(blocks, precision) })
		*flops = l.flops / seconds
	}
	tiles := min(16<<20, int(bytes)) / (4 * peakTile) // less than any L2 to speak of
	l, seconds := rate(func(steps int32) launch {
		return peakL2{out: out, data: pointer[float32](from), tiles: int32(tiles), steps: steps}.launch(min(blocks, tiles))
	})
	p.L2Bytes = l.bytes / seconds

	const launches = 1000
	nothing := peak{out: out}.launch(1, TF32)
	nothing.threads = warp
	all := func() {
		for range launches {
			g.queue(nothing, g.compute)
		}
	}
	p.Launch = g.best(all) / launches
	if g.err == nil {
		graph, err := driver.Capture(g.compute, all)
		g.check("capture of a graph", err)
		if g.err == nil {
			p.GraphLaunch = g.best(func() { g.check("cuGraphLaunch", graph.Launch(g.compute)) }) / launches
			g.check("cuGraphExecDestroy", graph.Destroy())
		}
	}
	return p
}

// best is the shortest time that the device takes for what f starts.
func (g *gpu) best(f func()) float64 {
	const runs = 5
	best := math.Inf(1)
	for range runs {
		start := g.mark(g.compute)
		f()
		end := g.mark(g.compute)
		g.synchronize(g.compute)
		best = min(best, g.seconds(start, end))
	}
	return best
}
