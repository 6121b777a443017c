package npy

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// file returns a version 1.0 file with the given header and elements, independently of WriteHeader.
func file(header string, elements ...any) []byte {
	return fileVersion(1, header, elements...)
}

func fileVersion(major byte, header string, elements ...any) []byte {
	header += "\n"
	b := append([]byte("\x93NUMPY"), major, 0)
	if major == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	b = append(b, header...)
	for _, e := range elements {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, e); err != nil {
			panic(err)
		}
	}
	return b
}

func dict(typ, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", typ, shape)
}

func TestWriteIsWhatNumPyWrites(t *testing.T) {
	// numpy.save of numpy.array([[1, 2, 3], [4, 5, 6]], numpy.int32), NumPy 2.4.
	want := "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }" +
		strings.Repeat(" ", 58) + "\n" +
		"\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00"
	var got bytes.Buffer
	testonly.Must(t, Write(&got, []int{2, 3}, []int32{1, 2, 3, 4, 5, 6}))
	// NumPy pads the header for a longer shape; all else is equal.
	gotHeader, wantHeader := got.Bytes()[:10+0x76], []byte(want)[:10+0x76]
	if got.Len() != len(want) || !bytes.Equal(gotHeader, wantHeader) || !bytes.HasSuffix(got.Bytes(), []byte(want)[128:]) {
		t.Errorf("got  %q\nwant %q", got.String(), want)
	}
}

// readFile reads a file of size bytes, or of unknown size, with the shape in its header.
func readFile[T Number](file []byte, size int64) ([]int, []T, error) {
	a, err := Open(bytes.NewReader(file), size)
	if err != nil {
		return nil, nil, err
	}
	data, err := Read[T](a, a.Shape...)
	return a.Shape, data, err
}

// readMember reads an array of an archive.
func readMember[T Number](a *Archive, name string, shape ...int) ([]T, error) {
	array, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	return Read[T](array, shape...)
}

func TestReadFloat32(t *testing.T) {
	tests := []struct {
		name  string
		file  []byte
		shape []int
		want  []float32
	}{
		{"float64", file(dict("<f8", "(2,)"), 0.1, -2.5), []int{2}, []float32{0.1, -2.5}},
		{"float64 out of range", file(dict("<f8", "(1,)"), 1e300), []int{1}, []float32{float32(math.Inf(1))}},
		// The files of NumPy 2.4 with ml_dtypes 0.6: saved once, and saved again after loading.
		{"float16", file(dict("<f2", "(4,)"), []uint16{0x3c00, 0xc100, 0x0001, 0x7c00}), []int{4}, []float32{1, -2.5, 0x1p-24, float32(math.Inf(1))}},
		{"bfloat16", file(dict("<V2", "(3,)"), []uint16{0x3f80, 0xc020, 0x0001}), []int{3}, []float32{1, -2.5, 0x1p-133}},
		{"bfloat16 again", file(dict("|V2", "(1,)"), uint16(0x3f80)), []int{1}, []float32{1}},
		{"bfloat16 by name", file(dict("bfloat16", "(1,)"), uint16(0x3f80)), []int{1}, []float32{1}},
		{"Fortran order, one dimension", file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }",
			[]float32{1, 4}), []int{2}, []float32{1, 4}},
		{"version 2.0", fileVersion(2, dict("<f4", "(1,)"), float32(7)), []int{1}, []float32{7}},
		{"version 3.0", fileVersion(3, dict("<f4", "(1,)"), float32(7)), []int{1}, []float32{7}},
		{"one value", file(dict("<f4", "()"), float32(7)), nil, []float32{7}},
		{"other spelling", file(`{"descr":"<f4","fortran_order":False,"shape":( 1 , 1 )}  `, float32(7)), []int{1, 1}, []float32{7}},
	}
	for _, tt := range tests {
		shape, got, err := readFile[float32](tt.file, int64(len(tt.file)))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if !slices.Equal(shape, tt.shape) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: shape %v, data %v; want %v, %v", tt.name, shape, got, tt.shape, tt.want)
		}
	}
}

func TestReadIntegers(t *testing.T) {
	wide := file(dict("<i8", "(2,)"), []int64{-1, 1 << 31})
	if _, got, err := readFile[int64](wide, -1); err != nil || !slices.Equal(got, []int64{-1, 1 << 31}) {
		t.Errorf("int64: %v, %v", got, err)
	}
	if _, _, err := readFile[int32](wide, -1); err == nil || err.Error() != "2147483648 is out of range" {
		t.Errorf("int64 as int32: error %v", err)
	}
	narrow := file(dict("<i4", "(2,)"), []int32{-1, 5})
	if _, got, err := readFile[int64](narrow, -1); err != nil || !slices.Equal(got, []int64{-1, 5}) {
		t.Errorf("int32 as int64: %v, %v", got, err)
	}
}

func TestReadText(t *testing.T) {
	for _, tt := range []struct {
		name, typ, shape, content, want string
		err                             string
	}{
		{"bytes", "|S3", "()", "csr", "csr", ""},
		{"padded", "|S3", "()", "a\x00\x00", "a", ""},
		{"several", "|S3", "(1,)", "csr", "", `type "|S3" and shape [1], not one value of bytes`},
		{"cut", "|S3", "()", "cs", "", "needs 3 bytes, has 2"},
		{"more", "|S3", "()", "csrx", "", "more data"},
		{"no size", "|S0", "()", "", "", `type "|S0"`},
		{"endless", "|S4611686018427387904", "()", "", "", `type "|S4611686018427387904"`},
		{"signed size", "|S+1", "()", "a", "", `type "|S+1"`},
		{"str", "<U1", "()", "a", "", `type "<U1"`},
		{"no type", "", "()", "", "", `type ""`},
	} {
		a, err := Open(bytes.NewReader(file(dict(tt.typ, tt.shape), []byte(tt.content))), -1)
		testonly.Must(t, err)
		if got, err := a.ReadText(); tt.err != "" {
			testonly.ErrorSays(t, tt.name, err, tt.err)
		} else if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const float32s = "<f4"
	good := file(dict(float32s, "(2,)"), []float32{1, 2})
	tests := []struct {
		name string
		file []byte
		want string // part of the error
	}{
		{"empty", nil, "truncated"},
		{"other", []byte("the 0.1 0.2\nof 0.3 0.4\n"), "not a .npy file"},
		{"version", fileVersion(4, dict(float32s, "(0,)")), "version 4.0"},
		{"header length", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "header of 4294967295 bytes"},
		{"header cut", good[:40], "truncated within its .npy header"},
		{"elements cut", good[:len(good)-1], "needs 8 bytes, has 7"},
		{"elements missing", good[:len(good)-8], "needs 8 bytes, has 0"},
		{"more", append(slices.Clone(good), 0), "more data"},
		{"big-endian, an eighth", file(dict(">V1", "(1,)"), uint8(1)), `type ">V1"`},
		{"big-endian bfloat16", file(dict(">V2", "(1,)"), uint16(1)), `type ">V2"`},
		{"booleans", file(dict("|b1", "(1,)"), uint8(1)), `type "|b1"`},
		{"an eighth", file(dict("<V1", "(1,)"), uint8(1)), `type "<V1"`},
		{"complex", file(dict("<c8", "(1,)"), complex64(1)), `type "<c8"`},
		{"objects", file(dict("|O", "(1,)")), "Python objects"},
		{"structured", file("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "structured"},
		{"Fortran order", file("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", float32(1)), "Fortran"},
		{"negative", file(dict(float32s, "(-1,)")), "want descr"},
		{"not a tuple", file(dict(float32s, "(1)")), "want descr"},
		{"no comma", file(dict(float32s, "(1 2)")), "want descr"},
		{"dimension overflow", file(dict(float32s, "(9223372036854775808,)")), "is too large"},
		{"shape overflow", file(dict(float32s, "(4611686018427387904, 4)")), "no array can have shape"},
		{"size overflow", file(dict(float32s, "(4611686018427387904,)")), "no array can have type"},
		{"key missing", file("{'descr': '<f4', 'shape': (1,), }"), "want descr"},
		{"key twice", file("{'descr': '<f4', 'descr': '<f4', }"), "want descr"},
		{"not closed", file("{'descr': '<f4', "), "want descr"},
		{"text after it", file(dict(float32s, "(0,)") + " import os"), "want descr"},
	}
	for _, tt := range tests {
		for _, size := range []int64{-1, int64(len(tt.file))} {
			_, _, err := readFile[float32](tt.file, size)
			if err == nil {
				t.Errorf("%s: no error", tt.name)
			} else if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: error %q, want %q", tt.name, err, tt.want)
			}
		}
	}
}

// An error about a header is short, whatever the header.
func TestReadErrorsAreShort(t *testing.T) {
	for _, header := range []string{
		dict(strings.Repeat("x", 60_000), "(1,)"),
		dict("<f4", "("+strings.Repeat("0, ", 20_000)+")"),
		"{'" + strings.Repeat("x", 60_000) + "': 1}",
		strings.Repeat("x", 60_000),
	} {
		for _, size := range []int64{-1, int64(len(header))} {
			_, _, err := readFile[int32](fileVersion(2, header), size)
			if err == nil || len(err.Error()) > 300 {
				t.Errorf("%.40q: error %.400v", header, err)
			}
		}
	}
}

func TestArchive(t *testing.T) {
	write := func() []byte {
		var b bytes.Buffer
		w := NewArchiveWriter(&b)
		values, err := w.Create("values")
		testonly.Must(t, err)
		testonly.Must(t, Write(values, []int{3}, []float32{1, 2, 3}))
		format, err := w.Create("format")
		testonly.Must(t, err)
		testonly.Must(t, WriteHeader(format, Header{Type: "|S3"}))
		if _, err := io.WriteString(format, "csr"); err != nil {
			t.Fatal(err)
		}
		testonly.Must(t, w.Close())
		return b.Bytes()
	}
	data := write()
	if !bytes.Equal(data, write()) {
		t.Error("the same arrays give different files")
	}
	a := openArchive(t, data)
	if got := a.Names(); !slices.Equal(got, []string{"values", "format"}) {
		t.Errorf("names %q", got)
	}
	if got, err := readMember[float32](a, "values", 3); err != nil || !slices.Equal(got, []float32{1, 2, 3}) {
		t.Errorf("values: %v, %v", got, err)
	}
	text, err := a.Open("format")
	testonly.Must(t, err)
	if got, err := text.ReadText(); err != nil || got != "csr" {
		t.Errorf("format: %q, %v", got, err)
	}
	_, err = readMember[float32](a, "value", 3)
	testonly.ErrorSays(t, "a missing array", err, `no array "value"`)

	// The checksum detects a changed element.
	i := bytes.Index(data, []byte("\x00\x00\x80\x3f")) // 1.0
	data[i]++
	if _, err := readMember[float32](openArchive(t, data), "values", 3); !errors.Is(err, zip.ErrChecksum) {
		t.Errorf("changed element: error %v", err)
	}
	if _, err := NewArchive(bytes.NewReader(data[:len(data)/2]), int64(len(data)/2)); err == nil {
		t.Error("truncated archive: no error")
	}
}

// A member must be one array, of a size that fits in the file, with a valid checksum, even if that is zero.
func TestArchiveRefuses(t *testing.T) {
	array := file(dict("<f4", "(2,)"), []float32{1, 2})
	type entry struct {
		zip.FileHeader
		content []byte
	}
	stored := func(name string, content []byte, change func(h *zip.FileHeader)) entry {
		m := entry{zip.FileHeader{Name: name, CRC32: crc32.ChecksumIEEE(content),
			CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content))}, content}
		change(&m.FileHeader)
		return m
	}
	as := func(*zip.FileHeader) {}
	for _, tt := range []struct {
		name    string
		members []entry
		want    string // "" if the array can be read
	}{
		{"as it should be", []entry{stored("x.npy", array, as), stored("y.npy", array, as)}, ""},
		{"one name twice", []entry{stored("x.npy", array, as), stored("x.npy", array, as)}, `"x.npy" is there twice`},
		{"larger than its header says", []entry{stored("x.npy", append(slices.Clone(array), 0), as)}, "more data"},
		{"smaller than its header says", []entry{stored("x.npy", array[:len(array)-1], as)}, "needs 8 bytes, has 7"},
		{"larger than the file", []entry{stored("x.npy", array, func(h *zip.FileHeader) {
			h.CompressedSize64, h.UncompressedSize64 = 1<<40, 1<<40
		})}, `"x.npy": truncated: 1099511627776 bytes in a file of `},
		{"stored in less", []entry{stored("x.npy", array, func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 40 })}, "damaged"},
		{"deflated to nothing", []entry{stored("x.npy", array, func(h *zip.FileHeader) {
			h.Method, h.UncompressedSize64 = zip.Deflate, 1<<40
		})}, "damaged"},
		{"an unknown method", []entry{stored("x.npy", array, func(h *zip.FileHeader) { h.Method = 99 })}, "unsupported compression"},
	} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, m := range tt.members {
			w, err := z.CreateRaw(&m.FileHeader)
			testonly.Must(t, err)
			if _, err := w.Write(m.content); err != nil {
				t.Fatal(err)
			}
		}
		testonly.Must(t, z.Close())
		a, err := NewArchive(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err == nil {
			_, err = readMember[float32](a, "x", 2)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func openArchive(t *testing.T, data []byte) *Archive {
	t.Helper()
	a, err := NewArchive(bytes.NewReader(data), int64(len(data)))
	testonly.Must(t, err)
	return a
}

func FuzzArchive(f *testing.F) {
	var b bytes.Buffer
	w := NewArchiveWriter(&b)
	entry, err := w.Create("data")
	testonly.Must(f, err)
	testonly.Must(f, Write(entry, []int{2}, []float32{1, 2}))
	testonly.Must(f, w.Close())
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := NewArchive(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, name := range a.Names() {
			array, err := a.Open(name)
			if err != nil {
				continue
			}
			values, err := readMember[float32](a, name, array.Shape...)
			if n, _ := array.Shape.Elements(); err == nil && n != len(values) {
				t.Errorf("%q: shape %v, %d elements", name, array.Shape, len(values))
			}
		}
	})
}

// ReadRows reads the rows, in both orders and for every kind of file.
func TestReadRows(t *testing.T) {
	const rows, dim = 1000, 7
	for _, fortran := range []bool{false, true} {
		var file bytes.Buffer
		testonly.Must(t, WriteHeader(&file, Header{Type: "<f4", Fortran: fortran, Shape: []int{rows, dim}}))
		data := make([]float32, rows*dim)
		for i := range data {
			data[i] = float32(i)
		}
		testonly.Must(t, WriteElements(&file, data))
		want := slices.Clone(data)
		if fortran {
			for i := range want {
				want[i] = data[i%dim*rows+i/dim]
			}
		}
		for _, n := range []int{1, 13, rows, rows + 1} {
			for name, open := range map[string]func(b []byte) (*Array, error){
				"stream": func(b []byte) (*Array, error) { return Open(bytes.NewReader(b), -1) },
				"file":   func(b []byte) (*Array, error) { return OpenAt(bytes.NewReader(b), int64(len(b))) },
			} {
				read := func(b []byte) (got []float32, err error) {
					a, err := open(b)
					if err != nil {
						return nil, err
					}
					for first := 0; err == nil && first < rows; first += n {
						part := make([]float32, min(n, rows-first)*dim)
						err = a.ReadRows(part, first)
						got = append(got, part...)
					}
					return got, cmp.Or(err, a.End())
				}
				got, err := read(file.Bytes())
				if fortran && name == "stream" {
					testonly.ErrorSays(t, "a stream in Fortran order", err, "array is in Fortran order and must be read in parts")
					continue
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, Fortran order %t, %d rows at a time: other rows, %v", name, fortran, n, err)
				}
				_, err = read(file.Bytes()[:file.Len()-1])
				testonly.ErrorSays(t, fmt.Sprintf("%s, Fortran order %t, cut short", name, fortran), err, "truncated: an array of type <f4 and shape [1000 7] needs 28000 bytes, has 27999")
			}
		}
	}
}

// The change of a checksum agrees with checksums of longer data.
func TestShiftCRC(t *testing.T) {
	a, b := []byte("header a"), []byte("header b")
	change := crc32.ChecksumIEEE(a) ^ crc32.ChecksumIEEE(b)
	for _, n := range []int{0, 1, 2, 3, 64, 1000, 1<<20 + 5} {
		rest := bytes.Repeat([]byte{'x'}, n)
		want := crc32.ChecksumIEEE(append(a[:len(a):len(a)], rest...)) ^ crc32.ChecksumIEEE(append(b[:len(b):len(b)], rest...))
		if got := shiftCRC(change, uint64(n)); got != want {
			t.Errorf("%d more bytes: change %#x, want %#x", n, got, want)
		}
	}
}
