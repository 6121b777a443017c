package columnar

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"overcomplete/internal/float32s"
	"overcomplete/vectors/internal/tabular"
)

// values describes the type and kind of a column's values, or of the elements of Parquet's lists. A plain value is a
// little-endian number of size bytes, or a string of bytes.
type values struct {
	tabular.Column
	size   int                             // of a plain value in bytes, or 0 for strings
	floats func(to []float32, from []byte) // converts plain numbers; nil for other values
	print  func(b []byte) string           // formats a plain value as a string; nil for strings

	element *values // type of the elements of Arrow's lists; nil for other values
}

// scalars returns the type of values that are formatted as strings, and never read as numbers.
func scalars(name string, size int, print func(b []byte) string) values {
	return values{Column: tabular.Column{Type: name, Kind: tabular.Scalar}, size: size, print: print}
}

// numbers returns a type of numbers. The function get decodes a number. As a string, a number is the shortest decimal
// that distinguishes floating-point numbers of the given bits.
func numbers(name string, size, bits int, get func(b []byte) float64) values {
	v := scalars(name, size, func(b []byte) string { return formatNumber(get(b), bits) })
	v.Kind = tabular.Number
	v.floats = func(to []float32, from []byte) {
		for i := range to {
			to[i] = float32(get(from[i*size:][:size]))
		}
	}
	return v
}

func integers(name string, size int, signed bool) values {
	v := numbers(name, size, 64, func(b []byte) float64 { return float64(integerOf(b)) })
	v.print = func(b []byte) string { return strconv.FormatInt(integerOf(b), 10) }
	if !signed {
		v = numbers(name, size, 64, func(b []byte) float64 { return float64(unsignedOf(b)) })
		v.print = func(b []byte) string { return strconv.FormatUint(unsignedOf(b), 10) }
	}
	return v
}

// floats returns the type of IEEE 754 numbers with 2, 4 or 8 bytes.
func floats(size int) values {
	name := fmt.Sprint("float", 8*size)
	switch size {
	case 2:
		return numbers(name, size, 32, func(b []byte) float64 { return float64(float32s.FromFloat16(binary.LittleEndian.Uint16(b))) })
	case 8:
		return numbers(name, size, 64, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	}
	v := numbers(name, size, 32, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) })
	v.floats = float32s.Decode
	return v
}

// Limits of decimals. The 256-bit decimals of Arrow and Parquet satisfy them.
const (
	maxScale   = 76
	maxDecimal = 32 // bytes
)

// decimals returns the type of the numbers unscaled / 10^scale.
func decimals(size, scale int, unscaled func(b []byte) *big.Int) values {
	print := func(b []byte) string { return formatDecimal(unscaled(b), scale) }
	v := numbers("decimal", size, 64, func(b []byte) float64 {
		x, _ := strconv.ParseFloat(print(b), 32) // ±∞ if it is out of range
		return x
	})
	v.print = print
	return v
}

func dateValues(size int) values {
	return scalars("date", size, func(b []byte) string { return instant(integerOf(b), 24*time.Hour).Format(time.DateOnly) })
}

// times returns the type of times of day, such as 10:11:12.5, stored as a number of units since midnight.
func times(size int, unit time.Duration) values {
	return scalars("time", size, func(b []byte) string { return instant(integerOf(b), unit).Format("15:04:05.999999999") })
}

// timestamps returns the type of times in units since 1970, such as 2024-03-05T10:11:12.5, with a Z if they are in UTC.
func timestamps(size int, unit time.Duration, utc bool) values {
	layout := timestampFormat
	if utc {
		layout += "Z"
	}
	return scalars("timestamp", size, func(b []byte) string { return instant(integerOf(b), unit).Format(layout) })
}

// classify turns numbers into classes, if names isn't nil.
func (v *values) classify(names []string) {
	if number := v.print; names != nil && v.Kind == tabular.Number {
		*v = scalars("class", v.size, func(b []byte) string { return className(names, number(b)) })
	}
}

// integerOf returns a whole number of at most 8 bytes.
func integerOf(b []byte) int64 {
	shift := 64 - 8*len(b)
	return int64(unsignedOf(b)<<shift) >> shift
}

func unsignedOf(b []byte) (x uint64) {
	for k, c := range b {
		x |= uint64(c) << (8 * k)
	}
	return x
}

// bigEndian returns the unscaled whole number of a decimal.
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

func littleEndian(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return bigEndian(b)
}

// Values are formatted as in JSON, and dates and times as in ISO 8601.

// formatNumber returns the shortest decimal that parses to a number of 32 or 64 bits. It has an
// exponent only if the number is very large or small.
func formatNumber(x float64, bits int) string {
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e17) {
		return strconv.FormatFloat(x, 'g', -1, bits)
	}
	return strconv.FormatFloat(x, 'f', -1, bits)
}

// formatDecimal formats unscaled / 10^scale with all its decimal places.
func formatDecimal(unscaled *big.Int, scale int) string {
	digits := new(big.Int).Abs(unscaled).String()
	switch {
	case scale < 0 && digits != "0":
		digits += strings.Repeat("0", -scale)
	case scale > 0:
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

const timestampFormat = "2006-01-02T15:04:05.999999999"

// instant returns the time that is t units after the start of 1970. A unit is a day, a second or a fraction of a
// second. Counting nanoseconds in int64 would end in 2262.
func instant(t int64, unit time.Duration) time.Time {
	if unit >= time.Second {
		return time.Unix(t*int64(unit/time.Second), 0).UTC()
	}
	perSecond := int64(time.Second / unit)
	seconds, rest := t/perSecond, t%perSecond // rest may be negative
	return time.Unix(seconds, rest*int64(unit)).UTC()
}

func formatUUID(b []byte) string {
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// huggingFace is the key of the metadata of Hugging Face datasets.
const huggingFace = "huggingface"

// classNames returns the names of the classes of each column, from the metadata that Hugging Face datasets writes.
func classNames(metadata string) map[string][]string {
	var m struct {
		Info struct{ Features map[string]json.RawMessage }
	}
	names := map[string][]string{}
	if json.Unmarshal([]byte(metadata), &m) != nil { // metadata of another program
		return nil
	}
	for column, feature := range m.Info.Features {
		var f struct {
			Type  string `json:"_type"`
			Names []string
		}
		if json.Unmarshal(feature, &f) == nil && f.Type == "ClassLabel" {
			names[column] = f.Names
		}
	}
	return names
}

// className returns the name of a class, or its number if it has none, such as -1 for an unknown class.
func className(names []string, number string) string {
	if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(names) {
		return names[i]
	}
	return number
}
