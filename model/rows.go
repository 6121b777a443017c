package model

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/vectors"
)

// Rows reads a model's words and codes a few rows at a time, so that they need not fit
// in memory. Call Next until Info.Words rows are read, then Finish.
type Rows struct {
	Info Info

	dir       string
	words     *rowReader
	codes     *csr.Reader
	files     []*input.File
	remaining int
}

// OpenRows opens the model in the directory dir. Its errors are those of [Open], but
// for what is wrong with single rows. The caller must call [Rows.Close].
func OpenRows(dir string) (*Rows, error) {
	r := new(Rows)
	_, err := unreplaced(dir, func() (*Rows, error) {
		r.Close()
		*r = Rows{dir: dir}
		return r, r.open()
	})
	if err != nil {
		r.Close()
		return nil, inputError(dir, err)
	}
	return r, nil
}

func (r *Rows) open() (err error) {
	if r.Info, err = readInfo(r.dir); err != nil {
		return err
	}
	if r.Info.Encoding == nil {
		return errors.New("has a dictionary and no codes")
	}
	words, err := r.openFile(r.Info.Encoding.Input.rowsFile())
	if err != nil {
		return err
	}
	r.words = newRowReader(words, r.Info.Encoding)
	codes, err := r.openFile(codesFile)
	if err != nil {
		return err
	}
	if r.codes, err = csr.NewReader(codes, codes.Size()); err != nil {
		return inFile(codesFile, err)
	}
	r.remaining = r.Info.Words()
	if atoms := r.Info.Training.Recipe.Base().Atoms; r.codes.Rows != r.remaining || r.codes.Cols != atoms {
		return fmt.Errorf("%s: %d×%d matrix, %s says %d words and %d atoms", codesFile, r.codes.Rows, r.codes.Cols, infoFile, r.remaining, atoms)
	}
	return nil
}

func (r *Rows) openFile(name string) (*input.File, error) {
	f, err := input.Open(filepath.Join(r.dir, name))
	if err != nil {
		return nil, inFile(name, err)
	}
	r.files = append(r.files, f)
	return f, nil
}

// Next returns the words and codes of the next n rows, or of those that are left if
// they are fewer. It returns an error if a row is missing or not valid.
func (r *Rows) Next(n int) (*vectors.Sparse, error) {
	n = min(n, r.remaining)
	words, texts := make([]string, 0, n), r.words.newTexts()
	file := r.words.of.Input.rowsFile()
	for range n {
		err := r.words.next(&words, texts)
		switch {
		case err == io.EOF:
			return nil, inputError(r.dir, fmt.Errorf("%s: truncated: fewer words than %s says", file, infoFile))
		case err != nil:
			return nil, inputError(r.dir, inFile(file, err))
		}
	}
	codes, err := r.codes.Next(n)
	if err != nil {
		return nil, inputError(r.dir, inFile(codesFile, err))
	}
	r.remaining -= n
	return &vectors.Sparse{Words: words, Texts: texts, CSR: *codes}, nil
}

// Finish returns an error if rows were left unread, or if a checksum, which is known
// only at the end, shows that the file is damaged.
func (r *Rows) Finish() error {
	if err := r.words.next(new([]string), r.words.newTexts()); err != io.EOF || r.remaining > 0 {
		return inputError(r.dir, fmt.Errorf("%s: more words than %s says", r.words.of.Input.rowsFile(), infoFile))
	}
	if err := r.codes.Finish(); err != nil {
		return inputError(r.dir, inFile(codesFile, err))
	}
	return nil
}

// Close closes the model's files.
func (r *Rows) Close() {
	for _, f := range r.files {
		f.Close()
	}
}
