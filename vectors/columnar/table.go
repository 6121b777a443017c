package columnar

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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
	scalar // a whole number, or true or false
)

// A column is a column of a table to read.
type column struct {
	name string
	kind kind
}

// A layout says which columns to read.
type layout struct {
	columns []column
	word    int   // of words or texts; -1 if rows have neither
	id      int   // -1 if rows have none
	called  bool  // word is the column of ids: there is nothing else
	rest    []int // what else can be kept of texts
	vectors []int // a list, or numbers of which each is a dimension
	list    bool
	said    []int // columns to read as strings: of words or texts, of ids, and the rest
	options vectors.ReadOptions
}

// Names of columns, of which the first that is there is taken.
var (
	wordNames   = []string{"word", "words", "token"}
	textNames   = []string{"text", "sentence", "document", "content", "passage"}
	idNames     = []string{vectors.IDName, "_id", "doc_id"}
	vectorNames = []string{"vector", "vectors", "embedding", "embeddings"}
)

// choose finds the words, or texts and their ids, and the vectors of a table.
func choose(columns []column, metadata bool, o vectors.ReadOptions) (layout, error) {
	if metadata && slices.ContainsFunc(columns, func(c column) bool { return c.name == "indices" }) {
		return layout{}, errors.New("has the sparse vectors of a model, not dense ones; overcomplete export --format word2vec writes them as dense")
	}
	l := layout{columns: columns, word: -1, id: -1, options: o}
	var err error
	ids := []kind{text, scalar}
	if slices.ContainsFunc(columns, func(c column) bool { return c.kind == list }) {
		ids = append(ids, number) // which are no dimensions then
	}
	taken := -1
	if o.TextColumn != "" {
		if taken, err = find(columns, -1, o.TextColumn, "--text-column", nil, text); err != nil {
			return layout{}, err
		}
	}
	if o.IDColumn != "none" {
		if l.id, err = find(columns, taken, o.IDColumn, "--id-column", idNames, ids...); err != nil {
			return layout{}, err
		}
	}
	if o.WordList == "" {
		if l.word, err = only(columns, l.id, "text", o.TextColumn, "--text-column", slices.Concat(wordNames, textNames), text); err != nil {
			return layout{}, err
		}
		if l.word < 0 && l.id >= 0 && (columns[l.id].kind == text || o.IDColumn != "") { // all that rows are called by
			l.word, l.id, l.called = l.id, -1, true
		}
	}
	vector, err := only(columns, -1, "lists of numbers", o.VectorColumn, "--vector-column", vectorNames, list)
	if err != nil {
		return layout{}, err
	}
	for i, c := range columns {
		switch {
		case i == l.word, i == l.id:
		case i == vector, vector < 0 && c.kind == number:
			l.vectors = append(l.vectors, i)
		case c.kind != other && c.kind != list && l.word >= 0 && !strings.HasPrefix(c.name, "__"): // pandas's own
			l.rest = append(l.rest, i)
		}
	}
	l.list = vector >= 0
	if l.word >= 0 {
		l.said = append(l.said, l.word)
		if l.id >= 0 {
			l.said = append(l.said, l.id)
		}
		l.said = append(l.said, l.rest...)
	}
	switch {
	case len(l.vectors) == 0:
		return layout{}, fmt.Errorf("no vectors: want a column of lists, or columns, of float16, float32 or float64; the columns are %s", names(columns))
	case len(l.vectors) > vectors.MaxDim:
		return layout{}, fmt.Errorf("vectors of over %d numbers", vectors.MaxDim)
	}
	return l, nil
}

// find returns the column that a flag names, or else the first that has one of the known names,
// or -1 if there is none. It must be of one of the kinds, and not the one that is taken.
func find(columns []column, taken int, named, flag string, known []string, kinds ...kind) (int, error) {
	is := func(name string) int {
		for i, c := range columns {
			if c.name == name && i != taken && slices.Contains(kinds, c.kind) {
				return i
			}
		}
		return -1
	}
	if named != "" {
		if taken >= 0 && columns[taken].name == named {
			return 0, fmt.Errorf("column %.60q can't be that of ids and of texts: name another with %s", named, flag)
		}
		if i := is(named); i >= 0 {
			return i, nil
		}
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == named }) {
			return 0, fmt.Errorf("column %.60q can't be that of %s: it has something else", named, flag)
		}
		return 0, fmt.Errorf("has no column %.60q for %s; the columns are %s", named, flag, names(columns))
	}
	for _, name := range known {
		if i := is(name); i >= 0 {
			return i, nil
		}
	}
	return -1, nil
}

// only is find, but where there is none takes the only column of a kind, other than taken.
func only(columns []column, taken int, about, named, flag string, known []string, k kind) (int, error) {
	found, err := find(columns, taken, named, flag, known, k)
	if err != nil || found >= 0 {
		return found, err
	}
	var all []column
	for i, c := range columns {
		if c.kind == k && i != taken {
			found, all = i, append(all, c)
		}
	}
	if len(all) > 1 {
		return 0, fmt.Errorf("the columns of %s are %s; name the one to read with %s", about, names(all), flag)
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
	t := &vectors.Table{Words: l.word >= 0, Kind: l.kind(), IDs: l.id >= 0, Next: next, Describe: l.describe}
	for _, i := range l.rest {
		name := l.columns[i].name
		for name == vectors.IDName || name == vectors.TextName || slices.Contains(t.Columns, name) {
			name += "_"
		}
		t.Columns = append(t.Columns, name)
	}
	return t
}

// kind returns what rows are, if the flags or the name of their column say it.
func (l layout) kind() vectors.Kind {
	switch {
	case l.options.Rows != "":
		return l.options.Rows
	case l.word < 0, l.called:
		return vectors.KindWords
	case l.options.TextColumn != "", slices.Contains(textNames, l.columns[l.word].name):
		return vectors.KindTexts
	case slices.Contains(wordNames, l.columns[l.word].name):
		return vectors.KindWords
	}
	return ""
}

// describe is that of a [vectors.Table].
func (l layout) describe(k vectors.Kind) (about string, warnings []string) {
	read := slices.Concat([]int{l.word}, l.vectors)
	if k == vectors.KindTexts && l.word >= 0 {
		read = append(append(read, l.rest...), l.id)
		about = fmt.Sprintf("texts of column %.60q", l.columns[l.word].name)
		if l.id >= 0 {
			about += fmt.Sprintf(", ids of %.60q", l.columns[l.id].name)
		}
		if len(l.rest) > 0 {
			var kept []string
			for _, i := range l.rest {
				kept = append(kept, l.columns[i].name)
			}
			about += ", with " + shorten(kept)
		}
	}
	var left []string
	for i, c := range l.columns {
		if !slices.Contains(read, i) {
			left = append(left, c.name)
		}
	}
	if len(left) > 0 {
		warnings = []string{"columns not read: " + shorten(left)}
	}
	return about, warnings
}

// formatNumber writes a number of 32 or 64 bits, in as many digits as it takes to read the same
// again, and without an exponent unless that is long.
func formatNumber(x float64, bits int) string {
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e17) {
		return strconv.FormatFloat(x, 'g', -1, bits)
	}
	return strconv.FormatFloat(x, 'f', -1, bits)
}

// row returns a row without its vector. The function value reads the next of the columns that
// are strings, where null is "" and false.
func (l layout) row(value func(column int) (s string, ok bool, err error)) (r vectors.Row, err error) {
	for _, i := range l.said {
		s, ok, err := value(i)
		switch {
		case err != nil:
			return r, err
		case i == l.word:
			if r.Word = s; !ok {
				r.NoWord = faulty(l.columns[i], -1, "null, want a word")
			}
		case i == l.id:
			r.ID = s
		default:
			r.Columns = append(r.Columns, s)
		}
	}
	return r, nil
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
func (b *block) add(r vectors.Row, start int, err error) {
	r.Vector, r.Err = b.data[start:len(b.data):len(b.data)], err
	b.rows = append(b.rows, r)
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
		if errors.Is(err, errEncrypted) {
			return err
		}
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
