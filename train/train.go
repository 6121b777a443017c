// Package train learns codes and a dictionary. [Fit] is all of it, from vectors and
// hyperparameters to a model; a [Device] does the work, such as that of package cpu:
//
//	x, source, err := vectors.Read(ctx, "glove.6B.300d.txt.gz", vectors.ReadOptions{})
//	h := train.Paper()
//	h.Lambda = 1
//	m, err := train.Fit(ctx, x, h, cpu.Device{}, train.Options{Source: source})
//	err = m.Save("glove.model", false)
//
// There are two recipes. [Best] is online dictionary learning (Mairal et al., ICML 2009) that
// starts from words: docs/training.md says why. [Paper] is the paper's objective and trainer.
//
// # The algorithm of the recipe paper
//
// X is V×L (dense vectors), A is V×K (codes), D is K×L (dictionary):
//
//	minimise Σ_i ‖x_i − a_i D‖² + λ Σ_i ‖a_i‖₁ + τ‖D‖²        (paper, Eq. 2)
//
// AdaGrad learns D, and regularised dual averaging in its AdaGrad form A (paper
// §2.3). The paper's program visits one word after the other and moves both
// each time. "minibatch" makes two passes an epoch instead:
// the dictionary pass steps D on small batches of words in order, with each
// word's squared gradient added to AdaGrad's sum as if it had come alone and a
// line search against overshooting; the code pass then renews all codes with D
// fixed. Both are matrix products, and the second takes any order and any
// number of workers. The formulas are with the graphs: [overcomplete/graph.Dictionary]
// and [overcomplete/graph.Code]. The algorithm "authors" keeps the paper's order,
// for comparison.
//
// How far training goes is part of the result: a code cannot exceed η√t after t
// epochs, and τ is tiny, so that D grows slowly. The number of epochs is a
// hyperparameter like λ.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/vectors"
)

// ErrDiverged is returned, wrapped, when a metric is no longer a finite number.
var ErrDiverged = errors.New("training diverged")

// A Device is where trainings run, and encodings: [overcomplete/cpu.Device] or
// [overcomplete/kernels.Device].
type Device = backend.Device

// ErrMemory is returned, wrapped, when a training or an encoder does not fit into
// the memory of a device or of the machine.
var ErrMemory = backend.ErrMemory

// ErrScale is the error, wrapped, of vectors whose norm single precision does not take.
var ErrScale = errors.New("scale them")

// Options of [Fit]. The zero value is useful.
type Options struct {
	Source *vectors.Source // of the vectors, for model.json; nil for vectors from no file

	// Loss is a loss that this program adds, under the name that [model.Paper] has for
	// it then. It is nil for those that every program knows.
	Loss graph.Loss

	// Like, if not nil, is the dictionary of another model whose dimensions this one shall
	// have, in their order, for new vectors of the same space: its atoms are what atoms start
	// from and are held to, by the recipe "best". It must have the L of the vectors, and K.
	Like *model.Dictionary

	Checkpoint *Checkpoint // nil for none

	// Workers is how many goroutines choose the words that a dictionary starts from, before
	// the device has anything to do; 0 means one for each processor.
	Workers int

	// What follows is told how the training goes. All may be nil.
	Begin func(i model.Info)  // before the first epoch: Device is known, and the Epochs that were done before
	Words func(n int)         // words that a pass is done with, from any goroutine; an epoch of "paper" has two passes
	Epoch func(e model.Epoch) // after each epoch
	Note  func(line string)   // what a person should know, from any goroutine
}

// Fit learns a model from x: codes for its words and their dictionary. It leaves x
// as it is. Atoms, Epochs and TrainWords of the recipe may be 0, and Order empty, for what
// [Settled] puts there.
//
// It is an error if hyperparameters are outside their domain, if x is not valid (see
// [vectors.Dense.Validate]) or there is nothing to learn from it, if the device can't run
// the training or has too little memory (ErrMemory), if training diverges (ErrDiverged),
// or if a checkpoint that is to be resumed is not of this training (a [*CheckpointError]).
// If ctx is cancelled, the error is ctx's, and what is left is a checkpoint, if there was
// to be one.
//
// The error is a [*LearnedError], which has the model, if training succeeded and what comes
// after it failed: the release of the device, or the encoding of the recipe "best". So it is
// if all codes are zero (ErrNothingActive).
func Fit(ctx context.Context, x *vectors.Dense, r model.Recipe, device Device, o Options) (*model.Model, error) {
	switch r := r.(type) {
	case model.Best:
		return whole(fitBest(ctx, x, r, device, o))
	case model.Paper:
		return whole(fitPaper(ctx, x, r, device, o))
	}
	return nil, fmt.Errorf("train: %v is no recipe", r)
}

// A LearnedError is of a training that succeeded, and of what failed after it. Model is what was
// learned, so that it is not lost; of the recipe "best" it has no codes if they could not be made.
type LearnedError struct {
	Model *model.Model
	Err   error
}

func (e *LearnedError) Error() string { return e.Err.Error() }
func (e *LearnedError) Unwrap() error { return e.Err }

// whole returns a model or an error, which may have the model.
func whole(m *model.Model, err error) (*model.Model, error) {
	if m == nil || err == nil {
		return m, err
	}
	return nil, &LearnedError{m, err}
}

// fitBest is Fit of the recipe "best", but returns the model beside an error.
func fitBest(ctx context.Context, x *vectors.Dense, h model.Best, device Device, o Options) (*model.Model, error) {
	m, err := learn(ctx, x, h, device, o)
	if err != nil {
		return m, err
	}
	encoded, err := encode.Model(ctx, m, x, device, encode.Defaults(m.Info))
	if err != nil {
		return m, err
	}
	encoded.Info.Encoding.Input = inputOf(x, o.Source)
	return encoded, CheckCodes(encoded.Info, o.Note)
}

// Learn learns a dictionary from x by the recipe "best", as [Fit] does, and makes no codes:
// those of any rows, such as more than fit in memory, come from [overcomplete/encode.Stream],
// with the options that [overcomplete/encode.Defaults] has for the model.
func Learn(ctx context.Context, x *vectors.Dense, h model.Best, device Device, o Options) (*model.Model, error) {
	return whole(learn(ctx, x, h, device, o))
}

// learn is Learn, but returns the model beside an error.
func learn(ctx context.Context, x *vectors.Dense, h model.Best, device Device, o Options) (*model.Model, error) {
	if d := o.Like; d != nil {
		switch {
		case d.Dim != x.Dim:
			return nil, fmt.Errorf("train: the model to be like has atoms of %d numbers, and the vectors have %d", d.Dim, x.Dim)
		case h.Atoms != 0 && h.Atoms != d.Len():
			return nil, fmt.Errorf("train: the model to be like has %d dimensions, and atoms is %d: want the same, or 0", d.Len(), h.Atoms)
		}
		h.Atoms, h.Like = d.Len(), vectors.SHA256(d.Atoms)
	} else if h.Like != "" {
		return nil, errors.New("train: the recipe names a model to be like, and Options.Like has none")
	}
	h = Settled(h, x).(model.Best)
	if err := cmp.Or(x.Validate(), h.Validate()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	x = learnedFrom(x, h)
	f := newFit(x, h, o)
	mean := model.Dictionary{Dim: x.Dim, Mean: x.Mean()}
	start := starting{x: x.Data, mean: &mean, atoms: h.Atoms, order: h.Order, seed: h.Seed}
	atoms, norm, err := start.choose(ctx, o)
	if err != nil {
		return nil, err
	}
	f.model.Dictionary.Mean, f.model.Info.Training.Lambda = mean.Mean, h.Lambda*norm*norm
	f.batch = min(max(backend.Batch(x.Len(), h.DictionarySteps), fewestRows), x.Len())
	return f.run(ctx, func() (backend.Trainer, error) {
		d := mean
		d.Atoms = atoms
		return newOnline(x, h, &d, norm, f, device)
	})
}

// fitPaper is Fit of the recipe "paper", but returns the model beside an error.
func fitPaper(ctx context.Context, x *vectors.Dense, h model.Paper, device Device, o Options) (*model.Model, error) {
	if o.Like != nil {
		return nil, errors.New("train: the recipe paper has no model to be like: use the recipe best")
	}
	fit := fitOnce
	if h.Nonzeros > 0 {
		fit = fitSparsity
	}
	m, err := fit(ctx, x, h, device, o)
	if err == nil && m.Info.Encoding.L1 == 0 {
		err = ErrNothingActive
	}
	return m, err
}

// fitOnce is fitPaper with the λ of h.
func fitOnce(ctx context.Context, x *vectors.Dense, h model.Paper, device Device, o Options) (*model.Model, error) {
	h = Settled(h, x).(model.Paper)
	p := backend.Problem{X: x.Data, Dim: x.Dim, Hyperparameters: h, Loss: o.Loss, Words: o.Words}
	if err := cmp.Or(x.Validate(), p.Validate()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	f := newFit(x, h, o)
	f.model.Info.Training.Lambda, f.model.Codes = h.Lambda, &vectors.Sparse{Words: x.Words, Texts: x.Texts}
	if h.Center {
		f.model.Dictionary.Mean = Frequent(x, h.Atoms).Mean()
		p.X = make([]float32, len(x.Data))
		f.model.Dictionary.Center(p.X, x.Data)
	}
	f.x, f.batch = p.X, p.Batch()
	f.variance = (&model.Dictionary{Dim: x.Dim}).Squares(p.X) / float64(x.Len())
	checkScale(x, o)
	if h.Init == model.FromWords {
		var err error
		start := starting{x: p.X, mean: &model.Dictionary{Dim: x.Dim}, atoms: h.Atoms, order: model.Frequency, seed: h.Seed}
		if p.Dictionary, _, err = start.choose(ctx, o); err != nil {
			return nil, err
		}
	}
	m, err := f.run(ctx, func() (backend.Trainer, error) { return device.Trainer(p) })
	if err == nil {
		checkResult(m.Info, o)
	}
	return m, err
}

// newFit returns a training of a recipe that is complete, and of its model what is known before.
func newFit(x *vectors.Dense, r model.Recipe, o Options) *fit {
	f := &fit{x: x.Data, words: x.Words, options: o, model: &model.Model{
		Info:       model.Info{Format: model.FormatVersion, Training: model.Training{Input: inputOf(x, o.Source), Recipe: r}},
		Dictionary: model.Dictionary{Dim: x.Dim},
	}}
	f.hashes = sync.OnceValue(f.hash)
	return f
}

// inputOf describes rows of a file, or of none.
func inputOf(x *vectors.Dense, source *vectors.Source) model.Input {
	in := model.Input{Words: x.Len(), Dim: x.Dim, Texts: x.Texts != nil}
	if source != nil {
		in.Name, in.SHA256, in.WordsSHA256 = source.Name, source.SHA256, source.WordsSHA256
	}
	return in
}

// Frequent returns the words that so many atoms are learned from by default.
func Frequent(x *vectors.Dense, atoms int) *vectors.Dense {
	h := model.Best{Common: model.Common{Atoms: atoms}, Order: DefaultOrder(x)}
	return x.Slice(0, DefaultTrainWords(h, x.Len()))
}

// learnedFrom returns the rows of x that are learned from.
func learnedFrom(x *vectors.Dense, h model.Best) *vectors.Dense {
	switch {
	case h.TrainWords == x.Len():
		return x
	case h.Order == model.Frequency:
		return x.Slice(0, h.TrainWords)
	}
	s := vectors.NewSample(h.TrainWords, h.Seed)
	s.Add(x)
	return &s.Rows
}

// fit is a training under way.
type fit struct {
	trainer  backend.Trainer
	options  Options
	x        []float32 // V×L, that is trained on
	variance float64   // mean‖x_i‖², if the trainer keeps codes
	words    []string
	hashes   func() hashes // of both

	model *model.Model // Info.Training.Epochs are those that are done; Codes are nil if the trainer keeps none
	batch int          // words of the next dictionary step

	interrupted context.Context // the caller's, where epochs run under another: see interruptible
	saved       time.Time       // when the last checkpoint was, or the start
}

// run trains, with the trainer that start makes, and completes the model. It returns the model
// beside an error of what comes after training.
func (f *fit) run(ctx context.Context, start func() (backend.Trainer, error)) (m *model.Model, err error) {
	if f.trainer, err = start(); err != nil {
		return nil, err
	}
	defer func() {
		if closed := f.trainer.Close(); err == nil {
			err = closed
		}
	}()
	t := &f.model.Info.Training
	t.Device = f.trainer.Device()
	if err := f.resume(); err != nil {
		return nil, err
	}
	if f.options.Begin != nil {
		f.options.Begin(f.model.Info)
	}
	ctx, stop := f.interruptible(ctx)
	defer stop()
	for !finished(t) {
		if err := f.epoch(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.fetch(); err != nil {
		return nil, err
	}
	return f.model, nil
}

// fetch copies what was learned so far into the model.
func (f *fit) fetch() (err error) {
	if f.model.Codes != nil {
		codes, err := f.trainer.Codes()
		if err != nil {
			return err
		}
		f.model.Codes.CSR, f.model.Info.Encoding = *codes, f.model.Info.Training.Made()
		f.model.Info.Encoding.DescribeRows(f.model.Codes.Texts)
		f.model.Info.Encoding.Variance = f.variance
	}
	f.model.Dictionary.Atoms, err = f.trainer.Dictionary()
	return err
}

// epoch trains for an epoch, measures it, and saves a checkpoint if it is time.
func (f *fit) epoch(ctx context.Context) error {
	start := time.Now()
	training := &f.model.Info.Training
	t := len(training.Epochs) + 1
	sums, err := f.trainer.Epoch(ctx, t, f.batch)
	if err != nil {
		return err
	}
	e, err := f.measure(t, sums)
	if err != nil {
		return err
	}
	e.Seconds = time.Since(start).Seconds()
	training.Epochs = append(training.Epochs, e)
	// Steps that need shortening often ask too much of a batch's size.
	if 10*sums.Shortened > sums.Steps {
		f.batch = max(1, f.batch/2)
	}
	if f.options.Epoch != nil {
		f.options.Epoch(e)
	}
	return f.checkpoint()
}

// measure turns an epoch's sums into its metrics.
func (f *fit) measure(t int, s backend.Sums) (model.Epoch, error) {
	d, err := f.trainer.Dictionary()
	if err != nil {
		return model.Epoch{}, err
	}
	training := &f.model.Info.Training
	words, atoms := float64(training.Input.Words), training.Recipe.Base().Atoms
	squares, norms := atomNorms(d, training.Input.Dim)
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
	paper, isPaper := training.Recipe.(model.Paper)
	e.Objective = e.Loss + training.Lambda*e.L1 + paper.Tau*squares/words
	for _, metric := range []struct {
		name  string
		value float64
	}{{"running loss", e.RunningLoss}, {"loss", e.Loss}, {"error", e.Error}, {"mean |a|", e.L1}, {"atom norm", e.AtomNorm}} {
		if math.IsNaN(metric.value) || math.IsInf(metric.value, 0) {
			advice := "scale the vectors"
			if isPaper {
				advice = "try a lower --rate, or scale the vectors to a mean norm near 3"
			}
			return e, fmt.Errorf("%w: %s is %v after epoch %d; %s", ErrDiverged, metric.name, metric.value, t, advice)
		}
	}
	return e, nil
}

// atomNorms returns ‖D‖² and the sum of the atoms' norms.
func atomNorms(d []float32, dim int) (sum, norms float64) {
	for ; len(d) > 0; d = d[dim:] {
		square := squares(d[:dim])
		sum += square
		norms += math.Sqrt(square)
	}
	return sum, norms
}
