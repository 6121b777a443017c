package columnar

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"overcomplete/vectors/internal/tabular"
)

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

// formatDate formats a number of days since 1970, such as 2024-03-05.
func formatDate(days int64) string { return instant(days, 24*time.Hour).Format(time.DateOnly) }

// formatTime formats a time of day in units since midnight, such as 10:11:12.5.
func formatTime(t int64, unit time.Duration) string {
	return instant(t, unit).Format("15:04:05.999999999")
}

// formatTimestamp formats a time in units since 1970, such as 2024-03-05T10:11:12.5, with a Z if it is in UTC.
func formatTimestamp(t int64, unit time.Duration, utc bool) string {
	s := instant(t, unit).Format(timestampFormat)
	if utc {
		s += "Z"
	}
	return s
}

// instant returns the time t units after 1970. The units divide a second or are seconds or days; t in nanoseconds
// would end in 2262.
func instant(t int64, unit time.Duration) time.Time {
	if unit >= time.Second {
		return time.Unix(t*int64(unit/time.Second), 0).UTC()
	}
	perSecond := int64(time.Second / unit)
	seconds, rest := t/perSecond, t%perSecond // rest may be negative
	return time.Unix(seconds, rest*int64(unit)).UTC()
}

// formatUUID formats 16 bytes as a UUID.
func formatUUID(b []byte) string {
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// huggingFace is the key of the metadata of Hugging Face datasets.
const huggingFace = "huggingface"

// isText reports whether a value of a column of bytes is a text in UTF-8.
func isText(value string) bool { return utf8.ValidString(value) && !strings.Contains(value, "\x00") }

// classNames returns the names of the classes of each column, by the metadata that Hugging Face datasets writes.
func classNames(metadata string) map[string][]string {
	var m struct {
		Info struct{ Features map[string]json.RawMessage }
	}
	names := map[string][]string{}
	if json.Unmarshal([]byte(metadata), &m) != nil { // of another program
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

// Fields of Spark's vectors, in its order: 1 for a dense vector and 0 for a sparse one, the length and indices
// of a sparse one, and the values.
var sparkFields = []string{"type", "size", "indices", "values"}

// appendSpark appends a vector of Spark.
func appendSpark(to []float32, c tabular.Column, kind, size float32, indices, values []float32) ([]float32, error) {
	if kind == 1 {
		return append(to, values...), nil
	}
	valid := kind == 0 && size >= 0 && size <= tabular.MaxDim && len(indices) == len(values)
	for _, k := range indices {
		valid = valid && k >= 0 && k < size
	}
	if !valid {
		return to, tabular.ValueError(c, -1, "an invalid vector of Spark (want a dense one of type 1, or a sparse one of type 0)")
	}
	start := len(to)
	to = append(to, make([]float32, int(size))...)
	for i, k := range indices {
		to[start+int(k)] = values[i]
	}
	return to, nil
}
