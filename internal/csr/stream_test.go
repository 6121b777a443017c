package csr

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// randomRows returns a valid matrix.
func randomRows(rng *rand.Rand, rows, cols int) *vectors.CSR {
	s := &vectors.CSR{Rows: rows, Cols: cols, Ptr: []int64{0}}
	for range rows {
		for k := range cols {
			if rng.IntN(3) == 0 {
				s.Index, s.Value = append(s.Index, int32(k)), append(s.Value, rng.Float32()+1)
			}
		}
		s.Ptr = append(s.Ptr, int64(len(s.Index)))
	}
	return s
}

// rowsFrom returns the rows from lo to hi.
func rowsFrom(s *vectors.CSR, lo, hi int) *vectors.CSR {
	part := &vectors.CSR{Cols: s.Cols, Ptr: []int64{0}}
	for i := lo; i < hi; i++ {
		part.AppendRow(s.Row(i))
	}
	return part
}

// newWriter returns a Writer of codes.npz in dir.
func newWriter(t *testing.T, dir string, cols int) *Writer {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "codes.npz"))
	testonly.Must(t, err)
	t.Cleanup(func() { file.Close() })
	w, err := NewWriter(file, cols)
	testonly.Must(t, err)
	return w
}

// A Writer writes the same file as Write, and a Reader reads its rows.
func TestInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{0, 1, 7, 9000} { // several reads of row offsets
		all := randomRows(rng, rows, 11)
		w := newWriter(t, t.TempDir(), 11)
		for lo := 0; lo < rows; lo += 100 {
			testonly.Must(t, w.Add(rowsFrom(all, lo, min(lo+100, rows))))
		}
		testonly.Must(t, cmp.Or(w.Finish(t.Context()), w.Close()))
		var want bytes.Buffer
		testonly.Must(t, Write(&want, all))
		got, err := os.ReadFile(w.file.Name())
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%d rows make another file than Write's, or error %v", rows, err)
		}

		r, err := NewReader(bytes.NewReader(got), int64(len(got)))
		testonly.Must(t, err)
		if r.Rows != rows || r.Cols != 11 {
			t.Errorf("%d×%d", r.Rows, r.Cols)
		}
		for lo := 0; lo < rows; lo += 70 {
			hi := min(lo+70, rows)
			part, err := r.Next(hi - lo)
			testonly.Must(t, err)
			if want := rowsFrom(all, lo, hi); fmt.Sprint(part) != fmt.Sprint(want) {
				t.Errorf("rows from %d are %v, want %v", lo, part, want)
			}
		}
		testonly.Must(t, r.Finish())
	}
}

// A changed or missing byte is an error of Finish at the latest, never a panic. The archive's fields that are
// not used, such as times, are excepted.
func TestReaderDamaged(t *testing.T) {
	var b bytes.Buffer
	all := randomRows(rand.New(rand.NewPCG(1, 2)), 20, 5)
	testonly.Must(t, Write(&b, all))
	for n := range b.Len() {
		if _, err := readAll(b.Bytes()[:n]); err == nil {
			t.Fatalf("no error for %d of %d bytes", n, b.Len())
		}
		changed := bytes.Clone(b.Bytes())
		changed[n] ^= 0x41
		if rows, err := readAll(changed); err == nil && fmt.Sprint(rows) != fmt.Sprint(all) {
			t.Fatalf("byte %d changed makes other rows, without an error", n)
		}
	}
}

// A write that fails, to either file, is an error of Add or Finish. A cancelled Finish returns the context's error.
func TestWriterFails(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		fail func(w *Writer)
		want error
	}{
		{"columns", t.Context(), func(w *Writer) { w.file.Close() }, os.ErrClosed},
		{"values", t.Context(), func(w *Writer) { w.value.Close() }, os.ErrClosed},
		{"cancelled", cancelled, func(*Writer) {}, context.Canceled},
	} {
		dir := t.TempDir()
		w := newWriter(t, dir, 9)
		tt.fail(w)
		err := w.Add(small)
		if err == nil {
			err = w.Finish(tt.ctx)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		testonly.Must(t, w.Close())
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("%s: the folder has %v", tt.name, names)
		}
	}
}
