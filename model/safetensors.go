package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/safetensors"
	"overcomplete/vectors"
)

// Names in a model's .safetensors file: see [Model.WriteSafetensors].
const (
	wordsTensor      = "words"
	textsTensor      = "texts"
	dictionaryTensor = "dictionary"
	meanTensor       = "mean"
	themesTensor     = "themes"
	indptrTensor     = "codes.indptr"
	indicesTensor    = "codes.indices"
	dataTensor       = "codes.data"
	infoMetadata     = modeldir.Info
)

// WriteSafetensors writes m as one .safetensors file, which [Open] reads. Before
// anything is written it returns an error if the parts of m do not fit each other or
// if a word contains a newline.
//
//	dictionary      F32, K×L
//	mean            F32, L       only if the input was centred
//	themes          F32, M×L     only if there are themes
//	codes.indptr    I64, V+1     the codes, as the arrays of a CSR matrix, if there are any
//	codes.indices   I32
//	codes.data      F32
//	words           U8           UTF-8, with a newline after each word; only if rows are words
//	texts           U8           the lines of texts.jsonl; only if rows are texts
//
// The metadata "model.json" is Info as JSON.
func (m *Model) WriteSafetensors(w io.Writer) error {
	if err := m.validate(); err != nil {
		return err
	}
	info := m.Info
	info.Format = FormatVersion
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	tensors := []safetensors.Tensor{safetensors.New(dictionaryTensor, []int{m.Dictionary.Len(), m.Dictionary.Dim}, m.Dictionary.Atoms)}
	if m.Dictionary.Mean != nil {
		tensors = append(tensors, safetensors.New(meanTensor, []int{len(m.Dictionary.Mean)}, m.Dictionary.Mean))
	}
	if t := info.Training.Themes; t != nil {
		tensors = append(tensors, safetensors.New(themesTensor, []int{t.Len(), m.Dictionary.Dim}, m.Dictionary.Themes))
	}
	if codes := m.Codes; codes != nil {
		name := info.Encoding.Input.rowsTensor()
		var lines bytes.Buffer
		if err := writeRows(&lines, codes.Words, codes.Texts, 0); err != nil {
			return modeldir.InFile(name, err)
		}
		tensors = append(tensors,
			safetensors.New(indptrTensor, []int{len(codes.Ptr)}, codes.Ptr),
			safetensors.New(indicesTensor, []int{len(codes.Index)}, codes.Index),
			safetensors.New(dataTensor, []int{len(codes.Value)}, codes.Value),
			safetensors.New(name, []int{lines.Len()}, lines.Bytes()))
	}
	return safetensors.Write(w, map[string]string{infoMetadata: string(text)}, tensors)
}

// rowsTensor returns the name of the tensor with the content of rowsFile.
func (in *Input) rowsTensor() string {
	if in.Texts {
		return textsTensor
	}
	return wordsTensor
}

// Is reports whether path is a model, that is, a directory with model.json or a .safetensors file with a model,
// and not vectors.
func Is(path string) bool {
	if stat, err := os.Stat(path); err == nil && stat.IsDir() {
		return modeldir.Contains(filepath.Join(path, modeldir.Info))
	}
	file, err := input.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	_, _, err = readHeader(file)
	return err == nil
}

// readHeader reads the header and model.json of a file of [Model.WriteSafetensors].
func readHeader(file *input.File) (f *safetensors.File, info string, err error) {
	head := make([]byte, 16)
	if n, _ := file.ReadAt(head, 0); !safetensors.Detect(head[:n]) {
		return nil, "", errors.New("not a model: neither a directory nor a .safetensors file")
	}
	if f, err = safetensors.Open(file, file.Size()); err != nil {
		return nil, "", err
	}
	info, ok := f.Metadata[infoMetadata]
	if !ok {
		return nil, "", fmt.Errorf("not a model: its metadata has no %q", infoMetadata)
	}
	return f, info, nil
}

// openSafetensors opens a file of [Model.WriteSafetensors].
func openSafetensors(path string) (*Model, error) {
	file, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, text, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	m := new(Model)
	if m.Info, err = parseInfo([]byte(text)); err != nil {
		return nil, err
	}
	words, dim, atoms := m.Info.Words(), m.Info.Training.Input.Dim, m.Info.Training.Recipe.Base().Atoms
	if m.Dictionary.Atoms, err = f.Float32(dictionaryTensor, atoms, dim); err != nil {
		return nil, err
	}
	m.Dictionary.Dim = dim
	if t := m.Info.Training.Themes; t != nil {
		if m.Dictionary.Themes, err = f.Float32(themesTensor, t.Len(), dim); err != nil {
			return nil, err
		}
	}
	if m.Info.Training.Recipe.centred() {
		if m.Dictionary.Mean, err = f.Float32(meanTensor, dim); err != nil {
			return nil, err
		}
	} else if slices.Contains(f.Names(), meanTensor) {
		return nil, fmt.Errorf("there is a tensor %q, but %s says that the input was not centred", meanTensor, infoMetadata)
	}
	if m.Info.Encoding == nil {
		return m, m.validate()
	}
	in := &m.Info.Encoding.Input
	lines, err := f.Text(in.rowsTensor())
	if err != nil {
		return nil, err
	}
	m.Codes = &vectors.Sparse{CSR: vectors.CSR{Rows: words, Cols: atoms}}
	if m.Codes.Words, m.Codes.Texts, err = newRowReader(lines, m.Info.Encoding).all(lines.Size()); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", in.rowsTensor(), err)
	}
	if m.Codes.Ptr, err = f.Int64(indptrTensor, words+1); err != nil {
		return nil, err
	}
	nonzeros := int(m.Codes.Ptr[words])
	if m.Codes.Index, err = f.Int32(indicesTensor, nonzeros); err != nil {
		return nil, err
	}
	if m.Codes.Value, err = f.Float32(dataTensor, nonzeros); err != nil {
		return nil, err
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	return m, nil
}
