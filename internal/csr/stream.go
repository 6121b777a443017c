package csr

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"overcomplete/internal/npy"
	"overcomplete/vectors"
)

// A Writer writes the same file as [Write] for a matrix that may not fit in memory, a few rows at a time.
// Each array of the file begins with its length. A Writer therefore collects the arrays in temporary
// files until the last row.
type Writer struct {
	rows, cols           int
	nonzeros             int64
	index, value, length tempFile // length: number of nonzeros by row, int32
}

// A tempFile is a temporary file with the elements of an array.
type tempFile struct {
	file *os.File
	*bufio.Writer
}

// NewWriter returns a writer for a matrix of cols columns. It creates temporary files in dir, of 8 bytes
// per nonzero, which [Writer.Close] removes.
func NewWriter(dir string, cols int) (*Writer, error) {
	w := &Writer{cols: cols}
	for _, p := range w.files() {
		f, err := os.CreateTemp(dir, "codes")
		if err != nil {
			w.Close()
			return nil, err
		}
		p.file, p.Writer = f, bufio.NewWriterSize(f, 1<<20)
	}
	return w, nil
}

func (w *Writer) files() []*tempFile { return []*tempFile{&w.index, &w.value, &w.length} }

// Add appends the rows of s. It returns an error if s has another number of columns than the writer, or if
// a temporary file can't be written.
func (w *Writer) Add(s *vectors.CSR) error {
	if s.Cols != w.cols {
		return fmt.Errorf("rows of %d columns for a matrix of %d", s.Cols, w.cols)
	}
	length := make([]int32, s.Rows)
	for i := range length {
		length[i] = int32(s.Ptr[i+1] - s.Ptr[i])
	}
	w.rows += s.Rows
	w.nonzeros += int64(s.Nonzeros())
	if err := npy.WriteElements(w.index, s.Index); err != nil {
		return err
	}
	if err := npy.WriteElements(w.value, s.Value); err != nil {
		return err
	}
	return npy.WriteElements(w.length, length)
}

// Write writes the .npz file of all added rows to out. Call it once, after the last [Writer.Add].
func (w *Writer) Write(out io.Writer) error {
	for _, p := range w.files() {
		if err := p.Flush(); err != nil {
			return err
		}
		if _, err := p.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	nonzeros := int(w.nonzeros)
	return writeArrays(out, w.rows, w.cols, part{nonzeros, w.index.copyTo}, part{w.rows + 1, w.writePointers}, part{nonzeros, w.value.copyTo})
}

// writePointers writes the row offsets, which are the cumulative sums of the lengths.
func (w *Writer) writePointers(out io.Writer) error {
	lengths := bufio.NewReaderSize(w.length.file, 1<<16)
	var length [1]int32
	var end int64
	b := make([]byte, 0, 8)
	for row := 0; ; row++ {
		if _, err := out.Write(appendPointer(b, end, w.nonzeros)); err != nil || row == w.rows {
			return err
		}
		if err := npy.ReadElements(lengths, length[:]); err != nil {
			return err
		}
		end += int64(length[0])
	}
}

func (p *tempFile) copyTo(out io.Writer) error {
	_, err := io.Copy(out, p.file)
	return err
}

// Close removes the temporary files and returns the first error.
func (w *Writer) Close() error {
	var first error
	for _, p := range w.files() {
		if p.file != nil {
			p.file.Close()
			if err := os.Remove(p.file.Name()); first == nil {
				first = err
			}
		}
	}
	return first
}

// part is one of the file's long arrays.
type part struct {
	elements int
	write    func(io.Writer) error
}

// writeArrays writes the file's arrays. Row offsets are int32 if they fit.
func writeArrays(w io.Writer, rows, cols int, index, pointers, value part) error {
	pointer := "<i8"
	if value.elements <= math.MaxInt32 {
		pointer = "<i4"
	}
	a := npy.NewArchiveWriter(w)
	for _, array := range []struct {
		name   string
		header npy.Header
		write  func(io.Writer) error
	}{
		{"indices", npy.Header{Type: "<i4", Shape: []int{index.elements}}, index.write},
		{"indptr", npy.Header{Type: pointer, Shape: []int{pointers.elements}}, pointers.write},
		{"format", npy.Header{Type: "|S3"}, func(w io.Writer) error {
			_, err := io.WriteString(w, "csr")
			return err
		}},
		{"shape", npy.Header{Type: "<i8", Shape: []int{2}}, func(w io.Writer) error {
			return npy.WriteElements(w, []int64{int64(rows), int64(cols)})
		}},
		{"data", npy.Header{Type: "<f4", Shape: []int{value.elements}}, value.write},
	} {
		out, err := a.Create(array.name)
		if err != nil {
			return err
		}
		if err := npy.WriteHeader(out, array.header); err != nil {
			return err
		}
		buffered := bufio.NewWriterSize(out, 1<<16)
		if err := array.write(buffered); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	return a.Close()
}

// appendPointer appends a row offset of a matrix with n nonzeros, as int32 if all fit.
func appendPointer(b []byte, p, nonzeros int64) []byte {
	if nonzeros <= math.MaxInt32 {
		return binary.LittleEndian.AppendUint32(b, uint32(p))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(p))
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
