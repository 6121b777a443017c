package columnar

import (
	"bytes"
	"errors"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// matrix is 2×3, with one nonzero.
var matrix = vectors.CSR{Rows: 2, Cols: 3, Ptr: []int64{0, 1, 1}, Index: []int32{2}, Value: []float32{1}}

func TestWriteRefuses(t *testing.T) {
	var b bytes.Buffer
	for want, ids := range map[string][]string{
		"ids and vectors differ in number (got 1 and 2)": {"a"},
		`word 2 is not UTF-8 (got "\xff")`:               {"a", "\xff"},
	} {
		if err := WriteParquet(&b, &vectors.Sparse{IDs: ids, CSR: matrix}); err == nil || err.Error() != want || b.Len() > 0 {
			t.Errorf("error %v after %d bytes, want %s", err, b.Len(), want)
		}
	}
}

var errFull = errors.New("full")

// A fullWriter returns an error after some bytes.
type fullWriter struct{ room int }

func (w *fullWriter) Write(p []byte) (int, error) {
	if len(p) > w.room {
		return 0, errFull
	}
	w.room -= len(p)
	return len(p), nil
}

// The writer returns an error of its io.Writer at any position.
func TestFullDisk(t *testing.T) {
	codes := &vectors.Sparse{IDs: []string{"a", "b"}, CSR: matrix}
	var whole bytes.Buffer
	testonly.Must(t, WriteParquet(&whole, codes))
	for room := range whole.Len() {
		if err := WriteParquet(&fullWriter{room}, codes); !errors.Is(err, errFull) {
			t.Fatalf("error %v with room for %d of %d bytes", err, room, whole.Len())
		}
	}
	testonly.Must(t, WriteParquet(&fullWriter{whole.Len()}, codes))
}
