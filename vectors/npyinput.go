package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/internal/npy"
	"overcomplete/vectors/internal/tabular"
)

func (r *reader) readNpy(ctx context.Context, _ heading, c *content) (iter.Seq2[chunk, error], error) {
	if c.size < 0 {
		array, err := npy.Open(c, c.size)
		return r.readArray(ctx, array, err)
	}
	file, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	array, err := npy.OpenAt(file, size)
	return r.readArray(ctx, array, err)
}

func (r *reader) readNpz(ctx context.Context, _ heading, c *content) (iter.Seq2[chunk, error], error) {
	file, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	archive, err := npy.NewArchive(file, size)
	if err != nil {
		return nil, err
	}
	if len(archive.Names()) == 0 {
		return nil, errors.New("is a zip archive without NumPy arrays; unzip it first")
	}
	if slices.Contains(archive.Names(), "indptr") && r.options.VectorColumns == "" && !slices.Contains(archive.Names(), "vectors") {
		return nil, errors.New("contains a sparse matrix, not dense vectors")
	}
	name, err := vectorsName(archive.Names(), r.options.VectorColumns, []string{"vectors"}, "array", "")
	if err != nil {
		return nil, err
	}
	array, err := archive.Open(name)
	return r.readArray(ctx, array, cmp.Or(err, r.checkNames(archive.Names())))
}

// checkNames returns an error if a file has words beside its array, and there is no word list.
func (r *reader) checkNames(arrays []string) error {
	if r.list == nil && slices.Contains(arrays, "words") {
		return &tabular.OptionError{Option: "WordList", Err: errors.New(`contains "words", which aren't read; write them to a file with a word per line, and name it as the word list`)}
	}
	return nil
}

// vectorsName returns the name of the array of vectors: the argument chosen or, if that is "", a usual name, or else
// the only name apart from the array of words. The arguments array and shape describe arrays in messages.
func vectorsName(names []string, chosen string, usual []string, array, shape string) (string, error) {
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "words" })
	if chosen != "" {
		usual, others = []string{chosen}, nil
	}
	for _, name := range usual {
		if slices.Contains(names, name) {
			return name, nil
		}
	}
	if len(others) == 1 {
		return others[0], nil
	}
	err := fmt.Errorf("contains several %ss%s, %s; name the one to read", array, shape, tabular.Shorten(names))
	if chosen != "" {
		err = fmt.Errorf("has no %s %.60q%s (%ss: %s)", array, chosen, shape, array, tabular.Shorten(names))
	}
	return "", &tabular.OptionError{Option: "VectorColumns", Err: err}
}

const (
	// blockRows and blockNumbers limit the rows of an array that are read together; a row of more numbers is read
	// whole. An encoder takes 8,192 rows at a time; reading these together saves a copy.
	blockRows, blockNumbers = 1 << 13, 1 << 22

	// arrayReaders is the number of blocks that wait to be yielded while the next blocks are read.
	arrayReaders = 2

	cached = 1 << 15 // count of numbers to read and check at a time, so that they are still in the cache
)

func rowsPerBlock(dim int) int { return max(1, min(blockRows, blockNumbers/dim)) }

// readArray yields the rows of a matrix. The argument err is the error of opening the matrix. Rows without names are
// named by their numbers.
func (r *reader) readArray(ctx context.Context, array *npy.Array, err error) (iter.Seq2[chunk, error], error) {
	if err != nil {
		return nil, err
	}
	if err := npy.Expect[float32](array, array.Shape...); err != nil {
		return nil, err
	}
	if shape := array.Shape; len(shape) != 2 || shape[1] < 1 || shape[1] > MaxDim {
		return nil, fmt.Errorf("the array is not a matrix of rows × dimensions (got shape %v)", shape)
	}
	r.numbered = r.list == nil
	rows, dim := array.Shape[0], array.Shape[1]
	r.dim, r.announced = dim, rows
	if most := r.options.MaxRows; most > 0 {
		r.announced = min(rows, most)
	}
	chunks := inOrder(ctx, arrayReaders, func(yield func(func() (chunk, error), error) bool) {
		n := rowsPerBlock(dim)
		for first := 0; first < rows; first += n {
			n := min(n, rows-first)
			job := func() (chunk, error) { return readBlock(array, first, n) }
			if !array.Random() {
				c, err := readBlock(array, first, n)
				job = func() (chunk, error) { return c, err }
			}
			if !yield(job, nil) {
				return
			}
		}
	}, r.ended)
	return func(yield func(chunk, error) bool) {
		first := true
		for c, err := range chunks {
			if err == nil && first && strings.HasSuffix(array.Type, "1") { // int8 or uint8
				err = r.checkBits(c.data)
			}
			first = false
			if !yield(c, err) || err != nil {
				return
			}
		}
		if err := array.End(); err != nil {
			yield(chunk{}, err)
		}
	}, nil
}

// readBlock reads n rows of a matrix and checks their numbers.
func readBlock(array *npy.Array, first, n int) (chunk, error) {
	dim := array.Shape[1]
	data := memory.Numbers(n * dim)
	c := chunk{data: data, span: n, valid: n}
	part, finite := max(1, cached/dim), true
	if array.Fortran {
		part = n // each part requires a read per column
	}
	for lo := 0; lo < n; lo += part {
		hi := min(lo+part, n)
		numbers := data[lo*dim : hi*dim]
		if err := array.ReadRows(numbers, first+lo); err != nil {
			return chunk{}, err
		}
		finite = finite && float32s.Finite(numbers)
	}
	if !finite {
		c.rows, c.valid = make([]tabular.Row, n), 0
		for i := range c.rows {
			c.rows[i].Number = i
		}
		c.check(dim)
	}
	return c, nil
}

// check marks rows whose numbers aren't finite, and removes their vectors.
func (c *chunk) check(dim int) {
	data := c.data
	c.data = data[:0]
	for i := range c.rows {
		vector := data[i*dim : (i+1)*dim]
		if c.rows[i].Err = checkVector(vector); c.rows[i].Err == nil {
			c.data = appendInPlace(c.data, vector)
		}
	}
}
