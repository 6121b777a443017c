package model

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
	"overcomplete/internal/npy"
)

// A checkpoint is a model with a state beside it: the matrices of [State], and
// progressFile, which is written last and has the hashes of all the others.
const (
	stateDir     = "state"
	progressFile = stateDir + "/state.json"
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

// State is what a training needs beside the model to go on as if it had never
// stopped.
type State struct {
	Batch   int    // words of the next dictionary step
	Vectors string // SHA-256 of the vectors that are trained on, in hexadecimal
	Words   string // and of their words, each with a newline

	// Each calls f with the elements of matrix m, in order and in parts of any
	// length. It returns the first error of f.
	Each func(m Matrix, f func(part []float32) error) error
}

// Matrices returns those of a training's state.
func (i *Info) Matrices() []Matrix {
	if i.Training.Recipe.makesCodes() {
		return []Matrix{SquaredGradients, GradientSums, SquareSums}
	}
	return []Matrix{CodeProducts, RowProducts, Direction}
}

// shape returns the rows and columns of a matrix of the state.
func (i *Info) shape(m Matrix) []int {
	words, atoms, dim := i.Training.Input.Words, i.Training.Recipe.Base().Atoms, i.Training.Input.Dim
	switch m {
	case GradientSums, SquareSums:
		return []int{words, atoms}
	case CodeProducts:
		return []int{atoms, atoms}
	case Direction:
		return []int{1, dim}
	}
	return []int{atoms, dim}
}

func (m Matrix) file() string { return stateDir + "/" + string(m) + ".npy" }

// SaveCheckpoint is [Model.SaveOver] for a model whose training will go on: it writes the
// state, too. If it fails nothing of the new checkpoint is kept, since there will be
// another one. It returns what tells this checkpoint from all others, as [Seal] does.
func (m *Model) SaveCheckpoint(dir string, may func(path string) error, s State) (seal string, err error) {
	err = atomicfile.WriteDir(dir, false, may, func(dir string) error {
		if err := m.write(dir); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, stateDir), 0o777); err != nil {
			return inFile(stateDir, err)
		}
		p := progress{Batch: s.Batch, Vectors: s.Vectors, Words: s.Words, SHA256: make(map[string]string)}
		for _, file := range m.files() {
			var err error
			if p.SHA256[file], err = hashFile(dir, file); err != nil {
				return err
			}
		}
		for _, matrix := range m.Info.Matrices() {
			hash := sha256.New()
			err := atomicfile.WriteIn(dir, matrix.file(), func(f io.Writer) error {
				f = io.MultiWriter(f, hash)
				if err := npy.WriteHeader(f, npy.Header{Type: "<f4", Shape: m.Info.shape(matrix)}); err != nil {
					return err
				}
				return s.Each(matrix, func(part []float32) error { return npy.WriteElements(f, part) })
			})
			if err != nil {
				return err
			}
			p.SHA256[matrix.file()] = hex.EncodeToString(hash.Sum(nil))
		}
		sealed, err := p.sealed()
		if err != nil {
			return inFile(progressFile, err)
		}
		seal = p.Own
		err = atomicfile.WriteIn(dir, progressFile, func(f io.Writer) error {
			_, err := f.Write(sealed)
			return err
		})
		if err != nil {
			return err
		}
		return inFile(stateDir, atomicfile.SyncDir(filepath.Join(dir, stateDir)))
	})
	return seal, err
}

// Seal returns what tells the checkpoint in dir from all others: the hash that its state.json
// has of itself and so of all that is in dir.
func Seal(dir string) (string, error) {
	var p progress
	data, err := input.ReadRegular(filepath.Join(dir, progressFile), mostInfo)
	if err == nil {
		err = parseJSON(data, &p)
	}
	return p.Own, err
}

// progress is the content of progressFile.
type progress struct {
	Batch   int               `json:"batch"`
	Vectors string            `json:"vectors"`
	Words   string            `json:"words"`
	SHA256  map[string]string `json:"sha256"` // of all other files, in hexadecimal
	Own     string            `json:"own"`    // SHA-256 of this with "own" empty
}

// sealed returns the file that p is.
func (p *progress) sealed() ([]byte, error) {
	p.Own = ""
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	p.Own = hex.EncodeToString(sum[:])
	return json.Marshal(p)
}

// files are those of m in its directory.
func (m *Model) files() []string {
	files := []string{infoFile, dictionaryFile}
	if m.Codes != nil {
		files = append(files, m.Info.Encoding.Input.rowsFile(), codesFile)
	}
	if m.Dictionary.Mean != nil {
		files = append(files, meanFile)
	}
	return files
}

// hashFile returns the SHA-256 of a file of the directory.
func hashFile(dir, name string) (sum string, err error) {
	hash := sha256.New()
	err = readFile(dir, name, func(f *input.File) error {
		_, err := io.Copy(hash, f)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// errDamaged is the error of a file whose hash is not that in progressFile.
var errDamaged = errors.New("damaged, or of another checkpoint: its SHA-256 is not that in " + progressFile)

// A Checkpoint is a model whose training can go on, and where its state is.
type Checkpoint struct {
	*Model
	Batch   int    // as in [State]
	Vectors string // likewise
	Words   string // likewise
	Seal    string // see [Seal]

	dir  string
	sums map[string]string
}

// OpenCheckpoint reads the model of the checkpoint in dir, and makes sure that its files
// are those that were written together. It is an error if there is only a model, without a
// state: its training is finished, or had no checkpoints.
func OpenCheckpoint(dir string) (*Checkpoint, error) {
	return unreplaced(dir, func() (*Checkpoint, error) { return openCheckpoint(dir) })
}

func openCheckpoint(dir string) (*Checkpoint, error) {
	m, err := Open(dir)
	if err != nil {
		return nil, err
	}
	var p progress
	data, err := input.ReadRegular(filepath.Join(dir, progressFile), mostInfo)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, inputError(dir, errors.New("is a model, but no checkpoint: its training is finished, or kept none"))
	case err == nil:
		err = parseJSON(data, &p)
	}
	t := &m.Info.Training
	if made := t.Recipe.makesCodes(); err == nil && (made != (m.Codes != nil) || made && m.Info.Words() != t.Input.Words) {
		err = errors.New("is beside codes that are not those of the training")
	}
	if err == nil && (p.Batch < 1 || p.Batch > m.Info.Training.Input.Words) {
		err = fmt.Errorf("a dictionary step of %d words", p.Batch)
	}
	if err == nil {
		var whole []byte
		if whole, err = p.sealed(); err == nil && !bytes.Equal(data, whole) {
			err = errors.New("damaged: its SHA-256 is not that in it")
		}
	}
	if err != nil {
		return nil, inputError(dir, inFile(progressFile, err))
	}
	for _, file := range m.files() {
		sum, err := hashFile(dir, file)
		if err == nil && sum != p.SHA256[file] {
			err = inFile(file, errDamaged)
		}
		if err != nil {
			return nil, inputError(dir, err)
		}
	}
	return &Checkpoint{m, p.Batch, p.Vectors, p.Words, p.Own, dir, p.SHA256}, nil
}

// ReadMatrix reads one matrix of the state. It calls use with a function that fills part
// with the matrix's next elements. It is an error if the file does not have the shape
// that the model implies, if use does not read all of it, or if what was read is not what
// was written; an error of use is returned.
func (c *Checkpoint) ReadMatrix(matrix Matrix, use func(read func(part []float32) error) error) error {
	err := readFile(c.dir, matrix.file(), func(f *input.File) error {
		hash := sha256.New()
		r := bufio.NewReaderSize(io.TeeReader(f, hash), 1<<20)
		h, err := npy.ReadHeader(r)
		if err != nil {
			return err
		}
		if shape := c.Info.shape(matrix); h.Type != "<f4" || h.Fortran || !slices.Equal(h.Shape, shape) {
			return fmt.Errorf("array of type %s and shape %v, want <f4 and %v", h.Type, h.Shape, shape)
		}
		if err := use(func(part []float32) error { return npy.ReadElements(r, part) }); err != nil {
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
	return inputError(c.dir, err)
}
