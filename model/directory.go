package model

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/input"
	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// The files of a model directory.
const (
	infoFile       = "model.json"
	wordsFile      = "words.txt"
	textsFile      = "texts.jsonl"
	codesFile      = "codes.npz"
	dictionaryFile = "dictionary.npy"
	meanFile       = "mean.npy"
)

// CoherenceFile is the name of the file of a model directory with what was measured of
// its dimensions: see [overcomplete/interpret.Coherence]. It is for the codes beside it, so
// that Save does not keep it, and no part of a Model.
const CoherenceFile = "coherence.json"

// Open reads the model at path, a directory or a .safetensors file. It returns a
// [*vectors.InputError], which names the file, if anything is missing or damaged, if words, codes,
// dictionary and mean do not fit each other and Info, if the codes are not valid
// ([vectors.CSR.Validate]), or if a number is not finite.
func Open(path string) (*Model, error) {
	read := open
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		read = openSafetensors
	}
	m, err := unreplaced(path, func() (*Model, error) { return read(path) })
	if err != nil {
		return nil, inputError(path, err)
	}
	return m, nil
}

// inputError returns err as a [*vectors.InputError] of the model at path.
func inputError(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the file is named once
	}
	return &vectors.InputError{File: path, Err: err}
}

// unreplaced returns what read returns of the directory at path, which must be the same
// all the while: another process may replace it between two of its files.
func unreplaced[T any](path string, read func() (T, error)) (value T, err error) {
	const tries = 10
	for range tries {
		dir, err := os.Open(path) // while it is open, no other directory gets its inode number
		if err != nil {
			return read()
		}
		before, err := dir.Stat()
		value, failed := read()
		after, gone := os.Stat(path)
		dir.Close()
		if err != nil || gone != nil || os.SameFile(before, after) {
			return value, failed
		}
	}
	return value, fmt.Errorf("has been replaced %d times while it was read", tries)
}

func open(dir string) (*Model, error) {
	m, err := openDictionary(dir)
	if err != nil {
		return nil, err
	}
	if m.Info.Encoding == nil {
		return m, m.validate()
	}
	m.Codes = new(vectors.Sparse)
	err = readFile(dir, m.Info.Encoding.Input.rowsFile(), func(f *input.File) error {
		m.Codes.Words, m.Codes.Texts, err = newRowReader(f, m.Info.Encoding).all()
		return err
	})
	if err != nil {
		return nil, err
	}
	err = readFile(dir, codesFile, func(f *input.File) error {
		codes, err := csr.Read(f, f.Size(), m.Info.Words(), m.Dictionary.Len())
		if err == nil {
			m.Codes.CSR = *codes
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// OpenDictionary is [Open] without the words and their codes: Codes of the model that it
// returns is nil, although Info may say how they were made. Such a model is for encoding: it
// can't be saved as it is.
func OpenDictionary(dir string) (*Model, error) {
	if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
		m, err := Open(dir)
		if err != nil {
			return nil, err
		}
		m.Codes = nil
		return m, nil
	}
	m, err := unreplaced(dir, func() (*Model, error) {
		m, err := openDictionary(dir)
		if err == nil {
			err = m.validateDictionary()
		}
		return m, err
	})
	if err != nil {
		return nil, inputError(dir, err)
	}
	return m, nil
}

func openDictionary(dir string) (m *Model, err error) {
	m = new(Model)
	if m.Info, err = readInfo(dir); err != nil {
		return nil, err
	}
	dim := m.Info.Training.Input.Dim
	m.Dictionary.Dim = dim
	if m.Dictionary.Atoms, err = readArray(dir, dictionaryFile, m.Info.Training.Recipe.Base().Atoms, dim); err != nil {
		return nil, err
	}
	if m.Info.Training.Recipe.centred() {
		m.Dictionary.Mean, err = readArray(dir, meanFile, dim)
		return m, err
	}
	if _, err := os.Lstat(filepath.Join(dir, meanFile)); err == nil {
		return nil, fmt.Errorf("%s: exists, but %s says that the input was not centred", meanFile, infoFile)
	}
	return m, nil
}

func readInfo(dir string) (Info, error) {
	var info Info
	switch stat, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return info, err.(*fs.PathError).Err // the caller names dir
	case err == nil && !stat.IsDir():
		return info, errors.New("not a model's directory")
	}
	data, err := input.ReadRegular(filepath.Join(dir, infoFile), mostInfo)
	if errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("not a model: there is no %s in it", infoFile)
	}
	if err != nil {
		return info, inFile(infoFile, err)
	}
	return parseInfo(data)
}

// mostInfo is more bytes than a model.json has. That of a shard of a billion words has a
// number for each block of them.
const mostInfo = 1 << 26

// parseInfo parses and checks a model.json.
func parseInfo(data []byte) (Info, error) {
	var info Info
	version, err := formatVersion(data)
	switch {
	case err != nil:
	case version != FormatVersion:
		err = fmt.Errorf("format version is %d, want %d", version, FormatVersion)
	default:
		err = parseJSON(data, &info)
	}
	if err == nil {
		err = info.validate()
	}
	return info, inFile(infoFile, err)
}

// formatVersion returns the version that a model.json declares.
func formatVersion(data []byte) (int, error) {
	var info struct{ Format int }
	err := parseJSON(data, &info)
	return info.Format, err
}

func parseJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path := strings.Split(wrong.Field, ".") // in which there are names of this program's types, too
		return fmt.Errorf("%.100q can't be of the type %.60s", path[len(path)-1], wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("%.200v", err) // a number in it can be of any length
	}
	return nil
}

// readArray reads a file that must hold an array of the given shape.
func readArray(dir, name string, shape ...int) (data []float32, err error) {
	err = readFile(dir, name, func(f *input.File) error {
		array, err := npy.Open(f, f.Size())
		if err == nil {
			data, err = array.Float32(shape...)
		}
		return err
	})
	return data, err
}

// readFile calls read with an open file of the directory.
func readFile(dir, name string, read func(f *input.File) error) error {
	f, err := input.Open(filepath.Join(dir, name))
	if err != nil {
		return inFile(name, err)
	}
	defer f.Close()
	return inFile(name, read(f))
}

// inFile says which file of the directory err is about.
func inFile(name string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the file is named once
	}
	return fmt.Errorf("%s: %w", name, err)
}

// validate returns an error unless the parts of m agree and hold finite numbers.
// It names the file that a part is kept in.
func (m *Model) validate() error {
	if err := m.validateDictionary(); err != nil {
		return err
	}
	switch words, atoms := m.Info.Words(), m.Dictionary.Len(); {
	case m.Info.Encoding == nil && m.Codes == nil:
		return nil
	case m.Codes == nil:
		return fmt.Errorf("%s: there are no codes, but %s says how they were made", codesFile, infoFile)
	case m.Info.Encoding == nil:
		return fmt.Errorf("%s: does not say how the codes were made", infoFile)
	case m.Codes.Rows != words || m.Codes.Cols != atoms:
		return fmt.Errorf("%s: %d×%d matrix, %s says %d words and %d atoms", codesFile, m.Codes.Rows, m.Codes.Cols, infoFile, words, atoms)
	}
	e := m.Info.Encoding
	return cmp.Or(inFile(e.Input.rowsFile(), e.checkRows(m.Codes.Words, m.Codes.Texts)), inFile(codesFile, m.Codes.Validate()))
}

// validateDictionary is validate for all but words and codes.
func (m *Model) validateDictionary() error {
	if err := m.Info.validate(); err != nil {
		return inFile(infoFile, err)
	}
	dim, atoms := m.Info.Training.Input.Dim, m.Info.Training.Recipe.Base().Atoms
	switch {
	case m.Dictionary.Dim != dim || len(m.Dictionary.Atoms)%dim != 0 || m.Dictionary.Len() != atoms:
		return fmt.Errorf("%s: %d values, %s says %d atoms of length %d", dictionaryFile, len(m.Dictionary.Atoms), infoFile, atoms, dim)
	case m.Info.Training.Recipe.centred() && len(m.Dictionary.Mean) != dim:
		return fmt.Errorf("%s: %d values, %s says %d", meanFile, len(m.Dictionary.Mean), infoFile, dim)
	case !m.Info.Training.Recipe.centred() && m.Dictionary.Mean != nil:
		return fmt.Errorf("%s: %d values, but %s says that the input was not centred", meanFile, len(m.Dictionary.Mean), infoFile)
	}
	if err := checkFinite(m.Dictionary.Atoms); err != nil {
		return inFile(dictionaryFile, err)
	}
	return inFile(meanFile, checkFinite(m.Dictionary.Mean))
}

func checkFinite(values []float32) error {
	for i, v := range values {
		if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("value %d is %v", i, v)
		}
	}
	return nil
}

// OutputError reports that a model cannot be written where it was asked for.
type OutputError = atomicfile.OutputError

// CheckSave returns nil if [Model.Save] can write the directory dir, or else an
// [*OutputError]. Call it before a training, so that the training is not in vain.
//
// may decides whether what is at dir may be replaced, as [MayReplace] does. To find out
// whether it can be, CheckSave renames what is there and renames it back.
func CheckSave(dir string, may func(path string) error) error {
	if Contains(dir) {
		return &OutputError{Path: dir, Err: ErrContained}
	}
	if dir == "-" {
		return &OutputError{Path: dir, Err: errors.New("a model is a directory, and not a stream")}
	}
	return atomicfile.CheckDir(dir, may)
}

// Save writes m, with the current FormatVersion, as the directory dir. The directory
// is written under a temporary name and renamed when all of it is on disk. If Save
// fails, what was at dir before is still there. If the model is whole but cannot be
// renamed, because something has come to be at dir since [CheckSave], it is kept under
// the temporary name, which the error tells. Equal models give identical files.
//
// Without force, nothing may be at dir. With force, a model or an empty directory
// there will be replaced, but nothing else.
func (m *Model) Save(dir string, force bool) error { return m.SaveOver(dir, MayReplace(force)) }

// SaveOver is [Model.Save] where may decides whether what is at dir may be replaced.
func (m *Model) SaveOver(dir string, may func(path string) error) error {
	return atomicfile.WriteDir(dir, true, may, m.write)
}

// Contains reports whether the file at path, which need not exist, is in the
// directory of a model.
func Contains(path string) bool {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	dir := filepath.Dir(path)
	if filepath.Base(dir) == stateDir {
		dir = filepath.Dir(dir)
	}
	_, err := os.Lstat(filepath.Join(dir, infoFile))
	return err == nil
}

// IsCheckpoint reports whether the model at path is one whose training is to go on.
func IsCheckpoint(path string) bool {
	_, err := os.Lstat(filepath.Join(path, stateDir))
	return err == nil
}

// labelsFile is the name of what people say of a model's dimensions. It is no part of a
// Model, and it is theirs: a directory that has it is not replaced, not by force either.
const labelsFile = "labels.json"

// LabelsPath returns where the labels of the dimensions of the model at path are kept (see
// [overcomplete/interpret.Labels]), whether there are any or not. It is an error if there
// can be none: a .safetensors file has no place for them, and while a model is trained its
// directory is replaced time and again. That it can't be told is a [*fs.PathError].
func LabelsPath(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s: labels are kept in the directory of a model, and this is none", path)
	}
	if IsCheckpoint(path) {
		return "", fmt.Errorf("%s: is a checkpoint, and its dimensions will not be those of the trained model: label that", path)
	}
	return filepath.Join(path, labelsFile), nil
}

// A Mark tells the model that is in a directory from those that replace it.
type Mark struct {
	dir  string
	info fs.FileInfo // of model.json, which nothing changes in place
}

// MarkOf returns the mark of the model in dir. Take it before the model is opened.
func MarkOf(dir string) (Mark, error) {
	info, err := os.Stat(filepath.Join(dir, infoFile))
	return Mark{dir, info}, err
}

// Check returns an error unless the same model is still there.
func (m Mark) Check() error {
	is, err := MarkOf(m.dir)
	if err == nil && os.SameFile(is.info, m.info) && is.info.ModTime().Equal(m.info.ModTime()) {
		return nil
	}
	return fmt.Errorf("%s is not the model any more that was opened: open it again", m.dir)
}

// Hold calls write, which writes something about the model beside it, if the same model is still
// there. Nobody replaces it meanwhile, but on Windows, where directories have no locks.
func (m Mark) Hold(ctx context.Context, write func() error) error {
	unlock, err := atomicfile.Lock(ctx, m.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.Check(); err != nil {
		return err
	}
	return write()
}

// Displaced returns where the model is that was at dir, if a process was killed at the
// moment in which it replaced it, or "". That can happen only on file systems that can't
// exchange two directories.
func Displaced(dir string) string { return atomicfile.Displaced(dir) }

// ErrContained says why nothing else can be written where [Contains] is true.
var ErrContained = errors.New("is in the directory of a model, which holds only the model's own files")

// MayReplace returns what decides whether the directory at path may be replaced: with force, if
// it is a model or empty, and else not.
func MayReplace(force bool) func(path string) error {
	if force {
		return checkReplaceable
	}
	return func(path string) error {
		if _, err := os.Lstat(filepath.Join(path, stateDir)); err == nil {
			return errors.New("already exists, a checkpoint: --resume goes on with it, --force replaces it")
		}
		return errors.New("already exists; --force replaces a model")
	}
}

// checkReplaceable returns an error unless dir is an empty directory, or a
// model with nothing else in it.
func checkReplaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	data, _ := input.ReadRegular(filepath.Join(dir, infoFile), mostInfo)
	if version, err := formatVersion(data); err != nil || version < 1 {
		return errors.New("is neither empty nor a model, so it is not replaced")
	}
	known := []string{infoFile, wordsFile, textsFile, codesFile, dictionaryFile, meanFile, CoherenceFile}
	if err := checkOnly(entries, known, stateDir); err != nil {
		return err
	}
	entries, err = os.ReadDir(filepath.Join(dir, stateDir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	known = []string{filepath.Base(progressFile)}
	for _, m := range []Matrix{SquaredGradients, GradientSums, SquareSums, CodeProducts, RowProducts, Direction} {
		known = append(known, filepath.Base(m.file()))
	}
	return checkOnly(entries, known, "")
}

// checkOnly returns an error unless entries are some of the known files and,
// perhaps, a directory.
func checkOnly(entries []os.DirEntry, known []string, dir string) error {
	for _, e := range entries {
		if e.Name() == labelsFile {
			return fmt.Errorf("is not replaced, for people gave its dimensions labels: move its %s away, or write to another directory", labelsFile)
		}
		if file := slices.Contains(known, e.Name()) && e.Type().IsRegular(); !file && !(e.IsDir() && e.Name() == dir) {
			return fmt.Errorf("is not replaced, for it holds %q, which is no file of a model; move it away", e.Name())
		}
	}
	return nil
}

// write writes the files of m into dir.
func (m *Model) write(dir string) error {
	if err := m.validate(); err != nil {
		return err
	}
	if m.Codes == nil {
		return m.writeDictionary(dir)
	}
	err := atomicfile.WriteIn(dir, m.Info.Encoding.Input.rowsFile(), func(f io.Writer) error {
		b := bufio.NewWriter(f)
		if err := writeRows(b, m.Codes.Words, m.Codes.Texts, 0); err != nil {
			return err
		}
		return b.Flush()
	})
	if err != nil {
		return err
	}
	err = atomicfile.WriteIn(dir, codesFile, func(f io.Writer) error {
		return csr.Write(f, &m.Codes.CSR)
	})
	if err != nil {
		return err
	}
	return m.writeDictionary(dir)
}

// writeDictionary writes the files of m but for words and codes.
func (m *Model) writeDictionary(dir string) error {
	info := m.Info
	info.Format = FormatVersion
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return inFile(infoFile, err)
	}
	err = atomicfile.WriteIn(dir, infoFile, func(f io.Writer) error {
		_, err := fmt.Fprintf(f, "%s\n", text)
		return err
	})
	if err != nil {
		return err
	}
	err = atomicfile.WriteIn(dir, dictionaryFile, func(f io.Writer) error {
		return npy.Write(f, []int{m.Dictionary.Len(), m.Dictionary.Dim}, m.Dictionary.Atoms)
	})
	if err == nil && m.Labels != nil {
		err = atomicfile.WriteIn(dir, labelsFile, func(f io.Writer) error {
			_, err := f.Write(m.Labels)
			return err
		})
	}
	if err != nil || m.Dictionary.Mean == nil {
		return err
	}
	return atomicfile.WriteIn(dir, meanFile, func(f io.Writer) error {
		return npy.Write(f, []int{len(m.Dictionary.Mean)}, m.Dictionary.Mean)
	})
}
