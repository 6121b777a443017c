package model

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/csr"
	"overcomplete/internal/float32s"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/internal/parallel"
	"overcomplete/vectors"
)

// Is reports whether path is a model, that is, a directory with model.json, and not vectors.
func Is(path string) bool { return modeldir.Contains(filepath.Join(path, modeldir.Info)) }

// Open opens the model in the directory dir. It returns a [*vectors.InputError], which names the file, if a file is
// missing or damaged, if words, codes, dictionary and mean don't agree with each other and with Info, if the codes
// are not valid ([vectors.CSR.Validate]), or if a number is not finite.
func Open(dir string) (*Model, error) { return readStable(dir, open) }

func readStable(dir string, read func(dir *os.File) (*Model, error)) (*Model, error) {
	m, err := modeldir.ReadStable(dir, read)
	if err != nil {
		return nil, inputError(dir, err)
	}
	return m, nil
}

// inputError returns err as a [*vectors.InputError] about the model at path.
func inputError(path string, err error) error {
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err // the path already names the file
	}
	return &vectors.InputError{File: path, Err: err}
}

func open(dir *os.File) (*Model, error) {
	m, err := openDictionary(dir)
	if err != nil {
		return nil, err
	}
	if m.Info.Encoding == nil {
		return m, nil
	}
	r := &rowFiles{info: m.Info}
	defer r.close()
	if err := r.open(dir); err != nil {
		return nil, err
	}
	m.Codes, err = r.all()
	return m, err
}

// OpenDictionary opens a model, as [Open] does, without its codes: Codes is nil, although Info may describe them. The
// result can encode. It can be saved only if the model on disk has no codes either.
func OpenDictionary(dir string) (*Model, error) { return readStable(dir, openDictionary) }

func openDictionary(dir *os.File) (m *Model, err error) {
	m = new(Model)
	if m.Info, err = readInfo(dir); err != nil {
		return nil, err
	}
	dim := m.Info.Training.Input.Dim
	m.Dictionary.Dim = dim
	if m.Dictionary.Atoms, err = readArray(dir, modeldir.Dictionary, m.Info.Training.Recipe.Base().Atoms, dim); err != nil {
		return nil, err
	}
	if t := m.Info.Training.Themes; t != nil {
		if m.Dictionary.Themes, err = readArray(dir, modeldir.Themes, t.Len(), dim); err != nil {
			return nil, err
		}
	}
	if m.Info.Training.Recipe.centred() {
		if m.Dictionary.Mean, err = readArray(dir, modeldir.Mean, dim); err != nil {
			return nil, err
		}
		return m, m.validateDictionary()
	}
	if err := modeldir.ReadFile(dir, modeldir.Mean, func(*input.File) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: exists, but %s says that the input was not centred", modeldir.Mean, modeldir.Info)
	}
	return m, m.validateDictionary()
}

func readInfo(dir *os.File) (info Info, err error) {
	if stat, err := dir.Stat(); err == nil && !stat.IsDir() {
		return info, fmt.Errorf("not a model (got a file, want a directory with %s); if it is an exported model, use the directory that it was exported from", modeldir.Info)
	}
	var data []byte
	err = modeldir.ReadFile(dir, modeldir.Info, func(f *input.File) (err error) {
		data, err = f.ReadAll(modeldir.MaxInfo)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return info, fmt.Errorf("not a model: there is no %s in it", modeldir.Info)
	}
	if err != nil {
		return info, err
	}
	return parseInfo(data)
}

func parseInfo(data []byte) (Info, error) {
	var info Info
	var version struct{ Format int }
	err := parseJSON(data, &version)
	if err == nil && version.Format != FormatVersion {
		err = fmt.Errorf("format version is %d, want %d: train the model again with this version", version.Format, FormatVersion)
	}
	if err == nil {
		err = parseJSON(data, &info)
	}
	if err == nil {
		err = info.validate()
	}
	return info, atomicfile.InFile(modeldir.Info, err)
}

func parseJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path := strings.Split(wrong.Field, ".") // json's message names Go types
		return fmt.Errorf("%.100q has the wrong type, %.60s", path[len(path)-1], wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("%.200v", err) // shortened, because it may quote a number of any length
	}
	return nil
}

func readArray(dir *os.File, name string, shape ...int) (data []float32, err error) {
	err = modeldir.ReadFile(dir, name, func(f *input.File) error {
		array, err := npy.Open(f, f.Size())
		if err == nil {
			data, err = npy.Read[float32](array, shape...)
		}
		return err
	})
	return data, err
}

// validate returns an error unless the parts of m agree and their numbers are finite. The error names the file with the
// problem.
func (m *Model) validate() error {
	if err := m.validateDictionary(); err != nil {
		return err
	}
	switch rows, atoms := m.Info.Rows(), m.Dictionary.Len(); {
	case m.Info.Encoding == nil && m.Codes == nil:
		return nil
	case m.Codes == nil:
		return fmt.Errorf("%s: missing, although %s describes the codes", modeldir.Codes, modeldir.Info)
	case m.Info.Encoding == nil:
		return fmt.Errorf("%s: no description of the codes", modeldir.Info)
	case m.Codes.Rows != rows || m.Codes.Cols != atoms:
		return fmt.Errorf("%s: %d×%d matrix, %s says %d rows and %d atoms", modeldir.Codes, m.Codes.Rows, m.Codes.Cols, modeldir.Info, rows, atoms)
	}
	e := m.Info.Encoding
	return cmp.Or(atomicfile.InFile(e.Input.rowsFile(), e.checkRows(m.Codes.IDs, m.Codes.Texts)), atomicfile.InFile(modeldir.Codes, m.Codes.Validate()))
}

// validateDictionary is validate without words and codes.
func (m *Model) validateDictionary() error {
	if err := m.Info.validate(); err != nil {
		return atomicfile.InFile(modeldir.Info, err)
	}
	dim, atoms := m.Info.Training.Input.Dim, m.Info.Training.Recipe.Base().Atoms
	switch {
	case m.Dictionary.Dim != dim || len(m.Dictionary.Atoms)%dim != 0 || m.Dictionary.Len() != atoms:
		return fmt.Errorf("%s: %d values, %s says %d atoms of length %d", modeldir.Dictionary, len(m.Dictionary.Atoms), modeldir.Info, atoms, dim)
	case m.Info.Training.Recipe.centred() && len(m.Dictionary.Mean) != dim:
		return fmt.Errorf("%s: %d values, %s says %d", modeldir.Mean, len(m.Dictionary.Mean), modeldir.Info, dim)
	case !m.Info.Training.Recipe.centred() && m.Dictionary.Mean != nil:
		return fmt.Errorf("%s: %d values, but %s says that the input was not centred", modeldir.Mean, len(m.Dictionary.Mean), modeldir.Info)
	case len(m.Dictionary.Themes) != m.Info.Training.Themes.Len()*dim:
		return fmt.Errorf("%s: %d values, %s says %d themes of length %d", modeldir.Themes, len(m.Dictionary.Themes), modeldir.Info, m.Info.Training.Themes.Len(), dim)
	}
	return cmp.Or(
		atomicfile.InFile(modeldir.Dictionary, checkFinite(m.Dictionary.Atoms)),
		atomicfile.InFile(modeldir.Mean, checkFinite(m.Dictionary.Mean)),
		atomicfile.InFile(modeldir.Themes, checkUnit(m.Dictionary.Themes, dim)))
}

func checkUnit(x []float32, dim int) error {
	for i := 0; i < len(x); i += dim {
		square := float32s.Squares(x[i : i+dim])
		if !(math.Abs(square-1) < 1e-3) {
			return fmt.Errorf("row %d has the norm %.3g, want 1", i/dim+1, math.Sqrt(square))
		}
	}
	return nil
}

func checkFinite(values []float32) error {
	if i := float32s.NotFinite(values); i >= 0 {
		return fmt.Errorf("value %d is %v", i, values[i])
	}
	return nil
}

// An OutputError reports an output path that can't be written, such as a directory that must not be replaced.
// Functions that check the path before they begin, such as train.File and encode.File, return it.
type OutputError = atomicfile.OutputError

// Save saves m as the directory dir. It writes a temporary directory beside dir, flushes it to disk and renames it.
// Without force, dir must not exist. With force, Save replaces a model without labels or an empty directory, but
// nothing else. Equal models give identical files.
//
// If writing fails, the previous content of dir remains. Save checks dir when it renames: if dir may not be replaced,
// the temporary directory is kept, and the error names it.
func (m *Model) Save(dir string, force bool) error {
	return m.SaveTo(modeldir.NewTarget(dir, force), nil)
}

// SaveTo is [Model.Save] for a target. The function extra, if not nil, makes the model a checkpoint by adding files to
// the temporary directory.
func (m *Model) SaveTo(to *modeldir.Target, extra func(dir string) (modeldir.Checkpoint, error)) error {
	if err := to.Begin(); err != nil {
		return err
	}
	var c modeldir.Checkpoint
	err := m.write(to.Temp)
	if err == nil && extra != nil {
		c, err = extra(to.Temp)
	}
	if err != nil {
		return to.Abort(atomicfile.InFile(to.Path, err))
	}
	return to.Commit(c)
}

func (m *Model) write(dir string) error {
	if err := m.validate(); err != nil {
		return err
	}
	if m.Codes == nil {
		return m.writeDictionary(dir)
	}
	return m.writeDictionary(dir, func() error {
		return atomicfile.WriteIn(dir, m.Info.Encoding.Input.rowsFile(), func(f io.Writer) error {
			b := bufio.NewWriter(f)
			return cmp.Or(writeRows(b, m.Codes.IDs, m.Codes.Texts, 0), b.Flush())
		})
	}, func() error {
		return atomicfile.WriteIn(dir, modeldir.Codes, func(f io.Writer) error { return csr.Write(f, &m.Codes.CSR) })
	})
}

// writeDictionary writes the files of m except words and codes. The functions in the slice others write these. All
// functions run concurrently, so that the disk flushes all files at once. It returns the first error in their order.
func (m *Model) writeDictionary(dir string, others ...func() error) error {
	info := m.Info
	info.Format = FormatVersion
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return atomicfile.InFile(modeldir.Info, err)
	}
	content := func(data []byte) func(io.Writer) error {
		return func(f io.Writer) error { _, err := f.Write(data); return err }
	}
	array := func(data []float32, shape ...int) func(io.Writer) error {
		return func(f io.Writer) error { return npy.Write(f, shape, data) }
	}
	d := &m.Dictionary
	for _, file := range []struct {
		name  string
		has   bool
		write func(io.Writer) error
	}{
		{modeldir.Info, true, content(append(text, '\n'))},
		{modeldir.Dictionary, true, array(d.Atoms, d.Len(), d.Dim)},
		{modeldir.Themes, d.Themes != nil, array(d.Themes, len(d.Themes)/d.Dim, d.Dim)},
		{modeldir.Labels, m.Labels != nil, content(m.Labels)},
		{modeldir.Mean, d.Mean != nil, array(d.Mean, d.Dim)},
	} {
		if file.has {
			others = append(others, func() error { return atomicfile.WriteIn(dir, file.name, file.write) })
		}
	}
	errs := make([]error, len(others))
	parallel.With(make([]struct{}, len(others)), len(others), func(_ struct{}, i int) { errs[i] = others[i]() })
	return cmp.Or(errs...)
}
