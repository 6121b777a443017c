package vectors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"overcomplete/internal/memory"
	"overcomplete/internal/npy"
)

var errNoWords = errors.New("the file has no words: give a file with one word a line, in row order (--words)")

// readNpy adds the rows of a .npy file, with their words in a list, to b. The
// file has size bytes, or an unknown number if size is negative.
func readNpy(ctx context.Context, r io.Reader, size int64, b *builder) error {
	if b.options.WordList == "" {
		return errNoWords
	}
	array, err := npy.Open(r, size)
	if err != nil {
		return err
	}
	if err := checkShape(array.Shape); err != nil {
		return err
	}
	words, err := b.readWordList(ctx, array.Shape[0])
	if err != nil {
		return err
	}
	data, err := array.Float32(array.Shape...)
	if err != nil {
		return err
	}
	return b.addArray(data, words)
}

// readNpz adds the rows of an array in a .npz file to b. Their words are in
// another array, or in a list. See [randomAccess] for the file.
func readNpz(ctx context.Context, in *storedFile, content io.Reader, size int64, b *builder) error {
	file, size, err := randomAccess(in, content, size)
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
	default:
		err = errNoWords
	}
	if err != nil {
		return err
	}
	data, err := npy.Read(archive, name, (*npy.Array).Float32, array.Shape...)
	if err != nil {
		return err
	}
	return b.addArray(data, words)
}

// checkShape returns an error unless an array of this shape can be words × dimensions.
func checkShape(shape npy.Shape) error {
	if len(shape) != 2 || shape[1] < 1 || shape[1] > maxDim {
		return fmt.Errorf("the array has shape %v, want words × dimensions", shape)
	}
	return nil
}

// randomAccess returns a file that can be read from anywhere, and its size in bytes:
// in, if its size is known, or else its content in memory.
func randomAccess(in *storedFile, content io.Reader, size int64) (io.ReaderAt, int64, error) {
	if size >= 0 {
		return in, size, nil
	}
	// Vectors are hardly compressible, unlike what was made to fill the memory.
	const most, free = 100, 16 << 20
	data := make([]byte, 0, 1<<20)
	for {
		if len(data) == cap(data) {
			if err := memory.Check(2 * uint64(len(data))); err != nil {
				return nil, 0, fmt.Errorf("its content must be held in memory: %w", err)
			}
			data = slices.Grow(data, len(data))
		}
		n, err := content.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return bytes.NewReader(data), int64(len(data)), nil
		case err != nil:
			return nil, 0, err
		case int64(len(data)) > free+most*in.delivered:
			return nil, 0, fmt.Errorf("%d bytes expand to more than %d times as many; if that is right, decompress it first", in.delivered, most)
		}
	}
}

// vectorsName returns which of the named arrays holds the vectors.
func vectorsName(names []string) (string, error) {
	if slices.Contains(names, "vectors") {
		return "vectors", nil
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

// readWordList returns the lines of the file that has the words, of which there must be
// n.
func (b *builder) readWordList(ctx context.Context, n int) ([]string, error) {
	path := b.options.WordList
	f, err := open(ctx, path)
	if err != nil {
		return nil, inputError(path, err)
	}
	defer f.Close()
	r, _, err := decompress(f)
	if err != nil {
		return nil, inputError(path, err)
	}
	if start, _ := r.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		r.Discard(len(byteOrderMark))
	}
	words, err := readWords(r, displayName(path), n)
	if err != nil {
		return nil, err
	}
	b.wordsSum, err = f.sum()
	if err != nil {
		return nil, inputError(path, err)
	}
	return words, nil
}

// readWords returns the lines of r, of which there must be n; file names it.
func readWords(r io.Reader, file string, n int) ([]string, error) {
	var words []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, window)
	for lines.Scan() {
		if len(words) == n { // the rest may have no end
			return nil, fmt.Errorf("more than %d words for %[1]d rows", n)
		}
		words = append(words, lines.Text())
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return nil, &InputError{File: file, Line: len(words) + 1, Err: fmt.Errorf("a word of over %d bytes", window)}
	} else if err != nil {
		return nil, inputError(file, err)
	}
	if len(words) < n {
		return nil, fmt.Errorf("%d words for %d rows", len(words), n)
	}
	return words, nil
}

// addArray adds the rows of a matrix.
func (b *builder) addArray(data []float32, words []string) error {
	if len(words) == 0 {
		return nil
	}
	b.dim = len(data) / len(words)
	c := chunk{data: data[:0], rows: make([]row, 0, len(words)), span: len(words)}
	for i, word := range words {
		vector := data[i*b.dim : (i+1)*b.dim]
		err := checkRow(word, vector)
		if err == nil {
			c.data = append(c.data, vector...) // in place
		}
		c.rows = append(c.rows, row{number: i, word: word, err: err})
	}
	return b.add(c)
}
