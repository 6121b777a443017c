//go:build gpu

package kernels

import "gorgonia.org/cu"

// timedLaunch is a launch between two events of its stream.
type timedLaunch struct {
	step, kernel string
	start, end   cu.Event
}

// mark records an event in a stream.
func (g *gpu) mark(s cu.Stream) cu.Event {
	e := g.event(cu.DefaultEvent)
	g.record(e, s)
	return e
}

// reportTimes calls Device.Timed for the launches since the last report, and waits for them.
func (g *gpu) reportTimes() {
	for _, l := range g.timed {
		g.finished(l.end)
		if g.err != nil {
			break
		}
		milliseconds, err := l.start.Elapsed(l.end)
		g.check("cuEventElapsedTime", err)
		g.check("cuEventDestroy", cu.DestroyEvent(&l.start))
		g.check("cuEventDestroy", cu.DestroyEvent(&l.end))
		g.onLaunch(l.step, l.kernel, milliseconds/1000)
	}
	g.timed = nil
}
