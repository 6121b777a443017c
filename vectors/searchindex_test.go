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
