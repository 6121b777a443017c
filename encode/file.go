package encode

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/model"
	"overcomplete/vectors"
)

// FileOptions are the options of [File].
type FileOptions struct {
	Read  vectors.ReadOptions
	Shard *model.Shard // selects the blocks to encode, as in [Stream]; nil selects all

	Replace bool // replace a model at the directory

	// Show, if not nil, is called with each block of codes, which it must neither change nor keep.
	Show func(block *vectors.Sparse)

	// Accept, if not nil, is called with the metrics of all codes. If it returns an error, File
	// saves nothing and returns that error.
	Accept func(e *model.Encoding) error
}

// File encodes the vectors at paths, read by [vectors.Stream], with the dictionary of m, and saves
// their codes as a model in the directory dir. It needs as much memory as a [Stream]. It returns the
// content of model.json and the description of the input.
//
// The error is a [*vectors.InputError] if the input can't be read or encoded. Other errors come
// from the device and from [model.Writer].
func File(ctx context.Context, m *model.Model, paths []string, dir string, device Device, o Options, f FileOptions) (info model.Info, source *vectors.Source, err error) {
	to := modeldir.NewTarget(dir, f.Replace)
	if err := to.Check(); err != nil { // before any work is lost
		return info, nil, err
	}
	return FileTo(ctx, m, paths, to, device, o, f)
}

// FileTo is [File] for a target that the caller has checked.
func FileTo(ctx context.Context, m *model.Model, paths []string, to *modeldir.Target, device Device, o Options, f FileOptions) (info model.Info, source *vectors.Source, err error) {
	e, err := device.Encoder(&m.Dictionary, o)
	if err != nil {
		return info, nil, err
	}
	closeDevice := sync.OnceValue(e.Close)
	defer func() {
		if closed := closeDevice(); err == nil && closed != nil {
			err = fmt.Errorf("%s is written, but %w", to.Name, closed)
		}
	}()
	w, err := m.NewWriterTo(to)
	if err != nil {
		return info, nil, err
	}
	defer func() { err = w.Abort(err) }()
	source = new(vectors.Source)
	s := &Stream{Encoder: e, Shard: f.Shard, dim: m.Dictionary.Dim, recycle: true}
	readCtx, stopReading := context.WithCancel(ctx)
	defer stopReading()
	for block, err := range s.Codes(ctx, vectors.Stream(readCtx, paths, f.Read, source)) {
		if err == nil {
			if f.Show != nil {
				f.Show(block)
			}
			err = w.Add(block)
		}
		if row, ok := errors.AsType[*vectors.InputError](err); ok && row.File == "" {
			row.File = input.Name(paths...)
		}
		if err != nil {
			stopReading() // the reader may be waiting for standard input
			return info, source, err
		}
	}
	encoding := s.Encoding()
	if f.Accept != nil {
		if err := f.Accept(&encoding); err != nil {
			return info, source, err
		}
	}
	encoding.Input = model.NewInput(source)
	go closeDevice() // closing a GPU takes as long as the commit
	info, err = w.Commit(ctx, encoding)
	return info, source, err
}
