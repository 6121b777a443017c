// Package checkpoint saves and restores models whose training will go on: a model with a state
// beside it.
package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Matrix names a matrix of a training's state.
type Matrix string

// The matrices of a training's state, all float32 and row-major. The first three are of
// the recipe "paper", the others of "best".
const (
	SquaredGradients Matrix = "H" // K×L: AdaGrad's sums of the dictionary's squared gradients
	GradientSums     Matrix = "S" // V×K: dual averaging's sums of the codes' gradients
	SquareSums       Matrix = "Q" // V×K: the sums of the squares of these gradients

	CodeProducts Matrix = "G" // K×K: Σ aᵀa, in which earlier rows count less
	RowProducts  Matrix = "B" // K×L: Σ aᵀy, likewise
	Direction    Matrix = "v" // 1×L: that of the dictionary's largest singular value, nearly
)

// A matrix is a matrix of a training's state, with its shape.
type matrix struct {
	Matrix
	shape []int
}

// matrices returns the matrices of a training's state.
func matrices(i *model.Info) []matrix {
	words, atoms, dim := i.Training.Input.Words, i.Training.Recipe.Base().Atoms, i.Training.Input.Dim
	if isPaper(i) {
		return []matrix{{SquaredGradients, []int{atoms, dim}}, {GradientSums, []int{words, atoms}}, {SquareSums, []int{words, atoms}}}
	}
	return []matrix{{CodeProducts, []int{atoms, atoms}}, {RowProducts, []int{atoms, dim}}, {Direction, []int{1, dim}}}
}

func isPaper(i *model.Info) bool {
	_, paper := i.Training.Recipe.(model.Paper)
	return paper
}

func (m Matrix) file() string { return modeldir.State + "/" + string(m) + ".npy" }

// State is what a training needs beside the model to go on as if it had never stopped.
type State struct {
	Batch   int    `json:"batch"`   // words of the next dictionary step
	Vectors string `json:"vectors"` // SHA-256 of the training vectors, in hexadecimal
	Words   string `json:"words"`   // and of their words, each with a newline
}

// progress is the content of [modeldir.Progress], which is written last.
type progress struct {
	State
	SHA256 map[string]string `json:"sha256"` // of all other files, in hexadecimal
	Own    string            `json:"own"`    // SHA-256 of this with "own" empty
}

// seal computes Own and returns the JSON of p.
func (p *progress) seal() ([]byte, error) {
	p.Own = ""
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	p.Own = hex.EncodeToString(sum[:])
	return json.Marshal(p)
}

func readProgress(dir string) (data []byte, p progress, err error) {
	if data, err = input.ReadRegular(filepath.Join(dir, modeldir.Progress), modeldir.MaxInfo); err == nil {
		err = json.Unmarshal(data, &p)
	}
	return data, p, err
}

// Hash returns the content hash of the checkpoint in dir.
func Hash(dir string) (string, error) {
	_, p, err := readProgress(dir)
	return p.Own, err
}

// Save saves m and the state of its training as the directory dir, and returns its content hash.
// The function each passes the elements of a matrix to f, in order and in parts of any length. If
// Save fails nothing of the new checkpoint is kept.
func Save(m *model.Model, dir string, mayReplace func(path string) error, s State, each func(m Matrix, f func(part []float32) error) error) (hash string, err error) {
	p := progress{State: s, SHA256: make(map[string]string)}
	err = m.SaveWith(dir, mayReplace, func(dir string) error {
		entries, err := os.ReadDir(dir)
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, modeldir.State), 0o777)
		}
		if err != nil {
			return modeldir.InFile(modeldir.State, err)
		}
		for _, e := range entries {
			if p.SHA256[e.Name()], err = hashFile(dir, e.Name()); err != nil {
				return err
			}
		}
		for _, matrix := range matrices(&m.Info) {
			sum := sha256.New()
			err := atomicfile.WriteIn(dir, matrix.file(), func(f io.Writer) error {
				f = io.MultiWriter(f, sum)
				if err := npy.WriteHeader(f, npy.Header{Type: "<f4", Shape: matrix.shape}); err != nil {
					return err
				}
				return each(matrix.Matrix, func(part []float32) error { return npy.WriteElements(f, part) })
			})
			if err != nil {
				return err
			}
			p.SHA256[matrix.file()] = hex.EncodeToString(sum.Sum(nil))
		}
		data, err := p.seal()
		if err != nil {
			return modeldir.InFile(modeldir.Progress, err)
		}
		err = atomicfile.WriteIn(dir, modeldir.Progress, func(f io.Writer) error {
			_, err := f.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		return modeldir.InFile(modeldir.State, atomicfile.SyncDir(filepath.Join(dir, modeldir.State)))
	})
	return p.Own, err
}

func hashFile(dir, name string) (sum string, err error) {
	hash := sha256.New()
	err = modeldir.ReadFile(dir, name, func(f *input.File) error {
		_, err := io.Copy(hash, f)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// errDamaged reports a file whose hash is not that in [modeldir.Progress].
var errDamaged = errors.New("damaged, or of another checkpoint: its SHA-256 is not that in " + modeldir.Progress)

// A Checkpoint is a model whose training can go on.
type Checkpoint struct {
	*model.Model
	State
	Hash string

	dir  string
	sums map[string]string
}

// Open reads the model of the checkpoint in dir, and verifies that its files were written together.
// It is an error if there is only a model: its training is finished, or had no checkpoints.
func Open(dir string) (*Checkpoint, error) {
	c, err := modeldir.ReadStable(dir, func() (*Checkpoint, error) { return open(dir) })
	if _, ok := errors.AsType[*vectors.InputError](err); err != nil && !ok {
		err = &vectors.InputError{File: dir, Err: err}
	}
	return c, err
}

func open(dir string) (*Checkpoint, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	data, p, err := readProgress(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("is a model, but no checkpoint: its training is finished, or kept none")
	}
	if err == nil {
		err = p.check(m, data)
	}
	if err != nil {
		return nil, modeldir.InFile(modeldir.Progress, err)
	}
	for file, want := range p.SHA256 {
		if filepath.Dir(file) != "." { // a matrix
			continue
		}
		sum, err := hashFile(dir, file)
		if err == nil && sum != want {
			err = modeldir.InFile(file, errDamaged)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Checkpoint{m, p.State, p.Own, dir, p.SHA256}, nil
}

// check returns an error unless p, whose file has data, is of m.
func (p *progress) check(m *model.Model, data []byte) error {
	rows := m.Info.Training.Input.Words
	switch paper := isPaper(&m.Info); {
	case paper != (m.Codes != nil) || paper && m.Info.Words() != rows:
		return errors.New("is beside codes that are not those of the training")
	case p.Batch < 1 || p.Batch > rows:
		return fmt.Errorf("a dictionary step of %d words", p.Batch)
	}
	sealed, err := p.seal()
	if err == nil && !bytes.Equal(data, sealed) {
		err = errors.New("damaged: its SHA-256 is not that in it")
	}
	return err
}

// Restore calls use for each matrix of the state, with a function that fills part with its next
// elements. It is an error if the file does not have the shape that the model implies, if use does
// not read all of it, or if its hash is wrong. It returns an error of use.
func (c *Checkpoint) Restore(use func(m Matrix, read func(part []float32) error) error) error {
	for _, matrix := range matrices(&c.Info) {
		err := modeldir.ReadFile(c.dir, matrix.file(), func(f *input.File) error {
			hash := sha256.New()
			r := bufio.NewReaderSize(io.TeeReader(f, hash), 1<<20)
			h, err := npy.ReadHeader(r)
			if err != nil {
				return err
			}
			if shape := matrix.shape; h.Type != "<f4" || h.Fortran || !slices.Equal(h.Shape, shape) {
				return fmt.Errorf("array of type %s and shape %v, want <f4 and %v", h.Type, h.Shape, shape)
			}
			if err := use(matrix.Matrix, func(part []float32) error { return npy.ReadElements(r, part) }); err != nil {
				return err
			}
			if _, err := r.ReadByte(); err != io.EOF {
				return errors.New("more data follows the array")
			}
			if hex.EncodeToString(hash.Sum(nil)) != c.sums[matrix.file()] {
				return errDamaged
			}
			return nil
		})
		if err != nil {
			return &vectors.InputError{File: c.dir, Err: err}
		}
	}
	return nil
}
