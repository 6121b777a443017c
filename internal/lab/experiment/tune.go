package experiment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"overcomplete/internal/lab/eval"
	"overcomplete/internal/table"
	"overcomplete/model"
	"overcomplete/train"
)

// The paper's grid (§3, "Hyperparameter Tuning").
var (
	Lambdas = []float64{0.1, 0.5, 1}
	Factors = []int{10, 20} // K/L
)

// Sparsities are what the grid has in place of λ with the recipe best, which takes a share of
// zeros as it is.
var Sparsities = []float64{0.9, 0.95, 0.97}

// MinSparsity is the share of zeros that the paper's choice has at least.
const MinSparsity = 0.9

// Tuned is what a search for hyperparameters found.
type Tuned struct {
	Best    *Record   `json:"best"`
	Model   string    `json:"model"`   // its directory
	Reached bool      `json:"reached"` // best has as many zeros as it should
	Tried   []*Record `json:"tried"`
	Dense   *Record   `json:"dense"` // X's

	wanted float64 // share of zeros, 0 for the grid
}

// Dense measures the vectors that the experiment is about.
func (e *Experiment) Dense(ctx context.Context, tasks []eval.Task) (*Record, error) {
	return e.Untrained(ctx, "X", tasks, func() *eval.Representation { return eval.NewDense("X", e.X) })
}

// Tune chooses K, and λ or the share of zeros, by the paper's grid. All else is h's.
func (e *Experiment) Tune(ctx context.Context, h model.Recipe, tuning eval.Task) (t *Tuned, err error) {
	points := grid(h, e.X.Dim)
	e.expect(append([]model.Recipe{nil}, points...)...)
	t = new(Tuned)
	if t.Dense, err = e.Dense(ctx, []eval.Task{tuning}); err != nil {
		return nil, err
	}
	for _, h := range points {
		r, err := e.Point(ctx, h, []eval.Task{tuning})
		if err != nil {
			return nil, err
		}
		t.Tried = append(t.Tried, r)
	}
	t.Best, t.Reached = Best(t.Tried, tuning.Name())
	t.Model = e.ModelDir(t.Best.Training.Recipe)
	return t, nil
}

// grid returns the points of the paper's grid.
func grid(h model.Recipe, dim int) (points []model.Recipe) {
	for _, h := range multiples(h, dim, Factors) {
		var nonzeros []int
		for _, s := range Sparsities {
			nonzeros = append(nonzeros, model.Nonzeros(s, h.Base().Atoms))
		}
		points = append(points, varied(h, Lambdas, nonzeros)...)
	}
	return points
}

// varied returns a recipe with each λ, or if it is best with each number of nonzeros.
func varied(r model.Recipe, lambdas []float64, nonzeros []int) (points []model.Recipe) {
	switch h := r.(type) {
	case model.Best:
		for _, h.Nonzeros = range nonzeros {
			points = append(points, h)
		}
	case model.Paper:
		for _, h.Lambda = range lambdas {
			points = append(points, h)
		}
	}
	return points
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

// Sparsity trains for the share of zeros that h has, as [Experiment.Point] does with the recipe
// best. With the recipe paper it looks for the λ: points that differ by λ alone and are there
// already are made use of. It has tried these and those that it trained, by λ; the best is the
// nearest, which is to be within [train.SparsityTolerance].
func (e *Experiment) Sparsity(ctx context.Context, h model.Recipe, tasks []eval.Task) (t *Tuned, err error) {
	t = &Tuned{wanted: wanted(h)}
	if t.Dense, err = e.Dense(ctx, tasks); err != nil {
		return nil, err
	}
	if t.Best, t.Tried, err = e.reach(ctx, h, tasks); err != nil {
		return nil, err
	}
	t.Reached, t.Model = t.Best.tried().Off(t.wanted) <= train.SparsityTolerance, e.ModelDir(t.Best.Training.Recipe)
	return t, nil
}

// wanted returns the share of zeros that a recipe asks for, 0 if it asks for none.
func wanted(r model.Recipe) float64 {
	c := r.Base()
	if c.Nonzeros == 0 {
		return 0
	}
	return 1 - float64(c.Nonzeros)/float64(c.Atoms)
}

// searches reports whether a recipe has a share of zeros that it takes a search for λ to reach.
func searches(r model.Recipe) bool {
	h, is := r.(model.Paper)
	return is && h.Nonzeros > 0
}

// reach measures a point and, where it takes a search for λ, all that are
// tried. The best is the nearest.
func (e *Experiment) reach(ctx context.Context, r model.Recipe, tasks []eval.Task) (best *Record, all []*Record, err error) {
	if !searches(r) {
		best, err = e.Point(ctx, r, tasks)
		return best, []*Record{best}, err
	}
	h := train.Settled(r, e.X).(model.Paper)
	wanted := wanted(h)
	h.Nonzeros = 0
	before, err := e.points(h)
	if err != nil {
		return nil, nil, err
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
		r, err := e.trained(ctx, h, tasks, wanted)
		if err != nil {
			return 0, err
		}
		return r.Metrics.Sparsity, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if all, err = e.points(h); err != nil {
		return nil, nil, err
	}
	for i, r := range all { // what was trained before may lack scores
		if all[i], err = e.Point(ctx, r.Training.Recipe, tasks); err != nil {
			return nil, nil, err
		}
	}
	return slices.MinFunc(all, func(a, b *Record) int { return cmp.Compare(a.tried().Off(wanted), b.tried().Off(wanted)) }), all, nil
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
	name, _ := asked(t.Best.Training.Recipe)
	rows := table.Table{{"vectors", name, "K", "zeros %", "error"}}
	if measured {
		rows[0] = append(rows[0], eval.TuningTask)
		rows = append(rows, []string{"X", "", "", "", "", t.Dense.Result(eval.TuningTask).String()})
	}
	for _, r := range t.Tried {
		c := r.Training.Base()
		_, value := asked(r.Training.Recipe)
		row := []string{string(c.Method), number(value), strconv.Itoa(c.Atoms), fmt.Sprintf("%.2f", 100*r.Metrics.Sparsity), fmt.Sprintf("%.4f", r.Metrics.Error)}
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

// asked returns what decides how many nonzeros there are.
func asked(r model.Recipe) (name string, value float64) {
	if h, is := r.(model.Best); is {
		return "nonzeros", float64(h.Nonzeros)
	}
	return "λ", r.(model.Paper).Lambda
}

// Verdict says in a line what was chosen and why.
func (t *Tuned) Verdict() string {
	name, value := asked(t.Best.Training.Recipe)
	what := fmt.Sprintf("%s = %s, K = %d: %.2f %% zeros", name, number(value), t.Best.Training.Base().Atoms, 100*t.Best.Metrics.Sparsity)
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
	name, _ := asked(t.Best.Training.Recipe)
	p := Panel{Title: eval.TuningTask + ", ρ × 100", XLabel: "zeros, %",
		XMark: Mark{Name: fmt.Sprintf("%v %%", 100*MinSparsity), At: 100 * MinSparsity},
		YMark: Mark{Name: "X", At: t.Dense.Result(eval.TuningTask).Score}}
	if t.wanted > 0 {
		p = Panel{Title: "zeros, %", XLabel: name, LogX: true, YMark: Mark{Name: "wanted", At: 100 * t.wanted}}
	}
	for _, r := range t.Tried {
		_, value := asked(r.Training.Recipe)
		s, zeros := r.Result(eval.TuningTask), 100*r.Metrics.Sparsity
		point := FigurePoint{X: zeros, Y: s.Score, Deviation: s.Stderr, Label: name + " = " + number(value)}
		if t.wanted > 0 {
			point = FigurePoint{X: value, Y: zeros, Label: number(value)}
		}
		p.add(Look{Name: fmt.Sprintf("K = %d", r.Training.Base().Atoms)}, point)
	}
	return p
}
