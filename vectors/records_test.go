package vectors

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// base64Of returns the little-endian float32 of a vector in base64.
func base64Of(vector ...float32) string {
	raw, _ := binary.Append(nil, binary.LittleEndian, vector)
	return base64.StdEncoding.EncodeToString(raw)
}

// recordInputs are tables in text that have the same two words or texts.
var recordInputs = []struct {
	name, content, format string
	ids                   bool // rows are texts with ids
}{
	{"CSV of lists", "id,text,embedding,kind\nx,one,\"[1, -2.5e-1]\",a\ny,\"two, \"\"three\"\"\n\",\"[3,4]\",b\n", "CSV", true},
	{"CSV of lists as NumPy prints them", "id,text,embedding,kind\nx,one,[ 1.   -0.25],a\ny,\"two, \"\"three\"\"\n\",\"[3.\n 4.]\",b\n", "CSV", true},
	{"CSV of base64", "kind,embedding,text,id\na," + base64Of(1, -0.25) + ",one,x\nb," + base64Of(3, 4) + ",\"two, \"\"three\"\"\n\",y", "CSV", true},
	{"CSV in columns", "id,text,e1,e0,kind\nx,one,-.25,1,a\ny,\"two, \"\"three\"\"\n\",4,3,b\n", "CSV", true},
	{"CSV with a BOM, CRLF and blank lines", "\ufeffid,text,e0,kind,e1\r\n\r\nx,one,1,a,-.25\r\n\r\ny,\"two, \"\"three\"\"\n\",3,b,4\r\n", "CSV", true},
	{"CSV with quotes everywhere", "\"id\",\"text\",\"kind\",\"0\",\"1\"\n\"x\",\"one\",\"a\",\"1\",\"-.25\"\n\"y\",\"two, \"\"three\"\"\n\",\"b\",\"3\",\"4\"", "CSV", true},
	{"CSV with semicolons", "id;text;kind;e0;e1\nx;one;a; 1 ;-.25\ny;\"two, \"\"three\"\"\n\";b;3;4\n", "CSV", true},
	{"TSV", "id\ttext\te0\te1\tkind\nx\tone\t1\t-.25\ta\ny\t\"two, \"\"three\"\"\n\"\t3\t4\tb\n", "TSV", true},
	{"CSV of words", "word,e0,e1\none,1,-.25\ntwo,3,4\n", "CSV", false},
	{"CSV of pandas with an index of words", ",0,1\none,1,-.25\ntwo,3,4\n", "CSV", false},
	{"TSV of words", "word\tx1\tx2\none\t1\t-.25\ntwo\t3\t4\n", "TSV", false},

	{"JSON lines", `{"id":"x","text":"one","embedding":[1,-2.5e-1],"kind":"a"}` + "\n" + ` { "kind" : "b" , "embedding" : [ 3 , 4 ] , "text" : "two, \"three\"\n","id":"y" } `, jsonLines, true},
	{"JSON lines of base64", `{"id":"x","text":"one","embedding":"` + base64Of(1, -0.25) + `","kind":"a"}` + "\r\n\r\n" + `{"id":"y","text":"two, \"three\"\u000a","embedding":"` + base64Of(3, 4) + `","kind":"b"}` + "\r\n", jsonLines, true},
	{"JSON lines of strings", `{"id":"x","text":"one","v":"[1,\n-0.25]","kind":"a"}` + "\n" + `{"id":"y","text":"two, \"three\"\n","v":"[3 4]","kind":"b"}`, jsonLines, true},
	{"JSON lines in columns", `{"id":"x","text":"one","e0":1,"e1":-0.25,"kind":"a"}` + "\n" + `{"id":"y","text":"two, \"three\"\n","e1":4,"kind":"b","e0":3}` + "\n", jsonLines, true},
	{"JSON lines of words", `{"word":"one","vector":[1,-0.25]}` + "\n" + `{"word":"two","vector":[3,4]}`, jsonLines, false},
}

func TestReadRecords(t *testing.T) {
	words := &Dense{IDs: []string{"one", "two"}, Dim: 2, Data: []float32{1, -0.25, 3, 4}}
	texts := &Dense{IDs: []string{"x", "y"}, Dim: 2, Data: words.Data, Texts: &Texts{
		Text: []string{"one", "two, \"three\"\n"}, Columns: []Column{{"kind", []string{"a", "b"}}},
	}}
	for _, tt := range recordInputs {
		for _, content := range []string{tt.content, gzipped(tt.content), zstandard(tt.content)} {
			want := words
			if tt.ids {
				want = texts
			}
			got, source, err := Read(t.Context(), []string{tempFile(t, content)}, ReadOptions{})
			if err != nil || !reflect.DeepEqual(got, want) || source.Format != tt.format {
				t.Errorf("%s: %+v of %+v, error %v", tt.name, got, source, err)
			}
		}
	}
}

// oddRecords are tables in text.
var oddRecords = []oddInput{
	{"a price isn't a dimension", "word,price,e0,e1\na,9,1,2\nb,8,3,4\n", ReadOptions{},
		&Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, `columns not read: "price" (number)`},
	{"chosen columns", "word,price,e0,e1\na,9,1,2\nb,8,3,4\n", ReadOptions{VectorColumns: "price:e0"},
		&Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{9, 1, 8, 3}}, `columns not read: "e1" (number)`},
	{"values of other types", `{"id":7,"text":null,"v":[1],"n":1.50,"b":true,"o":{"x":[1]}}` + "\n" + `{"id":8,"v":[2],"text":"","n":null}`, ReadOptions{Rows: KindTexts},
		&Dense{IDs: []string{"7", "8"}, Dim: 1, Data: []float32{1, 2}, Texts: &Texts{Text: []string{"", ""}, Columns: []Column{{"n", []string{"1.50", ""}}, {"b", []string{"true", ""}}}}},
		`columns not read: "o" (object)`},
	{"numbers of Python in a value that isn't read", `{"id":"x","o":{"x":[NaN,-Infinity,"NaN\""]},"text":"one","v":[1]}`, ReadOptions{},
		&Dense{IDs: []string{"x"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"one"}}}, `columns not read: "o" (object)`},
	{"escapes", `{"id":"\u00e9\ud83d\ude00\ud800\/","text":"\t","v":[1],"k\u0031":"\\"}`, ReadOptions{},
		&Dense{IDs: []string{"é😀\ufffd/"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"\t"}, Columns: []Column{{"k1", []string{"\\"}}}}}, ""},
	{"malformed rows of CSV", "word,e0,e1\na,1,2\nb,1\nc,1,2,3\nd,1,x\ne,nan,1\nf,,1\n\"g\"h,1,2\n\"i\n\",3,4\nj,3,4\nk,1e400,1\n", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"a", "j"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, `malformed rows dropped: 8 (FILE:3: word "b": the row has the wrong number of cells (got 2, want 3), ` +
			`FILE:4: word "c": the row has the wrong number of cells (got 4, want 3), FILE:5: word "d": column "e1" is not a finite number (got "x"), …)`},
	{"malformed JSON lines", `{"word":"a","v":[1,2]}` + "\n{\n" + `{"word":"b","v":[1,NaN]}` + "\n" + `{"word":"c","v":null}` + "\n[1,2]\n" + `{"word":"d","v":[3,4]}x` + "\n" + `{"word":"e","v":[3,4],"v":[3,4]}` + "\n" + `{"word":"f","v":[3,4]}`, ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"a", "f"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, `malformed rows dropped: 6 (FILE:2: not a JSON object: the line ends within it (want a key and a colon), ` +
			`FILE:3: word "b": column "v": value 2 of the list is not a finite number (got "NaN"), FILE:4: word "c": column "v" is null (want a list), …)`},
	{"invalid UTF-8", "id,text,v,kind\nx,a\xffb,[1],\xfe\n", ReadOptions{},
		&Dense{IDs: []string{"x"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"a\ufffdb"}, Columns: []Column{{"kind", []string{"\ufffd"}}}}},
		"texts that are not UTF-8, invalid bytes replaced by U+FFFD: 1 (x)"},
	{"quotes within cells", "id,text,v\nx,say \"a\" or b,[1]\ny,5\" wide,[2]\n", ReadOptions{},
		&Dense{IDs: []string{"x", "y"}, Dim: 1, Data: []float32{1, 2}, Texts: &Texts{Text: []string{`say "a" or b`, `5" wide`}}}, ""},
	{"text with commas", "a,b 1 2\nc,d 3 4\n", ReadOptions{}, &Dense{IDs: []string{"a,b", "c,d"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, ""},
	{"text of braces", "{ 1 2\n[ 3 4\n", ReadOptions{}, &Dense{IDs: []string{"{", "["}, Dim: 2, Data: []float32{1, 2, 3, 4}}, ""},
	{"text with tabs", "the\t1\t2\t4\nof\t3\t4\t5\n", ReadOptions{}, &Dense{IDs: []string{"the", "of"}, Dim: 3, Data: []float32{1, 2, 4, 3, 4, 5}}, ""},
	{"names that count, not a word", "word\t0\t1\t2\t3\nof\t3\t4\t5\t6\n", ReadOptions{}, &Dense{IDs: []string{"of"}, Dim: 4, Data: []float32{3, 4, 5, 6}}, ""},
	{"two names that count", "word\t0\t1\nof\t3\t4\n", ReadOptions{}, &Dense{IDs: []string{"of"}, Dim: 2, Data: []float32{3, 4}}, ""},
	{"numbers that count after a word", "one\t0\t1\nof\t3\t4\n", ReadOptions{}, &Dense{IDs: []string{"one", "of"}, Dim: 2, Data: []float32{0, 1, 3, 4}}, ""},
	{"only names that count", "0\t1\t2\t3\n3\t4\t5\t6\n", ReadOptions{}, &Dense{IDs: []string{"0"}, Dim: 4, Data: []float32{3, 4, 5, 6}}, numbered},
	{"years as names", "text,2019,2020,embedding\na,1,2,[1]\n", ReadOptions{},
		&Dense{IDs: []string{"0"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"a"}, Columns: []Column{{"2019", []string{"1"}}, {"2020", []string{"2"}}}}}, ""},
	{"years as names in TSV", "text\t2019\t2020\tembedding\na\t1\t2\t[1]\n", ReadOptions{},
		&Dense{IDs: []string{"0"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"a"}, Columns: []Column{{"2019", []string{"1"}}, {"2020", []string{"2"}}}}}, ""},
	{"a word among names that don't count", "the,2019,a,b,embedding\nx,1,y,z,[1]\n", ReadOptions{TextColumn: "the"},
		&Dense{IDs: []string{"0"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{"x"}, Columns: []Column{{"2019", []string{"1"}}, {"a", []string{"y"}}, {"b", []string{"z"}}}}}, ""},
	{"texts with lines, of a row and others", "text,e0,e1\n\"as in\na,1,2\nor\nb\",3,4\n", ReadOptions{},
		&Dense{IDs: []string{"0"}, Dim: 2, Data: []float32{3, 4}, Texts: &Texts{Text: []string{"as in\na,1,2\nor\nb"}}}, ""},
	{"texts with separators in lines", "text\tembedding\n\"a\tb\nc\td\ne\t3\"\t[1 2]\n", ReadOptions{},
		&Dense{IDs: []string{"0"}, Dim: 2, Data: []float32{1, 2}, Texts: &Texts{Text: []string{"a\tb\nc\td\ne\t3"}}}, ""},
	{"rows within quotes", "embedding\ttext\n[1, 2]\ta\n[3, 4]\t\"b\n[5, 6]\tc\n[7, 8]\td\"\n[9, 10]\te\n", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"0", "2"}, Dim: 2, Data: []float32{1, 2, 9, 10}, Texts: &Texts{Text: []string{"a", "e"}}}, "malformed rows dropped: 1 (FILE:3: " + enclosed2 + ")"},
	{"no words", "e0,e1\n1,2\n3,4\n", ReadOptions{}, &Dense{IDs: []string{"0", "1"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, numbered},
	{"one column", "embedding\n\"[1, 2]\"\n\"[3, 4]\"\n", ReadOptions{}, &Dense{IDs: []string{"0", "1"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, numbered},
}

const enclosed2 = `column "text": quotes enclose 2 lines that look like rows; double each quote within a text, and quote the text`

var badRecords = []badInput{
	{"a short row", "word,e0,e1\na,1,2\nb,1\n", `FILE:3: word "b": the row has the wrong number of cells (got 2, want 3)`},
	{"a long row after line breaks in cells", "word,e0,e1\n\"a\n\nb\",1,2\n\nc,1,2,3\n", `FILE:2: word "a\n\nb": the word contains a tab, a line break or a NUL`},
	{"a long row after texts", "text,v\n\"a\n\nb\",[1]\n\nc,[1],3\n", `FILE:6: the row has the wrong number of cells (got 3, want 2)`},
	{"decimal commas", "text;e0;e1\na, b;0,5;-1,5e3\nc;,5;1,2,3\n", `FILE: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; ` +
		`got "text" (string), "e0" (string, with a decimal comma), "e1" (string)); name the columns to read`},
	{"a quote that never ends", "text,v\n\"a\nb\",[1]\n\"c,[1]\nd,[1]\n", `FILE:4: the quote that begins in this line doesn't end within the file, or within 33554432 bytes`},
	{"a quote in the first row that never ends", "id,text,v\nx,\"c,[1]\nd,e,[1]\n", `FILE:2: the quote that begins in this line doesn't end within the file, or within 33554432 bytes`},
	{"text behind a quote", "text,v\n\"a\"b,[1]\n", `FILE:2: text follows the closing quote of a cell`},
	{"two rows within quotes", "text\tembedding\n\"a\t[1 2]\nb\"\t[3 4]\n", `FILE:2: ` + strings.Replace(enclosed2, "2 lines", "1 lines", 1)},
	{"rows within quotes, of columns", "text;e0;e1\na;1;2\n\"b;1;2\nc;3;4\nd\";5;6\n", `FILE:3: ` + enclosed2},
	{"a header without rows", "word,vector\n", "FILE: contains no vectors"},
	{"a header of columns without rows", "word,e0,e1\n", "FILE: contains no vectors"},
	{"no header", "a,0.5,1.5\nb,0.5,2\n", "FILE: is a CSV file without a header; its first line must name the columns"},
	{"no vectors", "text,price\na,1.5\nb,2\n", `FILE: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "text" (string), "price" (number)); name the columns to read`},
	{"two columns of lists", "word,v,w\na,[1],[2]\n", `FILE: several columns can be the vectors, "v" (list in a string), "w" (list in a string); name the one to read`},
	{"two columns of a name", "word,e0,e0\na,1,2\n", `FILE: two columns are named "e0"`},
	{"no list", "word,embedding\na,[1]\nb,-\n", `FILE:3: word "b": column "embedding": value 1 of the list is not a finite number (got "-")`},
	{"other lengths", "word,embedding\na,\"[1,2]\"\nb,[1]\n", `FILE:3: word "b": the vector has the wrong length (got 1, want 2 numbers)`},
	{"a gap in a list", "word,embedding\na,\"[1,2]\"\nb,\"[1,,2]\"\n", `FILE:3: word "b": column "embedding": value 2 of the list is not a finite number (got "")`},

	{"a long word", "word,e0,e1\n" + strings.Repeat("x", window+1) + ",1,2\n", fmt.Sprintf(`FILE:2: word "%s"…: the word is too long (want at most 1048576 bytes)`, strings.Repeat("x", 60))},
	{"a long list", "word,embedding\na,\"" + strings.Repeat("1 ", MaxDim+1) + "\"\n", `FILE:2: word "a": the vector is too long (want at most 1048576 numbers)`},

	{"JSON cut short", `{"word":"a","v":[1,2]}` + "\n" + `{"word":"b","v":[1,`, `FILE:2: word "b": not a JSON object: the line ends within it (want a comma or })`},
	{"JSON cut short in a word", `{"v":[1,2],"word":`, `FILE:1: word "0": not a JSON object: the line ends within it (want a value)`},
	{"JSON in many lines", "{\n\"word\":\"a\",\"v\":[1,2]}", `FILE:1: not a JSON object: the line ends within it (want a key and a colon)`},
	{"null", `{"word":"a","v":[1,2]}` + "\n\n" + `{"word":"b","v":[1,null]}`, `FILE:3: word "b": column "v": value 2 of the list is not a finite number (got "null")`},
	{"missing", `{"word":"a","v":[1,2]}` + "\n" + `{"word":"b"}`, `FILE:2: word "b": column "v" is missing`},
	{"nested", `{"word":"a","embedding":[1,2]}` + "\n" + `{"word":"b","embedding":[[1,2]]}`, `FILE:2: word "b": column "embedding": value 1 of the list is not a finite number (got "[1")`},
	{"all nested", `{"word":"a","embedding":[[1,2]]}`, `FILE: column "embedding" can't be the vectors: its type is list of lists (want lists of numbers); store lists of numbers, or name the columns to read`},
	{"1e400", `{"word":"a","v":[1,1e400]}`, `FILE:1: word "a": column "v": value 2 of the list is too large for a float32 (got "1e400")`},
	{"other lengths in JSON", `{"word":"a","v":[1,2]}` + "\n" + `{"word":"b","v":[1]}`, `FILE:2: word "b": the vector has the wrong length (got 1, want 2 numbers)`},
	{"an empty list", `{"word":"a","v":[1,2]}` + "\n" + `{"word":"b","v":[]}`, `FILE:2: word "b": the vector has no numbers`},
	{"a repeated key", `{"word":"a","word":"b","v":[1,2]}`, `FILE:1: word "b": the key "word" is repeated`},
	{"no string", `{"word":"a","v":[1,2]}` + "\n" + `{"word":"b","v":"x"}`, `FILE:2: word "b": column "v": value 1 of the list is not a finite number (got "x")`},
	{"an array", "[\n " + `{"word":"a","v":[1,2]}]`, "FILE: " + errJSONArray.Error()},
	{"a response", `{"object":"list","data":[{"index":0,"embedding":[1]}]}`, `FILE: no column has vectors (want lists of numbers, or numbers in columns such as e0, e1, …; got "object" (string), "data" (list of objects)); name the columns to read`},
}

// A cell may have 10 MB, but a row no more than 32 MiB.
func TestReadLongRecords(t *testing.T) {
	text := strings.Repeat("ab\n", 10<<20/3)
	for _, content := range []string{"id,text,v\nx,\"" + text + "\",[1]\n", `{"id":"x","text":` + string(must(json.Marshal(text))) + `,"v":[1]}`} {
		got, _, err := Read(t.Context(), []string{tempFile(t, content)}, ReadOptions{})
		want := &Dense{IDs: []string{"x"}, Dim: 1, Data: []float32{1}, Texts: &Texts{Text: []string{text}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows, error %v", got.Len(), err)
		}
	}
	checkError(t, tempFile(t, "text,v\na,[1]\n\"c,[1]\n"+strings.Repeat("d,[1]\n", 40<<20/6)), ReadOptions{SkipBad: true},
		"FILE:3: the quote that begins in this line doesn't end within the file, or within 33554432 bytes")
	checkError(t, tempFile(t, `{"text":"`+strings.Repeat("x", 40<<20)), ReadOptions{}, "FILE: a line is too long (want at most 33554432 bytes)")
}

// Keys after the first thousand objects are not columns.
func TestReadLateKeys(t *testing.T) {
	content := strings.Repeat(`{"embedding":[1]}`+"\n", maxSampled) + `{"embedding":[1],"late":1,"later":2}` + "\n" + `{"later":2,"embedding":[1]}`
	_, source, err := Read(t.Context(), []string{tempFile(t, content)}, ReadOptions{})
	if want := []string{numbered, `keys that the first objects lack, not read: 2 ("late", "later")`}; err != nil || !slices.Equal(source.Warnings, want) {
		t.Errorf("%+v, error %v", source, err)
	}
}

// manyRecords returns n rows with texts of several lines in each format, and the vectors.
func manyRecords(n int) (map[string]string, *Dense) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := &Dense{Dim: 3, Texts: &Texts{Columns: []Column{{Name: "kind"}}}}
	var wide, list, lines strings.Builder
	wide.WriteString("id,text,x0,x1,x2,kind\n")
	list.WriteString("id\ttext\tembedding\tkind\n")
	for i := range n {
		vector := []float32{rng.Float32(), float32(rng.NormFloat64()), float32(i)}
		text := strings.Repeat(fmt.Sprintf("line %d, \"quoted\"\n", i), i%3)
		d.IDs, d.Data = append(d.IDs, fmt.Sprint("d", i)), append(d.Data, vector...)
		d.Texts.Add(text, []string{fmt.Sprint(i % 2)})
		quoted := `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
		fmt.Fprintf(&wide, "d%d,%s,%v,%v,%v,%d\n", i, quoted, vector[0], vector[1], vector[2], i%2)
		fmt.Fprintf(&list, "d%d\t%s\t\"%v\"\t%d\r\n", i, quoted, vector, i%2)
		fmt.Fprintf(&lines, `{"id":"d%d","text":%s,"embedding":%s,"kind":%d}`+"\n", i, must(json.Marshal(text)), must(json.Marshal(vector)), i%2)
	}
	return map[string]string{"CSV": wide.String(), "TSV": list.String(), jsonLines: lines.String()}, d
}

// The result and the error don't depend on the number of workers, on the boundaries of pieces, or on the sizes of reads.
func TestReadRecordsIsDeterministic(t *testing.T) {
	files, want := manyRecords(300)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for format, content := range files {
		h, err := detect(bufio.NewReaderSize(strings.NewReader(content), window), false, false)
		if err != nil || h.format != format {
			t.Fatalf("%s is %s, error %v", format, h.format, err)
		}
		start := 0
		if h.lines == 1 {
			start = strings.Index(content, "\n") + 1
		}
		bad := strings.Replace(content, ",101", ",null", 1) // in row 101
		if format == "TSV" {
			bad = strings.Replace(content, " 101]", " null]", 1)
		}
		line := 1 + strings.Count(bad[:strings.Index(bad, "d101")], "\n")
		for _, workers := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(workers)
			for _, size := range []int{1, 16, 100, 1000, textChunk} {
				r := &reader{file: file{declared: -1}}
				got, err := r.collectRecords(t, h, iotest.HalfReader(strings.NewReader(content[start:])), size)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, %d workers and pieces of %d bytes: %d rows, error %v", format, workers, size, got.Len(), err)
				}
				r = &reader{file: file{Member: input.Member{Path: "file"}, declared: -1}}
				if _, err = r.collectRecords(t, h, strings.NewReader(bad[start:]), size); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("file:%d: ", line)) || !strings.Contains(err.Error(), "null") {
					t.Fatalf("%s, %d workers and pieces of %d bytes: error %v, want line %d", format, workers, size, err, line)
				}
			}
		}
	}
}

// collectRecords returns the rows of a table in text, which is split into pieces of about size bytes.
func (r *reader) collectRecords(t *testing.T, h heading, file io.Reader, size int) (*Dense, error) {
	layout, blocks, err := r.openRecords(t.Context(), h, "file", file, tabular.Options{}, size, r.ended)
	if err != nil {
		return nil, err
	}
	r.columns, r.lines = layout.Others(), true
	return r.collect(r.readTable(t.Context(), layout, blocks))
}

// FuzzCSV compares the cells of each row, and the cuts between rows, with encoding/csv.
func FuzzCSV(f *testing.F) {
	for _, tt := range recordInputs {
		f.Add([]byte(tt.content), byte(','))
	}
	for _, text := range []string{"a,b\n1,2\n", "\"a\"\"\",\"\n\"\r\n\r\n,\n\"\"", "a\"b,c\n\"d\"e,f\n\"g", "\"a\"\n\"b\"", "\r\na\r,b\r\n"} {
		f.Add([]byte(text), byte(','))
		f.Add([]byte(text), byte('\t'))
	}
	f.Fuzz(func(t *testing.T, content []byte, comma byte) {
		if comma != ',' && comma != '\t' {
			comma = ';'
		}
		format := &csvFormat{comma: comma, names: make([]string, 1)}
		fuzzRead(t, append([]byte(`word,embedding`+"\n"), content...), ReadOptions{})
		end, quote := format.cut(content, true)
		if quote >= 0 {
			content = content[:end]
		}
		var got [][]string
		problem := false
		p := csvParser{csvFormat: format, b: content}
		for p.nextRow() {
			var row []string
			for !p.ended {
				cell, err := p.nextCell()
				row = append(row, strings.ReplaceAll(string(cell), "\r\n", "\n")) // as encoding/csv
				problem = problem || err != nil
			}
			got = append(got, row)
			if next, _ := format.cut(content[:min(p.i, len(content))], false); p.i < len(content) && next != p.i {
				t.Fatalf("row %q of %q ends at %d, and is cut at %d", row, content, p.i, next)
			}
		}
		reader := csv.NewReader(bytes.NewReader(content))
		reader.Comma, reader.FieldsPerRecord = rune(comma), -1
		want, err := reader.ReadAll()
		// A quote within a cell has no meaning here; encoding/csv refuses it, or reads on to the next one.
		if errors.Is(err, csv.ErrBareQuote) {
			return
		}
		if (err != nil) != problem {
			t.Fatalf("%q: error %v, rows %q", content, err, got)
		}
		if err == nil && !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("%q: %q, want %q", content, got, want)
		}
	})
}

// exotic matches numbers that encoding/json refuses but lists may contain, as in CSV, and values that Python writes.
var exotic = regexp.MustCompile(`[0-9]\.([^0-9]|$)|[^0-9]\.|[^eE]\+|[^0-9.eE+-]0[0-9]|-0[0-9]|[0-9]\s+[-.0-9]|NaN|Infinity`)

// FuzzJSON compares a line with encoding/json.
func FuzzJSON(f *testing.F) {
	for _, tt := range recordInputs {
		f.Add([]byte(tt.content))
	}
	for _, text := range []string{`{"v":[1,2.5e-1,-0,1E+2], "\u0076":"\ud83d\ude00\ud83d\n\/"}`, `{"v":[01,+1,.5,1.,null]}`, `{"v":[1,]}`, `{"v":"[1 2]","n":{"a":[{},[]],"b":"]}\""},"word":"x"}`, `{"n":["]"],"v":[1]}`, `{}`} {
		f.Add([]byte(text))
	}
	layout := newRecordLayout(must(tabular.Choose([]tabular.Column{{Name: "word", Kind: tabular.Text}, {Name: "v", Kind: tabular.List}}, tabular.Options{})))
	f.Fuzz(func(t *testing.T, content []byte) {
		fuzzRead(t, content, ReadOptions{})
		line, _, _ := bytes.Cut(content, newline)
		format := &jsonFormat{index: map[string]int{"word": 0, "v": 1}, keys: []string{"word", "v"}}
		if len(bytes.TrimSpace(line)) == 0 || exotic.Match(line) {
			return
		}
		out := format.parse(line, layout)
		var want map[string]any
		err := json.Unmarshal(line, &want)
		if err == nil && want == nil {
			err = errors.New("null")
		}
		if len(out.Rows) != 1 || err != nil && out.Rows[0].Err == nil {
			t.Fatalf("%q: rows %+v, want the error %v", line, out.Rows, err)
		}
		row := out.Rows[0]
		if err != nil || row.Err != nil && strings.Contains(row.Err.Error(), "is repeated") {
			return
		}
		list, isList := want["v"].([]any)
		var numbers []float32
		for _, x := range list {
			x, isNumber := x.(float64)
			isList = isList && isNumber
			numbers = append(numbers, float32(x))
		}
		if _, isString := want["v"].(string); !isString && isList != (row.Err == nil) && !(isList && strings.Contains(row.Err.Error(), "too large")) {
			t.Fatalf("%q: error %v", line, row.Err)
		}
		if isList && row.Err == nil {
			for i, x := range out.Numbers { // rounded once here, twice above
				if y := numbers[i]; x != y && math.Nextafter32(x, y) != y {
					t.Fatalf("%q: numbers %v, want %v", line, out.Numbers, numbers)
				}
			}
		}
		if id, ok := want["word"].(string); ok && utf8.Valid(line) && row.Name != id {
			t.Fatalf("%q: word %q, want %q", line, row.Name, id)
		}
	})
}

// A table can be the word list of vectors, with ids, texts and other columns.
func TestReadTableAsWordList(t *testing.T) {
	array := npyFile(&Dense{IDs: make([]string, 3), Dim: 1, Data: []float32{1, 2, 3}}, false)
	texts := &Dense{IDs: []string{"x", "y", "z"}, Dim: 1, Data: []float32{1, 2, 3}, Texts: &Texts{
		Text: []string{"one", "two\nlines", "one"}, Columns: []Column{{"kind", []string{"a", "b", "a"}}},
	}}
	words := &Dense{IDs: []string{"one", "two", "three"}, Dim: 1, Data: texts.Data}
	for _, tt := range []struct {
		name, list string
		o          ReadOptions
		want       *Dense
		columns    string
	}{
		{"CSV", "id,text,kind\nx,one,a\ny,\"two\nlines\",b\nz,one,a\n", ReadOptions{}, texts, `texts of column "text", ids of "id", with ["kind"]`},
		{"JSON lines", `{"id":"x","text":"one","kind":"a"}` + "\n" + `{"id":"y","text":"two\nlines","kind":"b"}` + "\n" + `{"id":"z","text":"one","kind":"a"}` + "\n", ReadOptions{}, texts, `texts of column "text", ids of "id", with ["kind"]`},
		{"other names", "key\tnote\tkind\nx\tone\ta\ny\t\"two\nlines\"\tb\nz\tone\ta\n", ReadOptions{IDColumn: "key", TextColumn: "note"}, texts, `texts of column "note", ids of "key", with ["kind"]`},
		{"words", "word\tcount\none\t1\ntwo\t2\nthree\t3\n", ReadOptions{}, words, ""},
		{"the first two", "word\tcount\none\t1\ntwo\t2\nthree\t3\n", ReadOptions{MaxRows: 2}, &Dense{IDs: words.IDs[:2], Dim: 1, Data: words.Data[:2]}, ""},
	} {
		for _, list := range []string{tt.list, gzipped(tt.list), "\ufeff" + tt.list} {
			tt.o.WordList = tempFile(t, list)
			got, source, err := Read(t.Context(), []string{tempFile(t, array)}, tt.o)
			if err != nil || !reflect.DeepEqual(got, tt.want) || source.Columns != tt.columns || source.WordsSHA256 == "" {
				t.Errorf("%s: %+v of %+v, error %v", tt.name, got, source, err)
			}
			if warning := tt.o.WordList + `: columns not read: "count" (number)`; tt.columns == "" && !slices.Equal(source.Warnings, []string{warning}) {
				t.Errorf("%s: warnings %q, want %q", tt.name, source.Warnings, warning)
			}
		}
	}
	for list, message := range map[string]string{
		"word,n\na,1\nb,2\n":               "LIST: the word list, read as CSV, has fewer words than rows (got 2 words)",
		"word,n\na,1\nb,2\nc,3\nd,4\n":     "LIST: the word list, read as CSV, has more words than rows (got more than 3 words)",
		"id,text\na,b,c\nd,e,f\ng,h\n":     "LIST:2: read as CSV: the row has the wrong number of cells (got 3, want 2)",
		`{"text":"a"}` + "\nnull\n":        "LIST:2: read as JSON lines: not a JSON object (got \"null\", want { at byte 1)",
		"word,n\na,1\nb\nc,3\n":            `LIST:3: word "b": read as CSV: the row has the wrong number of cells (got 1, want 2)`,
		"id,text\na,\"b\n\"\na,b\nc,b\n":   `LIST:4: a previous row has the same id, "a"`,
		"text,n\na,1\nb,2\n\"c,1\n":        "LIST:4: the quote that begins in this line doesn't end within the file, or within 33554432 bytes",
		"label\tcount\na\t1\nb\t2\nc\t3\n": "LIST:1: the word contains a tab; " + listAdvice,
		"key,body\na,b\nc,d\ne,f\n":        "LIST: the word list has more words than rows (got more than 3 words); " + listAdvice,
		`{"text":""}`:                      "LIST: the word list, read as JSON lines, has fewer words than rows (got 1 words)",
		`{"n":1}`:                          `LIST: no column has words or texts (columns: ["n"])`,
	} {
		checkError(t, tempFile(t, array), ReadOptions{WordList: tempFile(t, list)}, message)
	}
	// Texts aren't a table if no column is named as words or texts, or if only their first line looks like a table.
	for _, lines := range []string{"well, yes\nno, not yet\nif, then\n", "Content, price and quality were good.\nfine\nno, not, yet\n", ", a\nb, c\nd, e\n"} {
		got, _, err := Read(t.Context(), []string{tempFile(t, array)}, ReadOptions{WordList: tempFile(t, lines), Rows: KindTexts})
		if err != nil || !slices.Equal(got.Texts.Text, strings.Split(lines, "\n")[:3]) {
			t.Errorf("%+v, error %v", got, err)
		}
	}
	long := strings.Repeat("a ", window) // no complete row is among the first lines
	got, _, err := Read(t.Context(), []string{tempFile(t, array)}, ReadOptions{WordList: tempFile(t, "id,text\nx,\""+long+"\"\ny,b\nz,c\n")})
	if err != nil || !slices.Equal(got.IDs, []string{"x", "y", "z"}) || got.Texts.Text[0] != long {
		t.Errorf("a list with a long row: error %v", err)
	}
	checkError(t, tempFile(t, array), ReadOptions{WordList: tempFile(t, "key,body\na,b\nc,d\ne,f\n"), TextColumn: "bdy"}, `LIST: has no column "bdy" (columns: ["key" "body"])`)
	checkError(t, tempFile(t, array), ReadOptions{WordList: tempFile(t, "a\nb\nc\n"), IDColumn: "id"}, "FILE: "+errColumns.Error())
}

// Packed bits of binary embeddings aren't numbers, unless their name is chosen.
func TestReadPackedBits(t *testing.T) {
	const dim = 512
	rng := rand.New(rand.NewPCG(1, 2))
	vector := make([]float32, dim)
	raw := []byte(npyHeader("|u1", 1, dim))
	for i := range vector {
		vector[i] = float32(rng.IntN(256))
		raw = append(raw, byte(vector[i]))
	}
	const message = "FILE: seems to have packed bits of binary embeddings; unpack them first with numpy.unpackbits, after adding 128 if they are int8"
	checkError(t, tempFile(t, string(raw)), ReadOptions{}, message)
	for _, content := range []string{`{"word":"0","embedding":` + string(must(json.Marshal(vector))) + "}", "word,embedding\n0,\"" + fmt.Sprint(vector) + "\"\n"} {
		checkError(t, tempFile(t, content), ReadOptions{}, message)
		checkRead(t, tempFile(t, content), ReadOptions{VectorColumns: "embedding"}, &Dense{IDs: []string{"0"}, Dim: dim, Data: vector})
	}
}
