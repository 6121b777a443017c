package npy

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
	"time"
)

// An Archive is the content of a .npz file.
type Archive struct {
	zip  *zip.Reader
	size int64
}

// NewArchive opens r, a .npz file of size bytes. It is an error if it is not one.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a .npz file: %w", err)
	}
	return &Archive{z, size}, nil
}

// Names returns the names of the arrays, in the file's order.
func (a *Archive) Names() []string {
	var names []string
	for _, f := range a.zip.File {
		if name, ok := strings.CutSuffix(f.Name, ".npy"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Open opens the named array, and returns a reader and max for one of the Read
// functions. The reader returns an error instead of io.EOF if the array's checksum does
// not hold. It is an error if the archive has no array of that name.
func (a *Archive) Open(name string) (r io.ReadCloser, max int64, err error) {
	for _, f := range a.zip.File {
		if f.Name != name+".npy" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, 0, fmt.Errorf("array %q: %w", name, err)
		}
		if f.Method != zip.Store {
			return r, -1, nil // how much it expands to is known only at the end
		}
		return r, a.size, nil
	}
	return nil, 0, fmt.Errorf("no array %q in it, only %q", name, a.Names())
}

// Read reads the named array of a with read, which is one of the Read functions. Errors
// name the array.
func Read[T any](a *Archive, name string, read func(r io.Reader, max int64) ([]int, []T, error)) (shape []int, data []T, err error) {
	r, max, err := a.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	shape, data, err = read(r, max)
	if err != nil {
		return nil, nil, fmt.Errorf("array %q: %w", name, err)
	}
	return shape, data, nil
}

// An ArchiveWriter writes a .npz file. It records no time, so that equal arrays give
// equal files. The arrays are not compressed: floating-point numbers hardly shrink, and
// compressing them is slower than most disks.
type ArchiveWriter struct {
	zip *zip.Writer
}

// modified is the time given to every array: the first that a zip file can hold,
// as NumPy does.
var modified = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// NewArchiveWriter returns a writer of a .npz file to w.
func NewArchiveWriter(w io.Writer) *ArchiveWriter {
	return &ArchiveWriter{zip.NewWriter(w)}
}

// Create adds an array and returns the writer for its .npy file, which must be written
// before the next call of Create or Close.
func (a *ArchiveWriter) Create(name string) (io.Writer, error) {
	return a.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store, Modified: modified})
}

// Close writes the directory that ends the file. It does not close the
// underlying writer.
func (a *ArchiveWriter) Close() error {
	return a.zip.Close()
}
