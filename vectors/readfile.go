package vectors

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"overcomplete/internal/input"
)

// storedFile reads a file's bytes as they are stored. A goroutine of its own
// reads ahead and hashes, so that a Read that waits for standard input can be
// cancelled.
//
// The file isn't mapped into memory. That would save a tenth of a nanosecond a
// byte, where parsing takes over one, and a file that another process truncates
// would end this one.
type storedFile struct {
	file      *os.File
	ctx       context.Context
	blocks    chan []byte // read ahead
	spare     chan []byte // blocks to read into again
	block     []byte      // what Read takes from
	unread    []byte      // the end of block
	delivered int64       // bytes that Read has returned
	hash      hash.Hash   // of all blocks, once they are closed
	err       error       // why there are no more blocks, once they are closed
}

// open opens the file at path, or standard input if path is "-". Cancelling ctx
// makes it return, and every Read.
func open(ctx context.Context, path string) (*storedFile, error) {
	file, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	const blocks, blockSize = 4, 1 << 16
	f := &storedFile{
		file:   file,
		ctx:    ctx,
		blocks: make(chan []byte, blocks),
		spare:  make(chan []byte, blocks),
		hash:   sha256.New(),
	}
	for range blocks {
		f.spare <- make([]byte, blockSize)
	}
	go f.readAhead()
	return f, nil
}

// openFile opens a file, or standard input. If that is a named pipe, it waits until
// somebody writes to it, or ctx is done.
func openFile(ctx context.Context, path string) (*os.File, error) {
	if path == "-" {
		return os.Stdin, nil
	}
	return input.Wait(ctx, func() (*os.File, error) { return os.Open(path) })
}

func (f *storedFile) readAhead() {
	defer close(f.blocks)
	for f.err == nil {
		var block []byte
		select {
		case block = <-f.spare:
		case <-f.ctx.Done():
			f.err = f.ctx.Err()
			return
		}
		var n int
		n, f.err = f.file.Read(block[:cap(block)])
		f.hash.Write(block[:n])
		f.blocks <- block[:n] // never blocks: there is room for every block
	}
}

func (f *storedFile) Read(p []byte) (int, error) {
	for len(f.unread) == 0 {
		if f.block != nil {
			f.spare <- f.block
			f.block = nil
		}
		select {
		case block, ok := <-f.blocks:
			if !ok {
				return 0, f.err
			}
			f.block, f.unread = block, block
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(p, f.unread)
	f.unread = f.unread[n:]
	f.delivered += int64(n)
	return n, nil
}

// ReadAt reads from anywhere in the file, independently of Read.
func (f *storedFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, offset)
}

// size returns the number of bytes in the file, or -1 if only reading will tell.
func (f *storedFile) size() int64 {
	info, err := f.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// Close closes the file, unless it is standard input. The goroutine that reads
// it ends by itself when ctx is cancelled.
func (f *storedFile) Close() error {
	if f.file == os.Stdin {
		return nil
	}
	return f.file.Close()
}

// sum reads the file to its end and returns the SHA-256 of all of it, in
// hexadecimal.
func (f *storedFile) sum() (string, error) {
	if _, err := io.Copy(io.Discard, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(f.hash.Sum(nil)), nil
}

// decompress returns the content of a file that may be compressed with gzip or
// zstd, as its first bytes tell.
//
// The size is that of the content in bytes, or -1 if it isn't known.
func decompress(f *storedFile) (content *bufio.Reader, size int64, err error) {
	stored := bufio.NewReaderSize(f, window)
	magic, err := stored.Peek(4)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	var d decompressor
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		d.name = "gzip"
		d.content, err = gzip.NewReader(stored)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d.name = "zstd"
		// Without concurrency the decoder needs no Close. The window is what
		// the zstd command allows by default.
		d.content, err = zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	default:
		return stored, f.size(), nil
	}
	if err != nil {
		return nil, 0, d.explain(err)
	}
	return bufio.NewReaderSize(d, window), -1, nil
}

// A decompressor reads decompressed content, with errors that say that it is
// compressed.
type decompressor struct {
	name    string
	content io.Reader
}

func (d decompressor) Read(p []byte) (int, error) {
	n, err := d.content.Read(p)
	if err != nil && err != io.EOF {
		err = d.explain(err)
	}
	return n, err
}

func (d decompressor) explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("the %s data is cut short", d.name)
	}
	return fmt.Errorf("damaged %s data: %w", d.name, err)
}
