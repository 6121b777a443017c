package experiment

import (
	"fmt"
	"time"

	"overcomplete/model"
)

// plan is how far an experiment is, for whoever waits. A point is taken to need time in
// proportion to the length of its vectors.
type plan struct {
	points, at int           // of how many points, which from 1
	ahead      float64       // lengths of the points that are not done
	worked     float64       // lengths of those that something was to be done for
	spent      time.Duration // on these
}

// expect states all points that will be asked for, as far as they are not part of what was stated: nil for
// vectors that are not trained. Lines of the log then tell how many are left.
func (e *Experiment) expect(points ...model.Recipe) {
	if e.plan.points > 0 {
		return
	}
	e.plan = plan{points: len(points)}
	for _, p := range points {
		e.plan.ahead += float64(e.length(p))
	}
}

// length returns that of the vectors of a point.
func (e *Experiment) length(r model.Recipe) int {
	if r == nil {
		return e.X.Dim
	}
	return r.Base().Atoms
}

// next begins a point, and returns what ends it.
func (p *plan) next(length int) (end func()) {
	p.at++
	start := time.Now()
	return func() {
		p.ahead = max(p.ahead-float64(length), 0)
		// What was there already takes no time, and says nothing of what is not.
		if spent := time.Since(start); spent > 100*time.Millisecond {
			p.worked += float64(length)
			p.spent += spent
		}
	}
}

// left says which of the points is at hand, and about how long they all take.
func (p *plan) left() string {
	if p.points == 0 || p.at > p.points {
		return ""
	}
	text := fmt.Sprintf(" (%d of %d", p.at, p.points)
	if p.worked > 0 {
		text += fmt.Sprintf(", about %v left", (time.Duration(float64(p.spent) / p.worked * p.ahead)).Round(time.Second))
	}
	return text + ")"
}
