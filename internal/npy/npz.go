package npy

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"sync"
)

// An Archive is the content of a .npz file. The names of its members are unique, and their declared sizes fit in
// the file.
type Archive struct {
	file    io.ReaderAt
	members map[string]*zip.File
	names   []string // names of the arrays
}

// NewArchive opens r, a .npz file of size bytes, or returns an error if r isn't a .npz file.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a .npz file: %w", err)
	}
	a := &Archive{file: r, members: make(map[string]*zip.File)}
	for _, f := range z.File {
		if a.members[f.Name] != nil {
			return nil, fmt.Errorf("%.60q is there twice", f.Name)
		}
		if err := checkSize(f, uint64(size)); err != nil {
			return nil, fmt.Errorf("%.60q: %w", f.Name, err)
		}
		a.members[f.Name] = f
		if name, ok := strings.CutSuffix(f.Name, extension); ok {
			a.names = append(a.names, name)
		}
	}
	return a, nil
}

const extension = ".npy"

// checkSize returns an error if the declared sizes of a member are too large for a file of the given number of
// bytes.
func checkSize(f *zip.File, file uint64) error {
	const most = 1032 // the largest ratio of inflated to deflated size
	stored, size := f.CompressedSize64, f.UncompressedSize64
	switch {
	case stored > file:
		return fmt.Errorf("truncated: %d bytes in a file of %d", stored, file)
	case f.Method == zip.Store && size != stored, f.Method == zip.Deflate && size/most > stored:
		return fmt.Errorf("damaged: %d bytes are stored in %d", size, stored)
	}
	return nil
}

// Names returns the names of the arrays, in the file's order.
func (a *Archive) Names() []string { return a.names }

// Open opens the named array. Its readers return an error instead of io.EOF if the array's checksum is wrong. An array
// that isn't compressed is [Array.Random].
func (a *Archive) Open(name string) (*Array, error) {
	f := a.members[name+extension]
	if f == nil {
		return nil, fmt.Errorf("no array %q in it", name)
	}
	r, err := f.Open() // Close only returns decompressors for reuse
	if err != nil {
		return nil, named(name, err)
	}
	array, err := Open(r, int64(f.UncompressedSize64))
	if err != nil {
		return nil, named(name, err)
	}
	array.name = fmt.Sprintf("array %.60q", name)
	if f.Method == zip.Store {
		offset, err := f.DataOffset()
		if err != nil {
			return nil, named(name, err)
		}
		s := &stored{SectionReader: io.NewSectionReader(a.file, offset, int64(f.UncompressedSize64)), want: f.CRC32}
		header := s.Size() - array.size
		if _, err := s.ReadAt(make([]byte, header), 0); err != nil {
			return nil, named(name, err)
		}
		array.at, array.end = io.NewSectionReader(s, header, array.size), s.end
	}
	return array, nil
}

// stored is an uncompressed member. Each part is read once, in any order; sum combines the checksums of the parts.
type stored struct {
	*io.SectionReader
	want uint32
	mu   sync.Mutex
	sum  uint32
}

// ReadAt implements [io.ReaderAt].
func (s *stored) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.SectionReader.ReadAt(p, at)
	sum := shiftCRC(crc32.ChecksumIEEE(p[:n]), uint64(s.Size()-at)-uint64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum ^= sum
	return n, err
}

func (s *stored) end() error {
	if s.sum != s.want {
		return zip.ErrChecksum
	}
	return nil
}

func named(name string, err error) error { return fmt.Errorf("array %.60q: %w", name, err) }

// An ArchiveWriter writes a .npz file. It stores no time, so that equal arrays give equal files. Arrays are not
// compressed, because floating-point numbers hardly shrink and compression is slower than most disks.
type ArchiveWriter struct {
	zip    *zip.Writer
	member *member // the array that is being written
}

// A member is the .npy file of an array in an archive. Its size and checksum follow its data.
type member struct {
	header *zip.FileHeader
	w      io.Writer
}

// Write implements [io.Writer].
func (m *member) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	h := m.header
	h.CRC32 = crc32.Update(h.CRC32, crc32.IEEETable, p[:n])
	h.UncompressedSize64 += uint64(n)
	h.CompressedSize64 = h.UncompressedSize64
	//lint:ignore SA1019 the zip package writes these fields of a raw member
	h.CompressedSize, h.UncompressedSize = uint32(min(h.UncompressedSize64, math.MaxUint32)), uint32(min(h.UncompressedSize64, math.MaxUint32))
	return n, err
}

// NewArchiveWriter returns an ArchiveWriter that writes to w.
func NewArchiveWriter(w io.Writer) *ArchiveWriter { return &ArchiveWriter{zip: zip.NewWriter(w)} }

// Create adds an array and returns the writer of its .npy file. The file must be written before the next call of
// Create or Close.
func (a *ArchiveWriter) Create(name string) (io.Writer, error) {
	const (
		sizesFollow = 8        // flag: the size and the checksum follow the data
		date        = 1<<5 | 1 // 1 January 1980, the earliest of a zip file, as in NumPy's files
		version     = 20
	)
	//lint:ignore SA1019 the zip package writes ModifiedDate of a raw member, not Modified
	h := &zip.FileHeader{Name: name + extension, Method: zip.Store, Flags: sizesFollow, ModifiedDate: date, CreatorVersion: version, ReaderVersion: version}
	w, err := a.zip.CreateRaw(h)
	a.member = &member{h, w}
	return a.member, err
}

// SetHeader replaces the header of the archive's first array in file, to which a writes. Call it after the array's
// elements are written, before the next Create. Both headers must have one dimension and thus the same length.
func (a *ArchiveWriter) SetHeader(file io.WriterAt, was, header Header) error {
	const localHeader = 30 // bytes, before the name
	var before, after bytes.Buffer
	if err := cmp.Or(a.zip.Flush(), WriteHeader(&before, was), WriteHeader(&after, header)); err != nil {
		return err
	}
	h := a.member.header
	changed := crc32.ChecksumIEEE(before.Bytes()) ^ crc32.ChecksumIEEE(after.Bytes())
	h.CRC32 ^= shiftCRC(changed, h.UncompressedSize64-uint64(after.Len()))
	_, err := file.WriteAt(after.Bytes(), localHeader+int64(len(h.Name)))
	return err
}

// shiftCRC returns the change of a CRC-32 after n more bytes, given its change before them: change·x^(8n) modulo the
// polynomial. The CRC-32 of two parts is the CRC-32 of the first, shifted by the length of the second, xor the CRC-32 of
// the second. Bits are reflected: the highest is the coefficient of x⁰.
func shiftCRC(change uint32, n uint64) uint32 {
	multiply := func(a, b uint32) (product uint32) {
		for ; a != 0; a <<= 1 {
			product ^= b & -(a >> 31)
			b = b>>1 ^ crc32.IEEE&-(b&1)
		}
		return product
	}
	for power := uint32(1) << 23; n != 0; n >>= 1 { // x⁸, x¹⁶, x³², …
		if n&1 != 0 {
			change = multiply(change, power)
		}
		power = multiply(power, power)
	}
	return change
}

// Close writes the directory at the end of the file. It doesn't close the underlying writer.
func (a *ArchiveWriter) Close() error { return a.zip.Close() }
