package vectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"overcomplete/internal/safetensors"
)

// modelMetadata is the metadata of models, which package model writes.
const modelMetadata = "model.json"

// readSafetensors adds the rows of a tensor in a .safetensors file to b. Their words are
// in a list or in another tensor, if there is either.
func readSafetensors(ctx context.Context, c *Content, b *builder) error {
	file, size, err := c.RandomAccess()
	if err != nil {
		return err
	}
	f, err := safetensors.Open(file, size)
	if err != nil {
		return err
	}
	if _, ok := f.Metadata[modelMetadata]; ok {
		return errors.New("is a model, not dense vectors; overcomplete export --format word2vec writes its codes as vectors")
	}
	name, err := matrixName(f)
	if err != nil {
		return err
	}
	shape := f.Shape(name)
	if err := checkShape(shape); err != nil {
		return err
	}
	var words []string
	switch {
	case b.options.WordList != "":
		words, err = b.readWordList(ctx, shape[0])
	case slices.Contains(f.Names(), "words"):
		var text io.Reader
		if text, err = f.Text("words"); err == nil {
			words, err = newWordList(text, b.file).all(shape[0])
		}
	}
	if err != nil {
		return err
	}
	data, err := f.Float32(name, shape...)
	if err != nil {
		return err
	}
	return b.addArray(data, shape, words)
}

// matrixName returns which tensor holds the vectors.
func matrixName(f *safetensors.File) (string, error) {
	matrices := slices.DeleteFunc(f.Matrices(), func(name string) bool { return name == "words" })
	for _, name := range []string{"vectors", "embeddings", "weight"} {
		if slices.Contains(matrices, name) {
			return name, nil
		}
	}
	switch len(matrices) {
	case 0:
		return "", errors.New("no tensor of two dimensions has type F32, F64, F16 or BF16")
	case 1:
		return matrices[0], nil
	}
	return "", fmt.Errorf(`the tensors of two dimensions are %s; name the one to read "vectors"`, list(matrices))
}
