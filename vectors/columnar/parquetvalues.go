package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go/format"

	"overcomplete/vectors/internal/tabular"
)

// Values are decoded in small batches, so that no memory is allocated for a size that a header merely declares.

var (
	errShort       = errors.New("it has fewer values than it declares, or is damaged")
	errLong        = errors.New("it has more values than it declares, or is damaged")
	errUnsupported = errors.New("unsupported")
)

// decodeNumbers is the [decoder] of numbers.
func decodeNumbers(l leaf, encoding format.Encoding, limit int, b []byte) (func([]float32) error, error) {
	split := encoding == format.ByteStreamSplit // the first bytes of all numbers, then their second bytes, …
	if !split && encoding != format.Plain {
		return nil, errEncoding(encoding)
	}
	if l.defined == 0 && len(b) > limit*l.size { // no value can be null, so the limit is the number of values
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

// join reverses the byte stream split of numbers of size bytes.
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
	return fmt.Errorf("%w encoding (got %v, want PLAIN, BYTE_STREAM_SPLIT or a dictionary)", errUnsupported, encoding)
}

// decodeText is the [decoder] of strings, and of numbers and booleans that are read as strings.
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
	case l.Kind == tabular.Scalar && l.print == nil:
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
	return filler(func() (string, error) { // length and bytes
		length, err := cut(4)
		if err != nil {
			return "", err
		}
		value, err := cut(int(binary.LittleEndian.Uint32(length)))
		return string(value), err
	}), nil
}

// filler returns a function that fills a slice with the results of next.
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
	case encoding == format.RLE && len(b) >= 4: // after a length of 4 bytes
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

// packed decodes bit-packed integers of width bits, at most 32, from the lowest bit of each byte.
type packed struct {
	b     []byte
	width int
	at    int // position in bits
}

// unpack fills to with the next integers, whose width must not exceed T's.
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

// runs decodes integers of width bits, at most 32, in Parquet's RLE encoding: runs of a repeated
// value and runs of bit-packed values.
type runs struct {
	b        []byte // the next runs
	width    int
	left     int // integers left in the current run
	repeated bool
	value    uint32 // of a repeated run
	packed   packed // of a bit-packed run
}

// readRuns fills to with the next integers, whose width must not exceed T's.
func readRuns[T uint8 | uint32](r *runs, to []T) error {
	for len(to) > 0 {
		if r.left == 0 {
			if err := r.nextRun(); err != nil {
				return err
			}
		}
		n := min(r.left, len(to))
		if r.repeated {
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
	r.left, r.repeated = int(header>>1), header&1 == 0
	if !r.repeated {
		// Some programs truncate the last group of eight.
		length := min(r.left*r.width, len(r.b))
		r.packed = packed{b: r.b[:length], width: r.width}
		r.b = r.b[length:]
		r.left *= 8
		return nil
	}
	if r.left == 0 { // some programs append zeros
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
