package vectors

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Rows that a search engine would refuse or overwrite are detected before anything is written.
func TestWriteOpenSearchRefuses(t *testing.T) {
	repeated := &Sparse{Words: []string{"a", "b", "a"}, CSR: small.CSR}
	repeated.Value = []float32{1, 1, 1, 1, 1}
	long := &Sparse{Words: []string{"a", strings.Repeat("é", 257), "b"}, CSR: repeated.CSR}
	for want, s := range map[string]*Sparse{
		`row 1: search engines can't index the row: the value in dimension 1 is negative (got -0.1)`: small,
		`row 3: search engines can't index the row: row 1 has the same id, "a"`:                      repeated,
		`row 2: search engines can't index the row: the id "` + strings.Repeat("é", 30):              long,
	} {
		var b bytes.Buffer
		err := WriteOpenSearch(&b, s, func(int, bool) string { return "name" })
		if !errors.Is(err, ErrUnindexable) || !strings.HasPrefix(err.Error(), want) || b.Len() > 0 {
			t.Errorf("error %v and %d bytes, want %q and none", err, b.Len(), want)
		}
	}
	repeated.Words = slices.Clone(small.Words)
	if err := WriteOpenSearch(&bytes.Buffer{}, repeated, func(int, bool) string { return "name" }); err != nil {
		t.Error(err)
	}
}

// Columns are renamed if engines reserve their names or this package uses them.
func TestWriteOpenSearchNamesColumns(t *testing.T) {
	s := &Sparse{Words: []string{"a"}, CSR: CSR{Rows: 1, Cols: 1, Ptr: []int64{0, 1}, Index: []int32{0}, Value: []float32{1}}}
	s.Texts = &Texts{Text: []string{"A."}, Columns: []Column{{"_id", []string{"1"}}, {"", []string{"2"}}, {"features", []string{"3"}}, {"label", []string{"4"}}}}
	var b strings.Builder
	if err := WriteOpenSearch(&b, s, func(int, bool) string { return "name" }); err != nil {
		t.Fatal(err)
	}
	want := `{"index":{"_id":"a"}}
{"id":"a","text":"A.","_id_":"1","_":"2","features_":"3","label":"4","features":{"0 name":1}}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
