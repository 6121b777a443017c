package columnar

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"overcomplete/vectors/internal/tabular"
)

// An Arrow file consists of a magic number, padding, the stream and a footer.
const (
	arrowMagic  = "ARROW1"           // magic number at both ends of a file
	arrowFile   = "ARROW1\x00\x00"   // magic number at the beginning, with padding
	arrowStream = "\xff\xff\xff\xff" // marker of each message of a stream
)

func init() {
	file := func(name, magic string, open func(file io.ReaderAt, size int64) table) tabular.Format {
		return tabular.Format{Name: name, Magic: magic, Open: func(c tabular.Content, o tabular.Options) (*tabular.Layout, tabular.Blocks, error) {
			r, size, err := c.RandomAccess()
			if err != nil {
				return nil, nil, err
			}
			return openTable(name, open(r, size), o)
		}}
	}
	parquet := func(file io.ReaderAt, size int64) table { return &parquetRows{file: file, size: size} }
	tabular.Formats = append(tabular.Formats,
		file("Arrow", arrowFile, func(file io.ReaderAt, size int64) table {
			return &arrowRows{messages: func() (ipc.MessageReader, error) { return openFileMessages(file, size) }}
		}),
		tabular.Format{Name: "Arrow", Magic: arrowStream, Open: func(c tabular.Content, o tabular.Options) (*tabular.Layout, tabular.Blocks, error) {
			m := &messages{r: c, left: c.Length()}
			return openTable("Arrow", &arrowRows{messages: func() (ipc.MessageReader, error) { return m, nil }}, o)
		}},
		file("Parquet", parquetMagic, parquet),
		file("Parquet", parquetEncrypted, parquet))
}

func arrowColumns(s *arrow.Schema) (columns []values) {
	value, _ := s.Metadata().GetValue(huggingFace)
	classes := classNames(value)
	for _, f := range s.Fields() {
		c := arrowType(f.Type)
		if extension, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName); extension == "arrow.uuid" && c.Kind == tabular.Bytes {
			c = scalars(uuid, c.size, formatUUID)
		}
		c.classify(classes[f.Name])
		c.Name = f.Name
		columns = append(columns, c)
	}
	return columns
}

// uuid is the type of 16 bytes that are formatted as a UUID.
const uuid = "uuid"

// arrowType returns a column of a type, without a name.
func arrowType(t arrow.DataType) values {
	column := func(name string, k tabular.Kind) values {
		return values{Column: tabular.Column{Type: name, Kind: k}}
	}
	size := 0
	if t, ok := t.(arrow.FixedWidthDataType); ok {
		size = t.Bytes()
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		c := arrowType(t.ValueType)
		if c.Kind == tabular.Number {
			c.Kind = tabular.Scalar
		}
		return c
	case arrow.ExtensionType:
		return arrowType(t.StorageType())
	case *arrow.StructType:
		return column("struct", tabular.Other)
	case *arrow.MapType:
		return column("map", tabular.Other)
	case arrow.ListLikeType:
		e := arrowType(t.Elem())
		c := column("list of "+e.Type, tabular.Other)
		if e.Kind == tabular.Number {
			c.Kind, c.element = tabular.List, &e
		}
		return c
	case arrow.DecimalType:
		scale := int(min(maxScale, max(-maxScale, t.GetScale())))
		return decimals(size, scale, littleEndian)
	case *arrow.Date32Type:
		return dateValues(size)
	case *arrow.Date64Type:
		return scalars("date", size, func(b []byte) string { return instant(integerOf(b), time.Millisecond).Format(time.DateOnly) })
	case *arrow.Time32Type, *arrow.Time64Type:
		return times(size, t.(arrow.TemporalWithUnit).TimeUnit().Multiplier())
	case *arrow.TimestampType:
		return timestamps(size, t.Unit.Multiplier(), t.TimeZone != "")
	case *arrow.BooleanType:
		return column("bool", tabular.Scalar)
	}
	switch id := t.ID(); {
	case id == arrow.STRING, id == arrow.LARGE_STRING, id == arrow.STRING_VIEW:
		return column("string", tabular.Text)
	case id == arrow.BINARY, id == arrow.LARGE_BINARY, id == arrow.BINARY_VIEW, id == arrow.FIXED_SIZE_BINARY:
		c := column("binary", tabular.Bytes)
		c.size = size
		return c
	case arrow.IsInteger(id):
		return integers(t.Name(), size, arrow.IsSignedInteger(id))
	case arrow.IsFloating(id):
		return floats(size)
	}
	return column(t.Name(), tabular.Other)
}

// arrowRows implements [table] for Arrow. It holds one record batch at a time.
type arrowRows struct {
	messages func() (ipc.MessageReader, error)
	r        *ipc.Reader
	columns  []values
	batch    arrow.RecordBatch
	at       int // current row in the batch
}

func (a *arrowRows) open() (columns []tabular.Column, codes bool, err error) {
	m, err := a.messages()
	if err != nil {
		return nil, false, err
	}
	if a.r, err = ipc.NewReaderFromMessageReader(m); err != nil {
		return nil, false, err
	}
	a.columns = arrowColumns(a.r.Schema())
	for _, c := range a.columns {
		columns = append(columns, c.Column)
	}
	return columns, a.r.Schema().Metadata().FindKey(dimensions) >= 0, nil
}

func (a *arrowRows) nextGroup(*tabular.Layout) (rows int64, err error) {
	if !a.r.Next() {
		return 0, cmp.Or(a.r.Err(), io.EOF)
	}
	a.batch, a.at = a.r.RecordBatch(), 0
	rows = a.batch.NumRows()
	for i, c := range a.batch.Columns() {
		if int64(c.Len()) != rows {
			return 0, fmt.Errorf("column %.60q has the wrong number of rows (got %d, want %d)", a.columns[i].Name, c.Len(), rows)
		}
	}
	return rows, nil
}

func (a *arrowRows) text(column int) (s string, ok bool, err error) {
	values, i := storage(a.batch.Column(column)), a.at
	if d, ok := values.(*array.Dictionary); ok && !d.IsNull(i) {
		values, i = storage(d.Dictionary()), d.GetValueIndex(i)
	}
	if values.IsNull(i) {
		return "", false, nil
	}
	if c := a.columns[column]; c.print != nil {
		return c.print(raw(values, i, i+1, c.size)), true, nil
	}
	return strings.Clone(values.ValueStr(i)), true, nil // a copy outside the memory of the batch
}

// raw returns the bytes of numbers lo to hi−1 of an array. Each has size bytes. It panics if the array is shorter.
func raw(a arrow.Array, lo, hi, size int) []byte {
	if lo == hi {
		return nil
	}
	if lo < 0 || hi < lo || hi > a.Len() {
		panic(errMetadata)
	}
	data := a.Data()
	return data.Buffers()[1].Bytes()[(data.Offset()+lo)*size : (data.Offset()+hi)*size]
}

func (v *values) appendNumbers(to []float32, a arrow.Array, lo, hi int) []float32 {
	n, b := len(to), raw(a, lo, hi, v.size)
	to = slices.Grow(to, hi-lo)[:n+hi-lo]
	v.floats(to[n:], b)
	return to
}

func (a *arrowRows) vector(l *tabular.Layout, to []float32) (numbers []float32, malformed, err error) {
	i := a.at
	a.at++
	for _, column := range l.Vectors {
		c, data := &a.columns[column], storage(a.batch.Column(column))
		switch c.Kind {
		case tabular.List:
			to, malformed = c.appendList(to, data, i)
		case tabular.Number:
			if to = c.appendNumbers(to, data, i, i+1); malformed == nil && data.IsNull(i) {
				malformed = tabular.ValueError(c.Column, -1, "null (want a number)")
			}
		}
	}
	return to, malformed, nil
}

// appendList appends row i of a column of lists. It returns the reason if the vector is malformed.
func (c *values) appendList(to []float32, column arrow.Array, i int) ([]float32, error) {
	if column.IsNull(i) {
		return to, tabular.ValueError(c.Column, -1, "null (want a list)")
	}
	lists := column.(array.ListLike)
	start, end := lists.ValueOffsets(i)
	lo, hi, numbers := int(start), int(end), storage(lists.ListValues())
	to = c.element.appendNumbers(to, numbers, lo, hi)
	for i := lo; i < hi && numbers.NullN() != 0; i++ {
		if numbers.IsNull(i) {
			return to, tabular.ValueError(c.Column, i-lo, "null (want a number)")
		}
	}
	return to, nil
}

// storage returns the storage array of an array of an extension type, or the array itself.
func storage(a arrow.Array) arrow.Array {
	if e, ok := a.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return a
}
