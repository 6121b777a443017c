package model

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"

	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/vectors"
)

// Rows yields the words and codes of the model in the directory dir, n rows at a time, so that they need not fit
// in memory. m must be the model that [OpenDictionary] opened in dir. Rows stops after the first error. An error
// about a checksum may follow the last rows.
func (m *Model) Rows(dir string, n int) iter.Seq2[*vectors.Sparse, error] {
	return func(yield func(*vectors.Sparse, error) bool) {
		if n < 1 {
			yield(nil, fmt.Errorf("model: %d rows at a time, want 1 or more", n))
			return
		}
		r := new(rowFiles)
		defer r.close()
		_, err := modeldir.ReadStable(dir, func(dir *os.File) (struct{}, error) { return struct{}{}, r.open(dir) })
		if err == nil && !reflect.DeepEqual(r.info, m.Info) {
			err = errors.New("has been replaced while it was read")
		}
		for left := m.Info.Rows(); err == nil && left > 0; left -= n {
			var rows *vectors.Sparse
			if rows, err = r.next(min(n, left)); err == nil && !yield(rows, nil) {
				return
			}
		}
		if err == nil {
			err = r.finish()
		}
		if err != nil {
			yield(nil, inputError(dir, err))
		}
	}
}

// rowFiles holds the open files of a model's words and codes.
type rowFiles struct {
	info  Info
	rows  *rowReader
	codes *csr.Reader
	files []*input.File
}

func (r *rowFiles) open(dir *os.File) (err error) {
	r.close()
	if r.info, err = readInfo(dir); err != nil {
		return err
	}
	if r.info.Encoding == nil {
		return errors.New("has a dictionary and no codes")
	}
	words, err := r.openFile(dir, r.info.Encoding.Input.rowsFile())
	if err != nil {
		return err
	}
	r.rows = newRowReader(words, r.info.Encoding)
	codes, err := r.openFile(dir, modeldir.Codes)
	if err != nil {
		return err
	}
	if r.codes, err = csr.NewReader(codes, codes.Size()); err != nil {
		return modeldir.InFile(modeldir.Codes, err)
	}
	if rows, atoms := r.info.Rows(), r.info.Training.Recipe.Base().Atoms; r.codes.Rows != rows || r.codes.Cols != atoms {
		return fmt.Errorf("%s: %d×%d matrix, %s says %d words and %d atoms", modeldir.Codes, r.codes.Rows, r.codes.Cols, modeldir.Info, rows, atoms)
	}
	return nil
}

func (r *rowFiles) openFile(dir *os.File, name string) (*input.File, error) {
	f, err := input.OpenAt(dir, name)
	if err != nil {
		return nil, modeldir.InFile(name, err)
	}
	r.files = append(r.files, f)
	return f, nil
}

// next returns the next n rows.
func (r *rowFiles) next(n int) (*vectors.Sparse, error) {
	ids, texts := make([]string, 0, n), r.rows.newTexts()
	for range n {
		err := r.rows.next(&ids, texts)
		if err == io.EOF {
			err = fmt.Errorf("truncated: fewer words than %s says", modeldir.Info)
		}
		if err != nil {
			return nil, modeldir.InFile(r.info.Encoding.Input.rowsFile(), err)
		}
	}
	codes, err := r.codes.Next(n)
	if err != nil {
		return nil, modeldir.InFile(modeldir.Codes, err)
	}
	return &vectors.Sparse{IDs: ids, Texts: texts, CSR: *codes}, nil
}

// finish returns an error if rows are left or if a checksum is wrong.
func (r *rowFiles) finish() error {
	if err := r.rows.next(new([]string), r.rows.newTexts()); err != io.EOF {
		return fmt.Errorf("%s: more words than %s says", r.info.Encoding.Input.rowsFile(), modeldir.Info)
	}
	return modeldir.InFile(modeldir.Codes, r.codes.Finish())
}

func (r *rowFiles) close() {
	for _, f := range r.files {
		f.Close()
	}
	r.files = nil
}
