package vectors

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"overcomplete/internal/modeldir"
	"overcomplete/internal/safetensors"
	"overcomplete/vectors/internal/tabular"
)

// readSafetensors yields the rows of a tensor in a .safetensors file. A word list or the
// tensor "words" names them.
func (r *reader) readSafetensors(ctx context.Context, c *content) (iter.Seq2[chunk, error], error) {
	file, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(file, size)
	if err != nil {
		return nil, err
	}
	if _, ok := f.Metadata[modeldir.Info]; ok {
		return nil, errors.New("is an exported model, not dense vectors; use the directory that it was exported from")
	}
	name, err := matrixName(f, r.options.VectorColumns)
	if err != nil {
		return nil, err
	}
	if r.list == nil && slices.Contains(f.Names(), "words") {
		text, err := f.Text("words")
		if err != nil {
			return nil, err
		}
		r.words = &wordList{file: displayName(r.Path)}
		r.readLines(r.words, bufio.NewReaderSize(text, window))
	}
	array, err := f.Array(name)
	return r.readArray(ctx, array, err)
}

// matrixName returns the name of the tensor of vectors, which is chosen unless it is "".
func matrixName(f *safetensors.File, chosen string) (string, error) {
	matrices := slices.DeleteFunc(f.Matrices(), func(name string) bool { return name == "words" })
	if chosen != "" && slices.Contains(matrices, chosen) {
		return chosen, nil
	} else if chosen != "" {
		return "", &tabular.OptionError{Option: "VectorColumns", Err: fmt.Errorf("has no tensor %.60q of two dimensions (tensors: %s)", chosen, list(matrices))}
	}
	for _, name := range []string{"vectors", "embeddings", "weight"} {
		if slices.Contains(matrices, name) {
			return name, nil
		}
	}
	switch len(matrices) {
	case 0:
		return "", errors.New("contains no tensor of two dimensions of type F32, F64, F16 or BF16")
	case 1:
		return matrices[0], nil
	}
	return "", &tabular.OptionError{Option: "VectorColumns", Err: fmt.Errorf("contains several tensors of two dimensions, %s; name the one to read", list(matrices))}
}
