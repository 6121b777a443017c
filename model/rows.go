package model

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/vectors"
)

// SaveRows saves codes that were made with the dictionary of m, and their words, as a model,
// as [Model.SaveOver] does; they need not fit in memory. It calls rows once, which calls add with
// a few words and their codes at a time, in order, and returns of what vectors they are and
// how they were made. SaveRows counts them. It returns what model.json says; m stays as it is.
//
// If rows returns an error or ctx is cancelled, that error is returned and nothing is
// left. Until all rows are there the codes are in temporary files, so that beside dir
// there must be room for them twice.
func (m *Model) SaveRows(ctx context.Context, dir string, may func(path string) error, rows func(add func(*vectors.Sparse) error) (Encoding, error)) (Info, error) {
	saved := &Model{Info: m.Info, Dictionary: m.Dictionary, Labels: m.Labels}
	var failed error // of rows itself, not of what it adds
	err := atomicfile.WriteDir(dir, true, may, func(dir string) error {
		codes, err := vectors.NewCSRWriter(dir, m.Dictionary.Len())
		if err != nil {
			return inFile(codesFile, err)
		}
		defer codes.Close() // what it leaves would be part of the model, or is of a model that failed
		count := 0
		var known Encoding // of the rows
		err = atomicfile.WriteIn(dir, wordsFile, func(f io.Writer) error {
			words := bufio.NewWriterSize(f, 1<<16)
			var full error // of writing
			how, err := rows(func(s *vectors.Sparse) error {
				if count == 0 {
					known.DescribeRows(s.Texts)
				}
				known.Input.Words = s.Rows
				if err := known.checkRows(s.Words, s.Texts); err != nil {
					return err
				}
				if full = writeRows(words, s.Words, s.Texts, count); full != nil {
					return full
				}
				count += len(s.Words)
				if err := codes.Add(&s.CSR); err != nil {
					full = inFile(codesFile, err)
				}
				return full
			})
			switch {
			case full != nil && errors.Is(err, full):
				return full
			case err != nil:
				failed = err
				return err
			}
			how.Input.Words, how.Input.Dim = count, m.Dictionary.Dim
			how.Input.Texts, how.Columns = known.Input.Texts, known.Columns
			saved.Info.Encoding = &how
			return words.Flush()
		})
		if err != nil {
			return err
		}
		if known.Input.Texts {
			if err := os.Rename(filepath.Join(dir, wordsFile), filepath.Join(dir, textsFile)); err != nil {
				return err
			}
		}
		if err := atomicfile.WriteIn(dir, codesFile, func(f io.Writer) error { return codes.Write(atomicfile.Writer{Context: ctx, Writer: f}) }); err != nil {
			return err
		}
		if err := codes.Close(); err != nil {
			return inFile(codesFile, err)
		}
		if err := saved.validateDictionary(); err != nil {
			return err
		}
		return saved.writeDictionary(dir)
	})
	if failed == nil {
		return saved.Info, err
	}
	return Info{}, failed
}

// Rows reads a model's words and codes a few rows at a time, so that they need not fit
// in memory. Call Next until Info.Words rows are read, then Finish.
type Rows struct {
	Info Info

	dir       string
	words     *rowReader
	codes     *vectors.CSRReader
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
		return nil, fmt.Errorf("%s: %w", dir, err)
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
	if r.codes, err = vectors.NewCSRReader(codes, codes.Size()); err != nil {
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
			return nil, fmt.Errorf("%s: %s: truncated: fewer words than %s says", r.dir, file, infoFile)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", r.dir, inFile(file, err))
		}
	}
	codes, err := r.codes.Next(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.dir, inFile(codesFile, err))
	}
	r.remaining -= n
	return &vectors.Sparse{Words: words, Texts: texts, CSR: *codes}, nil
}

// Finish returns an error if rows were left unread, or if a checksum, which is known
// only at the end, shows that the file is damaged.
func (r *Rows) Finish() error {
	if err := r.words.next(new([]string), r.words.newTexts()); err != io.EOF || r.remaining > 0 {
		return fmt.Errorf("%s: %s: more words than %s says", r.dir, r.words.of.Input.rowsFile(), infoFile)
	}
	if err := r.codes.Finish(); err != nil {
		return fmt.Errorf("%s: %w", r.dir, inFile(codesFile, err))
	}
	return nil
}

// Close closes the model's files.
func (r *Rows) Close() {
	for _, f := range r.files {
		f.Close()
	}
}
