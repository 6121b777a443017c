package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

// paper trains by the recipe "paper".
type paper model.Paper

func (h paper) settled(x *vectors.Dense, _ int) model.Recipe { return model.Paper(h.withDefaults(x)) }

func (h paper) withDefaults(x *vectors.Dense) paper {
	h.Atoms = cmp.Or(h.Atoms, 10*x.Dim)
	epochs := 20
	if h.AuthorsStop {
		_, epochs = h.stopRule()
	} else if h.Method == model.Nonnegative {
		epochs = 30
	}
	h.Epochs = cmp.Or(h.Epochs, epochs)
	if h.AuthorsOrder {
		h.DictionarySteps = 0 // one step per word
	}
	return h
}

// The authors' stop rule (their programs sparse and nonneg): at least 20 epochs, then on while the
// mean error is above 0.05 and changes by more than a tolerance, up to a maximum of epochs.
const (
	minAuthorsEpochs = 20
	goodAuthorsError = 0.05
)

// stopRule returns the tolerance and the maximum of epochs of the authors' stop rule.
func (h paper) stopRule() (tolerance float64, most int) {
	if h.Method == model.Nonnegative {
		return 0.001, 75
	}
	return 0.005, 50
}

func (h paper) converged(epochs []model.Epoch) bool {
	t := len(epochs)
	if !h.AuthorsStop || t < minAuthorsEpochs {
		return false
	}
	tolerance, _ := h.stopRule()
	running, before := epochs[t-1].RunningLoss, epochs[t-2].RunningLoss
	return running <= goodAuthorsError || math.Abs(running-before) <= tolerance
}

func (h paper) fit(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	if o.Like != nil {
		return nil, errors.New("train: the recipe paper has no model to be like: use the recipe best")
	}
	h = h.withDefaults(x)
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	checkScale(x, o)
	m, err := h.learn(ctx, x, device, o)
	if err != nil {
		return m, err
	}
	if m.Info.Encoding.L1 == 0 {
		return m, ErrNothingActive
	}
	checkEpochs(m.Info, o)
	return m, nil
}

// learn learns dictionary and codes.
func (h paper) learn(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
	r := model.Paper(h)
	p := backend.Problem{X: x.Data, Dim: x.Dim, Hyperparameters: r, Loss: o.Loss, Words: o.Words}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	f := newFit(x, r, o)
	f.tau, f.advice = h.Tau, "lower the rate, or scale the vectors to a mean norm near 3"
	f.model.Info.Training.Lambda, f.model.Codes = h.Lambda, &vectors.Sparse{Words: x.Words, Texts: x.Texts}
	if h.Center {
		f.model.Dictionary.Mean = Frequent(x, h.Atoms).Mean()
		p.X = make([]float32, len(x.Data))
		f.model.Dictionary.Center(p.X, x.Data)
	}
	f.x, f.batch = p.X, p.Batch()
	f.variance = (&model.Dictionary{Dim: x.Dim}).Squares(p.X) / float64(x.Len())
	if h.FromWords {
		var err error
		start := initialiser{x: p.X, mean: &model.Dictionary{Dim: x.Dim}, atoms: h.Atoms, order: model.Frequency, seed: h.Seed}
		if p.Dictionary, _, err = start.choose(ctx, o); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, func() (backend.Trainer, error) { return device.Trainer(p) })
}

// The paper's trainer is made for vectors of a mean norm of about 3: a code cannot exceed η√t
// after t epochs, so that λ means something else for others.
const minNorm, maxNorm = 1.5, 9

// checkScale warns of vectors of another scale.
func checkScale(x *vectors.Dense, o Options) {
	var norms float64
	for i := range x.Len() {
		norms += math.Sqrt(squares(x.Row(i)))
	}
	if norm := norms / float64(x.Len()); norm < minNorm || norm > maxNorm {
		o.note("warning: the vectors' mean norm is %.3g, and λ and the rate of the recipe paper are for about 3: scale them, or use the recipe best, which takes any", norm)
	}
}

// mostDead is the largest share of dead atoms without a warning.
const mostDead = 0.2

// checkEpochs warns of a training that ended badly.
func checkEpochs(i model.Info, o Options) {
	epochs := i.Training.Epochs
	last := epochs[len(epochs)-1]
	lowest := slices.MinFunc(epochs, func(a, b model.Epoch) int { return cmp.Compare(a.Error, b.Error) })
	const rise = 1.25
	if dead := float64(last.UnusedAtoms) / float64(i.Training.Recipe.Base().Atoms); dead > mostDead {
		o.note("warning: %.0f %% of the atoms are dead: use a smaller λ or fewer atoms, or the recipe best", 100*dead)
	}
	// Codes get sparser from epoch to epoch, which alone makes the error rise.
	if last.Error > rise*lowest.Error && last.Sparsity <= lowest.Sparsity {
		o.note("warning: the error has risen from %.4g to %.4g: use fewer epochs, a lower rate or the recipe best", lowest.Error, last.Error)
	}
}
