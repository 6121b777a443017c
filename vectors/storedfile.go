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
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"overcomplete/internal/input"
)

// storedFile reads the bytes of a file as stored, without decompression. A goroutine
// reads ahead and hashes, so that a Read that waits for standard input can be cancelled.
//
// The file isn't mapped into memory. That would save 0.1 ns per byte, while parsing takes
// more than 1 ns, and a file that another process truncates would crash the program.
type storedFile struct {
	file      *os.File
	info      os.FileInfo // at the time of opening
	ctx       context.Context
	cancel    context.CancelFunc // ends the goroutine that reads ahead
	blocks    chan []byte        // read ahead
	spare     chan []byte        // blocks to reuse
	block     []byte             // current block of Read
	unread    []byte             // unread part of the field block
	delivered atomic.Int64       // bytes that Read and ReadAt have returned
	hash      hash.Hash          // hash of all blocks once the channel blocks is closed; nil if known isn't ""
	known     string             // SHA-256 of an earlier reading, or ""
	err       error              // the reason why reading ended, once the channel blocks is closed
	rest      chan struct{}      // closed when the goroutine of readRest ends; nil until readRest is called
}

// open opens the file at path, or standard input if path is "-". If ctx is cancelled, open and Read return. If an
// earlier reading recorded the file's state, the file isn't hashed again.
func open(ctx context.Context, path string, earlier fileState) (*storedFile, error) {
	file := os.Stdin
	if path != "-" {
		var err error // the error of ctx, if ctx ends before a named pipe has a writer
		if file, err = input.Wait(ctx, func() (*os.File, error) { return os.Open(path) }); err != nil {
			return nil, err
		}
	}
	const blocks = 4
	ctx, cancel := context.WithCancel(ctx)
	f := &storedFile{file: file, ctx: ctx, cancel: cancel, info: earlier.info, known: earlier.sha256,
		blocks: make(chan []byte, blocks), spare: make(chan []byte, blocks)}
	if f.known == "" { // otherwise the method changed compares the file with f.info
		var err error
		if f.info, err = file.Stat(); err != nil {
			f.Close()
			return nil, err
		}
		f.hash = sha256.New()
	}
	for range blocks {
		f.spare <- make([]byte, f.bufferSize(1<<16))
	}
	go f.readAhead()
	return f, nil
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
		if f.hash != nil {
			f.hash.Write(block[:n])
		}
		f.blocks <- block[:n] // never blocks: the channel has room for every block
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
	f.delivered.Add(int64(n))
	return n, nil
}

// ReadAt reads at an offset, independently of Read.
func (f *storedFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.file.ReadAt(p, offset)
	f.delivered.Add(int64(n))
	return n, err
}

// bufferSize returns the size of a buffer for the file: limit bytes, or fewer if the file is smaller.
func (f *storedFile) bufferSize(limit int) int {
	if size := f.size(); size >= 0 {
		return int(min(size+1, int64(limit)))
	}
	return limit
}

// size returns the number of bytes of a regular file, or -1 for other files.
func (f *storedFile) size() int64 {
	if !f.info.Mode().IsRegular() {
		return -1
	}
	return f.info.Size()
}

// Close closes the file, except standard input. The goroutine that reads ahead ends after its current block.
func (f *storedFile) Close() error {
	f.cancel()
	if f.file == os.Stdin {
		return nil
	}
	return f.file.Close()
}

// sum returns the SHA-256 of the whole file, in hexadecimal. It reads the file to its end unless the hash is known. It
// returns an error if a regular file has changed since it was opened, or since the reading that computed a known hash.
func (f *storedFile) sum() (string, error) {
	if f.known != "" {
		return f.known, f.changed()
	}
	f.readRest()
	select {
	case <-f.rest:
	case <-f.ctx.Done():
		return "", f.ctx.Err()
	}
	if f.err != io.EOF {
		return "", f.err
	}
	return hex.EncodeToString(f.hash.Sum(nil)), f.changed()
}

// readRest starts to read the rest of the file for its hash. Read must not be called afterwards.
func (f *storedFile) readRest() {
	if f.rest != nil || f.known != "" {
		return
	}
	f.rest = make(chan struct{})
	go func() {
		if f.block != nil {
			f.spare <- f.block
		}
		for block := range f.blocks {
			f.spare <- block
		}
		close(f.rest)
	}()
}

// changed returns an error if a regular file has changed since it was opened.
func (f *storedFile) changed() error {
	was := f.info
	is, err := f.file.Stat()
	if err == nil && was.Mode().IsRegular() && !sameFile(was, is) {
		change := "it was written at " + is.ModTime().Format(time.DateTime)
		if was.Size() != is.Size() {
			change = fmt.Sprintf("from %d bytes to %d", was.Size(), is.Size())
		}
		err = fmt.Errorf("the file changed during reading (%s)", change)
	}
	return err
}

// decompress returns the content of a file and its size in bytes, or -1 if the size is
// unknown. It detects gzip and zstd from the first bytes.
func decompress(f *storedFile) (content *bufio.Reader, size int64, err error) {
	stored := bufio.NewReaderSize(f, f.bufferSize(window))
	magic, err := stored.Peek(4)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	var d decompressor
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		members := gzipMembers{new(gzip.Reader), stored}
		d.name, d.content, err = "gzip", members, members.next()
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		d.name = "zstd"
		// Without concurrency the decoder needs no Close. The maximum window is the
		// default of the zstd command.
		d.content, err = zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	default:
		return stored, f.size(), nil
	}
	if err != nil {
		return nil, 0, d.explain(err)
	}
	return bufio.NewReaderSize(d, window), -1, nil
}

// gzipMembers reads the members of a gzip file and, as gzip does, skips zeros after each of them.
type gzipMembers struct {
	*gzip.Reader
	stored *bufio.Reader
}

// next begins the next member. After the last one it returns io.EOF.
func (g gzipMembers) next() error {
	first, err := g.stored.Peek(1)
	for err == nil && first[0] == 0 {
		g.stored.Discard(1)
		first, err = g.stored.Peek(1)
	}
	if err == nil {
		err = g.Reset(g.stored)
		g.Multistream(false)
	}
	return err
}

func (g gzipMembers) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if n, err = g.Reader.Read(p); err == io.EOF {
			err = g.next()
		}
	}
	return n, err
}

// A decompressor reads decompressed content. Its errors name the compression.
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
		return fmt.Errorf("the %s data are cut short", d.name)
	}
	return fmt.Errorf("damaged %s data: %w", d.name, err)
}
