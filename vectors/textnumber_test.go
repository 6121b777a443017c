package vectors

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
)

// decimal is what parseNumber should accept, if it fits in a float32.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// checkNumber compares parseNumber with the regular expression and strconv.
func checkNumber(t *testing.T, s string) {
	t.Helper()
	got, n, err := parseNumber([]byte(s))
	want, wantErr := strconv.ParseFloat(s, 32)
	if !decimal.MatchString(s) || wantErr != nil {
		if err == nil {
			t.Errorf("%q is %v, want an error", s, got)
		}
		return
	}
	if err != nil || n != len(s) || math.Float32bits(got) != math.Float32bits(float32(want)) {
		t.Errorf("%q is %v with length %d and error %v, want %v", s, got, n, err, float32(want))
	}
}

var numbers = []string{
	"0", "-0", "+0", "00", "-0.0", "0e0", "0e99999999999999999999", "0e-99999999999999999999",
	"1", "+1", "-1", "1.", ".1", "-.1", "1.5e3", "1E3", "1e+3", "1e-3", "001.500",
	"0.070312", "-0.00066023", "6.1e-05", "0.1234567890123456789012345",
	"16777215", "16777216", "16777217", "16777219", "33554433.0", // 2²⁴ ± 1: ties
	"9007199254740992", "9007199254740993", "18446744073709551616", // 2⁵³, 2⁶⁴
	"1e22", "1e23", "1e-22", "1e-23", "9007199254740991e22", "9007199254740991e-22",
	"1.00000005960464477539062", "1.00000005960464477539063", // 1 + 2⁻²⁴: a tie, and above
	"3.4028234663852886e38", "3.4028235e38", "3.4028235677973366e38", "1e39", "-1e39", "1e99999999999999999999",
	"1.1754943508222875e-38", "1e-45", "7e-46", "7.1e-46", "1e-400",
	"", "-", "+", ".", "-.", "e1", ".e1", "1e", "1e+", "1e-", "1e1.5", "1.2.3", "--1", "+-1", "1-", "1e5e5",
	"0x10", "0x1p-2", "0b1", "0o7", "1_000", "1f", "1d", "1,5", "nan", "NaN", "inf", "-Inf", "infinity", "1\r", "\u0661",
}

func TestParseNumber(t *testing.T) {
	for _, s := range numbers {
		checkNumber(t, s)
	}
	// Decimals of all lengths near float32 numbers and the midpoints between
	// them, where rounding twice goes wrong.
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30000 {
		x := math.Float32frombits(rng.Uint32())
		y := float64(x)
		if rng.IntN(2) == 0 {
			y = (y + float64(math.Nextafter32(x, math.MaxFloat32))) / 2
		}
		if math.IsNaN(y) || math.IsInf(y, 0) {
			continue
		}
		checkNumber(t, strconv.FormatFloat(y, 'e', rng.IntN(25), 64))
		small := math.Mod(y, 100)
		checkNumber(t, strconv.FormatFloat(small, 'f', rng.IntN(25), 64))
	}
}

func TestParseNumberLength(t *testing.T) {
	for s, length := range map[string]int{"1 2": 1, "1.5e3\t": 5, "-0.25 x": 5, "1x ": 0, " 1": 0, "1e 5": 0} {
		if _, n, _ := parseNumber([]byte(s)); n != length {
			t.Errorf("the number in %q has length %d, want %d", s, n, length)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range numbers {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i := range len(s) {
			if isSeparator(s[i]) {
				return // more than a field
			}
		}
		checkNumber(t, s)
	})
}
