package vectors

import (
	"errors"
	"math"
	"strconv"
)

var (
	errNotNumber = errors.New("not a finite number")
	errTooLarge  = errors.New("too large for a float32")
)

// pow10 holds the powers of ten that a float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseNumber parses the field that b starts with, up to a space, a tab or the
// end of b, and returns its length too. The field has to be a decimal number:
// an optional sign, digits with at most one point before, among or after them,
// and an optional exponent. The value is the float32 nearest to it, ties to
// even, the same bits as strconv.ParseFloat(field, 32).
func parseNumber(b []byte) (value float32, length int, err error) {
	i := 0
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
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
		for i < len(b) && isDigit(b[i]) {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		digits += i - first
		exponent = first - i
	}
	if digits == 0 {
		return 0, 0, errNotNumber
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		e, n := parseExponent(b[i+1:])
		if n == 0 {
			return 0, 0, errNotNumber
		}
		exponent += e
		i += 1 + n
	}
	if i < len(b) && !isSeparator(b[i]) {
		return 0, 0, errNotNumber
	}

	// Mantissa and power of ten are exact in float64, so that the quotient (or
	// product) x is correctly rounded to 53 bits. It lies between 1e-22 and
	// 2⁵³·1e22 < 9.1e37, or is zero: never outside of float32's normal numbers.
	// Rounding x again, to 24 bits, gives another result than rounding the
	// decimal itself only if the first rounding moved it onto, or across, the
	// midpoint of two float32. Such midpoints are float64 numbers, so that
	// rounding can't cross one, and x is on one only if its lower 29 bits are
	// 1 and 28 zeros.
	if digits <= 19 && mantissa <= 1<<53 && -22 <= exponent && exponent <= 22 {
		x := float64(mantissa)
		if exponent < 0 {
			x /= pow10[-exponent]
		} else {
			x *= pow10[exponent]
		}
		if math.Float64bits(x)&(1<<29-1) != 1<<28 {
			if negative {
				x = -x
			}
			return float32(x), i, nil
		}
	}
	x, err := strconv.ParseFloat(string(b[:i]), 32)
	if err != nil {
		return 0, 0, errTooLarge // the syntax is right
	}
	return float32(x), i, nil
}

// parseExponent parses an optional sign and digits. It returns how many bytes
// these are, 0 if there is no digit. Beyond ±10000 the value is only large.
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

// isSeparator reports whether c stands between two fields of a row. Only ASCII
// space and tab do: words contain U+00A0 and others.
func isSeparator(c byte) bool { return c == ' ' || c == '\t' }
