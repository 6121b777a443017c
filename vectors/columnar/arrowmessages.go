package columnar

import (
	"bytes"
	"cmp"
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
	"github.com/pierrec/lz4/v4"

	"overcomplete/internal/input"
	"overcomplete/internal/memory"
)

// messages is an [ipc.MessageReader] of an Arrow stream. It checks sizes that headers declare before
// it or the library allocates them, and detects a stream that is cut short.
type messages struct {
	r    io.Reader
	left int64 // number of bytes left in the stream, or negative if unknown
}

func (*messages) Retain()  {}
func (*messages) Release() {}

// Message returns the next message, or io.EOF at the end marker.
func (m *messages) Message() (*ipc.Message, error) {
	start, err := m.read(int64(len(arrowStream) + 4))
	if err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(start[len(arrowStream):])
	if string(start[:len(arrowStream)]) != arrowStream {
		return nil, errors.New("a message has no marker (want the format of Arrow 0.15 or later)")
	}
	if length == 0 {
		return nil, io.EOF
	}
	metadata, err := m.read(int64(length))
	if err != nil {
		return nil, err
	}
	size, batch, err := checkMessage(metadata)
	if err != nil {
		return nil, err
	}
	body, err := m.read(size)
	if err != nil {
		return nil, err
	}
	if body, err = decompress(batch, body); err != nil {
		return nil, err
	}
	return ipc.NewMessage(arrowmemory.NewBufferBytes(metadata), arrowmemory.NewBufferBytes(body)), nil
}

var errCutShort = errors.New("cut short")

func (m *messages) read(n int64) (b []byte, err error) {
	switch known := m.left >= 0; {
	case known && n > m.left:
		return nil, errCutShort
	case known:
		if err := memory.Check(uint64(n)); err != nil {
			return nil, err
		}
		b = make([]byte, n)
		_, err = io.ReadFull(m.r, b)
	default: // a pipe: grow the buffer as bytes arrive
		b, err = input.ReadAll(io.LimitReader(m.r, n), int(n))
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF || err == nil && int64(len(b)) < n {
		err = errCutShort
	}
	m.left -= n
	return slices.Clip(b), err
}

var errMetadata = errors.New("the metadata of a message is invalid")

// slot0 to slot6 are the offsets of a table's fields 0 to 6 in its vtable. The other constants number the
// types of a message's header and of a column. Arrow's Message.fbs and Schema.fbs declare fields and types.
const (
	slot0, slot1, slot2, slot3, slot4, slot5, slot6 = 4, 6, 8, 10, 12, 14, 16

	headerSchema, headerDictionary, headerBatch = 1, 2, 3
	typeUnion                                   = 14
)

// checkMessage checks the metadata of a message. It returns the length of the body in bytes, and the
// table of the record batch or dictionary.
func checkMessage(metadata []byte) (body int64, batch flatbuffers.Table, err error) {
	body, err = guardMetadata(func() int64 {
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
			c.schema(header)
		case headerDictionary:
			if o := header.Offset(slot1); o != 0 {
				batch = header
				batch.Pos = header.Indirect(header.Pos + flatbuffers.UOffsetT(o))
				c.batch(batch)
			}
		case headerBatch:
			batch = header
			c.batch(batch)
		}
		return message.GetInt64Slot(slot3, 0)
	})
	return body, batch, err
}

// decompress returns the body of a batch with its buffers decompressed, and updates their positions
// in the batch. The library would allocate any size that a buffer declares.
func decompress(batch flatbuffers.Table, body []byte) (content []byte, err error) {
	if batch.Bytes == nil || batch.Offset(slot3) == 0 {
		return body, nil
	}
	_, failed := guardMetadata(func() int64 {
		compression := batch
		compression.Pos = batch.Indirect(batch.Pos + flatbuffers.UOffsetT(batch.Offset(slot3)))
		content, err = decompressBuffers(batch, body, compression.GetByteSlot(slot0, 0))
		return 0
	})
	return content, cmp.Or(failed, err)
}

// Codecs of buffers, and the size that marks a buffer as uncompressed.
const (
	codecLZ4, codecZstandard = 0, 1
	uncompressed             = -1
)

func decompressBuffers(batch flatbuffers.Table, body []byte, codec byte) ([]byte, error) {
	const (
		entry = 16 // bytes of an entry: position and length of a buffer
		head  = 8  // bytes of the decompressed size, with which a buffer begins
	)
	ratio := map[byte]int64{codecLZ4: expansion[format.Lz4Raw], codecZstandard: expansion[format.Zstd]}[codec]
	if ratio == 0 {
		return nil, fmt.Errorf("unsupported compression (got codec %d of Arrow, want LZ4 or Zstandard)", codec)
	}
	buffer := func(at flatbuffers.UOffsetT) []byte { // returns the buffer that the entry at the given offset describes
		from, n := batch.GetInt64(at), batch.GetInt64(at+entry/2)
		return body[from:][:n]
	}
	padded := func(size int64) int64 { return head + (size+7)&^7 }
	n, start := (&elements{left: math.MaxInt}).vector(batch, slot2)
	total := int64(0)
	for i := range flatbuffers.UOffsetT(n) {
		b := buffer(start + entry*i)
		if len(b) == 0 {
			continue
		}
		size, stored := int64(binary.LittleEndian.Uint64(b)), int64(len(b)-head)
		if size == uncompressed {
			size = stored
		} else if size < 0 || size > ratio*stored {
			return nil, fmt.Errorf("a buffer can't decompress to the size that it declares (got %d bytes)", size)
		}
		if total += padded(size); total < 0 {
			return nil, errMetadata
		}
	}
	need := uint64(total)
	if codec == codecLZ4 { // the library leaves copies of blocks for the garbage collector
		need *= 2
	}
	if err := memory.Check(need); err != nil {
		return nil, err
	}
	content := make([]byte, 0, total)
	for i := range flatbuffers.UOffsetT(n) {
		b, at := buffer(start+entry*i), int64(len(content))
		if len(b) == 0 {
			continue
		}
		size := int64(binary.LittleEndian.Uint64(b))
		content = append(content, "\xff\xff\xff\xff\xff\xff\xff\xff"...)
		if size == uncompressed {
			size = int64(len(b) - head)
			content = append(content, b[head:]...)
		} else if err := decompressBuffer(content[at+head:][:size], b[head:], codec); err != nil {
			return nil, err
		}
		content = content[:at+padded(size)]
		binary.LittleEndian.PutUint64(batch.Bytes[start+entry*i:], uint64(at))
		binary.LittleEndian.PutUint64(batch.Bytes[start+entry*i+entry/2:], uint64(head+size))
	}
	return content, nil
}

// decompressBuffer decompresses b into to, whose length is the declared size.
func decompressBuffer(to, b []byte, codec byte) error {
	n := 0
	if codec == codecZstandard {
		z, err := zstandard()
		if err == nil {
			b, err = z.DecodeAll(b, to[:0:len(to)])
		}
		if err != nil {
			return err
		}
		n = len(b)
	} else {
		r := lz4.NewReader(bytes.NewReader(b))
		var err error
		if n, err = io.ReadFull(r, to); err == nil {
			_, err = io.ReadFull(r, make([]byte, 1))
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			return cmp.Or(err, errLong)
		}
	}
	if n < len(to) {
		return errShort
	}
	return nil
}

// guardMetadata returns the result of f. It returns an error if f panics, because an offset lies
// outside of the metadata, or if the result is negative.
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

// elements counts down the elements of vectors, which the size of the metadata limits.
type elements struct{ left int }

// vector returns the number of elements of a vector and its start. It panics if there are too many elements.
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

func (c *elements) schema(t flatbuffers.Table) {
	c.vector(t, slot2)
	c.vector(t, slot3)
	c.fields(t, slot1, 0)
}

// fields checks the fields of a schema and their children.
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

// batch checks that a record batch has the buffers that its columns declare.
func (c *elements) batch(t flatbuffers.Table) {
	buffers, _ := c.vector(t, slot2)
	n, start := c.vector(t, slot4)
	for i := range n {
		if count := t.GetInt64(start + 8*flatbuffers.UOffsetT(i)); count < 0 || count > int64(buffers) {
			panic(errMetadata)
		}
	}
}
