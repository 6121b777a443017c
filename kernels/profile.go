//go:build gpu

package kernels

import (
	"cmp"
	"math"
	"slices"

	"gorgonia.org/cu"
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

// Peaks are what a device can do, measured.
type Peaks struct {
	CopyBytes float64 // a second, read and written, of a copy in its own memory
	TF32Flops float64 // a second, of mma.sync on registers alone
}

// Measure measures a GPU that does nothing else, in a context of its own. It
// takes part of a second and up to 2 GiB.
func Measure(device int) (Peaks, error) {
	g, err := Device{Index: device}.open("peak")
	if err != nil {
		return Peaks{}, err
	}
	return g.measure(), g.Close()
}

func (g *gpu) measure() (p Peaks) {
	defer g.enter()()
	bytes := min(1<<30, g.room()/4)
	from, to := alloc[byte](g, int(bytes)), alloc[byte](g, int(bytes))
	p.CopyBytes = 2 * float64(bytes) / g.best(func() {
		g.check("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), bytes, g.compute))
	})

	multiprocessors, err := cu.Device(g.device.Index).Attribute(cu.MultiprocessorCount)
	g.check("cuDeviceGetAttribute", err)
	blocks := max(1, 4*multiprocessors) // each has room for 8 warps a part
	out := alloc[float32](g, blocks*peakThreads)
	// Enough steps that starting the kernel does not count.
	const enough = 0.01
	for steps := int32(16); g.err == nil; steps *= 2 {
		l := peakTF32{out: out, steps: steps}.launch(blocks)
		seconds := g.best(func() { g.queue(l, g.compute) })
		p.TF32Flops = l.flops / seconds
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
		start := g.mark(g.compute)
		f()
		end := g.mark(g.compute)
		g.synchronize(g.compute)
		best = min(best, g.seconds(start, end))
	}
	return best
}
