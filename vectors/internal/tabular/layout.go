package tabular

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"overcomplete/internal/float32s"
)

// A Kind says what the values of a column can be.
type Kind int

const (
	Other  Kind = iota // unreadable, such as nested lists
	Text               // strings
	Scalar             // values other than numbers that strings can represent, such as dates
	Number             // numbers, also decimals
	List               // lists of numbers, or another representation of vectors
	Bytes              // bytes, which may be texts or numbers
)

// A Column is a column of a table.
type Column struct {
	Name string
	Type string // for messages, such as "list of int8"
	Kind Kind
}

// A Layout assigns roles to the columns of a table, by their index; −1 means that no column has the role.
type Layout struct {
	Columns  []Column
	Name     int   // words or texts
	ID       int   // ids of texts
	IDIsName bool  // Name is the column of ids, because rows are words
	Rest     []int // columns of texts beside Name and ID
	Vectors  []int // a column of lists or of strings that contain lists, or a column of numbers per dimension
	Strings  []int // columns to read as strings: Name, ID, Rest, and the column of vectors if it has strings
	options  Options
}

// Usual names of columns, in the order of preference. The case of letters doesn't matter.
var (
	wordNames   = []string{"word", "words", "token"}
	textNames   = []string{TextName, "sentence", "document", "content", "passage"}
	idNames     = []string{IDName, "_id", "doc_id"}
	vectorNames = []string{"vector", "vectors", "embedding", "embeddings", "features"}
)

// Choose chooses the columns of vectors, names and ids as a person would.
//
// The vectors are, in order of preference, the column that o.VectorColumns names, the column with a usual name for
// vectors, the only column of lists, or else columns of numbers whose names count upwards from 0 or 1 after a common
// prefix, such as e0, e1, e2. No other column of numbers is ever a dimension. A column with a usual name for vectors or
// ids whose values can't be read is an error.
func Choose(columns []Column, o Options) (*Layout, error) {
	l := &Layout{Columns: columns, Name: -1, ID: -1, options: o}
	var err error
	if !o.NamesOnly {
		if l.Vectors, err = chooseVectors(columns, o); err != nil {
			return nil, err
		}
	}
	if l.inText() {
		l.Strings = slices.Clone(l.Vectors)
	}
	taken := slices.Clone(l.Vectors)
	readable := []Kind{Text, Scalar, Number}
	names := search{columns, "TextColumn", o.TextColumn, "text", slices.Concat(wordNames, textNames), readable[:1]}
	if o.TextColumn != "" {
		if l.Name, err = names.find(taken); err != nil {
			return nil, err
		}
		taken = append(taken, l.Name)
	}
	if o.IDColumn != "none" {
		ids := search{columns, "IDColumn", o.IDColumn, "ids", idNames, readable}
		if l.ID, err = ids.find(taken); err != nil {
			return nil, err
		}
		taken = append(taken, l.ID)
	}
	if o.WordList {
		l.Name = -1
	} else if l.Name < 0 {
		if l.Name, err = names.findOrOnly(taken); err != nil {
			return nil, err
		}
	}
	if l.Name < 0 && l.ID >= 0 && !o.WordList {
		l.Name, l.ID, l.IDIsName = l.ID, -1, true
	}
	if o.Rows == Words && o.IDColumn != "" && l.ID >= 0 {
		return nil, optionError("IDColumn", "column %.60q can't have the ids, because rows are words", o.IDColumn)
	}
	if l.Name < 0 && o.NamesOnly {
		return nil, optionError("TextColumn", "no column has words or texts (columns: %s)", listNames(columns))
	}
	if l.Name < 0 {
		return l, nil
	}
	l.Strings = append(l.Strings, l.Name)
	if l.ID >= 0 {
		l.Strings = append(l.Strings, l.ID)
	}
	for i, c := range columns {
		if i != l.Name && i != l.ID && !slices.Contains(l.Vectors, i) && slices.Contains(readable, c.Kind) && !isIndex(c) {
			l.Rest = append(l.Rest, i)
		}
	}
	l.Strings = append(l.Strings, l.Rest...)
	return l, nil
}

func optionError(option, format string, a ...any) error {
	return &OptionError{Option: option, Err: fmt.Errorf(format, a...)}
}

// chooseVectors returns the columns of the vectors; see [Choose].
func chooseVectors(columns []Column, o Options) (found []int, err error) {
	const option = "VectorColumns"
	if o.VectorColumns != "" {
		found, err = selectColumns(columns, o.VectorColumns)
	} else {
		var all, lists, named, others []int
		for i, c := range columns {
			all = append(all, i)
			usual := NamesVectors(c.Name)
			switch {
			case c.Kind == List && usual:
				named = append(named, i)
			case c.Kind == List:
				lists = append(lists, i)
			case usual:
				others = append(others, i)
			}
		}
		if len(named) == 0 && len(others) == 0 {
			named = lists
		}
		switch {
		case len(named) > 1:
			return nil, optionError(option, "several columns can be the vectors, %s; name the one to read", describe(columns, named))
		case len(named) == 1:
			return named, nil
		case len(others) > 0:
			return readableVector(columns, others[0])
		}
		if found, err = countingColumns(columns); err == nil && found == nil {
			err = optionError(option, "no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got %s); name the columns to read", describe(columns, all))
		}
	}
	if len(found) > MaxDim {
		err = optionError(option, "the vectors are too long (want at most %d numbers)", MaxDim)
	}
	return found, err
}

// readableVector returns column i, which is named as the vectors, or an error if its values can't be vectors.
func readableVector(columns []Column, i int) ([]int, error) {
	c := columns[i]
	advice := "store lists of numbers"
	switch c.Kind {
	case List, Text:
		return []int{i}, nil
	case Bytes:
		advice = "unpack it first: numpy.unpackbits for binary embeddings, numpy.frombuffer for others"
	}
	return nil, optionError("VectorColumns", "column %.60q can't be the vectors: its type is %s (want lists of numbers); %s, or name the columns to read", c.Name, c.Type, advice)
}

// selectColumns returns the columns that the option VectorColumns selects. The option is the name of a column, has the
// form first:last for columns of numbers, or is a pattern of [path.Match] for columns of numbers.
func selectColumns(columns []Column, selection string) (found []int, err error) {
	const option = "VectorColumns"
	index := func(name string) int { return slices.IndexFunc(columns, func(c Column) bool { return c.Name == name }) }
	first, last := index(selection), index(selection)
	if first >= 0 && columns[first].Kind != Number {
		return readableVector(columns, first)
	}
	if a, b, isRange := strings.Cut(selection, ":"); isRange && first < 0 {
		first, last = index(a), index(b)
	}
	for i, c := range columns {
		if first < 0 || last < first { // a pattern
			if matches, err := path.Match(selection, c.Name); err != nil {
				return nil, optionError(option, "invalid pattern %.60q", selection)
			} else if !matches || c.Kind != Number {
				continue
			}
		} else if i < first || i > last {
			continue
		} else if c.Kind != Number {
			return nil, optionError(option, "column %.60q, within %.60q, has the type %s (want numbers)", c.Name, selection, c.Type)
		}
		found = append(found, i)
	}
	if found == nil {
		err = optionError(option, "no columns of numbers %.60q (want a name, a pattern or first:last; columns: %s)", selection, listNames(columns))
	}
	return found, err
}

// countingColumns returns the columns of numbers whose names are a common prefix with 0, 1, 2, … or with 1, 2, 3, …, in
// this order. It returns nil if there are fewer than two. It returns an error if several prefixes have such columns.
func countingColumns(columns []Column) (found []int, err error) {
	groups := map[string][][2]int{} // numbers and columns by prefix
	var prefixes, names []string
	for i, c := range columns {
		prefix := strings.TrimRight(c.Name, "0123456789")
		n, err := strconv.Atoi(c.Name[len(prefix):])
		if c.Kind != Number || err != nil {
			continue
		}
		if groups[prefix] == nil {
			prefixes = append(prefixes, prefix)
		}
		groups[prefix] = append(groups[prefix], [2]int{n, i})
	}
	for _, prefix := range prefixes {
		group := groups[prefix]
		slices.SortFunc(group, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
		var run []int
		for i, column := range group {
			if start := group[0][0]; start <= 1 && column[0] == start+i { // not e1 and e01
				run = append(run, column[1])
			}
		}
		if len(run) == len(group) && len(run) > 1 {
			found = run
			names = append(names, fmt.Sprintf("%.60q to %.60q", columns[run[0]].Name, columns[run[len(run)-1]].Name))
		}
	}
	if len(names) > 1 {
		err = optionError("VectorColumns", "several groups of columns can be the vectors, %s; name the ones to read", strings.Join(names, " and "))
	}
	return found, err
}

// UnnamedIndex is the name that pandas gives to an index without a name.
const UnnamedIndex = "__index_level_0__"

// isIndex reports whether pandas wrote the column as an index without a name.
func isIndex(c Column) bool { return strings.HasPrefix(c.Name, "__index_level_") }

// hasName reports whether a name is one of the usual names.
func hasName(usual []string, name string) bool {
	return slices.ContainsFunc(usual, func(u string) bool { return strings.EqualFold(u, name) })
}

// A search finds the column of a role.
type search struct {
	columns []Column
	option  string   // option that names the column
	named   string   // value of the option, or ""
	content string   // content of the column, for messages
	usual   []string // usual names, in the order of preference
	kinds   []Kind   // valid kinds of the column
}

// find returns the index of the column that the option names, or the first readable column with a usual name, or −1. It
// returns an error if the option names a taken column, or a column without a valid kind. It also returns an
// error if columns with usual names contain bytes or nothing readable. Numbers are no error: a column "words" may count
// words.
func (s search) find(taken []int) (int, error) {
	if s.named != "" {
		i := slices.IndexFunc(s.columns, func(c Column) bool { return c.Name == s.named })
		switch {
		case i < 0:
			return -1, optionError(s.option, "has no column %.60q (columns: %s)", s.named, listNames(s.columns))
		case slices.Contains(taken, i) && slices.Contains(s.kinds, s.columns[i].Kind):
			return -1, optionError(s.option, "column %.60q can't have two roles, such as ids and texts", s.named)
		}
		return s.check(i)
	}
	unreadable := -1
	for _, name := range s.usual {
		for i, c := range s.columns {
			switch {
			case !strings.EqualFold(c.Name, name) || slices.Contains(taken, i):
			case c.Kind == Bytes || slices.Contains(s.kinds, c.Kind):
				return s.check(i)
			case unreadable < 0 && (c.Kind == List || c.Kind == Other):
				unreadable = i
			}
		}
	}
	if unreadable >= 0 {
		return s.check(unreadable)
	}
	return -1, nil
}

// check returns i, or an error if column i can't have the role.
func (s search) check(i int) (int, error) {
	if c := s.columns[i]; !slices.Contains(s.kinds, c.Kind) {
		advice := "name another column"
		if c.Kind == Bytes {
			advice = "cast it to strings, or " + advice
		}
		return -1, optionError(s.option, "column %.60q can't have the %s: its type is %s; %s", c.Name, s.content, c.Type, advice)
	}
	return i, nil
}

// findOrOnly is like find, but without a usual name it returns the only column of kind s.kinds[0], or −1. Several
// such columns are an error. A column of bytes counts, too, because it may have the role's content.
func (s search) findOrOnly(taken []int) (int, error) {
	found, err := s.find(taken)
	if err != nil || found >= 0 {
		return found, err
	}
	var all []int
	for i, c := range s.columns {
		if (c.Kind == s.kinds[0] || c.Kind == Bytes) && !slices.Contains(taken, i) {
			all = append(all, i)
		}
	}
	switch len(all) {
	case 0:
		return -1, nil
	case 1:
		return s.check(all[0])
	}
	return -1, optionError(s.option, "several columns have %s, %s; name the one to read", s.content, describe(s.columns, all))
}

// listNames formats the names of columns for a message.
func listNames(columns []Column) string {
	var all []string
	for _, c := range columns {
		all = append(all, c.Name)
	}
	return Shorten(all)
}

// Shorten formats names for a message: the first few of a long list, and the beginnings of long names.
func Shorten(names []string) string {
	const limit = 5
	if len(names) > limit {
		return fmt.Sprintf("%d, such as %.60q", len(names), names[:limit])
	}
	return fmt.Sprintf("%.60q", names)
}

// describe formats the names and types of the given columns for a message.
func describe(columns []Column, which []int) string {
	const limit = 8
	var all []string
	for _, i := range which[:min(limit, len(which))] {
		all = append(all, fmt.Sprintf("%.60q (%s)", columns[i].Name, columns[i].Type))
	}
	list := strings.Join(all, ", ")
	if n := len(which) - limit; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return list
}

// inText reports whether the vectors are lists in text form, such as "[1, 2]".
func (l *Layout) inText() bool { return len(l.Vectors) > 0 && l.Columns[l.Vectors[0]].Kind == Text }

// IsList reports whether a vector is a list in one column, not numbers in several columns or a text.
func (l *Layout) IsList() bool { return len(l.Vectors) > 0 && l.Columns[l.Vectors[0]].Kind == List }

// Used returns the columns that have a role.
func (l *Layout) Used() []int {
	if l.inText() {
		return l.Strings
	}
	return slices.Concat(l.Strings, l.Vectors)
}

// Others returns the names of the columns in l.Rest, with underscores where a name is taken.
func (l *Layout) Others() (names []string) {
	for _, i := range l.Rest {
		names = append(names, FreeName(l.Columns[i].Name, names))
	}
	return names
}

// Schema describes the columns that are read, for messages.
func (l *Layout) Schema() (schema []string) {
	for _, i := range l.Used() {
		role := "column"
		switch {
		case i == l.Name:
			role = "names in column"
		case i == l.ID:
			role = "ids in column"
		case slices.Contains(l.Vectors, i):
			role = "vectors in column"
		}
		schema = append(schema, fmt.Sprintf("%s %.60q", role, l.Columns[i].Name))
	}
	return schema
}

// Kind returns the kind of rows that the options or the name of their column determine, [Words] or [Texts]. It returns
// "" if the rows must determine it.
func (l *Layout) Kind() string {
	switch {
	case l.options.Rows != "":
		return l.options.Rows
	case l.Name < 0, l.IDIsName:
		return Words
	case l.options.TextColumn != "", l.options.IDColumn != "" && l.ID >= 0, hasName(textNames, l.Columns[l.Name].Name):
		return Texts
	case hasName(wordNames, l.Columns[l.Name].Name):
		return Words
	}
	return ""
}

// Describe returns a description of the columns that are read, for display, and warnings.
func (l *Layout) Describe(texts bool) (columns string, warnings []string) {
	read := slices.Concat([]int{l.Name}, l.Vectors)
	if texts && l.Name >= 0 {
		read = append(append(read, l.Rest...), l.ID)
		columns = fmt.Sprintf("texts of column %.60q", l.Columns[l.Name].Name)
		if l.ID >= 0 {
			columns += fmt.Sprintf(", ids of %.60q", l.Columns[l.ID].Name)
		}
		if len(l.Rest) > 0 {
			var names []string
			for _, i := range l.Rest {
				names = append(names, l.Columns[i].Name)
			}
			columns += ", with " + Shorten(names)
		}
	}
	if n := len(l.Vectors); n > 1 {
		if columns != "" {
			columns += ", "
		}
		columns += fmt.Sprintf("vectors of %.60q to %.60q", l.Columns[l.Vectors[0]].Name, l.Columns[l.Vectors[n-1]].Name)
	}
	var ignored []int
	for i := range l.Columns {
		if !slices.Contains(read, i) && !isIndex(l.Columns[i]) {
			ignored = append(ignored, i)
		}
	}
	if len(ignored) > 0 {
		warnings = []string{"columns not read: " + describe(l.Columns, ignored)}
	}
	return columns, warnings
}

// Row returns a row without its vector. The function value returns the next string of a column; ok
// is false for null.
func (l *Layout) Row(value func(column int) (s string, ok bool, err error)) (r Row, err error) {
	for _, i := range l.Strings {
		s, ok, err := value(i)
		switch {
		case err != nil:
			return r, err
		case i == l.Name:
			if r.Name = s; !ok {
				r.NotID = ValueError(l.Columns[i], -1, "null (want a word)")
			}
		case i == l.ID:
			r.ID = s
		case l.inText() && i == l.Vectors[0]:
			if r.Vector = s; !ok {
				r.Err = ValueError(l.Columns[i], -1, "null (want a list)")
			}
		default:
			r.Columns = append(r.Columns, s)
		}
	}
	return r, nil
}

// NotFinite returns the index of the first number of a vector that isn't finite, and the problem; or −1.
func NotFinite(vector []float32) (i int, problem string) {
	if i = float32s.NotFinite(vector); i >= 0 {
		problem = fmt.Sprintf("not a finite number in the range of float32 (got %v)", vector[i])
	}
	return i, problem
}

// CheckFinite returns an error unless the numbers of a vector are finite.
func (l *Layout) CheckFinite(vector []float32) error {
	i, problem := NotFinite(vector)
	if i < 0 {
		return nil
	}
	column, number := l.Vectors[0], i
	if len(l.Vectors) > 1 || l.Columns[column].Kind == Number {
		column, number = l.Vectors[i], -1
	}
	return ValueError(l.Columns[column], number, problem)
}

// ValueError returns the reason why a row is malformed: the value of a column or, if number isn't
// negative, the element of its list at index number.
func ValueError(c Column, number int, problem string) error {
	if number < 0 {
		return fmt.Errorf("column %.60q is %s", c.Name, problem)
	}
	return fmt.Errorf("column %.60q: value %d is %s", c.Name, number+1, problem)
}
