package vectors

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"overcomplete/vectors/internal/tabular"
)

// csvFormat parses CSV (RFC 4180) with a header. Tabs or semicolons may replace the commas. As in Python, a quote that
// isn't at the beginning of a cell has no meaning.
type csvFormat struct {
	comma byte
	names []string
}

var (
	errNoHeader = errors.New("is a CSV file without a header; its first line must name the columns")
	errCell     = errors.New("text follows the closing quote of a cell")
)

func (f *csvFormat) name() string {
	if f.comma == '\t' {
		return "TSV"
	}
	return "CSV"
}

// detectCSV returns the format of a CSV file that begins with head, and the end of its header. It returns nil for other
// files. A header has as many cells as most of the next rows, or contains a usual name for vectors or texts. A first
// line that ends with dim numbers is a row of text, unless names in it count upwards from 0 or 1. Fewer than
// four such names must occur beside a usual name, or after an empty first name.
func detectCSV(head []byte, dim int, whole bool) (f *csvFormat, start int, err error) {
	for _, comma := range []byte(",\t;") {
		if c, end := parseHeaderRow(head, comma, whole); c != nil && (f == nil || len(c.names) > len(f.names)) {
			f, start = c, end
		}
	}
	if f == nil {
		return nil, 0, nil
	}
	usual := false
	for _, name := range f.names {
		usual = usual || tabular.NamesVectors(name) || len(f.names) > 1 && tabular.NamesTexts(name)
	}
	numbers, counts := countingNames(f.names)
	line, _, _ := bytes.Cut(head, newline)
	if n, _ := trailingNumbers(trimRow(line)); dim > 0 && n >= dim && !(f.comma == '\t' && counts && (numbers > 3 || numbers > 0 && (usual || f.names[0] == ""))) {
		return nil, 0, nil // text
	}
	switch {
	case !usual && (len(f.names) < 2 || !f.fits(head[start:], whole)):
		return nil, 0, nil
	case counts || 2*numbers < len(f.names) || usual && (f.comma != '\t' || numbers < len(f.names)-1):
		return f, start, nil
	case f.comma == '\t':
		return nil, 0, nil // text with a malformed row
	}
	return nil, 0, errNoHeader
}

// parseHeaderRow returns a format whose names are the cells of the first row, or nil. end is the end of the row.
func parseHeaderRow(head []byte, comma byte, whole bool) (f *csvFormat, end int) {
	f = &csvFormat{comma: comma}
	var buf []byte
	for {
		cell, i, err := f.cell(head, end, &buf)
		if err != nil || i == len(head) && !whole {
			return nil, 0
		}
		f.names = append(f.names, strings.ToValidUTF8(string(bytes.TrimSpace(cell)), "\uFFFD"))
		if end = i + 1; i == len(head) || head[i] == '\n' {
			return f, min(end, len(head))
		}
	}
}

// countingNames returns the number of names that are numbers, and whether these are 0, 1, 2, … or 1, 2, 3, ….
func countingNames(names []string) (numbers int, counts bool) {
	counts = true
	first := 0
	for _, name := range names {
		if _, _, err := parseNumber([]byte(name), 0); err == errNotNumber {
			continue
		}
		n, err := strconv.Atoi(name)
		if numbers == 0 {
			first = n
		}
		counts = counts && err == nil && n == first+numbers && first <= 1 && first >= 0
		numbers++
	}
	return numbers, counts
}

// fits reports whether most of the first few rows have a cell for each name.
func (f *csvFormat) fits(rows []byte, whole bool) bool {
	const few = 10
	all, same := 0, 0
	p := csvParser{csvFormat: f, b: rows}
	for all < few && p.nextRow() {
		cells := p.endRow()
		if p.i >= len(rows) && !whole {
			break
		}
		if all++; cells == len(f.names) {
			same++
		}
	}
	return 2*same > all
}

// cell returns the content of the cell that begins at b[i], and its end: the offset of a separator or
// line break, or len(b). It appends content with doubled quotes to *buf, undoubled. If err is errCell, end is valid.
func (f *csvFormat) cell(b []byte, i int, buf *[]byte) (cell []byte, end int, err error) {
	if i == len(b) || b[i] != '"' {
		end = i
		for end < len(b) && b[end] != f.comma && b[end] != '\n' {
			end++
		}
		cell = b[i:end]
		if end == len(b) || b[end] == '\n' {
			cell = bytes.TrimSuffix(cell, []byte("\r"))
		}
		return cell, end, nil
	}
	close, doubled := closingQuote(b, i)
	if close < 0 {
		return nil, len(b), errors.New("a quote doesn't end")
	}
	cell = b[i+1 : close]
	if doubled {
		start := len(*buf)
		for part := range bytes.SplitSeq(cell, []byte(`""`)) {
			*buf = append(append(*buf, part...), '"')
		}
		cell = (*buf)[start : len(*buf)-1]
	}
	end = close + 1
	if end < len(b) && b[end] == '\r' && (end+1 == len(b) || b[end+1] == '\n') {
		end++
	}
	for end < len(b) && b[end] != f.comma && b[end] != '\n' {
		err = errCell
		end++
	}
	return cell, end, err
}

// closingQuote returns the offset of the quote that closes the quote at b[i], or -1, and whether it met doubled quotes.
func closingQuote(b []byte, i int) (close int, doubled bool) {
	for i++; ; i += 2 {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1, doubled
		}
		if i += n; i+1 == len(b) || b[i+1] != '"' {
			return i, doubled
		}
		doubled = true
		if i+2 == len(b) {
			return -1, doubled
		}
	}
}

// cut returns the end of the last complete row in b; see [splitter].
func (f *csvFormat) cut(b []byte, last bool) (end, quote int) {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '"')
		outside := b[i:]
		if n >= 0 {
			outside = outside[:n]
		}
		if n := bytes.LastIndexByte(outside, '\n'); n >= 0 {
			end = i + n + 1
		}
		if n < 0 {
			return end, -1
		}
		i += n
		if i > 0 && b[i-1] != f.comma && b[i-1] != '\n' {
			i++
			continue
		}
		close, _ := closingQuote(b, i)
		if close < 0 || close+1 == len(b) && !last { // the next byte may be a second quote
			return end, i
		}
		i = close + 1
	}
}

// maxSampled is the number of rows that determine the kinds of columns.
const maxSampled = 1000

func (f *csvFormat) columns(piece []byte) ([]tabular.Column, error) {
	samplers := make([]sampler, len(f.names))
	seen := map[string]bool{}
	for i, name := range f.names {
		if name == "" && i == 0 {
			name = tabular.UnnamedIndex
		}
		if seen[name] {
			return nil, fmt.Errorf("two columns are named %.60q", name)
		}
		seen[name] = true
		samplers[i].column.Name = name
	}
	p := csvParser{csvFormat: f, b: piece}
	rows := 0
	for ; rows < maxSampled && p.nextRow(); rows++ {
		for c := range samplers {
			cell, _ := p.nextCell()
			if cell = bytes.TrimSpace(cell); len(cell) == 0 {
				continue
			}
			s := &samplers[c]
			if isNumeric(cell) {
				s.numbers++
			} else {
				s.addString(cell)
			}
		}
		p.endRow()
	}
	columns := make([]tabular.Column, len(samplers))
	for i := range samplers {
		s := &samplers[i]
		switch {
		case rows == 0 && !tabular.NamesVectors(s.column.Name) && !tabular.NamesTexts(s.column.Name):
			s.numbers = 1
		case s.numbers > s.strings && !tabular.NamesTexts(s.column.Name): // other values are malformed
			s.strings, s.opened, s.inner = 0, 0, 0
		default: // a column of strings may contain numbers
			s.strings += s.numbers
		}
		columns[i] = s.choose()
	}
	return columns, nil
}

// isNumeric reports whether a cell is a number. NaN is a number here, although no vector may contain it.
func isNumeric(cell []byte) bool {
	_, end, err := parseDecimal(cell, 0)
	if err == errNotNumber {
		_, err := strconv.ParseFloat(string(cell), 32) // also "NaN" and "-inf"
		return err == nil && len(cell) < 10
	}
	return end == len(cell)
}

// A csvParser parses the rows of a piece.
type csvParser struct {
	*csvFormat
	b     []byte
	i     int    // offset of the next cell or, if ended is set, of the next row
	ended bool   // the row has no more cells
	line  int    // number of lines before offset i
	buf   []byte // content of the row's cells that contain doubled quotes
}

// nextRow moves to the next row, if there is one.
func (p *csvParser) nextRow() bool {
	p.buf, p.ended = p.buf[:0], false
	for p.i < len(p.b) {
		switch rest := p.b[p.i:]; {
		case rest[0] == '\n':
			p.i++
		case rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n'):
			p.i += min(2, len(rest))
		default:
			return true
		}
		p.line++
	}
	return false
}

// nextCell returns the next cell, or nil after the last cell of the row.
func (p *csvParser) nextCell() ([]byte, error) {
	if p.ended {
		return nil, nil
	}
	cell, end, err := p.cell(p.b, p.i, &p.buf)
	if p.b[min(p.i, len(p.b)-1)] == '"' {
		p.line += bytes.Count(p.b[p.i:end], newline)
	}
	p.i = end + 1
	if end == len(p.b) || p.b[end] == '\n' {
		p.ended = true
		p.line++
	}
	return cell, err
}

// endRow moves past the row and returns the number of its unread cells.
func (p *csvParser) endRow() (more int) {
	for !p.ended {
		p.nextCell()
		more++
	}
	return more
}

func (f *csvFormat) parse(piece []byte, l *recordLayout) (out records) {
	p := csvParser{csvFormat: f, b: piece}
	dim := len(l.Vectors)
	cells := make([][]byte, len(f.names))
	value := func(column int) (string, bool, error) { return string(cells[column]), true, nil }
	out.Numbers = make([]float32, 0, len(piece)/8+dim)
	for p.nextRow() {
		line, start := p.line, len(out.Numbers)
		var vector []float32
		if l.list < 0 {
			out.Numbers = append(out.Numbers, make([]float32, dim)...)
			vector = out.Numbers[start:]
		}
		var problem error
		column := 0
		for ; column < len(f.names) && !p.ended; column++ {
			position := l.position[column]
			if position >= 0 {
				x, end, err := parseDecimal(p.b, p.i)
				if err == nil && end < len(p.b) && p.b[end] == p.comma {
					vector[position] = x
					p.i = end + 1
					continue
				}
			}
			cell, err := p.nextCell()
			cells[column] = cell
			if err == nil && position >= 0 {
				vector[position], err = parseCell(l.Columns[column], cell)
			}
			if problem == nil {
				problem = err
			}
		}
		if n := column + p.endRow(); n != len(f.names) {
			problem = fmt.Errorf("the row has the wrong number of cells (got %d, want %d)", n, len(f.names))
			clear(cells[min(column, len(cells)):])
		}
		if l.list >= 0 && problem == nil {
			out.Numbers, problem = appendVector(out.Numbers, cells[l.list])
			if problem != nil {
				problem = fmt.Errorf("column %.60q: %w", l.Columns[l.list].Name, problem)
			}
		}
		if problem == nil && p.line > line+1 {
			problem = f.checkQuotes(cells, l, len(out.Numbers)-start)
		}
		row, _ := l.Row(value) // the function value returns no errors
		out.add(row, line, start, problem)
	}
	return out
}

// checkQuotes returns an error if at least half of the lines in a quoted cell look like rows with vectors of dim
// numbers. Such quotes probably belong to two texts, in a file that doesn't quote cells.
func (f *csvFormat) checkQuotes(cells [][]byte, l *recordLayout, dim int) error {
	for column, cell := range cells {
		lines := bytes.Count(cell, newline)
		if column == l.list || l.position[column] >= 0 || lines == 0 {
			continue
		}
		like := 0
		first, last := column, len(cells)-1 // columns of the line
		for line := range bytes.SplitSeq(cell, newline) {
			if lines--; lines < 0 {
				last = column
			}
			if f.isRow(line, l, first, last, dim) {
				like++
			}
			first = 0
		}
		if 2*like > bytes.Count(cell, newline) {
			return fmt.Errorf("column %.60q: quotes enclose %d lines that look like rows; double each quote within a text, and quote the text", l.Columns[column].Name, like)
		}
	}
	return nil
}

// isRow reports whether a line has valid cells for the columns from first to last. These must include a column of
// the vectors; dim is the length of a vector.
func (f *csvFormat) isRow(line []byte, l *recordLayout, first, last, dim int) bool {
	if bytes.Count(line, []byte{f.comma}) != last-first {
		return false
	}
	found := false
	column := first
	for cell := range bytes.SplitSeq(line, []byte{f.comma}) {
		var err error
		switch {
		case column == l.list:
			var vector []float32
			if vector, err = appendVector(nil, cell); len(vector) != dim {
				return false
			}
			found = true
		case l.position[column] >= 0:
			_, err = parseCell(l.Columns[column], cell)
			found = true
		}
		if err != nil {
			return false
		}
		column++
	}
	return found
}

// parseCell returns the number in a cell of column c.
func parseCell(c tabular.Column, cell []byte) (float32, error) {
	cell = bytes.TrimSpace(cell)
	x, end, err := parseDecimal(cell, 0)
	switch {
	case len(cell) == 0:
		return 0, tabular.ValueError(c, -1, "empty (want a number)")
	case err == nil && end < len(cell):
		err = errNotNumber
	}
	if err != nil {
		return 0, tabular.ValueError(c, -1, fmt.Sprintf("%v (got %s)", err, quote(cell)))
	}
	return x, nil
}
