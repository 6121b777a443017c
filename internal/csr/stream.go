package csr

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"

	"overcomplete/internal/atomicfile"
	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// A Writer writes the same file as [Write] for a matrix that may not fit in memory, a few rows at a time. The array of
// columns comes first: it is written in place, and its length is set at the end. The array of values follows; until
// their number is known, the values are in a temporary file. The lengths of rows are in memory.
type Writer struct {
	file     *os.File
	archive  *npy.ArchiveWriter
	index    io.Writer // array of archive
	value    *os.File  // temporary file of values
	cols     int
	nonzeros int
	lengths  []int32 // number of nonzeros of each row
}

// NewWriter returns a writer to file, which must be empty, for a matrix of cols columns. It creates a temporary file
// of 4 bytes per nonzero in the same directory, which [Writer.Close] removes.
func NewWriter(file *os.File, cols int) (*Writer, error) {
	w := &Writer{file: file, archive: npy.NewArchiveWriter(file), cols: cols}
	var err error
	if w.index, err = create(w.archive, "indices", indexHeader(0)); err != nil {
		return nil, err
	}
	if w.value, err = os.CreateTemp(filepath.Dir(file.Name()), "values"); err != nil {
		return nil, err
	}
	return w, nil
}

// Add appends the rows of s. It returns an error if s has another number of columns than the writer, or if
// a file can't be written.
func (w *Writer) Add(s *vectors.CSR) error {
	if s.Cols != w.cols {
		return fmt.Errorf("rows of %d columns for a matrix of %d", s.Cols, w.cols)
	}
	for i := range s.Rows {
		w.lengths = append(w.lengths, int32(s.Ptr[i+1]-s.Ptr[i]))
	}
	w.nonzeros += s.Nonzeros()
	values := make(chan error)
	go func() { values <- npy.WriteElements(w.value, s.Value) }()
	err := npy.WriteElements(w.index, s.Index)
	atomicfile.StartSync(w.file)
	return cmp.Or(<-values, err)
}

// Finish completes the file after the last [Writer.Add]. It doesn't close the file. Writes fail with the error of ctx
// after its cancellation.
func (w *Writer) Finish(ctx context.Context) error {
	if err := w.archive.SetHeader(w.file, indexHeader(0), indexHeader(w.nonzeros)); err != nil {
		return err
	}
	if _, err := w.value.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeRest(w.archive, len(w.lengths), w.cols, w.nonzeros, len(w.lengths)+1, w.pointers, func(out io.Writer) error {
		const part = 1 << 24 // bytes that are copied while the disk writes the previous part
		for n := int64(part); n == part; atomicfile.StartSync(w.file) {
			var err error
			if n, err = io.CopyN(atomicfile.Writer{Context: ctx, Writer: out}, w.value, part); err != nil && err != io.EOF {
				return err
			}
		}
		return nil
	})
}

func (w *Writer) pointers(yield func(int64) bool) {
	end := int64(0)
	for _, n := range w.lengths {
		if !yield(end) {
			return
		}
		end += int64(n)
	}
	yield(end)
}

// Close removes the temporary file.
func (w *Writer) Close() error {
	w.value.Close()
	return os.Remove(w.value.Name())
}

func indexHeader(nonzeros int) npy.Header {
	return npy.Header{Type: "<i4", Shape: []int{nonzeros}}
}

// create adds an array to a and returns the writer of its elements.
func create(a *npy.ArchiveWriter, name string, h npy.Header) (io.Writer, error) {
	w, err := a.Create(name)
	if err == nil {
		err = npy.WriteHeader(w, h)
	}
	return w, err
}

// writeRest writes the arrays that follow the columns, and completes the archive.
func writeRest(a *npy.ArchiveWriter, rows, cols, nonzeros, pointers int, pointer iter.Seq[int64], values func(io.Writer) error) error {
	typ := "<i8"
	if nonzeros <= math.MaxInt32 {
		typ = "<i4"
	}
	for _, array := range []struct {
		name   string
		header npy.Header
		write  func(io.Writer) error
	}{
		{"indptr", npy.Header{Type: typ, Shape: []int{pointers}}, func(w io.Writer) error {
			b := bufio.NewWriterSize(w, 1<<16)
			for p := range pointer {
				if typ == "<i4" {
					b.Write(binary.LittleEndian.AppendUint32(b.AvailableBuffer(), uint32(p)))
				} else {
					b.Write(binary.LittleEndian.AppendUint64(b.AvailableBuffer(), uint64(p)))
				}
			}
			return b.Flush() // returns the first error of the calls of Write
		}},
		{"format", npy.Header{Type: "|S3"}, func(w io.Writer) error {
			_, err := io.WriteString(w, "csr")
			return err
		}},
		{"shape", npy.Header{Type: "<i8", Shape: []int{2}}, func(w io.Writer) error {
			return npy.WriteElements(w, []int64{int64(rows), int64(cols)})
		}},
		{"data", npy.Header{Type: "<f4", Shape: []int{nonzeros}}, values},
	} {
		w, err := create(a, array.name, array.header)
		if err != nil {
			return err
		}
		if err := array.write(w); err != nil {
			return err
		}
	}
	return a.Close()
}

// A Reader reads a matrix that may not fit in memory, a few rows at a time. Call Next until Rows rows are
// read, then Finish.
type Reader struct {
	Rows, Cols, Nonzeros int

	indices, offsets, values *npy.Array
	end                      int64 // offset of the first nonzero that isn't read
}

// NewReader returns a reader of r, a .npz file of size bytes that [Write], a [Writer] or scipy.sparse.save_npz
// wrote. It returns an error if the file is damaged or holds anything else.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	a, err := npy.NewArchive(r, size)
	if err != nil {
		return nil, err
	}
	c := new(Reader)
	if c.Rows, c.Cols, err = readShape(a); err != nil {
		return nil, err
	}
	for _, array := range []struct {
		name string
		to   **npy.Array
	}{{"indices", &c.indices}, {"indptr", &c.offsets}, {"data", &c.values}} {
		if *array.to, err = a.Open(array.name); err != nil {
			return nil, err
		}
	}
	if len(c.values.Shape) > 0 {
		c.Nonzeros = c.values.Shape[0]
	}
	if err := cmp.Or(npy.Expect[float32](c.values, c.Nonzeros), npy.Expect[int32](c.indices, c.Nonzeros), npy.Expect[int64](c.offsets, c.Rows+1)); err != nil {
		return nil, err
	}
	first, err := npy.Next[int64](c.offsets, 1)
	if err == nil && first[0] != 0 {
		err = fmt.Errorf("row offsets are out of order (got %d first, want 0)", first[0])
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Next reads the given number of rows. It returns an error if fewer are left, or if the rows aren't valid
// ([vectors.CSR.Validate]). Only [Reader.Finish] verifies the checksums.
func (c *Reader) Next(rows int) (*vectors.CSR, error) {
	s := &vectors.CSR{Rows: rows, Cols: c.Cols, Ptr: make([]int64, 1, rows+1)}
	first := c.end
	for len(s.Ptr) <= rows {
		ends, err := npy.Next[int64](c.offsets, min(1<<12, rows+1-len(s.Ptr)))
		if err != nil {
			return nil, err
		}
		for _, end := range ends {
			if end < c.end || end-c.end > int64(c.Cols) || end > int64(c.Nonzeros) {
				return nil, fmt.Errorf("row offsets are out of order (got a row from %d to %d of %d nonzeros)", c.end, end, c.Nonzeros)
			}
			s.Ptr, c.end = append(s.Ptr, end-first), end
		}
	}
	var err error
	if s.Index, err = npy.Next[int32](c.indices, int(c.end-first)); err != nil {
		return nil, err
	}
	if s.Value, err = npy.Next[float32](c.values, int(c.end-first)); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

// Finish returns an error if the file has unread rows or if a checksum is wrong.
func (c *Reader) Finish() error {
	if c.end != int64(c.Nonzeros) {
		return fmt.Errorf("row offsets are out of order (got a last row that ends at %d of %d nonzeros)", c.end, c.Nonzeros)
	}
	return cmp.Or(c.indices.End(), c.offsets.End(), c.values.End())
}
