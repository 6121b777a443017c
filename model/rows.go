package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"sync"
	"unsafe"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/internal/memory"
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
		r := &rowFiles{info: m.Info}
		defer r.close()
		_, err := modeldir.ReadStable(dir, func(dir *os.File) (struct{}, error) {
			info, err := readInfo(dir)
			if err == nil && !reflect.DeepEqual(info, m.Info) {
				err = errors.New("has been replaced while it was read")
			}
			return struct{}{}, cmp.Or(err, r.open(dir))
		})
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

// rowFiles holds the open files of a model's rows and codes.
type rowFiles struct {
	info  Info
	rows  *rowReader
	codes *csr.Reader
	bytes uint64 // memory for all rows
	files []*input.File
}

// open opens the files and checks that they have the number of rows and atoms of r.info.
func (r *rowFiles) open(dir *os.File) error {
	r.close()
	if r.info.Encoding == nil {
		return errors.New("has a dictionary and no codes")
	}
	rows, atoms := r.info.Rows(), r.info.Training.Recipe.Base().Atoms
	name := r.info.Encoding.Input.rowsFile()
	ids, err := r.openFile(dir, name)
	if err != nil {
		return err
	}
	r.rows = newRowReader(ids, r.info.Encoding)
	if err := r.rows.newTexts().Validate(0); err != nil {
		return atomicfile.InFile(modeldir.Info, err)
	}
	const shortest = 2 // bytes of the shortest row
	if ids.Size()/shortest < int64(rows) {
		return atomicfile.InFile(name, r.tooFew())
	}
	codes, err := r.openFile(dir, modeldir.Codes)
	if err != nil {
		return err
	}
	if r.codes, err = csr.NewReader(codes, codes.Size()); err != nil {
		return atomicfile.InFile(modeldir.Codes, err)
	}
	if r.codes.Rows != rows || r.codes.Cols != atoms {
		return fmt.Errorf("%s: %d×%d matrix, %s says %d rows and %d atoms", modeldir.Codes, r.codes.Rows, r.codes.Cols, modeldir.Info, rows, atoms)
	}
	r.bytes = uint64(ids.Size()) + uint64(rows)*uint64(8+len(r.rows.names)*int(unsafe.Sizeof(""))) + 8*uint64(r.codes.Nonzeros)
	return nil
}

func (r *rowFiles) tooFew() error {
	return fmt.Errorf("truncated: fewer rows than the %d that %s says", r.info.Rows(), modeldir.Info)
}

func (r *rowFiles) openFile(dir *os.File, name string) (*input.File, error) {
	f, err := input.OpenAt(dir, name)
	if err != nil {
		return nil, atomicfile.InFile(name, err)
	}
	r.files = append(r.files, f)
	return f, nil
}

// next returns the next n rows. It reads the two files concurrently.
func (r *rowFiles) next(n int) (*vectors.Sparse, error) {
	var codes *vectors.CSR
	var failed error // error of reading codes
	var reading sync.WaitGroup
	reading.Go(func() { codes, failed = r.codes.Next(n) })
	ids, texts := make([]string, 0, n), r.rows.newTexts()
	texts.Grow(n)
	var err error
	for len(ids) < n && err == nil {
		err = r.rows.next(&ids, texts)
	}
	if err == io.EOF {
		err = r.tooFew()
	}
	reading.Wait()
	if err := cmp.Or(atomicfile.InFile(r.info.Encoding.Input.rowsFile(), err), atomicfile.InFile(modeldir.Codes, failed)); err != nil {
		return nil, err
	}
	return &vectors.Sparse{IDs: ids, Texts: texts, CSR: *codes}, nil
}

func (r *rowFiles) all() (*vectors.Sparse, error) {
	n := r.info.Rows()
	if err := memory.Check(r.bytes); err != nil {
		return nil, fmt.Errorf("%s and %s: %d rows: %w", modeldir.Codes, r.info.Encoding.Input.rowsFile(), n, err)
	}
	rows, err := r.next(n)
	if err == nil {
		err = r.finish()
	}
	return rows, err
}

// finish returns an error if rows are left or if a checksum is wrong.
func (r *rowFiles) finish() error {
	if err := r.rows.next(new([]string), r.rows.newTexts()); err != io.EOF {
		return fmt.Errorf("%s: more rows than the %d that %s says", r.info.Encoding.Input.rowsFile(), r.info.Rows(), modeldir.Info)
	}
	return atomicfile.InFile(modeldir.Codes, r.codes.Finish())
}

func (r *rowFiles) close() {
	for _, f := range r.files {
		f.Close()
	}
	r.files = nil
}
