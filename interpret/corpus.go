package interpret

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Corpus is sentences in which words of a vocabulary stand, to show what they have in common
// there.
type Corpus struct {
	Lines   []string // as they are
	LeftOut int      // lines that were too long

	of [][]int32 // of each row, some lines with its word
}

const (
	eachWord    = 20      // lines of a corpus that are kept for a word, the first ones
	longestLine = 1 << 10 // bytes: what is longer is no sentence, and not kept
	exampleTop  = 50      // words of a dimension that are looked for
)

// ReadCorpus reads sentences, a line each, and keeps for each word of the index the first few in
// which it stands, as it is or in lower case. So memory is bounded by the vocabulary. Lines of more than
// 1,024 bytes are left out. The error is ctx's, r's, or that a line is not UTF-8.
func (x *Index) ReadCorpus(ctx context.Context, r io.Reader) (*Corpus, error) {
	c := &Corpus{of: make([][]int32, x.Codes.Rows)}
	lines := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		line, long, err := readLine(lines)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err == io.EOF {
			return c, nil
		}
		if long {
			c.LeftOut++
		}
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // some editors begin a file with it
		}
		if number%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !utf8.ValidString(line) {
			return nil, fmt.Errorf("line %d is not UTF-8: want a text file with a sentence a line, not compressed", number)
		}
		kept := false
		for _, row := range x.wordsOf(line) {
			if len(c.of[row]) < eachWord {
				c.of[row] = append(c.of[row], int32(len(c.Lines)))
				kept = true
			}
		}
		if kept {
			c.Lines = append(c.Lines, strings.Clone(line))
		}
	}
}

// readLine returns the next line without its end, or nothing of one that is too long.
func readLine(r *bufio.Reader) (text string, long bool, err error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		long = true
	}
	if err == io.EOF && len(line) > 0 {
		err = nil // of the next call
	}
	if long || len(line) > longestLine {
		return "", true, err
	}
	return strings.TrimSpace(string(line)), false, err
}

// wordsOf returns the rows of the words in a line, each once. What is no word with its hyphens and
// dashes is words between them.
func (x *Index) wordsOf(line string) []int {
	var rows []int
	for _, word := range strings.FieldsFunc(line, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '\'' && r != '-'
	}) {
		if row, ok := x.Row(word); ok {
			rows = append(rows, row)
			continue
		}
		for part := range strings.SplitSeq(word, "-") {
			if row, ok := x.Row(strings.Trim(part, "'")); ok {
				rows = append(rows, row)
			}
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Examples returns up to n lines of a corpus, made with the same index, in which top words of a
// side of a dimension stand: those first whose words have most of it in all. What a word adds to
// a line is half as much for each line before that has it, so that not all are about the same one.
func (x *Index) Examples(c *Corpus, dimension, n int, negative bool) []string {
	value := map[int32]float64{} // of top words, by row
	var candidates []int32
	for _, e := range x.Side(dimension, exampleTop, negative) {
		value[int32(e.Row)] = max(float64(e.Value), -float64(e.Value))
		candidates = append(candidates, c.of[e.Row]...)
	}
	slices.Sort(candidates)
	candidates = slices.Compact(candidates)
	words := make([][]int, len(candidates))
	for i, line := range candidates {
		words[i] = slices.DeleteFunc(x.wordsOf(c.Lines[line]), func(row int) bool { return value[int32(row)] == 0 })
	}
	sum := func(i int) (s float64) {
		for _, row := range words[i] {
			s += value[int32(row)]
		}
		return s
	}
	var examples []string
	left := make([]int, len(candidates))
	for i := range left {
		left[i] = i
	}
	for len(examples) < n && len(left) > 0 {
		first := slices.MaxFunc(left, func(i, j int) int { return cmp.Or(cmp.Compare(sum(i), sum(j)), cmp.Compare(j, i)) })
		examples = append(examples, c.Lines[candidates[first]])
		for _, row := range words[first] {
			value[int32(row)] /= 2
		}
		left = slices.DeleteFunc(left, func(i int) bool { return i == first || c.Lines[candidates[i]] == c.Lines[candidates[first]] })
	}
	return examples
}
