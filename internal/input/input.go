// Package input opens the inputs that a user names: files, pipes, or devices without an end.
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

// Wait returns the result of f, or the error of ctx once ctx is done. It then abandons f, because a blocking
// system call cannot be cancelled. If ctx is done already, f isn't called.
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

// Read reads a whole file, which may be a pipe or a device, or standard input for "-". More than most
// bytes, or more than fit into memory, are an error.
func Read(path string, most int) ([]byte, error) {
	if path == "-" {
		data, err := readAll(os.Stdin, most)
		return data, ofFile("standard input", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f, most)
	return data, ofFile(path, err)
}

func readAll(r io.Reader, most int) ([]byte, error) {
	data := make([]byte, 0, 1<<16)
	for len(data) <= most {
		if len(data) == cap(data) {
			if err := memory.Check(uint64(2 * len(data))); err != nil {
				return nil, fmt.Errorf("more than %d bytes, to be read whole: %w", len(data), err)
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
	return nil, tooMuch(most)
}

// ofFile returns err as a PathError.
func ofFile(path string, err error) error {
	if _, ok := err.(*fs.PathError); ok || err == nil {
		return err
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}

func tooMuch(most int) error {
	return fmt.Errorf("more than %d bytes, which is too much to be read whole", most)
}

// A File is an open regular file, with the size that it had when it was opened.
type File struct {
	*io.SectionReader
	file *os.File
}

var errNotRegular = errors.New("is not a regular file")

// Open opens a regular file and refuses anything else, without blocking.
func Open(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err == nil && info.IsDir():
		err = ofFile(path, syscall.EISDIR)
	case err == nil && !info.Mode().IsRegular():
		err = ofFile(path, errNotRegular)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &File{io.NewSectionReader(file, 0, info.Size()), file}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// ReadRegular reads a whole regular file of at most the given number of bytes.
func ReadRegular(path string, most int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > int64(most) {
		return nil, ofFile(path, tooMuch(most))
	}
	data, err := readAll(f, most)
	return data, ofFile(path, err)
}
