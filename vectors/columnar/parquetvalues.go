package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go/format"
)

// Values are read a few at a time, so that a header alone allocates nothing.

var (
	errShort   = errors.New("it has fewer values than it says, or damaged ones")
	errNotRead = errors.New("which is not read")
	errLong    = errors.New("it has more values than it says, or damaged ones")
)

// decodeNumbers is the [decoder] of numbers.
func decodeNumbers(l leaf, encoding format.Encoding, most int, b []byte) (func([]float32) error, error) {
	split := encoding == format.ByteStreamSplit // the first bytes of all numbers, the second bytes of all, …
	if !split && encoding != format.Plain {
		return nil, errEncoding(encoding)
	}
	if l.defined == 0 && len(b) > most*l.size { // and none is null
		return nil, errLong
	}
	if split {
		b = join(b, l.size)
	}
	return func(numbers []float32) error {
		n := l.size * len(numbers)
		if n > len(b) {
			return errShort
		}
		l.floats(numbers, b[:n])
		b = b[n:]
		return nil
	}, nil
}

// join returns the bytes of numbers one number after the other, of which b has the first bytes of all,
// the second bytes of all and so on.
func join(b []byte, size int) []byte {
	n := len(b) / size
	joined := make([]byte, n*size)
	for k := range size {
		for i, x := range b[k*n : (k+1)*n] {
			joined[i*size+k] = x
		}
	}
	return joined
}

func errEncoding(encoding format.Encoding) error {
	return fmt.Errorf("encoded as %v, %w; want PLAIN, BYTE_STREAM_SPLIT or a dictionary", encoding, errNotRead)
}

// decodeText is the [decoder] of strings, and of scalars that are printed.
func decodeText(l leaf, encoding format.Encoding, _ int, b []byte) (func([]string) error, error) {
	cut := func(n int) ([]byte, error) {
		if n < 0 || n > len(b) {
			return nil, errShort
		}
		value := b[:n]
		b = b[n:]
		return value, nil
	}
	switch {
	case l.kind == scalar && l.print == nil:
		return decodeBits(encoding, b)
	case encoding != format.Plain:
		return nil, errEncoding(encoding)
	case l.print != nil:
		return filler(func() (string, error) {
			value, err := cut(l.size)
			if err != nil {
				return "", err
			}
			return l.print(value), nil
		}), nil
	}
	return filler(func() (string, error) { // its length before each
		length, err := cut(4)
		if err != nil {
			return "", err
		}
		value, err := cut(int(binary.LittleEndian.Uint32(length)))
		return string(value), err
	}), nil
}

// filler returns a function that fills a slice with what next returns.
func filler(next func() (string, error)) func([]string) error {
	return func(values []string) (err error) {
		for i := range values {
			if values[i], err = next(); err != nil {
				return err
			}
		}
		return nil
	}
}

// decodeBits is the [decoder] of booleans.
func decodeBits(encoding format.Encoding, b []byte) (func([]string) error, error) {
	plain := &packed{b: b, width: 1}
	read := func(to []uint8) error { return unpack(plain, to) }
	switch {
	case encoding == format.RLE && len(b) >= 4: // their length before all
		r := &runs{b: b[4:], width: 1}
		read = func(to []uint8) error { return readRuns(r, to) }
	case encoding != format.Plain:
		return nil, errEncoding(encoding)
	}
	return filler(func() (string, error) {
		var x [1]uint8
		err := read(x[:])
		return strconv.FormatBool(x[0] > 0), err
	}), nil
}

// packed has integers of width bits, 32 at most, from the lowest bit of each byte on.
type packed struct {
	b     []byte
	width int
	at    int // bits that were read
}

// unpack reads integers, which must have no more bits than T.
func unpack[T uint8 | uint32](p *packed, to []T) error {
	if len(to)*p.width > 8*len(p.b)-p.at {
		return errShort
	}
	for i := range to {
		var bits uint64
		if b := p.b[p.at/8:]; len(b) >= 8 {
			bits = binary.LittleEndian.Uint64(b)
		} else {
			for k, x := range b {
				bits |= uint64(x) << (8 * k)
			}
		}
		to[i] = T(bits >> (p.at % 8) & (1<<p.width - 1))
		p.at += p.width
	}
	return nil
}

// runs has integers of width bits, 32 at most, that are encoded as RLE: one many times, or
// packed ones, in turns.
type runs struct {
	b      []byte // of the runs that follow
	width  int
	left   int // integers of this run that follow
	same   bool
	value  uint32 // of all of them, if it is the same
	packed packed
}

// readRuns reads integers, which must have no more bits than T.
func readRuns[T uint8 | uint32](r *runs, to []T) error {
	for len(to) > 0 {
		if r.left == 0 {
			if err := r.nextRun(); err != nil {
				return err
			}
		}
		n := min(r.left, len(to))
		if r.same {
			for i := range n {
				to[i] = T(r.value)
			}
		} else if err := unpack(&r.packed, to[:n]); err != nil {
			return err
		}
		r.left -= n
		to = to[n:]
	}
	return nil
}

func (r *runs) nextRun() error {
	header, n := binary.Uvarint(r.b)
	if n <= 0 || header > math.MaxUint32 || r.width > 32 {
		return errShort
	}
	r.b = r.b[n:]
	r.left, r.same = int(header>>1), header&1 == 0
	if !r.same {
		// Some programs cut the last group of eight short.
		length := min(r.left*r.width, len(r.b))
		r.packed = packed{b: r.b[:length], width: r.width}
		r.b = r.b[length:]
		r.left *= 8
		return nil
	}
	if r.left == 0 { // some programs end with zeros
		return nil
	}
	length := (r.width + 7) / 8
	if length > len(r.b) {
		return errShort
	}
	r.value = 0
	for i, x := range r.b[:length] {
		r.value |= uint32(x) << (8 * i)
	}
	r.b = r.b[length:]
	return nil
}
