package vectors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"overcomplete/internal/npy"
)

var errNoWords = errors.New("the file has no words: give a file with one word a line, in row order (--words)")

// readNpy adds the rows of a .npy file, with their words in a list, to b. The
// file has size bytes, or an unknown number if size is negative.
func readNpy(ctx context.Context, r io.Reader, size int64, b *builder) error {
	if b.options.WordList == "" {
		return errNoWords
	}
	shape, data, err := npy.ReadFloat32(r, size)
	if err != nil {
		return err
	}
	words, err := b.readWordList(ctx)
	if err != nil {
		return err
	}
	return b.addArray(shape, data, words)
}

// readNpz adds the rows of an array in a .npz file to b. Their words are in
// another array, or in a list. See [randomAccess] for the file.
func readNpz(ctx context.Context, in io.ReaderAt, content io.Reader, size int64, b *builder) error {
	in, size, err := randomAccess(in, content, size)
	if err != nil {
		return err
	}
	archive, err := npy.NewArchive(in, size)
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
	var words []string
	switch {
	case b.options.WordList != "":
		words, err = b.readWordList(ctx)
	case slices.Contains(archive.Names(), "words"):
		_, words, err = npy.Read(archive, "words", npy.ReadStrings)
	default:
		err = errNoWords
	}
	if err != nil {
		return err
	}
	shape, data, err := npy.Read(archive, name, npy.ReadFloat32)
	if err != nil {
		return err
	}
	return b.addArray(shape, data, words)
}

// randomAccess returns a file that can be read from anywhere, and its size in bytes:
// in, if its size is known, or else its content in memory.
func randomAccess(in io.ReaderAt, content io.Reader, size int64) (io.ReaderAt, int64, error) {
	if size >= 0 {
		return in, size, nil
	}
	data, err := io.ReadAll(content)
	return bytes.NewReader(data), int64(len(data)), err
}

// vectorsName returns which of the named arrays holds the vectors.
func vectorsName(names []string) (string, error) {
	if slices.Contains(names, "vectors") {
		return "vectors", nil
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "words" })
	if len(others) != 1 {
		return "", fmt.Errorf(`the arrays are %q; name the one to read "vectors"`, names)
	}
	return others[0], nil
}

// readWordList returns the lines of the file that has the words.
func (b *builder) readWordList(ctx context.Context) ([]string, error) {
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
	var words []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, window)
	for lines.Scan() {
		words = append(words, lines.Text())
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return nil, &InputError{File: displayName(path), Line: len(words) + 1, Err: fmt.Errorf("a word of over %d bytes", window)}
	} else if err != nil {
		return nil, inputError(path, err)
	}
	if len(words) > 0 {
		words[0] = strings.TrimPrefix(words[0], "\uFEFF")
	}
	b.wordsSum, err = f.sum()
	if err != nil {
		return nil, inputError(path, err)
	}
	return words, nil
}

// addArray adds the rows of a matrix.
func (b *builder) addArray(shape []int, data []float32, words []string) error {
	if len(shape) != 2 || shape[1] < 1 || shape[1] > maxDim {
		return fmt.Errorf("the array has shape %v, want words × dimensions", shape)
	}
	if len(words) != shape[0] {
		return fmt.Errorf("%d words for %d rows", len(words), shape[0])
	}
	b.dim = shape[1]
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
