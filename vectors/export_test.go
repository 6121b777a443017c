package vectors

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"testing"

	"overcomplete/testonly"
)

// small is
//
//	0     -0.1  0      1e-05  0  0  0  0  0
//	0      0    0      0      0  0  0  0  0
//	1/3    0    1e+06  0      0  0  0  0  16777216
var small = &Sparse{
	IDs: []string{"the", "café", "x:y%20"},
	CSR: CSR{
		Rows: 3, Cols: 9,
		Ptr:   []int64{0, 2, 2, 5},
		Index: []int32{1, 3, 0, 2, 8},
		Value: []float32{-0.1, 1e-5, 1. / 3, 1e6, 1 << 24},
	},
}

var writers = map[string]func(io.Writer, *Sparse) error{"GloVe": WriteGloVe, "word2vec": WriteWord2Vec, "word2vec binary": WriteWord2VecBinary}

// Writing and reading preserves values, also if rows exceed a buffer.
func TestTextIsExact(t *testing.T) {
	want := randomRows(200, 300)
	want.Data[0], want.Data[1] = math.SmallestNonzeroFloat32, -math.MaxFloat32
	codes := &Sparse{IDs: want.IDs, CSR: CSR{Cols: want.Dim}}
	for i := range want.IDs {
		var index []int32
		var value []float32
		for k, x := range want.Row(i) {
			if k > 1 && k%3 > 0 {
				want.Row(i)[k] = 0
			} else {
				index, value = append(index, int32(k)), append(value, x)
			}
		}
		codes.AppendRow(index, value)
	}
	for _, write := range writers {
		var b bytes.Buffer
		testonly.Must(t, write(&b, codes))
		checkRead(t, tempFile(t, b.String()), ReadOptions{}, want)
	}
}

func TestWordsAreNeverAmbiguous(t *testing.T) {
	for _, id := range []string{"at name", "\t", "a\nb", "a\r", "", " ", "\u00a0", "100%", "%20"} {
		s := &Sparse{IDs: slices.Clone(small.IDs), CSR: small.CSR}
		s.IDs[1] = id
		escaped := &Sparse{IDs: Escape(s.IDs), CSR: s.CSR}
		for name, write := range writers {
			var want error = &IDError{1, id}
			if id == "100%" || id == "%20" || id == "\u00a0" { // only ASCII white space separates fields
				want = nil
			}
			var b bytes.Buffer
			err := write(&b, s)
			if fmt.Sprint(err) != fmt.Sprint(want) {
				t.Errorf("%s, %q: error %v, want %v", name, id, err, want)
			}
			if err != nil && b.Len() > 0 {
				t.Errorf("%s, %q: %d bytes written before the error", name, id, b.Len())
			}
			if err := write(io.Discard, escaped); err != nil && id != "" {
				t.Errorf("%s, %q escaped: %v", name, id, err)
			}
		}
	}
	short := &Sparse{IDs: small.IDs[1:], CSR: small.CSR}
	for name, write := range writers {
		if err := write(io.Discard, short); err == nil {
			t.Errorf("%s: no error for 2 words of 3 vectors", name)
		}
	}
}

func TestEscape(t *testing.T) {
	ids := []string{"plain", "New York", "100%", "%20", "a\u00a0b\u2009c", "\xff é", "a\x1cb\x1dc\x1ed\x1fe"}
	want := []string{"plain", "New%20York", "100%25", "%2520", "a%C2%A0b%E2%80%89c", "\xff%20é", "a%1Cb%1Dc%1Ed%1Fe"}
	got := Escape(ids)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, id := range got {
		if back, err := url.PathUnescape(id); err != nil || back != ids[i] {
			t.Errorf("%q is %q unescaped, %v; want %q", id, back, err, ids[i])
		}
	}
}

func TestNoColumns(t *testing.T) {
	empty := &Sparse{IDs: []string{"a"}, CSR: CSR{Rows: 1, Ptr: []int64{0, 0}}}
	for name, write := range writers {
		if err := write(io.Discard, empty); err != errNoColumns {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
