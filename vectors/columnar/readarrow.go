package columnar

import (
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"overcomplete/internal/float16"
	"overcomplete/vectors/internal/tabular"
)

// An Arrow file consists of a magic number, padding, the stream and a footer.
const (
	arrowFile   = "ARROW1\x00\x00"   // magic number and padding of a file
	arrowStream = "\xff\xff\xff\xff" // marker of each message of a stream
)

func init() {
	tabular.Formats = append(tabular.Formats,
		tabular.Format{Name: "Arrow", Magic: arrowFile, Open: func(c tabular.Content, o tabular.Options) (*tabular.Table, error) {
			m := &messages{r: c, left: c.Size(), file: true}
			if _, err := m.read(int64(len(arrowFile))); err != nil {
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

// openArrow opens a stream. The table holds a record batch in memory.
func openArrow(m *messages, o tabular.Options) (*tabular.Table, error) {
	r, err := guard("Arrow", func() (*ipc.Reader, error) {
		return ipc.NewReaderFromMessageReader(m)
	})
	if err != nil {
		return nil, err
	}
	schema := r.Schema()
	var columns []tabular.Column
	for _, f := range schema.Fields() {
		columns = append(columns, tabular.Column{Name: f.Name, Type: f.Type.String(), Kind: arrowKind(f.Type)})
	}
	l, err := chooseColumns(columns, schema.Metadata().FindKey(dimensions) >= 0, o)
	if err != nil {
		return nil, err
	}
	a := &arrowRows{Layout: l, r: r}
	return table(l, func() (block, error) { return guard("Arrow", a.next) }), nil
}

func arrowKind(t arrow.DataType) tabular.Kind {
	if d, ok := t.(*arrow.DictionaryType); ok {
		if k := arrowKind(d.ValueType); k == tabular.Text || k == tabular.Scalar {
			return k
		}
	}
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return tabular.Text
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return tabular.Number
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		if arrowKind(t.(arrow.ListLikeType).Elem()) == tabular.Number {
			return tabular.List
		}
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return tabular.Scalar
	case arrow.EXTENSION:
		return arrowKind(t.(arrow.ExtensionType).StorageType())
	}
	return tabular.Other
}

// arrowRows reads the rows of a stream in blocks, each within a record batch.
type arrowRows struct {
	*tabular.Layout
	r     *ipc.Reader
	batch arrow.RecordBatch
	at    int // next row of the batch
	block
}

// next implements Next of a [tabular.Table].
func (a *arrowRows) next() (block, error) {
	for a.batch == nil || a.at >= int(a.batch.NumRows()) {
		if !a.r.Next() {
			if err := a.r.Err(); err != nil {
				return block{}, err
			}
			return block{}, io.EOF
		}
		a.batch, a.at = a.r.RecordBatch(), 0
		for i, c := range a.batch.Columns() {
			if int64(c.Len()) != a.batch.NumRows() {
				return block{}, fmt.Errorf("column %.60q has the wrong number of rows (got %d, want %d)", a.Columns[i].Name, c.Len(), a.batch.NumRows())
			}
		}
	}
	a.reset()
	if a.List() {
		a.lists()
	} else {
		a.wide()
	}
	return a.block, nil
}

// rowAt returns row i of the batch, without its vector.
func (a *arrowRows) rowAt(i int) tabular.Row {
	r, _ := a.Row(func(column int) (string, bool, error) {
		values, i := storage(a.batch.Column(column)), i
		if d, ok := values.(*array.Dictionary); ok && !d.IsNull(i) {
			values, i = storage(d.Dictionary()), d.GetValueIndex(i)
		}
		if values.IsNull(i) {
			return "", false, nil
		}
		switch values := values.(type) {
		case *array.Float16:
			return formatNumber(float64(values.Value(i).Float32()), 32), true, nil
		case *array.Float32:
			return formatNumber(float64(values.Value(i)), 32), true, nil
		case *array.Float64:
			return formatNumber(values.Value(i), 64), true, nil
		}
		return strings.Clone(values.ValueStr(i)), true, nil // without Clone it would keep the batch in memory
	})
	return r
}

// lists reads the next block of rows whose vectors are lists.
func (a *arrowRows) lists() {
	column := a.Columns[a.Vectors[0]]
	lists := storage(a.batch.Column(a.Vectors[0])).(array.ListLike)
	values := storage(lists.ListValues())
	nulls := values.NullN() != 0
	for end := int(a.batch.NumRows()); a.at < end && len(a.data) < blockNumbers && len(a.rows) < blockNumbers; a.at++ {
		var err error
		start := len(a.data)
		if lists.IsNull(a.at) {
			a.add(a.rowAt(a.at), start, tabular.ValueError(column, -1, "null (want a list)"))
			continue
		}
		lo, hi := lists.ValueOffsets(a.at)
		a.data = appendNumbers(a.data, values, int(lo), int(hi))
		for n, x := range a.data[start:] {
			if err == nil && nulls && values.IsNull(int(lo)+n) {
				err = tabular.ValueError(column, n, "null (want a number)")
			} else if err == nil {
				err = checkNumber(column, n, x)
			}
		}
		a.add(a.rowAt(a.at), start, err)
	}
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
		return append(b, a.Float32Values()[lo:hi]...)
	case *array.Float64:
		for _, x := range a.Float64Values()[lo:hi] {
			b = append(b, float32(x))
		}
	case *array.Float16:
		for _, x := range a.Values()[lo:hi] {
			b = append(b, float16.FromBits(x.Uint16()))
		}
	default:
		panic(fmt.Sprintf("numbers of type %v", a.DataType()))
	}
	return b
}
