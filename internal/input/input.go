// Package input opens the files, pipes and devices that a user names, and bounds the memory for reading them:
//
//	members, err := input.Files([]string{"shards/*.parquet"})
//	data, err := input.Read("labels.csv", 1<<26)
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"overcomplete/internal/memory"
)

// Wait returns the result of f or, once ctx is done, ctx.Err(). It then abandons the goroutine of f, because a
// blocking system call can't be cancelled. If ctx is done already, Wait doesn't call f.
func Wait[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Read reads a whole file, pipe or device, or standard input for "-". It returns an error if there are
// more than limit bytes, or more than fit into memory.
func Read(path string, limit int) ([]byte, error) {
	if path == "-" {
		data, err := ReadAll(os.Stdin, limit)
		return data, pathError("standard input", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := ReadAll(f, limit)
	return data, pathError(path, err)
}

// ReadAll reads all bytes of r. It returns an error if there are more than limit bytes, or more than fit into memory.
func ReadAll(r io.Reader, limit int) ([]byte, error) {
	data := make([]byte, 0, 1<<16)
	for len(data) <= limit {
		if len(data) == cap(data) {
			if err := memory.Check(uint64(2 * len(data))); err != nil {
				return nil, fmt.Errorf("more than %d bytes to hold in memory: %w", len(data), err)
			}
			data = slices.Grow(data, len(data))
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, tooLarge(limit)
}

func pathError(path string, err error) error {
	if _, ok := err.(*fs.PathError); ok || err == nil {
		return err
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}

func tooLarge(limit int) error { return fmt.Errorf("too large (want at most %d bytes)", limit) }

// A File is an open regular file. Its size is fixed when it is opened.
type File struct {
	*io.SectionReader
	file *os.File
}

var errNotRegular = errors.New("is not a regular file")

// Open opens a regular file. It returns an error for anything else, and never blocks.
func Open(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return regular(file)
}

// OpenAt is [Open] for a file of an open directory. Files opened in it belong to the same directory, even if it
// is replaced meanwhile, except on Windows.
func OpenAt(dir *os.File, name string) (*File, error) {
	file, err := openAt(dir, name)
	if err != nil {
		return nil, err
	}
	return regular(file)
}

// regular returns file if it is a regular file. Otherwise it closes the file and returns an error.
func regular(file *os.File) (*File, error) {
	path := file.Name()
	info, err := file.Stat()
	switch {
	case err == nil && info.IsDir():
		err = pathError(path, syscall.EISDIR)
	case err == nil && !info.Mode().IsRegular():
		err = pathError(path, errNotRegular)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &File{io.NewSectionReader(file, 0, info.Size()), file}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// ReadRegular reads a whole regular file of at most limit bytes.
func ReadRegular(path string, limit int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadAll(limit)
}

// ReadAll reads a whole file of at most limit bytes.
func (f *File) ReadAll(limit int) ([]byte, error) {
	if f.Size() > int64(limit) {
		return nil, pathError(f.file.Name(), tooLarge(limit))
	}
	data, err := ReadAll(f, limit)
	return data, pathError(f.file.Name(), err)
}
