package columnar

import (
	"fmt"
	"io"

	"overcomplete/vectors/internal/tabular"
)

// parquetRows implements [table] for Parquet. It holds one page per column at a time.
type parquetRows struct {
	file    io.ReaderAt
	size    int64 // size of the file in bytes
	opened  int64 // bytes of the chunks opened so far
	footer  *fileMetaData
	columns []leaf
	group   int                    // number of opened row groups
	texts   map[int]*chunk[string] // chunks of string columns, by column
	numbers []*chunk[float32]      // chunks of the vectors' columns
	finish  []func() error         // functions that finish the chunks in texts and numbers
}

func (p *parquetRows) open() (columns []tabular.Column, codes bool, err error) {
	if p.footer, err = readFooter(p.file, p.size); err != nil {
		return nil, false, err
	}
	if len(p.footer.Schema) == 0 {
		return nil, false, errSchema
	}
	names, _ := p.footer.metadata(huggingFace)
	classes := classNames(names)
	s := schema{elements: p.footer.Schema[1:]} // without the root
	for len(s.elements) > 0 {
		c, err := s.column(classes)
		if err != nil {
			return nil, false, err
		}
		p.columns, columns = append(p.columns, c), append(columns, c.Column)
	}
	_, codes = p.footer.metadata(dimensions)
	return columns, codes, p.checkRows(s.leaves)
}

// checkRows returns an error unless the row groups have the declared number of rows, and of columns.
func (p *parquetRows) checkRows(columns int) error {
	const maxRows = 1024 // maximum of rows per byte; a file with distinct words and vectors has fewer
	rows := int64(0)
	for i, g := range p.footer.RowGroups {
		if g.NumRows < 0 || len(g.Columns) != columns {
			return fmt.Errorf("row group %d is invalid (got %d rows of %d columns, want %d columns)", i+1, g.NumRows, len(g.Columns), columns)
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

func (p *parquetRows) nextGroup(l *tabular.Layout) (rows int64, err error) {
	for _, finish := range p.finish {
		if err := finish(); err != nil {
			return 0, err
		}
	}
	if p.group == len(p.footer.RowGroups) {
		return 0, io.EOF
	}
	group := p.footer.RowGroups[p.group]
	p.group++
	if group.NumRows == 0 {
		return 0, nil // the row group may have no pages
	}
	p.numbers, p.texts, p.finish = p.numbers[:0], make(map[int]*chunk[string]), p.finish[:0]
	for _, i := range l.Used() {
		n := group.Columns[p.columns[i].index].MetaData.TotalCompressedSize
		if n < 0 || n > p.size-p.opened {
			return 0, fmt.Errorf("column %.60q is larger than the rest of the file (got %d bytes, want at most %d)", p.columns[i].Name, n, p.size-p.opened)
		}
		p.opened += n
	}
	for _, i := range l.Strings {
		if p.texts[i], err = openChunk(p.file, p.size, group.Columns, p.columns[i], decodeText); err != nil {
			return 0, err
		}
		p.finish = append(p.finish, p.texts[i].finish)
	}
	for _, i := range l.Vectors {
		if p.columns[i].Kind == tabular.Text { // opened above
			continue
		}
		c, err := openChunk(p.file, p.size, group.Columns, p.columns[i], decodeNumbers)
		if err != nil {
			return 0, err
		}
		p.numbers, p.finish = append(p.numbers, c), append(p.finish, c.finish)
	}
	return group.NumRows, nil
}

func (p *parquetRows) text(column int) (s string, ok bool, err error) {
	c := p.texts[column]
	if err := c.begin(); err != nil {
		return "", false, err
	}
	if ok = c.definitions[c.i] == c.defined; ok {
		s = c.values[c.i]
	}
	return s, ok, c.advance(1)
}

func (p *parquetRows) vector(l *tabular.Layout, to []float32) (numbers []float32, malformed, err error) {
	for _, c := range p.numbers {
		if to, err = appendRow(to, c, &malformed); err != nil {
			break
		}
	}
	return to, malformed, err
}

// appendRow appends the numbers of a chunk in the current row: one number, or a list. If a number is invalid and
// *malformed is nil, it sets *malformed to the reason.
func appendRow(to []float32, c *chunk[float32], malformed *error) ([]float32, error) {
	if err := c.begin(); err != nil {
		return to, err
	}
	for n := 0; ; {
		index := n // index in the list
		if c.inList == 0 {
			index = -1
		}
		run := c.present()
		var reason error
		switch d := c.definitions[c.i]; {
		case len(run) > 0:
			to = append(to, run...)
		case c.inList == 0, d >= c.inList:
			reason = tabular.ValueError(c.Column, index, "null (want a number)")
			to = append(to, 0)
		case d < c.inList-1:
			reason = tabular.ValueError(c.Column, -1, "null (want a list)")
		}
		if *malformed == nil {
			*malformed = reason
		}
		read := max(1, len(run))
		if n += read; n > tabular.MaxDim {
			return to, fmt.Errorf("column %.60q: a list is too long (want at most %d numbers)", c.Name, tabular.MaxDim)
		}
		if err := c.advance(read); err != nil {
			return to, err
		}
		if c.ended || c.repetitions[c.i] == 0 {
			return to, nil
		}
	}
}
