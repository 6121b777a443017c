package vectors

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// What an engine would refuse, or take in place of another row, is found before anything is written.
func TestWriteOpenSearchRefuses(t *testing.T) {
	repeated := &Sparse{Words: []string{"a", "b", "a"}, CSR: small.CSR}
	repeated.Value = []float32{1, 1, 1, 1, 1}
	long := &Sparse{Words: []string{"a", strings.Repeat("é", 257), "b"}, CSR: repeated.CSR}
	for want, s := range map[string]*Sparse{
		`row 1: search engines can't take it: its value in dimension 1 is negative, -0.1`: small,
		`row 3: search engines can't take it: its id "a" is that of row 1, too`:           repeated,
		`row 2: search engines can't take it: its id "` + strings.Repeat("é", 30):         long,
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

// Columns have no names that engines keep for themselves, or that are ours.
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
