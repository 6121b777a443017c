package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
)

// Values are decoded in small batches, but a page in a delta encoding is decoded at once. At most 512 values per byte
// are decoded, so that a declared size alone allocates no memory. In parquet-go, seven bytes can declare 2³¹ values.

var (
	errShort       = errors.New("it has fewer values than it declares, or is damaged")
	errLong        = errors.New("it has more values than it declares, or is damaged")
	errUnsupported = errors.New("unsupported")
)

// A source returns the next n values of a page in PLAIN encoding. For strings, n must be 1, and the result lacks the
// length field of the encoding. The next call overwrites the values.
type source func(n int) ([]byte, error)

// newSource returns the source of a page b, which has at most limit values.
func newSource(l leaf, encoding format.Encoding, limit int, b []byte) (source, error) {
	integer, bytes := l.physical == format.Int32 || l.physical == format.Int64, l.physical == format.ByteArray
	switch {
	case l.physical == format.Boolean:
		return decodeBits(encoding, b)
	case !bytes && (encoding == format.Plain || encoding == format.ByteStreamSplit):
		if l.defined == 0 && len(b) > limit*l.size { // no value can be null, so the limit is the number of values
			return nil, errLong
		}
		if encoding == format.ByteStreamSplit {
			b = join(b, l.size)
		}
		return func(n int) ([]byte, error) { return cut(&b, n*l.size) }, nil
	case encoding == format.Plain:
		return func(int) ([]byte, error) { return cutSized(&b) }, nil
	case encoding == format.DeltaBinaryPacked && integer:
		return decodeDelta(l.size, limit, b)
	case encoding == format.DeltaLengthByteArray && bytes:
		return decodeStrings(l, limit, b, false)
	case encoding == format.DeltaByteArray && (bytes || l.physical == format.FixedLenByteArray):
		return decodeStrings(l, limit, b, true)
	}
	return nil, fmt.Errorf("%w encoding of %v (got %v)", errUnsupported, l.physical, encoding)
}

func cut(b *[]byte, n int) ([]byte, error) {
	if n < 0 || n > len(*b) {
		return nil, errShort
	}
	value := (*b)[:n]
	*b = (*b)[n:]
	return value, nil
}

// cutSized cuts a length of 4 bytes off the beginning of b, and then that number of bytes, which it returns.
func cutSized(b *[]byte) ([]byte, error) {
	length, err := cut(b, 4)
	if err != nil {
		return nil, err
	}
	return cut(b, int(binary.LittleEndian.Uint32(length)))
}

// join returns numbers of size bytes. b has the first bytes of all numbers, then their second bytes, and so on.
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

// decodeBits returns a source that returns each boolean as one byte.
func decodeBits(encoding format.Encoding, b []byte) (source, error) {
	plain := &packed{b: b, width: 1}
	read := func(to []uint8) error { return unpack(plain, to) }
	switch {
	case encoding == format.RLE && len(b) >= 4: // the runs follow a length field of 4 bytes
		r := &runs{b: b[4:], width: 1}
		read = func(to []uint8) error { return readRuns(r, to) }
	case encoding != format.Plain:
		return nil, fmt.Errorf("%w encoding of booleans (got %v)", errUnsupported, encoding)
	}
	var bits []byte
	return func(n int) ([]byte, error) {
		bits = slices.Grow(bits[:0], n)[:n]
		return bits, read(bits)
	}, nil
}

// decodeDelta returns the source of whole numbers of size bytes in DELTA_BINARY_PACKED encoding.
func decodeDelta(size, limit int, b []byte) (source, error) {
	numbers, _, err := deltas(b, limit)
	plain := make([]byte, 0, 8*len(numbers))
	for _, x := range numbers {
		plain = binary.LittleEndian.AppendUint64(plain, uint64(x))[:len(plain)+size]
	}
	return func(n int) ([]byte, error) { return cut(&plain, n*size) }, err
}

// decodeStrings returns the source of strings in DELTA_LENGTH_BYTE_ARRAY encoding: lengths, then bytes. If shared is
// set, each string shares a prefix with the previous one (DELTA_BYTE_ARRAY), and the lengths of the prefixes come
// first.
func decodeStrings(l leaf, limit int, b []byte, shared bool) (source, error) {
	var prefixes, lengths []int64
	var err error
	if shared {
		if prefixes, b, err = deltas(b, limit); err != nil {
			return nil, err
		}
	}
	if lengths, b, err = deltas(b, limit); err != nil {
		return nil, err
	}
	prefixes = append(prefixes, make([]int64, max(0, len(lengths)-len(prefixes)))...)
	var value, all []byte
	return func(n int) ([]byte, error) {
		if n > len(lengths) {
			return nil, errShort
		}
		all = all[:0]
		for range n {
			rest, err := cut(&b, int(lengths[0]))
			prefix := prefixes[0]
			prefixes, lengths = prefixes[1:], lengths[1:]
			if err != nil || prefix < 0 || prefix > int64(len(value)) {
				return nil, errShort
			}
			if value = append(value[:prefix], rest...); l.size > 0 && len(value) != l.size {
				return nil, errShort
			}
			all = append(all, value...)
		}
		return all, nil
	}, nil
}

// deltas decodes at most limit whole numbers in DELTA_BINARY_PACKED encoding: the first number, then blocks of
// differences between successive numbers. A block stores its minimum difference. Then it stores how much the
// differences exceed it, bit-packed in parts of different widths. deltas also returns the bytes after the last block.
func deltas(b []byte, limit int) (numbers []int64, rest []byte, err error) {
	var header [3]uint64 // differences per block, parts per block, and numbers in all
	for i := range header {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, nil, errShort
		}
		header[i], b = x, b[n:]
	}
	x, n := binary.Varint(b)
	// A few bytes can declare many differences of zero. Writers put at most a few thousand differences into a block. A
	// block has at least a byte for its minimum and a byte for each of its parts, four or more.
	const maxBlock, maxPerByte = 1 << 16, 512
	size, parts := header[0], header[1]
	switch {
	case n <= 0:
		return nil, nil, errShort
	case size > maxBlock || parts == 0 || size/parts == 0 || size%(8*parts) != 0:
		return nil, nil, errHeader
	case header[2] > uint64(limit):
		return nil, nil, errLong
	case header[2] > 1+maxPerByte*uint64(len(b)):
		return nil, nil, errShort
	}
	b = b[n:]
	numbers = append(numbers, x)[:min(1, header[2])]
	left := int(header[2]) - 1
	differences := make([]uint64, size/parts)
	for left > 0 {
		minimum, n := binary.Varint(b)
		if n <= 0 || int(parts) > len(b)-n {
			return nil, nil, errShort
		}
		widths := b[n:][:parts]
		b = b[n+int(parts):]
		for ; len(widths) > 0 && left > 0; widths = widths[1:] {
			width, part := int(widths[0]), differences[:min(left, len(differences))]
			if width > 64 {
				return nil, nil, errHeader
			}
			if n := len(numbers) + len(part); n > cap(numbers) {
				if err := memory.Check(3 * 8 * uint64(n)); err != nil { // the old memory, and the new memory of twice the size
					return nil, nil, err
				}
			}
			length := min(len(differences)*width/8, len(b)) // some programs truncate the last part
			if err := unpack(&packed{b: b[:length], width: width}, part); err != nil {
				return nil, nil, err
			}
			b = b[length:]
			left -= len(part)
			for _, difference := range part {
				x += minimum + int64(difference)
				numbers = append(numbers, x)
			}
		}
	}
	return numbers, b, nil
}

// packed decodes bit-packed integers of at most 64 bits. The lowest bits of a byte come first.
type packed struct {
	b     []byte
	width int
	at    int // position in bits
}

// unpack decodes the next len(to) integers. They must not be wider than T.
func unpack[T uint8 | uint32 | uint64](p *packed, to []T) error {
	if len(to)*p.width > 8*len(p.b)-p.at {
		return errShort
	}
	for i := range to {
		var bits uint64
		b, shift := p.b[p.at/8:], p.at%8
		if len(b) >= 8 {
			bits = binary.LittleEndian.Uint64(b) >> shift
			if p.width > 64-shift {
				bits |= uint64(b[8]) << (64 - shift)
			}
		} else {
			bits = unsignedOf(b) >> shift
		}
		to[i] = T(bits & (1<<p.width - 1))
		p.at += p.width
	}
	return nil
}

// runs decodes integers of width bits, at most 32, in Parquet's RLE encoding: runs of a repeated
// value and runs of bit-packed values.
type runs struct {
	b        []byte // bytes of the next runs
	width    int
	left     int // integers left in the current run
	repeated bool
	value    uint32 // the value of a repeated run
	packed   packed // the integers of a bit-packed run
}

// readRuns decodes the next len(to) integers. They must not be wider than T.
func readRuns[T uint8 | uint32](r *runs, to []T) error {
	for len(to) > 0 {
		if r.left == 0 {
			if err := r.nextRun(); err != nil {
				return err
			}
		}
		n := min(r.left, len(to))
		if r.repeated {
			fill(to[:n], T(r.value))
		} else if err := unpack(&r.packed, to[:n]); err != nil {
			return err
		}
		r.left -= n
		to = to[n:]
	}
	return nil
}

func fill[T any](to []T, x T) {
	if len(to) == 0 {
		return
	}
	to[0] = x
	for n := 1; n < len(to); n *= 2 {
		copy(to[n:], to[:n])
	}
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
	value, err := cut(&r.b, (r.width+7)/8)
	r.value = uint32(unsignedOf(value))
	return err
}
