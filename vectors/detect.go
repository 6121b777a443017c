package vectors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/safetensors"
	"overcomplete/vectors/internal/tabular"
)

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

// The first 1 MiB of a file (window) determines its format. A pipe may deliver fewer bytes at first; then the first 100
// lines (pipeLines) are enough.
const (
	window    = 1 << 20
	pipeLines = 100
)

// A heading is the format of a file and the content of its header line.
type heading struct {
	format string
	rows   int             // number of rows that the header declares, V, or -1
	dim    int             // vector length, L, or 0 if the rows determine it later
	lines  int             // number of lines before the first row
	table  *tabular.Format // nil for other formats
	record recordFormat    // CSV or JSON; nil for other formats

	// open returns an iterator over the chunks of a file that has this heading.
	open func(r *reader, ctx context.Context, h heading, c *content) (iter.Seq2[chunk, error], error)
}

var (
	errOwnIDs   = errors.New("text and word2vec files have their own words; a word list can name only rows without words, and replace those in tables")
	errNoIDs    = &tabular.OptionError{Option: "WordList", Err: errors.New("no line begins with a word; vectors without words need a file with a word per line")}
	errTar      = errors.New("is a tar archive; extract its files first")
	errFastText = errors.New("is a fastText model; use the .vec file beside it, or write its vectors with fasttext print-word-vectors")
	errUTF16    = errors.New("is UTF-16; convert it to UTF-8 first, as iconv -f UTF-16 -t UTF-8 does")
	errPickle   = errors.New("is a Python pickle, such as gensim's .kv, which only Python can read; save the vectors with gensim's save_word2vec_format or with numpy.save")
)

func errFormat() error {
	others := ""
	for _, f := range tabular.Formats {
		if !strings.Contains(others, f.Name) {
			others += f.Name + ", "
		}
	}
	return fmt.Errorf("unknown format of vectors (want text of GloVe, word2vec or fastText, word2vec binary, CSV, JSON lines, %s.npy, .npz or .safetensors, plain or compressed with gzip or zstd)", others)
}

const byteOrderMark = "\uFEFF"

// detect detects the format of a file. It moves r to the first row if the format is
// text or word2vec binary, and otherwise leaves r at the beginning. If listed is set, a word
// list names the rows. If pipe is set, r may wait for its writer.
func detect(r *bufio.Reader, listed, pipe bool) (heading, error) {
	const magic = 9 // length of the longest magic number (of safetensors) in bytes
	head, err := r.Peek(magic)
	if err != nil && err != io.EOF {
		return heading{}, err
	}
	switch {
	case len(head) == 0:
		return heading{}, errors.New("the file is empty")
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return heading{format: formatNpy, rows: -1, open: (*reader).readNpy}, nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return heading{format: formatNpz, rows: -1, open: (*reader).readNpz}, nil
	case safetensors.Detect(head):
		return heading{format: formatTensor, rows: -1, open: (*reader).readSafetensors}, nil
	case len(head) > 1 && head[0] == 0x80 && head[1] <= 5: // never the beginning of text
		return heading{}, errPickle
	case bytes.HasPrefix(head, []byte("\xba\x16\x4f\x2f")):
		return heading{}, errFastText
	}
	if f := findFormat(head); f != nil {
		return heading{format: f.Name, rows: -1, table: f, open: (*reader).openTable}, nil
	}
	head, whole, err := firstLines(r, pipe)
	if err != nil {
		return heading{}, err
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return heading{}, errTar
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
			h.format, h.open = formatBinary, (*reader).readBinary
		}
	default:
		h = heading{format: formatGloVe, rows: -1, dim: inferDim(head[skip:], whole), open: (*reader).readText}
		f, start, err := detectRecords(head[skip:], h.dim, whole)
		if err != nil {
			return heading{}, err
		}
		if f != nil {
			skip += start
			h = heading{format: f.name(), rows: -1, lines: bytes.Count(head[:skip], newline), record: f, open: (*reader).openTable}
			break
		}
		if h.dim == 0 || bytes.IndexByte(head, 0) >= 0 && !beginsWithText(head[skip:], h.dim) {
			return heading{}, errFormat()
		}
		switch numbers, ids := onlyNumbers(head[skip:], h.dim, whole); {
		case numbers && listed:
			h.format, h.dim = formatBare, h.dim+1
		case numbers && !ids:
			return heading{}, errNoIDs
		}
	}
	if listed && h.format != formatBare && h.record == nil {
		return heading{}, errOwnIDs
	}
	_, err = r.Discard(skip)
	return h, err
}

// firstLines returns the first window bytes of a text file, and whether these are the whole file. It doesn't wait for more
// than pipeLines lines of a pipe, and returns the bytes that have arrived by then.
func firstLines(r *bufio.Reader, pipe bool) (head []byte, whole bool, err error) {
	if mark, _ := r.Peek(2); string(mark) == "\xff\xfe" || string(mark) == "\xfe\xff" {
		return nil, false, errUTF16
	}
	limit := min(window, r.Size())
	for lines := 0; len(head) < limit && !(pipe && lines >= pipeLines); {
		before := len(head)
		if _, err = r.Peek(before + 1); err == io.EOF {
			head, err = r.Peek(before) // the call of Peek may have moved the buffer
			return head, true, err
		} else if err != nil {
			return nil, false, err
		}
		if head, err = r.Peek(min(r.Buffered(), limit)); err != nil {
			return nil, false, err
		}
		lines += bytes.Count(head[before:], []byte("\n"))
	}
	return head, false, nil
}

// onlyNumbers reports whether each row consists of dim+1 numbers. The result ids reports whether the first numbers can
// be the words of their rows, because they are whole and distinct. Unless rows is the whole file, the last line is
// ignored, because it may be incomplete.
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

// parseHeader parses the first line of word2vec's formats, "V L". It sets
// isHeader if the line consists of two whole numbers, and returns an error if these
// numbers are out of range.
func parseHeader(line []byte) (h heading, isHeader bool, err error) {
	fields := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' })
	if len(fields) != 2 || !isWhole(fields[0]) || !isWhole(fields[1]) {
		return heading{}, false, nil
	}
	rows, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		return heading{}, true, fmt.Errorf("the header declares too many rows (got %s)", quote(fields[0]))
	}
	dim, err := strconv.Atoi(string(fields[1]))
	if err != nil || dim < 1 || dim > MaxDim {
		return heading{}, true, fmt.Errorf("the header declares an invalid vector length (got %s, want 1 to %d)", quote(fields[1]), MaxDim)
	}
	return heading{format: formatText, rows: rows, dim: dim, lines: 1, open: (*reader).readText}, true, nil
}

// isBinary reports whether the rows after a header are word2vec binary, not text. It
// returns false if any of the first rows is valid text. Otherwise it looks for bytes that
// text can't contain, so that a malformed first row of text is reported as malformed text.
func isBinary(rows []byte, dim int) bool {
	if beginsWithText(rows, dim) {
		return false
	}
	for _, c := range rows {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return true
		}
	}
	// The last rune may be cut off, but the runes before the last space are complete.
	return !utf8.Valid(rows[:bytes.LastIndexByte(rows, ' ')+1])
}

// beginsWithText reports whether any of the first few lines is a row of text: a word
// without a NUL, and dim numbers.
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

// inferDim returns L for rows of text without a header: the most frequent count of
// numbers at the end of a row, or 0 if there are no rows. Unless rows are the whole file, it
// ignores the last line, which may be incomplete. In a tie the larger L wins: the shorter
// rows are then malformed. With the smaller L, the first numbers of the longer rows would
// become part of their words.
//
// A row ends with at least L numbers. It ends with more only if its word has several
// fields and the last field is a number, which is rare. The first field never counts, so
// that the word "2008" isn't part of its vector.
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
	return dim // below MaxDim, since more numbers don't fit into the window
}
