package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// fileMessages is an [ipc.MessageReader] of an Arrow file. It takes the schema and the positions of the messages from the
// footer, because some programs write no valid schema message or no end marker.
type fileMessages struct {
	messages // reads the message of the current block
	file     io.ReaderAt
	schema   *ipc.Message // nil once it is read
	blocks   []arrowBlock // positions of the next messages
}

// An arrowBlock is the position of a message in bytes.
type arrowBlock struct{ at, size int64 }

// Message returns the schema, then the dictionaries and record batches, or io.EOF after the last message.
func (f *fileMessages) Message() (*ipc.Message, error) {
	if m := f.schema; m != nil {
		f.schema = nil
		return m, nil
	}
	if len(f.blocks) == 0 {
		return nil, io.EOF
	}
	b := f.blocks[0]
	f.blocks = f.blocks[1:]
	f.messages = messages{r: io.NewSectionReader(f.file, b.at, b.size), left: b.size}
	message, err := f.messages.Message()
	if err == io.EOF {
		err = errMetadata
	}
	return message, err
}

// openFileMessages reads the footer of a file, whose length is size bytes.
func openFileMessages(file io.ReaderAt, size int64) (*fileMessages, error) {
	b, err := readTail(file, size, arrowMagic, len(arrowFile), messageHead)
	if err != nil {
		return nil, err
	}
	end := size - int64(len(b)-messageHead+4+len(arrowMagic))
	f := &fileMessages{file: file}
	_, err = guardMetadata(func() int64 {
		footer := flatbuffers.Table{Bytes: b, Pos: messageHead + flatbuffers.GetUOffsetT(b[messageHead:])}
		schema := flatbuffers.Table{Bytes: b, Pos: footer.Indirect(footer.Pos + flatbuffers.UOffsetT(footer.Offset(slot1)))}
		c := &elements{left: len(b) / 4}
		c.schema(schema)
		putMessage(b, footer.GetInt16Slot(slot0, 0), schema.Pos)
		for _, slot := range []flatbuffers.VOffsetT{slot2, slot3} { // dictionaries and record batches
			const entry = 24 // bytes of an entry: the position, and the lengths of metadata and body
			n, at := c.vector(footer, slot)
			for ; n > 0; n, at = n-1, at+entry {
				f.blocks = append(f.blocks, arrowBlock{footer.GetInt64(at), int64(footer.GetInt32(at+8)) + footer.GetInt64(at+16)})
			}
		}
		return 0
	})
	if err != nil {
		return nil, err
	}
	f.schema = ipc.NewMessage(arrowmemory.NewBufferBytes(b), arrowmemory.NewBufferBytes(nil))
	return f, f.check(end)
}

// check returns an error unless all messages end before the footer, which begins at offset end.
func (f *fileMessages) check(end int64) error {
	const endMarker = 8 // bytes, which some programs omit
	left, rest := end, end
	for _, b := range f.blocks {
		if b.size < 0 || b.at < 0 || b.at > end-b.size || b.size > left {
			return fmt.Errorf("a message is outside of the file, or in another one (got %d bytes at %d, want at most %d)", b.size, b.at, end)
		}
		left -= b.size
		rest = min(rest, end-b.at-b.size)
	}
	if len(f.blocks) > 0 && rest > endMarker {
		return errors.New("the footer lists too few messages; rows may be missing")
	}
	return nil
}

// messageHead is the number of bytes that putMessage writes, the beginning of a message.
const messageHead = 32

// putMessage writes the beginning of a message into b: the offset of a table, the table's vtable, and the table. The
// header of the message is the schema at the given offset of b.
func putMessage(b []byte, version int16, schema flatbuffers.UOffsetT) {
	const vtable, table, header = 4, 16, 20
	put := binary.LittleEndian
	put.PutUint32(b, table)
	for i, x := range []uint16{table - vtable, 12, 8, 10, header - table} { // the lengths of vtable and table, then the fields' offsets
		put.PutUint16(b[vtable+2*i:], x)
	}
	put.PutUint32(b[table:], table-vtable)
	put.PutUint32(b[header:], uint32(schema-header))
	put.PutUint16(b[table+8:], uint16(version))
	b[table+10] = headerSchema
}
