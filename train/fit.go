package train

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A trainer runs the epochs of a training on a device.
type trainer struct {
	backend.Learned
	epoch   func(ctx context.Context, epoch, batch int) (backend.Sums, error) // as in [backend.Trainer]
	restore func(saved *model.Model) error                                    // sets the state before the first epoch
	codes   func() (*vectors.CSR, error)                                      // nil if the trainer stores no codes
}

// fit is the state of a training.
type fit struct {
	trainer  trainer
	options  Options
	x        []float32 // training rows, V×L
	variance float64   // mean squared norm of the rows of x, for the recipe "paper"
	tau      float64   // τ, 0 for the recipe "best"
	advice   string    // advice in the error of a diverging training
	ids      []string
	hashes   func() checkpoint.State // hashes of x and ids, computed once

	model *model.Model // Info.Training.Epochs lists complete epochs; Codes is nil if the trainer stores none
	batch int          // number of rows of the next dictionary update

	caller context.Context // the caller's context; see epochContext
	saved  time.Time       // time of the last checkpoint, or of the start
}

// run trains with the trainer that start returns, and completes the model.
func (f *fit) run(ctx context.Context, start func() (trainer, error)) (m *model.Model, err error) {
	if f.trainer, err = start(); err != nil {
		return nil, err
	}
	// The codes of past epochs are garbage as large as the live heap. Collecting them is cheap, because a
	// training holds a few large arrays without pointers.
	percent := debug.SetGCPercent(20)
	defer func() {
		debug.SetGCPercent(percent)
		if closed := f.trainer.Close(); closed != nil && err == nil { // the model is complete
			f.options.note("warning: %v", closed)
		}
		f.trainer = trainer{}
		runtime.GC() // encoding needs the memory
	}()
	t := &f.model.Info.Training
	t.Device = f.trainer.Device()
	if err := f.resume(); err != nil {
		return nil, err
	}
	if f.options.Begin != nil {
		f.options.Begin(f.model.Info)
	}
	ctx, stop := f.epochContext(ctx)
	defer stop()
	for !f.finished() {
		if err := f.epoch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.fetch(); err != nil {
		return nil, err
	}
	return f.model, nil
}

func (f *fit) finished() bool {
	t := &f.model.Info.Training
	return len(t.Epochs) >= t.Recipe.Base().Epochs || trainingOf(t.Recipe).converged(t.Epochs)
}

// fetch copies dictionary and codes from the device into the model.
func (f *fit) fetch() (err error) {
	if f.model.Codes != nil {
		codes, err := f.trainer.codes()
		if err != nil {
			return err
		}
		f.model.Codes.CSR, f.model.Info.Encoding = *codes, f.model.Info.Training.PaperEncoding()
		f.model.Info.Encoding.SetKind(f.model.Codes.Texts)
		f.model.Info.Encoding.Variance = f.variance
	}
	f.model.Dictionary.Atoms, err = f.trainer.Dictionary()
	return err
}

// epoch runs one epoch, computes its metrics, and saves a checkpoint if one is due.
func (f *fit) epoch(ctx context.Context) error {
	start := time.Now()
	training := &f.model.Info.Training
	t := len(training.Epochs) + 1
	sums, err := f.trainer.epoch(ctx, t, f.batch)
	if err != nil {
		return err
	}
	e, err := f.measure(t, sums)
	if err != nil {
		return err
	}
	e.Seconds = time.Since(start).Seconds()
	training.Epochs = append(training.Epochs, e)
	// If the line search often shortens updates, the batches are too large.
	if 10*sums.Shortened > sums.Steps {
		f.batch = max(1, f.batch/2)
	}
	if f.options.Epoch != nil {
		f.options.Epoch(e)
	}
	return f.saveIfDue()
}

func (f *fit) measure(t int, s backend.Sums) (model.Epoch, error) {
	atomSquares, err := f.trainer.AtomSquares()
	if err != nil {
		return model.Epoch{}, err
	}
	squares, norms := 0.0, 0.0
	for _, square := range atomSquares {
		squares += square
		norms += math.Sqrt(square)
	}
	training := &f.model.Info.Training
	words, atoms := float64(training.Input.Rows), training.Recipe.Base().Atoms
	e := model.Epoch{
		Epoch:       t,
		RunningLoss: s.RunningLoss / words,
		Loss:        s.Loss / words,
		Error:       s.Error / words,
		Sparsity:    1 - float64(s.Nonzeros)/(words*float64(atoms)),
		L1:          s.L1 / words,
		AtomNorm:    norms / float64(atoms),
		UnusedAtoms: atoms - s.UsedAtoms(),
		LineSearch:  float64(s.Shortened) / float64(s.Steps),
	}
	e.Objective = e.Loss + training.Lambda*e.L1 + f.tau*squares/words
	for _, metric := range []struct {
		name  string
		value float64
	}{{"running loss", e.RunningLoss}, {"loss", e.Loss}, {"error", e.Error}, {"mean |a|", e.L1}, {"atom norm", e.AtomNorm}} {
		if math.IsNaN(metric.value) || math.IsInf(metric.value, 0) {
			return e, fmt.Errorf("%w: %s is %v after epoch %d; %s", ErrDiverged, metric.name, metric.value, t, f.advice)
		}
	}
	return e, nil
}

// maxDeadShare is the largest share of dead atoms without a warning.
const maxDeadShare = 0.2

func (o *Options) warnDead(dead, atoms int, advice string) {
	if share := float64(dead) / float64(atoms); share > maxDeadShare {
		o.note("warning: %.0f %% of the atoms are dead: %s", 100*share, advice)
	}
}

// newFit returns the state of a new training by the recipe r. The caller has set r's defaults.
func newFit(x *vectors.Dense, r model.Recipe, o Options) *fit {
	f := &fit{x: x.Data, ids: x.IDs, options: o, advice: "scale the vectors", model: &model.Model{
		Info:       model.Info{Format: model.FormatVersion, Training: model.Training{Input: inputOf(x, o.Source), Recipe: r}},
		Dictionary: model.Dictionary{Dim: x.Dim},
	}}
	f.hashes = sync.OnceValue(f.hashRows)
	return f
}

// inputOf describes the rows x of a source. The source may be nil.
func inputOf(x *vectors.Dense, source *vectors.Source) model.Input {
	var in model.Input
	if source != nil {
		in = model.NewInput(source)
	}
	in.Rows, in.Dim, in.Texts = x.Len(), x.Dim, x.Texts != nil
	return in
}
