// Package checkpoint saves and opens checkpoints. A checkpoint is a model with the state that its training
// needs to resume:
//
//	c, err := checkpoint.Open("model")
//	err = c.Restore(func(m checkpoint.Matrix, read func(part []float32) error) error {
//		return learner.LoadState(m, read)
//	})
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

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/model"
	"overcomplete/vectors"
)

// A Matrix names a matrix of a training's state.
type Matrix string

// The matrices of a training's state, float32 and row-major. The recipe "paper" stores the first three, and the recipe
// "best" the last three. In the comments below, a is the code of a training row, and y is the row minus the mean.
const (
	SquaredGradients Matrix = "H" // K×L: AdaGrad's sums of the dictionary's squared gradients
	GradientSums     Matrix = "S" // V×K: dual averaging's sums of the codes' gradients
	SquareSums       Matrix = "Q" // V×K: dual averaging's sums of the codes' squared gradients

	CodeProducts Matrix = "G" // K×K: Σ aᵀa over all rows so far, weighted by the forgetting factor
	RowProducts  Matrix = "B" // K×L: Σ aᵀy over all rows so far, weighted by the forgetting factor
	Direction    Matrix = "v" // 1×L: approximate right singular vector of the dictionary's largest singular value
)

// A matrix is a matrix of a training's state with its shape.
type matrix struct {
	Matrix
	shape []int
}

// matrices returns the matrices of the state of a model's training.
func matrices(i *model.Info) []matrix {
	rows, atoms, dim := i.Training.Input.Rows, i.Training.Recipe.Base().Atoms, i.Training.Input.Dim
	if isPaper(i) {
		return []matrix{{SquaredGradients, []int{atoms, dim}}, {GradientSums, []int{rows, atoms}}, {SquareSums, []int{rows, atoms}}}
	}
	return []matrix{{CodeProducts, []int{atoms, atoms}}, {RowProducts, []int{atoms, dim}}, {Direction, []int{1, dim}}}
}

func isPaper(i *model.Info) bool {
	_, paper := i.Training.Recipe.(model.Paper)
	return paper
}

func (m Matrix) file() string { return modeldir.State + "/" + string(m) + ".npy" }

// State identifies a training and its next step. With the model and the matrices, a training resumes
// with the same results as without interruption.
type State struct {
	Batch   int    `json:"batch"`   // number of training rows of the next dictionary step
	Vectors string `json:"vectors"` // SHA-256 of the training vectors, in hexadecimal
	IDs     string `json:"ids"`     // SHA-256 of the ids of the training rows, each followed by a newline, in hexadecimal
}

// progress is the content of [modeldir.Progress], the last file of a checkpoint to be written.
type progress struct {
	State
	SHA256 map[string]string `json:"sha256"` // hashes of all other files, in hexadecimal
	Own    string            `json:"own"`    // hash of this JSON with "own" empty
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

// Save saves m and the state of its training, atomically. It calls each(x, f) once for every matrix x of the state.
// This call must pass all elements of x to f, in order and in parts of any length.
func Save(m *model.Model, to *modeldir.Target, s State, each func(m Matrix, f func(part []float32) error) error) error {
	p := progress{State: s, SHA256: make(map[string]string)}
	return m.SaveTo(to, func(dir string) (saved modeldir.Checkpoint, err error) {
		entries, err := os.ReadDir(dir)
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, modeldir.State), 0o777)
		}
		if err != nil {
			return saved, atomicfile.InFile(modeldir.State, err)
		}
		for _, e := range entries {
			if p.SHA256[e.Name()], err = hashFile(dir, e.Name()); err != nil {
				return saved, err
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
				return saved, err
			}
			p.SHA256[matrix.file()] = hex.EncodeToString(sum.Sum(nil))
		}
		data, err := p.seal()
		if err != nil {
			return saved, atomicfile.InFile(modeldir.Progress, err)
		}
		err = atomicfile.WriteIn(dir, modeldir.Progress, func(f io.Writer) error {
			_, err := f.Write(data)
			return err
		})
		if err == nil {
			err = atomicfile.InFile(modeldir.State, atomicfile.SyncDir(filepath.Join(dir, modeldir.State)))
		}
		return modeldir.Checkpoint{Hash: p.Own, Epoch: len(m.Info.Training.Epochs)}, err
	})
}

// readFile is [modeldir.ReadFile] for the path of a directory.
func readFile(dir, name string, read func(f *input.File) error) error {
	open, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer open.Close()
	return modeldir.ReadFile(open, name, read)
}

func hashFile(dir, name string) (sum string, err error) {
	hash := sha256.New()
	err = readFile(dir, name, func(f *input.File) error {
		_, err := io.Copy(hash, f)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// errDamaged reports a file whose hash differs from the hash in [modeldir.Progress].
var errDamaged = errors.New("damaged, or from another checkpoint: its SHA-256 differs from the one in " + modeldir.Progress)

// A Checkpoint is a model whose training can be resumed. Hash is its content hash.
type Checkpoint struct {
	*model.Model
	State
	Hash string

	dir  string
	sums map[string]string
}

// Open opens the checkpoint in dir and verifies the hashes of all files except the matrices, which
// [Checkpoint.Restore] verifies. It returns an error if dir is a model without a state.
func Open(dir string) (*Checkpoint, error) {
	c, err := modeldir.ReadStable(dir, func(*os.File) (*Checkpoint, error) { return open(dir) })
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
	var p progress
	data, err := input.ReadRegular(filepath.Join(dir, modeldir.Progress), modeldir.MaxInfo)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("is not a checkpoint: its training is finished, or stored no checkpoints")
	}
	if err == nil {
		err = p.check(m, data)
	}
	if err != nil {
		return nil, atomicfile.InFile(modeldir.Progress, err)
	}
	for file, want := range p.SHA256 {
		if filepath.Dir(file) != "." { // a matrix
			continue
		}
		sum, err := hashFile(dir, file)
		if err == nil && sum != want {
			err = atomicfile.InFile(file, errDamaged)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Checkpoint{m, p.State, p.Own, dir, p.SHA256}, nil
}

// check returns an error unless p, read from data, is the progress of m.
func (p *progress) check(m *model.Model, data []byte) error {
	rows := m.Info.Training.Input.Rows
	switch paper := isPaper(&m.Info); {
	case paper != (m.Codes != nil) || paper && m.Info.Rows() != rows:
		return errors.New("the model's codes are not the codes of this training")
	case p.Batch < 1 || p.Batch > rows:
		return fmt.Errorf("wrong number of rows of a dictionary step (got %d, want 1 to %d)", p.Batch, rows)
	}
	sealed, err := p.seal()
	if err == nil && !bytes.Equal(data, sealed) {
		err = errors.New("damaged: its SHA-256 differs from the one that it stores")
	}
	return err
}

// Restore calls use for each matrix of the state. The function read sets part to the next elements of the
// matrix. Restore returns the error of use, or an error if a file has the wrong shape or hash, or if use
// doesn't read all elements. Hashes are verified after use has returned.
func (c *Checkpoint) Restore(use func(m Matrix, read func(part []float32) error) error) error {
	for _, matrix := range matrices(&c.Info) {
		err := readFile(c.dir, matrix.file(), func(f *input.File) error {
			hash := sha256.New()
			a, err := npy.Open(bufio.NewReaderSize(io.TeeReader(f, hash), 1<<20), f.Size())
			if err == nil {
				err = npy.Expect[float32](a, matrix.shape...)
			}
			if err == nil {
				err = use(matrix.Matrix, a.ReadNext)
			}
			if err == nil {
				err = a.End()
			}
			if err == nil && hex.EncodeToString(hash.Sum(nil)) != c.sums[matrix.file()] {
				err = errDamaged
			}
			return err
		})
		if err != nil {
			return &vectors.InputError{File: c.dir, Err: err}
		}
	}
	return nil
}
