package columnar

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// A kind is the kind of the values of a column.
type kind int

const (
	other kind = iota
	text
	number // float16, float32 or float64
	list   // list of such numbers
	scalar // whole number or boolean
)

// A column is a column of a table.
type column struct {
	name string
	kind kind
}

// A layout assigns roles to columns, by their index; −1 means that no column has the role.
type layout struct {
	columns  []column
	name     int   // words or texts
	id       int   // ids of texts
	idIsName bool  // name is the column of ids: rows are words
	rest     []int // other columns of texts
	vectors  []int // a column of lists, or a column of numbers per dimension
	list     bool  // vectors is a column of lists
	strings  []int // columns to read as strings: name, id and rest
	options  tabular.Options
}

// Usual names of columns, in the order of preference.
var (
	wordNames   = []string{"word", "words", "token"}
	textNames   = []string{"text", "sentence", "document", "content", "passage"}
	idNames     = []string{tabular.IDName, "_id", "doc_id"}
	vectorNames = []string{"vector", "vectors", "embedding", "embeddings"}
)

// chooseColumns chooses the columns of names, ids and vectors. It returns an error for tables of
// sparse vectors; metadata reports whether the table has the metadata of [WriteArrow].
func chooseColumns(columns []column, metadata bool, o tabular.Options) (layout, error) {
	if metadata && slices.ContainsFunc(columns, func(c column) bool { return c.name == indicesName }) {
		return layout{}, errors.New("contains sparse vectors of a model, not dense ones; export its codes in a dense format first")
	}
	l := layout{columns: columns, name: -1, id: -1, options: o}
	ids := []kind{text, scalar}
	if slices.ContainsFunc(columns, func(c column) bool { return c.kind == list }) {
		ids = append(ids, number) // beside lists, a column of numbers isn't a dimension
	}
	names := search{columns, -1, "TextColumn", o.TextColumn, "text", slices.Concat(wordNames, textNames), []kind{text}}
	taken := -1
	var err error
	if o.TextColumn != "" {
		if taken, err = names.find(); err != nil {
			return layout{}, err
		}
	}
	if o.IDColumn != "none" {
		if l.id, err = (search{columns, taken, "IDColumn", o.IDColumn, "ids", idNames, ids}).find(); err != nil {
			return layout{}, err
		}
	}
	if !o.WordList {
		names.taken = l.id
		if l.name, err = names.findOrOnly(); err != nil {
			return layout{}, err
		}
		if l.name < 0 && l.id >= 0 && (columns[l.id].kind == text || o.IDColumn != "") {
			l.name, l.id, l.idIsName = l.id, -1, true
		}
	}
	if o.Rows == tabular.Words && o.IDColumn != "" && l.id >= 0 {
		return layout{}, &tabular.OptionError{Option: "IDColumn", Err: fmt.Errorf("column %.60q can't have the ids, because rows are words", o.IDColumn)}
	}
	vector, err := (search{columns, -1, "VectorColumn", o.VectorColumn, "lists of numbers", vectorNames, []kind{list}}).findOrOnly()
	if err != nil {
		return layout{}, err
	}
	for i, c := range columns {
		switch {
		case i == l.name, i == l.id:
		case i == vector, vector < 0 && c.kind == number:
			l.vectors = append(l.vectors, i)
		case c.kind != other && c.kind != list && l.name >= 0 && !strings.HasPrefix(c.name, "__index_level_"): // the index of pandas
			l.rest = append(l.rest, i)
		}
	}
	l.list = vector >= 0
	if l.name >= 0 {
		l.strings = append(l.strings, l.name)
		if l.id >= 0 {
			l.strings = append(l.strings, l.id)
		}
		l.strings = append(l.strings, l.rest...)
	}
	switch {
	case len(l.vectors) == 0:
		return layout{}, fmt.Errorf("no column has vectors (want lists or numbers of float16, float32 or float64; columns: %s)", listNames(columns))
	case len(l.vectors) > tabular.MaxDim:
		return layout{}, fmt.Errorf("the vectors are too long (want at most %d numbers)", tabular.MaxDim)
	}
	return l, nil
}

// A search finds the column of a role.
type search struct {
	columns []column
	taken   int      // index of a column with another role, or −1
	option  string   // option that names the column
	named   string   // value of the option, or ""
	content string   // content of the column, for messages
	known   []string // usual names, in the order of preference
	kinds   []kind   // valid kinds of the column
}

func (s search) fail(format string, a ...any) (int, error) {
	return 0, &tabular.OptionError{Option: s.option, Err: fmt.Errorf(format, a...)}
}

// find returns the index of the column that the option names or that has a usual name, or −1.
func (s search) find() (int, error) {
	if s.named != "" && s.taken >= 0 && s.columns[s.taken].name == s.named {
		return s.fail("column %.60q can't have both ids and texts", s.named)
	}
	known := s.known
	if s.named != "" {
		known = []string{s.named}
	}
	for _, name := range known {
		for i, c := range s.columns {
			if c.name == name && i != s.taken && slices.Contains(s.kinds, c.kind) {
				return i, nil
			}
		}
	}
	switch {
	case s.named == "":
		return -1, nil
	case slices.ContainsFunc(s.columns, func(c column) bool { return c.name == s.named }):
		return s.fail("column %.60q has values of another type than %s", s.named, s.content)
	}
	return s.fail("has no column %.60q (columns: %s)", s.named, listNames(s.columns))
}

// findOrOnly is like find, but without a usual name it returns the only column of kind s.kinds[0], or −1. Several
// such columns are an error.
func (s search) findOrOnly() (int, error) {
	found, err := s.find()
	if err != nil || found >= 0 {
		return found, err
	}
	var all []column
	for i, c := range s.columns {
		if c.kind == s.kinds[0] && i != s.taken {
			found, all = i, append(all, c)
		}
	}
	if len(all) > 1 {
		return s.fail("several columns have %s, %s; name the one to read", s.content, listNames(all))
	}
	return found, nil
}

// listNames formats the names of columns for a message.
func listNames(columns []column) string {
	var all []string
	for _, c := range columns {
		all = append(all, c.name)
	}
	return shorten(all)
}

func shorten(names []string) string {
	const limit = 5
	if len(names) > limit {
		return fmt.Sprintf("%d, such as %.60q", len(names), names[:limit])
	}
	return fmt.Sprintf("%.60q", names)
}

// table returns a table with the layout, whose rows next returns.
func (l layout) table(next func() (block, error)) *tabular.Table {
	t := &tabular.Table{Named: l.name >= 0, Kind: l.kind(), IDs: l.id >= 0, Describe: l.describe}
	t.Next = func() ([]tabular.Row, []float32, error) {
		b, err := next()
		return b.rows, b.data, err
	}
	for _, i := range l.rest {
		t.Columns = append(t.Columns, tabular.FreeName(l.columns[i].name, t.Columns))
	}
	for _, i := range slices.Concat(l.strings, l.vectors) {
		role := "column"
		switch {
		case i == l.name:
			role = "names in column"
		case i == l.id:
			role = "ids in column"
		case slices.Contains(l.vectors, i):
			role = "vectors in column"
		}
		t.Schema = append(t.Schema, fmt.Sprintf("%s %.60q", role, l.columns[i].name))
	}
	return t
}

// kind returns the kind of rows by the options or the name of their column, or "".
func (l layout) kind() string {
	switch {
	case l.options.Rows != "":
		return l.options.Rows
	case l.name < 0, l.idIsName:
		return tabular.Words
	case l.options.TextColumn != "", l.options.IDColumn != "" && l.id >= 0, slices.Contains(textNames, l.columns[l.name].name):
		return tabular.Texts
	case slices.Contains(wordNames, l.columns[l.name].name):
		return tabular.Words
	}
	return ""
}

// describe implements Describe of a [tabular.Table].
func (l layout) describe(texts bool) (columns string, warnings []string) {
	read := slices.Concat([]int{l.name}, l.vectors)
	if texts && l.name >= 0 {
		read = append(append(read, l.rest...), l.id)
		columns = fmt.Sprintf("texts of column %.60q", l.columns[l.name].name)
		if l.id >= 0 {
			columns += fmt.Sprintf(", ids of %.60q", l.columns[l.id].name)
		}
		if len(l.rest) > 0 {
			columns += ", with " + l.shorten(l.rest)
		}
	}
	var ignored []int
	for i := range l.columns {
		if !slices.Contains(read, i) {
			ignored = append(ignored, i)
		}
	}
	if len(ignored) > 0 {
		warnings = []string{"columns not read: " + l.shorten(ignored)}
	}
	return columns, warnings
}

// shorten formats the names of the given columns for a message.
func (l layout) shorten(columns []int) string {
	var names []string
	for _, i := range columns {
		names = append(names, l.columns[i].name)
	}
	return shorten(names)
}

// formatNumber returns the shortest decimal that parses to a number of 32 or 64 bits. It has an
// exponent only if the number is very large or small.
func formatNumber(x float64, bits int) string {
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e17) {
		return strconv.FormatFloat(x, 'g', -1, bits)
	}
	return strconv.FormatFloat(x, 'f', -1, bits)
}

// row returns a row without its vector. The function value returns the next string of a column; ok
// is false for null.
func (l layout) row(value func(column int) (s string, ok bool, err error)) (r tabular.Row, err error) {
	for _, i := range l.strings {
		s, ok, err := value(i)
		switch {
		case err != nil:
			return r, err
		case i == l.name:
			if r.Name = s; !ok {
				r.NotWord = valueError(l.columns[i], -1, "null (want a word)")
			}
		case i == l.id:
			r.ID = s
		default:
			r.Columns = append(r.Columns, s)
		}
	}
	return r, nil
}

// A block is a run of rows that are read together. The next block reuses the memory of rows.
type block struct {
	rows []tabular.Row
	data []float32
}

// A block ends after this many numbers or bytes of strings.
const (
	blockNumbers = 1 << 16
	blockText    = 16 << 20
)

// reset starts the next block, with room for its numbers if its rows are as long as the latest one.
func (b *block) reset() {
	room := 0
	if n := len(b.rows); n > 0 {
		room = min(len(b.data), blockNumbers+b.rows[n-1].Len)
	}
	b.rows, b.data = b.rows[:0], make([]float32, 0, room)
}

// add adds a row, whose vector is data[start:].
func (b *block) add(r tabular.Row, start int, err error) {
	r.Len, r.Err = len(b.data)-start, err
	b.rows = append(b.rows, r)
}

// valueError returns the reason why a row is malformed: the value of a column or, if number isn't
// negative, the element of its list at index number.
func valueError(c column, number int, problem string) error {
	if number < 0 {
		return fmt.Errorf("column %.60q is %s", c.name, problem)
	}
	return fmt.Errorf("column %.60q: value %d is %s", c.name, number+1, problem)
}

// indexNotFinite returns the index of the first number that is infinite or NaN, or −1.
func indexNotFinite(numbers []float32) int {
	if float32s.Finite(numbers) {
		return -1
	}
	return slices.IndexFunc(numbers, func(x float32) bool { return x-x != 0 })
}

// checkNumber returns an error unless x is finite.
func checkNumber(c column, number int, x float32) error {
	if x-x == 0 {
		return nil
	}
	return notFinite(c, number, x)
}

func notFinite(c column, number int, x float32) error {
	value := "infinite or beyond the range of float32"
	if math.IsNaN(float64(x)) {
		value = "NaN"
	}
	return valueError(c, number, value+" (want a finite number)")
}

// guard returns the result of f. It converts panics of libraries, which damaged files cause, to errors.
func guard[T any](format string, f func() (T, error)) (result T, err error) {
	damaged := func(err error) error {
		if errors.Is(err, errEncrypted) || errors.Is(err, errUnsupported) {
			return err
		}
		if strings.Contains(err.Error(), "runtime error") { // a panic of a library, of no use to people
			err = errors.New("the file is inconsistent")
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
