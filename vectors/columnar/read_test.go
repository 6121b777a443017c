package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

// read reads a file of testdata, which testdata/generate.py writes.
func read(t *testing.T, name string, o vectors.ReadOptions) (*vectors.Dense, *vectors.Source, error) {
	t.Helper()
	d, source, err := vectors.Read(t.Context(), []string{filepath.Join("testdata", name)}, o)
	if err != nil {
		err = errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), filepath.Join("testdata", name), "FILE"), "FILE: "))
	}
	return d, source, err
}

// both returns the names of the Arrow and the Parquet file of a table.
func both(name string) []string { return []string{name + ".arrow", name + ".parquet"} }

const numbered = "the input has no words: rows are named by their numbers, from 0; a word list can name them"

func TestRead(t *testing.T) {
	abc := []string{"a", "b", "c"}
	all := []float32{1, 2, 3, 4, 5, 6}
	for _, tt := range []struct {
		names    []string
		o        vectors.ReadOptions
		words    []string
		dim      int // or 0 for 2
		data     []float32
		warnings []string
	}{
		{names: append(both("lists"), "stream.arrow", "zstd.arrow", "groups.parquet"), words: abc, data: all},
		{names: both("fixed"), words: abc[:2], data: all[:4], warnings: []string{`duplicate words, only the first row of each kept: 1 ("a")`}},
		{names: both("wide"), words: abc, data: all, warnings: []string{`columns not read: "id" (int64)`}},
		{names: both("integers"), words: abc[:1], dim: 1, data: all[:1], warnings: []string{`columns not read: "x" (int64)`}},
		{names: both("bare"), words: []string{"0", "1", "2"}, data: all, warnings: []string{numbered}},
		{names: both("nulls"), o: vectors.ReadOptions{SkipBad: true}, words: abc[:1], data: all[:2], warnings: []string{`malformed rows dropped: 3 (` +
			`FILE: row 2: column "word" is null (want a word), FILE: row 3: word "c": column "v" is null (want a list), ` +
			`FILE: row 4: word "d": column "v": value 2 is null (want a number))`}},
		{names: both("numbers"), o: vectors.ReadOptions{SkipBad: true}, words: abc[:1], data: all[:2], warnings: []string{`malformed rows dropped: 3 (` +
			`FILE: row 2: word "b": column "v": value 2 is not a finite number in the range of float32 (got NaN), ` +
			`FILE: row 3: word "c": column "v": value 1 is not a finite number in the range of float32 (got +Inf), ` +
			`FILE: row 4: word "d": the vector has the wrong length (got 1, want 2 numbers))`}},
		{names: both("empty"), o: vectors.ReadOptions{SkipBad: true}, words: abc[:1], data: all[:2], warnings: []string{`malformed rows dropped: 1 (FILE: row 2: word "b": the vector has no numbers)`}},
		{names: both("widenulls"), o: vectors.ReadOptions{SkipBad: true, VectorColumns: "x:y"}, words: abc[:1], data: all[:2], warnings: []string{`malformed rows dropped: 3 (` +
			`FILE: row 2: word "b": column "x" is null (want a number), ` +
			`FILE: row 3: word "c": column "y" is not a finite number in the range of float32 (got NaN), FILE: row 4: column "word" is null (want a word))`}},
	} {
		for _, name := range tt.names {
			d, source, err := read(t, name, tt.o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !slices.Equal(d.IDs, tt.words) || d.Dim != cmp.Or(tt.dim, 2) || !slices.Equal(d.Data, tt.data) {
				t.Errorf("%s: %+v, want %q, %v", name, d, tt.words, tt.data)
			}
			for i, w := range source.Warnings {
				source.Warnings[i] = strings.ReplaceAll(w, filepath.Join("testdata", name), "FILE")
			}
			want := map[bool]string{true: "Arrow", false: "Parquet"}[strings.HasSuffix(name, "arrow")]
			if !slices.Equal(source.Warnings, tt.warnings) || source.Format != want {
				t.Errorf("%s: format %s, warnings\n%q, want\n%q", name, source.Format, source.Warnings, tt.warnings)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		o          vectors.ReadOptions
	}{
		{"nulls", `row 2: column "word" is null (want a word)`, vectors.ReadOptions{}},
		{"numbers", `row 2: word "b": column "v": value 2 is not a finite number in the range of float32 (got NaN)`, vectors.ReadOptions{}},
		{"widenulls", `row 2: word "b": column "x" is null (want a number)`, vectors.ReadOptions{VectorColumns: "x:y"}},
		{"widenulls", `no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "word" (string), "x" (float64), "y" (float64)); name the columns to read`, vectors.ReadOptions{}},
		{"words", `several columns have text, "first" (string), "last" (string); name the one to read`, vectors.ReadOptions{}},
		{"vectors", `several columns can be the vectors, "first" (list of float32), "last" (list of float32); name the one to read`, vectors.ReadOptions{}},
		{"none", "contains no vectors", vectors.ReadOptions{}},
		{"repeated", `row 3: a previous row has the same id, "1"`, vectors.ReadOptions{}},
		{"noid", `row 2: the id is empty`, vectors.ReadOptions{}},
		{"badid", `row 1: invalid id "x\ty": the word contains a tab, a line break or a NUL`, vectors.ReadOptions{}},
		{"novector", `row 2: column "v" is null (want a list)`, vectors.ReadOptions{}},
		{"texts", `row 2: a previous row has the same id, "1970-01-01T00:00:01"`, vectors.ReadOptions{IDColumn: "when"}},
		{"texts", `row 1: word "first\nsecond line": the word contains a tab, a line break or a NUL`, vectors.ReadOptions{Rows: vectors.KindWords}},
	} {
		for _, name := range both(tt.name) {
			if _, _, err := read(t, name, tt.o); err == nil || err.Error() != tt.want {
				t.Errorf("%s: error\n%v, want\n%s", name, err, tt.want)
			}
			var streamed error
			for _, err := range vectors.Stream(t.Context(), []string{filepath.Join("testdata", name)}, tt.o, new(vectors.Source)) {
				streamed = err
			}
			if streamed == nil || !strings.HasSuffix(streamed.Error(), tt.want) {
				t.Errorf("%s, streamed: error\n%v, want\n%s", name, streamed, tt.want)
			}
		}
	}
	for name, want := range map[string]string{"encrypted": "is encrypted", "encrypted_word": `column "word" is encrypted`} {
		_, _, err := read(t, name+".parquet", vectors.ReadOptions{})
		if want += "; decrypt it first"; err == nil || err.Error() != want {
			t.Errorf("%s: error\n%v, want\n%s", name, err, want)
		}
	}
	var b bytes.Buffer
	testonly.Must(t, WriteParquet(&b, &vectors.Sparse{IDs: []string{"a", "b"}, CSR: matrix}))
	_, err := readBytes(t, b.Bytes(), vectors.ReadOptions{})
	testonly.ErrorSays(t, "codes", err, "contains sparse vectors of a model, not dense ones; export its codes in a dense format first")
}

func readBytes(t *testing.T, content []byte, o vectors.ReadOptions) (*vectors.Dense, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testonly.Must(t, os.WriteFile(path, content, 0o666))
	d, _, err := vectors.Read(t.Context(), []string{path}, o)
	return d, err
}

// Text may begin with the letters of a magic number.
func TestReadTextLikeParquet(t *testing.T) {
	for _, content := range []string{"PARENT 1 2\nb 3 4\n", "PAR1 1 2\n"} {
		if d, err := readBytes(t, []byte(content), vectors.ReadOptions{}); err != nil || d.IDs[0] != content[:len(d.IDs[0])] {
			t.Errorf("%q: error %v", content, err)
		}
	}
}

// contents returns the files of testdata that match a pattern.
func contents(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) < 5 {
		t.Fatalf("%q, %v", names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		content := testonly.ReadFile(t, name)
		files[filepath.Base(name)] = content
	}
	return files
}

// A file that is cut short is refused.
func TestReadCutShort(t *testing.T) {
	for _, name := range []string{"lists.arrow", "stream.arrow", "zstd.arrow", "lists.parquet", "groups.parquet"} {
		whole := testonly.ReadFile(t, filepath.Join("testdata", name))
		for n := range whole {
			if testing.Short() && n%7 > 0 {
				continue
			}
			if d, err := readBytes(t, whole[:n], vectors.ReadOptions{}); err == nil {
				t.Fatalf("%s cut to %d of %d bytes: read %q", name, n, len(whole), d.IDs)
			} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(whole), err)
			}
		}
	}
}

// A batch that declares fewer rows than its columns, a column that declares fewer rows than its
// batch, and a file whose messages end before its footer are refused.
func TestReadArrowLacksRows(t *testing.T) {
	const rows = 1234
	schema := arrow.NewSchema([]arrow.Field{{Name: "x0", Type: arrow.PrimitiveTypes.Float32}, {Name: "x1", Type: arrow.PrimitiveTypes.Float32}}, nil)
	numbers := array.NewFloat32Builder(memory.DefaultAllocator)
	numbers.AppendValues(slices.Repeat([]float32{1, 2}, rows/2), nil)
	x := numbers.NewArray()
	var b bytes.Buffer
	w, err := ipc.NewFileWriter(&b, ipc.WithSchema(schema))
	testonly.Must(t, err)
	for range 2 {
		testonly.Must(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{x, x}, rows)))
	}
	testonly.Must(t, w.Close())
	whole := b.Bytes()
	if d, err := readBytes(t, whole, vectors.ReadOptions{}); err != nil || d.Len() != 2*rows {
		t.Fatalf("%v, error %v", d, err)
	}
	refused := func(at int, change string) {
		t.Helper()
		damaged := slices.Clone(whole)
		copy(damaged[at:], change)
		if d, err := readBytes(t, damaged, vectors.ReadOptions{}); err == nil {
			t.Errorf("%q at %d: %d rows", change, at, d.Len())
		}
	}
	declared := binary.LittleEndian.AppendUint64(nil, rows)
	n := 0
	for at := range len(whole) - len(declared) {
		if bytes.Equal(whole[at:at+len(declared)], declared) {
			refused(at, "\x64")
			n++
		}
	}
	if n != 6 { // in two batches and their two columns
		t.Errorf("the number of rows is declared %d times, want 6", n)
	}
	n = 0
	for at := range len(whole) {
		if at > len(arrowFile) && strings.HasPrefix(string(whole[at:]), arrowStream) && at < len(whole)/2 {
			refused(at+len(arrowStream), "\x00\x00\x00\x00")
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d messages", n)
	}
}

// A file with a damaged byte is read or refused, in bounded memory.
func TestReadDamaged(t *testing.T) {
	step := 31 // a prime: bytes of all kinds
	if testonly.Full {
		step = 7
	}
	path := filepath.Join(t.TempDir(), "file")
	for _, pattern := range []string{"*.arrow", "*.parquet"} {
		for name, content := range contents(t, pattern) {
			for i := 0; i < len(content); i += step {
				for _, flip := range []byte{1 << (i / step % 8), 0xff} {
					content[i] ^= flip
					checkAny(t, path, content, vectors.ReadOptions{})
					if content[i] ^= flip; t.Failed() {
						t.Fatalf("%s with byte %d changed by %#x", name, i, flip)
					}
				}
			}
		}
	}
}

// checkAny writes content to path and checks the properties of Read that hold for any input.
func checkAny(t *testing.T, path string, content []byte, o vectors.ReadOptions) {
	t.Helper()
	testonly.Must(t, os.WriteFile(path, content, 0o666))
	allocated := testonly.CountBytes()
	d, _, err := vectors.Read(t.Context(), []string{path}, o)
	// Four bytes of valid Zstandard can expand to 128 KiB, and its window is 512 MiB in Arrow's library.
	if n := allocated(); n > uint64(600<<20+1<<16*len(content)) {
		t.Errorf("%d bytes allocated for a file of %d", n, len(content))
	}
	if err != nil {
		if _, ok := errors.AsType[*vectors.InputError](err); !ok || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "runtime error") {
			t.Errorf("%q isn't a readable InputError of one line", err)
		}
		return
	}
	testonly.Must(t, d.Validate())
	for _, id := range d.IDs {
		if err := vectors.CheckID(id); err != nil {
			t.Errorf("word %q: %v", id, err)
		}
	}
}

// footer returns a Parquet file with a changed footer.
func footer(t *testing.T, content []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	end := len(content) - 8
	start := end - int(binary.LittleEndian.Uint32(content[end:]))
	var m format.FileMetaData
	testonly.Must(t, thrift.Unmarshal(new(thrift.CompactProtocol), content[start:end], &m))
	change(&m)
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	testonly.Must(t, err)
	return withFooter(content[:start], b)
}

func withFooter(pages, footer []byte) []byte {
	b := append(slices.Clone(pages), footer...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), parquetMagic...)
}

// The sizes that headers declare are checked before memory is allocated.
func TestReadChecksSizes(t *testing.T) {
	whole := contents(t, "*.parquet")["lists.parquet"]
	group := func(change func(*format.RowGroup)) []byte {
		return footer(t, whole, func(m *format.FileMetaData) {
			change(&m.RowGroups[0])
			m.NumRows = m.RowGroups[0].NumRows
		})
	}
	column := func(change func(*format.ColumnMetaData)) []byte {
		return group(func(g *format.RowGroup) { change(&g.Columns[1].MetaData) })
	}
	huge, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{UncompressedPageSize: 1<<31 - 1, CompressedPageSize: 1<<31 - 1})
	testonly.Must(t, err)
	hugePage := footer(t, whole, func(m *format.FileMetaData) {
		m.RowGroups[0].Columns[0].MetaData.DataPageOffset, m.RowGroups[0].Columns[0].MetaData.DictionaryPageOffset = 4, 0
	})
	copy(hugePage[len(parquetMagic):], huge)

	grown := slices.Clone(contents(t, "*.arrow")["zstd.arrow"])
	zstdMagic := bytes.Index(grown, []byte{0x28, 0xb5, 0x2f, 0xfd})
	binary.LittleEndian.PutUint64(grown[zstdMagic-8:], 16<<30)

	// The footer of an Arrow file has an entry for its record batch: the position, and the lengths of metadata and body.
	file := contents(t, "*.arrow")["lists.arrow"]
	marker := bytes.LastIndex(file[:bytes.LastIndex(file, []byte(arrowStream))], []byte(arrowStream))
	entry := bytes.LastIndex(file, binary.LittleEndian.AppendUint64(nil, uint64(marker)))
	block := func(at int, x int64) []byte {
		changed := slices.Clone(file)
		binary.LittleEndian.PutUint64(changed[entry+at:], uint64(x))
		return changed
	}
	// A batch of a word, whose offsets and letters take 8 bytes each, and of 1,234 numbers declares the length of its body.
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	longBody := bytes.ReplaceAll(writeArrow(t, []string{"a"}, 1234), length(8+8+4*1234), length(1<<40))
	list := func(size uint64) []byte { // a list of structs, as field 4 of a struct
		return withFooter([]byte(parquetMagic), append([]byte{0x49}, append([]byte{0xfc}, binary.AppendUvarint(nil, size)...)...))
	}
	for _, tt := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"a footer longer than the file", append(slices.Clone(whole[:len(whole)-8]), 0xff, 0xff, 0xff, 0xff, 'P', 'A', 'R', '1'), "the footer is larger than the file (got 4294967295 bytes"},
		{"a list longer than the footer", list(1 << 30), "footer: unexpected EOF"},
		{"lists in lists", withFooter([]byte(parquetMagic), append([]byte{0x49}, bytes.Repeat([]byte{0x19}, 1<<20)...)), "footer: a header is invalid"},
		{"structs in structs", withFooter([]byte(parquetMagic), bytes.Repeat([]byte{0x1c}, 1<<20)), "footer: a header is invalid"},
		{"a page of 2 GiB", hugePage, `column "word": page at 4: a header is invalid`},
		{"a column beyond the file", column(func(c *format.ColumnMetaData) { c.TotalCompressedSize = 1 << 40 }), `column "v" is larger than the rest of the file (got 1099511627776 bytes`},
		{"a column before the file", column(func(c *format.ColumnMetaData) { c.DictionaryPageOffset = -1 }), "bytes at -1, want"},
		{"a column of negative size", column(func(c *format.ColumnMetaData) { c.TotalCompressedSize = -1 }), `column "v" is larger than the rest of the file (got -1 bytes`},
		{"columns that share pages", footer(t, contents(t, "*.parquet")["wide.parquet"], func(m *format.FileMetaData) {
			for i := range m.RowGroups[0].Columns {
				c := &m.RowGroups[0].Columns[i].MetaData
				c.DataPageOffset, c.DictionaryPageOffset, c.TotalCompressedSize = 4, 0, 500
			}
		}), `column "e0" is larger than the rest of the file (got 500 bytes`},
		{"a column of negative values", column(func(c *format.ColumnMetaData) { c.NumValues = -1 }), `column "v" is outside of the file`},
		{"more rows than values", group(func(g *format.RowGroup) { g.NumRows = 1 << 10 }), `column "word" has fewer values than rows`},
		{"more rows than a file can have", group(func(g *format.RowGroup) { g.NumRows = 1 << 60 }), "row group 1 declares more rows than the file can have (got 1152921504606846976 after 0"},
		{"fewer rows than values", group(func(g *format.RowGroup) { g.NumRows = 2 }), `column "word" has more values than rows`},
		{"row groups that share the maximum number of rows", footer(t, whole, func(m *format.FileMetaData) {
			m.RowGroups[0].NumRows = 1000 * int64(len(whole))
			m.RowGroups = append(m.RowGroups, m.RowGroups[0])
		}), "row group 2 declares more rows than the file can have"},
		{"a wrong number of rows", footer(t, whole, func(m *format.FileMetaData) { m.NumRows++ }), "the row groups have the wrong number of rows (got 3, want 4)"},
		{"levels that are taken for numbers", footer(t, contents(t, "*.parquet")["wide.parquet"], func(m *format.FileMetaData) {
			m.Schema[3].RepetitionType.V = format.Required
		}), `column "e0": page `},
		{"a row group that is compressed otherwise", footer(t, contents(t, "*.parquet")["groups.parquet"], func(m *format.FileMetaData) {
			m.RowGroups[1].Columns[0].MetaData.Codec = format.Gzip
		}), `column "word": page at 175: gzip: invalid header`},
		{"negative rows", group(func(g *format.RowGroup) { g.NumRows = -1 }), "row group 1 is invalid (got -1 rows of 2 columns, want 2 columns)"},
		{"fewer columns than the schema", group(func(g *format.RowGroup) { g.Columns = g.Columns[:1] }), "row group 1 is invalid (got 3 rows of 1 columns, want 2 columns)"},
		{"an element with missing children", footer(t, whole, func(m *format.FileMetaData) { m.Schema[2].NumChildren.V = 1 << 30 }), "the schema is invalid"},
		{"no schema", footer(t, whole, func(m *format.FileMetaData) { m.Schema = nil }), "the schema is invalid"},
		{"another file's column", group(func(g *format.RowGroup) { g.Columns[0].FilePath = "other" }), `column "word" is in another file`},
		{"an Arrow footer longer than the file", slices.Concat(file[:len(file)-10], []byte("\xff\xff\xff\xffARROW1")), "the footer is larger than the file (got 4294967295 bytes"},
		{"an Arrow message beyond the file", block(0, 1<<40), "a message is outside of the file"},
		{"an Arrow message of negative size", block(16, -1<<40), "a message is outside of the file"},
		{"an Arrow message without its end", block(16, 8), "the footer lists too few messages; rows may be missing"},
		{"an Arrow message at another place", block(0, 8), "the footer lists too few messages; rows may be missing"},
		{"no Arrow messages", block(-4, int64(marker)<<32), "contains no vectors"},
		{"an Arrow schema of 2 GiB", []byte(arrowStream + "\xff\xff\xff\x7f"), "damaged Arrow file: "},
		{"an Arrow batch of 1 TiB", longBody, "damaged Arrow file: cut short"},
		{"an Arrow buffer that grows to 16 GiB", grown, "a buffer can't decompress to the size that it declares (got 17179869184 bytes)"},
	} {
		allocated := testonly.CountBytes()
		_, err := readBytes(t, tt.content, vectors.ReadOptions{})
		testonly.ErrorSays(t, tt.name, err, tt.want)
		if n := allocated(); n > 16<<20 {
			t.Errorf("%s: %d bytes allocated for a file of %d", tt.name, n, len(tt.content))
		}
	}
}

// A page of Parquet that is damaged, or has more bytes than its header declares, is refused before
// memory is allocated.
func TestReadChecksPages(t *testing.T) {
	whole := contents(t, "*.parquet")["lists.parquet"]
	for _, codec := range []compress.Codec{&parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw} {
		grows, err := codec.Encode(nil, make([]byte, 64<<20))
		testonly.Must(t, err)
		for name, page := range map[string][]byte{"grows": grows, "is damaged": bytes.Repeat([]byte{0xa5}, 100)} {
			header := format.PageHeader{Type: format.DataPage, UncompressedPageSize: 1000, CompressedPageSize: int32(len(page))}
			header.DataPageHeader.Valid = true
			header.DataPageHeader.V = format.DataPageHeader{NumValues: 3, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
			b, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
			testonly.Must(t, err)
			content := slices.Concat([]byte(parquetMagic), b, page)
			length := int64(len(content) - len(parquetMagic))
			file := footer(t, append(content, whole[len(parquetMagic):]...), func(m *format.FileMetaData) {
				words := &m.RowGroups[0].Columns[0].MetaData
				words.Codec, words.DataPageOffset, words.DictionaryPageOffset, words.TotalCompressedSize = codec.CompressionCodec(), 4, 0, length
			})
			allocated := testonly.CountBytes()
			_, err = readBytes(t, file, vectors.ReadOptions{})
			testonly.ErrorSays(t, fmt.Sprintf("a page of %v that %s", codec, name), err, `damaged Parquet file: column "word": page at 4: `)
			if n := allocated(); n > 32<<20 { // Zstandard's window is 16 MiB
				t.Errorf("a page of %v that %s: %d bytes allocated for a file of %d", codec, name, n, len(file))
			}
		}
	}
}

// readPages returns the values of a chunk of pages, with "null" for each null.
func readPages[T float32 | string](l leaf, places int64, codec format.CompressionCodec, decode decoder[T], pages []byte) (values []string, err error) {
	group := []format.ColumnChunk{{MetaData: format.ColumnMetaData{TotalCompressedSize: int64(len(pages)), NumValues: places, Codec: codec}}}
	pages = append(pages, parquetMagic...) // so that pages are not the end of the file
	c, err := openChunk(bytes.NewReader(pages), int64(len(pages)), group, l, decode)
	for ; err == nil && !c.ended; err = c.advance(1) {
		if c.definitions[c.i] < c.defined {
			values = append(values, "null")
		} else {
			values = append(values, fmt.Sprint(c.values[c.i]))
		}
	}
	return values, err
}

// withHeader returns a page with its header.
func withHeader(t *testing.T, h format.PageHeader, page []byte) []byte {
	t.Helper()
	h.CompressedPageSize, h.UncompressedPageSize = int32(len(page)), int32(len(page))
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &h)
	testonly.Must(t, err)
	return append(b, page...)
}

// Values are read in all supported encodings. Pages with fewer values than they declare, or other
// damage, are refused, in memory bounded by their bytes.
func TestReadPages(t *testing.T) {
	run := func(n uint64, value byte) []byte { return append(binary.AppendUvarint(nil, n<<1), value) }
	level := func(levels []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...)
	}
	plain := func(ids ...string) (b []byte) {
		for _, id := range ids {
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(id))), id...)
		}
		return b
	}
	varints := func(numbers ...uint64) (b []byte) {
		for _, x := range numbers {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	word, null := leaf{physical: format.ByteArray}, leaf{physical: format.ByteArray, defined: 1}
	const many = 1<<31 - 1
	for _, tt := range []struct {
		name     string
		encoding format.Encoding
		page     []byte
		places   int32
		l        leaf
		want     string // separated by spaces
		err      string
	}{
		{"runs", format.RLEDictionary, slices.Concat([]byte{2}, run(2, 1), run(1, 3)), 3, word, "b b d", ""},
		{"a run longer than the page", format.RLEDictionary, append([]byte{2}, run(many, 1)...), 2, word, "b b", ""},
		{"fewer runs than values", format.RLEDictionary, append([]byte{2}, run(2, 1)...), many, word, "", "fewer values"},
		{"no runs", format.RLEDictionary, nil, many, word, "", "fewer values"},
		{"zeros behind runs", format.RLEDictionary, slices.Concat([]byte{2}, run(2, 1), []byte{0, 0}), 2, word, "b b", ""},
		{"an empty run", format.RLEDictionary, slices.Concat([]byte{2, 0}, run(2, 1)), 2, word, "b b", ""},
		{"no bits", format.RLEDictionary, append([]byte{0}, binary.AppendUvarint(nil, 2<<1)...), 2, word, "a a", ""},
		{"packed bits", format.RLEDictionary, []byte{2, 2<<1 | 1, 0b11100100, 0b11100100, 0b00011011}, 10, word, "a b c d a b c d d c", ""},
		{"packed bits, cut short", format.RLEDictionary, []byte{2, 2<<1 | 1, 0b11100100}, 10, word, "", "fewer values"},
		{"bits beyond the dictionary", format.RLEDictionary, append([]byte{8}, run(1, 4)...), 1, word, "", "an index is out of range (got 4, in a dictionary of 4 values)"},
		{"33 bits", format.RLEDictionary, append([]byte{33}, run(1, 4)...), 1, word, "", "fewer values"},
		{"levels", format.Plain, append(level(run(2, 1)), plain("x", "y")...), 2, null, "x y", ""},
		{"packed levels", format.Plain, append(level([]byte{1<<1 | 1, 0b101}), plain("x", "y")...), 3, null, "x null y", ""},
		{"packed levels, a value less", format.Plain, append(level([]byte{1<<1 | 1, 0b101}), plain("x")...), 3, null, "", "fewer values"},
		{"fewer levels", format.Plain, append(level(run(2, 1)), plain("x", "y")...), many, null, "", "fewer values"},
		{"levels longer than the page", format.Plain, []byte{9, 0, 0, 0, 1}, 1, null, "", "fewer values"},
		{"a level too high", format.Plain, append(level(run(1, 3)), plain("x")...), 1, leaf{physical: format.ByteArray, defined: 2}, "", "a definition level is out of range (got 3, want at most 2)"},
		{"all null", format.RLEDictionary, level(run(2, 0)), 2, null, "null null", ""},
		{"a value less", format.Plain, plain("x"), 2, word, "", "fewer values"},
		{"a value cut short", format.Plain, plain("x", "yy")[:10], 2, word, "", "fewer values"},
		{"a negative number of slots", format.Plain, nil, -1, word, "", "a header is invalid"},
		{"more deltas than places", format.DeltaLengthByteArray, varints(128, 4, many, 0), 2, word, "", "more values"},
		{"fewer deltas than places", format.DeltaLengthByteArray, varints(128, 4, 1, 2, 'x'), 2, word, "", "fewer values"},
		{"a block of deltas that a few bytes can't fill", format.DeltaLengthByteArray, varints(1<<30, 1, many, 0, 0, 0), many, word, "", "a header is invalid"},
		{"many deltas of zero in a few bytes", format.DeltaLengthByteArray, append(varints(1<<16, 1, 1<<25, 0), make([]byte, 2<<9)...), 1 << 25, word, "", "fewer values"},
		{"a block without parts", format.DeltaLengthByteArray, varints(128, 0, 2, 0), 2, word, "", "a header is invalid"},
		{"a part of seven deltas", format.DeltaLengthByteArray, varints(28, 4, 2, 0), 2, word, "", "a header is invalid"},
		{"deltas of 65 bits", format.DeltaLengthByteArray, varints(128, 1, 2, 0, 0, 65), 2, word, "", "a header is invalid"},
		{"a negative length", format.DeltaLengthByteArray, varints(128, 1, 1, 1), 1, word, "", "fewer values"},
		{"a prefix longer than the previous value", format.DeltaByteArray, varints(128, 1, 1, 2, 128, 1, 1, 2, 'x'), 1, word, "", "fewer values"},
		{"another encoding", format.ByteStreamSplit, nil, 1, word, "", "unsupported encoding of BYTE_ARRAY (got BYTE_STREAM_SPLIT"},
	} {
		dictionary := format.PageHeader{Type: format.DictionaryPage}
		dictionary.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: 4, Encoding: format.Plain})
		data := format.PageHeader{Type: format.DataPage}
		data.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: tt.places, Encoding: tt.encoding,
			DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
		pages := withHeader(t, dictionary, plain("a", "b", "c", "d"))
		pages = append(pages, withHeader(t, data, tt.page)...)
		got, err := readPages(tt.l, int64(max(1, tt.places)), format.Uncompressed, decodeText, pages)
		if strings.Join(got, " ") != tt.want || err == nil != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, error %v; want %s, %q", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// Values in delta encodings are those that parquet-go encoded, in pages of any length.
func TestReadDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 33, 128, 129, 1000} {
		var small []int32
		var large []int64
		var text []byte
		var ids []string
		offsets := []uint32{0}
		for i := range n {
			small = append(small, int32(rng.Uint64()>>rng.IntN(64)))
			large = append(large, int64(rng.Uint64()>>rng.IntN(64)))
			ids = append(ids, strings.Repeat("ab", rng.IntN(20))+fmt.Sprint(i))
			text = append(text, ids[i]...)
			offsets = append(offsets, uint32(len(text)))
		}
		check := func(encoding format.Encoding, e format.SchemaElement, page []byte, want string) {
			t.Helper()
			var l leaf
			l.setType(e)
			header := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{NumValues: int32(n), Encoding: encoding})}
			got, err := readPages(l, int64(n), format.Uncompressed, decodeText, withHeader(t, header, page))
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("%d values of %v: %.200q, error %v, want %.200s", n, encoding, got, err, want)
			}
			if got, err := readPages(l, int64(n), format.Uncompressed, decodeText, withHeader(t, header, page[:len(page)/2])); err == nil {
				t.Errorf("%d values of %v in half a page: %.200q", n, encoding, got)
			}
		}
		page, _ := parquet.DeltaBinaryPacked.EncodeInt32(nil, small)
		check(format.DeltaBinaryPacked, format.SchemaElement{Type: thrift.New(format.Int32)}, page, fmt.Sprint(small))
		page, _ = parquet.DeltaBinaryPacked.EncodeInt64(nil, large)
		check(format.DeltaBinaryPacked, format.SchemaElement{Type: thrift.New(format.Int64)}, page, fmt.Sprint(large))
		page, _ = parquet.DeltaLengthByteArray.EncodeByteArray(nil, text, offsets)
		check(format.DeltaLengthByteArray, format.SchemaElement{Type: thrift.New(format.ByteArray)}, page, fmt.Sprint(ids))
		page, _ = parquet.DeltaByteArray.EncodeByteArray(nil, text, offsets)
		check(format.DeltaByteArray, format.SchemaElement{Type: thrift.New(format.ByteArray)}, page, fmt.Sprint(ids))
	}
}

// A page of nulls may have no bytes to decompress.
func TestReadPageOfNulls(t *testing.T) {
	for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.Lz4Raw} {
		h := format.PageHeader{Type: format.DataPageV2}
		h.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: 2, NumNulls: 2, DefinitionLevelsByteLength: 2})
		got, err := readPages(leaf{physical: format.ByteArray, defined: 1}, 2, codec, decodeText, withHeader(t, h, []byte{2 << 1, 0}))
		if err != nil || strings.Join(got, " ") != "null null" {
			t.Errorf("%v: %q, error %v", codec, got, err)
		}
	}
}

// Compressed files and pipes have the same rows. The memory of Arrow streams doesn't grow with their
// size.
func TestStreamArrow(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.FixedSizeListOf(100, arrow.PrimitiveTypes.Float32)}}, nil)
	r, w, err := os.Pipe()
	testonly.Must(t, err)
	stdin := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = stdin }()
	const batches, rows = 100, 1000 // 40 MB
	go func() {
		defer w.Close()
		out := ipc.NewWriter(w, ipc.WithSchema(schema))
		defer out.Close()
		lists := fixedLists(rows, 100, func(i int) float32 { return float32(i%100 + 1) })
		batch := array.NewRecordBatch(schema, []arrow.Array{lists}, rows)
		for range batches {
			if out.Write(batch) != nil {
				return
			}
		}
	}()
	n, most := 0, uint64(0)
	for d, err := range vectors.Stream(t.Context(), []string{"-"}, vectors.ReadOptions{}, new(vectors.Source)) {
		testonly.Must(t, err)
		if d.IDs[0] != fmt.Sprint(n) || d.Dim != 100 || d.Row(0)[99] != 100 {
			t.Fatalf("row %d is %q, %v", n, d.IDs[0], d.Row(0))
		}
		if n += d.Len(); n%(10*rows) < d.Len() {
			most = max(most, testonly.BytesInUse())
		}
	}
	if n != batches*rows {
		t.Errorf("%d rows", n)
	}
	if most > 16<<20 {
		t.Errorf("%d bytes in use", most)
	}
}

// Vectors that span several pages and blocks are read, compressed or not.
func TestReadLargeParquet(t *testing.T) {
	type row struct {
		Word string    `parquet:"word,dict"`
		V    []float64 `parquet:"v"` // repeated, as old programs write lists
	}
	const rows, dim = 3000, 77
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw} {
		for version := range 2 {
			t.Run(fmt.Sprintf("%v/%d", codec, version+1), func(t *testing.T) {
				var b bytes.Buffer
				w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec), parquet.DataPageVersion(version+1), parquet.PageBufferSize(5000), parquet.MaxRowsPerRowGroup(1100))
				for i := range rows {
					r := row{Word: fmt.Sprint("w", i)}
					for k := range dim {
						r.V = append(r.V, float64(i*dim+k))
					}
					_, err := w.Write([]row{r})
					testonly.Must(t, err)
				}
				testonly.Must(t, w.Close())
				d, err := readBytes(t, b.Bytes(), vectors.ReadOptions{})
				if err != nil || d.Len() != rows || d.Dim != dim {
					t.Fatalf("%+v, %v", d, err)
				}
				for i, x := range d.Data {
					if x != float32(i) || d.IDs[i/dim] != fmt.Sprint("w", i/dim) {
						t.Fatalf("number %d of %s is %v", i%dim, d.IDs[i/dim], x)
					}
				}
				if d, err := readBytes(t, b.Bytes(), vectors.ReadOptions{MaxRows: 1500}); err != nil || d.Len() != 1500 {
					t.Errorf("of 1500 words: %v, %v", d, err)
				}
			})
		}
	}
}

func FuzzArrow(f *testing.F) { fuzz(f, "*.arrow") }

func FuzzParquet(f *testing.F) { fuzz(f, "*.parquet") }

func fuzz(f *testing.F, pattern string) {
	for _, content := range contents(f, pattern) {
		f.Add(content, false, 0)
	}
	f.Fuzz(func(t *testing.T, content []byte, skipBad bool, maxWords int) {
		checkAny(t, filepath.Join(t.TempDir(), "file"), content, vectors.ReadOptions{SkipBad: skipBad, MaxRows: maxWords})
	})
}

// Metadata without values are valid.
func TestReadMetadataWithoutValue(t *testing.T) {
	replaced := func(content []byte, old, new string) []byte {
		t.Helper()
		if bytes.Count(content, []byte(old)) != 1 {
			t.Fatal("no metadata")
		}
		return bytes.Replace(content, []byte(old), []byte(new), 1)
	}
	// In Parquet, metadata are a struct of two strings. A field that follows its predecessor has the header 18.
	without := replaced(footer(t, contents(t, "*.parquet")["lists.parquet"], func(m *format.FileMetaData) {
		m.KeyValueMetadata = []format.KeyValue{{Key: "key"}}
	}), "\x18\x03key\x18\x00", "\x18\x03key")
	size := without[len(without)-8:]
	binary.LittleEndian.PutUint32(size, binary.LittleEndian.Uint32(size)-2)

	// In Arrow, metadata are a table of 12 bytes with two strings, and a vtable of 8 bytes.
	stream := replaced(writeArrow(t, []string{"a", "b", "c"}, 2), "\x08\x00\x0c\x00\x08\x00\x04\x00", "\x08\x00\x0c\x00\x08\x00\x00\x00")
	for name, content := range map[string][]byte{"Parquet": without, "Arrow": stream} {
		if d, err := readBytes(t, content, vectors.ReadOptions{}); err != nil || !slices.Equal(d.IDs, []string{"a", "b", "c"}) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
