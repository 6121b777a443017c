package vectors

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"overcomplete/internal/memory"
	"overcomplete/vectors/internal/tabular"
)

func (r *reader) readText(ctx context.Context, h heading, c *content) (iter.Seq2[chunk, error], error) {
	r.lines, r.position = true, h.lines
	dim, bare, skipBad := r.dim, h.format == formatBare, r.options.SkipBad
	return parsePieces(ctx, &splitter{file: c.unbuffered(), size: textChunk, cut: cutLines}, r.ended, func(lines []byte) chunk {
		return parseRows(lines, dim, bare, skipBad)
	}), nil
}

// parseRows parses lines of text. If bare is set, rows have no words. Unless skipBad is set, it stops
// after the first malformed row.
func parseRows(lines []byte, dim int, bare, skipBad bool) chunk {
	var c chunk
	// A number takes at least two bytes of text, which bounds the allocation.
	maxRows := min(bytes.Count(lines, []byte("\n"))+1, len(lines)/(2*dim)+1)
	c.data = memory.Numbers(maxRows * dim)[:0]
	c.rows = make([]tabular.Row, 0, maxRows)
	for line := range bytes.Lines(lines) {
		number := c.span
		c.span++
		line = trimRow(line)
		if len(line) == 0 {
			continue
		}
		n := len(c.data)
		c.data = slices.Grow(c.data, dim)[:n+dim]
		var r tabular.Row
		if bare {
			r.Err = parseVector(line, c.data[n:])
		} else {
			r = parseRow(line, c.data[n:])
		}
		r.Number = number
		c.rows = append(c.rows, r)
		if r.Err != nil {
			c.data = c.data[:n]
			if !skipBad {
				break
			}
		}
	}
	return c
}

// parseRow parses a trimmed line into a word and vector.
func parseRow(line []byte, vector []float32) tabular.Row {
	word, numbers := cutField(line)
	err := parseVector(numbers, vector)
	if err == nil {
		return tabular.Row{Name: string(word)}
	}
	spaced, numbers := cutVector(line, len(vector))
	if len(spaced) <= len(word) {
		return tabular.Row{Name: string(word), Err: err}
	}
	r := tabular.Row{Name: string(spaced)}
	if r.Err = parseVector(numbers, vector); r.Err != nil {
		return r
	}
	if n, word := trailingNumbers(line); n > len(vector) {
		// "iphone 4" may be a word. "bank 0.25" is no word: the row has too many numbers.
		if !isWhole(spaced[lastField(spaced):]) {
			return tabular.Row{Name: string(word), Err: countError(n, len(vector))}
		}
		r.Doubtful = true
	}
	return r
}

// parseVector parses the fields of b as the numbers of vector.
func parseVector(b []byte, vector []float32) error {
	i := 0
	for k := range vector {
		for i < len(b) && isSeparator(b[i]) {
			i++
		}
		if i == len(b) {
			return countError(k, len(vector))
		}
		x, end, err := parseDecimal(b, i)
		if end < len(b) && !isSeparator(b[end]) {
			err = errNotNumber
		}
		if err != nil {
			field, _ := cutField(b[i:])
			return fmt.Errorf("value %d is %w (got %s)", k+1, err, quote(field))
		}
		vector[k] = x
		i = end
	}
	if rest := bytes.TrimLeft(b[i:], separators); len(rest) > 0 {
		return fmt.Errorf("the line continues after the vector (got %s)", quote(rest))
	}
	return nil
}

func countError(got, want int) error {
	return fmt.Errorf("the vector has the wrong length (got %d, want %d numbers)", got, want)
}

// cutField cuts line after its first field.
func cutField(line []byte) (field, rest []byte) {
	i := 0
	for i < len(line) && !isSeparator(line[i]) {
		i++
	}
	return line[:i], line[i:]
}

// cutVector cuts line before its last n fields.
func cutVector(line []byte, n int) (word, vector []byte) {
	word = line
	for range n {
		word = bytes.TrimRight(word[:lastField(word)], separators)
	}
	return word, line[len(word):]
}

// trailingNumbers returns the number of numbers at the end of line, and the text before
// them, which includes at least the first field.
func trailingNumbers(line []byte) (n int, word []byte) {
	word = line
	for {
		i := lastField(word)
		if i == 0 {
			return n, word
		}
		if _, _, err := parseNumber(word, i); err != nil {
			return n, word
		}
		word = bytes.TrimRight(word[:i], separators)
		n++
	}
}

func lastField(b []byte) int { return bytes.LastIndexAny(b, separators) + 1 }

// trimRow removes separators and the line break from both ends of a line.
func trimRow(line []byte) []byte {
	return bytes.Trim(bytes.TrimRight(line, "\r\n"), separators)
}
