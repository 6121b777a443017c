package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

var writers = map[string]func(io.Writer, *vectors.Sparse) error{"Arrow": WriteArrow, "Parquet": WriteParquet}

// sample returns 300 rows of nearly 100 MiB in total. Some rows are empty.
func sample() *vectors.Sparse {
	rng := rand.New(rand.NewPCG(1, 2))
	codes := &vectors.Sparse{CSR: vectors.CSR{Rows: 300, Cols: 1 << 20, Ptr: []int64{0}}}
	for i := range codes.Rows {
		codes.IDs = append(codes.IDs, fmt.Sprintf("word %d", i))
		for k := range rng.IntN(40_000) * (i % 3) {
			codes.Index, codes.Value = append(codes.Index, int32(k)), append(codes.Value, 0.5)
		}
		codes.Ptr = append(codes.Ptr, int64(len(codes.Index)))
	}
	codes.IDs[7] = strings.Repeat("x", 1<<20)
	return codes
}

// Batches have all rows in order, and none exceeds the limit.
func TestBatches(t *testing.T) {
	codes := sample()
	table, err := check(codes)
	testonly.Must(t, err)
	next, count := 0, 0
	for first, end := range batches(codes, table) {
		if first != next || end <= first {
			t.Fatalf("rows %d to %d come after %d", first, end, next)
		}
		size := 0
		for i := first; i < end-1; i++ { // without the last row
			index, _ := codes.Row(i)
			size += 8*len(index) + len(codes.IDs[i])
		}
		if size > 32<<20 {
			t.Errorf("rows %d to %d take %d bytes", first, end, size)
		}
		next, count = end, count+1
	}
	if next != codes.Rows || count < 2 {
		t.Errorf("%d rows in %d batches, want %d in several", next, count, codes.Rows)
	}
	none := &vectors.Sparse{CSR: vectors.CSR{Ptr: []int64{0}}}
	for range batches(none, nil) {
		t.Error("there is a batch of no rows")
	}
}

// matrix is 2×3, with one nonzero.
var matrix = vectors.CSR{Rows: 2, Cols: 3, Ptr: []int64{0, 1, 1}, Index: []int32{2}, Value: []float32{1}}

func TestRefuses(t *testing.T) {
	for name, write := range writers {
		var b bytes.Buffer
		for want, ids := range map[string][]string{
			"ids and vectors differ in number (got 1 and 2)": {"a"},
			`word 2 is not UTF-8 (got "\xff")`:               {"a", "\xff"},
		} {
			if err := write(&b, &vectors.Sparse{IDs: ids, CSR: matrix}); err == nil || err.Error() != want || b.Len() > 0 {
				t.Errorf("%s: error %v after %d bytes, want %s", name, err, b.Len(), want)
			}
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

// The writers return an error of their io.Writer at any position.
func TestFullDisk(t *testing.T) {
	codes := &vectors.Sparse{IDs: []string{"a", "b"}, CSR: matrix}
	for name, write := range writers {
		var whole bytes.Buffer
		testonly.Must(t, write(&whole, codes))
		for room := range whole.Len() {
			if err := write(&fullWriter{room}, codes); !errors.Is(err, errFull) {
				t.Fatalf("%s: error %v with room for %d of %d bytes", name, err, room, whole.Len())
			}
		}
		if err := write(&fullWriter{whole.Len()}, codes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
