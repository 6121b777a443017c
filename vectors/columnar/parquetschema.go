package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// A column is a column of the table: one leaf, or the leaves of a vector of Spark.
type column struct {
	tabular.Column
	leaves []leaf
}

// Limits of decimals, which their types of 256 bits satisfy.
const (
	maxScale   = 76
	maxDecimal = 32 // bytes
)

// A leaf is a sequence of values with levels that mark the starts of lists and nulls.
type leaf struct {
	tabular.Column                                 // column of the table, with the type and kind of the values
	field          string                          // name below the column
	index          int                             // index of the leaf in a row group
	depth          int                             // number of parents below the root
	lists          int                             // number of lists that values are in
	defined        uint8                           // definition level of a value
	inList         uint8                           // minimum definition level of an element of a list
	physical       format.Type                     // of the values
	size           int                             // size of a plain value in bytes, or 0 for strings
	floats         func(to []float32, from []byte) // converts plain numbers; nil for other values
	print          func(b []byte) string           // formats a plain value as a string; nil for strings
}

// A schema holds the elements of a tree that are not parsed yet, in depth-first order. The columns of
// the table are the children of the root.
type schema struct {
	elements []format.SchemaElement
	leaves   int // number of leaves so far
}

var errSchema = errors.New("the schema is invalid")

// column parses the next column of the table. classes has the names of the classes of columns.
func (s *schema) column(classes map[string][]string) (column, error) {
	e := s.elements[0]
	c := column{Column: tabular.Column{Name: e.Name, Type: "struct"}}
	if err := s.walk(&c, leaf{}); err != nil {
		return c, err
	}
	switch annotation(e).(type) {
	case *format.MapType:
		c.Type = "map"
	case *format.ListType:
		c.Type = "list of struct"
	}
	if len(c.leaves) == 0 {
		return c, nil
	}
	switch first := &c.leaves[0]; {
	case c.isSpark():
		c.Kind, c.Type = tabular.List, "vector of Spark"
	case len(c.leaves) > 1:
	case first.lists > 0 && first.depth <= 2*first.lists: // column.list.element for each list at most
		c.Type = strings.Repeat("list of ", first.lists) + first.Type
		if first.Kind == tabular.Number && first.lists == 1 {
			c.Kind = tabular.List
		}
	case first.depth == 0:
		if names, number := classes[c.Name], first.print; names != nil && first.Kind == tabular.Number {
			first.Kind, first.Type = tabular.Scalar, "class"
			first.print = func(b []byte) string { return className(names, number(b)) }
		}
		c.Kind, c.Type = first.Kind, first.Type
	}
	return c, nil
}

// isSpark reports whether the column has vectors of Spark.
func (c column) isSpark() bool {
	if len(c.leaves) != len(sparkFields) {
		return false
	}
	for i, l := range c.leaves {
		if l.field != sparkFields[i] || l.Kind != tabular.Number || l.lists != i/2 {
			return false
		}
	}
	return true
}

// walk parses an element of a column and its children. It appends the leaves to c.
func (s *schema) walk(c *column, l leaf) error {
	if len(s.elements) == 0 || l.depth > maxNested {
		return errSchema
	}
	e := s.elements[0]
	s.elements = s.elements[1:]
	if l.depth == 1 {
		l.field = e.Name
	}
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
		l.Name = c.Name
		c.leaves = append(c.leaves, l)
		return nil
	}
	l.depth++
	for range e.NumChildren.V {
		if err := s.walk(c, l); err != nil {
			return err
		}
	}
	return nil
}

// annotation returns the logical type of an element, also if it is only declared in the old form, or nil.
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
	return nil // such as intervals, which are bytes
}

// setType sets the type of a leaf's values and how they are read. Other values stay unreadable.
func (l *leaf) setType(e format.SchemaElement) {
	l.physical = e.Type.V
	l.size = map[format.Type]int{format.Boolean: 1, format.Int32: 4, format.Int64: 8, format.Int96: 12, format.Float: 4,
		format.Double: 8, format.FixedLenByteArray: int(e.TypeLength.V)}[l.physical]
	integer := l.physical == format.Int32 || l.physical == format.Int64
	bytes := l.physical == format.ByteArray || l.physical == format.FixedLenByteArray && l.size > 0
	set := func(valid bool, k tabular.Kind, name string, print func(b []byte) string) {
		if l.Type = name; valid {
			l.Kind, l.print = k, print
		}
	}
	switch t := annotation(e).(type) {
	case nil:
		l.setPhysicalType(bytes)
	case *format.StringType, *format.EnumType, *format.JsonType:
		set(bytes, tabular.Text, "string", nil)
	case *format.IntType:
		name, bits := "int", t.BitWidth
		if !t.IsSigned {
			name = "uint"
		}
		if l.Type = fmt.Sprint(name, bits); integer {
			l.setIntegers(t.IsSigned)
		}
	case *format.Float16Type:
		if l.Type = "float16"; bytes && l.size == 2 {
			l.setFloats(32, func(b []byte) float64 { return float64(float32s.FromFloat16(binary.LittleEndian.Uint16(b))) })
		}
	case *format.DecimalType:
		scale := int(t.Scale)
		if l.Type = "decimal"; (integer || bytes) && scale <= maxScale && scale >= -maxScale {
			print := func(b []byte) string {
				if integer {
					return formatDecimal(big.NewInt(integerOf(b)), scale)
				}
				return formatDecimal(bigEndian(b), scale)
			}
			l.setFloats(64, func(b []byte) float64 {
				x, _ := strconv.ParseFloat(print(b), 32) // ±∞ if it is out of range
				return x
			})
			l.print = print
		}
	case *format.DateType:
		set(integer, tabular.Scalar, "date", func(b []byte) string { return formatDate(integerOf(b)) })
	case *format.TimeType:
		set(integer, tabular.Scalar, "time", func(b []byte) string { return formatTime(integerOf(b), t.Unit.Value.Duration()) })
	case *format.TimestampType:
		set(integer, tabular.Scalar, "timestamp", func(b []byte) string {
			return formatTimestamp(integerOf(b), t.Unit.Value.Duration(), t.IsAdjustedToUTC)
		})
	case *format.UUIDType:
		set(bytes && l.size == 16, tabular.Scalar, "uuid", formatUUID)
	default:
		l.Type = strings.ToLower(fmt.Sprint(t))
	}
}

// setPhysicalType sets the type of values without a logical type.
func (l *leaf) setPhysicalType(bytes bool) {
	switch l.physical {
	case format.Boolean:
		l.Kind, l.Type, l.print = tabular.Scalar, "bool", func(b []byte) string { return strconv.FormatBool(b[0] > 0) }
	case format.Int32, format.Int64:
		l.Type = strings.ToLower(l.physical.String())
		l.setIntegers(true)
	case format.Int96: // times of Impala and old Spark: nanoseconds of the day, and the day of the Julian calendar
		const julian1970 = 2440588
		l.Kind, l.Type = tabular.Scalar, "timestamp"
		l.print = func(b []byte) string {
			seconds := (int64(binary.LittleEndian.Uint32(b[8:])) - julian1970) * (24 * 60 * 60)
			nanoseconds := int64(binary.LittleEndian.Uint64(b))
			return time.Unix(seconds, nanoseconds).UTC().Format(timestampFormat)
		}
	case format.Float:
		l.Type = "float32"
		l.setFloats(32, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) })
		l.floats = float32s.Decode
	case format.Double:
		l.Type = "float64"
		l.setFloats(64, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	default:
		if l.Type = "binary"; bytes {
			l.Kind = tabular.Bytes
		}
	}
}

// setFloats sets the conversions of numbers. get returns the number of a plain value, and bits is the number of bits
// that its shortest decimal must distinguish.
func (l *leaf) setFloats(bits int, get func(b []byte) float64) {
	l.Kind = tabular.Number
	l.print = func(b []byte) string { return formatNumber(get(b), bits) }
	l.floats = func(to []float32, from []byte) {
		for i := range to {
			to[i] = float32(get(from[i*l.size:][:l.size]))
		}
	}
}

// setIntegers sets the conversions of whole numbers of 32 or 64 bits.
func (l *leaf) setIntegers(signed bool) {
	if signed {
		l.setFloats(64, func(b []byte) float64 { return float64(integerOf(b)) })
		l.print = func(b []byte) string { return strconv.FormatInt(integerOf(b), 10) }
		return
	}
	l.setFloats(64, func(b []byte) float64 { return float64(unsignedOf(b)) })
	l.print = func(b []byte) string { return strconv.FormatUint(unsignedOf(b), 10) }
}

// integerOf returns the plain value of an integer of 4 or 8 bytes.
func integerOf(b []byte) int64 {
	if len(b) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func unsignedOf(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// bigEndian returns the whole number of a decimal.
func bigEndian(b []byte) *big.Int {
	if len(b) > maxDecimal {
		panic(fmt.Errorf("a decimal is too long (got %d bytes, want at most %d)", len(b), maxDecimal))
	}
	x := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 { // negative, in two's complement
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}
