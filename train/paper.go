package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/vectors"
)

// paperTraining trains by the recipe "paper".
type paperTraining model.Paper

func (h paperTraining) withDefaults(x *vectors.Dense, _ int) model.Recipe {
	return model.Paper(h.fillDefaults(x))
}

func (h paperTraining) fillDefaults(x *vectors.Dense) paperTraining {
	h.Atoms = cmp.Or(h.Atoms, 10*x.Dim)
	epochs := 20
	if h.AuthorsStop {
		_, epochs = h.stopRule()
	} else if h.Method == model.Nonnegative {
		epochs = 30
	}
	h.Epochs = cmp.Or(h.Epochs, epochs)
	if h.AuthorsOrder {
		h.DictionarySteps = 0 // one step per row
	}
	return h
}

// The stop rule of the authors' programs, "sparse" and "nonneg": they train for at least 20 epochs. They then stop once
// the mean error is at most 0.05 or changes by at most a tolerance, and at the latest after a maximum number of epochs.
const (
	authorsMinEpochs = 20
	authorsErrorGoal = 0.05
)

// stopRule returns the tolerance and the maximum number of epochs of the authors' stop rule.
func (h paperTraining) stopRule() (tolerance float64, maxEpochs int) {
	if h.Method == model.Nonnegative {
		return 0.001, 75
	}
	return 0.005, 50
}

func (h paperTraining) converged(epochs []model.Epoch) bool {
	t := len(epochs)
	if !h.AuthorsStop || t < authorsMinEpochs {
		return false
	}
	tolerance, _ := h.stopRule()
	running, before := epochs[t-1].RunningLoss, epochs[t-2].RunningLoss
	return running <= authorsErrorGoal || math.Abs(running-before) <= tolerance
}

func (h paperTraining) fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	if o.Like != nil {
		return nil, errors.New("train: the recipe paper can't keep the dimensions of another model: use the recipe best")
	}
	h = h.fillDefaults(x)
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	warnAboutScale(x, o)
	m, err := h.learn(ctx, x, device, o)
	if err != nil {
		return m, err
	}
	if m.Info.Encoding.L1 == 0 {
		return m, ErrZeroCodes
	}
	warnAboutResult(m.Info, o)
	return m, nil
}

func (h paperTraining) learn(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	r := model.Paper(h)
	p := backend.Problem{X: x.Data, Dim: x.Dim, Hyperparameters: r, Rows: o.Progress}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	f := newFit(x, r, o)
	f.tau, f.advice = h.Tau, "lower the rate, or scale the vectors to a mean norm near 3"
	f.model.Info.Training.Lambda, f.model.Codes = h.Lambda, &vectors.Sparse{IDs: x.IDs, Texts: x.Texts}
	if h.Center {
		f.model.Dictionary.Mean = TrainingRows(x, h.Atoms).Mean()
		p.X = make([]float32, len(x.Data))
		f.model.Dictionary.Center(p.X, x.Data)
	}
	f.x, f.batch = p.X, p.Batch()
	f.variance = (&model.Dictionary{Dim: x.Dim}).Squares(p.X) / float64(x.Len())
	if h.FromRows {
		var err error
		chooser := initialiser{x: p.X, mean: &model.Dictionary{Dim: x.Dim}, atoms: h.Atoms, order: model.Frequency, seed: h.Seed}
		if p.Dictionary, _, err = chooser.choose(ctx, o); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, func() (trainer, error) {
		t, err := device.Trainer(p)
		if err != nil {
			return trainer{}, err
		}
		return trainer{t, t.Epoch, func(saved *model.Model) error { return t.Restore(saved.Dictionary.Atoms, &saved.Codes.CSR) }, t.Codes}, nil
	})
}

// The paper's λ and η suit vectors of a mean norm of about 3. After t epochs no value of a code exceeds η√t, and
// the same λ is weaker for longer vectors and stronger for shorter ones.
const minNorm, maxNorm = 1.5, 9

// warnAboutScale warns if the mean norm of x is not between minNorm and maxNorm.
func warnAboutScale(x *vectors.Dense, o Options) {
	var norms float64
	for i := range x.Len() {
		norms += math.Sqrt(float32s.Squares(x.Row(i)))
	}
	if norm := norms / float64(x.Len()); norm < minNorm || norm > maxNorm {
		o.note("warning: the recipe paper expects vectors of a mean norm near 3 (got a mean norm of %.3g): scale them, or use the recipe best, which accepts any", norm)
	}
}

// warnAboutResult warns if many atoms are dead, or if the error rose during training.
func warnAboutResult(i model.Info, o Options) {
	epochs := i.Training.Epochs
	last := epochs[len(epochs)-1]
	lowest := slices.MinFunc(epochs, func(a, b model.Epoch) int { return cmp.Compare(a.Error, b.Error) })
	const rise = 1.25
	o.warnDead(last.UnusedAtoms, i.Training.Recipe.Base().Atoms, "use a smaller λ or fewer atoms, or the recipe best")
	// Sparser codes have a higher error, so a rise together with sparsity gives no warning.
	if last.Error > rise*lowest.Error && last.Sparsity <= lowest.Sparsity {
		o.note("warning: the error has risen from %.4g to %.4g: use fewer epochs, a lower rate or the recipe best", lowest.Error, last.Error)
	}
}
