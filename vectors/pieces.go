package vectors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync"
)

const (
	textChunk = 1 << 18 // bytes of text per piece
	maxLine   = 1 << 25 // bytes, enough for MaxDim numbers of 31 bytes
)

// A splitter splits a file into pieces of about size bytes. Each piece ends after a record, such as a line.
type splitter struct {
	file io.Reader
	size int

	// cut returns the end of the last complete record in b, or 0, and the offset of an unclosed quote after it, or -1.
	// If last is set, b extends to the end of the file.
	cut func(b []byte, last bool) (end, quote int)

	first   []byte // if not nil, the next result of the method piece
	next    []byte // begins with the bytes after the previous piece
	err     error  // the reason why no piece follows, or nil; the line of an [InputError] counts from the end of the previous piece
	buffers sync.Pool
}

var errQuote = fmt.Errorf("the quote that begins in this line doesn't end within the file, or within %d bytes", maxLine)

// cutLines returns the end of the last complete line in b; see [splitter].
func cutLines(b []byte, _ bool) (end, quote int) { return bytes.LastIndexByte(b, '\n') + 1, -1 }

// piece returns the next piece, which the caller owns, or the reason why no piece follows. The caller may return the
// memory of the piece to s.buffers.
func (s *splitter) piece() ([]byte, error) {
	if first := s.first; first != nil {
		s.first = nil
		return first, nil
	}
	if s.err != nil {
		return nil, s.err
	}
	buf := s.next
	if buf == nil {
		buf = make([]byte, 0, s.size)
	}
	for {
		n, err := io.ReadFull(s.file, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		end, quote := s.cut(buf, last)
		if quote >= 0 && (last || end == 0 && len(buf) >= maxLine) {
			s.err = &InputError{Line: bytes.Count(buf[end:quote], newline) + 1, Err: errQuote}
			return buf[:end], nil
		}
		if last {
			s.err = io.EOF
			return buf, nil
		}
		if err != nil {
			s.err = err
			return buf[:end], nil
		}
		if end == 0 {
			if len(buf) >= maxLine {
				s.err = fmt.Errorf("a line is too long (want at most %d bytes)", maxLine)
				return nil, s.err
			}
			buf = slices.Grow(buf, len(buf))
			continue
		}
		rest := buf[end:]
		next, ok := s.buffers.Get().(*[]byte)
		if !ok || cap(*next) < 2*len(rest) {
			next = new(make([]byte, max(s.size, 2*len(rest))))
		}
		s.next = append((*next)[:0], rest...)
		return buf[:end], nil
	}
}

// parsePieces calls parse with each piece of a file, on all CPUs, and yields the results in order; see [inOrder].
func parsePieces[T any](ctx context.Context, s *splitter, ended func() bool, parse func(piece []byte) T) iter.Seq2[T, error] {
	return inOrder(ctx, runtime.GOMAXPROCS(0), func(yield func(func() (T, error), error) bool) {
		for {
			piece, err := s.piece()
			if err == io.EOF {
				return
			}
			job := func() (T, error) {
				defer s.buffers.Put(&piece)
				return parse(piece), nil
			}
			if !yield(job, err) || err != nil {
				return
			}
		}
	}, ended)
}

// inOrder yields the results of jobs, in the order of the jobs, up to the first error. Each job runs in a goroutine. Up
// to n results wait in addition to the next result to yield. If the caller stops the iteration and ended returns true,
// inOrder returns only after the iteration over jobs has ended.
func inOrder[T any](ctx context.Context, n int, jobs iter.Seq2[func() (T, error), error], ended func() bool) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		pending := make(chan chan result, n)
		go func() {
			defer close(pending)
			for job, err := range jobs {
				done := make(chan result, 1)
				select {
				case pending <- done:
				case <-ctx.Done():
					return
				}
				if err != nil {
					done <- result{err: err}
					return
				}
				go func() {
					value, err := job()
					done <- result{value, err}
				}()
			}
		}()
		for done := range pending {
			r := <-done
			if yield(r.value, r.err) && r.err == nil {
				continue
			}
			cancel()
			if ended() { // the method sum will read the rest of the file
				for range pending {
				}
			} // otherwise don't wait for the goroutine, which may be waiting for standard input
			return
		}
		if err := ctx.Err(); err != nil { // not all jobs have run
			var none T
			yield(none, err)
		}
	}
}
