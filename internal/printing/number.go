package printing

import (
	"encoding/json"
	"fmt"
	"math"
)

// A Number is a float64 that may be undefined. It is then NaN, printed as "–" in a table and as null in JSON.
type Number float64

// Text formats the number for a table.
func (x Number) Text(format string) string {
	if math.IsNaN(float64(x)) {
		return "–"
	}
	return fmt.Sprintf(format, float64(x))
}

// MarshalJSON implements [json.Marshaler].
func (x Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(x)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (x *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*x = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(x))
}
