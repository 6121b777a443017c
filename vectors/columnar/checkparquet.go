package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/internal/memory"
)

// The library allocates what headers of a file declare, before it reads what they are of, and
// calls itself for what is nested in them. So they are checked first.

const (
	parquetMagic = "PAR1"
	maxNested    = 32 // levels of structs and lists in a header, of which Parquet has 7
)

var errHeader = errors.New("a header makes no sense")

// checkFooter checks the footer of a file of size bytes: its length, and what is in it.
func checkFooter(r io.ReaderAt, size int64) error {
	const magic, end = int64(len(parquetMagic)), int64(len(parquetMagic) + 4)
	if size < magic+end {
		return errors.New("cut short: no Parquet file is that small")
	}
	var last [end]byte
	if _, err := r.ReadAt(last[:], size-end); err != nil {
		return err
	}
	if string(last[4:]) != parquetMagic {
		return fmt.Errorf("cut short: it does not end with %s", parquetMagic)
	}
	length := int64(binary.LittleEndian.Uint32(last[:]))
	if length > size-end-magic {
		return fmt.Errorf("a footer of %d bytes in a file of %d", length, size)
	}
	if err := memory.Check(2 * uint64(length)); err != nil {
		return err
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-end-length); err != nil {
		return err
	}
	structs := uint64(0)
	if err := scan(new(thrift.CompactProtocol).NewReaderFromBytes(footer), len(footer), thrift.STRUCT, 0, &structs); err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	// Most are, or are smaller than, the description of a column in a row group.
	return memory.Check(structs * uint64(unsafe.Sizeof(format.ColumnChunk{})))
}

// scan reads a value of that type from a header of size bytes. It returns an error if the
// value is nested too deeply or has lists of more elements than there are bytes, and counts
// the structs in lists.
func scan(r thrift.Reader, size int, t thrift.Type, depth int, structs *uint64) (err error) {
	if depth > maxNested {
		return errHeader
	}
	switch t {
	case thrift.TRUE, thrift.FALSE: // the type is the value
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
		if l.Type == thrift.TRUE || l.Type == thrift.FALSE { // Parquet has no such lists
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

// checkPages checks the headers of the pages of a column in a row group, in a file of size
// bytes. It returns how many bytes a page takes in memory at most.
func checkPages(r io.ReaderAt, size int64, c format.ColumnMetaData) (most uint64, err error) {
	at := c.DataPageOffset
	if c.DictionaryPageOffset != 0 {
		at = c.DictionaryPageOffset
	}
	if at < 0 || c.TotalCompressedSize < 0 || at > size || c.TotalCompressedSize > size-at {
		return 0, fmt.Errorf("%d bytes at %d of a file of %d", c.TotalCompressedSize, at, size)
	}
	for end := at + c.TotalCompressedSize; at < end; {
		header, length, err := readPageHeader(r, at, end)
		if err != nil {
			return 0, fmt.Errorf("page at %d: %w", at, err)
		}
		at += length
		values := max(header.DataPageHeader.V.NumValues, header.DataPageHeaderV2.V.NumValues, header.DictionaryPageHeader.V.NumValues)
		if header.CompressedPageSize < 0 || header.UncompressedPageSize < 0 || values < 0 || int64(header.CompressedPageSize) > end-at {
			return 0, fmt.Errorf("page at %d: %w", at-length, errHeader)
		}
		at += int64(header.CompressedPageSize)
		const perValue = 16 // of levels, offsets or indices
		need := uint64(header.CompressedPageSize) + uint64(header.UncompressedPageSize) + perValue*uint64(values)
		if err := memory.Check(need); err != nil {
			return 0, err
		}
		most = max(most, need)
	}
	return most, nil
}

// readPageHeader reads the header of a page at an offset, and returns its length in bytes.
func readPageHeader(r io.ReaderAt, at, end int64) (header *format.PageHeader, length int64, err error) {
	// It has a few dozen bytes, and statistics of any length.
	for n := int64(256); ; n *= 8 {
		b := make([]byte, min(n, end-at, math.MaxInt32))
		if _, err := r.ReadAt(b, at); err != nil {
			return nil, 0, err
		}
		s := new(thrift.CompactProtocol).NewReaderFromBytes(b)
		if err = scan(s, len(b), thrift.STRUCT, 0, new(uint64)); err == nil {
			header = new(format.PageHeader)
			return header, int64(s.BytesRead()), thrift.Unmarshal(new(thrift.CompactProtocol), b[:s.BytesRead()], header)
		}
		if int64(len(b)) < n || err == errHeader {
			return nil, 0, err
		}
	}
}
