package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/internal/npy"
	"overcomplete/testonly"
)

// file returns a file with the given header and n bytes of data.
func file(header string, data int) string {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return string(length) + header + strings.Repeat("\x01", data)
}

func open(content string) (*File, error) {
	return Open(strings.NewReader(content), int64(len(content)))
}

// read returns the elements of a tensor.
func read[T npy.Number](f *File, name string, shape ...int) ([]T, error) {
	a, err := f.Array(name)
	if err != nil {
		return nil, err
	}
	return npy.Read[T](a, shape...)
}

func TestRoundTrip(t *testing.T) {
	offsets := []int64{math.MinInt64, 1 << 40}
	indices := []int32{math.MinInt32, 7, -1}
	values := make([]float32, 100_000) // longer than the chunks of conversion
	for i := range values {
		values[i] = float32(i) * -0.1
	}
	words := []string{"the", "New York", "", "\u2009\"\\,", strings.Repeat("long", 10_000)}
	text := []byte(strings.Join(words, "\n") + "\n")
	metadata := map[string]string{"quoted \"é": "<\n>"}
	var b bytes.Buffer
	err := Write(&b, metadata, []Tensor{
		New("offsets", []int{2}, offsets),
		New("values", []int{50_000, 2}, values),
		New("empty", []int{3, 0}, []float32{}),
		New("indices", []int{3, 1}, indices),
		NewText("words", int64(len(text)), func(w io.Writer) error { _, err := w.Write(text); return err }),
	})
	testonly.Must(t, err)
	if n := binary.LittleEndian.Uint64(b.Bytes()); n%8 != 0 {
		t.Errorf("a header of %d bytes leaves the elements unaligned", n)
	}
	if !Detect(b.Bytes()) {
		t.Error("not detected")
	}
	f, err := open(b.String())
	testonly.Must(t, err)
	if got := f.Names(); !slices.Equal(got, []string{"empty", "indices", "offsets", "values", "words"}) {
		t.Errorf("names %q", got)
	}
	if !reflect.DeepEqual(f.Metadata, metadata) {
		t.Errorf("metadata %q", f.Metadata)
	}
	if got, err := read[int64](f, "offsets", 2); err != nil || !slices.Equal(got, offsets) {
		t.Errorf("offsets %v, %v", got, err)
	}
	if got, err := read[int32](f, "indices", 3, 1); err != nil || !slices.Equal(got, indices) {
		t.Errorf("indices %v, %v", got, err)
	}
	if got, err := read[float32](f, "values", 50_000, 2); err != nil || !slices.Equal(got, values) {
		t.Errorf("%d values, %v", len(got), err)
	}
	if got, err := read[float32](f, "empty", 3, 0); err != nil || len(got) != 0 {
		t.Errorf("empty is %v, %v", got, err)
	}
	if !bytes.Contains(b.Bytes(), text) {
		t.Error("no words")
	}
	_, err = read[float32](f, "nothing", 2)
	testonly.ErrorSays(t, "a missing tensor", err, `no tensor "nothing"`)
	for _, shape := range [][]int{nil, {100_000}, {2, 50_000}, {50_000, 2, 1}} {
		_, err := read[float32](f, "values", shape...)
		testonly.ErrorSays(t, fmt.Sprint("shape ", shape), err, `tensor "values" of type "F32": array of shape [50000 2], want `)
	}
	// Every truncated file is refused.
	for n := range b.Len() {
		if n > 1000 && n < b.Len()-1000 {
			continue
		}
		if _, err := open(b.String()[:n]); err == nil {
			t.Fatalf("no error for a file cut to %d bytes", n)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	const a = `"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`
	const huge = "\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, tt := range []struct{ name, content, want string }{
		{"empty", "", "truncated"},
		{"no header", huge[:8], "header of 18446744073709551615 bytes is over the limit"},
		{"a header over the limit", "\x01\x00\x80\x00\x00\x00\x00\x00{}", "header of 8388609 bytes is over the limit"},
		{"a header beyond the file", "\x40\x00\x00\x00\x00\x00\x00\x00{}", "header of 64 bytes in a file of 10"},
		{"an array", file("[]", 0), "header: it does not begin with {"},
		{"no JSON", file("{a}", 0), "header: "},
		{"cut JSON", file("{"+a, 4), "header: "},
		{"two objects", file("{}{}", 0), "after top-level value"},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`, 0), `"__metadata__"`},
		{"null", file(`{"a":null}`, 0), `tensor "a": want a dtype`},
		{"nothing", file(`{"a":{}}`, 0), `tensor "a": want a dtype`},
		{"too many dimensions", file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 32)+`1],"data_offsets":[0,1]}}`, 1), "has 33 dimensions, want at most 32"},
		{"many dimensions", file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("10000000000000000,", 31)+`0],"data_offsets":[0,1]}}`, 1), "shape [10000000000000000 10000000000000000 10000000000000000 10000000000000000 …]"},
		{"a long number", file(`{"a":{"dtype":"U8","shape":[1.`+strings.Repeat("5", 10_000)+`],"data_offsets":[0,1]}}`, 1), "json"},
		{"a long key", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1],"`+strings.Repeat("x", 10_000)+`":0}}`, 1), "xx"},
		{"no shape", file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), "want a dtype, a shape"},
		{"one offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1), "two data_offsets"},
		{"offsets that decrease", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1), "in order"},
		{"negative offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}`, 1), "in order"},
		{"offsets that overflow", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,9223372036854775808]}}`, 1), "data_offsets"},
		{"negative dimension", file(`{"a":{"dtype":"U8","shape":[-1,-4],"data_offsets":[0,4]}}`, 4), "no array can have shape [-1 -4]"},
		{"dimensions that overflow", file(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "no array can have shape"},
		{"bytes that overflow", file(`{"a":{"dtype":"F64","shape":[4611686018427387904,2],"data_offsets":[0,0]}}`, 0), "no array can"},
		{"bytes that overflow at last", file(`{"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}}`, 0), "does not fit"},
		{"a fraction", file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 1), "json"},
		{"too few bytes", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "F32 of shape [2] does not fit its data_offsets [0 4]"},
		{"beyond the file", file("{"+a+"}", 3), "truncated: the tensors need 4 bytes, the file has 3"},
		{"bytes without a tensor", file("{"+a+"}", 5), "1 bytes follow the last tensor"},
		{"gap", file("{"+a+`,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}`, 6), `tensor "b" begins at 5, where 4 is expected`},
		{"gap at the start", file(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}`, 6), "begins at 5, where 0"},
		{"overlap", file("{"+a+`,"b":{"dtype":"U8","shape":[3],"data_offsets":[3,6]}}`, 6), `tensor "b" begins at 3, where 4`},
		{"two names of the same bytes", file("{"+a+`,"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4), `tensor "b" begins at 0, where 4`},
		{"an unknown type that overlaps", file("{"+a+`,"b":{"dtype":"F4","shape":[4],"data_offsets":[2,4]}}`, 4), "begins at 2"},
		{"a long name", file(`{"`+strings.Repeat("n", 1000)+`":{}}`, 0), `tensor "` + strings.Repeat("n", 60) + `": want`},
	} {
		_, err := open(tt.content)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 250 {
			t.Errorf("%s: error %v, want one line with %q", tt.name, err, tt.want)
		}
	}
	// Tensors of unknown types don't prevent reading the others.
	f, err := open(file("{"+a+`,"b":{"dtype":"F4","shape":[4],"data_offsets":[4,6]}}   `, 6))
	testonly.Must(t, err)
	_, err = read[float32](f, "b", 4)
	testonly.ErrorSays(t, "an unknown type", err, `"F4"`)
}

func TestDetect(t *testing.T) {
	for content, want := range map[string]bool{
		file("{}", 0):                       true,
		file("{}", 0)[:8]:                   false,
		file("[]", 0):                       false,
		"the 0.1 {2}":                       false,
		"\x00\x00\x00\x00\x00\x00\x00\x01{": false,
		"":                                  false,
	} {
		if got := Detect([]byte(content)); got != want {
			t.Errorf("%q: %v", content, got)
		}
	}
}

// An opened file has readable tensors that are no larger than the file.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}}`, 7)))
	f.Add([]byte(file(`{"__metadata__":{"k":"v"},"d":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}}`, 8)))
	f.Add([]byte(file(`{"i":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"j":{"dtype":"I32","shape":[0],"data_offsets":[8,8]}} `, 8)))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Open(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q is more than a line", err)
			}
			return
		}
		total := 0
		for name, e := range file.tensors {
			values, err := read[float32](file, name, e.Shape...)
			if n, _ := e.Shape.Elements(); err == nil && n != len(values) {
				t.Fatalf("%q: %d elements of shape %v", name, len(values), e.Shape)
			}
			total += len(values)
		}
		if total > len(content) {
			t.Fatalf("%d elements in a file of %d bytes", total, len(content))
		}
	})
}
