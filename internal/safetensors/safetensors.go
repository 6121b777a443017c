// Package safetensors reads and writes .safetensors files, which hold named tensors:
//
//	f, err := safetensors.Open(file, size)
//	a, err := f.Array("weight")
//	x, err := npy.Read[float32](a, 400000, 50)
//
// The format is
//
//	8 bytes   N, little-endian
//	N bytes   JSON: {"name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, …}
//	the rest  the elements of the tensors, little-endian and in C order
//
// Offsets are in bytes from the end of the JSON. The JSON may have an object "__metadata__" of strings. Files are
// not trusted: allocations are bounded by the file's size, and errors are short.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/npy"
)

const (
	maxHeader = 8 << 20 // bytes of JSON, for over 50,000 tensors
	maxRank   = 32
	metadata  = "__metadata__"
)

// sizes maps the supported types to the bytes of an element. A file may have tensors of other types.
var sizes = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1}

// numpyTypes maps types of numbers to NumPy's names.
var numpyTypes = map[string]string{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16", "I64": "<i8", "I32": "<i4"}

// An entry is the header of a tensor.
type entry struct {
	name    string
	Type    string    `json:"dtype"`
	Shape   npy.Shape `json:"shape"`
	Offsets []int64   `json:"data_offsets"` // begin and end
}

// A Tensor is a tensor to write.
type Tensor struct {
	entry entry
	size  int64 // in bytes
	write func(w io.Writer) error
}

// New returns a tensor with the given elements in C order. The product of shape must be len(data).
func New[T npy.Number](name string, shape []int, data []T) Tensor {
	typ := map[string]string{"<f4": "F32", "<i8": "I64", "<i4": "I32"}[npy.TypeOf[T]()]
	return Tensor{
		entry: entry{name: name, Type: typ, Shape: shape},
		size:  int64(len(data)) * sizes[typ],
		write: func(w io.Writer) error { return npy.WriteElements(w, data) },
	}
}

// NewText returns a tensor of size bytes. The function write writes its content.
func NewText(name string, size int64, write func(w io.Writer) error) Tensor {
	return Tensor{entry: entry{name: name, Type: "U8", Shape: npy.Shape{int(size)}}, size: size, write: write}
}

// Write writes a file of the tensors in the given order, with the metadata info, which may be nil. Elements are aligned
// to their size if the tensors are in decreasing order of element size.
func Write(w io.Writer, info map[string]string, tensors []Tensor) error {
	header := map[string]any{}
	if len(info) > 0 {
		header[metadata] = info
	}
	end := int64(0)
	for _, t := range tensors {
		t.entry.Offsets = []int64{end, end + t.size}
		end += t.size
		header[t.entry.name] = t.entry
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	text = append(text, "       "[:-len(text)&7]...) // aligns the elements to 8 bytes
	if len(text) > maxHeader {
		return fmt.Errorf("a header of %d bytes is too long for a .safetensors file", len(text))
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}

// Detect reports whether a file that begins with head is a .safetensors file. Text files never are, because the
// length at the beginning has zero bytes.
func Detect(head []byte) bool {
	return len(head) > 8 && binary.LittleEndian.Uint64(head) <= maxHeader && head[8] == '{'
}

// A File is an open .safetensors file with a verified header: its tensors fill the file without gaps, and each has
// the size of its type and shape. The methods that read a tensor return an error if the file has no tensor with
// the name, or if the tensor has another type.
type File struct {
	Metadata map[string]string
	tensors  map[string]entry
	data     *io.SectionReader // the elements of all tensors
}

// Open reads and verifies the header of r, a file of size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var length [8]byte
	if size < int64(len(length)) {
		return nil, errors.New("truncated: no .safetensors file is that short")
	}
	if err := readFull(io.NewSectionReader(r, 0, size), length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes is over the limit of %d: not a .safetensors file", n, maxHeader)
	}
	start := int64(len(length)) + int64(n)
	if start > size {
		return nil, fmt.Errorf("truncated: header of %d bytes in a file of %d", n, size)
	}
	text := make([]byte, n)
	if err := readFull(io.NewSectionReader(r, int64(len(length)), int64(n)), text); err != nil {
		return nil, err
	}
	f := &File{data: io.NewSectionReader(r, start, size-start)}
	if err := f.parse(text); err != nil {
		return nil, fmt.Errorf("header: %.200v", err) // shortened, because it may quote a number of any length
	}
	return f, f.check()
}

func (f *File) parse(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return errors.New("it does not begin with {")
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	f.tensors = map[string]entry{}
	for name, value := range values {
		var err error
		if name == metadata {
			err = json.Unmarshal(value, &f.Metadata)
		} else {
			d := json.NewDecoder(bytes.NewReader(value))
			d.DisallowUnknownFields()
			e := entry{name: name}
			err = d.Decode(&e)
			f.tensors[name] = e
		}
		if err != nil {
			return fmt.Errorf("%.60q: %w", name, err)
		}
	}
	return nil
}

// check returns an error unless the tensors fill the file, one after the other.
func (f *File) check() error {
	entries := slices.SortedFunc(maps.Values(f.tensors), func(a, b entry) int {
		return cmp.Or(slices.Compare(a.Offsets, b.Offsets), cmp.Compare(a.name, b.name))
	})
	end := int64(0)
	for _, e := range entries {
		if e.Type == "" || e.Shape == nil || len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
			return fmt.Errorf("tensor %.60q: want a dtype, a shape and two data_offsets in order", e.name)
		}
		if len(e.Shape) > maxRank {
			return fmt.Errorf("tensor %.60q has %d dimensions, want at most %d", e.name, len(e.Shape), maxRank)
		}
		n, err := e.Shape.Elements()
		if err != nil {
			return fmt.Errorf("tensor %.60q: %w", e.name, err)
		}
		if size := sizes[e.Type]; size > 0 && (int64(n) > math.MaxInt64/size || int64(n)*size != e.Offsets[1]-e.Offsets[0]) {
			return fmt.Errorf("tensor %.60q: %s of shape %v does not fit its data_offsets %v", e.name, e.Type, e.Shape, e.Offsets)
		}
		if e.Offsets[0] != end {
			return fmt.Errorf("tensor %.60q begins at %d, where %d is expected: tensors must neither overlap nor leave gaps", e.name, e.Offsets[0], end)
		}
		end = e.Offsets[1]
	}
	switch size := f.data.Size(); {
	case size < end:
		return fmt.Errorf("truncated: the tensors need %d bytes, the file has %d", end, size)
	case size > end:
		return fmt.Errorf("%d bytes follow the last tensor", size-end)
	}
	return nil
}

// Names returns the names of the tensors, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Matrices returns the names of the two-dimensional tensors of type F32, F64, F16 or BF16, sorted.
func (f *File) Matrices() []string {
	return slices.DeleteFunc(f.Names(), func(name string) bool {
		e := f.tensors[name]
		return len(e.Shape) != 2 || !strings.HasSuffix(e.Type, "F16") && e.Type != "F32" && e.Type != "F64"
	})
}

// Array returns a tensor as a NumPy array with unread elements.
func (f *File) Array(name string) (*npy.Array, error) {
	e, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("no tensor %.60q", name)
	}
	title := fmt.Sprintf("tensor %.60q of type %.60q", name, e.Type)
	elements := io.NewSectionReader(f.data, e.Offsets[0], e.Offsets[1]-e.Offsets[0])
	return npy.NewArray(title, npy.Header{Type: numpyTypes[e.Type], Shape: e.Shape}, elements), nil
}

// readFull is io.ReadFull for a file that another process may truncate.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("truncated while it was read")
	}
	return err
}
