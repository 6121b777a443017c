package tabular

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Type is the type of the values of a column.
type Type byte

// Integers have 64 bits. A column of type Float has numbers, and not only integers.
const (
	String Type = iota
	Integer
	Float
)

// TypeOf returns the narrowest type that represents all values. An empty value in a column of numbers is null. Numbers
// have JSON's syntax, without leading zeros, so codes such as 007 stay strings. Hashes such as 1e5 stay strings,
// because programs write an exponent with a sign or after a point: 1e+16, 1.0E7. Columns of empty values are strings.
func TypeOf(values []string) Type {
	t := String
	for _, v := range values {
		if v == "" {
			continue
		}
		valueType, err := Integer, error(nil)
		if strings.ContainsAny(v, ".eE") {
			valueType = Float
			_, err = strconv.ParseFloat(v, 64)
		} else {
			_, err = strconv.ParseInt(v, 10, 64)
		}
		hash := strings.ContainsAny(v, "eE") && !strings.ContainsAny(v, ".+-")
		if err != nil || !json.Valid([]byte(v)) || hash {
			return String
		}
		t = max(t, valueType)
	}
	return t
}
