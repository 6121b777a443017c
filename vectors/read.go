package vectors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/input"
	"overcomplete/internal/safetensors"
	"overcomplete/vectors/internal/tabular"
)

// ReadOptions are the options of [Read] and [Stream]. With the zero value they read every row and
// fail at the first malformed one.
type ReadOptions struct {
	// MaxWords, if positive, limits the number of rows. The rows after them are ignored.
	MaxWords int

	// SkipBad drops malformed rows and counts them in a warning.
	SkipBad bool

	// WordList is the path of a file with the words, one per line in the order of the rows; "-" is
	// standard input. It may be compressed. It names the rows of files without words, and replaces
	// the words of .npz and .safetensors files and of tables.
	WordList string

	// Rows is the kind of the rows. If it is "", rows are texts if the name of their column or their
	// look says so: three words in most of them, or a line break in one. Rows of text files and of
	// word2vec binary are words then.
	Rows Kind

	// IDColumn, TextColumn and VectorColumn name columns of a table. TextColumn contains texts or
	// words. A column without a name is found if the table has only one candidate. IDColumn may be
	// "none".
	IDColumn, TextColumn, VectorColumn string

	// Keep, if not nil, limits the rows that [Read] keeps, to the first n or to a sample. Read calls it repeatedly
	// with the rows so far, without their vectors, until it returns one of these. The other rows
	// are checked and counted, except for their norms.
	Keep func(rows *Dense) (n int, sample *Sample)

	// Progress, if not nil, is called before each block of rows, with the share of the bytes of all files that
	// was read. It isn't called if that is unknown, as of pipes.
	Progress func(share float64)

	// Distinct makes [Stream] drop repeated words and accept rows of zeros, as Read does. It takes
	// about 50 bytes of memory per word.
	Distinct bool
}

// Source describes the files that [Read] or [Stream] has read.
type Source struct {
	Name     string   // the base name of the file, folder or pattern, or "stdin"
	SHA256   string   // of the file's bytes as stored, in hexadecimal; of several files, of their SHA-256, a line each
	Files    []File   // the files of a folder, a pattern or several paths, in their order; nil of one file
	Format   string   // such as "word2vec text"
	Kind     Kind     // of the rows
	Columns  string   // description of the columns of a table of texts
	Warnings []string // a line each, such as on duplicate words
	Rows     int      // number of valid rows, including those that ReadOptions.Keep leaves out

	WordsSHA256 string // SHA-256 of the word list, "" without one
}

// About returns the number of files if there are several, the format, and the columns of a table of texts.
func (s *Source) About() string {
	about := s.Format
	if len(s.Files) > 1 {
		about = fmt.Sprintf("%d files of %s", len(s.Files), about)
	}
	if s.Columns != "" {
		about += ", " + s.Columns
	}
	return about
}

// The values of Source.Format.
const (
	formatGloVe  = "GloVe text"
	formatText   = "word2vec text"
	formatBinary = "word2vec binary"
	formatBare   = "text without words"
	formatNpy    = "NumPy .npy"
	formatNpz    = "NumPy .npz"
	formatTensor = "safetensors"
)

// An InputError reports an input that the user has to mend: a file that can't be read, or doesn't
// contain what it should.
type InputError struct {
	File string // as it was given, or "stdin"; "" if the input isn't from a file
	Line int    // line of a text file, counted from 1; 0 if the error has none
	Row  int    // row of any other file, counted from 1; 0 if the error has none
	Word string // word of the malformed row, if it is known
	Err  error  // what is wrong

	// Options are the fields of [ReadOptions] by which the input can be read all the same.
	Options []string
}

func (e *InputError) Error() string {
	var places []string
	if e.Line > 0 {
		places = append(places, e.File+":"+strconv.Itoa(e.Line))
	} else if e.File != "" {
		places = append(places, e.File)
	}
	if e.Row > 0 {
		places = append(places, "row "+strconv.Itoa(e.Row))
	}
	if e.Word != "" {
		places = append(places, "word "+quote(e.Word))
	}
	return strings.Join(append(places, e.Err.Error()), ": ")
}

func (e *InputError) Unwrap() error { return e.Err }

// quote returns s in quotes, with what can't be printed escaped and only the
// first part of it if it is long.
func quote[T string | []byte](s T) string {
	const limit = 60
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}

// MaxDim bounds L, and thereby the memory that a header alone can claim.
const MaxDim = tabular.MaxDim

// window and windowLines are the most bytes and lines of a file that decide its format.
const (
	window      = 1 << 20
	windowLines = 100
)

// Read reads word vectors from the files that paths name, one after the other: a path is a file, "-" for
// standard input, a folder for all files below it in the order of their names, or a pattern of [filepath.Glob].
// Names that begin with "." or "_" are left out of folders and matches. All files must have the same format, length
// of vectors and columns. The names of folders key=value, in a folder or a match, are columns of texts.
//
// Read recognises the format, and a compression with gzip or zstd, by the content:
//
//   - GloVe text: each line is a word and L numbers. L is the number that most of
//     the first lines agree on.
//   - word2vec text and fastText's .vec: the same after a first line "V L". A first
//     line of two whole numbers is always taken for that.
//   - word2vec binary: a first line "V L", then for each row a word, a space, L
//     little-endian float32 and, in some files, a newline.
//   - text without words: L numbers a line, as [WriteProjectorVectors] writes. The words
//     are in o.WordList. Where the first numbers of the lines are whole numbers, each
//     another, they are the words if there is no list.
//   - NumPy's .npy: a V×L array of float16, bfloat16 as the package ml_dtypes has it,
//     float32 or float64. The words are in o.WordList.
//   - NumPy's .npz: such an array, named "vectors" or the only one. The words are in
//     o.WordList or, without it, in an array of strings named "words".
//   - .safetensors: a V×L tensor of F32, F64, F16 or BF16, named "vectors",
//     "embeddings" or "weight" (looked for in this order), or the only one of two
//     dimensions. The words are in o.WordList or, without it, in a U8 tensor named
//     "words", as UTF-8 with a newline after each word.
//   - Arrow and Parquet, if the program imports package columnar. The words are in
//     o.WordList or, without it, in the file.
//
// Rows of .npy, .npz, .safetensors, Arrow and Parquet files without words are named by their
// numbers from 0, with a warning.
//
// An .npz or .safetensors file that is compressed as a whole, or read from a pipe, is held in
// memory. It is refused if it expands to more than a hundred times its size.
//
// In text, fields are separated by spaces and tabs. A carriage return at the end of a
// line and a byte order mark are ignored, blank lines are skipped. The last L fields
// of a line are the vector; everything before them is the word, which may contain
// spaces. A file with fewer rows than its first line declares is an error; more rows
// are ignored, with a warning.
//
// A row is malformed if it has the wrong number of fields, if a field is not a
// finite decimal number in the range of float32, or if the word is empty, is not
// UTF-8 or contains a tab, a line break or a NUL. Of repeated words the first row is kept, with a
// warning. Rows of zeros, and rows whose norm is over 1000 times the median, are kept with a
// warning.
//
// Rows can be texts (see [ReadOptions]), such as sentences. Each text is kept, under its number or
// the input's id. A repeated id makes its row malformed.
//
// The result does not depend on the number of CPUs. Joining the rows takes twice their memory, except for those of
// one array; it is an error if the machine has less. Files are read to their ends even after o.MaxWords rows, to
// compute their SHA-256. A file that changes meanwhile is an error.
//
// An error of the input is an [*InputError]. If ctx is cancelled, Read returns ctx.Err() at once,
// even while it waits for standard input.
func Read(ctx context.Context, paths []string, o ReadOptions) (*Dense, *Source, error) {
	o.Distinct = true
	var s Source
	c := collector{keep: o.Keep}
	r := &reader{options: o}
	for block, err := range r.stream(ctx, paths, &s) {
		if err == nil {
			if err = c.add(block, r.announced); err != nil {
				err = inputError(input.Name(paths...), err)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := c.join(); err != nil {
		return nil, nil, inputError(input.Name(paths...), err)
	}
	s.Warnings = append(s.Warnings, normWarnings(&c.rows)...)
	return &c.rows, &s, nil
}

// Stream reads the same files as [Read] and yields their rows, some at a time and in the
// files' order. Its memory does not grow with the number of rows, except for arrays in Fortran order that are
// compressed or in .npz files, which it holds whole. (Of a Parquet file it holds a page of each column,
// of an Arrow file a record batch.) The caller may keep the rows. An error is the last thing
// that is yielded. If there is none, Stream sets *source at the end.
//
// Unlike Read, Stream forgets the rows that it has yielded: it notices neither repeated words,
// unless o.Distinct is set, nor unusual norms. A row of zeros is malformed here, unless
// o.Distinct is set.
func Stream(ctx context.Context, paths []string, o ReadOptions, source *Source) iter.Seq2[*Dense, error] {
	return (&reader{options: o}).stream(ctx, paths, source)
}

// stream is [Stream].
func (r *reader) stream(ctx context.Context, paths []string, source *Source) iter.Seq2[*Dense, error] {
	return func(yield func(*Dense, error) bool) {
		readCtx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := r.read(readCtx, paths, yield)
		switch {
		case err == errStopped:
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		case err != nil:
			yield(nil, err)
		default:
			*source = r.source
		}
	}
}

// inputError returns err as an InputError, which names the file at path unless it is one
// already.
func inputError(path string, err error) error {
	input, ok := errors.AsType[*InputError](err)
	if !ok {
		if fromOS, ok := errors.AsType[*fs.PathError](err); ok {
			err = fromOS.Err // it names the path again
		}
		input = &InputError{File: displayName(path), Err: err}
	}
	if input.Options != nil {
		return input
	}
	for err := input.Err; err != nil; err = errors.Unwrap(err) {
		if o, ok := err.(*tabular.OptionError); ok {
			input.Options = append(input.Options, o.Option)
		}
	}
	return input
}

func displayName(path string) string {
	return input.Name(path)
}

// A heading is the format of a file, and the content of its first line.
type heading struct {
	format string
	words  int             // V as the header declares it, or -1
	dim    int             // L, or 0 if the file's own header has it
	lines  int             // lines before the first row
	table  *tabular.Format // nil for other formats
}

var (
	errOwnWords = errors.New("it has words of its own; a word list is for files that have none, and for .npz, .safetensors and tables")
	errNoWords  = &tabular.OptionError{Option: "WordList", Err: errors.New("no line begins with a word; vectors alone, such as those for the Embedding Projector, need a file with a word a line")}
	errPickle   = errors.New("a Python pickle, such as gensim's .kv, which only Python reads; save the vectors with gensim's save_word2vec_format, or with numpy.save")
)

// errFormat reports an unrecognised format.
func errFormat() error {
	others := ""
	for _, f := range tabular.Formats {
		if !strings.Contains(others, f.Name) {
			others += f.Name + ", "
		}
	}
	return fmt.Errorf("not word vectors: want text (GloVe, word2vec, fastText), word2vec binary, %s.npy, .npz or .safetensors, plain or compressed with gzip or zstd", others)
}

const byteOrderMark = "\uFEFF"

// detect tells the format of a file from its beginning and leaves r at the
// first row, or at the beginning if it is neither text nor word2vec's. Listed says that
// the words are in a list.
func detect(r *bufio.Reader, listed bool) (heading, error) {
	const magic = 9 // bytes, of safetensors
	head, err := r.Peek(magic)
	if err != nil && err != io.EOF {
		return heading{}, err
	}
	switch {
	case len(head) == 0:
		return heading{}, errors.New("empty file")
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return heading{format: formatNpy, words: -1}, nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return heading{format: formatNpz, words: -1}, nil
	case safetensors.Detect(head):
		return heading{format: formatTensor, words: -1}, nil
	case len(head) > 1 && head[0] == 0x80 && head[1] <= 5: // no text begins so
		return heading{}, errPickle
	}
	if f := findFormat(head); f != nil {
		return heading{format: f.Name, words: -1, table: f}, nil
	}
	head, whole, err := firstLines(r)
	if err != nil {
		return heading{}, err
	}
	skip := 0
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		skip = len(byteOrderMark)
	}
	line, rows, _ := bytes.Cut(head[skip:], []byte("\n"))
	h, isHeader, err := parseHeader(line)
	switch {
	case err != nil:
		return heading{}, err
	case isHeader:
		skip = len(head) - len(rows)
		if isBinary(rows, h.dim) {
			h.format = formatBinary
		}
	default:
		h = heading{format: formatGloVe, words: -1, dim: inferDim(head[skip:], whole)}
		if h.dim == 0 || bytes.IndexByte(head, 0) >= 0 && !beginsWithText(head[skip:], h.dim) {
			return heading{}, errFormat()
		}
		switch numbers, ids := onlyNumbers(head[skip:], h.dim, whole); {
		case numbers && listed:
			h.format, h.dim = formatBare, h.dim+1
		case numbers && !ids:
			return heading{}, errNoWords
		}
	}
	if listed && h.format != formatBare {
		return heading{}, errOwnWords
	}
	_, err = r.Discard(skip)
	return h, err
}

// firstLines returns the first windowLines lines of a file, or its first window bytes if that is less, without
// waiting for more. Whole says that these are all bytes of the file.
func firstLines(r *bufio.Reader) (head []byte, whole bool, err error) {
	most := min(window, r.Size())
	for lines := 0; lines < windowLines && len(head) < most; {
		before := len(head)
		if _, err = r.Peek(before + 1); err == io.EOF {
			return head, true, nil
		} else if err != nil {
			return nil, false, err
		}
		if head, err = r.Peek(min(r.Buffered(), most)); err != nil {
			return nil, false, err
		}
		for i := before; i < len(head); i++ {
			if head[i] != '\n' {
				continue
			}
			if lines++; lines == windowLines {
				return head[:i+1], false, nil
			}
		}
	}
	return head, false, nil
}

// onlyNumbers reports whether each row is dim+1 numbers, and whether the first of them can
// be words all the same: whole numbers, each another. The last line counts only if it is
// whole.
func onlyNumbers(rows []byte, dim int, whole bool) (numbers, ids bool) {
	if !whole {
		rows = rows[:bytes.LastIndexByte(rows, '\n')+1]
	}
	ids = true
	seen := map[string]bool{}
	for line := range bytes.Lines(rows) {
		if line = trimRow(line); len(line) == 0 {
			continue
		}
		n, first := trailingNumbers(line)
		if _, _, err := parseNumber(first, 0); err != nil || n != dim {
			return false, false
		}
		ids = ids && isWhole(first) && !seen[string(first)]
		seen[string(first)] = true
	}
	return true, ids
}

// parseHeader parses the first line of word2vec's formats, "V L". It reports
// false if the line isn't two whole numbers, and an error if it is but the
// numbers make no sense.
func parseHeader(line []byte) (h heading, isHeader bool, err error) {
	fields := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' })
	if len(fields) != 2 || !isWhole(fields[0]) || !isWhole(fields[1]) {
		return heading{}, false, nil
	}
	words, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		return heading{}, true, fmt.Errorf("the header declares %s words", quote(fields[0]))
	}
	dim, err := strconv.Atoi(string(fields[1]))
	if err != nil || dim < 1 || dim > MaxDim {
		return heading{}, true, fmt.Errorf("the header declares vectors of %s numbers, want 1 to %d", quote(fields[1]), MaxDim)
	}
	return heading{format: formatText, words: words, dim: dim, lines: 1}, true, nil
}

// isBinary reports whether the rows that follow a header are word2vec's binary
// format and not text. Proper rows of text decide; else bytes that text can't
// contain do, so that a malformed first row of text is reported as such.
func isBinary(rows []byte, dim int) bool {
	if beginsWithText(rows, dim) {
		return false
	}
	for _, c := range rows {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return true
		}
	}
	// The last rune may be cut, but not one before a space.
	return !utf8.Valid(rows[:bytes.LastIndexByte(rows, ' ')+1])
}

// beginsWithText reports whether any of the first few lines is a row of text: a
// word without a NUL, whatever else it contains, and dim numbers.
func beginsWithText(rows []byte, dim int) bool {
	const few = 10
	vector := make([]float32, dim)
	n := 0
	for line := range bytes.Lines(rows) {
		if n++; n > few {
			break
		}
		word, numbers := cutVector(trimRow(line), dim)
		if len(word) > 0 && bytes.IndexByte(word, 0) < 0 && parseVector(numbers, vector) == nil {
			return true
		}
	}
	return false
}

// inferDim returns L for rows of text without a header: the number of numbers
// that most rows end with, or 0 if these aren't rows. The last line counts only
// if it is whole. In a tie the larger L wins, for it refuses the other rows,
// while the smaller would take their numbers for words.
//
// A row has at least L numbers at its end. It has more only if the word is
// several fields and the last of them is a number, which is rare; the first
// field never counts, so that the word "2008" isn't taken for part of its vector.
func inferDim(rows []byte, whole bool) int {
	if !whole {
		rows = rows[:bytes.LastIndexByte(rows, '\n')+1]
	}
	votes := map[int]int{}
	for line := range bytes.Lines(rows) {
		if line = trimRow(line); len(line) > 0 {
			n, _ := trailingNumbers(line)
			votes[n]++
		}
	}
	dim := 0
	for n, count := range votes {
		if count > votes[dim] || count == votes[dim] && n > dim {
			dim = n
		}
	}
	return dim // under MaxDim, for more don't fit in the window
}
