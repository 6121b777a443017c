package csr

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

var small = &vectors.CSR{
	Rows: 3, Cols: 9,
	Ptr:   []int64{0, 2, 2, 5},
	Index: []int32{1, 3, 0, 2, 8},
	Value: []float32{-0.1, 1e-5, 1. / 3, 1e6, 1 << 24},
}

// readAll reads the matrix in a file.
func readAll(data []byte) (*vectors.CSR, error) { return readRows(data, math.MaxInt) }

// readRows reads the matrix in a file, at most n rows at a time.
func readRows(data []byte, n int) (*vectors.CSR, error) {
	r, err := NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	s := &vectors.CSR{Cols: r.Cols, Ptr: []int64{0}, Index: []int32{}, Value: []float32{}}
	for err == nil && s.Rows < r.Rows {
		var part *vectors.CSR
		if part, err = r.Next(min(n, r.Rows-s.Rows)); err == nil {
			s.Append(part)
		}
	}
	if err == nil {
		err = r.Finish()
	}
	return s, err
}

// Validate and a Reader must find the same mistakes.
func TestInvalid(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	const order = "row offsets are out of order (got "
	other := map[string]string{ // a Reader's message
		"offsets missing":            `array "indptr": array of shape [2], want [3]`,
		"more indices":               `array "indices": array of shape [2], want [1]`,
		"offsets do not start at 0":  order + "1 first, want 0)",
		"offsets end early":          order + "a last row that ends at 0 of 1 nonzeros)",
		"offsets end late":           order + "a row from 0 to 2 of 1 nonzeros)",
		"offsets decrease":           order + "a row from 1 to 0 of 1 nonzeros)",
		"offset negative":            order + "a row from 0 to -1 of 1 nonzeros)",
		"offset out of range":        order + "a row from 0 to 9 of 1 nonzeros)",
		"more nonzeros than columns": order + "a row from 0 to 3 of 3 nonzeros)",
	}
	for _, tt := range []struct {
		name string
		s    vectors.CSR
		want string
	}{
		{"negative rows", vectors.CSR{Rows: -1, Cols: 1}, "-1"},
		{"negative columns", vectors.CSR{Rows: 0, Cols: -1, Ptr: []int64{0}}, "-1"},
		{"offsets missing", vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 0}}, "wrong number of row offsets (got 2)"},
		{"offsets do not start at 0", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{1, 1}, Index: []int32{0}, Value: []float32{1}}, "got 1 to 1, want 0 to 1"},
		{"offsets end early", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 0}, Index: []int32{0}, Value: []float32{1}}, "to 0"},
		{"offsets end late", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{0}, Value: []float32{1}}, "to 2"},
		{"offsets decrease", vectors.CSR{Rows: 3, Cols: 2, Ptr: []int64{0, 1, 0, 1}, Index: []int32{0}, Value: []float32{1}}, "row 1: row offsets are out of order (got end 0)"},
		{"offset negative", vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, -1, 1}, Index: []int32{0}, Value: []float32{1}}, "row 0: row offsets are out of order (got end -1)"},
		{"offset out of range", vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 9, 1}, Index: []int32{0}, Value: []float32{1}}, "row 0: row offsets are out of order (got end 9)"},
		{"more nonzeros than columns", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 3}, Index: []int32{0, 1, 2}, Value: []float32{1, 1, 1}}, "columns must increase and be less than 2"},
		{"more indices", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{0, 1}, Value: []float32{1}}, "column indices and values differ in number (got 2 and 1)"},
		{"column twice", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{1, 1}, Value: []float32{1, 1}}, "got 1 after 1"},
		{"columns decrease", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{1, 0}, Value: []float32{1, 1}}, "got 0 after 1"},
		{"column out of range", vectors.CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 0, 1}, Index: []int32{2}, Value: []float32{1}}, "row 1: columns must increase and be less than 2 (got 2"},
		{"column negative", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{-1}, Value: []float32{1}}, "got -1"},
		{"zero", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{0}}, "row 0, column 1: stored values must be finite and not zero (got 0)"},
		{"NaN", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{nan}}, "NaN"},
		{"infinite", vectors.CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{inf}}, "+Inf"},
	} {
		testonly.ErrorSays(t, "Validate of "+tt.name, tt.s.Validate(), tt.want)
		var b bytes.Buffer
		testonly.Must(t, Write(&b, &tt.s))
		if want, ok := other[tt.name]; ok {
			tt.want = want
		}
		for _, n := range []int{1, math.MaxInt} {
			_, err := readRows(b.Bytes(), n)
			testonly.ErrorSays(t, "a Reader of "+tt.name, err, strings.TrimPrefix(tt.want, "row 1: "))
		}
	}
	if err := small.Validate(); err != nil {
		t.Errorf("a valid matrix: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	testonly.Must(f, Write(&b, small))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readAll(data)
		if err != nil {
			return
		}
		for i := range s.Rows {
			s.Row(i) // must not panic
		}
	})
}
