package model

import (
	"cmp"
	"fmt"
	"io"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// Themes describes the M themes of a dictionary, M = len(Splits) + 1, and their tree, whose cuts are topics: a
// topic is a range of themes. One topic has all themes, and each further topic splits a range in two.
type Themes struct {
	Topics int     `json:"topics"` // default number of topics, 1 to M
	Splits []int32 `json:"splits"` // first theme of the range that is split off for the second topic, the third, …: 1 to M−1, each once
}

// Len returns the number of themes, M; 0 of nil.
func (t *Themes) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Splits) + 1
}

// Cut returns the topic of each theme, 0 to topics−1, where there are this number of topics, 1 to M. The
// topics of a larger number are parts of those of a smaller number.
func (t *Themes) Cut(topics int) []int32 {
	of := make([]int32, t.Len())
	for _, first := range t.Splits[:topics-1] {
		of[first] = 1
	}
	for theme := 1; theme < len(of); theme++ {
		of[theme] += of[theme-1]
	}
	return of
}

func (t *Themes) validate() error {
	if t == nil {
		return nil
	}
	if t.Topics < 1 || t.Topics > t.Len() {
		return fmt.Errorf("no %d themes have %d topics", t.Len(), t.Topics)
	}
	seen := make([]bool, t.Len())
	for _, first := range t.Splits {
		if first < 1 || int(first) >= len(seen) || seen[first] {
			return fmt.Errorf("splits of %d themes: got %d, want 1 to %d, each once", t.Len(), first, t.Len()-1)
		}
		seen[first] = true
	}
	return nil
}

// matrix is a sparse matrix of a model, and the file that it is kept in.
type matrix struct {
	file string
	cols int
}

// matrices returns the codes, and those by themes if there are any.
func (t *Training) matrices() []matrix {
	all := []matrix{{modeldir.Codes, t.Recipe.Base().Atoms}}
	if t.Themes != nil {
		all = append(all, matrix{modeldir.ThemeCodes, t.Themes.Len()})
	}
	return all
}

// codesOf returns the codes of rows in the order of matrices.
func codesOf(rows *vectors.Sparse) []*vectors.CSR {
	if rows.Themes == nil {
		return []*vectors.CSR{&rows.CSR}
	}
	return []*vectors.CSR{&rows.CSR, rows.Themes}
}

// setCodes sets the ith of codesOf.
func setCodes(rows *vectors.Sparse, i int, codes *vectors.CSR) {
	if i == 0 {
		rows.CSR = *codes
	} else {
		rows.Themes = codes
	}
}

var errThemes = fmt.Errorf("%s: there must be codes by themes if, and only if, %s has themes", modeldir.ThemeCodes, modeldir.Info)

// checkCodes returns an error unless all codes are valid and of the sizes that m.Info says.
func (m *Model) checkCodes() error {
	matrices, codes := m.Info.Training.matrices(), codesOf(m.Codes)
	if len(codes) != len(matrices) {
		return errThemes
	}
	for i, of := range matrices {
		c := codes[i]
		if words := m.Info.Words(); c.Rows != words || c.Cols != of.cols {
			return fmt.Errorf("%s: %d×%d matrix, %s says %d words and %d atoms", of.file, c.Rows, c.Cols, modeldir.Info, words, of.cols)
		}
		if err := cmp.Or(c.Validate(), of.checkSign(c)); err != nil {
			return modeldir.InFile(of.file, err)
		}
	}
	return nil
}

// checkSign returns an error if a code by themes is negative.
func (of matrix) checkSign(c *vectors.CSR) error {
	for i, v := range c.Value {
		if v < 0 && of.file == modeldir.ThemeCodes {
			return fmt.Errorf("value %d is %v, want none below 0", i, v)
		}
	}
	return nil
}

// readCodes reads all codes from the files of a directory.
func (m *Model) readCodes(dir string) error {
	for i, of := range m.Info.Training.matrices() {
		err := modeldir.ReadFile(dir, of.file, func(f *input.File) error {
			codes, err := csr.Read(f, f.Size(), m.Info.Words(), of.cols)
			if err == nil {
				setCodes(m.Codes, i, codes)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func writeArray(dir, name string, data []float32, shape ...int) error {
	return atomicfile.WriteIn(dir, name, func(f io.Writer) error { return npy.Write(f, shape, data) })
}
