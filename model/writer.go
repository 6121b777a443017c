package model

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/modeldir"
	"overcomplete/vectors"
)

// A Writer saves codes that need not fit in memory, and their words, as a model with the dictionary
// of another. Until [Writer.Commit] the codes are in temporary files, so that the disk must have
// room for them twice.
type Writer struct {
	model Model // without codes
	may   func(path string) error
	dir   *atomicfile.Dir // nil after Commit or Abort
	file  *os.File        // of words or texts; nil before the first
	lines *bufio.Writer
	codes *csr.Writer
	known Encoding // of the rows: their kind, columns and number
}

// NewWriter begins a model in the directory at path, as [Model.SaveOver] writes it. The caller must
// call Commit or Abort.
func (m *Model) NewWriter(path string, may func(path string) error) (*Writer, error) {
	dir, err := atomicfile.NewDir(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{model: Model{Info: m.Info, Dictionary: m.Dictionary, Labels: m.Labels}, may: may, dir: dir}
	if w.codes, err = csr.NewWriter(dir.Temp, m.Dictionary.Len()); err != nil {
		return nil, dir.Abort(modeldir.InFile(path, modeldir.InFile(modeldir.Codes, err)))
	}
	return w, nil
}

// Add adds rows, all of the same kind and with the same columns.
func (w *Writer) Add(rows *vectors.Sparse) error {
	if w.file == nil {
		w.known.SetKind(rows.Texts)
		if err := w.create(); err != nil {
			return err
		}
	}
	part := w.known
	part.Input.Words = rows.Rows
	if err := part.checkRows(rows.Words, rows.Texts); err != nil {
		return err
	}
	if err := writeRows(w.lines, rows.Words, rows.Texts, w.known.Input.Words); err != nil {
		return w.failed(w.known.Input.rowsFile(), err)
	}
	w.known.Input.Words += rows.Rows
	if err := w.codes.Add(&rows.CSR); err != nil {
		return w.failed(modeldir.Codes, err)
	}
	return nil
}

// failed returns err with the place of a file that can't be written.
func (w *Writer) failed(file string, err error) error {
	return modeldir.InFile(w.dir.Path, modeldir.InFile(file, err))
}

// create creates the file of words or texts.
func (w *Writer) create() error {
	name := w.known.Input.rowsFile()
	file, err := os.Create(filepath.Join(w.dir.Temp, name))
	if err != nil {
		return w.failed(name, err)
	}
	w.file, w.lines = file, bufio.NewWriterSize(file, 1<<16)
	return nil
}

// Commit writes the model, in which e describes the codes except for their number, kind and columns.
// It returns the content of model.json. If it fails nothing is left.
func (w *Writer) Commit(ctx context.Context, e Encoding) (Info, error) {
	e.Input.Words, e.Input.Texts, e.Input.Dim, e.Columns = w.known.Input.Words, w.known.Input.Texts, w.model.Dictionary.Dim, w.known.Columns
	w.model.Info.Encoding = &e
	if w.file == nil { // there are no rows
		if err := w.create(); err != nil {
			return Info{}, w.Abort(err)
		}
	}
	if err := w.finish(ctx); err != nil {
		return Info{}, w.Abort(modeldir.InFile(w.dir.Path, err))
	}
	dir := w.dir
	w.dir = nil
	return w.model.Info, dir.Commit(true, w.may)
}

// finish writes the files.
func (w *Writer) finish(ctx context.Context) error {
	if err := cmp.Or(w.lines.Flush(), w.file.Sync(), w.file.Close()); err != nil {
		return modeldir.InFile(w.known.Input.rowsFile(), err)
	}
	err := atomicfile.WriteIn(w.dir.Temp, modeldir.Codes, func(f io.Writer) error { return w.codes.Write(atomicfile.Writer{Context: ctx, Writer: f}) })
	if err != nil {
		return err
	}
	if err := w.codes.Close(); err != nil {
		return modeldir.InFile(modeldir.Codes, err)
	}
	if err := w.model.validateDictionary(); err != nil {
		return err
	}
	return w.model.writeDictionary(w.dir.Temp)
}

// Abort removes what was written, unless Commit was called before. It returns err, with the reason
// if it fails.
func (w *Writer) Abort(err error) error {
	if w.dir == nil {
		return err
	}
	if w.file != nil {
		w.file.Close()
	}
	w.codes.Close()
	dir := w.dir
	w.dir = nil
	return dir.Abort(err)
}
