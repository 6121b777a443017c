package vectors

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"overcomplete/internal/npy"
)

// readNpy returns the rows of a .npy file, which a word list may name.
func (r *reader) readNpy(c *content) (iter.Seq2[chunk, error], error) {
	array, err := npy.Open(c, c.size)
	if err != nil {
		return nil, err
	}
	if err := checkShape(array.Shape); err != nil {
		return nil, err
	}
	words, err := r.listedWords(array.Shape[0])
	if err != nil {
		return nil, err
	}
	data, err := array.Float32(array.Shape...)
	return r.readArray(data, array.Shape, words), err
}

// readNpz returns the rows of an array in a .npz file, which a word list or another array may
// name.
func (r *reader) readNpz(c *content) (iter.Seq2[chunk, error], error) {
	file, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	archive, err := npy.NewArchive(file, size)
	if err != nil {
		return nil, err
	}
	if len(archive.Names()) == 0 {
		return nil, errors.New("a zip archive without NumPy arrays; unzip it first")
	}
	name, err := vectorsName(archive.Names())
	if err != nil {
		return nil, err
	}
	array, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	if err := checkShape(array.Shape); err != nil {
		return nil, err
	}
	var words []string
	switch {
	case r.list != nil:
		words, err = r.listedWords(array.Shape[0])
	case slices.Contains(archive.Names(), "words"):
		words, err = npy.Read(archive, "words", (*npy.Array).Strings, array.Shape[0])
	case archive.Holds("words"):
		err = errors.New(`no words: what is called "words" in it is to be called "words.npy"`)
	}
	if err != nil {
		return nil, err
	}
	data, err := npy.Read(archive, name, (*npy.Array).Float32, array.Shape...)
	return r.readArray(data, array.Shape, words), err
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

// readArray returns the rows of a matrix, which have numbers for words if words is nil.
func (r *reader) readArray(data []float32, shape npy.Shape, words []string) iter.Seq2[chunk, error] {
	if words == nil {
		r.numberRows()
	} else {
		r.names = func() (string, error) { return words[r.found], nil }
		r.setKind(words)
	}
	return func(yield func(chunk, error) bool) {
		r.dim = shape[1]
		c := chunk{data: data[:0], rows: make([]row, 0, shape[0]), span: shape[0]}
		for i := range shape[0] {
			vector := data[i*r.dim : (i+1)*r.dim]
			err := checkVector(vector)
			if err == nil {
				c.data = append(c.data, vector...) // in place
			}
			c.rows = append(c.rows, row{number: i, err: err})
		}
		yield(c, nil)
	}
}
