// Package paper repeats the experiments of the paper (Faruqui et al., ACL 2015, §3 and §4) with one
// file of dense vectors. It chooses λ and K, scores the sparse vectors beside the dense ones and
// simpler transformations, varies their length, and measures interpretability.
//
//	e := &paper.Experiments{Dir: "results", X: x, Recipe: recipe, Lambdas: paper.Lambdas, …}
//	err := e.Report(ctx) // writes results/report.md
package paper

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/modeldir"
	"overcomplete/lab/eval"
	"overcomplete/lab/intrusion"
	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Experiments describes the paper's experiments with one file of vectors.
type Experiments struct {
	Dir    string // folder for models, tables and figures; created if missing
	X      *vectors.Dense
	Source *vectors.Source
	Test   *intrusion.Test // a test of the words of X; nil omits word intrusion

	Recipe  model.Paper // settings of all models; the experiments set method, λ and K
	Lambdas []float64   // λ of the grid
	Factors []int       // K/L of the grid
	Lengths []int       // K/L of the length sweep
	Groups  []string    // comma-separated words of the heat map; words without a vector are left out

	Tasks []eval.Task // see [ReadTasks]

	Device train.Device
	Log    func(format string, args ...any)
	// Show returns options that display the progress of a training, and a function that ends the display.
	Show func(r model.Recipe) (o train.Options, done func())
}

// The paper's grid (§3, "Hyperparameter Tuning"), the lengths of its figure (§3, "Effect of Vector
// Length") and words of its heat map (§4.2).
var (
	Lambdas = []float64{0.1, 0.5, 1}
	Factors = []int{10, 20}
	Lengths = []int{1, 2, 3, 5, 10, 15, 20}
	Groups  = []string{"fish,horse,dog", "chicago,seattle,boston"}
)

const evalSeed = 1

// ReadTasks reads the paper's tasks from a directory, as [eval.ReadTask] does. The first task is WS-353, by which λ and
// K are chosen; its data must exist. If other tasks have no data, their names are returned in missing.
func ReadTasks(dir string) (tasks []eval.Task, missing []string, err error) {
	for _, name := range eval.TaskNames() {
		task, err := eval.ReadTask(name, dir)
		if errors.Is(err, fs.ErrNotExist) && name != eval.TuningTask {
			missing = append(missing, name)
		} else if err != nil {
			return nil, nil, err
		} else {
			tasks = append(tasks, task)
		}
	}
	return tasks, missing, nil
}

// model opens the model of a method with λ and K. If its directory doesn't exist, model trains it and saves it, so that an
// interrupted experiment continues with the models that are saved. It returns an error if the saved model was trained with
// another recipe or other vectors.
func (e *Experiments) model(ctx context.Context, method model.Method, lambda float64, atoms int) (*model.Model, error) {
	h := e.Recipe
	h.Method, h.Lambda, h.Atoms = method, lambda, atoms
	r := train.WithDefaults(h, e.X)
	name := fmt.Sprintf("%s-k%d-lambda%s", method, atoms, number(lambda))
	dir := filepath.Join(e.Dir, name)
	e.Log("model %s", name)
	o, done := e.Show(r)
	defer done()
	o.Source = e.Source
	m, err := model.Open(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := modeldir.NewTarget(dir, false).Check(); err != nil {
			return nil, err
		}
		m, err := train.Fit(ctx, e.X, r, e.Device, o)
		if err != nil && !errors.Is(err, train.ErrZeroCodes) { // all-zero codes are a valid result
			return nil, err
		}
		return m, m.Save(dir, false)
	case err == nil && m.Codes == nil:
		err = errors.New("model without codes; remove it to train it again")
	case err == nil && (m.Info.Training.Recipe != r || m.Info.Training.Input.SHA256 != e.Source.SHA256 || !slices.Equal(m.Codes.IDs, e.X.IDs)):
		err = errors.New("model of other vectors or settings; remove it or choose another directory")
	case err == nil && !isTrained(m):
		err = errors.New("model.json or codes.npz has changed since the training; remove the model to train it again")
	}
	if err != nil {
		return nil, &atomicfile.OutputError{Path: dir, Err: err}
	}
	return m, nil
}

// isTrained reports whether the metrics of a saved model agree with its last epoch and with the sparsity of its codes.
func isTrained(m *model.Model) bool {
	e, want, values := m.Info.Encoding, m.Info.Training.PaperEncoding(), float64(m.Codes.Rows*m.Codes.Cols)
	want.Variance = e.Variance // the variance of the vectors
	return reflect.DeepEqual(e, want) && math.Round((1-e.Sparsity)*values) == float64(m.Codes.Nonzeros())
}

func (e *Experiments) score(ctx context.Context, r *eval.Representation, tasks []eval.Task) (eval.Row, error) {
	e.Log("evaluating %s", r.Name)
	results, err := eval.Run(ctx, r, tasks, evalSeed, nil)
	return eval.Row{Name: r.Name, Results: results}, err
}

// representation returns the codes of a model to evaluate: binary codes for method B.
func representation(name string, m *model.Model) *eval.Representation {
	if m.Info.Training.Recipe.Base().Method == model.Nonnegative {
		return eval.NewSparse(name, m.Codes.Binary())
	}
	return eval.NewSparse(name, m.Codes)
}

// writeTSV writes rows of cells, the header first, to path.
func writeTSV(path string, rows [][]string) error {
	return atomicfile.WriteFile(context.Background(), path, true, func(w io.Writer) error {
		out := csv.NewWriter(w)
		out.Comma = '\t'
		return out.WriteAll(rows)
	})
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
