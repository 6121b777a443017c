package vectors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"strconv"
)

var (
	errNotNumber = errors.New("not a finite number")
	errTooLarge  = errors.New("too large for a float32")
)

// scale contains the powers of ten from 10⁻²², rounded to float64.
var scale = [...]float64{
	1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11,
	1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// pow10[n] is 10ⁿ for the 0 to 8 digits of [parseDigits]. The other elements are unused.
var pow10 = [16]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

// parseNumber parses the field from b[i] to the next space, tab or end of b, and returns the end of the field. It
// must be a number as in [parseDecimal].
func parseNumber(b []byte, i int) (value float32, end int, err error) {
	value, end, err = parseDecimal(b, i)
	if end < len(b) && !isSeparator(b[end]) {
		return 0, 0, errNotNumber
	}
	return value, end, err
}

// parseDecimal parses the longest decimal number that begins at b[i], and returns its end. The number has an optional
// sign, digits with at most one point before, among or after them, and an optional exponent. The value is the nearest
// float32, ties to even, with the bits of strconv.ParseFloat(b[i:end], 32).
func parseDecimal(b []byte, i int) (value float32, end int, err error) {
	start := i
	var sign uint32
	if i < len(b) {
		// Avoid a branch on the sign, because the CPU can't predict signs.
		if b[i] == '-' {
			sign = 1
		}
		if b[i] == '+' {
			i++
		}
		i += int(sign)
	}
	var mantissa uint64 // wraps around after 19 digits
	first := i
	for i < len(b) && isDigit(b[i]) {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - first
	exponent := 0
	if i < len(b) && b[i] == '.' {
		i++
		first = i
		for n := 8; n == 8 && i <= len(b)-8; i += n {
			var fraction uint64
			fraction, n = parseDigits(binary.LittleEndian.Uint64(b[i:]))
			mantissa = mantissa*pow10[n&15] + fraction
		}
		for i < len(b) && isDigit(b[i]) { // fewer than eight bytes are left
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		digits += i - first
		exponent = first - i
	}
	if digits == 0 {
		return 0, 0, errNotNumber
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		e, n := parseExponent(b[i+1:])
		if n == 0 {
			return 0, 0, errNotNumber
		}
		i += 1 + n
		exponent += e
	}
	if digits > 19 { // leading zeros don't count
		leading := b[start:i]
		if n := bytes.IndexAny(leading, "123456789"); n >= 0 {
			leading = leading[:n]
		}
		digits -= bytes.Count(leading, []byte("0"))
	}

	// The mantissa, the power of ten and their product x are each rounded to 53 bits.
	// After these three roundings, x is within 4 units in the last place of the
	// decimal. x is zero or between 1e-22 and 1e38, in the range of normal float32.
	// Rounding x to 24 bits differs from rounding the decimal only if the midpoint of
	// two float32 lies between x and the decimal, or is one of them. Midpoints
	// are the float64 numbers whose lower 29 bits are 1 and 28 zeros.
	if e := uint(exponent + 22); digits <= 19 && e < uint(len(scale)) {
		x := float64(mantissa) * scale[e]
		const midpoint, margin = 1 << 28, 4
		if low := math.Float64bits(x) & (1<<29 - 1); low < midpoint-margin || low > midpoint+margin {
			return math.Float32frombits(math.Float32bits(float32(x)) | sign<<31), i, nil
		}
	}
	x, err := strconv.ParseFloat(string(b[start:i]), 32)
	if err != nil {
		return 0, i, errTooLarge // the syntax is right
	}
	return float32(x), i, nil
}

// parseDigits parses the leading digits of eight bytes of text. The first byte is the
// lowest one. It returns the value of the digits and their number, 0 to 8.
func parseDigits(text uint64) (value uint64, n int) {
	const ones = 0x0101010101010101
	d := text ^ '0'*ones // digits become 0 to 9, any other byte is larger
	// A byte over 9 has its top bit set, or gets it by adding 118. A carry changes only
	// later bytes.
	other := (d + 118*ones | d) & (128 * ones)
	n = bits.TrailingZeros64(other) / 8
	d <<= 64 - 8*n // zeros before the digits
	// Combine pairs of digits, then pairs of pairs, then both halves.
	d = (d*10 + d>>8) & 0x00ff00ff00ff00ff
	d = (d*100 + d>>16) & 0x0000ffff0000ffff
	return (d*10000 + d>>32) & 0xffffffff, n
}

// parseExponent parses an optional sign and digits. It returns their length in bytes, or
// 0 if there is no digit. Beyond ±10000 the value is inexact.
func parseExponent(b []byte) (value, length int) {
	i := 0
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		i++
	}
	first := i
	for i < len(b) && isDigit(b[i]) {
		if value < 10000 {
			value = value*10 + int(b[i]-'0')
		}
		i++
	}
	if i == first {
		return 0, 0
	}
	if b[0] == '-' {
		value = -value
	}
	return value, i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWhole reports whether b is one or more digits.
func isWhole(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}

// separators are the bytes that separate fields of a row. Words contain other white space, such as U+00A0.
const separators = " \t"

func isSeparator(c byte) bool { return c == ' ' || c == '\t' }

// appendExact appends the shortest decimal that parses to x.
func appendExact(b []byte, x float32) []byte { return strconv.AppendFloat(b, float64(x), 'g', -1, 32) }
