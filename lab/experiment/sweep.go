package experiment

import (
	"context"
	"fmt"
	"strconv"

	"overcomplete/lab/eval"
	"overcomplete/model"
)

// Swept is the scores of X, and then of vectors of each length.
type Swept struct {
	eval.Table
	factors []int // K/L
}

// Sweep measures X, and then the vectors of each K/L in factors, trained with h but for K.
func (e *Experiment) Sweep(ctx context.Context, h model.Paper, factors []int, tasks []eval.Task) (*Swept, error) {
	e.expect(sweepLengths(e.X.Dim, factors)...)
	s := &Swept{eval.Table{Tasks: eval.Names(tasks), Options: e.Setting.Protocol}, factors}
	x, err := e.Dense(ctx, tasks)
	if err != nil {
		return nil, err
	}
	s.Rows = append(s.Rows, x.Row("X", s.Tasks))
	for _, factor := range factors {
		h.Atoms = factor * e.X.Dim
		r, err := e.Point(ctx, h, tasks)
		if err != nil {
			return nil, err
		}
		s.Rows = append(s.Rows, r.Row(fmt.Sprintf("%d·L = %d (%.1f %% zeros)", factor, h.Atoms, 100*r.Metrics.Sparsity), s.Tasks))
	}
	return s, nil
}

// sweepLengths returns the lengths of X and of what is trained.
func sweepLengths(dim int, factors []int) []int {
	lengths := []int{dim}
	for _, factor := range factors {
		lengths = append(lengths, factor*dim)
	}
	return lengths
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
