package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"overcomplete/encode"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// FileOptions are the options of [File]. The zero value is useful.
type FileOptions struct {
	Read    vectors.ReadOptions
	Replace bool // replace an existing model in the directory

	Checkpoint time.Duration // minimum time between checkpoints, as in [Checkpoint]; 0 to write none
	Resume     bool          // resume from the checkpoint in the directory, if there is one

	Factor   int               // K as a multiple of L; 0 for the recipe's Atoms
	Sparsity float64           // sparsity of the recipe "best", between 0 and 1; 0 for the recipe's Nonzeros
	Like     *model.Dictionary // dictionary of an earlier model, as in [Options]
	Labels   []byte            // labels.json of the model; nil for none

	// Ready, if not nil, is called before training. The argument source describes the file of the vectors. The argument
	// t has its Input and complete Recipe set.
	Ready func(source *vectors.Source, t model.Training)

	// Encoded, if not nil, is called each time n more rows were encoded while the files are read a second time.
	Encoded func(n int)

	// These callbacks report progress, as in [Options], and may be nil.
	Begin    func(i model.Info)
	Progress func(n int)
	Epoch    func(e model.Epoch)
	Note     func(line string)
}

// File learns a dictionary from the vectors at paths, as [vectors.Read] reads them, encodes all rows, and writes the
// model to the directory dir atomically. If the recipe is "best" and the files can be read a second time, File holds
// only the training rows in memory.
//
// File returns the errors of [Fit], [vectors.Read], [encode.File] and [model.Model.Save]. It returns a
// [*vectors.InputError] if no dictionary can be learned from the vectors. If encoding fails after training, File saves
// the dictionary, unless a checkpoint has all epochs. If there is an earlier model at dir, the dictionary is saved
// beside it, at dir with the suffix ".dictionary". If a checkpoint or a dictionary is left, the error is a
// [*LeftError].
func File(ctx context.Context, paths []string, r model.Recipe, device Device, dir string, o FileOptions) (info model.Info, err error) {
	if err := checkRecipe(r); err != nil {
		return info, err
	}
	to := modeldir.NewTarget(dir, o.Replace)
	to.Resume = o.Resume
	if err := to.Check(); err != nil { // before hours of training
		return info, err
	}
	x, source, r, err := o.read(ctx, paths, r)
	if err != nil {
		return info, err
	}
	fit := Options{
		Source: source, Like: o.Like, NoCodes: x.Len() < source.Rows, // a second reading encodes all rows
		Begin: o.Begin, Progress: o.Progress, Epoch: o.Epoch, Note: o.Note, to: to, every: o.Checkpoint,
	}
	if o.Ready != nil {
		t := model.Training{Input: inputOf(x, source), Recipe: r}
		if h, is := r.(model.Best); is {
			t.Input.Rows = h.TrainRows
		}
		o.Ready(source, t)
	}
	m, err := trainingOf(r).fit(ctx, x, device, fit)
	if m != nil {
		m.Labels = o.Labels
	}
	if e, ok := errors.AsType[initialiserError](err); ok {
		err = &vectors.InputError{File: input.Name(paths...), Err: e.error}
	}
	switch {
	case err != nil:
	case fit.NoCodes:
		info, err = o.encode(ctx, m, paths, device, fit)
	default:
		info, err = m.Info, m.SaveTo(to, nil)
		m = nil // saving it again would fail again
	}
	return info, fit.left(m, err)
}

// read reads the training rows, and returns r with its defaults.
func (o *FileOptions) read(ctx context.Context, paths []string, r model.Recipe) (x *vectors.Dense, source *vectors.Source, _ model.Recipe, err error) {
	if o.Like != nil {
		c := r.Base()
		c.Atoms = o.Like.Len()
		r = r.With(c)
	}
	if h, is := r.(model.Best); is && input.Repeatable(paths) {
		x, source, r, err = o.readSample(ctx, paths, h)
	} else { // a pipe can't be read again
		x, source, err = vectors.Read(ctx, paths, o.Read)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if o.Like != nil && o.Like.Dim != x.Dim {
		return nil, nil, nil, &vectors.InputError{File: input.Name(paths...), Err: fmt.Errorf("the vectors differ in length from the atoms of the earlier model (got %d, want %d): the spaces differ", x.Dim, o.Like.Dim)}
	}
	r = trainingOf(r.With(o.withFactor(r.Base(), x.Dim))).withDefaults(x, source.Rows)
	if h, is := r.(model.Best); is && o.Sparsity > 0 {
		h.Nonzeros = model.Nonzeros(o.Sparsity, h.Atoms)
		r = h
	}
	return x, source, r, r.Validate()
}

// readSample reads the training rows of h from files that can be read a second time.
func (o *FileOptions) readSample(ctx context.Context, paths []string, h model.Best) (x *vectors.Dense, source *vectors.Source, r model.Recipe, err error) {
	read := o.Read
	read.Keep = func(first *vectors.Dense) (n int, sample *vectors.Sample) {
		if h.Order == "" && first.Texts == nil && first.Len() < orderSample {
			return 0, nil
		}
		// The number of rows isn't known yet, so assume that it is unlimited. If the input turns out to have fewer rows
		// than Keep selects, all rows are kept, and the defaults are derived again from their number.
		endless := bestTraining(h)
		endless.Common = o.withFactor(h.Common, first.Dim)
		endless = endless.fillDefaults(first, math.MaxInt32)
		h.Order = endless.Order // inferred from more rows than are kept
		switch {
		case endless.TrainRows == math.MaxInt32: // keep all rows
			return 0, nil
		case h.Order == model.None:
			return 0, vectors.NewSample(endless.TrainRows, sampleSeed)
		case first.Len() <= endless.TrainRows:
			return 0, nil
		}
		return endless.TrainRows, nil
	}
	x, source, err = vectors.Read(ctx, paths, read)
	return x, source, h, err
}

// withFactor returns c with K = o.Factor·L, if o.Factor is set.
func (o *FileOptions) withFactor(c model.Common, dim int) model.Common {
	if o.Factor > 0 {
		c.Atoms = o.Factor * dim
	}
	return c
}

// encode reads the files again and saves the codes of all their rows with the dictionary of m.
func (o *FileOptions) encode(ctx context.Context, m *model.Model, paths []string, device Device, fit Options) (model.Info, error) {
	read := o.Read
	read.Distinct, read.Earlier = true, fit.Source
	info, source, err := encode.FileTo(ctx, m, paths, fit.to, device, encode.Defaults(m.Info), encode.FileOptions{
		Read: read,
		Show: func(block *vectors.Sparse) {
			if o.Encoded != nil {
				o.Encoded(block.Rows)
			}
		},
		Accept: func(e *model.Encoding) error {
			if e.L1 == 0 {
				return ErrZeroCodes
			}
			return nil
		},
	})
	if err != nil {
		return info, err
	}
	if source.SHA256 != fit.Source.SHA256 {
		fit.note("warning: %s changed between its two readings: the dictionary was learned from the earlier contents", input.Name(paths...))
	}
	return info, checkCodes(info, fit)
}
