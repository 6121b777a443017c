package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
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

// checkPages checks the pages of a column in a row group, in a file of size bytes. It returns how
// many bytes a page takes in memory at most.
func checkPages(r io.ReaderAt, size int64, c format.ColumnMetaData, l leaf) (most uint64, err error) {
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
		const perValue = 16 // of levels, offsets or indices
		need := uint64(header.CompressedPageSize) + uint64(header.UncompressedPageSize) + perValue*uint64(values)
		if err := memory.Check(need); err != nil {
			return 0, err
		}
		page := make([]byte, header.CompressedPageSize)
		if _, err := r.ReadAt(page, at); err != nil {
			return 0, err
		}
		if err := checkPage(page, header, c.Codec, l); err != nil {
			return 0, fmt.Errorf("page at %d: %w", at-length, err)
		}
		at += int64(header.CompressedPageSize)
		most = max(most, need)
	}
	return most, nil
}

// checkPage checks what a page of a column says of itself against what it has: how long it is
// when it is decompressed, and how many values there are. The library believes that.
func checkPage(page []byte, header *format.PageHeader, codec format.CompressionCodec, l leaf) error {
	size := int64(header.UncompressedPageSize)
	repeated, nullable := l.inList > 0, l.defined > 0 // these have levels
	v1, v2, dictionary := header.DataPageHeader, header.DataPageHeaderV2, header.DictionaryPageHeader
	if v1.Valid != (header.Type == format.DataPage) || v2.Valid != (header.Type == format.DataPageV2) ||
		dictionary.Valid != (header.Type == format.DictionaryPage) {
		return errHeader
	}
	var repetitions, definitions []byte
	var all int // values and nulls
	var encoding format.Encoding
	var err error
	switch header.Type {
	case format.DataPageV2:
		all, encoding = int(v2.V.NumValues), v2.V.Encoding
		n, m := int64(v2.V.RepetitionLevelsByteLength), int64(v2.V.DefinitionLevelsByteLength)
		if n < 0 || m < 0 || n+m > min(size, int64(len(page))) {
			return errHeader
		}
		repetitions, definitions, page, size = page[:n], page[n:n+m], page[n+m:], size-n-m // are not compressed
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			codec = format.Uncompressed
		}
		page, err = decompress(page, size, codec)
	case format.DataPage:
		all, encoding = int(v1.V.NumValues), v1.V.Encoding
		page, err = decompress(page, size, codec)
		if err == nil && repeated {
			repetitions, page, err = cutLevels(page, v1.V.RepetitionLevelEncoding)
		}
		if err == nil && nullable {
			definitions, page, err = cutLevels(page, v1.V.DefinitionLevelEncoding)
		}
	case format.DictionaryPage:
		page, err = decompress(page, size, codec)
		n := int(dictionary.V.NumValues)
		if e := dictionary.V.Encoding; err == nil && (e != format.Plain && e != plainDictionary || n < 0 || n > len(page)/l.bytes) {
			err = errHeader
		}
		return err
	default:
		return errHeader
	}
	if err == nil && all < 0 {
		err = errHeader
	}
	if err == nil && repeated {
		_, err = countRuns(repetitions, 1, all, 1)
	}
	values := all
	if err == nil && nullable {
		values, err = countRuns(definitions, bits.Len(uint(l.defined)), all, l.defined)
	}
	if header.Type == format.DataPageV2 { // whose header the library asks, not the levels
		values = all - int(v2.V.NumNulls)
	}
	if err != nil || values == 0 && len(page) == 0 {
		return err
	}
	if values < 0 || values > all {
		return errHeader
	}
	switch encoding {
	case format.Plain, format.ByteStreamSplit:
		if values > len(page)/l.bytes {
			return errHeader
		}
		return nil
	case format.RLEDictionary, plainDictionary:
		if len(page) == 0 {
			return errHeader
		}
		_, err = countRuns(page[1:], int(page[0]), values, noLevel)
		return err
	case format.DeltaLengthByteArray:
		_, _, err = cutLengths(page, values)
		return err
	case format.DeltaByteArray:
		return checkPrefixes(page, values)
	}
	return fmt.Errorf("encoded as %v, which is not read", encoding)
}

// checkPrefixes checks values encoded as DELTA_BYTE_ARRAY: each says how much of it is that of
// the one before, and there must be memory for all.
func checkPrefixes(page []byte, values int) error {
	prefixes, page, err := cutLengths(page, values)
	if err != nil {
		return err
	}
	suffixes, page, err := cutLengths(page, values)
	if err != nil {
		return err
	}
	if len(prefixes) != len(suffixes) {
		return errHeader
	}
	var all, last, left = int64(0), int64(0), int64(len(page))
	for i, prefix := range prefixes {
		suffix := int64(suffixes[i])
		if prefix < 0 || int64(prefix) > last || suffix < 0 || suffix > left {
			return errHeader
		}
		left -= suffix
		last = int64(prefix) + suffix
		all += last
	}
	return memory.Check(uint64(all))
}

// cutLengths cuts lengths encoded as DELTA_BINARY_PACKED, one for each value, off the beginning
// of a page.
func cutLengths(page []byte, values int) (lengths []int32, rest []byte, err error) {
	var header [4]uint64 // values in a block, in how many parts, values in all, and the first
	rest = page
	for i := range header {
		n := 0
		if header[i], n = binary.Uvarint(rest); n <= 0 {
			return nil, nil, errHeader
		}
		rest = rest[n:]
	}
	const most = 1 << 16 // of a block: programs write 128
	block, parts, total := header[0], header[1], header[2]
	if block == 0 || block > most || parts == 0 || parts > block || total != uint64(values) {
		return nil, nil, errHeader
	}
	if total == 0 {
		return nil, rest, nil
	}
	if blocks := (total - 1 + block - 1) / block; blocks > uint64(len(rest))/(1+parts) { // that many bytes each has
		return nil, nil, errHeader
	}
	if lengths, err = new(delta.BinaryPackedEncoding).DecodeInt32(nil, page); err != nil {
		return nil, nil, err
	}
	for left := values - 1; left > 0; {
		_, n := binary.Varint(rest) // the least difference
		if n <= 0 || uint64(len(rest)-n) < parts {
			return nil, nil, errHeader
		}
		widths := rest[n:][:parts]
		rest = rest[n:][parts:]
		for _, width := range widths {
			if left > 0 {
				rest = rest[min(uint64(len(rest)), block/parts*uint64(width)/8):]
				left -= int(block / parts)
			}
		}
	}
	return lengths, rest, nil
}

// plainDictionary is what older programs call both encodings of a dictionary: that of its values,
// which are plain, and that of their numbers in data pages, which are runs.
const plainDictionary format.Encoding = 2

// cutLevels cuts the levels of a data page, of version 1, off its beginning.
func cutLevels(page []byte, encoding format.Encoding) (levels, rest []byte, err error) {
	if encoding != format.RLE {
		return nil, nil, fmt.Errorf("levels encoded as %v, want RLE", encoding)
	}
	if len(page) < 4 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n, rest := binary.LittleEndian.Uint32(page), page[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return rest[:n], rest[n:], nil
}

const noLevel = -1

// countRuns returns how many of the values of width bits in runs, of Parquet's hybrid of run
// lengths and packed bits, are at a level. With noLevel, they are not levels. It returns an error
// unless there are as many values as there should be.
func countRuns(b []byte, width, values, level int) (at int, err error) {
	const padding = 63 * 8 // that is forgiven; packed bits come in groups of eight
	left := values
	for len(b) > 0 {
		header, n := binary.Uvarint(b)
		if n <= 0 || header > math.MaxUint32 {
			return 0, errHeader
		}
		b = b[n:]
		count, packed := int(header>>1), header&1 == 1
		if count == 0 { // the library goes on behind it, and some programs end with zeros
			continue
		}
		length := (width + 7) / 8
		if packed {
			length = count * width
			count *= 8
		}
		if level == noLevel && packed && left > 0 && count >= left && length > len(b) && left*width <= 8*len(b) {
			length = len(b) // some programs cut the last group short
		}
		if count > left+padding || length > len(b) {
			return 0, errHeader
		}
		run := b[:length]
		b = b[length:]
		here := max(0, min(count, left)) // but for padding
		switch {
		case level == noLevel:
		case !packed && int(run[0]) == level:
			at += here
		case packed:
			for bit := 0; bit < here*width; bit += width {
				value := uint(run[bit/8])
				if bit/8+1 < len(run) {
					value |= uint(run[bit/8+1]) << 8
				}
				if value>>(bit%8)&(1<<width-1) == uint(level) {
					at++
				}
			}
		}
		left -= count
	}
	if left > 0 {
		return 0, errHeader
	}
	return at, nil
}

// zstandard decompresses pages into memory that they are given, and no more.
var zstandard = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true)) })

// decompress returns what a page of a column has, if that is size bytes.
func decompress(page []byte, size int64, codec format.CompressionCodec) ([]byte, error) {
	if codec == format.Uncompressed || len(page) == 0 {
		return page, nil
	}
	// A block of four bytes of Zstandard has 128 KiB at most; gzip and Snappy compress less.
	const expansion = 128 << 10 / 4
	if codec != format.Brotli && size > expansion*int64(len(page)) {
		return nil, errHeader
	}
	var b []byte
	var r io.Reader
	var err error
	switch codec {
	case format.Snappy:
		const expansion = 22 // three bytes are 64 at most
		if n, err := snappy.DecodedLen(page); err != nil || int64(n) != size || n > expansion*len(page) {
			return nil, errHeader
		}
		return snappy.Decode(nil, page)
	case format.Zstd:
		z, err := zstandard()
		if err != nil {
			return nil, err
		}
		b, err = z.DecodeAll(page, make([]byte, 0, size))
		if err != nil {
			return nil, err
		}
	case format.Gzip:
		r, err = gzip.NewReader(bytes.NewReader(page))
	case format.Brotli:
		r = brotli.NewReader(bytes.NewReader(page))
	default:
		// The library misreads LZ4_RAW, and at a damaged page of it takes memory until none is left.
		err = fmt.Errorf("compressed with %v, which is not read; want Zstandard, Snappy, gzip, Brotli or no compression", codec)
	}
	if err == nil && r != nil {
		b, err = io.ReadAll(io.LimitReader(r, size+1))
	}
	if err == nil && int64(len(b)) != size {
		err = errHeader
	}
	return b, err
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
