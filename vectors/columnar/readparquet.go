package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/float16"
	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// openParquet opens a file. The table holds a page per column in memory.
func openParquet(c tabular.Content, o tabular.Options) (*tabular.Table, error) {
	r, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	p := &parquetRows{file: r, size: size}
	if _, err := guard("Parquet", func() (struct{}, error) { return struct{}{}, p.open() }); err != nil {
		return nil, err
	}
	var columns []tabular.Column
	for _, l := range p.leaves {
		columns = append(columns, l.Column)
	}
	codes := false
	for _, m := range p.footer.KeyValueMetadata {
		codes = codes || m.Key == dimensions
	}
	if p.Layout, err = chooseColumns(columns, codes, o); err != nil {
		return nil, err
	}
	return table(p.Layout, func() (block, error) { return guard("Parquet", p.next) }), nil
}

// A leaf is a column of the table that is stored as one sequence of values, with levels that mark
// the starts of lists and nulls.
type leaf struct {
	tabular.Column
	index   int                             // index of the column in a row group
	defined uint8                           // definition level of a value
	inList  uint8                           // minimum definition level of an element of a list
	size    int                             // minimum size of a plain value in bytes
	floats  func(to []float32, from []byte) // converts numbers
	print   func(b []byte) string           // formats a value as a string; nil for strings and booleans
}

// A schema holds the elements of a tree that are not parsed yet, in depth-first order. The columns of
// the table are the children of the root.
type schema struct {
	elements []format.SchemaElement
	leaves   int // number of leaves so far
}

var errSchema = errors.New("the schema is invalid")

// column parses the next column of the table.
func (s *schema) column() (leaf, error) {
	l := leaf{Column: tabular.Column{Name: s.elements[0].Name, Type: typeName(s.elements[0])}}
	first := s.leaves
	err := s.walk(&l, 0, 0)
	if s.leaves-first != 1 {
		l.Kind = tabular.Other
	}
	return l, err
}

// walk parses an element of a column and its children. It sets l to the last leaf.
func (s *schema) walk(l *leaf, depth, repeated int) error {
	if len(s.elements) == 0 || depth > maxNested {
		return errSchema
	}
	e := s.elements[0]
	s.elements = s.elements[1:]
	switch e.RepetitionType.V {
	case format.Optional:
		l.defined++
	case format.Repeated:
		l.defined++
		l.inList = l.defined
		repeated++
	}
	if e.Type.Valid {
		l.index = s.leaves
		s.leaves++
		l.size, l.floats = floatsOf(e)
		switch {
		case l.floats != nil && repeated == 1 && depth <= 2: // column.list.element at most
			l.Kind = tabular.List
		case l.floats != nil && repeated == 0 && depth == 0:
			l.Kind = tabular.Number
		case isText(e) && repeated == 0 && depth == 0:
			l.Kind, l.size = tabular.Text, 4 // bytes of the length
		case repeated == 0 && depth == 0:
			l.size, l.print, l.Kind = scalarOf(e)
		}
		if l.Kind == tabular.Number {
			l.print = func(b []byte) string {
				if len(b) == 8 {
					return formatNumber(math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
				}
				var x [1]float32
				l.floats(x[:], b)
				return formatNumber(float64(x[0]), 32)
			}
		}
	}
	for range e.NumChildren.V {
		if err := s.walk(l, depth+1, repeated); err != nil {
			return err
		}
	}
	return nil
}

// floatsOf returns the size of the numbers of an element in bytes, and a function that converts
// them, or nil if the element has no floating-point numbers.
func floatsOf(e format.SchemaElement) (size int, convert func(to []float32, from []byte)) {
	_, half := e.LogicalType.Value.(*format.Float16Type)
	switch {
	case e.Type.V == format.Float:
		return 4, float32s.Decode
	case e.Type.V == format.Double:
		return 8, func(to []float32, from []byte) {
			for i := range to {
				to[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(from[8*i:])))
			}
		}
	case half && e.Type.V == format.FixedLenByteArray && e.TypeLength.V == 2:
		return 2, func(to []float32, from []byte) {
			for i := range to {
				to[i] = float16.FromBits(binary.LittleEndian.Uint16(from[2*i:]))
			}
		}
	}
	return 0, nil
}

// scalarOf returns the size of the whole numbers of an element in bytes and a function that formats
// them, or 0 and nil for booleans. It returns the kind other for other elements.
func scalarOf(e format.SchemaElement) (size int, print func(b []byte) string, k tabular.Kind) {
	integer, isInteger := e.LogicalType.Value.(*format.IntType)
	unsigned := isInteger && !integer.IsSigned
	switch {
	case e.Type.V == format.Boolean:
		return 0, nil, tabular.Scalar
	case e.LogicalType.Value != nil && !isInteger, e.ConvertedType.Valid && !isInteger: // such as times
	case e.Type.V == format.Int32 && unsigned:
		return 4, func(b []byte) string { return strconv.FormatUint(uint64(binary.LittleEndian.Uint32(b)), 10) }, tabular.Scalar
	case e.Type.V == format.Int32:
		return 4, func(b []byte) string { return strconv.Itoa(int(int32(binary.LittleEndian.Uint32(b)))) }, tabular.Scalar
	case e.Type.V == format.Int64 && unsigned:
		return 8, func(b []byte) string { return strconv.FormatUint(binary.LittleEndian.Uint64(b), 10) }, tabular.Scalar
	case e.Type.V == format.Int64:
		return 8, func(b []byte) string { return strconv.FormatInt(int64(binary.LittleEndian.Uint64(b)), 10) }, tabular.Scalar
	}
	return 0, nil, tabular.Other
}

// typeName returns the type of an element for messages.
func typeName(e format.SchemaElement) string {
	switch {
	case e.LogicalType.Value != nil:
		return strings.ToLower(fmt.Sprint(e.LogicalType.Value))
	case e.ConvertedType.Valid:
		return strings.ToLower(fmt.Sprint(e.ConvertedType.V))
	case e.Type.Valid:
		return strings.ToLower(e.Type.V.String())
	}
	return "struct"
}

// isText reports whether an element has strings.
func isText(e format.SchemaElement) bool {
	_, str := e.LogicalType.Value.(*format.StringType)
	old := e.ConvertedType.Valid && e.ConvertedType.V == deprecated.UTF8
	return (str || old) && e.Type.V == format.ByteArray
}

// parquetRows reads the rows of a file.
type parquetRows struct {
	*tabular.Layout
	file    io.ReaderAt
	size    int64 // size of the file in bytes
	opened  int64 // bytes of the chunks opened so far
	footer  *fileMetaData
	leaves  []leaf                 // columns of the table
	group   int                    // number of opened row groups
	left    int64                  // rows left in the row group
	texts   map[int]*chunk[string] // by column
	numbers []*chunk[float32]      // columns of the vectors
	block
}

// open reads the footer.
func (p *parquetRows) open() (err error) {
	if p.footer, err = readFooter(p.file, p.size); err != nil {
		return err
	}
	if len(p.footer.Schema) == 0 {
		return errSchema
	}
	s := schema{elements: p.footer.Schema[1:]} // without the root
	for len(s.elements) > 0 {
		l, err := s.column()
		if err != nil {
			return err
		}
		if l.Kind == tabular.Scalar && !p.supported(l) {
			l.Kind = tabular.Other
		}
		p.leaves = append(p.leaves, l)
	}
	const maxRows = 1024 // rows per byte, more than distinct words and vectors can have
	rows := int64(0)
	for i, g := range p.footer.RowGroups {
		if g.NumRows < 0 || len(g.Columns) != s.leaves {
			return fmt.Errorf("row group %d is invalid (got %d rows of %d columns, want %d columns)", i+1, g.NumRows, len(g.Columns), s.leaves)
		}
		if (rows+g.NumRows)/maxRows > p.size || rows+g.NumRows < 0 {
			return fmt.Errorf("row group %d declares more rows than the file can have (got %d after %d, in %d bytes)", i+1, g.NumRows, rows, p.size)
		}
		rows += g.NumRows
	}
	if rows != p.footer.NumRows {
		return fmt.Errorf("the row groups have the wrong number of rows (got %d, want %d)", rows, p.footer.NumRows)
	}
	return nil
}

// supported reports whether the encodings of a column of scalars are supported. Other columns of
// scalars are ignored.
func (p *parquetRows) supported(l leaf) bool {
	for _, g := range p.footer.RowGroups {
		if l.index >= len(g.Columns) {
			return false // open returns an error later
		}
		if g.Columns[l.index].CryptoMetadata.Value != nil {
			return false
		}
		for _, e := range g.Columns[l.index].MetaData.Encoding {
			if e != format.Plain && e != format.RLE && e != format.RLEDictionary && e != plainDictionary {
				return false
			}
		}
	}
	return true
}

// next implements Next of a [tabular.Table].
func (p *parquetRows) next() (block, error) {
	for p.left == 0 {
		if err := p.nextGroup(); err != nil {
			return block{}, err
		}
	}
	p.reset()
	text := 0
	for ; p.left > 0 && len(p.data) < blockNumbers && len(p.rows) < blockNumbers && text < blockText; p.left-- {
		if err := p.nextRow(); err != nil {
			return block{}, err
		}
		text += textSize(p.rows[len(p.rows)-1])
	}
	return p.block, nil
}

// textSize returns the length of the strings of a row in bytes.
func textSize(r tabular.Row) int {
	n := len(r.Name) + len(r.ID)
	for _, s := range r.Columns {
		n += len(s)
	}
	return n
}

// nextGroup opens the next row group.
func (p *parquetRows) nextGroup() error {
	for _, c := range p.texts {
		if err := c.finish(); err != nil {
			return err
		}
	}
	for _, c := range p.numbers {
		if err := c.finish(); err != nil {
			return err
		}
	}
	if p.group == len(p.footer.RowGroups) {
		return io.EOF
	}
	group := p.footer.RowGroups[p.group]
	p.group++
	if p.left = group.NumRows; p.left == 0 {
		return nil // an empty group may have no pages
	}
	p.numbers, p.texts = p.numbers[:0], make(map[int]*chunk[string])
	for _, i := range slices.Concat(p.Vectors, p.Strings) {
		n := group.Columns[p.leaves[i].index].MetaData.TotalCompressedSize
		if n < 0 || n > p.size-p.opened {
			return fmt.Errorf("column %.60q is larger than the rest of the file (got %d bytes, want at most %d)", p.leaves[i].Name, n, p.size-p.opened)
		}
		p.opened += n
	}
	var err error
	for _, i := range p.Strings {
		if p.texts[i], err = openChunk(p.file, p.size, group.Columns, p.leaves[i], decodeText); err != nil {
			return err
		}
	}
	for _, i := range p.Vectors {
		c, err := openChunk(p.file, p.size, group.Columns, p.leaves[i], decodeNumbers)
		if err != nil {
			return err
		}
		p.numbers = append(p.numbers, c)
	}
	return nil
}

// nextRow reads a row.
func (p *parquetRows) nextRow() error {
	row, err := p.Row(func(column int) (s string, ok bool, err error) {
		c := p.texts[column]
		if err := c.begin(); err != nil {
			return "", false, err
		}
		if ok = c.definitions[c.i] == c.defined; ok {
			s = c.values[c.i]
		}
		return s, ok, c.advance(1)
	})
	if err != nil {
		return err
	}
	var malformed error
	start := len(p.data)
	for _, c := range p.numbers {
		err := p.appendNumbers(c, &malformed)
		if err != nil {
			return err
		}
	}
	p.add(row, start, malformed)
	return nil
}

// appendNumbers appends the numbers of a column in the current row: one number, or a list. If a
// number is invalid and *malformed is nil, it sets *malformed to the reason.
func (p *parquetRows) appendNumbers(c *chunk[float32], malformed *error) error {
	if err := c.begin(); err != nil {
		return err
	}
	for n := 0; ; {
		index := n // in the list
		if c.Kind == tabular.Number {
			index = -1
		}
		run := c.present()
		var reason error
		switch d := c.definitions[c.i]; {
		case len(run) > 0:
			if i := indexNotFinite(run); i >= 0 {
				reason = notFinite(c.Column, index+i, run[i])
			}
			p.data = append(p.data, run...)
		case c.Kind == tabular.Number, d >= c.inList:
			reason = tabular.ValueError(c.Column, index, "null (want a number)")
			p.data = append(p.data, 0)
		case d < c.inList-1:
			reason = tabular.ValueError(c.Column, -1, "null (want a list)")
		}
		if *malformed == nil {
			*malformed = reason
		}
		read := max(1, len(run))
		if n += read; n > tabular.MaxDim {
			return fmt.Errorf("column %.60q: a list is too long (want at most %d numbers)", c.Name, tabular.MaxDim)
		}
		if err := c.advance(read); err != nil {
			return err
		}
		if c.ended || c.repetitions[c.i] == 0 {
			return nil
		}
	}
}
