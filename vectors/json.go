package vectors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"

	"overcomplete/vectors/internal/tabular"
)

// jsonFormat parses JSON lines, an object per record.
type jsonFormat struct {
	index map[string]int // columns by key
	keys  []string       // keys of columns
}

const jsonLines = "JSON lines"

var errJSONArray = errors.New("is a JSON array; write each of its objects in a line of its own, as jq -c '.[]' does")

func (f *jsonFormat) name() string { return jsonLines }

func (f *jsonFormat) cut(b []byte, last bool) (end, quote int) { return cutLines(b, last) }

// detectJSON returns the format of JSON lines that begin with head, or nil. It detects an object by its first key, because "{"
// can also be a word.
func detectJSON(head []byte) (*jsonFormat, error) {
	p := jsonParser{b: head}
	if p.beginsObject() {
		return &jsonFormat{}, nil
	}
	if p.skip('[') && p.beginsObject() {
		return nil, errJSONArray
	}
	return nil, nil
}

// stringEnd returns the end of the string whose content begins at b[i], or -1 if it doesn't end.
func stringEnd(b []byte, i int) int {
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		content := b[i : i+n]
		i += n + 1
		if backslashes := n - len(bytes.TrimRight(content, `\`)); backslashes%2 == 0 {
			return i
		}
	}
}

func (f *jsonFormat) columns(piece []byte) ([]tabular.Column, error) {
	f.index = map[string]int{}
	var samplers []*sampler
	var first *lineError // error of the first malformed record
	add := func(key []byte) *sampler {
		i, ok := f.index[string(key)]
		if !ok {
			i = len(samplers)
			f.index[string(key)] = i
			f.keys = append(f.keys, string(key))
			samplers = append(samplers, &sampler{column: tabular.Column{Name: string(bytes.ToValidUTF8(key, []byte("\uFFFD")))}})
		}
		return samplers[i]
	}
	rows := 0
	for number, record := range jsonRecords(piece) {
		p := jsonParser{b: record}
		problem := p.members(func(key []byte) error { // stops at the first error of a record
			start := p.i
			err := p.value(0)
			if s := add(key); err == nil {
				s.addJSON(p.b[start:p.i])
			}
			return err
		})
		if problem != nil && first == nil {
			first = &lineError{number, problem}
		}
		if rows++; rows == maxSampled {
			break
		}
	}
	if samplers == nil && first != nil {
		return nil, first
	}
	var columns []tabular.Column
	for _, s := range samplers {
		columns = append(columns, s.choose())
	}
	return columns, nil
}

// addJSON adds a value of a column.
func (s *sampler) addJSON(value []byte) {
	switch c := value[0]; c {
	case 'n':
	case '"':
		s.addString(unquoteJSON(value))
	case 't', 'f':
		s.others++
	case '{':
		s.nested = "object"
	case '[':
		switch c := value[skipSpace(value, 1)]; c {
		case ']':
		case '"':
			s.nested = "list of strings"
		case '[':
			s.nested = "list of lists"
		case '{':
			s.nested = "list of objects"
		default:
			s.lists++
		}
	default:
		s.numbers++
	}
}

// jsonRecords yields the lines of a piece that aren't blank, and the line breaks before each.
func jsonRecords(piece []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		number := 0
		for line := range bytes.Lines(piece) {
			if len(bytes.TrimSpace(line)) > 0 && !yield(number, line) {
				return
			}
			number++
		}
	}
}

func (f *jsonFormat) parse(piece []byte, l *recordLayout) records {
	p := recordParser{format: f, layout: l, values: make([][]byte, len(l.Columns)), last: make([]int, len(l.Columns))}
	p.visit = p.member
	p.out.Numbers = make([]float32, 0, len(piece)/8)
	for number, record := range jsonRecords(piece) {
		p.json = jsonParser{b: record}
		p.object(number)
	}
	p.out.Numbers, p.out.lines = clipNumbers(p.out.Numbers), bytes.Count(piece, newline)
	return p.out
}

// A recordParser parses the records of a piece.
type recordParser struct {
	format *jsonFormat
	layout *recordLayout
	json   jsonParser             // of the record
	visit  func(key []byte) error // member
	values [][]byte               // values of columns in the record
	last   []int                  // number of the last record with a value, by column
	record int                    // number of the record, from 1
	next   int                    // column of the next key, if keys are in the usual order
	start  int                    // offset of the row's vector in out.Numbers
	err    error                  // the reason why the row is malformed
	out    records
}

// object adds the row of an object, or a malformed row, after number line breaks.
func (p *recordParser) object(number int) {
	p.record++
	p.next, p.start, p.err = 0, len(p.out.Numbers), nil
	if p.layout.list < 0 {
		p.out.Numbers = append(p.out.Numbers, make([]float32, len(p.layout.Vectors))...)
	}
	syntax := p.json.members(p.visit)
	if syntax == nil && p.json.skipSpace() < len(p.json.b) {
		syntax = p.json.fail("the end of the line")
	}
	for _, i := range p.layout.Vectors {
		if p.last[i] != p.record {
			p.malformed(i, -1, "missing")
		}
	}
	row, _ := p.layout.Row(func(column int) (string, bool, error) {
		value := p.values[column]
		switch {
		case p.last[column] != p.record || value[0] == 'n':
			return "", false, nil
		case value[0] == '"':
			return string(unquoteJSON(value)), true, nil
		}
		return string(value), true, nil
	})
	if row.Err = cmp.Or(syntax, p.err); row.Err != nil {
		p.out.Numbers = p.out.Numbers[:p.start]
	}
	row.Number, row.Len = number, len(p.out.Numbers)-p.start
	p.out.Rows = append(p.out.Rows, row)
}

// member parses the value of a key of a row.
func (p *recordParser) member(key []byte) error {
	f := p.format
	column := p.next
	if column == len(f.keys) || string(key) != f.keys[column] {
		var ok bool
		if column, ok = f.index[string(key)]; !ok {
			if !slices.Contains(p.out.unknown, string(key)) && len(p.out.unknown) < 10 {
				p.out.unknown = append(p.out.unknown, string(key))
			}
			return p.json.value(0)
		}
	}
	p.next = column + 1
	if p.last[column] == p.record && p.err == nil {
		p.err = fmt.Errorf("the key %.60q is repeated", key)
	}
	p.last[column] = p.record
	switch start := p.json.i; {
	case column == p.layout.list:
		return p.vector(column)
	case p.layout.position[column] >= 0:
		return p.number(column)
	default:
		if err := p.json.value(0); err != nil {
			p.last[column] = 0 // no value
			return err
		}
		p.values[column] = p.json.b[start:p.json.i]
		return nil
	}
}

// malformed records the reason why a row is malformed, unless there is another.
func (p *recordParser) malformed(column, number int, problem string) {
	if p.err == nil {
		p.err = tabular.ValueError(p.layout.Columns[column], number, problem)
	}
}

// number parses a number of the vector.
func (p *recordParser) number(column int) error {
	b, start := p.json.b, p.json.i
	x, end, err := parseDecimal(b, start)
	if err == nil && end < len(b) && (b[end] == ',' || b[end] == '}') && isStrict(b[start:end]) {
		p.out.Numbers[p.start+p.layout.position[column]] = x
		p.json.i = end
		return nil
	}
	if syntax := p.json.value(0); syntax != nil {
		return syntax
	}
	if value := b[start:p.json.i]; err != nil || len(value) != end-start {
		p.malformed(column, -1, describeJSON(value, err)+" (want a number)")
	}
	p.out.Numbers[p.start+p.layout.position[column]] = x
	return nil
}

// vector parses the vector of a row: a list of numbers, or a string.
func (p *recordParser) vector(column int) error {
	b, start := p.json.b, p.json.i
	if b[start] != '[' {
		err := p.json.value(0)
		if err != nil {
			return err
		}
		value := b[start:p.json.i]
		if value[0] != '"' {
			p.malformed(column, -1, describeJSON(value, nil)+" (want a list)")
		} else if p.out.Numbers, err = appendVector(p.out.Numbers, unquoteJSON(value)); err != nil && p.err == nil {
			p.err = fmt.Errorf("column %.60q: %w", p.layout.Columns[column].Name, err)
		}
		return nil
	}
	i := skipSpace(b, start+1)
	if i < len(b) && b[i] == ']' {
		p.json.i = i + 1
		return nil
	}
	numbers := p.out.Numbers
	for n := 0; ; n++ {
		x, end, err := parseDecimal(b, i)
		if err != nil || !isStrict(b[i:end]) {
			p.json.i = i
			if syntax := p.json.value(1); syntax != nil {
				return syntax
			}
			end = p.json.i
			if err != nil {
				p.malformed(column, n, describeJSON(b[i:end], err))
			}
		}
		numbers = append(numbers, x)
		if i = end; i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if i == len(b) || b[i] != ',' {
			break
		}
		if i++; i < len(b) && b[i] == ' ' {
			i++
		}
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
	}
	p.out.Numbers, p.json.i = numbers, i
	if !p.json.skip(']') {
		return p.json.fail("a comma or ]")
	}
	return nil
}

// isStrict reports whether a number of [parseDecimal] has the digits that JSON requires.
func isStrict(number []byte) bool {
	if number[0] == '-' {
		number = number[1:]
	}
	return isDigit(number[0]) && (number[0] != '0' || len(number) == 1 || !isDigit(number[1])) && number[len(number)-1] != '.'
}

// describeJSON describes a value that isn't a number of a vector. The argument err is the error of parsing it as a
// number.
func describeJSON(value []byte, err error) string {
	switch value[0] {
	case 'n':
		return "null"
	case '"':
		return "a string"
	case '[':
		return "a list"
	case '{':
		return "an object"
	case 't', 'f':
		return "a boolean"
	}
	if err == nil {
		return "a number"
	}
	return fmt.Sprintf("%v (got %s)", err, quote(value))
}

// A jsonParser parses JSON (RFC 8259) in b. It also accepts the numbers NaN and Infinity, which Python writes. Its methods
// parse a value that begins at offset i, and move i to its end.
type jsonParser struct {
	b []byte
	i int
}

// fail returns the error that the value at offset i isn't the wanted one.
func (p *jsonParser) fail(want string) error {
	if p.i >= len(p.b) {
		return fmt.Errorf("not a JSON object: the line ends within it (want %s)", want)
	}
	return fmt.Errorf("not a JSON object (got %s, want %s at byte %d)", quote(bytes.TrimSpace(p.b[p.i:])), want, p.i+1)
}

// skipSpace moves to the next byte that isn't white space, and returns its offset.
func (p *jsonParser) skipSpace() int {
	p.i = skipSpace(p.b, p.i)
	return p.i
}

// skip moves past white space and c, and reports whether c is there.
func (p *jsonParser) skip(c byte) bool {
	if p.skipSpace() == len(p.b) || p.b[p.i] != c {
		return false
	}
	p.i++
	return true
}

// beginsObject reports whether an object begins here, by its first key. It doesn't move p.
func (p jsonParser) beginsObject() bool {
	return p.skip('{') && (p.skip('}') || p.skipSpace() < len(p.b) && p.b[p.i] == '"' && p.string() == nil && p.skip(':'))
}

// members calls visit with each key of an object. Visit must move p past the value.
func (p *jsonParser) members(visit func(key []byte) error) error {
	return p.items('{', '}', func() error {
		if p.skipSpace() == len(p.b) || p.b[p.i] != '"' {
			return p.fail("a key")
		}
		start := p.i
		if err := p.string(); err != nil {
			return err
		}
		key := unquoteJSON(p.b[start:p.i])
		if !p.skip(':') {
			return p.fail(":")
		}
		if p.skipSpace() == len(p.b) {
			return p.fail("a value")
		}
		return visit(key)
	})
}

// items calls visit for each item between two brackets. Visit must move p past the item.
func (p *jsonParser) items(open, end byte, visit func() error) error {
	if !p.skip(open) {
		return p.fail(string(open))
	}
	if p.skip(end) {
		return nil
	}
	for {
		if err := visit(); err != nil {
			return err
		}
		if p.skip(end) {
			return nil
		}
		if !p.skip(',') {
			return p.fail("a comma or " + string(end))
		}
	}
}

// value parses any value, at a depth of nested lists and objects.
func (p *jsonParser) value(depth int) error {
	const maxDepth = 1000
	if depth > maxDepth {
		return fmt.Errorf("not a JSON object: its values are nested more than %d times", maxDepth)
	}
	if p.i == len(p.b) {
		return p.fail("a value")
	}
	switch p.b[p.i] {
	case '"':
		return p.string()
	case '{':
		return p.members(func([]byte) error { return p.value(depth + 1) })
	case '[':
		return p.items('[', ']', func() error {
			p.skipSpace()
			return p.value(depth + 1)
		})
	}
	if _, end, err := parseDecimal(p.b, p.i); err == nil && isStrict(p.b[p.i:end]) {
		p.i = end
		return nil
	}
	end := len(p.b)
	if n := bytes.IndexAny(p.b[p.i:], ",]} \t\r\n"); n >= 0 {
		end = p.i + n
	}
	if value := p.b[p.i:end]; !json.Valid(value) && !slices.Contains([]string{"NaN", "Infinity", "-Infinity"}, string(value)) {
		return p.fail("a value")
	}
	p.i = end
	return nil
}

// string parses a string.
func (p *jsonParser) string() error {
	end := stringEnd(p.b, p.i+1)
	if end < 0 {
		p.i = len(p.b)
		return p.fail("a closing quote")
	}
	special := func(c byte) bool { return c < ' ' || c == '\\' }
	if value := p.b[p.i:end]; slices.ContainsFunc(value, special) && !json.Valid(value) {
		return p.fail("a string without control characters and other escapes")
	}
	p.i = end
	return nil
}

// escapes matches the escapes in a valid string. Successive ones may be a surrogate pair.
var escapes = regexp.MustCompile(`(\\(u[0-9A-Fa-f]{4}|.))+`)

// unquoteJSON returns the content of a valid string with its quotes. It shares the memory of value if it can. Half of a
// surrogate pair becomes U+FFFD.
func unquoteJSON(value []byte) []byte {
	if len(value) < 2 {
		return nil
	}
	if value = value[1 : len(value)-1]; bytes.IndexByte(value, '\\') < 0 {
		return value
	}
	return escapes.ReplaceAllFunc(value, func(escape []byte) []byte {
		var s string
		json.Unmarshal(slices.Concat([]byte{'"'}, escape, []byte{'"'}), &s) // value is valid
		return []byte(s)
	})
}
