package columnar

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"overcomplete/vectors"
)

// The numbers that Parquet's definition has for what is used here.
const (
	typeInt32, typeFloat, typeByteArray = 1, 4, 6
	required, repeated                  = 0, 2
	convertedUTF8, convertedList        = 0, 3
	logicalString, logicalList          = 1, 3 // fields of the union LogicalType
	encodingPlain, encodingRLE          = 0, 3
	codecZstd                           = 6
	dataPage                            = 0
)

// A column is a leaf of the schema.
type column struct {
	path []string
	typ  int
}

var (
	wordColumn    = column{[]string{"word"}, typeByteArray}
	indicesColumn = column{[]string{"indices", "list", "element"}, typeInt32}
	valuesColumn  = column{[]string{"values", "list", "element"}, typeFloat}
)

// WriteParquet writes a Parquet file, compressed with zstd, in row groups of some
// 32 MiB. Its errors are those of [WriteArrow].
//
// The part of the format that this needs is written here, because arrow-go's Parquet
// package would double the size of the program.
func WriteParquet(w io.Writer, codes *vectors.Sparse) error {
	if err := check(codes); err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	const magic = "PAR1"
	p := &parquetWriter{w: w, encoder: encoder}
	p.write([]byte(magic))
	for first, end := range batches(codes) {
		p.rowGroup(codes, first, end)
	}
	footer := p.footer(&codes.CSR)
	p.write(footer)
	p.write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), magic...))
	return p.err
}

// A parquetWriter writes nothing after its first error.
type parquetWriter struct {
	w       io.Writer
	err     error
	offset  int64    // bytes written
	groups  []thrift // RowGroup of each so far
	encoder *zstd.Encoder

	page, compressed []byte // of the column that is being written
}

func (p *parquetWriter) write(b []byte) {
	if p.err == nil {
		_, p.err = p.w.Write(b)
		p.offset += int64(len(b))
	}
}

// rowGroup writes the rows from first to end.
func (p *parquetWriter) rowGroup(codes *vectors.Sparse, first, end int) {
	var chunks []thrift
	var size int64
	add := func(c column, count int) {
		chunk, n := p.columnChunk(c, count)
		chunks, size = append(chunks, chunk), size+n
	}

	p.page = p.page[:0]
	for _, word := range codes.Words[first:end] {
		p.page = binary.LittleEndian.AppendUint32(p.page, uint32(len(word)))
		p.page = append(p.page, word...)
	}
	add(wordColumn, end-first)

	var repetition, definition levels // is it in the list of the one before; does it exist
	for i := first; i < end; i++ {
		index, _ := codes.Row(i)
		for n := range max(1, len(index)) { // an empty list has levels and no element
			repetition.append(n > 0)
			definition.append(n < len(index))
		}
	}
	low, high := codes.Ptr[first], codes.Ptr[end]
	p.page = definition.encode(repetition.encode(p.page[:0]))
	start := len(p.page)
	p.page = slices.Grow(p.page, 4*int(high-low))
	for _, k := range codes.Index[low:high] {
		p.page = binary.LittleEndian.AppendUint32(p.page, uint32(k))
	}
	add(indicesColumn, definition.count)

	p.page = p.page[:start] // the levels are the same
	for _, x := range codes.Value[low:high] {
		p.page = binary.LittleEndian.AppendUint32(p.page, math.Float32bits(x))
	}
	add(valuesColumn, definition.count)

	var g thrift
	g.structures(1, chunks...)
	g.i64(2, size)
	g.i64(3, int64(end-first))
	p.groups = append(p.groups, g)
}

// columnChunk writes p.page as all of a column. It returns the ColumnChunk and its
// size without compression.
func (p *parquetWriter) columnChunk(c column, count int) (chunk thrift, size int64) {
	p.compressed = p.encoder.EncodeAll(p.page, slices.Grow(p.compressed[:0], len(p.page)))
	if p.err == nil && max(len(p.page), len(p.compressed)) > math.MaxInt32 {
		p.err = fmt.Errorf("a row of %d bytes is too long for Parquet", len(p.page))
	}
	var values thrift // DataPageHeader
	values.i32(1, count)
	values.i32(2, encodingPlain)
	values.i32(3, encodingRLE)
	values.i32(4, encodingRLE)
	var header thrift // PageHeader
	header.i32(1, dataPage)
	header.i32(2, len(p.page))
	header.i32(3, len(p.compressed))
	header.structure(5, values)
	start := p.offset
	p.write(header.end())
	size = p.offset - start + int64(len(p.page))
	p.write(p.compressed)

	var data thrift // ColumnMetaData
	data.i32(1, c.typ)
	data.i32s(2, encodingPlain, encodingRLE)
	data.strings(3, c.path...)
	data.i32(4, codecZstd)
	data.i64(5, int64(count))
	data.i64(6, size)
	data.i64(7, p.offset-start)
	data.i64(9, start)
	chunk.i64(2, 0) // of no use any more, but required
	chunk.structure(3, data)
	return chunk, size
}

// footer returns the file's FileMetaData.
func (p *parquetWriter) footer(codes *vectors.CSR) []byte {
	var root thrift
	root.string(4, "schema")
	root.i32(5, 3) // columns
	schema := []thrift{root, node(wordColumn.typ, required, "word", 0, convertedUTF8, logicalString)}
	for _, c := range []column{indicesColumn, valuesColumn} {
		schema = append(schema,
			node(group, required, c.path[0], 1, convertedList, logicalList),
			node(group, repeated, c.path[1], 1, none, none),
			node(c.typ, required, c.path[2], 0, none, none))
	}
	var k thrift
	k.string(1, dimensions)
	k.string(2, strconv.Itoa(codes.Cols))
	var f thrift
	f.i32(1, 1) // version
	f.structures(2, schema...)
	f.i64(3, int64(codes.Rows))
	f.structures(4, p.groups...)
	f.structures(5, k)
	f.string(6, "overcomplete")
	return f.end()
}

const (
	none  = -1
	group = none // a node that has nodes instead of a type
)

// node returns a SchemaElement.
func node(typ, repetition int, name string, children, converted, logical int) thrift {
	var e thrift
	if typ != group {
		e.i32(1, typ)
	}
	e.i32(3, repetition)
	e.string(4, name)
	if children > 0 {
		e.i32(5, children)
	}
	if converted != none {
		var union thrift
		union.structure(logical, thrift{})
		e.i32(6, converted)
		e.structure(10, union)
	}
	return e
}

// levels are Parquet's repetition or definition levels, none of them over 1.
type levels struct {
	bits  []byte
	count int
}

func (l *levels) append(one bool) {
	if l.count%8 == 0 {
		l.bits = append(l.bits, 0)
	}
	if one {
		l.bits[l.count/8] |= 1 << (l.count % 8)
	}
	l.count++
}

// encode appends the levels in the encoding RLE: their length, and one run of packed
// bits.
func (l *levels) encode(b []byte) []byte {
	run := binary.AppendUvarint(nil, uint64(len(l.bits))<<1|1)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(run)+len(l.bits)))
	return append(append(b, run...), l.bits...)
}
