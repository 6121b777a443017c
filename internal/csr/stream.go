package csr

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
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

// A Writer writes the same file as [Write] for a matrix that may not fit in memory, a few rows at a time. It
// writes the array of columns, the file's first, in place, and its length at the end. The values follow the columns;
// until their number is known, they are in a temporary file. The lengths of rows are in memory.
type Writer struct {
	file     *os.File
	archive  *npy.ArchiveWriter
	index    io.Writer // array of archive
	value    *os.File  // temporary
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
	return cmp.Or(<-values, err)
}

// Finish completes the file after the last [Writer.Add]. It doesn't close it. Writes fail with the error of ctx after
// its cancellation.
func (w *Writer) Finish(ctx context.Context) error {
	if err := w.archive.SetHeader(w.file, indexHeader(0), indexHeader(w.nonzeros)); err != nil {
		return err
	}
	if _, err := w.value.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeRest(w.archive, len(w.lengths), w.cols, w.nonzeros, len(w.lengths)+1, w.pointers, func(out io.Writer) error {
		_, err := io.Copy(atomicfile.Writer{Context: ctx, Writer: out}, w.value)
		return err
	})
}

// pointers yields the row offsets.
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
			return b.Flush() // the first error of Write
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
	Rows, Cols int

	index, pointers, value array
	end                    int64 // offset of the first nonzero that isn't read
	nonzeros               int64
}

// array is a partly read array.
type array struct {
	npy.Header
	*bufio.Reader
}

// NewReader returns a reader of r, a .npz file of size bytes that [Write] or a [Writer] wrote. It returns an
// error if the file is damaged or isn't in their layout.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	a, err := npy.NewArchive(r, size)
	if err != nil {
		return nil, err
	}
	c := new(Reader)
	if c.Rows, c.Cols, err = readShape(a); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name string
		to   *array
	}{{"indices", &c.index}, {"indptr", &c.pointers}, {"data", &c.value}} {
		stored, err := a.Open(part.name)
		if err != nil {
			return nil, err
		}
		*part.to = array{stored.Header, bufio.NewReaderSize(stored, 1<<16)}
	}
	is := func(a array, typ string) bool { return a.Type == typ && len(a.Shape) == 1 }
	switch n := c.pointers; {
	case !is(c.index, "<i4"), !is(c.value, "<f4"), !is(n, "<i4") && !is(n, "<i8"),
		c.index.Shape[0] != c.value.Shape[0], n.Shape[0]-1 != c.Rows:
		return nil, errors.New("not a matrix that encode wrote")
	}
	c.nonzeros = int64(c.index.Shape[0])
	if first, err := c.pointer(); err != nil || first != 0 {
		return nil, cmp.Or(err, fmt.Errorf("the first row begins at nonzero %d, want 0", first))
	}
	return c, nil
}

// pointer reads the next row offset.
func (c *Reader) pointer() (int64, error) {
	if c.pointers.Type == "<i8" {
		var p [1]int64
		err := npy.ReadElements(c.pointers, p[:])
		return p[0], err
	}
	var p [1]int32
	err := npy.ReadElements(c.pointers, p[:])
	return int64(p[0]), err
}

// Next reads the next rows. It returns an error if fewer rows are left, or if they aren't valid
// ([vectors.CSR.Validate]). Only [Reader.Finish] verifies the checksums.
func (c *Reader) Next(rows int) (*vectors.CSR, error) {
	s := &vectors.CSR{Rows: rows, Cols: c.Cols, Ptr: make([]int64, 1, rows+1)}
	for range rows {
		end, err := c.pointer()
		if err != nil {
			return nil, err
		}
		if end < c.end || end-c.end > int64(c.Cols) || end > c.nonzeros {
			return nil, fmt.Errorf("a row from %d to %d of %d nonzeros", c.end, end, c.nonzeros)
		}
		s.Ptr = append(s.Ptr, s.Ptr[len(s.Ptr)-1]+end-c.end)
		c.end = end
	}
	n := s.Ptr[rows]
	s.Index, s.Value = make([]int32, n), make([]float32, n)
	if err := npy.ReadElements(c.index, s.Index); err != nil {
		return nil, err
	}
	if err := npy.ReadElements(c.value, s.Value); err != nil {
		return nil, err
	}
	return s, s.Validate()
}

// Finish returns an error if the file has unread rows or if a checksum is wrong.
func (c *Reader) Finish() error {
	if c.end != c.nonzeros {
		return fmt.Errorf("the last row ends at nonzero %d of %d", c.end, c.nonzeros)
	}
	for _, a := range []array{c.index, c.pointers, c.value} {
		switch _, err := a.ReadByte(); {
		case err == nil:
			return errors.New("more data follows the last row")
		case err != io.EOF:
			return err // a wrong checksum
		}
	}
	return nil
}
