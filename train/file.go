package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// FileOptions are the options of [File]. The zero value is useful.
type FileOptions struct {
	Options // File sets Source and NoCodes. It copies Checkpoint and sets the copy's Dir and Replace.

	Read    vectors.ReadOptions
	Replace bool // replace a model at the directory

	Factor   int     // K as a multiple of L; 0 for the recipe's Atoms
	Sparsity float64 // sparsity of the recipe "best", between 0 and 1; 0 for the recipe's Nonzeros
	Labels   []byte  // labels.json of the model; nil for none

	// Ready, if not nil, is called before training with the source of the vectors, and with the Input
	// and the complete Recipe of the training.
	Ready func(source *vectors.Source, t model.Training)

	// Encoded, if not nil, is called after the second reading has encoded n more rows.
	Encoded func(n int)
}

// A Status is the state in which [File] leaves the model's directory.
type Status int

const (
	Unchanged      Status = iota // File did not write to the directory
	Checkpointed                 // a checkpoint, from which training can be resumed
	DictionaryOnly               // the dictionary without codes, because encoding failed
	DictionaryLost               // the earlier model, unchanged; encoding failed, and a dictionary without codes doesn't replace a model
	Complete                     // the model, with the codes of all rows
)

// A Result reports what [File] wrote. It is also valid beside an error.
type Result struct {
	Status Status
	Epoch  int        // epoch of the checkpoint, if Status is Checkpointed
	Info   model.Info // of the model, if Status is Complete
}

// File learns a dictionary from the vectors at paths, as [vectors.Read] reads them, encodes all rows,
// and writes the model to the directory dir atomically. Only the training rows are held in memory if
// the recipe is "best", there are more rows than training rows, and the files can be read a second time.
//
// File returns the errors of [Fit], [vectors.Read], [encode.File] and [model.Model.Save]. It returns a
// [*vectors.InputError] if no dictionary can be learned from the vectors. If encoding fails after
// training, File saves the dictionary, unless there is an earlier model at dir.
func File(ctx context.Context, paths []string, r model.Recipe, device Device, dir string, o FileOptions) (Result, error) {
	if err := checkRecipe(r); err != nil {
		return Result{}, err
	}
	var c Checkpoint
	if o.Checkpoint != nil {
		c = *o.Checkpoint
	}
	c.Dir, c.Replace, c.Epoch = dir, o.Replace, 0
	o.Checkpoint = &c
	if err := modeldir.CheckSave(dir, modeldir.MayReplace(o.Replace || c.Resume)); err != nil { // before hours of training
		return Result{}, err
	}
	x, r, err := o.read(ctx, paths, r)
	if err != nil {
		return Result{}, err
	}
	if o.Ready != nil {
		t := model.Training{Input: inputOf(x, o.Source), Recipe: r}
		if h, is := r.(model.Best); is {
			t.Input.Rows = h.TrainRows
		}
		o.Ready(o.Source, t)
	}
	f := fileTraining{paths: paths, dir: dir, device: device, options: o}
	o.NoCodes = x.Len() < o.Source.Rows // a second reading encodes
	m, err := Fit(ctx, x, r, device, o.Options)
	if m != nil {
		m.Labels = o.Labels
	}
	switch {
	case err != nil:
		return f.salvage(ctx, m, f.inputError(err))
	case o.NoCodes:
		return f.encode(ctx, m)
	}
	return c.saved(m.Info, m.SaveWith(dir, c.mayReplace, nil))
}

// saved returns the Result for a save that returned err.
func (c *Checkpoint) saved(i model.Info, err error) (Result, error) {
	if err == nil || atomicfile.InPlace(err) {
		return Result{Status: Complete, Info: i}, err
	}
	return c.left(), err
}

// left returns the Result without a model: the checkpoint of this training, if it is still in Dir.
func (c *Checkpoint) left() Result {
	if hash, err := checkpoint.Hash(c.Dir); c.Epoch == 0 || err != nil || hash != c.hash {
		return Result{}
	}
	return Result{Status: Checkpointed, Epoch: c.Epoch}
}

// read reads the training rows. It sets o.Source, and returns r with its defaults.
func (o *FileOptions) read(ctx context.Context, paths []string, r model.Recipe) (x *vectors.Dense, _ model.Recipe, err error) {
	if o.Like != nil {
		c := r.Base()
		c.Atoms = o.Like.Len()
		r = r.With(c)
	}
	if h, is := r.(model.Best); is && input.Repeatable(paths) {
		x, r, err = o.readSample(ctx, paths, h)
	} else { // a pipe can't be read again
		x, o.Source, err = vectors.Read(ctx, paths, o.Read)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.Like != nil && o.Like.Dim != x.Dim {
		return nil, nil, &vectors.InputError{File: input.Name(paths...), Err: fmt.Errorf("the vectors differ in length from the atoms of the earlier model (got %d, want %d): the spaces differ", x.Dim, o.Like.Dim)}
	}
	r = trainingOf(r.With(o.withFactor(r.Base(), x.Dim))).withDefaults(x, o.Source.Rows)
	if h, is := r.(model.Best); is && o.Sparsity > 0 {
		h.Nonzeros = model.Nonzeros(o.Sparsity, h.Atoms)
		r = h
	}
	return x, r, r.Validate()
}

// readSample reads the training rows of h from files that can be read a second time.
func (o *FileOptions) readSample(ctx context.Context, paths []string, h model.Best) (x *vectors.Dense, r model.Recipe, err error) {
	read := o.Read
	read.Keep = func(first *vectors.Dense) (n int, sample *vectors.Sample) {
		if h.Order == "" && first.Texts == nil && first.Len() < orderSample {
			return 0, nil
		}
		// The number of rows is unknown, so assume no limit. If there are fewer rows than this keeps, all are
		// kept, and the defaults are derived again from their number.
		endless := bestTraining(h)
		endless.Common = o.withFactor(h.Common, first.Dim)
		endless = endless.fillDefaults(first, math.MaxInt32)
		h.Order = endless.Order // inferred from more rows than are kept
		switch {
		case endless.TrainRows == math.MaxInt32: // all
			return 0, nil
		case h.Order == model.None:
			return 0, vectors.NewSample(endless.TrainRows, sampleSeed)
		case first.Len() <= endless.TrainRows:
			return 0, nil
		}
		return endless.TrainRows, nil
	}
	x, o.Source, err = vectors.Read(ctx, paths, read)
	return x, h, err
}

// withFactor returns c with K = o.Factor·L, if o.Factor is set.
func (o *FileOptions) withFactor(c model.Common, dim int) model.Common {
	if o.Factor > 0 {
		c.Atoms = o.Factor * dim
	}
	return c
}

// fileTraining encodes and saves after the training of [File].
type fileTraining struct {
	paths   []string
	dir     string
	device  Device
	options FileOptions
}

// inputError returns err, or a [*vectors.InputError] if the vectors are the cause.
func (f *fileTraining) inputError(err error) error {
	if e, ok := errors.AsType[initialiserError](err); ok {
		return &vectors.InputError{File: input.Name(f.paths...), Err: e.error}
	}
	return err
}

// encode reads the file again and saves the codes of all its rows with the dictionary of m.
func (f *fileTraining) encode(ctx context.Context, m *model.Model) (Result, error) {
	o := &f.options
	read := o.Read
	read.Distinct, read.Earlier = true, o.Source
	info, source, err := encode.File(ctx, m, f.paths, f.dir, f.device, encode.Defaults(m.Info), encode.FileOptions{
		Read: read, MayReplace: o.Checkpoint.mayReplace,
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
	if _, kept := errors.AsType[*atomicfile.KeptError](err); err != nil && !kept && !atomicfile.InPlace(err) {
		return f.salvage(ctx, m, err)
	}
	if err != nil {
		return o.Checkpoint.saved(info, err)
	}
	if source.SHA256 != o.Source.SHA256 {
		o.note("warning: %s changed between its two readings: the dictionary was learned from the earlier contents", input.Name(f.paths...))
	}
	return o.Checkpoint.saved(info, checkCodes(info, o.Options))
}

// salvage saves the model or dictionary that was learned before err. m is nil if training failed.
func (f *fileTraining) salvage(ctx context.Context, m *model.Model, err error) (Result, error) {
	c := f.options.Checkpoint
	noModel := m == nil || errors.Is(err, ErrZeroCodes)
	if left := c.left(); noModel || left.Status == Checkpointed && ctx.Err() != nil {
		return left, err
	}
	if _, missing := os.Lstat(f.dir); m.Codes == nil && c.Epoch == 0 && missing == nil {
		return Result{Status: DictionaryLost}, err
	}
	if failed := m.SaveWith(f.dir, c.mayReplace, nil); failed != nil {
		return c.left(), fmt.Errorf("%w; saving the model failed too: %w", err, failed)
	}
	if m.Codes == nil {
		return Result{Status: DictionaryOnly}, err
	}
	return Result{Status: Complete, Info: m.Info}, fmt.Errorf("%w; %s is complete", err, f.dir)
}
