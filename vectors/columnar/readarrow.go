package columnar

import (
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// An Arrow file is a magic number, padding, the stream and a footer, whose index is not needed.
const (
	arrowFile   = "ARROW1\x00\x00"
	arrowStream = "\xff\xff\xff\xff" // of the first message
)

func init() {
	vectors.RegisterFormat("Arrow", arrowFile, func(c *vectors.Content) (*vectors.Table, error) {
		m := &messages{r: c, left: c.Size, file: true}
		if _, err := m.read(int64(len(arrowFile))); err != nil {
			return nil, err
		}
		return openArrow(m)
	})
	vectors.RegisterFormat("Arrow", arrowStream, func(c *vectors.Content) (*vectors.Table, error) {
		return openArrow(&messages{r: c, left: c.Size})
	})
	vectors.RegisterFormat("Parquet", parquetMagic, openParquet)
}

// openArrow reads a stream, a record batch at a time.
func openArrow(m *messages) (*vectors.Table, error) {
	r, err := guard("Arrow", func() (*ipc.Reader, error) {
		return ipc.NewReaderFromMessageReader(m, ipc.WithAllocator(allocator{arrowmemory.NewGoAllocator(), m}))
	})
	if err != nil {
		return nil, err
	}
	schema := r.Schema()
	var columns []column
	for _, f := range schema.Fields() {
		columns = append(columns, column{f.Name, arrowKind(f.Type)})
	}
	l, err := choose(columns, schema.Metadata().FindKey(dimensions) >= 0)
	if err != nil {
		return nil, err
	}
	a := &arrowRows{layout: l, columns: columns, r: r}
	return l.table(func() ([]vectors.Row, error) { return guard("Arrow", a.next) }), nil
}

func arrowKind(t arrow.DataType) kind {
	if d, ok := t.(*arrow.DictionaryType); ok && arrowKind(d.ValueType) == text {
		return text
	}
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return text
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return number
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		if arrowKind(t.(arrow.ListLikeType).Elem()) == number {
			return list
		}
	case arrow.EXTENSION:
		return arrowKind(t.(arrow.ExtensionType).StorageType())
	}
	return other
}

// arrowRows reads the rows of a stream, some of a batch at a time.
type arrowRows struct {
	layout
	columns []column
	r       *ipc.Reader
	batch   arrow.RecordBatch
	row     int // of the batch
	block
}

// next is that of a [vectors.Table].
func (a *arrowRows) next() ([]vectors.Row, error) {
	for a.batch == nil || a.row >= int(a.batch.NumRows()) {
		if !a.r.Next() {
			if err := a.r.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		a.batch, a.row = a.r.RecordBatch(), 0
		for i, c := range a.batch.Columns() {
			if int64(c.Len()) != a.batch.NumRows() {
				return nil, faulty(a.columns[i], -1, fmt.Sprintf("of %d rows, in a batch of %d", c.Len(), a.batch.NumRows()))
			}
		}
	}
	word := func(int) (string, error) { return "", nil }
	if a.word >= 0 {
		word = a.words(a.word)
	}
	a.reset()
	if a.list {
		a.lists(word)
	} else {
		a.wide(word)
	}
	return a.rows, nil
}

// words returns a function of the words in a column.
func (a *arrowRows) words(i int) func(row int) (string, error) {
	values := storage(a.batch.Column(i))
	index := func(row int) int { return row }
	if d, ok := values.(*array.Dictionary); ok {
		dictionary := storage(d.Dictionary())
		index = func(row int) int {
			if d.IsNull(row) {
				return -1
			}
			return d.GetValueIndex(row)
		}
		values = dictionary
	}
	strs := values.(array.StringLike)
	return func(row int) (string, error) {
		at := index(row)
		if at < 0 || strs.IsNull(at) {
			return "", faulty(a.columns[i], -1, "null, want a word")
		}
		return strings.Clone(strs.Value(at)), nil // or it would keep the batch in memory
	}
}

// lists reads rows whose vectors are lists.
func (a *arrowRows) lists(word func(int) (string, error)) {
	column := a.columns[a.vectors[0]]
	lists := storage(a.batch.Column(a.vectors[0])).(array.ListLike)
	values := storage(lists.ListValues())
	nulls := values.NullN() != 0
	for end := int(a.batch.NumRows()); a.row < end && len(a.data) < blockNumbers && len(a.rows) < blockNumbers; a.row++ {
		w, err := word(a.row)
		start := len(a.data)
		if lists.IsNull(a.row) {
			a.add(w, start, faulty(column, -1, "null, want a list"))
			continue
		}
		lo, hi := lists.ValueOffsets(a.row)
		a.data = appendNumbers(a.data, values, int(lo), int(hi))
		for n, x := range a.data[start:] {
			if err == nil && nulls && values.IsNull(int(lo)+n) {
				err = faulty(column, n, "null, want a number")
			} else if err == nil {
				err = checkNumber(column, n, x)
			}
		}
		a.add(w, start, err)
	}
}

// wide reads rows whose vectors are a column for each dimension.
func (a *arrowRows) wide(word func(int) (string, error)) {
	dim := len(a.vectors)
	first, rows := a.row, min(max(1, blockNumbers/dim), int(a.batch.NumRows())-a.row)
	a.row += rows
	a.data = append(a.data, make([]float32, rows*dim)...)
	errs := make([]error, rows)
	var numbers []float32
	for k, i := range a.vectors {
		values := storage(a.batch.Column(i))
		nulls := values.NullN() != 0
		numbers = appendNumbers(numbers[:0], values, first, first+rows)
		for row, x := range numbers {
			a.data[row*dim+k] = x
			if errs[row] == nil && nulls && values.IsNull(first+row) {
				errs[row] = faulty(a.columns[i], -1, "null, want a number")
			} else if errs[row] == nil {
				errs[row] = checkNumber(a.columns[i], -1, x)
			}
		}
	}
	for row, err := range errs {
		w, wrong := word(first + row)
		if err == nil {
			err = wrong
		}
		a.rows = append(a.rows, vectors.Row{Word: w, Vector: a.data[row*dim : (row+1)*dim], Err: err})
	}
}

// storage returns the array that one of an extension's type is kept in.
func storage(a arrow.Array) arrow.Array {
	if e, ok := a.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return a
}

// appendNumbers appends the numbers of a from lo to before hi.
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
			b = append(b, npy.Float16(x.Uint16()))
		}
	default:
		panic(fmt.Sprintf("numbers of type %v", a.DataType()))
	}
	return b
}
