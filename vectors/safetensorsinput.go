package vectors

import (
	"context"
	"fmt"
	"io"
	"slices"

	"overcomplete/internal/safetensors"
)

// readSafetensors adds the rows of a tensor in a .safetensors file to b. Their words
// are in another tensor, or in a list. See [randomAccess] for the file.
func readSafetensors(ctx context.Context, in io.ReaderAt, content io.Reader, size int64, b *builder) error {
	in, size, err := randomAccess(in, content, size)
	if err != nil {
		return err
	}
	f, err := safetensors.Open(in, size)
	if err != nil {
		return err
	}
	name, err := matrixName(f)
	if err != nil {
		return err
	}
	var words []string
	switch {
	case b.options.WordList != "":
		words, err = readWordList(ctx, b.options.WordList)
	case slices.Contains(f.Names(), "words"):
		words, err = f.Lines("words")
	default:
		err = errNoWords
	}
	if err != nil {
		return err
	}
	data, err := f.Float32(name)
	if err != nil {
		return err
	}
	return b.addArray(f.Shape(name), data, words)
}

// matrixName returns which tensor holds the vectors.
func matrixName(f *safetensors.File) (string, error) {
	var matrices []string
	for _, name := range f.Names() {
		if len(f.Shape(name)) == 2 {
			matrices = append(matrices, name)
		}
	}
	for _, name := range []string{"vectors", "embeddings", "weight"} {
		if slices.Contains(matrices, name) {
			return name, nil
		}
	}
	if len(matrices) != 1 {
		return "", fmt.Errorf(`the tensors of two dimensions are %q; name the one to read "vectors"`, matrices)
	}
	return matrices[0], nil
}
