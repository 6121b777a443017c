// Package npy reads and writes NumPy's files of arrays: .npy, which has one array, and
// .npz, a zip archive of .npy files.
//
// It knows those of NumPy's types that word vectors and sparse matrices are made of:
// little-endian floating-point numbers and integers, and strings. Files are not trusted:
// no memory is allocated on the word of a header alone.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16 // bytes; NumPy itself reads no more than 10,000
	chunk     = 1 << 16 // bytes converted at a time
	maxString = 1 << 16 // characters of one string
)

// Number is a type that [Write] can write.
type Number interface {
	float32 | int32 | int64 | uint8
}

// Write writes a .npy file of data in C order. It is an error if the product of shape is
// not len(data).
func Write[T Number](w io.Writer, shape []int, data []T) error {
	n, err := elements(shape)
	if err != nil {
		return err
	}
	if n != len(data) {
		return fmt.Errorf("%d values do not make an array of shape %v", len(data), shape)
	}
	if err := WriteHeader(w, Header{Type: typeOf[T](), Shape: shape}); err != nil {
		return err
	}
	return WriteElements(w, data)
}

// WriteElements writes the next elements of an array whose header was written by
// [WriteHeader].
func WriteElements[T Number](w io.Writer, data []T) (err error) {
	buf := make([]byte, 0, min(chunk, len(data)*binary.Size(T(0))))
	for part := range slices.Chunk(data, chunk/binary.Size(T(0))) {
		buf, err = binary.Append(buf[:0], binary.LittleEndian, part)
		if err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// ReadElements fills data with the next elements of an array of type T in C order, whose
// header was read by [ReadHeader]. It is an error if there are fewer.
func ReadElements[T Number](r io.Reader, data []T) error {
	size := binary.Size(T(0))
	buf := make([]byte, min(chunk, size*len(data)))
	for part := range slices.Chunk(data, chunk/size) {
		src := buf[:size*len(part)]
		if _, err := io.ReadFull(r, src); isEnd(err) {
			return errors.New("truncated")
		} else if err != nil {
			return err
		}
		if _, err := binary.Decode(src, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return nil
}

// WriteString writes a .npy file of s, as an array without dimensions of NumPy's type
// bytes.
func WriteString(w io.Writer, s string) error {
	if err := WriteHeader(w, Header{Type: "|S" + strconv.Itoa(len(s))}); err != nil {
		return err
	}
	_, err := io.WriteString(w, s)
	return err
}

// typeOf returns NumPy's name of T.
func typeOf[T Number]() string {
	switch any(T(0)).(type) {
	case float32:
		return "<f4"
	case int32:
		return "<i4"
	case int64:
		return "<i8"
	default:
		return "|u1"
	}
}

// ReadFloat32 reads a .npy file of float32 or float64. A float64 beyond the range of
// float32 becomes infinite.
//
// This and the other Read functions return the shape of the array and its elements in C
// order, whatever their order in the file. They read r to its end. It is an error if the
// array has another type, or if r has fewer or more elements than its header says. Max
// is the most bytes that r can hold, such as the size of the file; it limits what is
// allocated on the word of the header. If it is negative, memory grows as r is read.
func ReadFloat32(r io.Reader, max int64) (shape []int, data []float32, err error) {
	return read(r, max, "float32 or float64", func(typ string) decoder[float32] {
		switch typ {
		case "<f4":
			return decoder[float32]{4, decodeFloat32}
		case "<f8":
			return decoder[float32]{8, decodeFloat64}
		}
		return decoder[float32]{}
	})
}

// ReadInt32 reads a .npy file of int32, or of int64 with values in the range of int32.
// See [ReadFloat32] for max and errors.
func ReadInt32(r io.Reader, max int64) (shape []int, data []int32, err error) {
	return readIntegers[int32](r, max)
}

// ReadInt64 reads a .npy file of int32 or int64. See [ReadFloat32] for max and errors.
func ReadInt64(r io.Reader, max int64) (shape []int, data []int64, err error) {
	return readIntegers[int64](r, max)
}

func readIntegers[T int32 | int64](r io.Reader, max int64) ([]int, []T, error) {
	return read(r, max, "int32 or int64", func(typ string) decoder[T] {
		switch typ {
		case "<i4":
			return decoder[T]{4, decodeInt32[T]}
		case "<i8":
			return decoder[T]{8, decodeInt64[T]}
		}
		return decoder[T]{}
	})
}

// ReadStrings reads a .npy file of NumPy's type str (such as "<U12") or bytes (such as
// "|S12"). See [ReadFloat32] for max and errors.
func ReadStrings(r io.Reader, max int64) (shape []int, data []string, err error) {
	return read(r, max, "str or bytes", func(typ string) decoder[string] {
		prefix, digits := typ[:min(2, len(typ))], typ[min(2, len(typ)):]
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n == 0 || n > maxString {
			return decoder[string]{}
		}
		switch prefix {
		case "<U":
			return decoder[string]{4 * int(n), decodeUnicode}
		case "|S":
			return decoder[string]{int(n), decodeBytes}
		}
		return decoder[string]{}
	})
}

// A decoder turns the elements of one of NumPy's types, size bytes each, into
// values of T. Its zero value stands for a type that cannot become T.
type decoder[T any] struct {
	size   int
	decode func(dst []T, src []byte) error
}

func decodeFloat32(dst []float32, src []byte) error {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
	return nil
}

func decodeFloat64(dst []float32, src []byte) error {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
	return nil
}

func decodeInt32[T int32 | int64](dst []T, src []byte) error {
	for i := range dst {
		dst[i] = T(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
	return nil
}

func decodeInt64[T int32 | int64](dst []T, src []byte) error {
	for i := range dst {
		v := int64(binary.LittleEndian.Uint64(src[8*i:]))
		dst[i] = T(v)
		if int64(dst[i]) != v {
			return fmt.Errorf("%d is out of range", v)
		}
	}
	return nil
}

// decodeUnicode decodes UCS-4, padded with zeros.
func decodeUnicode(dst []string, src []byte) error {
	size := len(src) / len(dst)
	var buf []byte
	for i := range dst {
		s := src[i*size : (i+1)*size]
		buf = buf[:0]
		pad := 0 // zeros met, which are part of the string only if more follows
		for ; len(s) > 0; s = s[4:] {
			c := binary.LittleEndian.Uint32(s)
			if c == 0 {
				pad++
				continue
			}
			if c > utf8.MaxRune || !utf8.ValidRune(rune(c)) {
				return fmt.Errorf("%#x is not a Unicode character", c)
			}
			for ; pad > 0; pad-- {
				buf = append(buf, 0)
			}
			buf = utf8.AppendRune(buf, rune(c))
		}
		dst[i] = string(buf)
	}
	return nil
}

// decodeBytes decodes bytes, padded with zeros.
func decodeBytes(dst []string, src []byte) error {
	size := len(src) / len(dst)
	for i := range dst {
		dst[i] = string(bytes.TrimRight(src[i*size:(i+1)*size], "\x00"))
	}
	return nil
}

// read reads an array whose type decoderOf has a decoder for; want names these
// types.
func read[T any](r io.Reader, max int64, want string, decoderOf func(typ string) decoder[T]) ([]int, []T, error) {
	h, err := ReadHeader(r)
	if err != nil {
		return nil, nil, err
	}
	if h.Type == "|O" {
		return nil, nil, fmt.Errorf("array holds Python objects; save it as %s", want)
	}
	d := decoderOf(h.Type)
	if d.size == 0 {
		return nil, nil, fmt.Errorf("array has type %q, not %s", h.Type, want)
	}
	if h.Fortran && len(h.Shape) > 2 {
		return nil, nil, fmt.Errorf("array of %d dimensions is in Fortran order; save it in C order", len(h.Shape))
	}
	data, err := readData(r, max, h, d)
	if err != nil {
		return nil, nil, err
	}
	if err := expectEnd(r); err != nil {
		return nil, nil, err
	}
	if h.Fortran && len(h.Shape) == 2 {
		data = transpose(data, h.Shape[0], h.Shape[1])
	}
	return h.Shape, data, nil
}

func readData[T any](r io.Reader, max int64, h Header, d decoder[T]) ([]T, error) {
	n, err := elements(h.Shape)
	if err != nil {
		return nil, err
	}
	if n > math.MaxInt/d.size || max >= 0 && int64(n*d.size) > max {
		return nil, fmt.Errorf("truncated, or its header is wrong: no array of type %s and shape %v fits in it", h.Type, h.Shape)
	}
	perChunk := min(n, (chunk+d.size-1)/d.size)
	buf := make([]byte, perChunk*d.size)
	data := make([]T, 0, perChunk)
	if max >= 0 {
		data = make([]T, 0, n)
	}
	for len(data) < n {
		m := min(perChunk, n-len(data))
		src := buf[:m*d.size]
		if got, err := io.ReadFull(r, src); isEnd(err) {
			return nil, fmt.Errorf("truncated: an array of type %s and shape %v needs %d bytes, has %d",
				h.Type, h.Shape, n*d.size, len(data)*d.size+got)
		} else if err != nil {
			return nil, err
		}
		data = slices.Grow(data, m)
		if err := d.decode(data[len(data):len(data)+m], src); err != nil {
			return nil, err
		}
		data = data[:len(data)+m]
	}
	return data, nil
}

// elements returns the number of elements of an array.
func elements(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return 0, fmt.Errorf("no array can have shape %v", shape)
		}
		n *= d
	}
	return n, nil
}

// expectEnd returns an error unless r is at its end.
func expectEnd(r io.Reader) error {
	var b [1]byte
	switch _, err := io.ReadFull(r, b[:]); {
	case err == nil:
		return errors.New("more data follows the array")
	case err != io.EOF:
		return err
	}
	return nil
}

// isEnd reports whether io.ReadFull met the end of the file too early.
func isEnd(err error) bool {
	return err == io.EOF || err == io.ErrUnexpectedEOF
}

// transpose returns the rows of a rows×cols matrix of which data has the columns.
func transpose[T any](data []T, rows, cols int) []T {
	t := make([]T, 0, len(data))
	for i := range rows {
		for j := range cols {
			t = append(t, data[j*rows+i])
		}
	}
	return t
}

// Header is the header of a .npy file.
type Header struct {
	Type    string // NumPy's name, such as "<f4"
	Fortran bool   // columns are contiguous, not rows
	Shape   []int  // no element for a single value
}

// WriteHeader writes the header of a .npy file. The elements must follow.
func WriteHeader(w io.Writer, h Header) error {
	var shape strings.Builder
	for _, d := range h.Shape {
		fmt.Fprintf(&shape, "%d, ", d)
	}
	tuple := shape.String()
	if len(h.Shape) == 1 {
		tuple = strings.TrimSuffix(tuple, " ") // (3,)
	} else {
		tuple = strings.TrimSuffix(tuple, ", ") // (), (3, 4)
	}
	order := "False"
	if h.Fortran {
		order = "True"
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", h.Type, order, tuple)

	// Spaces make the elements start at a multiple of 64 bytes.
	const prefix = len(magic) + 4 // magic, version, length
	size := (prefix+len(dict)+1+63)/64*64 - prefix
	if size > math.MaxUint16 {
		return fmt.Errorf("%d dimensions are too many for a .npy file", len(h.Shape))
	}
	b := append(make([]byte, 0, prefix+size), magic...)
	b = append(b, 1, 0) // version 1.0
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	b = fmt.Appendf(b, "%-*s\n", size-1, dict)
	_, err := w.Write(b)
	return err
}

// ReadHeader reads the header of a .npy file, version 1.0, 2.0 or 3.0, and no byte
// beyond it. The numbers of Shape are not negative, but their product may overflow.
func ReadHeader(r io.Reader) (Header, error) {
	var start [len(magic) + 2]byte
	if err := readFull(r, start[:]); err != nil {
		return Header{}, err
	}
	if string(start[:len(magic)]) != magic {
		return Header{}, errors.New("not a .npy file")
	}
	major, minor := start[len(magic)], start[len(magic)+1]
	var size uint32
	var length [4]byte
	switch {
	case minor == 0 && major == 1:
		if err := readFull(r, length[:2]); err != nil {
			return Header{}, err
		}
		size = uint32(binary.LittleEndian.Uint16(length[:]))
	case minor == 0 && (major == 2 || major == 3):
		if err := readFull(r, length[:]); err != nil {
			return Header{}, err
		}
		size = binary.LittleEndian.Uint32(length[:])
	default:
		return Header{}, fmt.Errorf("version %d.%d of the .npy format is unknown", major, minor)
	}
	if size > maxHeader {
		return Header{}, fmt.Errorf("header of %d bytes is too long", size)
	}
	text := make([]byte, size)
	if err := readFull(r, text); err != nil {
		return Header{}, err
	}
	h, err := parseHeader(string(text))
	if err != nil {
		return Header{}, fmt.Errorf("bad .npy header: %w", err)
	}
	return h, nil
}

// readFull fills b, which is part of a header.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if isEnd(err) {
		return errors.New("truncated within its .npy header")
	}
	return err
}
