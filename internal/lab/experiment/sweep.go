package experiment

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"overcomplete/internal/lab/eval"
	"overcomplete/model"
)

// Lengths are K/L of the paper's figure (§3, "Effect of Vector Length").
var Lengths = []int{1, 2, 3, 5, 10, 15, 20}

// Swept is the scores of X, and then of vectors of each length.
type Swept struct {
	eval.Table
	factors []int // K/L
}

// Sweep measures X, and then the vectors of points, whose K is each a multiple of L. Where the
// recipe paper wants a share of zeros, it looks for the λ of each.
func (e *Experiment) Sweep(ctx context.Context, points []model.Recipe, tasks []eval.Task) (*Swept, error) {
	if !slices.ContainsFunc(points, searches) { // or else nobody knows how many there will be
		e.expect(append([]model.Recipe{nil}, points...)...)
	}
	s := &Swept{Table: eval.Table{Tasks: eval.Names(tasks), Options: e.Setting.Protocol}}
	x, err := e.Dense(ctx, tasks)
	if err != nil {
		return nil, err
	}
	s.Rows = append(s.Rows, x.Row("X", s.Tasks))
	for _, h := range points {
		r, _, err := e.reach(ctx, h, tasks)
		if err != nil {
			return nil, err
		}
		k := h.Base().Atoms
		s.factors = append(s.factors, k/e.X.Dim)
		s.Rows = append(s.Rows, r.Row(fmt.Sprintf("%d·L = %d (%.1f %% zeros)", k/e.X.Dim, k, 100*r.Metrics.Sparsity), s.Tasks))
	}
	return s, nil
}

// multiples returns a recipe with K of each multiple of a length.
func multiples(r model.Recipe, dim int, factors []int) (points []model.Recipe) {
	c := r.Base()
	for _, factor := range factors {
		c.Atoms = factor * dim
		points = append(points, r.With(c))
	}
	return points
}

// Panel shows the averages against K/L.
func (s *Swept) Panel() Panel {
	title := "average of " + strconv.Itoa(len(s.Averaged())) + " tasks"
	if len(s.Averaged()) == 1 {
		title = s.Averaged()[0]
	}
	p := Panel{Title: title, XLabel: "K/L",
		YMark: Mark{Name: "X", At: s.Average(s.Rows[0]).Score}}
	for i, factor := range s.factors {
		a := s.Average(s.Rows[i+1])
		p.XTicks = append(p.XTicks, float64(factor))
		p.add(Look{}, FigurePoint{X: float64(factor), Y: a.Score, Deviation: a.Stderr})
	}
	return p
}
