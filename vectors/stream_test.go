package vectors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/npy"
)

// streamed puts together what Stream hands over.
func streamed(t *testing.T, path string, o ReadOptions) (*Dense, *Source, error) {
	t.Helper()
	all := new(Dense)
	var s Source
	for d, err := range Stream(t.Context(), path, o, &s) {
		if err != nil {
			return nil, nil, err
		}
		all.Words, all.Data, all.Dim = append(all.Words, d.Words...), append(all.Data, d.Data...), d.Dim
		if d.Len() == 0 || len(d.Data) != d.Len()*d.Dim {
			t.Errorf("%d words with %d numbers", d.Len(), len(d.Data))
		}
	}
	return all, &s, nil
}

// Stream reads what Read does, where there is nothing that they treat differently.
func TestStream(t *testing.T) {
	d := sample()
	many := &Dense{Dim: 60}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 { // several pieces of text
		many.Words = append(many.Words, fmt.Sprint("w", i))
		for range many.Dim {
			many.Data = append(many.Data, rng.Float32())
		}
	}
	list := tempFile(t, strings.Join(d.Words, "\n"))
	for _, c := range []struct {
		content string
		o       ReadOptions
	}{
		{textRows(d, "\n"), ReadOptions{}},
		{headerLine(d) + binaryRows(d, "\n"), ReadOptions{}},
		{npyFile(d, true), ReadOptions{WordList: list}},
		{npzFile(d, "vectors", true), ReadOptions{}},
		{textRows(many, "\n"), ReadOptions{}},
		{gzipped(headerLine(many) + textRows(many, "\n")), ReadOptions{MaxWords: 2900}},
		{headerLine(many) + binaryRows(many, ""), ReadOptions{MaxWords: 1}},
		{textRows(many, "\n") + "x 1\n", ReadOptions{SkipBad: true}},
	} {
		path := tempFile(t, c.content)
		want, wantSource, err := Read(t.Context(), path, c.o)
		if err != nil {
			t.Fatal(err)
		}
		got, source, err := streamed(t, path, c.o)
		if err != nil {
			t.Fatal(err)
		}
		checkDense(t, got, want)
		if fmt.Sprint(source) != fmt.Sprint(wantSource) {
			t.Errorf("source %+v, want %+v", source, wantSource)
		}
	}
}

// Rows that were handed over are forgotten, so that repeated words stay; zeros are
// no vector.
func TestStreamDiffers(t *testing.T) {
	content := "a 1 2\nb 0 0\na 3 4\n"
	got, source, err := streamed(t, tempFile(t, content), ReadOptions{SkipBad: true})
	if err != nil || !slices.Equal(got.Words, []string{"a", "a"}) || !slices.Equal(got.Data, []float32{1, 2, 3, 4}) {
		t.Errorf("read %+v, error %v", got, err)
	}
	if len(source.Warnings) != 1 || !strings.Contains(source.Warnings[0], "malformed rows dropped: 1") {
		t.Errorf("warnings %q", source.Warnings)
	}
	path := tempFile(t, content)
	_, _, err = streamed(t, path, ReadOptions{})
	if want := path + `:2: word "b": all numbers are zero`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestStreamErrors(t *testing.T) {
	path := tempFile(t, "3 2\na 1 2\nb 1 2\n")
	var input *InputError
	if _, _, err := streamed(t, path, ReadOptions{}); !errors.As(err, &input) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("error %v", err)
	}
	var s Source
	for range Stream(t.Context(), path, ReadOptions{}, &s) {
		break // before the error
	}
	if s.Rows != 0 {
		t.Errorf("source %+v", s)
	}
}

// randomRows returns a valid matrix.
func randomRows(rng *rand.Rand, rows, cols int) *CSR {
	s := &CSR{Rows: rows, Cols: cols, Ptr: []int64{0}}
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
func rowsFrom(s *CSR, lo, hi int) *CSR {
	part := &CSR{Cols: s.Cols, Ptr: []int64{0}}
	for i := lo; i < hi; i++ {
		part.AppendRow(s.Row(i))
	}
	return part
}

// Rows that are written as they come make the file that WriteCSR does, and rows
// that are read as they come are those that ReadCSR has.
func TestCSRInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{0, 1, 7, 500} {
		all := randomRows(rng, rows, 11)
		w, err := NewCSRWriter(t.TempDir(), 11)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for lo := 0; lo < rows; lo += 100 {
			if err := w.Add(rowsFrom(all, lo, min(lo+100, rows))); err != nil {
				t.Fatal(err)
			}
		}
		var got, want bytes.Buffer
		if err := w.Write(&got); err != nil {
			t.Fatal(err)
		}
		if err := WriteCSR(&want, all); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%d rows make another file than WriteCSR's", rows)
		}

		r, err := NewCSRReader(bytes.NewReader(got.Bytes()), int64(got.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Rows != rows || r.Cols != 11 {
			t.Errorf("%d×%d", r.Rows, r.Cols)
		}
		for lo := 0; lo < rows; lo += 70 {
			hi := min(lo+70, rows)
			part, err := r.Next(hi - lo)
			if err != nil {
				t.Fatal(err)
			}
			if want := rowsFrom(all, lo, hi); fmt.Sprint(part) != fmt.Sprint(want) {
				t.Errorf("rows from %d are %v, want %v", lo, part, want)
			}
		}
		if err := r.Finish(); err != nil {
			t.Error(err)
		}
	}
}

// Whatever byte of the file is changed or missing, it is an error, at the end at
// the latest, and never a panic. (Changes of the archive's own fields that mean
// nothing here, such as times, are none.)
func TestCSRReaderDamaged(t *testing.T) {
	var b bytes.Buffer
	all := randomRows(rand.New(rand.NewPCG(1, 2)), 20, 5)
	if err := WriteCSR(&b, all); err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) (rows *CSR, err error) {
		r, err := NewCSRReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, err
		}
		if rows, err = r.Next(r.Rows); err != nil {
			return nil, err
		}
		return rows, r.Finish()
	}
	for n := range b.Len() {
		if _, err := read(b.Bytes()[:n]); err == nil {
			t.Fatalf("no error for %d of %d bytes", n, b.Len())
		}
		changed := bytes.Clone(b.Bytes())
		changed[n] ^= 0x41
		if rows, err := read(changed); err == nil && fmt.Sprint(rows) != fmt.Sprint(all) {
			t.Fatalf("byte %d changed makes other rows, without an error", n)
		}
	}
}

// Offsets that no matrix has are errors that say which, at the end at the latest.
// Reading all at once, where package model checks what it read, agrees.
func TestCSRReaderOffsets(t *testing.T) {
	for _, tt := range []struct {
		ptr  []int64
		want string // "" if this is a matrix
	}{
		{[]int64{0, 2, 2, 4}, ""},
		{[]int64{1, 2, 2, 4}, "the first row begins at nonzero 1"},
		{[]int64{-1, 2, 2, 4}, "the first row begins at nonzero -1"},
		{[]int64{0, 2, 1, 4}, "a row from 2 to 1 of 4"},
		{[]int64{0, 2, 2, 5}, "a row from 2 to 5 of 4"},
		{[]int64{0, 4, 4, 4}, "a row from 0 to 4 of 4"}, // in three columns
		{[]int64{0, 2, 2, 3}, "the last row ends at nonzero 3 of 4"},
		{[]int64{0, 2, 4}, "not a matrix"},
		{[]int64{0, 2, 2, 4, 4}, "not a matrix"},
	} {
		var b bytes.Buffer
		index, value := []int32{0, 2, 1, 2}, []float32{1, 2, 3, 4}
		err := writeCSR(&b, 3, 3, csrPart{4, func(w io.Writer) error { return npy.WriteElements(w, index) }},
			csrPart{len(tt.ptr), func(w io.Writer) error {
				for _, p := range tt.ptr {
					if err := npy.WriteElements(w, []int32{int32(p)}); err != nil {
						return err
					}
				}
				return nil
			}},
			csrPart{4, func(w io.Writer) error { return npy.WriteElements(w, value) }})
		if err != nil {
			t.Fatal(err)
		}
		file := bytes.NewReader(b.Bytes())
		if _, err := ReadCSR(file, file.Size(), 3, 3); (err == nil) != (tt.want == "") {
			t.Errorf("%v: ReadCSR's error is %v", tt.ptr, err)
		}
		r, err := NewCSRReader(file, file.Size())
		for range 3 {
			if err == nil {
				_, err = r.Next(1)
			}
		}
		if err == nil {
			err = r.Finish()
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: error %v, want %q", tt.ptr, err, tt.want)
		}
	}
}

// Rows that were not read are missed at the end, and rows that there are not when
// they are asked for.
func TestCSRReaderCount(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSR(&b, randomRows(rand.New(rand.NewPCG(1, 2)), 20, 5)); err != nil {
		t.Fatal(err)
	}
	r, err := NewCSRReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(19); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); err == nil {
		t.Error("no error for 19 of 20 rows")
	}
	if _, err := r.Next(2); err == nil {
		t.Error("no error for row 21")
	}
}

func TestCSRWriterLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w, err := NewCSRWriter(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
