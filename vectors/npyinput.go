package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"overcomplete/internal/npy"
)

// readNpy adds the rows of a .npy file to b. Their words are in a list, if there is one.
func readNpy(ctx context.Context, c *Content, b *builder) error {
	array, err := npy.Open(c, c.Size)
	if err != nil {
		return err
	}
	if err := checkShape(array.Shape); err != nil {
		return err
	}
	var words []string
	if b.options.WordList != "" {
		if words, err = b.readWordList(ctx, array.Shape[0]); err != nil {
			return err
		}
	}
	data, err := array.Float32(array.Shape...)
	if err != nil {
		return err
	}
	return b.addArray(data, array.Shape, words)
}

// readNpz adds the rows of an array in a .npz file to b. Their words are in a list or in
// another array, if there is either.
func readNpz(ctx context.Context, c *Content, b *builder) error {
	file, size, err := c.RandomAccess()
	if err != nil {
		return err
	}
	archive, err := npy.NewArchive(file, size)
	if err != nil {
		return err
	}
	if len(archive.Names()) == 0 {
		return errors.New("a zip archive without NumPy arrays; unzip it first")
	}
	name, err := vectorsName(archive.Names())
	if err != nil {
		return err
	}
	array, err := archive.Open(name)
	if err != nil {
		return err
	}
	if err := checkShape(array.Shape); err != nil {
		return err
	}
	var words []string
	switch {
	case b.options.WordList != "":
		words, err = b.readWordList(ctx, array.Shape[0])
	case slices.Contains(archive.Names(), "words"):
		words, err = npy.Read(archive, "words", (*npy.Array).Strings, array.Shape[0])
	case archive.Holds("words"):
		err = errors.New(`no words: what is called "words" in it is to be called "words.npy"`)
	}
	if err != nil {
		return err
	}
	data, err := npy.Read(archive, name, (*npy.Array).Float32, array.Shape...)
	if err != nil {
		return err
	}
	return b.addArray(data, array.Shape, words)
}

// checkShape returns an error unless an array of this shape can be words × dimensions.
func checkShape(shape npy.Shape) error {
	if len(shape) != 2 || shape[1] < 1 || shape[1] > MaxDim {
		return fmt.Errorf("the array has shape %v, want words × dimensions", shape)
	}
	return nil
}

// vectorsName returns which of the named arrays holds the vectors.
func vectorsName(names []string) (string, error) {
	if slices.Contains(names, "vectors") {
		return "vectors", nil
	}
	if slices.Contains(names, "indptr") {
		return "", errors.New("has a sparse matrix, not dense vectors")
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "words" })
	if len(others) != 1 {
		return "", fmt.Errorf(`the arrays are %s; name the one to read "vectors"`, list(names))
	}
	return others[0], nil
}

// list lists names, of which there may be any number of any length, on a line.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%d, such as %.60q", len(names), names[:most])
	}
	return fmt.Sprintf("%.60q", names)
}

// addArray adds the rows of a matrix of that shape, which have numbers for words if words
// is nil.
func (b *builder) addArray(data []float32, shape npy.Shape, words []string) error {
	b.dim = shape[1]
	b.name = func() (string, error) { return words[b.found], nil }
	if words == nil {
		b.numberRows()
	} else {
		b.tell(words)
	}
	c := chunk{data: data[:0], rows: make([]row, 0, shape[0]), span: shape[0]}
	for i := range shape[0] {
		vector := data[i*b.dim : (i+1)*b.dim]
		err := checkVector(vector)
		if err == nil {
			c.data = append(c.data, vector...) // in place
		}
		c.rows = append(c.rows, row{number: i, err: err})
	}
	return b.add(c)
}
