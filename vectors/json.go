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
	index map[string]int // index of a column by its key
	keys  []string       // keys of the columns
}

const jsonLines = "JSON lines"

var errJSONArray = errors.New("is a JSON array; write each of its objects in a line of its own, as jq -c '.[]' does")

func (f *jsonFormat) name() string { return jsonLines }

func (f *jsonFormat) cut(b []byte, last bool) (end, quote int) { return cutLines(b, last) }

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
	var first *InputError // the first malformed record
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
			value, err := p.value()
			if s := add(key); err == nil {
				s.addJSON(value)
			}
			return err
		})
		if problem != nil && first == nil {
			first = &InputError{Line: number + 1, Err: problem}
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

// jsonRecords yields each line of a piece that isn't blank, with the number of line breaks before it.
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
	return p.out
}

// A recordParser parses the records of a piece.
type recordParser struct {
	format *jsonFormat
	layout *recordLayout
	json   jsonParser             // parser of the record
	visit  func(key []byte) error // the method member
	values [][]byte               // values in the record, by column
	last   []int                  // number of the last record with a value, by column
	record int                    // number of the record, from 1
	next   int                    // column of the next key, if keys are in the usual order
	start  int                    // offset of the row's vector in out.Numbers
	err    error                  // the reason why the row is malformed
	out    records
}

// object parses an object and adds its row, which may be malformed. The argument number counts line breaks before it.
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
			p.malformed(tabular.ValueError(p.layout.Columns[i], -1, "missing"))
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
	p.out.add(row, number, p.start, cmp.Or(syntax, p.err))
}

// member parses the value of the given key in the record.
func (p *recordParser) member(key []byte) error {
	f := p.format
	column := p.next
	if column == len(f.keys) || string(key) != f.keys[column] {
		var ok bool
		if column, ok = f.index[string(key)]; !ok {
			if !slices.Contains(p.out.unknown, string(key)) && len(p.out.unknown) < 10 {
				p.out.unknown = append(p.out.unknown, string(key))
			}
			_, err := p.json.value()
			return err
		}
	}
	p.next = column + 1
	if p.last[column] == p.record {
		p.malformed(fmt.Errorf("the key %.60q is repeated", key))
	}
	p.last[column] = p.record
	b, start, position := p.json.b, p.json.i, p.layout.position[column]
	var err error
	switch {
	case column == p.layout.list && b[start] == '[':
		if p.out.Numbers, p.json.i, err = appendList(p.out.Numbers, b, start+1); err != nil {
			p.malformed(fmt.Errorf("column %.60q: %w", p.layout.Columns[column].Name, err))
			p.json.i = max(valueEnd(b, start), p.json.i)
		} else if !p.json.skip(']') {
			return p.json.fail("a number or ]")
		}
		return nil
	case position >= 0:
		var x float32
		var end int
		if x, end, err = parseDecimal(b, start); err == nil && end < len(b) && (b[end] == ',' || b[end] == '}' || isSpace(b[end])) {
			p.out.Numbers[p.start+position], p.json.i = x, end
			return nil
		}
	}
	value, syntax := p.json.value()
	switch {
	case syntax != nil:
		p.last[column] = 0 // no value
	case position >= 0:
		p.malformed(tabular.ValueError(p.layout.Columns[column], -1, describeJSON(value, err)+" (want a number)"))
	case column != p.layout.list:
		p.values[column] = value
	case value[0] != '"':
		p.malformed(tabular.ValueError(p.layout.Columns[column], -1, describeJSON(value, nil)+" (want a list)"))
	default:
		if p.out.Numbers, err = appendVector(p.out.Numbers, unquoteJSON(value)); err != nil {
			p.malformed(fmt.Errorf("column %.60q: %w", p.layout.Columns[column].Name, err))
		}
	}
	return syntax
}

// malformed records the reason why a row is malformed, unless a reason is recorded already.
func (p *recordParser) malformed(reason error) { p.err = cmp.Or(p.err, reason) }

// describeJSON describes a value that isn't a number or a list. The argument err is the error of parsing it as a number.
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

// A jsonParser parses JSON (RFC 8259) in b. It also accepts the numbers NaN and Infinity, which Python writes. Lists of
// vectors and numbers in columns may be written as in CSV. Its methods parse what begins at offset i, and move i to the end.
type jsonParser struct {
	b []byte
	i int
}

// fail returns an error that quotes the bytes at offset i, and names the expected syntax.
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

// skip moves past white space and c, and reports whether c was found.
func (p *jsonParser) skip(c byte) bool {
	if p.skipSpace() == len(p.b) || p.b[p.i] != c {
		return false
	}
	p.i++
	return true
}

// key parses a key and the colon after it. It returns nil if the key or the colon is missing.
func (p *jsonParser) key() []byte {
	if p.skipSpace() == len(p.b) || p.b[p.i] != '"' {
		return nil
	}
	key, err := p.value()
	if err != nil || !p.skip(':') {
		return nil
	}
	return key
}

// beginsObject reports whether an object begins at offset i. It checks the first key, because "{" can also be a word.
func (p jsonParser) beginsObject() bool { return p.skip('{') && (p.skip('}') || p.key() != nil) }

// members calls visit with each key of an object. The function visit must move p past the value.
func (p *jsonParser) members(visit func(key []byte) error) error {
	if !p.skip('{') {
		return p.fail("{")
	}
	for first := true; !p.skip('}'); first = false {
		if !first && !p.skip(',') {
			return p.fail("a comma or }")
		}
		key := p.key()
		if key == nil {
			return p.fail("a key and a colon")
		}
		if p.skipSpace() == len(p.b) {
			return p.fail("a value")
		}
		if err := visit(unquoteJSON(key)); err != nil {
			return err
		}
	}
	return nil
}

func (p *jsonParser) value() ([]byte, error) {
	end := valueEnd(p.b, p.i)
	if end < 0 {
		p.i = len(p.b)
		return nil, p.fail("the end of a value")
	}
	value := p.b[p.i:end]
	if special := func(c byte) bool { return c < ' ' || c == '\\' }; len(value) > 1 && value[0] == '"' && !slices.ContainsFunc(value, special) {
		// a string without escapes
	} else if !json.Valid(value) && !json.Valid(pythonNumbers.ReplaceAllFunc(value, zeroNumber)) {
		return nil, p.fail("a value")
	}
	p.i = end
	return value, nil
}

// pythonNumbers matches strings, and the numbers that Python writes and JSON lacks.
var pythonNumbers = regexp.MustCompile(`"(\\.|[^"\\])*"|NaN|-?Infinity`)

// zeroNumber returns the replacement of a match of pythonNumbers: 0 for a number, and a string unchanged.
func zeroNumber(match []byte) []byte {
	if match[0] == '"' {
		return match
	}
	return []byte(" 0 ") // so that 1NaN isn't valid
}

// valueEnd returns the end of the value that begins at b[i], or -1 if it doesn't end. The value may be invalid.
func valueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i+1) - 1; i < 0 {
				return -1
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
		default:
			if depth == 0 {
				return i + len(field(b[i:]))
			}
			continue
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return -1
}

// escapes matches runs of escapes in a valid string. Two successive escapes may be a surrogate pair.
var escapes = regexp.MustCompile(`(\\(u[0-9A-Fa-f]{4}|.))+`)

// unquoteJSON returns the content of a valid string in quotes. The content shares the memory of value if it has no
// escapes. An unpaired half of a surrogate pair becomes U+FFFD.
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
