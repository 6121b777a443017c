package columnar

import (
	"bytes"
	"cmp"
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

// A chunk reads a column of a row group: a sequence of slots, each a value, a null or an empty
// list. It reads a page of the file at a time, and allocates no more than the bytes of the file
// justify. The rows [1 null 2], [] and null of a column of lists are five slots:
//
//	repetitions  0  1     1  0  0   // 0 starts a row
//	definitions  3  2     3  1  0   // 3 is a value, 2 a null, 1 an empty list, 0 a null list
//	values       1  ·     2  ·  ·
type chunk[T float32 | string] struct {
	leaf
	decode     decoder[T]
	file       io.ReaderAt
	at, end    int64 // byte range of the next pages
	rest       int64 // number of slots in the next pages
	codec      format.CompressionCodec
	compressed []byte // buffer for a page
	content    []byte // buffer for a decompressed page
	dictionary []T

	// The rest of the page.
	left                           int // number of slots left
	repetitionRuns, definitionRuns runs
	fill                           func([]T) error // decodes the next values
	indices                        runs            // indices into dictionary, if the page has them

	// The current batch of slots.
	repetitions []uint8 // repetition levels
	definitions []uint8 // definition levels
	values      []T     // values by slot, valid where the slot has a value
	missing     bool    // some slots have no value
	i           int     // current slot
	ended       bool    // all slots are read
}

// A decoder fills a slice with the next values of a leaf.
type decoder[T float32 | string] func(l leaf, next source, values []T) error

func decodeNumbers(l leaf, next source, numbers []float32) error {
	b, err := next(len(numbers))
	if err == nil {
		l.floats(numbers, b)
	}
	return err
}

// decodeText is the [decoder] of strings, and of other values that are read as strings.
func decodeText(l leaf, next source, values []string) error {
	for i := range values {
		b, err := next(1)
		if err != nil {
			return err
		}
		if l.print != nil {
			values[i] = l.print(b)
		} else {
			values[i] = string(b)
		}
	}
	return nil
}

// openChunk returns the chunk of a leaf in a row group, at its first slot.
func openChunk[T float32 | string](file io.ReaderAt, size int64, group []format.ColumnChunk, l leaf, decode decoder[T]) (*chunk[T], error) {
	if c := group[l.index]; c.CryptoMetadata.Value != nil {
		return nil, fmt.Errorf("column %.60q %w", l.Name, errEncrypted)
	} else if c.FilePath != "" {
		return nil, fmt.Errorf("column %.60q is in another file, which is not supported", l.Name)
	}
	m := group[l.index].MetaData
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = min(at, m.DictionaryPageOffset)
	}
	if at < 0 || m.NumValues < 0 || m.TotalCompressedSize < 0 || at > size || m.TotalCompressedSize > size-at {
		return nil, fmt.Errorf("column %.60q is outside of the file (got %d bytes at %d, want at most %d)", l.Name, m.TotalCompressedSize, at, size)
	}
	const uncounted = 100 // bytes allowed for a dictionary's header, which old programs did not count
	batch := 256
	if l.inList > 0 { // a table has only one column of lists, so its batches may be larger
		batch = 4096
	}
	c := &chunk[T]{leaf: l, decode: decode, file: file, at: at, end: min(at+m.TotalCompressedSize+uncounted, size), rest: m.NumValues, codec: m.Codec,
		repetitions: make([]uint8, batch), definitions: make([]uint8, batch), values: make([]T, batch)}
	return c, c.nextBatch()
}

// advance skips n slots. n must be at most the number of slots left in the batch.
func (c *chunk[T]) advance(n int) error {
	if c.i += n; c.i < len(c.values) {
		return nil
	}
	return c.nextBatch()
}

// present returns the values from the current slot on. It stops before the next slot that has no value or starts a row,
// or at the end of the batch.
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

func (c *chunk[T]) nextBatch() error {
	for c.left == 0 {
		if c.ended = c.rest == 0; c.ended {
			return nil
		}
		at := c.at
		if err := c.nextPage(); err != nil {
			return fmt.Errorf("column %.60q: page at %d: %w", c.Name, at, err)
		}
	}
	n := min(c.left, cap(c.values))
	c.left -= n
	c.i, c.repetitions, c.definitions, c.values = 0, c.repetitions[:n], c.definitions[:n], c.values[:n]
	err := c.readSlots()
	if err == nil && c.left == 0 && len(bytes.Trim(c.indices.b, "\x00")) > 0 { // some programs append zeros
		err = errLong
	}
	if err != nil {
		return fmt.Errorf("column %.60q: page before %d: %w", c.Name, c.at, err)
	}
	return nil
}

func (c *chunk[T]) readSlots() error {
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
		if level := slices.Max(c.definitions); level > c.defined {
			return fmt.Errorf("a definition level is out of range (got %d, want at most %d)", level, c.defined)
		}
	}
	if err := c.fill(c.values[:present]); err != nil {
		return err
	}
	for i := len(c.values) - 1; present < i+1; i-- { // move each value to its slot
		if c.definitions[i] == c.defined {
			present--
			c.values[i] = c.values[present]
		}
	}
	return nil
}

// begin returns an error unless the current slot starts a row.
func (c *chunk[T]) begin() error {
	if c.ended {
		return fmt.Errorf("column %.60q has fewer values than rows", c.Name)
	}
	if c.repetitions[c.i] > 0 {
		return fmt.Errorf("column %.60q: a row starts within a list", c.Name)
	}
	return nil
}

func (c *chunk[T]) finish() error {
	if !c.ended {
		return fmt.Errorf("column %.60q has more values than rows", c.Name)
	}
	return nil
}

// nextPage reads the next page: a dictionary or data.
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
	if header.CRC != 0 && // 0 means that there is no checksum
		crc32.ChecksumIEEE(c.compressed) != uint32(header.CRC) {
		return errors.New("the checksum is wrong")
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

// openPage opens a data page of version 1, whose levels and values are compressed together.
func (c *chunk[T]) openPage(h *format.DataPageHeader, size int64) error {
	b, err := c.decompress(c.compressed, size, c.codec)
	if err != nil {
		return err
	}
	var repetitions, definitions []byte
	if c.inList > 0 {
		if repetitions, err = cutLevels(&b, h.RepetitionLevelEncoding); err != nil {
			return err
		}
	}
	if c.defined > 0 {
		if definitions, err = cutLevels(&b, h.DefinitionLevelEncoding); err != nil {
			return err
		}
	}
	return c.open(h.NumValues, repetitions, definitions, h.Encoding, b)
}

// cutLevels cuts the levels and their length off the beginning of the page *b, and returns the levels.
func cutLevels(b *[]byte, encoding format.Encoding) (levels []byte, err error) {
	if encoding != format.RLE {
		return nil, fmt.Errorf("unsupported encoding of levels (got %v, want RLE)", encoding)
	}
	return cutSized(b)
}

// openPageV2 opens a data page of version 2, whose levels are not compressed.
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

// open opens a page. The arguments are its number of slots, its levels, and its encoded values b.
func (c *chunk[T]) open(slots int32, repetitions, definitions []byte, encoding format.Encoding, b []byte) error {
	if slots < 0 {
		return errHeader
	}
	c.left = int(min(int64(slots), c.rest))
	c.rest -= int64(c.left)
	c.repetitionRuns = runs{b: repetitions, width: 1} // 0 or 1
	c.definitionRuns = runs{b: definitions, width: bits.Len8(c.defined)}
	c.indices = runs{}
	switch encoding {
	case format.RLEDictionary, plainDictionary:
		if len(b) > 0 {
			c.indices = runs{b: b[1:], width: int(b[0])}
		}
		c.fill = c.lookUp()
	default:
		next, err := newSource(c.leaf, encoding, c.left, b)
		if err != nil {
			return err
		}
		c.fill = func(values []T) error { return c.decode(c.leaf, next, values) }
	}
	return nil
}

// plainDictionary is the deprecated name of two encodings: plain values of a dictionary, and runs of
// indices in data pages.
const plainDictionary format.Encoding = 2

// readDictionary reads the dictionary, to which indices in data pages refer.
func (c *chunk[T]) readDictionary(h *format.DictionaryPageHeader, size int64) error {
	if h.Encoding != format.Plain && h.Encoding != plainDictionary {
		return fmt.Errorf("unsupported encoding of a dictionary (got %v, want PLAIN)", h.Encoding)
	}
	b, err := c.decompress(c.compressed, size, c.codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	next, err := newSource(c.leaf, format.Plain, n, b)
	if err != nil {
		return err
	}
	const length = 4 // bytes of a string's length field
	if n < 0 || n > len(b)/cmp.Or(c.size, length) {
		return errShort
	}
	if err := memory.Check(uint64(n) * uint64(unsafe.Sizeof(*new(T)))); err != nil {
		return err
	}
	c.dictionary = slices.Grow(c.dictionary[:0], n)[:n]
	return c.decode(c.leaf, next, c.dictionary)
}

// lookUp returns a function that decodes the next indices of a page, and fills a slice with the dictionary's values.
func (c *chunk[T]) lookUp() func([]T) error {
	buffer := make([]uint32, cap(c.values))
	return func(values []T) error {
		indices := buffer[:len(values)]
		if err := readRuns(&c.indices, indices); err != nil {
			return err
		}
		for i, n := range indices {
			if uint64(n) >= uint64(len(c.dictionary)) {
				return fmt.Errorf("an index is out of range (got %d, in a dictionary of %d values)", n, len(c.dictionary))
			}
			values[i] = c.dictionary[n]
		}
		return nil
	}
}

// zstandard returns a decoder that doesn't exceed the capacity of its destination.
var zstandard = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true)) })

// expansion has the maximum compression ratios: 3 bytes of Snappy expand to 64, a 4-byte block of
// Zstandard to 128 KiB, and 2 bits of DEFLATE to 258 bytes.
var expansion = map[format.CompressionCodec]int64{format.Snappy: 22, format.Zstd: 128 << 10 / 4, format.Lz4Raw: 255, format.Gzip: 4 * 258}

// decompress returns the content of a page, which must have size bytes. The result is valid until the
// next call.
func (c *chunk[T]) decompress(page []byte, size int64, codec format.CompressionCodec) (b []byte, err error) {
	if len(page) == 0 { // if all values are null
		codec = format.Uncompressed
	}
	if ratio, ok := expansion[codec]; ok {
		if size > ratio*int64(len(page)) {
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
		err = fmt.Errorf("%w compression (got %v, want Zstandard, Snappy, gzip, LZ4_RAW or none)", errUnsupported, codec)
	}
	if err == nil && int64(len(b)) != size {
		err = errHeader
	}
	return b, err
}

// gunzip decompresses a page into the slice to. It returns an error unless the content has the length of this slice.
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
