package vectors

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDenseValidate(t *testing.T) {
	for _, tt := range []struct {
		d    Dense
		want string // "" if valid
	}{
		{Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 0, -2, math.MaxFloat32}}, ""},
		{Dense{}, "vectors have inconsistent sizes (got 0 numbers for 0 rows of length 0)"},
		{Dense{Dim: 2}, "for 0 rows"},
		{Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2}}, "vectors have inconsistent sizes (got 2 numbers for 2 rows of length 2)"},
		{Dense{IDs: []string{"a"}, Dim: 2, Data: []float32{1, 2, 3}}, "got 3 numbers for 1 rows"},
		{Dense{IDs: []string{"a"}, Dim: -2, Data: []float32{1, 2}}, "of length -2"},
		{Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 3, float32(math.NaN())}}, `"b": value 2 of the vector is not a finite number (got NaN)`},
		{Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{float32(math.Inf(-1)), 2, 3, 4}}, `"a": value 1 of the vector is not a finite number (got -Inf)`},
	} {
		if err := tt.d.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.d, err, tt.want)
		}
	}
}

// Rows may be appended to a zero CSR, and may be empty.
func TestAppend(t *testing.T) {
	two := &CSR{Rows: 2, Cols: 3, Ptr: []int64{0, 1, 3}, Index: []int32{2, 0, 1}, Value: []float32{1, 2, 3}}
	all := &CSR{Cols: 3}
	for _, part := range []*CSR{two, {Cols: 3}, two} {
		all.Append(part)
	}
	want := &CSR{Rows: 4, Cols: 3, Ptr: []int64{0, 1, 3, 4, 6}, Index: []int32{2, 0, 1, 2, 0, 1}, Value: []float32{1, 2, 3, 1, 2, 3}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}
	all = &CSR{Cols: 3}
	for i := range want.Rows {
		all.AppendRow(want.Row(i))
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("row by row: got %+v, want %+v", all, want)
	}
}

// The large values need sums in float64, because float32 can't represent 2²⁵+1.
func TestMean(t *testing.T) {
	d := &Dense{IDs: []string{"a", "b", "c", "d"}, Dim: 2, Data: []float32{1 << 25, 1, 2, 3, -1 << 25, 5, 2, 7}}
	mean := d.Mean()
	if want := []float32{1, 4}; !slices.Equal(mean, want) {
		t.Errorf("mean %v, want %v", mean, want)
	}
}
