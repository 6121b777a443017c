package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
)

// messages reads the messages of an Arrow stream. It is an [ipc.MessageReader] that allocates
// nothing on the word of a header, nor lets the library do so, and that tells the end of a
// stream from where it is cut short.
type messages struct {
	r    io.Reader
	left int64 // bytes, or less than 0 if only reading will tell
	done int64 // bytes that have been read
	file bool  // that has a footer behind its messages, and no mere stream
}

func (*messages) Retain()  {}
func (*messages) Release() {}

// Message returns the next message, or io.EOF at the mark of the end.
func (m *messages) Message() (*ipc.Message, error) {
	start, err := m.read(int64(len(arrowStream) + 4))
	if err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(start[len(arrowStream):])
	if string(start[:len(arrowStream)]) != arrowStream {
		return nil, errors.New("no message where one should be, or one of Arrow before version 0.15")
	}
	if length == 0 {
		return nil, m.end()
	}
	metadata, err := m.read(int64(length))
	if err != nil {
		return nil, err
	}
	size, err := checkMessage(metadata)
	if err != nil {
		return nil, err
	}
	body, err := m.read(size)
	if err != nil {
		return nil, err
	}
	return ipc.NewMessage(arrowmemory.NewBufferBytes(metadata), arrowmemory.NewBufferBytes(body)), nil
}

// end returns io.EOF, unless the messages of a file end where its footer does not begin: then
// there are more.
func (m *messages) end() error {
	if !m.file {
		return io.EOF
	}
	rest, size := make([]byte, 1<<16), int64(0)
	var last []byte // the footer's length, and the file's mark again
	for {
		n, err := m.r.Read(rest)
		size += int64(n)
		last = append(last, rest[:n]...)
		last = slices.Clone(last[max(0, len(last)-4-len(arrowFile[:6])):])
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || size > math.MaxInt32 { // more than a footer has
			break
		}
	}
	if len(last) < 4+len(arrowFile[:6]) || string(last[4:]) != arrowFile[:6] || int64(binary.LittleEndian.Uint32(last)) != size-int64(len(last)) {
		return errors.New("there is more between its rows and its footer, or its end is damaged: rows may be missing")
	}
	return io.EOF
}

var errCutShort = errors.New("cut short")

// read returns the next n bytes.
func (m *messages) read(n int64) ([]byte, error) {
	known := m.left >= 0
	if known && n > m.left {
		return nil, errCutShort
	}
	// What comes from a pipe is believed as it comes.
	b := make([]byte, 0, min(n, 1<<20))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			more := int64(len(b))
			if known {
				more = n
			}
			more = min(more, n-int64(len(b)))
			if err := memory.Check(uint64(len(b)) + uint64(more)); err != nil {
				return nil, err
			}
			b = slices.Grow(b, int(more))
		}
		got, err := io.ReadFull(m.r, b[len(b):min(int64(cap(b)), n)])
		b = b[:len(b)+got]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, errCutShort
		} else if err != nil {
			return nil, err
		}
	}
	m.left -= n
	m.done += n
	return b, nil
}

// allocator is that of the library, which asks it for what messages say that their buffers have
// when they are decompressed. It panics if that can't be, or is more than there is memory for;
// the library returns what it panics with as an error.
type allocator struct {
	arrowmemory.Allocator
	messages *messages
}

func (a allocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a allocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a allocator) check(size int) {
	const small = 1 << 20
	if size >= 0 && size <= small {
		return
	}
	// What has been read decompresses to as much: LZ4 to less than Zstandard.
	if size < 0 || int64(size) > expansion[format.Zstd]*a.messages.done {
		panic(fmt.Errorf("a buffer of %d bytes, which is more than it can decompress to", size))
	}
	if err := memory.Check(uint64(size)); err != nil {
		panic(err)
	}
}

var errMetadata = errors.New("the metadata of a message makes no sense")

// Where the tables of a message's metadata have their fields, by the order in which Arrow's
// Message.fbs and Schema.fbs declare them.
const (
	slot0, slot1, slot2, slot3, slot4, slot5, slot6 = 4, 6, 8, 10, 12, 14, 16

	headerSchema, headerDictionary, headerBatch = 1, 2, 3
	typeUnion                                   = 14
)

// checkMessage checks the metadata of a message and returns the length of its body.
func checkMessage(metadata []byte) (body int64, err error) {
	return guardMetadata(func() int64 {
		c := &elements{left: len(metadata) / 4}
		message := flatbuffers.Table{Bytes: metadata, Pos: flatbuffers.GetUOffsetT(metadata)}
		c.vector(message, slot4)
		header := flatbuffers.Table{Bytes: metadata}
		if o := message.Offset(slot2); o == 0 {
			panic(errMetadata)
		} else {
			message.Union(&header, flatbuffers.UOffsetT(o))
		}
		switch message.GetByteSlot(slot1, 0) {
		case headerSchema:
			c.vector(header, slot2)
			c.vector(header, slot3)
			c.fields(header, slot1, 0)
		case headerDictionary:
			if o := header.Offset(slot1); o != 0 {
				batch := header
				batch.Pos = header.Indirect(header.Pos + flatbuffers.UOffsetT(o))
				c.batch(batch)
			}
		case headerBatch:
			c.batch(header)
		}
		return message.GetInt64Slot(slot3, 0)
	})
}

// guardMetadata calls f, which panics where an offset leads out of the metadata.
func guardMetadata(f func() int64) (n int64, err error) {
	defer func() {
		if recover() != nil {
			err = errMetadata
		}
	}()
	if n = f(); n < 0 {
		err = errMetadata
	}
	return n, err
}

// elements counts those of vectors, of which there can't be more than places for them.
type elements struct{ left int }

// vector counts the elements of a vector. It panics if there are too many.
func (c *elements) vector(t flatbuffers.Table, slot flatbuffers.VOffsetT) (n int, start flatbuffers.UOffsetT) {
	o := t.Offset(slot)
	if o == 0 {
		return 0, 0
	}
	n = t.VectorLen(flatbuffers.UOffsetT(o))
	if c.left -= n; n < 0 || c.left < 0 {
		panic(errMetadata)
	}
	return n, t.Vector(flatbuffers.UOffsetT(o))
}

// fields checks fields of a schema, and those that they are made of.
func (c *elements) fields(t flatbuffers.Table, slot flatbuffers.VOffsetT, depth int) {
	if depth > maxNested {
		panic(errMetadata)
	}
	n, start := c.vector(t, slot)
	for i := range n {
		field := t
		field.Pos = t.Indirect(start + 4*flatbuffers.UOffsetT(i))
		if o := field.Offset(slot3); o != 0 && field.GetByteSlot(slot2, 0) == typeUnion {
			union := t
			field.Union(&union, flatbuffers.UOffsetT(o))
			c.vector(union, slot1)
		}
		c.vector(field, slot6)
		c.fields(field, slot5, depth+1)
	}
}

// batch checks how many buffers the columns of a record batch say that they have.
func (c *elements) batch(t flatbuffers.Table) {
	buffers, _ := c.vector(t, slot2)
	n, start := c.vector(t, slot4)
	for i := range n {
		if count := t.GetInt64(start + 8*flatbuffers.UOffsetT(i)); count < 0 || count > int64(buffers) {
			panic(errMetadata)
		}
	}
}
