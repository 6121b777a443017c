package encode

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// FileOptions are what [File] is asked for besides codes.
type FileOptions struct {
	Read  vectors.ReadOptions
	Shard *model.Shard // which blocks to encode, as in [Stream], or nil for all

	// MayReplace decides whether what is at the directory may be replaced, as in
	// [model.Model.SaveWith]; nil is for nothing.
	MayReplace func(path string) error

	// Show, if not nil, is called with each block's words and codes, which it may not change.
	Show func(block *vectors.Sparse)
	// Accept, if not nil, is given what was measured of all codes. If it returns an error,
	// nothing is saved, and File returns it.
	Accept func(e *model.Encoding) error
}

// File encodes the rows of the file of vectors at path, on a device, with the dictionary of m,
// and saves them as a model in the directory dir. It holds some [Block] of rows, as a
// [Stream] does. It
// returns what model.json says, which is that these are the codes of this file, and what else
// is known of the file.
//
// Its errors are those of [vectors.Stream], [Device] and [model.Model.SaveRows], and a
// [*vectors.InputError] if vectors and dictionary do not have the same length. One that wraps
// [*RowError] is of a row that can't be encoded.
func File(ctx context.Context, m *model.Model, path, dir string, device Device, o Options, f FileOptions) (info model.Info, source *vectors.Source, err error) {
	if f.MayReplace == nil {
		f.MayReplace = modeldir.MayReplace(false)
	}
	if err := modeldir.CheckSave(dir, f.MayReplace); err != nil { // before there is work to lose
		return info, nil, err
	}
	e, err := device.Encoder(&m.Dictionary, o)
	if err != nil {
		return info, nil, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	w, err := m.NewWriter(dir, f.MayReplace)
	if err != nil {
		return info, nil, err
	}
	defer func() { err = w.Abort(err) }()
	source = new(vectors.Source)
	s := &Stream{Encoder: e, Dictionary: &m.Dictionary, Shard: f.Shard}
	rows := checkDim(vectors.Stream(ctx, path, f.Read, source), m.Dictionary.Dim)
	for block, err := range s.Codes(ctx, rows) {
		if err == nil {
			if f.Show != nil {
				f.Show(block)
			}
			err = w.Add(block)
		}
		if input, ok := errors.AsType[*vectors.InputError](err); ok && input.File == "" {
			input.File = path
		}
		if err != nil {
			return info, source, err
		}
	}
	encoding := s.Encoding()
	if f.Accept != nil {
		if err := f.Accept(&encoding); err != nil {
			return info, source, err
		}
	}
	encoding.Input = model.Input{Name: source.Name, SHA256: source.SHA256, WordsSHA256: source.WordsSHA256}
	info, err = w.Commit(ctx, encoding)
	return info, source, err
}

// checkDim yields rows, which must have vectors of dim numbers.
func checkDim(rows iter.Seq2[*vectors.Dense, error], dim int) iter.Seq2[*vectors.Dense, error] {
	return func(yield func(*vectors.Dense, error) bool) {
		for d, err := range rows {
			if err == nil && d.Dim != dim {
				d, err = nil, &vectors.InputError{Err: fmt.Errorf("vectors of %d numbers, and the dictionary's atoms have %d", d.Dim, dim)}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
