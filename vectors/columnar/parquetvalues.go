package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
)

// Parquet's encodings of values, as functions that read the next few of a page: memory is taken
// for what is there, not for what is declared.

var (
	errShort = errors.New("it has fewer values than it says, or damaged ones")
	errLong  = errors.New("it has more values than it says, or damaged ones")
)

// decodeNumbers is the [decoder] of numbers.
func decodeNumbers(l leaf, encoding format.Encoding, most int, b []byte) (func([]float32) error, error) {
	known := encoding == format.Plain || encoding == format.ByteStreamSplit
	if known && l.defined == 0 && len(b) > most*l.size { // and none is null
		return nil, errLong
	}
	switch encoding {
	case format.Plain:
		return func(numbers []float32) error {
			n := l.size * len(numbers)
			if n > len(b) {
				return errShort
			}
			l.floats(numbers, b[:n])
			b = b[n:]
			return nil
		}, nil
	case format.ByteStreamSplit: // the first bytes of all numbers, the second bytes of all, …
		all, done := len(b)/l.size, 0
		x := make([]byte, l.size)
		return func(numbers []float32) error {
			if len(numbers) > all-done {
				return errShort
			}
			for i := range numbers {
				for k := range x {
					x[k] = b[k*all+done]
				}
				l.floats(numbers[i:i+1], x)
				done++
			}
			return nil
		}, nil
	}
	return nil, fmt.Errorf("numbers encoded as %v, which is not read", encoding)
}

// decodeText is the [decoder] of strings, and of what is kept as strings.
func decodeText(l leaf, encoding format.Encoding, most int, b []byte) (func([]string) error, error) {
	var next func() (string, error)
	switch {
	case l.print != nil && encoding == format.Plain:
		next = func() (string, error) {
			if len(b) < l.size {
				return "", errShort
			}
			s := l.print(b[:l.size])
			b = b[l.size:]
			return s, nil
		}
		return filler(next), nil
	case l.kind == scalar && l.print == nil:
		return decodeBits(encoding, b)
	case l.print != nil:
		return nil, fmt.Errorf("numbers encoded as %v, which is not read", encoding)
	}
	cut := func(n int) (string, error) {
		if n < 0 || n > len(b) {
			return "", errShort
		}
		s := string(b[:n])
		b = b[n:]
		return s, nil
	}
	switch encoding {
	case format.Plain: // its length before each
		next = func() (string, error) {
			if len(b) < 4 {
				return "", errShort
			}
			n := binary.LittleEndian.Uint32(b)
			b = b[4:]
			return cut(int(n))
		}
	case format.DeltaLengthByteArray: // lengths before all
		lengths, rest, err := cutDeltas(b, most)
		if err != nil {
			return nil, err
		}
		b = rest
		next = func() (string, error) {
			n, err := lengths.next()
			if err != nil {
				return "", err
			}
			return cut(n)
		}
	case format.DeltaByteArray: // and how much of each is that of the one before
		prefixes, rest, err := cutDeltas(b, most)
		if err != nil {
			return nil, err
		}
		lengths, rest, err := cutDeltas(rest, most)
		if err != nil {
			return nil, err
		}
		b = rest
		if err := checkSum(*prefixes, *lengths); err != nil {
			return nil, err
		}
		last := ""
		next = func() (string, error) {
			prefix, err := prefixes.next()
			if err != nil {
				return "", err
			}
			n, err := lengths.next()
			if err != nil {
				return "", err
			}
			suffix, err := cut(n)
			if err != nil || prefix < 0 || prefix > len(last) {
				return "", errShort
			}
			last = last[:prefix] + suffix
			return last, nil
		}
	default:
		return nil, fmt.Errorf("text encoded as %v, which is not read", encoding)
	}
	return filler(next), nil
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

// decodeBits is the [decoder] of what is true or false.
func decodeBits(encoding format.Encoding, b []byte) (func([]string) error, error) {
	plain := &packed{b: b, width: 1}
	read := plain.read
	switch {
	case encoding == format.RLE && len(b) >= 4: // their length before all
		read = (&runs{b: b[4:], width: 1}).read
	case encoding != format.Plain:
		return nil, fmt.Errorf("bits encoded as %v, which is not read", encoding)
	}
	return filler(func() (string, error) {
		var x [1]uint32
		err := read(x[:])
		return strconv.FormatBool(x[0] > 0), err
	}), nil
}

// checkSum returns an error unless there is memory for strings of the lengths that two lists
// of integers add up to: a page of a few megabytes can have terabytes.
func checkSum(prefixes, suffixes deltas) error {
	sum := uint64(0)
	for range prefixes.left {
		prefix, err := prefixes.next()
		if err != nil {
			return err
		}
		suffix, err := suffixes.next()
		if err != nil {
			return err
		}
		if prefix < 0 || suffix < 0 {
			return errShort
		}
		sum += uint64(prefix) + uint64(suffix)
	}
	return memory.Check(2 * sum) // half of the heap may be garbage
}

// packed reads integers of width bits, 32 at most, from the lowest bit of each byte on.
type packed struct {
	b     []byte
	width int
	at    int // bits that were read
}

func (p *packed) read(to []uint32) error {
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
		to[i] = uint32(bits >> (p.at % 8) & (1<<p.width - 1))
		p.at += p.width
	}
	return nil
}

// runs reads integers of width bits, 32 at most, that are encoded as RLE: one many times, or
// packed ones, in turns.
type runs struct {
	b      []byte // of the runs that follow
	width  int
	left   int // integers of this run that follow
	same   bool
	value  uint32 // of all of them, if it is the same
	packed packed
}

func (r *runs) read(to []uint32) error {
	for len(to) > 0 {
		if r.left == 0 {
			if err := r.nextRun(); err != nil {
				return err
			}
		}
		n := min(r.left, len(to))
		if r.same {
			for i := range n {
				to[i] = r.value
			}
		} else if err := r.packed.read(to[:n]); err != nil {
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

// deltas reads integers of 32 bits that are encoded as DELTA_BINARY_PACKED: the first, and the
// differences between them. These come in blocks, each with the least difference, and blocks in
// miniblocks, each with the number of bits that is enough for what is above the least.
type deltas struct {
	b          []byte // of the miniblocks that follow
	miniblocks int    // in a block
	size       int    // of a miniblock: differences
	left       int    // integers that follow
	first      bool   // of all, which has no difference, is to be read
	value      int32  // the last that was read, or the first
	least      int32
	widths     []byte // of the miniblocks that follow in this block
	inMini     int    // differences of this miniblock that follow
	packed     packed
}

// cutDeltas cuts integers, so many at most, off the beginning of a page.
func cutDeltas(b []byte, most int) (d *deltas, rest []byte, err error) {
	var header [3]uint64 // the size of a block, its miniblocks, integers
	for i := range header {
		n := 0
		if header[i], n = binary.Uvarint(b); n <= 0 || header[i] > math.MaxInt32 {
			return nil, nil, errHeader
		}
		b = b[n:]
	}
	first, n := binary.Varint(b)
	block, miniblocks := int(header[0]), int(header[1])
	if n <= 0 || header[2] > uint64(max(most, 0)) || block == 0 || miniblocks == 0 || block%miniblocks != 0 || block/miniblocks%8 != 0 {
		return nil, nil, errHeader
	}
	d = &deltas{b: b[n:], miniblocks: miniblocks, size: block / miniblocks, left: int(header[2]), first: true, value: int32(first)}
	all := *d
	for left := d.left - 1; left > 0; left -= d.size {
		if err := all.nextMiniblock(); err != nil {
			return nil, nil, err
		}
	}
	return d, all.b, nil
}

func (d *deltas) next() (int, error) {
	if d.left == 0 {
		return 0, errShort
	}
	if d.first {
		d.first = false
		d.left--
		return int(d.value), nil
	}
	if d.inMini == 0 {
		if err := d.nextMiniblock(); err != nil {
			return 0, err
		}
	}
	var x [1]uint32
	err := d.packed.read(x[:])
	d.left--
	d.inMini--
	d.value += d.least + int32(x[0]) // which may wrap around
	return int(d.value), err
}

func (d *deltas) nextMiniblock() error {
	if len(d.widths) == 0 {
		least, n := binary.Varint(d.b)
		if n <= 0 || len(d.b)-n < d.miniblocks {
			return errShort
		}
		d.least, d.widths, d.b = int32(least), d.b[n:][:d.miniblocks], d.b[n+d.miniblocks:]
	}
	width := int(d.widths[0])
	length := d.size / 8 * width
	if width > 32 || length > len(d.b) {
		return errShort
	}
	d.widths, d.inMini = d.widths[1:], d.size
	d.packed, d.b = packed{b: d.b[:length], width: width}, d.b[length:]
	return nil
}
