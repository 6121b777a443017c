// Package npy reads and writes NumPy's array files: .npy, which holds one array, and .npz, a zip archive of .npy files.
// It supports arrays of numbers, and single strings. Integers of other types than int32 and int64, and big-endian
// numbers, are read only as vectors.
//
//	a, err := npy.Open(file, size)
//	x, err := npy.Read[float32](a, 400000, 50) // an error if the shape is another
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
	"unsafe"

	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16 // bytes; NumPy itself reads no more than 10,000
	chunk     = 1 << 16 // bytes that are converted at a time
)

// A Number is a type as which numbers can be written and read:
//   - float32: reads float16, bfloat16, float32, float64 or integers, in any byte order. A float64 outside the range of
//     float32 becomes infinite, and integers are rounded. NumPy itself has no bfloat16. It saves the bfloat16 of the
//     package ml_dtypes as an opaque type of two bytes, which no other array of numbers has.
//   - int32, int64: reads int32 or int64, if the values are in the range
type Number interface {
	float32 | int32 | int64
}

// Write writes a .npy file of data in C order. The product of shape must be len(data).
func Write[T Number](w io.Writer, shape Shape, data []T) error {
	if err := WriteHeader(w, Header{Type: TypeOf[T](), Shape: shape}); err != nil {
		return err
	}
	return WriteElements(w, data)
}

// WriteElements writes consecutive elements of an array after its header, which [WriteHeader] wrote.
func WriteElements[T Number](w io.Writer, data []T) (err error) {
	const most = 1 << 20 // elements to write at a time, so that a cancelled writer ends soon
	for part := range slices.Chunk(data, most) {
		buf := memoryOf(part)
		if buf == nil {
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

// memoryOf returns the memory of numbers, or nil on a big-endian machine.
func memoryOf[T any](data []T) []byte {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(data[0])))
}

// TypeOf returns NumPy's name of T.
func TypeOf[T Number]() string {
	switch any(T(0)).(type) {
	case float32:
		return "<f4"
	case int32:
		return "<i4"
	}
	return "<i8"
}

// An Array is an array with a decoded header and unread elements.
//
// The functions that read elements take the expected shape as an argument, so that a header alone never determines the
// size of an allocation. They return elements in C order; only [Array.ReadRows] accepts matrices in Fortran order. They
// read to the end of the file and return an error if more data follow.
type Array struct {
	Header
	r    io.Reader    // the elements
	size int64        // bytes of the elements, or -1 if unknown
	at   io.ReaderAt  // the elements, or nil if they can only be read in order
	end  func() error // checks the elements that were read by the field at; or nil
	name string       // prefix of errors, or ""
	done int          // number of elements that Next and ReadNext have read
	buf  []byte       // bytes of elements to decode
}

// Open reads the header of a .npy file of size bytes. A negative size means that the size is unknown.
func Open(r io.Reader, size int64) (*Array, error) {
	h, read, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	a := &Array{Header: h, r: r, size: -1}
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
	return &Array{Header: h, r: r, size: r.Size(), at: r, name: name}
}

func (a *Array) wrap(err error) error {
	if err == nil || a.name == "" || err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// Random reports whether [Array.ReadRows] reads rows in any order, also concurrently. It is true for arrays of
// [OpenAt] and [NewArray], and for arrays of an [Archive] that are not compressed.
func (a *Array) Random() bool { return a.at != nil }

// ReadRows sets data to consecutive rows of a matrix of numbers, from row first on. Unless the array is
// [Array.Random], each call must begin with the row after the previous call's rows, and a matrix in Fortran order is an
// error.
func (a *Array) ReadRows(data []float32, first int) error {
	if a.at == nil {
		return a.ReadNext(data)
	}
	d, _, err := open[float32](a)
	switch {
	case err != nil:
	case a.Fortran:
		err = a.readColumns(data, first, d)
	default:
		done := first * a.Shape[1]
		elements := io.NewSectionReader(a.at, int64(done*d.size), int64(len(data)*d.size))
		err = decode(&Array{Header: a.Header, r: elements}, data, done, d)
	}
	return a.wrap(err)
}

// ReadNext sets data to the next elements of an array of numbers in C order.
func (a *Array) ReadNext(data []float32) error {
	d, _, err := open[float32](a)
	if err == nil && a.Fortran {
		err = errors.New("array is in Fortran order and must be read in parts; save it in C order (numpy.ascontiguousarray)")
	}
	if err == nil {
		err = decode(a, data, a.done, d)
		a.done += len(data)
	}
	return a.wrap(err)
}

// End returns an error if data follow the last element that was read in order, or if the checksum is wrong. Call it
// after [Array.ReadRows] has read each row once, in any order, or [Next] has read all elements.
func (a *Array) End() error {
	_, _, err := open[float32](a)
	switch {
	case err != nil:
	case a.at == nil || a.done > 0:
		err = expectEnd(a.r)
	case a.end != nil:
		err = a.end()
	}
	return a.wrap(err)
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

// Expect returns an error unless the array has the given shape, and elements that can be read as T.
func Expect[T Number](a *Array, shape ...int) error {
	if !slices.Equal(a.Shape, shape) {
		return a.wrap(fmt.Errorf("array of shape %v, want %v", a.Shape, Shape(shape)))
	}
	_, _, err := open[T](a)
	return a.wrap(err)
}

// Read reads all elements of an array of the given shape, from a file of known size.
func Read[T Number](a *Array, shape ...int) (data []T, err error) {
	if err := Expect[T](a, shape...); err != nil {
		return nil, err
	}
	_, n, _ := open[T](a)
	if a.Fortran && len(shape) > 1 {
		return nil, a.wrap(fmt.Errorf("array of %d dimensions is in Fortran order; save it in C order", len(shape)))
	}
	var element T
	if err := memory.Check(uint64(n) * uint64(unsafe.Sizeof(element))); err != nil {
		return nil, a.wrap(fmt.Errorf("array of shape %v: %w", a.Shape, err))
	}
	if data, err = Next[T](a, n); err == nil {
		err = a.wrap(expectEnd(a.r))
	}
	return data, err
}

// Next returns the next n elements of an array, or fewer at its end. After the last element it returns io.EOF.
func Next[T Number](a *Array, n int) ([]T, error) {
	d, total, err := open[T](a)
	if err == nil && n > 0 && a.done == total {
		err = cmp.Or(expectEnd(a.r), io.EOF)
	}
	if err != nil {
		return nil, a.wrap(err)
	}
	data := make([]T, min(n, total-a.done))
	err = decode(a, data, a.done, d)
	a.done += len(data)
	return data, a.wrap(err)
}

// ReadText returns the single value of an array of NumPy's type of bytes, such as "|S3", without trailing zeros.
func (a *Array) ReadText() (string, error) {
	digits, isBytes := strings.CutPrefix(a.Type, "|S")
	size, err := strconv.ParseUint(digits, 10, 16)
	if !isBytes || err != nil || size == 0 || len(a.Shape) > 0 {
		return "", a.wrap(fmt.Errorf("array has type %.40q and shape %v, not one value of bytes", a.Type, a.Shape))
	}
	text, err := io.ReadAll(io.LimitReader(a.r, int64(size)+1)) // read to the end, to verify the checksum
	switch {
	case err != nil:
	case len(text) < int(size):
		err = truncated(a.Header, int(size), int64(len(text)))
	case len(text) > int(size):
		err = errMore
	}
	return string(bytes.TrimRight(text, "\x00")), a.wrap(err)
}

// A decoder converts elements of a NumPy type, of size bytes each, to values of T.
type decoder[T any] struct {
	size   int
	decode func(dst []T, src []byte) error
	same   bool // on a little-endian machine, a T in memory has the same bytes as in the file
}

func decoderOf[T Number](a *Array) (d decoder[T], err error) {
	switch d := any(&d).(type) {
	case *decoder[float32]:
		*d, err = floats(a)
	case *decoder[int32]:
		switch *d = integers[int64, int32](true); a.Type {
		case "<i4":
			*d = numbers[int32]()
		case "<i8":
		default:
			err = a.typeError("int32 or int64")
		}
	case *decoder[int64]:
		switch *d = integers[int32, int64](true); a.Type {
		case "<i8":
			*d = numbers[int64]()
		case "<i4":
		default:
			err = a.typeError("int32 or int64")
		}
	}
	return d, err
}

// numbers returns the decoder of little-endian numbers of type T.
func numbers[T float32 | int32 | int64]() decoder[T] {
	return decoder[T]{binary.Size(T(0)), func(dst []T, src []byte) error {
		_, err := binary.Decode(src, binary.LittleEndian, dst)
		return err
	}, true}
}

// integers returns the decoder of little-endian integers of type I. If exact is set, numbers that T can't represent are
// an error.
func integers[I int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64, T float32 | int32 | int64](exact bool) decoder[T] {
	size := binary.Size(I(0))
	return decoder[T]{size: size, decode: func(dst []T, src []byte) error {
		for i := range dst {
			var x uint64
			for k := range size {
				x |= uint64(src[size*i+k]) << (8 * k)
			}
			if dst[i] = T(I(x)); exact && I(dst[i]) != I(x) {
				return fmt.Errorf("%d is out of range", I(x))
			}
		}
		return nil
	}}
}

// roundedIntegers has the decoders that round integers to float32.
var roundedIntegers = map[string]decoder[float32]{
	"|i1": integers[int8, float32](false), "<i2": integers[int16, float32](false), "<i4": integers[int32, float32](false), "<i8": integers[int64, float32](false),
	"|u1": integers[uint8, float32](false), "<u2": integers[uint16, float32](false), "<u4": integers[uint32, float32](false), "<u8": integers[uint64, float32](false),
}

// floats returns the decoder that converts the array's type of numbers to float32.
func floats(a *Array) (decoder[float32], error) {
	if d, ok := roundedIntegers[a.Type]; ok {
		return d, nil
	}
	switch a.Type {
	case "<f2":
		return decoder[float32]{size: 2, decode: func(dst []float32, src []byte) error {
			for i := range dst {
				dst[i] = float32s.FromFloat16(binary.LittleEndian.Uint16(src[2*i:]))
			}
			return nil
		}}, nil
	case "<V2", "|V2", "bfloat16": // the upper half of a float32
		return decoder[float32]{size: 2, decode: func(dst []float32, src []byte) error {
			for i := range dst {
				dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
			}
			return nil
		}}, nil
	case "<f4":
		return numbers[float32](), nil
	case "<f8":
		return decoder[float32]{size: 8, decode: func(dst []float32, src []byte) error {
			for i := range dst {
				dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
			}
			return nil
		}}, nil
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

// typeError returns the error of an array whose type isn't in want.
func (a *Array) typeError(want string) error {
	if a.Type == "|O" {
		return fmt.Errorf("array holds Python objects; save it as %s", want)
	}
	return fmt.Errorf("array has type %.40q, not %s", a.Type, want)
}

// decode reads elements into dst. The argument done is the number of elements that were read earlier.
func decode[T any](a *Array, dst []T, done int, d decoder[T]) error {
	fill := func(src []byte) error {
		got, err := io.ReadFull(a.r, src)
		if isEnd(err) {
			n, _ := a.Shape.Elements()
			err = truncated(a.Header, n*d.size, int64(done*d.size+got))
		}
		return err
	}
	if len(dst) == 0 {
		return nil
	}
	if d.same {
		if memory := memoryOf(dst); memory != nil {
			return fill(memory)
		}
	}
	if n := min(chunk/d.size, len(dst)) * d.size; len(a.buf) < n {
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

// open returns the decoder and the number of elements. It returns an error if the file has another number.
func open[T Number](a *Array) (d decoder[T], n int, err error) {
	if d, err = decoderOf[T](a); err != nil {
		return d, 0, err
	}
	n, err = a.Shape.Elements()
	if err == nil && n > math.MaxInt/max(d.size, 8) { // a decoded element has at most 8 bytes
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

// A Shape contains the dimensions of an array; a single value has no dimensions. Their product may overflow.
type Shape []int

// String formats at most four dimensions, as fmt does.
func (s Shape) String() string {
	const most = 4
	if len(s) > most {
		return strings.Replace(fmt.Sprint([]int(s[:most])), "]", " …]", 1)
	}
	return fmt.Sprint([]int(s))
}

// Elements returns the number of elements of an array. It returns an error if no array can have the shape.
func (s Shape) Elements() (int, error) {
	n := 1
	for _, d := range s {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return 0, fmt.Errorf("no array can have shape %v", s)
		}
		n *= d
	}
	return n, nil
}

// WriteHeader writes the header of a .npy file. The caller must write the elements after it.
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

// readHeader reads the header of a .npy file, version 1.0, 2.0 or 3.0, and no byte beyond it. It returns the length of
// the header in bytes. The dimensions are not negative, but their product may overflow.
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
