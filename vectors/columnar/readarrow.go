package columnar

import (
	"cmp"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// An Arrow file consists of a magic number, padding, the stream and a footer.
const (
	arrowMagic  = "ARROW1"           // magic number at both ends of a file
	arrowFile   = "ARROW1\x00\x00"   // the first one with padding
	arrowStream = "\xff\xff\xff\xff" // marker of each message of a stream
)

func init() {
	tabular.Formats = append(tabular.Formats,
		tabular.Format{Name: "Arrow", Magic: arrowFile, Open: func(c tabular.Content, o tabular.Options) (*tabular.Table, error) {
			file, size, err := c.RandomAccess()
			if err != nil {
				return nil, err
			}
			m, err := guard("Arrow", func() (*fileMessages, error) { return openFileMessages(file, size) })
			if err != nil {
				return nil, err
			}
			return openArrow(m, o)
		}},
		tabular.Format{Name: "Arrow", Magic: arrowStream, Open: func(c tabular.Content, o tabular.Options) (*tabular.Table, error) {
			return openArrow(&messages{r: c, left: c.Size()}, o)
		}},
		tabular.Format{Name: "Parquet", Magic: parquetMagic, Open: openParquet},
		tabular.Format{Name: "Parquet", Magic: parquetEncrypted, Open: openParquet})
}

// openArrow opens a stream or file. The table holds a record batch in memory.
func openArrow(m ipc.MessageReader, o tabular.Options) (*tabular.Table, error) {
	a, err := guard("Arrow", func() (*arrowRows, error) {
		r, err := ipc.NewReaderFromMessageReader(m)
		if err != nil {
			return nil, err
		}
		a := &arrowRows{r: r, columns: arrowColumns(r.Schema())}
		if err := a.nextBatch(); err != io.EOF && err != nil {
			return nil, err
		}
		for i := range a.columns {
			if c := &a.columns[i]; c.Kind == tabular.Bytes && a.isText(i) {
				c.Kind = tabular.Text
			}
		}
		return a, nil
	})
	if err != nil {
		return nil, err
	}
	var columns []tabular.Column
	for _, c := range a.columns {
		columns = append(columns, c.Column)
	}
	if a.Layout, err = chooseColumns(columns, a.r.Schema().Metadata().FindKey(dimensions) >= 0, o); err != nil {
		return nil, err
	}
	return table(a.Layout, o, func() (block, error) { return guard("Arrow", a.next) }), nil
}

// An arrowColumn is a column of the table.
type arrowColumn struct {
	tabular.Column
	classes []string // names of the classes, if it has numbers of classes
}

// arrowColumns returns the columns of a schema.
func arrowColumns(s *arrow.Schema) (columns []arrowColumn) {
	value, _ := s.Metadata().GetValue(huggingFace)
	classes := classNames(value)
	for _, f := range s.Fields() {
		c := arrowColumn{Column: tabular.Column{Name: f.Name}}
		c.Type, c.Kind = arrowType(f.Type)
		if extension, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName); extension == "arrow.uuid" && c.Kind == tabular.Bytes {
			c.Type, c.Kind = uuid, tabular.Scalar
		}
		if names := classes[f.Name]; names != nil && c.Kind == tabular.Number {
			c.Type, c.Kind, c.classes = "class", tabular.Scalar, names
		}
		columns = append(columns, c)
	}
	return columns
}

// uuid is the type of 16 bytes that are formatted as a UUID.
const uuid = "uuid"

// arrowType returns the name and kind of a type.
func arrowType(t arrow.DataType) (name string, k tabular.Kind) {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		if name, k = arrowType(t.ValueType); k == tabular.Number {
			k = tabular.Scalar
		}
		return name, k
	case arrow.ExtensionType:
		return arrowType(t.StorageType())
	case *arrow.StructType:
		if isArrowSpark(t) {
			return "vector of Spark", tabular.List
		}
		return "struct", tabular.Other
	case *arrow.MapType:
		return "map", tabular.Other
	case arrow.ListLikeType:
		if name, k = arrowType(t.Elem()); k == tabular.Number {
			return "list of " + name, tabular.List
		}
		return "list of " + name, tabular.Other
	case arrow.DecimalType:
		return "decimal", tabular.Number
	}
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return "string", tabular.Text
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return "binary", tabular.Bytes
	case arrow.BOOL:
		return "bool", tabular.Scalar
	case arrow.DATE32, arrow.DATE64:
		return "date", tabular.Scalar
	case arrow.TIME32, arrow.TIME64:
		return "time", tabular.Scalar
	case arrow.TIMESTAMP:
		return "timestamp", tabular.Scalar
	}
	if arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) {
		return t.Name(), tabular.Number
	}
	return t.Name(), tabular.Other
}

// isArrowSpark reports whether a column of the type has vectors of Spark.
func isArrowSpark(t *arrow.StructType) bool {
	if t.NumFields() != len(sparkFields) {
		return false
	}
	for i, f := range t.Fields() {
		want := tabular.Number
		if i >= 2 {
			want = tabular.List
		}
		if _, k := arrowType(f.Type); f.Name != sparkFields[i] || k != want {
			return false
		}
	}
	return true
}

// arrowRows reads the rows of record batches in blocks, each within a batch.
type arrowRows struct {
	*tabular.Layout
	columns []arrowColumn
	r       *ipc.Reader
	batch   arrow.RecordBatch
	at      int // next row of the batch
	block
}

// nextBatch reads the next record batch. It returns io.EOF after the last one.
func (a *arrowRows) nextBatch() error {
	if !a.r.Next() {
		return cmp.Or(a.r.Err(), io.EOF)
	}
	a.batch, a.at = a.r.RecordBatch(), 0
	for i, c := range a.batch.Columns() {
		if int64(c.Len()) != a.batch.NumRows() {
			return fmt.Errorf("column %.60q has the wrong number of rows (got %d, want %d)", a.columns[i].Name, c.Len(), a.batch.NumRows())
		}
	}
	return nil
}

// isText reports whether the first values of a column of bytes are texts in UTF-8.
func (a *arrowRows) isText(column int) bool {
	const sample = 256
	for i, found := 0, 0; a.batch != nil && i < int(a.batch.NumRows()) && found < sample; i++ {
		s, ok := a.text(column, i)
		if !isText(s) {
			return false
		}
		if ok {
			found++
		}
	}
	return true
}

// next implements Next of a [tabular.Table].
func (a *arrowRows) next() (block, error) {
	for a.batch == nil || a.at >= int(a.batch.NumRows()) {
		if err := a.nextBatch(); err != nil {
			return block{}, err
		}
	}
	a.reset()
	if len(a.Vectors) > 0 && a.Columns[a.Vectors[0]].Kind == tabular.Number {
		a.wide()
	} else {
		a.narrow()
	}
	return a.block, nil
}

// rowAt returns row i of the batch, without its vector.
func (a *arrowRows) rowAt(i int) tabular.Row {
	r, _ := a.Row(func(column int) (string, bool, error) {
		s, ok := a.text(column, i)
		return s, ok, nil
	})
	return r
}

// text returns row i of a column as a string. ok is false for null.
func (a *arrowRows) text(column, i int) (s string, ok bool) {
	values := storage(a.batch.Column(column))
	if d, ok := values.(*array.Dictionary); ok && !d.IsNull(i) {
		values, i = storage(d.Dictionary()), d.GetValueIndex(i)
	}
	if values.IsNull(i) {
		return "", false
	}
	c := a.columns[column]
	s = arrowText(values, i)
	switch {
	case c.Type == uuid:
		s = formatUUID([]byte(s))
	case c.classes != nil:
		s = className(c.classes, s)
	}
	return s, true
}

// arrowText returns value i as a string that doesn't share the memory of the batch.
func arrowText(values arrow.Array, i int) string {
	switch values := values.(type) {
	case *array.Float16:
		return formatNumber(float64(values.Value(i).Float32()), 32)
	case *array.Float32:
		return formatNumber(float64(values.Value(i)), 32)
	case *array.Float64:
		return formatNumber(values.Value(i), 64)
	case *array.Date32:
		return formatDate(int64(values.Value(i)))
	case *array.Date64:
		return instant(int64(values.Value(i)), time.Millisecond).Format(time.DateOnly)
	case *array.Time32:
		return formatTime(int64(values.Value(i)), values.DataType().(*arrow.Time32Type).Unit.Multiplier())
	case *array.Time64:
		return formatTime(int64(values.Value(i)), values.DataType().(*arrow.Time64Type).Unit.Multiplier())
	case *array.Timestamp:
		t := values.DataType().(*arrow.TimestampType)
		return formatTimestamp(int64(values.Value(i)), t.Unit.Multiplier(), t.TimeZone != "")
	case *array.Decimal32:
		return formatDecimal(big.NewInt(int64(values.Value(i))), scaleOf(values))
	case *array.Decimal64:
		return formatDecimal(big.NewInt(int64(values.Value(i))), scaleOf(values))
	case *array.Decimal128:
		return formatDecimal(values.Value(i).BigInt(), scaleOf(values))
	case *array.Decimal256:
		return formatDecimal(values.Value(i).BigInt(), scaleOf(values))
	case interface{ Value(int) []byte }: // bytes
		return string(values.Value(i))
	}
	return strings.Clone(values.ValueStr(i))
}

// scaleOf returns the scale of an array of decimals.
func scaleOf(values arrow.Array) int {
	scale := values.DataType().(arrow.DecimalType).GetScale()
	return int(min(maxScale, max(-maxScale, scale)))
}

// narrow reads the next block of rows whose vectors are in one column.
func (a *arrowRows) narrow() {
	text := 0
	for end := int(a.batch.NumRows()); a.at < end && len(a.data) < blockNumbers && len(a.rows) < blockNumbers && text < blockText; a.at++ {
		var err error
		start := len(a.data)
		row := a.rowAt(a.at)
		if a.IsList() {
			a.data, err = appendVector(a.data, a.Columns[a.Vectors[0]], storage(a.batch.Column(a.Vectors[0])), a.at)
		}
		a.add(row, start, err)
		text += textSize(row)
	}
}

// appendVector appends row i of a column of lists or of Spark's vectors. It returns the reason if the vector is malformed.
func appendVector(to []float32, c tabular.Column, column arrow.Array, i int) ([]float32, error) {
	if column.IsNull(i) {
		return to, tabular.ValueError(c, -1, "null (want a list)")
	}
	switch column := column.(type) {
	case array.ListLike:
		start, end := column.ValueOffsets(i)
		return appendRange(to, c, storage(column.ListValues()), int(start), int(end))
	case *array.Struct:
		values, err := appendVector(nil, c, column.Field(3), i)
		if err != nil {
			return to, err
		}
		var indices []float32
		if !column.Field(2).IsNull(i) {
			if indices, err = appendVector(nil, c, column.Field(2), i); err != nil {
				return to, err
			}
		}
		kind, size := appendNumbers(nil, column.Field(0), i, i+1), appendNumbers(nil, column.Field(1), i, i+1)
		return appendSpark(to, c, kind[0], size[0], indices, values)
	}
	panic(fmt.Sprintf("vectors of type %v", column.DataType()))
}

// appendRange appends numbers lo to hi−1 of a, which are a list. It returns an error if one is null or not finite.
func appendRange(to []float32, c tabular.Column, a arrow.Array, lo, hi int) ([]float32, error) {
	start := len(to)
	to = appendNumbers(to, a, lo, hi)
	if a.NullN() != 0 {
		for i := lo; i < hi; i++ {
			if a.IsNull(i) {
				return to, tabular.ValueError(c, i-lo, "null (want a number)")
			}
		}
	}
	if i := indexNotFinite(to[start:]); i >= 0 {
		return to, notFinite(c, i, to[start+i])
	}
	return to, nil
}

// wide reads the next block of rows whose vectors have a column per dimension.
func (a *arrowRows) wide() {
	dim := len(a.Vectors)
	first, rows := a.at, min(max(1, blockNumbers/dim), int(a.batch.NumRows())-a.at)
	a.at += rows
	a.data = append(a.data, make([]float32, rows*dim)...)
	errs := make([]error, rows)
	var numbers []float32
	for k, i := range a.Vectors {
		values := storage(a.batch.Column(i))
		nulls := values.NullN() != 0
		numbers = appendNumbers(numbers[:0], values, first, first+rows)
		for row, x := range numbers {
			a.data[row*dim+k] = x
			if errs[row] == nil && nulls && values.IsNull(first+row) {
				errs[row] = tabular.ValueError(a.Columns[i], -1, "null (want a number)")
			} else if errs[row] == nil {
				errs[row] = checkNumber(a.Columns[i], -1, x)
			}
		}
	}
	for i, err := range errs {
		r := a.rowAt(first + i)
		r.Len, r.Err = dim, err
		a.rows = append(a.rows, r)
	}
}

// storage returns the storage array of an array of an extension type, or the array itself.
func storage(a arrow.Array) arrow.Array {
	if e, ok := a.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return a
}

// appendNumbers appends numbers lo to hi−1 of a.
func appendNumbers(b []float32, a arrow.Array, lo, hi int) []float32 {
	switch a := a.(type) {
	case *array.Float32:
		return append(b, a.Values()[lo:hi]...)
	case *array.Float64:
		return convert(b, a.Values()[lo:hi])
	case *array.Float16:
		for _, x := range a.Values()[lo:hi] {
			b = append(b, float32s.FromFloat16(x.Uint16()))
		}
		return b
	case *array.Int8:
		return convert(b, a.Values()[lo:hi])
	case *array.Int16:
		return convert(b, a.Values()[lo:hi])
	case *array.Int32:
		return convert(b, a.Values()[lo:hi])
	case *array.Int64:
		return convert(b, a.Values()[lo:hi])
	case *array.Uint8:
		return convert(b, a.Values()[lo:hi])
	case *array.Uint16:
		return convert(b, a.Values()[lo:hi])
	case *array.Uint32:
		return convert(b, a.Values()[lo:hi])
	case *array.Uint64:
		return convert(b, a.Values()[lo:hi])
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		for i := lo; i < hi; i++ {
			x, _ := strconv.ParseFloat(arrowText(a, i), 32) // ±∞ if it is out of range
			b = append(b, float32(x))
		}
		return b
	}
	panic(fmt.Sprintf("numbers of type %v", a.DataType()))
}

// convert appends numbers as float32.
func convert[T arrow.IntType | arrow.UintType | float64](b []float32, numbers []T) []float32 {
	for _, x := range numbers {
		b = append(b, float32(x))
	}
	return b
}
