package columnar

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// openParquet reads a file a row group at a time, and of each column a page.
func openParquet(c *vectors.Content) (*vectors.Table, error) {
	r, size, err := c.RandomAccess()
	if err != nil {
		return nil, err
	}
	f, err := guard("Parquet", func() (*parquet.File, error) {
		if err := checkFooter(r, size); err != nil {
			return nil, err
		}
		return parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	})
	if err != nil {
		return nil, err
	}
	p := &parquetRows{r: r, f: f}
	elements := f.Metadata().Schema[1:] // in the order of a walk through the columns, without the root
	for _, top := range f.Root().Columns() {
		var l leaf
		l, elements = leafOf(top, elements)
		p.leaves = append(p.leaves, l)
		p.columns = append(p.columns, l.column)
	}
	_, metadata := f.Lookup(dimensions)
	p.layout, err = choose(p.columns, metadata)
	if err != nil {
		return nil, err
	}
	return p.table(func() ([]vectors.Row, error) { return guard("Parquet", p.next) }), nil
}

// A leaf is a column of the table, if it can be read, as the file has it: as one run of
// values. Those of a list have levels that say where lists begin, and what is null.
type leaf struct {
	column
	index   int // of the column's values in a row group
	defined int // level at which a value is there
	inList  int // level at which there is a place for a value in a list
	bytes   int // that a value takes at least, if it is plain
	float   func(parquet.Value) float32
}

// leafOf returns the column below top, and the elements of the schema that follow it.
func leafOf(top *parquet.Column, elements []format.SchemaElement) (leaf, []format.SchemaElement) {
	l := leaf{column: column{name: top.Name()}}
	only := true // one column
	var walk func(c *parquet.Column)
	walk = func(c *parquet.Column) {
		element := elements[0]
		elements = elements[1:]
		if c.Repeated() {
			l.inList = c.MaxDefinitionLevel()
		}
		only = only && len(c.Columns()) <= 1
		for _, below := range c.Columns() {
			walk(below)
		}
		if !c.Leaf() || !only || c.MaxRepetitionLevel() > 1 {
			return
		}
		l.index, l.defined, l.float = c.Index(), c.MaxDefinitionLevel(), floatOf(element)
		l.bytes = 4 // float, and the length of a string
		switch element.Type.V {
		case format.Double:
			l.bytes = 8
		case format.FixedLenByteArray: // float16
			l.bytes = 2
		}
		switch {
		case l.float != nil && c.MaxRepetitionLevel() == 1:
			l.kind = list
		case l.float != nil && c == top:
			l.kind = number
		case isText(element) && c == top:
			l.kind = text
		}
	}
	walk(top)
	if !only {
		l.kind = other
	}
	return l, elements
}

// floatOf returns what converts values of an element of the schema, or nil if they are not
// floating-point numbers.
func floatOf(e format.SchemaElement) func(parquet.Value) float32 {
	if !e.Type.Valid {
		return nil
	}
	_, half := e.LogicalType.Value.(*format.Float16Type)
	switch {
	case e.Type.V == format.Float:
		return parquet.Value.Float
	case e.Type.V == format.Double:
		return func(v parquet.Value) float32 { return float32(v.Double()) }
	case half && e.Type.V == format.FixedLenByteArray && e.TypeLength.Valid && e.TypeLength.V == 2:
		return func(v parquet.Value) float32 { return npy.Float16(binary.LittleEndian.Uint16(v.ByteArray())) }
	}
	return nil
}

// isText reports whether values of an element of the schema are strings.
func isText(e format.SchemaElement) bool {
	_, str := e.LogicalType.Value.(*format.StringType)
	old := e.ConvertedType.Valid && e.ConvertedType.V == deprecated.UTF8
	return (str || old) && e.Type.Valid && e.Type.V == format.ByteArray
}

// parquetRows reads the rows of a file.
type parquetRows struct {
	layout
	r       io.ReaderAt
	f       *parquet.File
	columns []column
	leaves  []leaf
	group   int       // row groups begun
	left    int64     // rows of the group that are to be read
	word    *cursor   // nil if rows have no words
	numbers []*cursor // of the vectors
	open    []*cursor // all of them
	block
}

// next is that of a [vectors.Table].
func (p *parquetRows) next() ([]vectors.Row, error) {
	for p.left <= 0 {
		if err := p.nextGroup(); err != nil {
			return nil, err
		}
	}
	p.reset()
	for ; p.left > 0 && len(p.data) < blockNumbers && len(p.rows) < blockNumbers; p.left-- {
		if err := p.nextRow(); err != nil {
			return nil, err
		}
	}
	return p.rows, nil
}

// nextGroup begins the next row group.
func (p *parquetRows) nextGroup() error {
	for _, c := range p.open {
		if err := c.fill(); err == nil {
			return fmt.Errorf("column %.60q has more values than rows", c.name)
		} else if err != io.EOF {
			return err
		}
		c.pages.Close()
	}
	groups := p.f.RowGroups()
	if p.group == len(groups) {
		return io.EOF
	}
	g := groups[p.group]
	p.left = g.NumRows()
	metadata := p.f.Metadata().RowGroups[p.group].Columns
	p.group++
	p.open, p.numbers = p.open[:0], p.numbers[:0]
	var pages uint64 // bytes that a page of each column takes
	open := func(i int) (*cursor, error) {
		l := p.leaves[i]
		if codec := p.f.Metadata().RowGroups[0].Columns[l.index].MetaData.Codec; codec != metadata[l.index].MetaData.Codec {
			// The library decompresses all row groups as the first.
			return nil, fmt.Errorf("column %.60q: some row groups are compressed with %v, some with %v", l.name, codec, metadata[l.index].MetaData.Codec)
		}
		most, err := checkPages(p.r, p.f.Size(), metadata[l.index].MetaData, l)
		if err != nil {
			return nil, fmt.Errorf("column %.60q: %w", l.name, err)
		}
		pages += most
		c := &cursor{leaf: l, pages: g.ColumnChunks()[l.index].Pages(), buffer: make([]parquet.Value, max(64, 4096/len(p.layout.vectors)))}
		p.open = append(p.open, c)
		return c, nil
	}
	var err error
	if p.layout.word >= 0 {
		if p.word, err = open(p.layout.word); err != nil {
			return err
		}
	}
	for _, i := range p.layout.vectors {
		c, err := open(i)
		if err != nil {
			return err
		}
		p.numbers = append(p.numbers, c)
	}
	return memory.Check(pages)
}

// nextRow reads a row.
func (p *parquetRows) nextRow() error {
	word := ""
	var malformed error
	if p.word != nil {
		v, err := p.word.take()
		if err != nil {
			return err
		}
		if word = string(v.ByteArray()); v.IsNull() {
			malformed = faulty(p.word.column, -1, "null, want a word")
		}
	}
	start := len(p.data)
	for _, c := range p.numbers {
		err := p.appendNumbers(c, &malformed)
		if err != nil {
			return err
		}
	}
	p.add(word, start, malformed)
	return nil
}

// appendNumbers appends the numbers that a column has for a row: one, or those of a list. If
// they can't be in a vector, and the row is not malformed already, it says why.
func (p *parquetRows) appendNumbers(c *cursor, malformed *error) error {
	v, err := c.take()
	if err != nil {
		return err
	}
	if v.RepetitionLevel() > 0 {
		return fmt.Errorf("column %.60q: a list without a beginning", c.name)
	}
	for n := 0; ; n++ {
		place := n
		if c.kind == number {
			place = -1
		}
		var x float32
		var why error
		switch at := v.DefinitionLevel(); {
		case at == c.defined:
			x = c.float(*v)
			why = checkNumber(c.column, place, x)
		case c.kind == number, at >= c.inList:
			why = faulty(c.column, place, "null, want a number")
		case at < c.inList-1:
			why = faulty(c.column, -1, "null, want a list")
		default: // an empty list
			return nil
		}
		if *malformed == nil {
			*malformed = why
		}
		p.data = append(p.data, x)
		if c.kind == number {
			return nil
		}
		if more, err := c.inRow(); err != nil || !more {
			return err
		}
		if n > vectors.MaxDim {
			return fmt.Errorf("column %.60q: a list of over %d numbers", c.name, vectors.MaxDim)
		}
		if v, err = c.take(); err != nil {
			return err
		}
	}
}

// A cursor reads the values of a column in a row group, a page at a time.
type cursor struct {
	leaf
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader // of the page
	buffer []parquet.Value
	unread []parquet.Value // the end of what is in buffer
}

// fill makes sure that there is an unread value. The error is io.EOF after the last.
func (c *cursor) fill() error {
	for len(c.unread) == 0 {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buffer)
		c.unread = c.buffer[:n]
		switch {
		case n > 0: // an error comes again
		case err == io.EOF:
			parquet.Release(c.page)
			c.page, c.values = nil, nil
		case err != nil:
			return err
		default:
			return io.ErrNoProgress
		}
	}
	return nil
}

// take returns the next value, which is valid until the one after it.
func (c *cursor) take() (*parquet.Value, error) {
	if len(c.unread) == 0 {
		if err := c.fill(); err == io.EOF {
			return nil, fmt.Errorf("column %.60q has fewer values than rows", c.name)
		} else if err != nil {
			return nil, err
		}
	}
	v := &c.unread[0]
	c.unread = c.unread[1:]
	return v, nil
}

// inRow reports whether the next value is of the same row as the one before.
func (c *cursor) inRow() (bool, error) {
	if len(c.unread) == 0 {
		if err := c.fill(); err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return c.unread[0].RepetitionLevel() > 0, nil
}
