package vectors

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"strings"

	"overcomplete/internal/parallel"
)

// An IDError reports a word that a format can't represent: it is empty, or contains a separator of fields or lines.
// Every format can represent the nonempty words that [Escape] returns.
type IDError struct {
	Row int // from 0
	ID  string
}

func (e *IDError) Error() string {
	return fmt.Sprintf("word %d, %s, is empty or contains white space, which the format reserves as a separator", e.Row+1, quote(e.ID))
}

// Escape returns a copy of ids in which white space and percent signs are
// percent-encoded: "New York" becomes "New%20York". [net/url.PathUnescape] reverses it.
func Escape(ids []string) []string {
	escaped := make([]string, len(ids))
	for i, id := range ids {
		escaped[i] = special.ReplaceAllStringFunc(id, func(s string) string {
			return "%" + strings.ReplaceAll(fmt.Sprintf("% X", s), " ", "%")
		})
	}
	return escaped
}

// special matches percent signs and white space. Python's str.split also splits at the control characters U+001C to U+001F.
var special = regexp.MustCompile(`[%\s\v\x{1c}-\x{1f}\x{85}\pZ]+`)

// WriteGloVe writes GloVe's dense text, which has no header: a line per row, with the
// word and the K values of its vector, separated by spaces. Values are the shortest
// decimals that parse to the same float32.
//
// Before it writes anything, it returns a [*IDError] for a word that the format can't
// represent, and an error if words and rows differ in number or if K is 0.
func WriteGloVe(w io.Writer, s *Sparse) error { return writeDense(w, "", s, appendText(s.Cols)) }

// WriteWord2Vec writes word2vec's dense text: a line with V and K, then the lines of
// [WriteGloVe]. It returns the same errors.
func WriteWord2Vec(w io.Writer, s *Sparse) error {
	return writeDense(w, fmt.Sprintf("%d %d\n", s.Rows, s.Cols), s, appendText(s.Cols))
}

// WriteWord2VecBinary writes the format of word2vec -binary: a line with V and K, then
// for each row the word, a space, K little-endian float32 and a newline. It returns the
// same errors as [WriteGloVe].
func WriteWord2VecBinary(w io.Writer, s *Sparse) error {
	zeros := make([]byte, 4*s.Cols)
	return writeDense(w, fmt.Sprintf("%d %d\n", s.Rows, s.Cols), s, func(b []byte, index []int32, value []float32) []byte {
		b = append(append(b, ' '), zeros...)
		vector := b[len(b)-len(zeros):]
		for n, k := range index {
			binary.LittleEndian.PutUint32(vector[4*k:], math.Float32bits(value[n]))
		}
		return b
	})
}

var errNoColumns = errors.New("the format can't represent vectors of length 0")

// appendText returns a function that appends a row of text without its word.
func appendText(cols int) func(b []byte, index []int32, value []float32) []byte {
	zeros := []byte(strings.Repeat(" 0", cols))
	return func(b []byte, index []int32, value []float32) []byte {
		next := 0 // the next column
		for n, k := range index {
			b = append(b, zeros[:2*(int(k)-next)]...)
			b = append(b, ' ')
			b = appendExact(b, value[n])
			next = int(k) + 1
		}
		return append(b, zeros[2*next:]...)
	}
}

// writeDense writes a header and the rows, each with its word, its vector and a newline.
func writeDense(w io.Writer, header string, s *Sparse, appendVector func(b []byte, index []int32, value []float32) []byte) error {
	const asciiSpace = " \t\n\v\f\r" // separators; words may contain other white space
	if s.Cols == 0 {
		return errNoColumns
	}
	if err := checkIDs(s, asciiSpace); err != nil {
		return err
	}
	if _, err := io.WriteString(w, header); err != nil {
		return err
	}
	return writeChunks(w, s.Rows, func(b []byte, i int) []byte {
		index, value := s.Row(i)
		return append(appendVector(append(b, s.IDs[i]...), index, value), '\n')
	})
}

// checkIDs returns an error unless each row has a word that is not empty and contains
// none of the separators.
func checkIDs(s *Sparse, separators string) error {
	if len(s.IDs) != s.Rows {
		return fmt.Errorf("ids and vectors differ in number (got %d and %d)", len(s.IDs), s.Rows)
	}
	for i, id := range s.IDs {
		if id == "" || strings.ContainsAny(id, separators) {
			return &IDError{i, id}
		}
	}
	return nil
}

// writeChunks writes the output of appendTo(b, i) for i = 0, …, n−1. It uses all cores, because
// formatting numbers is slower than most disks.
func writeChunks(w io.Writer, n int, appendTo func(b []byte, i int) []byte) error {
	const size = 128 // calls of appendTo per chunk
	out := bufio.NewWriterSize(w, 1<<16)
	chunks := make([][]byte, 4*runtime.GOMAXPROCS(0))
	for start := 0; start < n; start += size * len(chunks) {
		parallel.Each(context.Background(), len(chunks), func(c int) {
			b := chunks[c][:0]
			for i := start + c*size; i < min(start+(c+1)*size, n); i++ {
				b = appendTo(b, i)
			}
			chunks[c] = b
		})
		for _, b := range chunks {
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}
