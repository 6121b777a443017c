package vectors

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
)

// decimal matches the numbers that parseNumber accepts if they are in the range of float32.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// checkNumber compares parseNumber with the regular expression and strconv.
func checkNumber(t *testing.T, s string) {
	t.Helper()
	want, wantErr := strconv.ParseFloat(s, 32)
	valid := decimal.MatchString(s) && wantErr == nil
	// Text around the field makes no difference.
	for _, text := range []string{s, s + " ", s + " 12345678.9", s + "\t-.5e5 12345678"} {
		checkNumberIn(t, text, len(s), float32(want), valid)
	}
}

// checkNumberIn checks that parseNumber returns want and length for the first field of
// text, or an error unless the field is valid.
func checkNumberIn(t *testing.T, text string, length int, want float32, valid bool) {
	t.Helper()
	const before = "0 "
	got, end, err := parseNumber([]byte(before+text), len(before))
	if !valid {
		if err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
		return
	}
	if err != nil || end != len(before)+length || math.Float32bits(got) != math.Float32bits(want) {
		t.Errorf("%q is %v with length %d and error %v, want %v with length %d", text, got, end-len(before), err, want, length)
	}
}

// numbers are the seeds of FuzzNumber, which the tests try, too.
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

// Any byte except a digit ends a number, at each position among eight bytes.
func TestParseNumberBytes(t *testing.T) {
	for c := range 256 {
		for n := range 10 {
			if field := "0.123456789"[:2+n] + string([]byte{byte(c)}) + "5"; !isSeparator(byte(c)) {
				checkNumber(t, field)
			}
		}
	}
}

// Millions of numbers, in the notations of published files and others, have the bits of
// strconv's results.
func TestParseNumberMatchesStrconv(t *testing.T) {
	each := 100_000 // times 4 kinds of numbers and 7 forms
	if testing.Short() {
		each /= 20
	}
	forms := map[string]func(rng *rand.Rand) float64{
		"normal":  func(rng *rand.Rand) float64 { return rng.NormFloat64() / 4 },
		"float32": func(rng *rand.Rand) float64 { return float64(float32(rng.NormFloat64())) / 8 },
		// Decimals of a midpoint, or of a number beside one, are close to where
		// rounding changes.
		"midpoint": func(rng *rand.Rand) float64 {
			x := float32(rng.NormFloat64())
			midpoint := (float64(x) + float64(math.Nextafter32(x, 9))) / 2
			return math.Float64frombits(math.Float64bits(midpoint) + uint64(rng.IntN(21)) - 10)
		},
		"wide": func(rng *rand.Rand) float64 { return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(90)-48)) },
	}
	for name, draw := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, 8))
			check := func(s string) {
				if t.Failed() {
					return // one is enough
				}
				want, err := strconv.ParseFloat(s, 32)
				checkNumberIn(t, s+" 0.1234567", len(s), float32(want), err == nil)
			}
			for range each {
				x := draw(rng)
				if y := float32(x); y-y == 0 {
					check(strconv.FormatFloat(x, 'g', -1, 32)) // exact float32
				}
				check(strconv.FormatFloat(x, 'f', 6, 64))               // word2vec
				check(strconv.FormatFloat(x, 'g', 5, 64))               // GloVe
				check(strconv.FormatFloat(x, 'f', 4, 64))               // fastText
				check(strconv.FormatFloat(x, 'g', -1, 64))              // exact float64
				check(strconv.FormatFloat(x, 'e', rng.IntN(22), 64))    // printf, NumPy
				check(strconv.FormatFloat(x, 'f', 15+rng.IntN(40), 64)) // up to the whole of a midpoint
			}
		})
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
