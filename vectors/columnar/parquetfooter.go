package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
)

const (
	parquetMagic     = "PAR1"
	parquetEncrypted = "PARE" // magic number of files with an encrypted footer
	maxNested        = 32     // maximum depth of structs and lists in a header; Parquet needs 7
)

var errEncrypted = errors.New("is encrypted; decrypt it first")

var errHeader = errors.New("a header is invalid")

// fileMetaData has the fields of [format.FileMetaData] that this package needs. Unlike that type,
// it accepts metadata without a value.
type fileMetaData struct {
	Schema           []format.SchemaElement `thrift:"2,required"`
	NumRows          int64                  `thrift:"3,required"`
	RowGroups        []format.RowGroup      `thrift:"4,required"`
	KeyValueMetadata []struct {
		Key   string `thrift:"1,required"`
		Value string `thrift:"2,optional"`
	} `thrift:"5,optional"`
	EncryptionAlgorithm format.EncryptionAlgorithm `thrift:"8,optional"`
}

// metadata returns the value of a key, and whether the key exists.
func (m *fileMetaData) metadata(key string) (value string, ok bool) {
	for _, kv := range m.KeyValueMetadata {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return "", false
}

// readFooter returns the footer of a file, whose length is size bytes: the columns, and the
// positions of their values.
func readFooter(r io.ReaderAt, size int64) (*fileMetaData, error) {
	b, err := readTail(r, size, parquetMagic, len(parquetMagic), 0)
	if err != nil {
		return nil, err
	}
	structs := uint64(0)
	scanned := new(thrift.CompactProtocol).NewReaderFromBytes(b)
	if err := scan(scanned, len(b), thrift.STRUCT, 0, &structs); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	// The estimate is high enough: few structs are larger than the description of a column in a row group.
	if err := memory.Check(structs * uint64(unsafe.Sizeof(format.ColumnChunk{}))); err != nil {
		return nil, err
	}
	footer, end := new(fileMetaData), scanned.BytesRead()
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:end], footer); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	if footer.EncryptionAlgorithm.Value == nil && end < len(b) { // a signature may follow only if columns are encrypted
		return nil, fmt.Errorf("footer: %w", errHeader)
	}
	return footer, nil
}

// readTail returns the footer at the end of a file, after a gap of room bytes. A file of size bytes begins with head
// bytes of other data, and ends with the length of the footer and a magic number.
func readTail(r io.ReaderAt, size int64, magic string, head, room int) ([]byte, error) {
	last := make([]byte, 4+len(magic))
	end := size - int64(len(last))
	if end < int64(head) {
		return nil, errCutShort
	}
	if _, err := r.ReadAt(last, end); err != nil {
		return nil, err
	}
	switch string(last[4:]) {
	case magic:
	case parquetEncrypted:
		return nil, errEncrypted
	default:
		return nil, fmt.Errorf("cut short: it does not end with %s", magic)
	}
	length := int64(binary.LittleEndian.Uint32(last))
	if length > end-int64(head) {
		return nil, fmt.Errorf("the footer is larger than the file (got %d bytes of %d)", length, size)
	}
	if err := memory.Check(2 * uint64(length)); err != nil {
		return nil, err
	}
	b := make([]byte, int64(room)+length)
	_, err := r.ReadAt(b[room:], end-length)
	return b, err
}

// scan checks a value of type t in a header of size bytes. It returns an error if the value is
// nested too deeply or has lists of more elements than there are bytes left, and adds the number
// of structs in lists to *structs. The library needs this check because it allocates the declared
// sizes before it reads, and recurses into nested values.
func scan(r thrift.Reader, size int, t thrift.Type, depth int, structs *uint64) (err error) {
	if depth > maxNested {
		return errHeader
	}
	switch t {
	case thrift.TRUE, thrift.FALSE: // stored as the type
	case thrift.I8:
		_, err = r.ReadInt8()
	case thrift.I16:
		_, err = r.ReadInt16()
	case thrift.I32:
		_, err = r.ReadInt32()
	case thrift.I64:
		_, err = r.ReadInt64()
	case thrift.DOUBLE:
		_, err = r.ReadFloat64()
	case thrift.BINARY:
		_, err = r.ReadBytes()
	case thrift.LIST:
		l, err := r.ReadList()
		if err != nil {
			return err
		}
		if l.Type == thrift.TRUE || l.Type == thrift.FALSE { // no header has lists of booleans
			return errHeader
		}
		if int(l.Size) > size-r.BytesRead() {
			return io.ErrUnexpectedEOF
		}
		if l.Type == thrift.STRUCT {
			*structs += uint64(l.Size)
		}
		for range l.Size {
			if err := scan(r, size, l.Type, depth+1, structs); err != nil {
				return err
			}
		}
	case thrift.STRUCT:
		for {
			f, err := r.ReadField()
			if err != nil {
				return err
			}
			if f.Type == thrift.STOP {
				return nil
			}
			if err := scan(r, size, f.Type, depth+1, structs); err != nil {
				return err
			}
		}
	default:
		return errHeader
	}
	return err
}

// readPageHeader returns the header of a page at an offset, and its length in bytes.
func readPageHeader(r io.ReaderAt, at, end int64) (header *format.PageHeader, length int64, err error) {
	// A header has a few dozen bytes and statistics, which contain two values of the column, of any length.
	const limit = 8 << 20
	for n := int64(256); n <= limit; n *= 8 {
		b := make([]byte, min(n, end-at))
		if _, err := r.ReadAt(b, at); err != nil {
			return nil, 0, err
		}
		s := new(thrift.CompactProtocol).NewReaderFromBytes(b)
		if err = scan(s, len(b), thrift.STRUCT, 0, new(uint64)); err == nil {
			header = new(format.PageHeader)
			return header, int64(s.BytesRead()), thrift.Unmarshal(new(thrift.CompactProtocol), b[:s.BytesRead()], header)
		}
		if int64(len(b)) < n || err == errHeader {
			break
		}
	}
	return nil, 0, err
}
