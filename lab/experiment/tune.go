package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"overcomplete/internal/table"
	"overcomplete/lab/eval"
	"overcomplete/model"
	"overcomplete/train"
)

// The paper's grid (§3, "Hyperparameter Tuning").
var (
	Lambdas = []float64{0.1, 0.5, 1}
	Factors = []int{10, 20} // K/L
)

// Lengths are K/L of the paper's figure (§3, "Effect of Vector Length").
var Lengths = []int{1, 2, 3, 5, 10, 15, 20}

// MinSparsity is the share of zeros that the paper's choice has at least.
const MinSparsity = 0.9

// Tuned is what a search for hyperparameters found.
type Tuned struct {
	Best    *Record   `json:"best"`
	Model   string    `json:"model"`   // its directory
	Reached bool      `json:"reached"` // best has as many zeros as it should
	Tried   []*Record `json:"tried"`
	Dense   *Record   `json:"dense"` // X's

	wanted float64 // share of zeros, 0 for the paper's grid
}

// Dense measures the vectors that the experiment is about.
func (e *Experiment) Dense(ctx context.Context, tasks []eval.Task) (*Record, error) {
	return e.Untrained(ctx, "X", tasks, func() *eval.Representation { return eval.NewDense("X", e.X) })
}

// Tune chooses λ and K by the paper's grid. Method and Epochs are h's.
func (e *Experiment) Tune(ctx context.Context, h model.Paper, tuning eval.Task) (t *Tuned, err error) {
	e.expect(gridLengths(e.X.Dim)...)
	t = new(Tuned)
	if t.Dense, err = e.Dense(ctx, []eval.Task{tuning}); err != nil {
		return nil, err
	}
	for _, factor := range Factors {
		for _, lambda := range Lambdas {
			h.Atoms, h.Lambda = factor*e.X.Dim, lambda
			r, err := e.Point(ctx, h, []eval.Task{tuning})
			if err != nil {
				return nil, err
			}
			t.Tried = append(t.Tried, r)
		}
	}
	t.Best, t.Reached = Best(t.Tried, tuning.Name())
	t.Model = e.ModelDir(t.Best.Paper())
	return t, nil
}

// gridLengths returns the lengths of X and of the points of the paper's grid.
func gridLengths(dim int) []int {
	lengths := []int{dim}
	for _, factor := range Factors {
		lengths = append(lengths, slices.Repeat([]int{factor * dim}, len(Lambdas))...)
	}
	return lengths
}

// Best returns the point that the paper chooses: of those with [MinSparsity] the
// one with the highest score in a task, the first of equals. If there is none, it
// is the sparsest one, and enough is false.
func Best(tried []*Record, task string) (best *Record, enough bool) {
	score := func(r *Record) float64 {
		if s := r.Result(task).Score; !math.IsNaN(s) {
			return s
		}
		return math.Inf(-1)
	}
	for _, r := range tried {
		sparse := sparsity(r) >= MinSparsity
		switch {
		case best == nil, sparse && !enough,
			sparse && score(r) > score(best),
			!enough && sparsity(r) > sparsity(best):
			best, enough = r, sparse
		}
	}
	return best, enough
}

// Sparsity looks for the λ with which a share of codes between 0 and 1 is zero.
// Method, Epochs and Atoms are h's; points of the same that are there already are
// made use of. It has tried these and those that it trained, by λ; the best is the nearest,
// which is to be within [train.SparsityTolerance].
func (e *Experiment) Sparsity(ctx context.Context, h model.Paper, wanted float64, tasks []eval.Task) (t *Tuned, err error) {
	t = &Tuned{wanted: wanted}
	if t.Dense, err = e.Dense(ctx, tasks); err != nil {
		return nil, err
	}
	before, err := e.points(h)
	if err != nil {
		return nil, err
	}
	var known []train.Tried
	trained := 0
	for _, r := range before {
		known = append(known, r.tried())
		if r.Wanted == wanted {
			trained++
		}
	}
	err = train.SearchLambda(known, train.MostTrainings-trained, wanted, func(lambda float64) (float64, error) {
		trained++
		fmt.Fprintf(e.Log, "looking for λ, with training %d of at most %d\n", trained, train.MostTrainings)
		h.Lambda = lambda
		r, err := e.point(ctx, h, tasks, wanted)
		if err != nil {
			return 0, err
		}
		return r.Metrics.Sparsity, nil
	})
	if err != nil {
		return nil, err
	}
	if t.Tried, err = e.points(h); err != nil {
		return nil, err
	}
	for i, r := range t.Tried { // what was trained before may lack scores
		if t.Tried[i], err = e.point(ctx, r.Paper(), tasks, 0); err != nil {
			return nil, err
		}
	}
	t.Best = slices.MinFunc(t.Tried, func(a, b *Record) int { return cmp.Compare(a.tried().Off(wanted), b.tried().Off(wanted)) })
	t.Reached, t.Model = t.Best.tried().Off(wanted) <= train.SparsityTolerance, e.ModelDir(t.Best.Paper())
	return t, nil
}

func (r *Record) tried() train.Tried {
	return train.Tried{Lambda: r.Paper().Lambda, Sparsity: r.Metrics.Sparsity}
}

// sparsity is the share of zeros that a point of the grid is chosen by, 0 for codes that are
// all zero, which say nothing.
func sparsity(r *Record) float64 {
	if r.Metrics.Sparsity == 1 {
		return 0
	}
	return r.Metrics.Sparsity
}

// Table has a row for X and for each point that was tried.
func (t *Tuned) Table() table.Table {
	measured := len(t.Dense.Scores) > 0 // else there is nothing to say of WS-353, nor of X
	rows := table.Table{{"vectors", "λ", "K", "zeros %", "error"}}
	if measured {
		rows[0] = append(rows[0], eval.TuningTask)
		rows = append(rows, []string{"X", "", "", "", "", t.Dense.Result(eval.TuningTask).String()})
	}
	for _, r := range t.Tried {
		h := r.Paper()
		row := []string{string(h.Method), number(h.Lambda), strconv.Itoa(h.Atoms), fmt.Sprintf("%.2f", 100*r.Metrics.Sparsity), fmt.Sprintf("%.4f", r.Metrics.Error)}
		if measured {
			row = append(row, r.Result(eval.TuningTask).String())
		}
		rows = append(rows, row)
	}
	for i := range rows {
		mark := ""
		if first := len(rows) - len(t.Tried); i >= first && t.Tried[i-first] == t.Best {
			mark = "chosen"
		}
		rows[i] = append(rows[i], mark)
	}
	return rows
}

// Verdict says in a line what was chosen and why.
func (t *Tuned) Verdict() string {
	h := t.Best.Paper()
	what := fmt.Sprintf("λ = %s, K = %d: %.2f %% zeros", number(h.Lambda), h.Atoms, 100*t.Best.Metrics.Sparsity)
	switch {
	case t.Reached && t.wanted > 0:
		return what
	case t.Reached:
		return fmt.Sprintf("%s, the highest %s of those with %v %% or more", what, eval.TuningTask, 100*MinSparsity)
	case t.wanted > 0:
		return fmt.Sprintf("%s, which is the nearest, but not within %v of the %v %% that were wanted", what, 100*train.SparsityTolerance, 100*t.wanted)
	}
	return fmt.Sprintf("no point has %v %% zeros; the sparsest is %s", 100*MinSparsity, what)
}

// Panel shows WS-353 against the share of zeros for each K, or the share of zeros
// against λ.
func (t *Tuned) Panel() Panel {
	p := Panel{Title: eval.TuningTask + ", ρ × 100", XLabel: "zeros, %",
		XMark: Mark{Name: fmt.Sprintf("%v %%", 100*MinSparsity), At: 100 * MinSparsity},
		YMark: Mark{Name: "X", At: t.Dense.Result(eval.TuningTask).Score}}
	if t.wanted > 0 {
		p = Panel{Title: "zeros, %", XLabel: "λ", LogX: true, YMark: Mark{Name: "wanted", At: 100 * t.wanted}}
	}
	for _, r := range t.Tried {
		h, s, zeros := r.Paper(), r.Result(eval.TuningTask), 100*r.Metrics.Sparsity
		point := FigurePoint{X: zeros, Y: s.Score, Deviation: s.Stderr, Label: "λ = " + number(h.Lambda)}
		if t.wanted > 0 {
			point = FigurePoint{X: h.Lambda, Y: zeros, Label: number(h.Lambda)}
		}
		p.add(Look{Name: fmt.Sprintf("K = %d", h.Atoms)}, point)
	}
	return p
}
