package vectors

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestCSRRoundTrip(t *testing.T) {
	for name, s := range map[string]*CSR{
		"small":  &small.CSR,
		"random": &randomSparse(300, 70, 0.1).CSR,
		"zero":   {Rows: 2, Cols: 3, Ptr: []int64{0, 0, 0}, Index: []int32{}, Value: []float32{}},
		"empty":  {Rows: 0, Cols: 3, Ptr: []int64{0}, Index: []int32{}, Value: []float32{}},
	} {
		var b bytes.Buffer
		if err := WriteCSR(&b, s); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCSR(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !reflect.DeepEqual(got, s) {
			t.Errorf("%s: got %+v, want %+v", name, got, s)
		}
	}
}

// Validate and ReadCSR must find the same mistakes.
func TestInvalid(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		name string
		s    CSR
		want string
	}{
		{"negative rows", CSR{Rows: -1, Cols: 1}, "-1"},
		{"negative columns", CSR{Rows: 0, Cols: -1, Ptr: []int64{0}}, "-1"},
		{"offsets missing", CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 0}}, "2 row offsets"},
		{"offsets do not start at 0", CSR{Rows: 1, Cols: 2, Ptr: []int64{1, 1}, Index: []int32{0}, Value: []float32{1}}, "run from 1"},
		{"offsets end early", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 0}, Index: []int32{0}, Value: []float32{1}}, "to 0"},
		{"offsets end late", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{0}, Value: []float32{1}}, "to 2"},
		{"offsets decrease", CSR{Rows: 3, Cols: 2, Ptr: []int64{0, 1, 0, 1}, Index: []int32{0}, Value: []float32{1}}, "row 1 ends at 0"},
		{"offset negative", CSR{Rows: 2, Cols: 2, Ptr: []int64{0, -1, 1}, Index: []int32{0}, Value: []float32{1}}, "row 0 ends at -1"},
		{"offset out of range", CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 9, 1}, Index: []int32{0}, Value: []float32{1}}, "row 0 ends at 9"},
		{"more indices", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{0, 1}, Value: []float32{1}}, "2 column indices for 1 values"},
		{"column twice", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{1, 1}, Value: []float32{1, 1}}, "column 1 after 1"},
		{"columns decrease", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 2}, Index: []int32{1, 0}, Value: []float32{1, 1}}, "column 0 after 1"},
		{"column out of range", CSR{Rows: 2, Cols: 2, Ptr: []int64{0, 0, 1}, Index: []int32{2}, Value: []float32{1}}, "row 1: column 2"},
		{"column negative", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{-1}, Value: []float32{1}}, "column -1"},
		{"zero", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{0}}, "row 0, column 1: stored value is 0"},
		{"NaN", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{nan}}, "NaN"},
		{"infinite", CSR{Rows: 1, Cols: 2, Ptr: []int64{0, 1}, Index: []int32{1}, Value: []float32{inf}}, "+Inf"},
	} {
		if err := tt.s.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Validate gives %v, want %q", tt.name, err, tt.want)
		}
		var b bytes.Buffer
		if err := WriteCSR(&b, &tt.s); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCSR(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: ReadCSR gives %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := small.Validate(); err != nil {
		t.Errorf("a valid matrix: %v", err)
	}
}

func TestReadCSRRefusesOtherFiles(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSR(&b, &small.CSR); err != nil {
		t.Fatal(err)
	}
	for old, new := range map[string]string{"|S3": "|S2", "format.npy": "farmot.npy", "indices.npy": "indexes.npy"} {
		data := bytes.ReplaceAll(b.Bytes(), []byte(old), []byte(new))
		if _, err := ReadCSR(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s as %s: no error", old, new)
		}
	}
}

func FuzzReadCSR(f *testing.F) {
	var b bytes.Buffer
	if err := WriteCSR(&b, &small.CSR); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadCSR(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for i := range s.Rows {
			s.Row(i) // must not panic
		}
	})
}
