package vectors

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"overcomplete/internal/npy"
	"overcomplete/internal/safetensors"
	"overcomplete/testonly"
	"overcomplete/vectors/internal/tabular"
)

// sample returns unusual words and values that are valid in every format, except that
// binary words can't contain spaces.
func sample() *Dense {
	d := &Dense{
		IDs: []string{
			"the", "2008", "1/2", "a\u00a0b", "\u2009", "c\u0085d", "naïve", "日本語", ",", "\"", "1e5", "-0.5", "nan", "\ufeff",
		},
		Dim: 5,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range d.IDs {
		for range d.Dim {
			d.Data = append(d.Data, float32(rng.NormFloat64()))
		}
	}
	copy(d.Data, []float32{0, float32(math.Copysign(0, -1)), 0.1, -1e-3, 0.16777216})
	return d
}

func textRows(d *Dense, end string) string {
	var b strings.Builder
	for i, w := range d.IDs {
		b.WriteString(w)
		for _, x := range d.Row(i) {
			b.WriteString(" " + strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		b.WriteString(end)
	}
	return b.String()
}

// bareRows returns the rows without their words.
func bareRows(d *Dense) string {
	var b strings.Builder
	for i := range d.IDs {
		for k, x := range d.Row(i) {
			fmt.Fprintf(&b, "%s%v", []string{"", "\t"}[min(k, 1)], x)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func headerLine(d *Dense) string { return fmt.Sprintf("%d %d\n", d.Len(), d.Dim) }

func binaryRows(d *Dense, end string) string {
	var b bytes.Buffer
	for i, w := range d.IDs {
		b.WriteString(w + " ")
		binary.Write(&b, binary.LittleEndian, d.Row(i))
		b.WriteString(end)
	}
	return b.String()
}

// npyFile returns a .npy file with float64 numbers in Fortran order, or float32
// in C order.
func npyFile(d *Dense, float64s bool) string {
	var b bytes.Buffer
	if !float64s {
		npy.Write(&b, []int{d.Len(), d.Dim}, d.Data)
		return b.String()
	}
	npy.WriteHeader(&b, npy.Header{Type: "<f8", Fortran: true, Shape: []int{d.Len(), d.Dim}})
	for j := range d.Dim {
		for i := range d.IDs {
			binary.Write(&b, binary.LittleEndian, float64(d.Row(i)[j]))
		}
	}
	return b.String()
}

// npzFile returns a .npz file of the vectors, in the array name.
func npzFile(d *Dense, name string) string {
	var b bytes.Buffer
	a := npy.NewArchiveWriter(&b)
	w, _ := a.Create(name)
	npy.Write(w, []int{d.Len(), d.Dim}, d.Data)
	a.Close()
	return b.String()
}

// tensorFile returns a .safetensors file of the vectors, in the tensor name.
func tensorFile(d *Dense, name string) string {
	var b bytes.Buffer
	safetensors.Write(&b, nil, []safetensors.Tensor{
		safetensors.New(name, []int{d.Len(), d.Dim}, d.Data),
		safetensors.New("scale", []int{1}, []float32{1}),
	})
	return b.String()
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func zstandard(s string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(s), nil))
}

// zstandardWindow returns s stored as one block of a zstd frame (RFC 8878) that
// declares a window of 2^log bytes.
func zstandardWindow(log int, s string) string {
	header := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(log-10) << 3}
	return string(append(header, byte(len(s)<<3|1), byte(len(s)>>5), 0)) + s
}

func zipFile(name, content string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, _ := z.Create(name)
	w.Write([]byte(content))
	z.Close()
	return b.String()
}

func tempFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	testonly.Must(t, os.WriteFile(path, []byte(content), 0o666))
	return path
}

func TestReadFormats(t *testing.T) {
	d := sample()
	list := strings.Join(d.IDs, "\n")
	tests := []struct {
		name, content, format string
		wordList              string
	}{
		{"GloVe", textRows(d, "\n"), formatGloVe, ""},
		{"GloVe without a last newline", strings.TrimSuffix(textRows(d, "\n"), "\n"), formatGloVe, ""},
		{"GloVe with trailing spaces", textRows(d, " \t \n"), formatGloVe, ""},
		{"GloVe with CRLF, a BOM and blank lines", "\ufeff\r\n \r\n" + textRows(d, "\r\n\r\n"), formatGloVe, ""},
		{"GloVe with tabs", strings.ReplaceAll(textRows(d, "\n"), " ", "\t"), formatGloVe, ""},
		{"GloVe with runs of spaces", strings.ReplaceAll(textRows(d, "\n"), " ", "  \t"), formatGloVe, ""},
		{"word2vec text", headerLine(d) + textRows(d, "\n"), formatText, ""},
		{"word2vec text with CRLF and a BOM", "\ufeff" + headerLine(d) + textRows(d, "\r\n"), formatText, ""},
		{"fastText", headerLine(d) + textRows(d, " \n"), formatText, ""},
		{"word2vec binary as word2vec writes it", headerLine(d) + binaryRows(d, "\n"), formatBinary, ""},
		{"word2vec binary as gensim writes it", headerLine(d) + binaryRows(d, ""), formatBinary, ""},
		{"npy", npyFile(d, false), formatNpy, list},
		{"npy, float64, Fortran order", npyFile(d, true), formatNpy, list + "\n"},
		{"text without words", bareRows(d), formatBare, list},
		{"npz", npzFile(d, "vectors"), formatNpz, list},
		{"npz with any name", npzFile(d, "arr_0"), formatNpz, list},
		{"safetensors", tensorFile(d, "embeddings"), formatTensor, list},
		{"safetensors with any name", tensorFile(d, "model.embed.weight"), formatTensor, list},
	}
	compress := map[string]func(string) string{
		"plain": func(s string) string { return s },
		"gzip":  gzipped,
		"zstd":  zstandard,
	}
	for _, test := range tests {
		for name, compress := range compress {
			t.Run(test.name+", "+name, func(t *testing.T) {
				var o ReadOptions
				if test.wordList != "" {
					o.WordList = tempFile(t, compress(test.wordList))
				}
				stored := compress(test.content)
				if test.name == "npy, float64, Fortran order" && name != "plain" {
					checkError(t, tempFile(t, stored), o, "FILE: array is in Fortran order and must be read in parts; save it in C order (numpy.ascontiguousarray)")
					return
				}
				source := checkRead(t, tempFile(t, stored), o, d)
				sum := sha256.Sum256([]byte(stored))
				want := Source{Name: "file", SHA256: hex.EncodeToString(sum[:]), Format: test.format, Kind: KindWords, Rows: d.Len()}
				if o.WordList != "" {
					sum := sha256.Sum256([]byte(compress(test.wordList)))
					want.WordsSHA256 = hex.EncodeToString(sum[:])
				}
				source.reading = reading{}
				if !reflect.DeepEqual(*source, want) {
					t.Errorf("source is %+v, want %+v", *source, want)
				}
			})
		}
	}
}

// checkDense compares the bits of numbers, so that -0 differs from 0.
func checkDense(t *testing.T, got, want *Dense) {
	t.Helper()
	if !slices.Equal(got.IDs, want.IDs) {
		t.Fatalf("words are %q, want %q", got.IDs, want.IDs)
	}
	if got.Dim != want.Dim || len(got.Data) != len(want.Data) {
		t.Fatalf("%d numbers in rows of %d, want %d in rows of %d", len(got.Data), got.Dim, len(want.Data), want.Dim)
	}
	for i, x := range got.Data {
		if math.Float32bits(x) != math.Float32bits(want.Data[i]) {
			t.Fatalf("number %d is %v, want %v", i, x, want.Data[i])
		}
	}
	if !reflect.DeepEqual(got.Texts, want.Texts) {
		t.Fatalf("texts are %.500q, want %.500q", fmt.Sprint(got.Texts), fmt.Sprint(want.Texts))
	}
}

// checkRead checks the words, vectors and warnings of a file.
func checkRead(t *testing.T, path string, o ReadOptions, want *Dense) *Source {
	t.Helper()
	got, source, err := Read(t.Context(), []string{path}, o)
	testonly.Must(t, err)
	checkDense(t, got, want)
	return source
}

// manyRows returns n rows "w0 0 0", "w1 1 1" and so on.
func manyRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d %d %d\n", i, i, i)
	}
	return b.String()
}

// An oddInput is an unusual but valid input, with all warnings.
type oddInput struct {
	name, content string
	options       ReadOptions
	want          *Dense
	warnings      string
}

var oddInputs = []oddInput{
	{"words with spaces", ". . . 1 2\nat name@domain.com 3 4\n. . 5 6\na 7 8\n", ReadOptions{},
		&Dense{IDs: []string{". . .", "at name@domain.com", ". .", "a"}, Dim: 2, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8}}, ""},
	{"words that end in a number", "1 2 0.1 0.2\na 0.3 0.4\niphone 4 0.5 0.6\nb 0.7 0.8\n2008 0.9 1.0\n", ReadOptions{},
		&Dense{IDs: []string{"1 2", "a", "iphone 4", "b", "2008"}, Dim: 2, Data: []float32{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1}},
		`words that end in a number, which may be an excess value of the vector: 2 ("1 2", "iphone 4")`},
	{"numbers only", "2007 1 2\n2008 3 4\n", ReadOptions{},
		&Dense{IDs: []string{"2007", "2008"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, ""},
	{"one dimension", "a 1\n5 2\n6 3\n", ReadOptions{},
		&Dense{IDs: []string{"a", "5", "6"}, Dim: 1, Data: []float32{1, 2, 3}}, ""},
	{"duplicates", "a 1 2\nb 3 4\na 5 6\nc 7 8\nb 9 10\na 0 0\n", ReadOptions{},
		&Dense{IDs: []string{"a", "b", "c"}, Dim: 2, Data: []float32{1, 2, 3, 4, 7, 8}}, `duplicate words, only the first row of each kept: 3 ("a", "b", "a")`},
	{"malformed rows dropped", "a 1 2\nb 3\nc 5 nan\nd 7 8\ne\xff 9 10\nf x x\na 1e39 2\ng 0.5 1 2", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"a", "d"}, Dim: 2, Data: []float32{1, 2, 7, 8}},
		`malformed rows dropped: 6 (FILE:2: word "b": the vector has the wrong length (got 1, want 2 numbers), ` +
			`FILE:3: word "c": value 2 is not a finite number (got "nan"), FILE:5: word "e\xff": the word isn't UTF-8, …)`},
	{"malformed rows dropped from a binary", "3 1\na \x00\x00\x80\x3fb \x00\x00\xc0\x7f\nc\nd \x00\x00\x80\x3f", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{1}},
		`malformed rows dropped: 2 (FILE: row 2: word "b": value 1 is not a finite number in the range of float32 (got NaN), FILE: row 3: word "c\nd": the word contains a tab, a line break or a NUL)`},
	{"zstd with a window of 128 MiB", zstandardWindow(27, "a 1 2\n"), ReadOptions{},
		&Dense{IDs: []string{"a"}, Dim: 2, Data: []float32{1, 2}}, ""},
	{"gzip of two parts, padded with zeros", gzipped("a 1 2\n") + "\x00" + gzipped("b 3 4\n") + strings.Repeat("\x00", 512), ReadOptions{},
		&Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, ""},
	{"a row with a NUL dropped", "a 1 2\nb\x00c 3 4\nd 5 6\n", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"a", "d"}, Dim: 2, Data: []float32{1, 2, 5, 6}}, `malformed rows dropped: 1 (FILE:2: word "b\x00c": the word contains a tab, a line break or a NUL)`},
	{"a malformed row after a header, and a control character", "3 2\nx 1\ny\x1f 1 2\nz 3 4\n", ReadOptions{SkipBad: true},
		&Dense{IDs: []string{"y\x1f", "z"}, Dim: 2, Data: []float32{1, 2, 3, 4}}, `malformed rows dropped: 1 (FILE:2: word "x": the vector has the wrong length (got 1, want 2 numbers))`},
	{"zero rows", "a 0 0\nb 3 4\nc -0 0.0\n", ReadOptions{},
		&Dense{IDs: []string{"a", "b", "c"}, Dim: 2, Data: []float32{0, 0, 3, 4, float32(math.Copysign(0, -1)), 0}}, `rows of zeros: 2 ("a", "c")`},
	{"huge rows", "z 0 0\na 3 4\nb 4 3\ne 5 0\nc 3e3 4.001e3\nd 3e3 4e3", ReadOptions{},
		&Dense{IDs: []string{"z", "a", "b", "e", "c", "d"}, Dim: 2, Data: []float32{0, 0, 3, 4, 4, 3, 5, 0, 3e3, 4.001e3, 3e3, 4e3}},
		`rows of zeros: 1 ("z")` + "\n" + `rows with a norm over 1000 times the median: 1 ("c")`},
	{"more rows than the header declares", "1 2\na 1 2\nb 3 4\n", ReadOptions{},
		&Dense{IDs: []string{"a"}, Dim: 2, Data: []float32{1, 2}}, "ignored the rows after the 1 that the header declares"},
	{"more data than the header of a binary declares", "1 1\na \x00\x00\x80\x3f\nb", ReadOptions{},
		&Dense{IDs: []string{"a"}, Dim: 1, Data: []float32{1}}, "ignored the rows after the 1 that the header declares"},
	{"only as many words as wanted", "9 2\na 1 2\na 3 4\nb 5 6\nthis is no row\n", ReadOptions{MaxRows: 2},
		&Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 5, 6}}, `duplicate words, only the first row of each kept: 1 ("a")`},
}

func TestReadOddInputs(t *testing.T) {
	for _, test := range slices.Concat(oddInputs, oddRecords) {
		t.Run(test.name, func(t *testing.T) {
			path := tempFile(t, test.content)
			source := checkRead(t, path, test.options, test.want)
			if got := strings.ReplaceAll(strings.Join(source.Warnings, "\n"), path, "FILE"); got != test.warnings {
				t.Errorf("warnings are\n%s\nwant\n%s", got, test.warnings)
			}
		})
	}
}

const (
	pickleMessage  = "FILE: is a Python pickle, such as gensim's .kv, which only Python can read; save the vectors with gensim's save_word2vec_format or with numpy.save"
	noWordsMessage = "FILE: no line begins with a word; vectors without words need a file with a word per line"
	numbered       = "the input has no words: rows are named by their numbers, from 0; a word list can name them"
	ownWords       = "FILE: text and word2vec files have their own words; a word list can name only rows without words, and replace those in tables"
)

const ownWordsMessage = `FILE: contains "words", which aren't read; write them to a file with a word per line, and name it as the word list`

const formatMessage = "FILE: unknown format of vectors (want text of GloVe, word2vec or fastText, word2vec binary, CSV, JSON lines, .npy, .npz or .safetensors, plain or compressed with gzip or zstd)"

// A badInput is an invalid input and its error.
type badInput struct{ name, content, message string }

var badInputs = []badInput{
	{"empty", "", "FILE: the file is empty"},
	{"blank", " \n\n", formatMessage},
	{"prose", "Call me Ishmael.\nSome years ago - never mind\nhow long precisely\n", formatMessage},
	{"PNG", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", formatMessage},
	{"UTF-16", "\xff\xfea\x00 \x001\x00\n\x00", "FILE: " + errUTF16.Error()},
	{"compressed twice", gzipped(gzipped("a 1 2\n")), formatMessage},
	{"a pickle", "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x1dgensim.models.keyedvectors", pickleMessage},
	{"no words", "0\t0.5\t0\n0\t0\t1.5\n0.1\t0\t0\n", noWordsMessage},

	{"too few numbers", "a 1 2\nb 1 2\nbank 1\n", `FILE:3: word "bank": the vector has the wrong length (got 1, want 2 numbers)`},
	{"too many numbers", "a 1 2\nb 1 2\nbank 1 .5 1 2\n", `FILE:3: word "bank": the vector has the wrong length (got 4, want 2 numbers)`},
	{"no word", "a 1 2\nb 1 2\n\n 1 2\n", `FILE:4: word "1": the vector has the wrong length (got 1, want 2 numbers)`},
	{"NaN", "a 1 2\nb NaN 2\n", `FILE:2: word "b": value 1 is not a finite number (got "NaN")`},
	{"overflow", "a 1 2\nb 1 -3.5e38\nc 1 2\n", `FILE:2: word "b": value 2 is too large for a float32 (got "-3.5e38")`},
	{"a long field", "a 1 2\nb 1 " + strings.Repeat("x", 99) + "\nc 1 2\n", `FILE:2: word "b": value 2 is not a finite number (got "` + strings.Repeat("x", 60) + `"…)`},
	{"Latin-1", "a 1 2\nna\xefve 1 2\n", `FILE:2: word "na\xefve": the word isn't UTF-8`},
	{"a tab in a word", "a 1 2\nb\tc 1 2\n", `FILE:2: word "b\tc": the word contains a tab, a line break or a NUL`},
	{"the first of two bad rows", manyRows(90000) + "b 1\nc 1 2 3 x\n" + manyRows(9), `FILE:90001: word "b": the vector has the wrong length (got 1, want 2 numbers)`},

	{"text cut short", "3 2\na 1 2\nb 3 4\n", "FILE: the file is cut short: its header declares more rows (got 2, want 3)"},
	{"a tar archive", tarFile("vectors.txt", "a 1 2\nb 3 4\n"), tarMessage},
	{"a compressed tar archive", gzipped(tarFile("vectors.txt", "a 1 2\nb 3 4\n")), tarMessage},
	{"a fastText model", "\xba\x16\x4f\x2f\x0c\x00\x00\x00", "FILE: is a fastText model; use the .vec file beside it, or write its vectors with fasttext print-word-vectors"},
	{"objects", npyHeader("|O", 96), "FILE: array holds Python objects; save it as numbers, numpy.stack(rows)"},
	{"strings", npyHeader("<U5", 96), `FILE: array has type "<U5", not float16, bfloat16, float32, float64 or integers`},
	{"no words", "0 2\n", "FILE: contains no vectors"},
	{"no numbers in the header", "2 0\na\nb\n", `FILE: the header declares an invalid vector length (got "0", want 1 to 1048576)`},
	{"too many numbers in the header", "2 1048577\na 1\n", `FILE: the header declares an invalid vector length (got "1048577", want 1 to 1048576)`},
	{"too many words in the header", "99999999999999999999 2\na 1\n", `FILE: the header declares too many rows (got "99999999999999999999")`},

	{"a binary cut in a word", "2 1\na \x00\x00\x80\x3f\nb", "FILE: the file is cut short: its header declares more rows (got 1, want 2)"},
	{"a binary cut in a vector", "2 1\na \x00\x00\x80\x3f\nb \x00\x00", "FILE: the file is cut short: its header declares more rows (got 1, want 2)"},
	{"infinity in a binary", "1 1\na \x00\x00\x80\xff", `FILE: row 1: word "a": value 1 is not a finite number in the range of float32 (got -Inf)`},
	{"an empty word in a binary", "1 1\n \x00\x00\x80\x3f", `FILE: row 1: the word is empty`},
	{"a newline in a word of a binary", "1 1\n\n\na \x00\x00\x80\x3f", `FILE: row 1: word "\na": the word contains a tab, a line break or a NUL`},
	{"no end of a word in a binary", "1 1\n" + strings.Repeat("\x01", window), "FILE: damaged: a word doesn't end within 1048576 bytes"},

	{"gzip cut at its end", gzipped("a 1 2\n")[:30], "FILE: the gzip data are cut short"},
	{"gzip cut in the middle", half(gzipped(manyRows(200000))), "FILE: the gzip data are cut short"},
	{"gzip before other bytes", gzipped("a 1 2\n") + "\x00padding after", "FILE: damaged gzip data: gzip: invalid header"},
	{"gzip with a wrong checksum", strings.Replace(gzipped("a 1 2\n"), "\x06\x00\x00\x00", "\x07\x00\x00\x00", 1), "FILE: damaged gzip data: gzip: invalid checksum"},
	{"zstd cut in the middle", half(zstandard(manyRows(200000))), "FILE: the zstd data are cut short"},
	{"zstd with a window of 256 MiB", zstandardWindow(28, "a 1 2\n"), "FILE: damaged zstd data: window size exceeded"},

	{"npz without arrays", zipFile("glove.txt", "a 1 2\n"), "FILE: is a zip archive without NumPy arrays; unzip it first"},
	{"safetensors cut short", half(tensorFile(sample(), "vectors")), "FILE: truncated: the tensors need 284 bytes, the file has 74"},
	{"safetensors of NaN", tensorFile(&Dense{IDs: []string{"a", "b"}, Dim: 1, Data: []float32{1, float32(math.NaN())}}, "x"), `FILE: row 2: word "1": value 1 is not a finite number in the range of float32 (got NaN)`},
	{"safetensors without a matrix", tensorFile(&Dense{}, "scale"), "FILE: contains no tensor of two dimensions of type F32, F64, F16 or BF16"},
	{"npz cut short", half(npzFile(sample(), "vectors")), "FILE: not a .npz file: zip: not a valid zip file"},
}

const tarMessage = "FILE: is a tar archive; extract its files first"

func tarFile(name, content string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Mode: 0o666, Size: int64(len(content))})
	io.WriteString(w, content)
	w.Close()
	return b.String()
}

// npyHeader returns an .npy file of a type without its elements.
func npyHeader(dtype string, shape ...int) string {
	var b bytes.Buffer
	npy.WriteHeader(&b, npy.Header{Type: dtype, Shape: shape})
	return b.String()
}

func half(s string) string { return s[:len(s)/2] }

func TestReadErrors(t *testing.T) {
	for _, test := range slices.Concat(badInputs, badRecords) {
		t.Run(test.name, func(t *testing.T) {
			checkError(t, tempFile(t, test.content), ReadOptions{}, test.message)
		})
	}
}

// checkError checks that reading a file returns an InputError with the message, in which FILE stands for its path, and
// LIST for the path of the word list.
func checkError(t *testing.T, path string, o ReadOptions, message string) {
	t.Helper()
	d, source, err := Read(t.Context(), []string{path}, o)
	if err == nil {
		t.Fatalf("read %q, want an error", d.IDs)
	}
	if d != nil || source != nil {
		t.Error("there is a result beside the error")
	}
	var input *InputError
	if !errors.As(err, &input) || input.File == "" {
		t.Errorf("%#v isn't an InputError with a file", err)
	}
	got := strings.ReplaceAll(err.Error(), path, "FILE")
	if o.WordList != "" {
		got = strings.ReplaceAll(got, o.WordList, "LIST")
	}
	if got != message {
		t.Errorf("error is\n%s, want\n%s", got, message)
	}
}

func TestReadWordList(t *testing.T) {
	d := &Dense{IDs: []string{"a", "b"}, Dim: 2, Data: []float32{1, 2, 3, float32(math.Inf(1))}}
	tests := []struct {
		name, content, list string
		message             string
	}{
		{"text", "a 1 2\n", "a\n", ownWords},
		{"word2vec text", "1 2\na 1 2\n", "a\n", ownWords},
		{"text with a row that has a word", "0 1 2\nb 3 4\n", "a\nb\n", ownWords},
		{"text without words, and too few in the list", "0.5 1\n2 3\n", "a\n", "LIST: the word list has fewer words than rows (got 1 words)"},
		{"text without words, and too many in the list", "0.5 1\n2 3\n", "a\nb\nc\n", "LIST: the word list has more words than rows (got more than 2 words)"},
		{"text without words, and a row cut short", strings.Repeat(".5 1\n", window/4) + "1\n", strings.Repeat("a\n", window/4) + "b\n", `FILE:262145: word "b": the vector has the wrong length (got 1, want 2 numbers)`},
		{"too few words", npyFile(d, false), "a\n", "LIST: the word list has fewer words than rows (got 1 words)"},
		{"too many words", npyFile(&Dense{IDs: d.IDs, Dim: 1, Data: []float32{1, 2}}, false), "a\nb\n\n", "LIST: the word list has more words than rows (got more than 2 words)"},
		{"empty word", npyFile(d, false), "\nb\n", "LIST:1: the word is empty"},
		{"a word that isn't UTF-8", npyFile(d, false), "a\xff\nb\n", `LIST:1: word "a\xff": the word isn't UTF-8`},
		{"lines of numbers, and too many", "0.5 1\n2 3\n", "1,2\n3,4\n5,6\n", "LIST: the word list has more words than rows (got more than 2 words); " + listAdvice},
		{"infinity", npyFile(d, true), "a\nb\n", `FILE: row 2: word "b": value 2 is not a finite number in the range of float32 (got +Inf)`},
		{"one dimension", npyFile(&Dense{IDs: d.IDs}, false), "a\nb\n", "FILE: the array is not a matrix of rows × dimensions (got shape [2 0])"},
		{"a long word", npyFile(d, false), "a\n" + strings.Repeat("x", window), "LIST:2: the word is too long (want at most 1048576 bytes)"},
		{"UTF-16", npyFile(d, false), "\xfe\xff\x00a\x00\n\x00b\x00\n", "LIST: " + errUTF16.Error()},
		{"a JSON array", npyFile(d, false), `[{"word": "a"}, {"word": "b"}]`, "LIST: " + errJSONArray.Error()},
		{"npy cut short, from a stream", half(gzipped(npyFile(d, false))), "a\nb\n", "FILE: the gzip data are cut short"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkError(t, tempFile(t, test.content), ReadOptions{WordList: tempFile(t, test.list)}, test.message)
		})
	}
	t.Run("missing list", func(t *testing.T) {
		checkError(t, tempFile(t, npyFile(d, false)), ReadOptions{WordList: filepath.Join(t.TempDir(), "none")}, "LIST: no such file or directory")
	})
	t.Run("long words", func(t *testing.T) {
		long := []string{strings.Repeat("x", window/2), "b"}
		short := &Dense{IDs: long, Dim: 1, Data: []float32{1, 2}}
		checkRead(t, tempFile(t, npyFile(short, false)), ReadOptions{WordList: tempFile(t, strings.Join(long, "\n"))}, short)
	})
	t.Run("bad rows dropped", func(t *testing.T) {
		o := ReadOptions{SkipBad: true, WordList: tempFile(t, "\ufeffa\r\nb\r\n")}
		source := checkRead(t, tempFile(t, npyFile(d, false)), o, &Dense{IDs: []string{"a"}, Dim: 2, Data: []float32{1, 2}})
		if len(source.Warnings) != 1 {
			t.Errorf("warnings are %q, want one", source.Warnings)
		}
	})
	t.Run("bad words dropped, with their vectors", func(t *testing.T) {
		d := &Dense{IDs: make([]string, 4), Dim: 2, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8}}
		o := ReadOptions{SkipBad: true, WordList: tempFile(t, "a\n\nc\nd\n")}
		for _, content := range []string{".1e1 2\n3 4\n5 6\n7 8\n", npyFile(d, false), "e0,e1\n1,2\n3,4\n5,6\n7,8\n"} {
			checkRead(t, tempFile(t, content), o, &Dense{IDs: []string{"a", "c", "d"}, Dim: 2, Data: []float32{1, 2, 5, 6, 7, 8}})
		}
	})
}

// Integers and big-endian numbers are read, too.
func TestReadNpyTypes(t *testing.T) {
	for dtype, values := range map[string]any{
		"|i1": []int8{1, -2, 3, 4}, "|u1": []uint8{1, 254, 3, 4}, "<i2": []int16{1, -2, 3, 4}, "<u2": []uint16{1, 254, 3, 4},
		"<i4": []int32{1, -2, 3, 4}, "<u4": []uint32{1, 254, 3, 4}, "<i8": []int64{1, -2, 3, 4}, "<u8": []uint64{1, 254, 3, 4},
		"<f4": []float32{1, -2, 3, 4}, "<f8": []float64{1, -2, 3, 4},
	} {
		want := &Dense{IDs: []string{"0", "1"}, Dim: 2, Data: []float32{1, -2, 3, 4}}
		if dtype[1] == 'u' {
			want.Data[1] = 254
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			if order == binary.BigEndian {
				dtype = strings.Replace(dtype, "<", ">", 1)
			}
			file := []byte(npyHeader(dtype, 2, 2))
			file, err := binary.Append(file, order.(binary.ByteOrder), values)
			testonly.Must(t, err)
			checkRead(t, tempFile(t, string(file)), ReadOptions{}, want)
		}
	}
}

// The array of vectors has a usual name, or is the one that VectorColumns names.
func TestReadNamedArray(t *testing.T) {
	for _, tt := range []struct{ arrays, chosen, message string }{
		{"vectors x", "x", ""},
		{"vectors x", "y", `FILE: has no array "y" (arrays: ["vectors" "x"])`},
		{"x y", "", `FILE: contains several arrays, ["x" "y"]; name the one to read`},
		{"data indices indptr", "", "FILE: contains a sparse matrix, not dense vectors"},
		{"vectors words", "", ownWordsMessage},
	} {
		var b bytes.Buffer
		a := npy.NewArchiveWriter(&b)
		for name := range strings.FieldsSeq(tt.arrays) {
			w, _ := a.Create(name)
			npy.Write(w, []int{1, 1}, []float32{float32(len(name))})
		}
		a.Close()
		if tt.message != "" {
			checkError(t, tempFile(t, b.String()), ReadOptions{VectorColumns: tt.chosen}, tt.message)
			continue
		}
		checkRead(t, tempFile(t, b.String()), ReadOptions{VectorColumns: tt.chosen}, &Dense{IDs: []string{"0"}, Dim: 1, Data: []float32{1}})
	}
	var b bytes.Buffer
	safetensors.Write(&b, nil, []safetensors.Tensor{safetensors.New("vectors", []int{2, 1}, []float32{1, 2}), safetensors.New("x", []int{2, 1}, []float32{1, 1})})
	checkRead(t, tempFile(t, b.String()), ReadOptions{VectorColumns: "x"}, &Dense{IDs: []string{"0", "1"}, Dim: 1, Data: []float32{1, 1}})
	checkError(t, tempFile(t, b.String()), ReadOptions{VectorColumns: "y"}, `FILE: has no tensor "y" of two dimensions (tensors: ["vectors" "x"])`)
}

func TestReadSafetensorsTensors(t *testing.T) {
	matrix := func(name string, x float32) safetensors.Tensor {
		return safetensors.New(name, []int{1, 1}, []float32{x})
	}
	words := safetensors.NewText("words", 2, func(w io.Writer) error { _, err := io.WriteString(w, "a\n"); return err })
	var many []safetensors.Tensor
	var names []string // as the message shows the first five
	for i := range 200 {
		name := fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000))
		many = append(many, matrix(name, 1))
		if i < 5 {
			names = append(names, name[:60])
		}
	}
	for _, test := range []struct {
		tensors []safetensors.Tensor
		want    float32
		message string
	}{
		{[]safetensors.Tensor{matrix("weight", 1), matrix("vectors", 2), matrix("embeddings", 3)}, 2, ""},
		{[]safetensors.Tensor{matrix("weight", 1), matrix("embeddings", 3)}, 3, ""},
		{[]safetensors.Tensor{matrix("weight", 1), matrix("x", 3)}, 1, ""},
		// The usual names apply only to matrices.
		{[]safetensors.Tensor{safetensors.New("vectors", []int{1}, []float32{2}), matrix("x", 3)}, 3, ""},
		{[]safetensors.Tensor{matrix("x", 1), matrix("y", 2), words}, 0, `FILE: contains several tensors of two dimensions, ["x" "y"]; name the one to read`},
		{[]safetensors.Tensor{safetensors.New("ids", []int{1, 1}, []int32{1}), words}, 0, "FILE: contains no tensor of two dimensions of type F32, F64, F16 or BF16"},
		// Tensors of other types don't count as the only matrix.
		{[]safetensors.Tensor{safetensors.New("ids", []int{1, 1}, []int32{1}), matrix("x", 3)}, 3, ""},
		{[]safetensors.Tensor{safetensors.New("vectors", []int{1, 1}, []int32{1}), matrix("x", 3)}, 3, ""},
		{[]safetensors.Tensor{matrix("x", 1), words}, 0, ownWordsMessage},
		{append(many, words), 0, `FILE: contains several tensors of two dimensions, 200, such as ["` + strings.Join(names, `" "`) + `"]; name the one to read`},
	} {
		var b bytes.Buffer
		testonly.Must(t, safetensors.Write(&b, nil, test.tensors))
		path := tempFile(t, b.String())
		if test.message != "" {
			checkError(t, path, ReadOptions{}, test.message)
			continue
		}
		checkRead(t, path, ReadOptions{}, &Dense{IDs: []string{"0"}, Dim: 1, Data: []float32{test.want}})
	}
}

// standardInput replaces the standard input of the process by a pipe until the test ends, and
// returns the write end.
func standardInput(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	testonly.Must(t, err)
	stdin := os.Stdin
	os.Stdin = r
	t.Cleanup(func() {
		os.Stdin = stdin
		r.Close()
		w.Close()
	})
	return w
}

func TestReadStdin(t *testing.T) {
	many, numbered := manyRows(100000), &Dense{IDs: []string{"0", "1"}, Dim: 1, Data: []float32{1, 2}}
	for content, want := range map[string]*Dense{
		many:                         {IDs: []string{"w0", "w1", "w2"}, Dim: 2, Data: []float32{0, 0, 1, 1, 2, 2}},
		npzFile(numbered, "vectors"): numbered, // it requires random access
	} {
		w := standardInput(t)
		go func() {
			w.WriteString(content)
			w.Close()
		}()
		var o ReadOptions
		if content == many {
			o.MaxRows = 3
		}
		source := checkRead(t, "-", o, want)
		// The hash is of the whole input, although MaxRows limits the rows.
		sum := sha256.Sum256([]byte(content))
		if source.Name != "stdin" || source.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("source is %+v, want stdin and %x", source, sum)
		}
	}
	_, _, err := Read(t.Context(), []string{"-"}, ReadOptions{WordList: "-"})
	if want := "stdin: can't be both the vectors and the word list"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// Reading a table whose rows need no bytes ends when its context is cancelled.
func TestReadTableCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	blocks := 0
	table := func(yield func(tabular.Block, error) bool) {
		for blocks < 100 {
			if blocks++; blocks == 3 {
				cancel()
			}
			if !yield(tabular.Block{Rows: []tabular.Row{{Len: 1}}, Numbers: []float32{1}}, nil) {
				return
			}
		}
	}
	r := &reader{file: file{declared: -1}}
	layout := &tabular.Layout{Columns: []tabular.Column{{Kind: tabular.List}}, Name: -1, Vectors: []int{0}}
	_, err := r.collect(r.readTable(ctx, layout, table))
	if !errors.Is(err, context.Canceled) || blocks != 3 || r.kept != 2 {
		t.Errorf("error %v after %d blocks, %d words", err, blocks, r.kept)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func FuzzText(f *testing.F) {
	for _, test := range oddInputs {
		f.Add([]byte(test.content), test.options.SkipBad, test.options.MaxRows)
	}
	for _, test := range badInputs {
		if len(test.content) < 1<<10 {
			f.Add([]byte(test.content), false, 0)
			f.Add([]byte(test.content), true, 2)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, skipBad bool, maxWords int) {
		fuzzRead(t, content, ReadOptions{SkipBad: skipBad, MaxRows: maxWords})
	})
}

// fuzzRead checks the properties of Read that hold for any input.
func fuzzRead(t *testing.T, content []byte, o ReadOptions) {
	path := tempFile(t, string(content))
	d, _, err := Read(t.Context(), []string{path}, o)
	if err != nil {
		var input *InputError
		if !errors.As(err, &input) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q isn't an InputError of one line", err)
		}
		return
	}
	testonly.Must(t, d.Validate())
	if o.MaxRows > 0 && d.Len() > o.MaxRows {
		t.Fatalf("%d words with %+v", d.Len(), o)
	}
	seen := map[string]bool{}
	for _, w := range d.IDs {
		if w == "" || seen[w] || !utf8.ValidString(w) || strings.ContainsAny(w, "\n\r\t\x00") {
			t.Fatalf("word %q", w)
		}
		seen[w] = true
	}
	// SkipBad doesn't change the result for a valid input.
	if !o.SkipBad {
		o.SkipBad = true
		again, _, err := Read(t.Context(), []string{path}, o)
		testonly.Must(t, err)
		checkDense(t, again, d)
	}
}
