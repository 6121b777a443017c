package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/vectors/internal/tabular"
)

// A leaf is a sequence of values, with levels that mark the starts of lists and nulls. If a column of the table has
// only one leaf, the leaf is that column.
type leaf struct {
	values               // with the name of the column of the table
	index    int         // index of the leaf in a row group
	depth    int         // number of parents below the root
	lists    int         // number of nested lists around a value
	defined  uint8       // definition level of a value
	inList   uint8       // minimum definition level of an element of a list
	physical format.Type // physical type of the values
}

// A schema holds the elements of a tree that are not parsed yet, in depth-first order. The columns of
// the table are the children of the root.
type schema struct {
	elements []format.SchemaElement
	leaves   int // number of leaves so far
}

var errSchema = errors.New("the schema is invalid")

// column parses the next column of the table. The map classes has the class names by column.
func (s *schema) column(classes map[string][]string) (l leaf, err error) {
	e, before := s.elements[0], s.leaves
	if err := s.walk(leaf{}, &l); err != nil {
		return l, err
	}
	c := tabular.Column{Name: e.Name, Type: "struct"}
	switch annotation(e).(type) {
	case *format.MapType:
		c.Type = "map"
	case *format.ListType:
		c.Type = "list of struct"
	}
	switch {
	case s.leaves != before+1:
	case l.lists > 0 && l.depth <= 2*l.lists: // a list has two groups: column.list.element
		c.Type = strings.Repeat("list of ", l.lists) + l.Type
		if l.Kind == tabular.Number && l.lists == 1 {
			c.Kind = tabular.List
		}
	case l.depth == 0:
		l.classify(classes[e.Name])
		c.Type, c.Kind = l.Type, l.Kind
	}
	l.Column = c
	return l, nil
}

// walk parses an element below l and its children. It sets *last to the last leaf.
func (s *schema) walk(l leaf, last *leaf) error {
	if len(s.elements) == 0 || l.depth > maxNested {
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
		l.lists++
	}
	if e.Type.Valid {
		l.index = s.leaves
		s.leaves++
		l.setType(e)
		*last = l
		return nil
	}
	l.depth++
	for range e.NumChildren.V {
		if err := s.walk(l, last); err != nil {
			return err
		}
	}
	return nil
}

// annotation returns the logical type of an element, or nil. The element may declare it in the old form, ConvertedType.
func annotation(e format.SchemaElement) any {
	if e.LogicalType.Value != nil {
		return e.LogicalType.Value
	}
	if !e.ConvertedType.Valid {
		return nil
	}
	millis, micros := format.TimeUnit{Value: new(format.MilliSeconds)}, format.TimeUnit{Value: new(format.MicroSeconds)}
	switch c := e.ConvertedType.V; c {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json:
		return new(format.StringType)
	case deprecated.Map, deprecated.MapKeyValue:
		return new(format.MapType)
	case deprecated.List:
		return new(format.ListType)
	case deprecated.Decimal:
		return &format.DecimalType{Scale: e.Scale.V}
	case deprecated.Date:
		return new(format.DateType)
	case deprecated.TimeMillis:
		return &format.TimeType{Unit: millis}
	case deprecated.TimeMicros:
		return &format.TimeType{Unit: micros}
	case deprecated.TimestampMillis:
		return &format.TimestampType{IsAdjustedToUTC: true, Unit: millis}
	case deprecated.TimestampMicros:
		return &format.TimestampType{IsAdjustedToUTC: true, Unit: micros}
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return &format.IntType{BitWidth: 8 << (c - deprecated.Uint8)}
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return &format.IntType{BitWidth: 8 << (c - deprecated.Int8), IsSigned: true}
	}
	return nil // such as intervals, which are read as bytes
}

// setType sets the type of a leaf's values, and how to read them. Values of unsupported types stay unreadable.
func (l *leaf) setType(e format.SchemaElement) {
	l.physical = e.Type.V
	size := map[format.Type]int{format.Boolean: 1, format.Int32: 4, format.Int64: 8, format.Int96: 12, format.Float: 4,
		format.Double: 8, format.FixedLenByteArray: int(e.TypeLength.V)}[l.physical]
	integer := l.physical == format.Int32 || l.physical == format.Int64
	bytes := l.physical == format.ByteArray || l.physical == format.FixedLenByteArray && size > 0
	valid, v := integer, values{}
	switch t := annotation(e).(type) {
	case nil:
		valid, v = l.physical != format.FixedLenByteArray || bytes, physicalType(l.physical, size)
	case *format.StringType, *format.EnumType, *format.JsonType:
		valid, v.Kind, v.Type = bytes, tabular.Text, "string"
	case *format.IntType:
		v = integers(fmt.Sprint(map[bool]string{true: "int", false: "uint"}[t.IsSigned], t.BitWidth), size, t.IsSigned)
	case *format.Float16Type:
		valid, v = bytes && size == 2, floats(2)
	case *format.DecimalType:
		unscaled := bigEndian
		if integer {
			unscaled = func(b []byte) *big.Int { return big.NewInt(integerOf(b)) }
		}
		scale := int(t.Scale)
		valid, v = (integer || bytes) && scale <= maxScale && scale >= -maxScale, decimals(size, scale, unscaled)
		if l.physical == format.ByteArray { // strings of any length, so vectors can't consist of them
			v.Kind, v.floats = tabular.Scalar, nil
		}
	case *format.DateType:
		v = dateValues(size)
	case *format.TimeType:
		v = times(size, t.Unit.Value.Duration())
	case *format.TimestampType:
		v = timestamps(size, t.Unit.Value.Duration(), t.IsAdjustedToUTC)
	case *format.UUIDType:
		valid, v = bytes && size == 16, scalars(uuid, size, formatUUID)
	default:
		v.Type = strings.ToLower(fmt.Sprint(t))
	}
	if !valid {
		v = values{Column: tabular.Column{Type: v.Type}}
	}
	l.values, l.size = v, size
}

// physicalType returns the type of values without a logical type.
func physicalType(t format.Type, size int) values {
	switch t {
	case format.Boolean:
		return scalars("bool", size, func(b []byte) string { return strconv.FormatBool(b[0] > 0) })
	case format.Int32, format.Int64:
		return integers(strings.ToLower(t.String()), size, true)
	case format.Int96: // times of Impala and old Spark: nanoseconds of the day, and the day of the Julian calendar
		const julian1970 = 2440588
		return scalars("timestamp", size, func(b []byte) string {
			seconds := (int64(binary.LittleEndian.Uint32(b[8:])) - julian1970) * (24 * 60 * 60)
			nanoseconds := int64(binary.LittleEndian.Uint64(b))
			return time.Unix(seconds, nanoseconds).UTC().Format(timestampFormat)
		})
	case format.Float, format.Double:
		return floats(size)
	}
	return values{Column: tabular.Column{Type: "binary", Kind: tabular.Bytes}}
}
