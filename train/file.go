package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"overcomplete/encode"
	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// FileOptions are the options of [File]. The zero value is useful.
type FileOptions struct {
	Options // File sets Source and NoCodes, and the Dir and Replace of a copy of Checkpoint

	Read    vectors.ReadOptions
	Replace bool // replace a model at the directory

	Factor   int     // K as a multiple of L, instead of the recipe's Atoms; 0 for these
	Sparsity float64 // share of zeros, instead of the Nonzeros of the recipe "best"; 0 for these
	Labels   []byte  // labels.json of the model; nil for none

	// Ready, if not nil, is called before the training, with the source of the vectors and the
	// Input and settled Recipe of the training.
	Ready func(source *vectors.Source, t model.Training)

	// Encoded, if not nil, is called after n more rows are encoded in a second reading.
	Encoded func(n int)
}

// A Status says what [File] left in the directory.
type Status int

// The states of the directory.
const (
	Unchanged      Status = iota // as it was before
	Checkpointed                 // a checkpoint, from which the training can be resumed
	DictionaryOnly               // the learned dictionary, since rows could not be encoded
	DictionaryLost               // as it was before, since a dictionary alone does not replace a model
	Complete                     // the model, with the codes of all rows
)

// Result is the result of [File], also beside an error.
type Result struct {
	Status Status
	Epoch  int        // of the checkpoint, if Status is Checkpointed
	Info   model.Info // of the model, if Status is Complete
}

// File learns a dictionary from the vectors at paths, as [vectors.Read] reads them, encodes all rows, and writes
// the model to the directory dir, atomically. If the recipe "best" learns from some of the rows and
// the files can be read a second time, only these rows are held in memory.
//
// Its errors are those of [Fit], [vectors.Read], [encode.File] and [model.Model.Save]. Vectors that
// nothing can be learned from are a [*vectors.InputError]. What was learned is saved if encoding
// fails.
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
			t.Input.Words = h.TrainWords
		}
		o.Ready(o.Source, t)
	}
	f := file{paths: paths, dir: dir, device: device, options: o}
	o.NoCodes = x.Len() < o.Source.Rows // made in a second reading
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
	return saved(m.Info, m.SaveWith(dir, c.mayReplace, nil))
}

// saved returns the result of saving a model, with its error.
func saved(i model.Info, err error) (Result, error) {
	if err == nil || atomicfile.InPlace(err) {
		return Result{Status: Complete, Info: i}, err
	}
	return Result{}, err
}

// read reads the rows to learn from. It sets o.Source and settles r.
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
		return nil, nil, &vectors.InputError{File: input.Name(paths...), Err: fmt.Errorf("vectors of length %d, and the atoms to be like have %d: they are of different spaces", x.Dim, o.Like.Dim)}
	}
	r = trainingOf(r.With(o.sized(r.Base(), x.Dim))).settled(x, o.Source.Rows)
	if h, is := r.(model.Best); is && o.Sparsity > 0 {
		h.Nonzeros = model.Nonzeros(o.Sparsity, h.Atoms)
		r = h
	}
	return x, r, r.Validate()
}

// readSample reads the rows that h learns from, where all can be read a second time.
func (o *FileOptions) readSample(ctx context.Context, paths []string, h model.Best) (x *vectors.Dense, r model.Recipe, err error) {
	read := o.Read
	read.Keep = func(first *vectors.Dense) (n int, sample *vectors.Sample) {
		if h.Order == "" && first.Texts == nil && first.Len() < orderRows {
			return 0, nil
		}
		// As if the input had no end: if it is short, K is smaller and all rows are kept.
		endless := best(h)
		endless.Common = o.sized(h.Common, first.Dim)
		endless = endless.withDefaults(first, math.MaxInt32)
		h.Order = endless.Order // of more rows than those that are kept
		switch {
		case endless.TrainWords == math.MaxInt32: // all
			return 0, nil
		case h.Order == model.None:
			return 0, vectors.NewSample(endless.TrainWords, sampleSeed)
		case first.Len() <= endless.TrainWords:
			return 0, nil
		}
		return endless.TrainWords, nil
	}
	x, o.Source, err = vectors.Read(ctx, paths, read)
	return x, h, err
}

// sized returns c with the K that o.Factor asks for.
func (o *FileOptions) sized(c model.Common, dim int) model.Common {
	if o.Factor > 0 {
		c.Atoms = o.Factor * dim
	}
	return c
}

// file is the work of [File] after the training.
type file struct {
	paths   []string
	dir     string
	device  Device
	options FileOptions
}

// inputError returns err, as a [*vectors.InputError] if the vectors are at fault.
func (f *file) inputError(err error) error {
	if e, ok := errors.AsType[startError](err); ok {
		return &vectors.InputError{File: input.Name(f.paths...), Err: e.error}
	}
	return err
}

// encode reads the file again and saves the codes of all its rows with the dictionary of m.
func (f *file) encode(ctx context.Context, m *model.Model) (Result, error) {
	o := &f.options
	read := o.Read
	read.Distinct = true
	info, source, err := encode.File(ctx, m, f.paths, f.dir, f.device, encode.Defaults(m.Info), encode.FileOptions{
		Read: read, MayReplace: o.Checkpoint.mayReplace,
		Show: func(block *vectors.Sparse) {
			if o.Encoded != nil {
				o.Encoded(block.Rows)
			}
		},
		Accept: func(e *model.Encoding) error {
			if e.L1 == 0 {
				return ErrNothingActive
			}
			return nil
		},
	})
	if _, kept := errors.AsType[*atomicfile.KeptError](err); err != nil && !kept && !atomicfile.InPlace(err) {
		return f.salvage(ctx, m, err)
	}
	if err != nil {
		return saved(info, err)
	}
	if source.SHA256 != o.Source.SHA256 {
		o.note("warning: %s changed between its two readings: the dictionary was learned from what it was before", input.Name(f.paths...))
	}
	return saved(info, checkCodes(info, o.Options))
}

// salvage saves what was learned before err. m is nil if the training failed.
func (f *file) salvage(ctx context.Context, m *model.Model, err error) (Result, error) {
	c := f.options.Checkpoint
	useless := m == nil || errors.Is(err, ErrNothingActive)
	if c.Epoch > 0 && (useless || ctx.Err() != nil) {
		return Result{Status: Checkpointed, Epoch: c.Epoch}, err
	}
	if useless {
		return Result{}, err
	}
	if _, none := os.Lstat(f.dir); m.Codes == nil && c.Epoch == 0 && none == nil {
		return Result{Status: DictionaryLost}, err
	}
	if failed := m.SaveWith(f.dir, c.mayReplace, nil); failed != nil {
		return Result{}, fmt.Errorf("%w; nor can the model be saved: %w", err, failed)
	}
	if m.Codes == nil {
		return Result{Status: DictionaryOnly}, err
	}
	return Result{Status: Complete, Info: m.Info}, fmt.Errorf("%w; %s is complete", err, f.dir)
}
