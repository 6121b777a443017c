// Package npy reads and writes NumPy's array files: .npy, which holds one array, and .npz, a zip archive of .npy
// files. It supports numbers and strings. Integers of other types than int32 and int64, and big-endian numbers, are
// read only as vectors.
//
//	a, err := npy.Open(file, size)
//	x, err := a.Float32(400000, 50) // an error if the shape is another
//
// Files are not trusted: allocations are bounded by the file's size and the free memory.
package npy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16 // bytes; NumPy itself reads no more than 10,000
	chunk     = 1 << 16 // bytes that are converted at a time
	maxString = 1 << 16 // characters of one string
)

// Number is the constraint of the element types that [Write] supports.
type Number interface {
	float32 | int32 | int64 | uint8
}

// Write writes a .npy file of data in C order. It returns an error if the product of shape isn't len(data).
func Write[T Number](w io.Writer, shape Shape, data []T) error {
	n, err := elements(shape)
	if err != nil {
		return err
	}
	if n != len(data) {
		return fmt.Errorf("%d values do not make an array of shape %v", len(data), shape)
	}
	if err := WriteHeader(w, Header{Type: TypeOf[T](), Shape: shape}); err != nil {
		return err
	}
	return WriteElements(w, data)
}

// WriteElements writes consecutive elements of an array after its header, which [WriteHeader] wrote.
func WriteElements[T Number](w io.Writer, data []T) (err error) {
	const most = 1 << 20 // elements at a time, so that a cancelled writer ends soon
	for part := range slices.Chunk(data, most) {
		buf := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), len(part)*int(unsafe.Sizeof(part[0])))
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 { // a big-endian machine
			if buf, err = binary.Append(nil, binary.LittleEndian, part); err != nil {
				return err
			}
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// ReadElements sets data to the next elements of an array of type T in C order, after its header, which
// [ReadHeader] read. It returns an error if fewer elements are left.
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

// TypeOf returns NumPy's name of T.
func TypeOf[T Number]() string {
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

// An Array is an array with a decoded header and unread elements.
//
// The methods that read the elements require their shape, so that a header alone never determines the size of an
// allocation. They return elements in C order; only [Array.ReadRows] reads matrices in Fortran order. They read to
// the end of the file and return an error if more data follow.
type Array struct {
	Header
	io.Reader             // the elements, for [ReadElements]
	size      int64       // bytes of the elements, or -1 if unknown
	at        io.ReaderAt // the elements, or nil if they can only be read in order
	loaded    bool        // at is a copy of the elements in memory
	name      string      // prefix of errors, or ""
	done      int         // number of elements that NextStrings and its siblings have returned
	buf       []byte      // bytes of elements to decode
}

// Open reads the header of a .npy file of size bytes. A negative size is unknown.
func Open(r io.Reader, size int64) (*Array, error) {
	h, read, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	a := &Array{Header: h, Reader: r, size: -1}
	if size >= 0 {
		a.size = max(0, size-int64(read))
	}
	return a, nil
}

// OpenAt reads the header of r, a .npy file of size bytes, for random access to rows.
func OpenAt(r io.ReaderAt, size int64) (*Array, error) {
	a, err := Open(io.NewSectionReader(r, 0, size), size)
	if err == nil {
		a.at = io.NewSectionReader(r, size-a.size, a.size)
	}
	return a, err
}

// NewArray returns an array whose elements are the content of r. Errors begin with name.
func NewArray(name string, h Header, r *io.SectionReader) *Array {
	return &Array{Header: h, Reader: r, size: r.Size(), at: r, name: name}
}

// wrap prefixes an error with the array's name.
func (a *Array) wrap(err error) error {
	if err == nil || a.name == "" || err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// Float32 reads an array of float16, bfloat16, float32, float64 or integers, in any byte order. A float64 outside the
// range of float32 becomes infinite, and integers are rounded.
//
// NumPy itself has no bfloat16. It saves the bfloat16 of the package ml_dtypes as an opaque type of two bytes,
// which no other array of numbers has.
func (a *Array) Float32(shape ...int) ([]float32, error) { return read(a, shape, floats) }

// Random reports whether [Array.ReadRows] reads rows in any order, also concurrently. It is false for arrays of
// [Open] and [Archive.Open].
func (a *Array) Random() bool { return a.at != nil && !a.loaded }

// ReadRows sets data to consecutive rows of a matrix of a type of [Array.Float32], from row first on. Unless the
// array is [Array.Random], each call must begin with the row after the previous call's rows, and a matrix in Fortran
// order is loaded into memory.
func (a *Array) ReadRows(data []float32, first int) error {
	d, total, err := open(a, floats)
	if err == nil && a.Fortran && a.at == nil {
		err = a.load(total * d.size)
	}
	done := first * a.Shape[1]
	switch {
	case err != nil:
	case a.Fortran:
		err = a.readColumns(data, first, d)
	case a.at != nil:
		elements := io.NewSectionReader(a.at, int64(done*d.size), int64(len(data)*d.size))
		err = decode(&Array{Header: a.Header, Reader: elements}, data, done, d)
	default:
		err = decode(a, data, done, d)
	}
	return a.wrap(err)
}

// End returns an error if data follow the last element that was read in order, or if the checksum is wrong.
func (a *Array) End() error {
	_, _, err := open(a, floats)
	if err == nil && a.at == nil {
		err = expectEnd(a)
	}
	return a.wrap(err)
}

// load reads all elements, of the given number of bytes.
func (a *Array) load(bytesTotal int) error {
	if err := memory.Check(uint64(bytesTotal)); err != nil {
		return fmt.Errorf("array of shape %v in Fortran order: %w", a.Shape, err)
	}
	all, err := io.ReadAll(io.LimitReader(a, int64(bytesTotal)))
	if err == nil && len(all) < bytesTotal {
		err = truncated(a.Header, bytesTotal, int64(len(all)))
	}
	if err := cmp.Or(err, expectEnd(a)); err != nil {
		return err
	}
	a.at, a.loaded = bytes.NewReader(all), true
	return nil
}

// readColumns implements ReadRows for a matrix in Fortran order.
func (a *Array) readColumns(data []float32, first int, d decoder[float32]) error {
	rows, dim := a.Shape[0], a.Shape[1]
	n := len(data) / dim
	raw, column := make([]byte, n*d.size), make([]float32, n)
	for j := range dim {
		if got, err := a.at.ReadAt(raw, int64(j*rows+first)*int64(d.size)); got < len(raw) && isEnd(err) {
			return errors.New("truncated while it was read")
		} else if got < len(raw) {
			return err
		}
		if err := d.decode(column, raw); err != nil {
			return err
		}
		for i, x := range column {
			data[i*dim+j] = x
		}
	}
	return nil
}

// CheckFloats returns an error unless the array has a type of [Array.Float32].
func (a *Array) CheckFloats() error {
	_, err := floats(a)
	return a.wrap(err)
}

// floats returns the decoder of a type of [Array.Float32].
func floats(a *Array) (decoder[float32], error) {
	switch a.Type {
	case "<f2":
		return decoder[float32]{size: 2, decode: decodeFloat16}, nil
	case "<V2", "|V2", "bfloat16":
		return decoder[float32]{size: 2, decode: decodeBFloat16}, nil
	case "<f4":
		return decoder[float32]{4, decodeFloat32, float32s.Bytes}, nil
	case "<f8":
		return decoder[float32]{size: 8, decode: decodeFloat64}, nil
	case "|i1":
		return integers[int8](), nil
	case "|u1":
		return integers[uint8](), nil
	case "<i2":
		return integers[int16](), nil
	case "<u2":
		return integers[uint16](), nil
	case "<i4":
		return integers[int32](), nil
	case "<u4":
		return integers[uint32](), nil
	case "<i8":
		return integers[int64](), nil
	case "<u8":
		return integers[uint64](), nil
	case "|O":
		return decoder[float32]{}, a.typeError("numbers, numpy.stack(rows)")
	}
	if opposite, ok := strings.CutPrefix(a.Type, ">"); ok && opposite != "V2" {
		d, err := floats(&Array{Header: Header{Type: "<" + opposite}})
		if err == nil {
			return decoder[float32]{size: d.size, decode: func(dst []float32, src []byte) error {
				for element := range slices.Chunk(src, d.size) {
					slices.Reverse(element)
				}
				return d.decode(dst, src)
			}}, nil
		}
	}
	return decoder[float32]{}, a.typeError("float16, bfloat16, float32, float64 or integers")
}

// integers returns the decoder of little-endian integers.
func integers[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64]() decoder[float32] {
	size := binary.Size(T(0))
	return decoder[float32]{size: size, decode: func(dst []float32, src []byte) error {
		for i := range dst {
			var x uint64
			for k := range size {
				x |= uint64(src[size*i+k]) << (8 * k)
			}
			dst[i] = float32(T(x))
		}
		return nil
	}}
}

// Expect returns an error unless the array has the given shape.
func (a *Array) Expect(shape ...int) error { return a.wrap(a.expect(shape)) }

func (a *Array) expect(shape []int) error {
	if slices.Equal(a.Shape, shape) {
		return nil
	}
	return fmt.Errorf("array of shape %v, want %v", a.Shape, Shape(shape))
}

// Int32 reads an array of int32, or of int64 with values in the range of int32.
func (a *Array) Int32(shape ...int) ([]int32, error) { return read(a, shape, integersOf[int32]) }

// Int64 reads an array of int32 or int64.
func (a *Array) Int64(shape ...int) ([]int64, error) { return read(a, shape, integersOf[int64]) }

// integersOf returns the decoder of a type of [Array.Int32] or [Array.Int64].
func integersOf[T int32 | int64](a *Array) (decoder[T], error) {
	switch a.Type {
	case "<i4":
		return decoder[T]{size: 4, decode: decodeInt32[T]}, nil
	case "<i8":
		return decoder[T]{size: 8, decode: decodeInt64[T]}, nil
	}
	return decoder[T]{}, a.typeError("int32 or int64")
}

// NextFloat32 returns the next n elements of an array of a type of [Array.Float32], or all that are left, and io.EOF
// after the last.
func (a *Array) NextFloat32(n int) ([]float32, error) { return next(a, n, floats) }

// NextInt32 is [Array.NextFloat32] for a type of [Array.Int32].
func (a *Array) NextInt32(n int) ([]int32, error) { return next(a, n, integersOf[int32]) }

// NextInt64 is [Array.NextFloat32] for a type of [Array.Int64].
func (a *Array) NextInt64(n int) ([]int64, error) { return next(a, n, integersOf[int64]) }

// Strings reads an array of NumPy's type str (such as "<U12") or bytes (such as "|S12").
func (a *Array) Strings(shape ...int) ([]string, error) { return read(a, shape, characters) }

// NextStrings returns the next n elements, or all that are left, of an array of a type of [Array.Strings], and
// io.EOF after the last.
func (a *Array) NextStrings(n int) ([]string, error) { return next(a, n, characters) }

// characters returns the decoder of a type of [Array.Strings].
func characters(a *Array) (decoder[string], error) {
	prefix, digits := a.Type[:min(2, len(a.Type))], a.Type[min(2, len(a.Type)):]
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case err != nil || n == 0 || n > maxString:
	case prefix == "<U":
		return decoder[string]{size: 4 * int(n), decode: decodeUnicode}, nil
	case prefix == "|S":
		return decoder[string]{size: int(n), decode: decodeBytes}, nil
	}
	return decoder[string]{}, a.typeError("str or bytes")
}

// typeError returns the error of an array whose type isn't in want.
func (a *Array) typeError(want string) error {
	if a.Type == "|O" {
		return fmt.Errorf("array holds Python objects; save it as %s", want)
	}
	return fmt.Errorf("array has type %.40q, not %s", a.Type, want)
}

// A decoder converts elements of a NumPy type, of size bytes each, to values of T.
type decoder[T any] struct {
	size   int
	decode func(dst []T, src []byte) error
	memory func(dst []T) []byte // returns dst's memory if it has the file's representation; may be nil
}

func decodeFloat16(dst []float32, src []byte) error {
	for i := range dst {
		dst[i] = float32s.FromFloat16(binary.LittleEndian.Uint16(src[2*i:]))
	}
	return nil
}

func decodeBFloat16(dst []float32, src []byte) error {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16) // the upper half of a float32
	}
	return nil
}

func decodeFloat32(dst []float32, src []byte) error {
	float32s.Decode(dst, src)
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
		pad := 0 // number of zeros, which are part of the string only if more characters follow
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

// read reads all elements of an array.
func read[T any](a *Array, shape []int, decoderOf func(a *Array) (decoder[T], error)) ([]T, error) {
	data, err := readShape(a, shape, decoderOf)
	return data, a.wrap(err)
}

func readShape[T any](a *Array, shape []int, decoderOf func(a *Array) (decoder[T], error)) ([]T, error) {
	if err := a.expect(shape); err != nil {
		return nil, err
	}
	d, n, err := open(a, decoderOf)
	if err != nil {
		return nil, err
	}
	if a.Fortran && len(shape) > 1 {
		return nil, fmt.Errorf("array of %d dimensions is in Fortran order; save it in C order", len(shape))
	}
	var element T
	if err := memory.Check(uint64(n) * uint64(unsafe.Sizeof(element))); err != nil {
		return nil, fmt.Errorf("array of shape %v: %w", a.Shape, err)
	}
	data := make([]T, 0, min(n, chunk/d.size+1))
	if a.size >= 0 {
		data = make([]T, 0, n)
	}
	for len(data) < n {
		m := min(chunk/d.size+1, n-len(data))
		data = slices.Grow(data, m)[:len(data)+m]
		if err := decode(a, data[len(data)-m:], len(data)-m, d); err != nil {
			return nil, err
		}
	}
	if err := expectEnd(a); err != nil {
		return nil, err
	}
	return data, nil
}

// next returns the next n elements, or all that are left, and io.EOF after the last.
func next[T any](a *Array, n int, decoderOf func(a *Array) (decoder[T], error)) ([]T, error) {
	d, total, err := open(a, decoderOf)
	if err != nil {
		return nil, a.wrap(err)
	}
	if n == 0 {
		return []T{}, nil
	}
	if a.done == total {
		return nil, a.wrap(cmp.Or(expectEnd(a), io.EOF))
	}
	data := make([]T, min(n, total-a.done))
	err = decode(a, data, a.done, d)
	a.done += len(data)
	return data, a.wrap(err)
}

// decode reads elements into dst; done is the number of elements before.
func decode[T any](a *Array, dst []T, done int, d decoder[T]) error {
	fill := func(src []byte) error {
		got, err := io.ReadFull(a, src)
		if isEnd(err) {
			n, _ := elements(a.Shape)
			err = truncated(a.Header, n*d.size, int64(done*d.size+got))
		}
		return err
	}
	if d.memory != nil {
		if memory := d.memory(dst); memory != nil {
			return fill(memory)
		}
	}
	perChunk := (chunk + d.size - 1) / d.size
	if n := min(perChunk, len(dst)) * d.size; len(a.buf) < n {
		a.buf = make([]byte, n)
	}
	for part := range slices.Chunk(dst, len(a.buf)/d.size) {
		src := a.buf[:len(part)*d.size]
		if err := fill(src); err != nil {
			return err
		}
		if err := d.decode(part, src); err != nil {
			return err
		}
		done += len(part)
	}
	return nil
}

// open returns the decoder and the number of elements. It returns an error if the file has fewer or more.
func open[T any](a *Array, decoderOf func(a *Array) (decoder[T], error)) (d decoder[T], n int, err error) {
	if d, err = decoderOf(a); err != nil {
		return d, 0, err
	}
	n, err = elements(a.Shape)
	if err == nil && n > math.MaxInt/max(d.size, 8) { // readers convert to at most 8 bytes
		err = fmt.Errorf("no array can have type %s and shape %v", a.Type, a.Shape)
	}
	switch {
	case err != nil:
		return d, 0, err
	case a.size >= 0 && int64(n*d.size) > a.size:
		return d, 0, truncated(a.Header, n*d.size, a.size)
	case a.size > int64(n*d.size):
		return d, 0, errMore
	}
	return d, n, nil
}

func truncated(h Header, want int, got int64) error {
	return fmt.Errorf("truncated: an array of type %s and shape %v needs %d bytes, has %d", h.Type, h.Shape, want, got)
}

var errMore = errors.New("more data follows the array")

// elements returns the number of elements of an array.
func elements(shape Shape) (int, error) {
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
		return errMore
	case err != io.EOF:
		return err
	}
	return nil
}

// isEnd reports whether err is an unexpected end of the file from io.ReadFull.
func isEnd(err error) bool {
	return err == io.EOF || err == io.ErrUnexpectedEOF
}

// A Header is the header of a .npy file.
type Header struct {
	Type    string // NumPy's type name, such as "<f4"
	Fortran bool   // column-major order
	Shape   Shape
}

// A Shape is the dimensions of an array, none for a single value. Their product may overflow.
type Shape []int

// String returns the first dimensions, in the format of fmt.
func (s Shape) String() string {
	const most = 4
	if len(s) > most {
		return strings.Replace(fmt.Sprint([]int(s[:most])), "]", " …]", 1)
	}
	return fmt.Sprint([]int(s))
}

// WriteHeader writes the header of a .npy file, which the elements must follow.
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

	// Padding aligns the elements to 64 bytes.
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

// ReadHeader reads the header of a .npy file, version 1.0, 2.0 or 3.0, and no byte beyond it. The dimensions are
// not negative, but their product may overflow.
func ReadHeader(r io.Reader) (Header, error) {
	h, _, err := readHeader(r)
	return h, err
}

// readHeader returns the header and its length in bytes.
func readHeader(r io.Reader) (h Header, read int, err error) {
	var start [len(magic) + 2]byte
	if err := readFull(r, start[:]); err != nil {
		return Header{}, 0, err
	}
	if string(start[:len(magic)]) != magic {
		return Header{}, 0, errors.New("not a .npy file")
	}
	major, minor := start[len(magic)], start[len(magic)+1]
	digits := 4 // length of the length field in bytes
	switch {
	case minor == 0 && major == 1:
		digits = 2
	case minor != 0 || major != 2 && major != 3:
		return Header{}, 0, fmt.Errorf("version %d.%d of the .npy format is unknown", major, minor)
	}
	var length [4]byte
	if err := readFull(r, length[:digits]); err != nil {
		return Header{}, 0, err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > maxHeader {
		return Header{}, 0, fmt.Errorf("header of %d bytes is too long", size)
	}
	text := make([]byte, size)
	if err := readFull(r, text); err != nil {
		return Header{}, 0, err
	}
	if h, err = parseHeader(string(text)); err != nil {
		return Header{}, 0, fmt.Errorf("bad .npy header: %w", err)
	}
	return h, len(start) + digits + len(text), nil
}

// readFull reads len(b) bytes of a header.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if isEnd(err) {
		return errors.New("truncated within its .npy header")
	}
	return err
}
