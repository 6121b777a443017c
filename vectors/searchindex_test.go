package vectors

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// Rows that a search engine would refuse or overwrite are detected before anything is written.
func TestWriteOpenSearchRefuses(t *testing.T) {
	repeated := &Sparse{IDs: []string{"a", "b", "a"}, CSR: small.CSR}
	repeated.Value = []float32{1, 1, 1, 1, 1}
	long := &Sparse{IDs: []string{"a", strings.Repeat("é", 257), "b"}, CSR: repeated.CSR}
	for want, s := range map[string]*Sparse{
		`row 3: search engines can't index the row: row 1 has the same id, "a"`:         repeated,
		`row 2: search engines can't index the row: the id "` + strings.Repeat("é", 30): long,
	} {
		var b bytes.Buffer
		err := WriteOpenSearch(&b, s)
		if s == repeated {
			if lines := WriteJSONLines(&b, s); lines == nil || lines.Error() != err.Error() {
				t.Errorf("JSON lines: error %v, want %v", lines, err)
			}
		}
		if !errors.Is(err, ErrUnindexable) || !strings.HasPrefix(err.Error(), want) || b.Len() > 0 {
			t.Errorf("error %v and %d bytes, want %q and none", err, b.Len(), want)
		}
	}
	repeated.IDs = slices.Clone(small.IDs)
	testonly.Must(t, WriteOpenSearch(&bytes.Buffer{}, repeated))
}

// Columns are renamed if engines reserve their names or this package uses them. Negative values are features of their own,
// because engines accept positive values only.
func TestWriteOpenSearchNames(t *testing.T) {
	s := &Sparse{IDs: []string{"a"}, CSR: CSR{Rows: 1, Cols: 9, Ptr: []int64{0, 2}, Index: []int32{1, 7}, Value: []float32{0.5, -2}}}
	s.Texts = &Texts{Text: []string{"A."}, Columns: []Column{{"_id", []string{"1"}}, {"", []string{"2"}}, {"features", []string{"3"}}, {"label", []string{"four"}}}}
	var b strings.Builder
	testonly.Must(t, WriteOpenSearch(&b, s))
	want := `{"index":{"_id":"a"}}
{"id":"a","text":"A.","_id_":1,"_":2,"features_":3,"label":"four","features":{"1":0.5,"7-":2}}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// Ids are strings. A column consists of numbers if JSON and the integers of engines can represent all its values.
func TestWriteJSONLinesTypes(t *testing.T) {
	for values, want := range map[[2]string]string{
		{"1", "-20"}: `1 -20`, {"1.50", "2e-3"}: `1.50 2e-3`, {"", "3"}: `null 3`, {"-0", "1e+5"}: `-0.0 1e+5`, {"1.0E7", "1"}: `1.0E7 1.0`, {"12e4", "1E5"}: `"12e4" "1E5"`, {"", ""}: `"" ""`, {"1", "x"}: `"1" "x"`,
		{"1", "007"}: `"1" "007"`, {"1", "NaN"}: `"1" "NaN"`, {"1", "1e999"}: `"1" "1e999"`, {"1", "0x10"}: `"1" "0x10"`, {"1", "+1"}: `"1" "+1"`,
		{"9223372036854775807", "1"}: `9223372036854775807 1`, {"9223372036854775808", "1"}: `"9223372036854775808" "1"`, {"1", "true"}: `"1" "true"`,
	} {
		s := &Sparse{IDs: []string{"7", "8"}, CSR: CSR{Rows: 2, Cols: 3, Ptr: []int64{0, 1, 1}, Index: []int32{2}, Value: []float32{0.5}}}
		s.Texts = &Texts{Text: []string{"1", "2"}, Columns: []Column{{"dimensions", values[:]}}}
		var b strings.Builder
		testonly.Must(t, WriteJSONLines(&b, s))
		first, second, _ := strings.Cut(want, " ")
		want := `{"id":"7","text":"1","dimensions_":` + first + `,"dimensions":3,"indices":[2],"values":[0.5]}` + "\n" +
			`{"id":"8","text":"2","dimensions_":` + second + `,"dimensions":3,"indices":[],"values":[]}` + "\n"
		if b.String() != want {
			t.Errorf("%q:\n%swant\n%s", values, b.String(), want)
		}
	}
}
