package paper

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/printing"
	"overcomplete/lab/eval"
	"overcomplete/lab/figure"
	"overcomplete/model"
	"overcomplete/vectors"
)

// minSparsity is the smallest sparsity of a setting that the paper chooses.
const minSparsity = 0.9

// A Setting is a point of the grid with measurements of its model.
type Setting struct {
	Lambda   float64     `json:"lambda"`
	Atoms    int         `json:"atoms"`
	Sparsity float64     `json:"sparsity"`
	Error    float64     `json:"error"` // mean ‖x − x̂‖²
	Score    eval.Result `json:"score"` // score of the codes in WS-353
}

// A Tuning is the result of [Experiments.Tune].
type Tuning struct {
	Dense    eval.Result `json:"dense"` // score of the dense vectors in WS-353
	Settings []Setting   `json:"settings"`
	Chosen   int         `json:"chosen"` // index in Settings
	Sparse   bool        `json:"sparse"` // whether the chosen setting has a sparsity of 90 % or more
}

// Tune trains method A with each λ and K of the grid and chooses the setting with the highest
// score in WS-353 among those with a sparsity of 90 % or more. If there is none, it chooses the
// sparsest. It writes tune.tsv and a figure.
func (e *Experiments) Tune(ctx context.Context) (*Tuning, error) {
	tasks := e.Tasks[:1]
	x, err := e.score(ctx, eval.NewDense("X", e.X), tasks)
	if err != nil {
		return nil, err
	}
	t := &Tuning{Dense: x.Results[0]}
	if note := t.Dense.Note; note != "" {
		return nil, &vectors.InputError{File: e.Source.Name, Err: fmt.Errorf("no score in %s to choose λ and K by: %s", tasks[0].Name(), note)}
	}
	if err := os.MkdirAll(e.Dir, 0o777); err != nil {
		return nil, &atomicfile.OutputError{Path: e.Dir, Err: err}
	}
	for _, factor := range e.Factors {
		for _, lambda := range e.Lambdas {
			m, err := e.model(ctx, model.Signed, lambda, factor*e.X.Dim)
			if err != nil {
				return nil, err
			}
			row, err := e.score(ctx, representation("A", m), tasks)
			if err != nil {
				return nil, err
			}
			t.Settings = append(t.Settings, Setting{lambda, factor * e.X.Dim, m.Info.Encoding.Sparsity, m.Info.Encoding.Error, row.Results[0]})
		}
	}
	t.choose()
	rows := [][]string{{"lambda", "atoms", "sparsity", "error", "score", "stderr"}}
	for _, s := range t.Settings {
		rows = append(rows, []string{number(s.Lambda), strconv.Itoa(s.Atoms), number(s.Sparsity), number(s.Error), number(float64(s.Score.Score)), number(float64(s.Score.Stderr))})
	}
	if err := writeTSV(filepath.Join(e.Dir, "tune.tsv"), rows); err != nil {
		return nil, err
	}
	return t, t.panel().Save(filepath.Join(e.Dir, "tune.svg"))
}

// choose sets Chosen and Sparse. A setting whose codes are all zero is never chosen over another.
func (t *Tuning) choose() {
	t.Chosen, t.Sparse = 0, false
	sparsity := func(s Setting) float64 { return math.Mod(s.Sparsity, 1) }
	for i, s := range t.Settings {
		best := t.Settings[t.Chosen]
		sparse := sparsity(s) >= minSparsity
		if sparse && (!t.Sparse || s.Score.Score > best.Score.Score) || !t.Sparse && sparsity(s) > sparsity(best) {
			t.Chosen, t.Sparse = i, sparse
		}
	}
}

// Table returns the settings as a table with a row for X and one for each setting.
func (t *Tuning) Table() printing.Table {
	rows := printing.Table{{"λ", "K", "sparsity %", "error ↓", eval.TuningTask + " ↑", ""}, {"X", "", "", "", t.Dense.String(), ""}}
	for i, s := range t.Settings {
		mark := ""
		if i == t.Chosen {
			mark = "chosen"
		}
		rows = append(rows, []string{number(s.Lambda), strconv.Itoa(s.Atoms), fmt.Sprintf("%.2f", 100*s.Sparsity), fmt.Sprintf("%.4f", s.Error), s.Score.String(), mark})
	}
	return rows
}

// Verdict returns a sentence with the chosen setting and the reason.
func (t *Tuning) Verdict() string {
	s := t.Settings[t.Chosen]
	setting := fmt.Sprintf("λ = %s, K = %d: sparsity %.2f %%", number(s.Lambda), s.Atoms, 100*s.Sparsity)
	if t.Sparse {
		return fmt.Sprintf("%s, the highest %s among settings of %v %% or more", setting, eval.TuningTask, 100*minSparsity)
	}
	return fmt.Sprintf("%s, the sparsest; no setting has %v %%", setting, 100*minSparsity)
}

// panel plots WS-353 over sparsity, with a line for each K.
func (t *Tuning) panel() figure.Panel {
	p := figure.Panel{Title: eval.TuningTask + ", ρ × 100 (dotted: X)", XLabel: "sparsity, %", Level: float64(t.Dense.Score)}
	for i, s := range t.Settings {
		if i == 0 || s.Atoms != t.Settings[i-1].Atoms {
			p.Lines = append(p.Lines, figure.Line{Name: fmt.Sprintf("K = %d", s.Atoms)})
		}
		l := &p.Lines[len(p.Lines)-1]
		l.Points = append(l.Points, figure.Point{X: 100 * s.Sparsity, Y: float64(s.Score.Score), Deviation: float64(s.Score.Stderr), Label: "λ = " + number(s.Lambda)})
	}
	return p
}
