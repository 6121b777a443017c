package model

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"path/filepath"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/modeldir"
	"overcomplete/vectors"
)

// A Writer saves a model with the dictionary of another model, and with codes that need not fit in memory. During
// [Writer.Commit], the values of the codes are on disk twice, which takes half of the codes' size in addition.
type Writer struct {
	model     Model // dictionary and Info, without codes
	to        *modeldir.Target
	ended     bool     // after Commit or Abort
	file      *os.File // file of words or texts; nil before the first row
	lines     *bufio.Writer
	codesFile *os.File
	codes     *csr.Writer
	known     Encoding // kind, columns and number of the rows added
}

// NewWriter begins a model in the directory dir; force is as in [Model.Save]. The caller must call Commit or Abort.
func (m *Model) NewWriter(dir string, force bool) (*Writer, error) {
	return m.NewWriterTo(modeldir.NewTarget(dir, force))
}

// NewWriterTo is [Model.NewWriter] for a target.
func (m *Model) NewWriterTo(to *modeldir.Target) (*Writer, error) {
	err := to.Begin()
	if err != nil {
		return nil, err
	}
	w := &Writer{model: Model{Info: m.Info, Dictionary: m.Dictionary, Labels: m.Labels}, to: to}
	if w.codesFile, err = os.Create(filepath.Join(to.Temp, modeldir.Codes)); err == nil {
		w.codes, err = csr.NewWriter(w.codesFile, m.Dictionary.Len())
	}
	if err != nil {
		return nil, w.Abort(w.failed(modeldir.Codes, err))
	}
	return w, nil
}

// Add adds rows. All rows must be of the same kind and have the same columns.
func (w *Writer) Add(rows *vectors.Sparse) error {
	if w.file == nil {
		w.known.SetKind(rows.Texts)
		if err := w.create(); err != nil {
			return err
		}
	}
	part := w.known
	part.Input.Rows = rows.Rows
	if err := part.checkRows(rows.IDs, rows.Texts); err != nil {
		return err
	}
	if err := writeRows(w.lines, rows.IDs, rows.Texts, w.known.Input.Rows); err != nil {
		return w.failed(w.known.Input.rowsFile(), err)
	}
	w.known.Input.Rows += rows.Rows
	if err := w.codes.Add(&rows.CSR); err != nil {
		return w.failed(modeldir.Codes, err)
	}
	return nil
}

// failed prefixes an error of writing with the path of the file.
func (w *Writer) failed(file string, err error) error {
	return atomicfile.InFile(w.to.Path, atomicfile.InFile(file, err))
}

func (w *Writer) create() error {
	name := w.known.Input.rowsFile()
	file, err := os.Create(filepath.Join(w.to.Temp, name))
	if err != nil {
		return w.failed(name, err)
	}
	w.file, w.lines = file, bufio.NewWriterSize(file, 1<<16)
	return nil
}

// Commit writes the model. The argument e describes its codes. Commit sets the number, the kind and the columns of
// rows, and returns the Info of model.json. If only the renaming fails, the complete model is kept under a temporary
// name, which the error states. After any other failure nothing is left.
func (w *Writer) Commit(ctx context.Context, e Encoding) (Info, error) {
	e.Input.Rows, e.Input.Texts, e.Input.Dim, e.Columns = w.known.Input.Rows, w.known.Input.Texts, w.model.Dictionary.Dim, w.known.Columns
	w.model.Info.Encoding = &e
	if w.file == nil { // there are no rows
		if err := w.create(); err != nil {
			return Info{}, w.Abort(err)
		}
	}
	if err := w.finish(ctx); err != nil {
		return Info{}, w.Abort(atomicfile.InFile(w.to.Path, err))
	}
	w.ended = true
	return w.model.Info, w.to.Commit(modeldir.Checkpoint{})
}

func (w *Writer) finish(ctx context.Context) error {
	if err := w.model.validateDictionary(); err != nil {
		return err
	}
	return w.model.writeDictionary(w.to.Temp, func() error {
		return atomicfile.InFile(w.known.Input.rowsFile(), cmp.Or(w.lines.Flush(), w.file.Sync(), w.file.Close()))
	}, func() error {
		err := w.codes.Finish(ctx)
		if err == nil {
			err = cmp.Or(w.codesFile.Sync(), w.codesFile.Close(), w.codes.Close())
		}
		return atomicfile.InFile(modeldir.Codes, err)
	})
}

// Abort removes the temporary files, unless Commit was called. It returns err, combined with the error of the
// removal.
func (w *Writer) Abort(err error) error {
	if w.ended {
		return err
	}
	w.file.Close() // closing a nil file returns an error and has no effect
	w.codesFile.Close()
	if w.codes != nil {
		w.codes.Close()
	}
	w.ended = true
	return w.to.Abort(err)
}
