package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"overcomplete/internal/memory"
)

// A chunk is a column in a row group: a sequence of places, of which each has a value, or stands
// for a null or an empty list. It reads a page of the file at a time, and trusts no header beyond the
// bytes that exist. The rows [1 null 2], [] and null of a column of lists are five places:
//
//	repetitions  0  1     1  0  0   // a row begins at 0
//	definitions  3  2     3  1  0   // of a leaf defined at 3, in a list at 2
//	values       1  ·     2  ·  ·
type chunk[T float32 | string] struct {
	leaf
	decode     decoder[T]
	file       io.ReaderAt
	at, end    int64 // of the pages that follow
	rest       int64 // places that follow in these pages
	codec      format.CompressionCodec
	compressed []byte // memory of a page, which the next uses again
	content    []byte // and of what it decompresses to
	dictionary []T

	// What follows of the page: places, their levels, and what fills a slice with values.
	left                           int
	repetitionRuns, definitionRuns runs
	fill                           func([]T) error
	numbers                        runs // of values in the dictionary, if there are such

	// Places that were read together.
	repetitions []uint8 // levels: 0 where a row begins
	definitions []uint8 // levels: that of the leaf where there is a value
	values      []T     // at the places that have one
	missing     bool    // some have none
	i           int     // the place that is to be read
	ended       bool    // there is none
}

// A decoder returns the function that fills a slice with the next values of a page of at most most
// values.
type decoder[T float32 | string] func(l leaf, encoding format.Encoding, most int, b []byte) (func([]T) error, error)

// openChunk returns the chunk of a leaf in a row group, at its first place.
func openChunk[T float32 | string](file io.ReaderAt, size int64, group []format.ColumnChunk, l leaf, decode decoder[T]) (*chunk[T], error) {
	if c := group[l.index]; c.CryptoMetadata.Value != nil {
		return nil, fmt.Errorf("column %.60q %w", l.name, errEncrypted)
	} else if c.FilePath != "" {
		return nil, fmt.Errorf("column %.60q is in another file, which is not read", l.name)
	}
	m := group[l.index].MetaData
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = min(at, m.DictionaryPageOffset)
	}
	if at < 0 || m.NumValues < 0 || m.TotalCompressedSize < 0 || at > size || m.TotalCompressedSize > size-at {
		return nil, fmt.Errorf("column %.60q: %d bytes at %d of a file of %d", l.name, m.TotalCompressedSize, at, size)
	}
	const missing = 100 // bytes, of the header of a dictionary: old programs did not count it
	batch := 256
	if l.kind == list { // the only one
		batch = 4096
	}
	c := &chunk[T]{leaf: l, decode: decode, file: file, at: at, end: min(at+m.TotalCompressedSize+missing, size), rest: m.NumValues, codec: m.Codec,
		repetitions: make([]uint8, batch), definitions: make([]uint8, batch), values: make([]T, batch)}
	return c, c.nextPlaces()
}

// advance goes n places on, at most to the first that is not yet read.
func (c *chunk[T]) advance(n int) error {
	if c.i += n; c.i < len(c.values) {
		return nil
	}
	return c.nextPlaces()
}

// present returns the values at this place and those after it in its row, up to the first without a value or
// the last that is read.
func (c *chunk[T]) present() []T {
	end := len(c.values)
	if next := bytes.IndexByte(c.repetitions[c.i+1:], 0); next >= 0 {
		end = c.i + 1 + next
	}
	if c.missing {
		if n := slices.IndexFunc(c.definitions[c.i:end], func(d uint8) bool { return d != c.defined }); n >= 0 {
			end = c.i + n
		}
	}
	return c.values[c.i:end]
}

// nextPlaces reads places.
func (c *chunk[T]) nextPlaces() error {
	for c.left == 0 {
		if c.ended = c.rest == 0; c.ended {
			return nil
		}
		at := c.at
		if err := c.nextPage(); err != nil {
			return fmt.Errorf("column %.60q: page at %d: %w", c.name, at, err)
		}
	}
	n := min(c.left, cap(c.values))
	c.left -= n
	c.i, c.repetitions, c.definitions, c.values = 0, c.repetitions[:n], c.definitions[:n], c.values[:n]
	err := c.readPlaces()
	if err == nil && c.left == 0 && len(bytes.Trim(c.numbers.b, "\x00")) > 0 { // some programs end with zeros
		err = errLong
	}
	if err != nil {
		return fmt.Errorf("column %.60q: page before %d: %w", c.name, c.at, err)
	}
	return nil
}

func (c *chunk[T]) readPlaces() error {
	if c.inList > 0 {
		if err := readRuns(&c.repetitionRuns, c.repetitions); err != nil {
			return err
		}
	}
	if c.defined == 0 {
		return c.fill(c.values)
	}
	if err := readRuns(&c.definitionRuns, c.definitions); err != nil {
		return err
	}
	present := bytes.Count(c.definitions, []byte{c.defined})
	if c.missing = present < len(c.values); c.missing {
		if most := slices.Max(c.definitions); most > c.defined {
			return fmt.Errorf("level %d of %d", most, c.defined)
		}
	}
	if err := c.fill(c.values[:present]); err != nil {
		return err
	}
	for i := len(c.values) - 1; present < i+1; i-- { // each to its place
		if c.definitions[i] == c.defined {
			present--
			c.values[i] = c.values[present]
		}
	}
	return nil
}

// begin returns an error unless the place begins a row.
func (c *chunk[T]) begin() error {
	if c.ended {
		return fmt.Errorf("column %.60q has fewer values than rows", c.name)
	}
	if c.repetitions[c.i] > 0 {
		return fmt.Errorf("column %.60q: a list without a beginning", c.name)
	}
	return nil
}

// finish returns an error unless the chunk has ended.
func (c *chunk[T]) finish() error {
	if !c.ended {
		return fmt.Errorf("column %.60q has more values than rows", c.name)
	}
	return nil
}

// nextPage reads the next page: a dictionary, or places.
func (c *chunk[T]) nextPage() error {
	header, length, err := readPageHeader(c.file, c.at, c.end)
	if err != nil {
		return err
	}
	c.at += length
	n, size := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	if n < 0 || size < 0 || n > c.end-c.at {
		return errHeader
	}
	if err := memory.Check(uint64(n) + uint64(size)); err != nil {
		return err
	}
	c.compressed = slices.Grow(c.compressed[:0], int(n))[:n]
	if _, err := c.file.ReadAt(c.compressed, c.at); err != nil {
		return err
	}
	c.at += n
	if header.CRC != 0 && // there is one
		crc32.ChecksumIEEE(c.compressed) != uint32(header.CRC) {
		return errors.New("its checksum is wrong")
	}
	switch v1, v2, dictionary := header.DataPageHeader, header.DataPageHeaderV2, header.DictionaryPageHeader; {
	case header.Type == format.DataPage && v1.Valid:
		return c.openPage(&v1.V, size)
	case header.Type == format.DataPageV2 && v2.Valid:
		return c.openPageV2(&v2.V, size)
	case header.Type == format.DictionaryPage && dictionary.Valid:
		return c.readDictionary(&dictionary.V, size)
	case header.Type == format.IndexPage:
		return nil
	}
	return errHeader
}

// openPage begins a data page, whose levels and values are compressed together.
func (c *chunk[T]) openPage(h *format.DataPageHeader, size int64) error {
	b, err := c.decompress(c.compressed, size, c.codec)
	if err != nil {
		return err
	}
	var repetitions, definitions []byte
	if c.inList > 0 {
		if repetitions, b, err = cutLevels(b, h.RepetitionLevelEncoding); err != nil {
			return err
		}
	}
	if c.defined > 0 {
		if definitions, b, err = cutLevels(b, h.DefinitionLevelEncoding); err != nil {
			return err
		}
	}
	return c.open(h.NumValues, repetitions, definitions, h.Encoding, b)
}

// cutLevels cuts levels, and how many bytes they have, off the beginning of a page.
func cutLevels(b []byte, encoding format.Encoding) (levels, rest []byte, err error) {
	if encoding != format.RLE {
		return nil, nil, fmt.Errorf("levels encoded as %v, want RLE", encoding)
	}
	if len(b) < 4 {
		return nil, nil, errShort
	}
	n, rest := binary.LittleEndian.Uint32(b), b[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, nil, errShort
	}
	return rest[:n], rest[n:], nil
}

// openPageV2 begins a data page of version 2, whose levels are not compressed.
func (c *chunk[T]) openPageV2(h *format.DataPageHeaderV2, size int64) error {
	n, m := int64(h.RepetitionLevelsByteLength), int64(h.DefinitionLevelsByteLength)
	if n < 0 || m < 0 || n+m > min(size, int64(len(c.compressed))) {
		return errHeader
	}
	codec := c.codec
	if h.IsCompressed.Valid && !h.IsCompressed.V {
		codec = format.Uncompressed
	}
	b, err := c.decompress(c.compressed[n+m:], size-n-m, codec)
	if err != nil {
		return err
	}
	return c.open(h.NumValues, c.compressed[:n], c.compressed[n:n+m], h.Encoding, b)
}

// open begins a page of that many places.
func (c *chunk[T]) open(places int32, repetitions, definitions []byte, encoding format.Encoding, b []byte) (err error) {
	if places < 0 {
		return errHeader
	}
	c.left = int(min(int64(places), c.rest))
	c.rest -= int64(c.left)
	c.repetitionRuns = runs{b: repetitions, width: 1} // 0 or 1
	c.definitionRuns = runs{b: definitions, width: bits.Len8(c.defined)}
	c.numbers = runs{}
	switch encoding {
	case format.RLEDictionary, plainDictionary:
		if len(b) > 0 {
			c.numbers = runs{b: b[1:], width: int(b[0])}
		}
		c.fill = c.lookUp()
	default:
		c.fill, err = c.decode(c.leaf, encoding, c.left, b)
	}
	return err
}

// plainDictionary is the old name of both encodings of a dictionary: of its values, which are plain,
// and of the indices in data pages, which are runs.
const plainDictionary format.Encoding = 2

// readDictionary reads the values that data pages have the numbers of.
func (c *chunk[T]) readDictionary(h *format.DictionaryPageHeader, size int64) error {
	if h.Encoding != format.Plain && h.Encoding != plainDictionary {
		return fmt.Errorf("a dictionary encoded as %v, want PLAIN", h.Encoding)
	}
	b, err := c.decompress(c.compressed, size, c.codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	fill, err := c.decode(c.leaf, format.Plain, n, b)
	if err != nil {
		return err
	}
	if n < 0 || c.size == 0 || n > len(b)/c.size {
		return errShort
	}
	if err := memory.Check(uint64(n) * uint64(unsafe.Sizeof(*new(T)))); err != nil {
		return err
	}
	c.dictionary = slices.Grow(c.dictionary[:0], n)[:n]
	return fill(c.dictionary)
}

// lookUp returns the function that reads a page of numbers of values in the dictionary.
func (c *chunk[T]) lookUp() func([]T) error {
	buffer := make([]uint32, cap(c.values))
	return func(values []T) error {
		of := buffer[:len(values)]
		if err := readRuns(&c.numbers, of); err != nil {
			return err
		}
		for i, n := range of {
			if uint64(n) >= uint64(len(c.dictionary)) {
				return fmt.Errorf("value %d of a dictionary of %d", uint64(n)+1, len(c.dictionary))
			}
			values[i] = c.dictionary[n]
		}
		return nil
	}
}

// zstandard decompresses within the capacity of its destination.
var zstandard = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true)) })

// expansion bounds the bytes that one byte decompresses to: three bytes of Snappy are 64, a block of
// four bytes of Zstandard 128 KiB, and two bits of DEFLATE 258 bytes.
var expansion = map[format.CompressionCodec]int64{format.Snappy: 22, format.Zstd: 128 << 10 / 4, format.Lz4Raw: 255, format.Gzip: 4 * 258}

// decompress returns the content of a page, which must have size bytes. It is valid until the next call.
func (c *chunk[T]) decompress(page []byte, size int64, codec format.CompressionCodec) (b []byte, err error) {
	if len(page) == 0 { // as where all is null
		codec = format.Uncompressed
	}
	if most, ok := expansion[codec]; ok {
		if size > most*int64(len(page)) {
			return nil, errHeader
		}
		c.content = slices.Grow(c.content[:0], int(size))
	}
	switch codec {
	case format.Uncompressed:
		b = page
	case format.Snappy:
		if n, _ := snappy.DecodedLen(page); int64(n) != size {
			return nil, errHeader
		}
		b, err = snappy.Decode(c.content[:size], page)
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstandard(); err == nil {
			b, err = z.DecodeAll(page, c.content[:0])
		}
	case format.Lz4Raw:
		var n int
		n, err = lz4.UncompressBlock(page, c.content[:size])
		b = c.content[:n]
	case format.Gzip:
		b, err = gunzip(page, c.content[:size])
	default:
		err = fmt.Errorf("compressed with %v, %w; want Zstandard, Snappy, gzip, LZ4_RAW or no compression", codec, errNotRead)
	}
	if err == nil && int64(len(b)) != size {
		err = errHeader
	}
	return b, err
}

// gunzip fills to with what page decompresses to, which must be as much.
func gunzip(page, to []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, to); err != nil {
		return nil, errHeader
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, cmp.Or(err, errHeader)
	}
	return to, nil
}
