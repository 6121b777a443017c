package columnar

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"overcomplete/vectors"
)

// A kind is what a column can be read as.
type kind int

const (
	other kind = iota
	text
	number // float16, float32 or float64
	list   // of such numbers
)

// A column is a column of a table to read.
type column struct {
	name string
	kind kind
}

// A layout says which columns to read.
type layout struct {
	word    int   // -1 if rows have no words
	vectors []int // a list, or numbers of which each is a dimension
	list    bool
	left    []string // names of the columns that are not read
}

// choose finds the words and the vectors of a table.
func choose(columns []column, metadata bool) (layout, error) {
	if metadata && slices.ContainsFunc(columns, func(c column) bool { return c.name == "indices" }) {
		return layout{}, errors.New("has the sparse vectors of a model, not dense ones; overcomplete export --format word2vec writes them as dense")
	}
	word, err := only(columns, text, "text", "word", "words", "token", "text")
	if err != nil {
		return layout{}, err
	}
	l := layout{word: word, list: true}
	vector, err := only(columns, list, "lists of numbers", "vector", "vectors", "embedding", "embeddings")
	if err != nil {
		return layout{}, err
	}
	for i, c := range columns {
		switch {
		case i == word:
		case i == vector, vector < 0 && c.kind == number:
			l.vectors = append(l.vectors, i)
		default:
			l.left = append(l.left, c.name)
		}
	}
	l.list = vector >= 0
	switch {
	case len(l.vectors) == 0:
		return layout{}, fmt.Errorf("no vectors: want a column of lists, or columns, of float16, float32 or float64; the columns are %s", names(columns))
	case len(l.vectors) > vectors.MaxDim:
		return layout{}, fmt.Errorf("vectors of over %d numbers", vectors.MaxDim)
	}
	return l, nil
}

// only returns the first column of a kind that has one of the names, or else the only one of
// that kind, or -1 if there is none.
func only(columns []column, k kind, about string, known ...string) (int, error) {
	for _, name := range known {
		if i := slices.Index(columns, column{name, k}); i >= 0 {
			return i, nil
		}
	}
	found := -1
	var all []column
	for i, c := range columns {
		if c.kind == k {
			found, all = i, append(all, c)
		}
	}
	if len(all) > 1 {
		return 0, fmt.Errorf("the columns of %s are %s; name the one to read %q", about, names(all), known[0])
	}
	return found, nil
}

// names lists the names of columns on a line.
func names(columns []column) string {
	var all []string
	for _, c := range columns {
		all = append(all, c.name)
	}
	return shorten(all)
}

func shorten(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%d, such as %.60q", len(names), names[:most])
	}
	return fmt.Sprintf("%.60q", names)
}

// table returns the table of that layout.
func (l layout) table(next func() ([]vectors.Row, error)) *vectors.Table {
	t := &vectors.Table{Words: l.word >= 0, Next: next}
	if len(l.left) > 0 {
		t.Warnings = []string{"columns not read: " + shorten(l.left)}
	}
	return t
}

// A block has rows that are read together. Its memory is used again by the next.
type block struct {
	rows []vectors.Row
	data []float32
}

// blockNumbers is how many numbers are read together, unless one row has more.
const blockNumbers = 1 << 16

// blockText is how many bytes of words are read together, or a word more.
const blockText = 16 << 20

func (b *block) reset() { b.rows, b.data = b.rows[:0], b.data[:0] }

// add adds a row with the numbers that were appended to data from start on.
func (b *block) add(word string, start int, err error) {
	b.rows = append(b.rows, vectors.Row{Word: word, Vector: b.data[start:len(b.data):len(b.data)], Err: err})
}

// faulty returns why a row is malformed: the column, the number in its list from 0 unless
// that is negative, and what it is.
func faulty(c column, number int, what string) error {
	if number < 0 {
		return fmt.Errorf("column %.60q is %s", c.name, what)
	}
	return fmt.Errorf("column %.60q: value %d is %s", c.name, number+1, what)
}

// checkNumber returns why a number of a column can't be that of a vector.
func checkNumber(c column, number int, x float32) error {
	if x-x == 0 {
		return nil
	}
	return notFinite(c, number, x)
}

func notFinite(c column, number int, x float32) error {
	what := "infinite, or beyond the range of float32"
	if math.IsNaN(float64(x)) {
		what = "NaN"
	}
	return faulty(c, number, what+", want a finite number")
}

// guard calls f, and returns what a library that was given a damaged file panics with as
// an error.
func guard[T any](format string, f func() (T, error)) (result T, err error) {
	damaged := func(err error) error {
		if strings.Contains(err.Error(), "runtime error") { // of the library, which tells nobody what to do
			err = errors.New("its parts do not fit together")
		}
		return fmt.Errorf("damaged %s file: %w", format, err)
	}
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok {
				err = fmt.Errorf("%.200v", r)
			}
			err = damaged(err)
		}
	}()
	result, err = f()
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return result, err
}
