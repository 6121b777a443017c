package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

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
	fit := h.fitLambda
	if h.Nonzeros > 0 {
		if err := model.Paper(h).Validate(); err != nil { // before the search changes it
			return nil, err
		}
		fit = h.searchLambda
	}
	if err := x.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	checkScale(x, o)
	m, err := fit(ctx, x, device, o)
	if err != nil {
		return m, err
	}
	if m.Info.Encoding.L1 == 0 {
		return m, ErrNothingActive
	}
	checkEpochs(m.Info, o)
	return m, nil
}

// fitLambda trains with the λ of h.
func (h paper) fitLambda(ctx context.Context, x *vectors.Dense, device Device, o Options) (*model.Model, error) {
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
		start := initialiser{x: p.X, mean: &model.Dictionary{Dim: x.Dim}, atoms: h.Atoms, order: model.Frequency, seed: h.Seed, workers: o.Workers}
		if p.Dictionary, _, err = start.choose(ctx, o); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, func() (backend.Trainer, error) { return device.Trainer(p) })
}

const (
	// sparsityTolerance is the largest difference from the sparsity that a search for λ accepts.
	sparsityTolerance = 0.005

	// mostTrainings is the most trainings of a search for λ.
	mostTrainings = 6
)

// sparsityOf returns the sparsity of the nonzeros of a settled recipe.
func sparsityOf(c model.Common) float64 { return 1 - float64(c.Nonzeros)/float64(c.Atoms) }

// searchLambda trains with one λ after another until the sparsity is that of h, and returns the
// nearest model.
func (h paper) searchLambda(ctx context.Context, x *vectors.Dense, device Device, o Options) (nearest *model.Model, err error) {
	wanted := sparsityOf(h.Common)
	if o.Checkpoint != nil && (o.Checkpoint.Every > 0 || o.Checkpoint.Resume) {
		return nil, fmt.Errorf("train: a search for the λ of %.4g %% sparsity makes several trainings, and has no checkpoints", 100*wanted)
	}
	quiet := o
	quiet.Note = nil // notes on a training concern the chosen one
	h.Nonzeros = 0
	var trials []trial
	off := math.Inf(1)
	for len(trials) < mostTrainings && off > sparsityTolerance {
		h.Lambda = nextLambda(trials, wanted)
		if slices.ContainsFunc(trials, func(t trial) bool { return t.lambda == h.Lambda }) {
			break
		}
		m, err := h.fitLambda(ctx, x, device, quiet)
		if err != nil {
			return m, err
		}
		t := trial{h.Lambda, m.Info.Encoding.Sparsity}
		o.note("λ = %v gives %.2f %% zeros", t.lambda, 100*t.sparsity)
		if d := t.distance(wanted); d < off {
			nearest, off = m, d
		}
		trials = append(trials, t)
	}
	if off > sparsityTolerance {
		o.note("warning: no λ of %d that were tried gives %.4g %% zeros to %.2g points: this is the nearest", len(trials), 100*wanted, 100*sparsityTolerance)
	}
	return nearest, nil
}

// trial is a training of a search for λ: its λ, which is positive, and the sparsity of its codes.
type trial struct{ lambda, sparsity float64 }

// distance returns the absolute sparsity error. Codes that are all zero say nothing: they are as
// far from any sparsity as codes without a zero.
func (t trial) distance(wanted float64) float64 {
	if t.sparsity == 1 {
		return wanted
	}
	return math.Abs(t.sparsity - wanted)
}

// nextLambda returns the λ to try for a sparsity after trials in any order. Without any it is the
// default.
//
// Sparsity grows with λ, nearly as a logistic function of log λ, so that the secant through the
// logits of the nearest two points leads to the next one. Once there are points on both sides, the
// next is between them: where the secant leads elsewhere, halfway on log λ.
func nextLambda(trials []trial, wanted float64) float64 {
	// What is known of a curve through a single point: on word vectors the logit of the sparsity
	// grows by 0.8 to 1.5 while λ grows by the factor e.
	const usual, flattest, furthest = 1, 0.3, 3
	if len(trials) == 0 {
		return Paper().Lambda
	}
	x := func(t trial) float64 { return math.Log(t.lambda) }
	y := func(t trial) float64 { return logit(t.sparsity) - logit(wanted) }
	trials = slices.Clone(trials)
	slices.SortFunc(trials, func(a, b trial) int { return cmp.Compare(a.lambda, b.lambda) })
	near := slices.Clone(trials)
	slices.SortStableFunc(near, func(a, b trial) int { return cmp.Compare(math.Abs(y(a)), math.Abs(y(b))) })
	slope := float64(usual)
	if len(near) > 1 {
		slope = max((y(near[1])-y(near[0]))/(x(near[1])-x(near[0])), flattest)
	}
	at := x(near[0]) + min(max(-y(near[0])/slope, -furthest), furthest)
	for i, t := range trials {
		if i > 0 && y(trials[i-1]) < 0 && y(t) >= 0 {
			low, high := x(trials[i-1]), x(t)
			if margin := (high - low) / 20; at < low+margin || at > high-margin {
				at = (low + high) / 2
			}
		}
	}
	// Three significant digits: more would only make long names.
	lambda, _ := strconv.ParseFloat(strconv.FormatFloat(math.Exp(at), 'g', 3, 64), 64)
	return lambda
}

// logit is finite for shares of 0 and 1, too.
func logit(share float64) float64 {
	share = min(max(share, 1e-3), 1-1e-3)
	return math.Log(share / (1 - share))
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
