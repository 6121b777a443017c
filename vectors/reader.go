package vectors

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"overcomplete/internal/float32s"
	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// A row is a name, which is a word or a text, and its vector, as a format finds them.
type row struct {
	number   int    // of its line (text) or row (other formats), from 0 in its chunk
	name     string // as far as it is known if err isn't nil
	notWord  error  // why name can't be a word, though it can be a text
	id       string // of a text, if the input has ids
	columns  []string
	doubtful bool  // the name may contain numbers of the vector
	err      error // why the row is malformed
}

// A chunk is a run of consecutive rows.
type chunk struct {
	rows []row
	data []float32 // the vectors of the rows without an error, one after the other
	span int       // lines (text) or rows (other formats) that the chunk covers
}

// A reader makes blocks of valid rows from the chunks of files. Each row passes the same
// stages, whatever its format: naming, checks, comparison with the rows before, warnings.
type reader struct {
	options ReadOptions
	file           // that is read
	schema  schema // of the first file
	source  Source // what is known so far
	dim     int    // L, or 0 before a row tells it

	list     *wordList // that names the rows of all files, or nil
	numbered bool      // rows are named by their numbers
	decided  bool      // whether names are texts
	texts    bool      // names are texts
	columns  []string  // other columns of texts
	seen     map[[2]uint64]struct{}

	describe func(texts bool) (columns string, warnings []string) // of a table, or nil

	size, done int64 // bytes of all files, or 0 if that is unknown, and of the files before

	found int  // rows so far, malformed ones included
	kept  int  // rows so far that are neither malformed nor repeated
	full  bool // no more rows are wanted

	duplicate, dropped, doubtful, zero, repaired tally
}

// A file is one of the files of a reader.
type file struct {
	input.Member
	stored    *storedFile
	declared  int // rows that the file's header declares, or -1
	announced int // rows that are to come, or 0 if that isn't known

	names    func() (string, error) // returns the next name, if rows have none of their own
	endNames func() error           // returns an error if there are more names; or nil
	table    *tabular.Table         // nil for other formats
	measured bool                   // a valid row of the table has told the length of its vectors
	hasIDs   bool                   // texts have ids in the input

	values []string // of the columns that are the keys of folders

	lines    bool // rows are counted in lines
	position int  // lines or rows in the chunks so far
	before   int  // rows found in the files before
	excess   bool // there are more rows than declared
}

// errStopped ends a read whose caller wants no more blocks.
var errStopped = errors.New("stopped")

// read yields the rows of the files that paths name, in a block for each chunk.
func (r *reader) read(ctx context.Context, paths []string, yield func(*Dense, error) bool) error {
	if slices.Contains(paths, "-") && r.options.WordList == "-" {
		return &InputError{File: displayName("-"), Err: errors.New("it can't be both the vectors and the word list")}
	}
	members, err := findFiles(paths)
	if err != nil {
		return err
	}
	if r.options.Progress != nil {
		r.size = totalSize(members)
	}
	r.texts = r.options.Rows == KindTexts
	r.decided = r.options.Rows != ""
	defer func() {
		if r.list != nil {
			r.list.stored.Close()
		}
	}()
	for _, m := range members {
		r.file = file{Member: m, before: r.found}
		if err := r.readFile(ctx, yield); err == errStopped {
			return err
		} else if err != nil {
			return inputError(m.Path, err)
		}
	}
	if err := r.finish(paths, members); err != nil {
		return inputError(input.Name(paths...), err)
	}
	return nil
}

// totalSize returns the bytes of all files, or 0 if one is missing or is a pipe.
func totalSize(members []input.Member) (size int64) {
	for _, m := range members {
		info, err := os.Stat(m.Path)
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		size += info.Size()
	}
	return size
}

// readFile yields the rows of a file, unless no more are wanted, and adds it to the source.
func (r *reader) readFile(ctx context.Context, yield func(*Dense, error) bool) error {
	in, err := open(ctx, r.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	r.stored = in
	kept := r.kept
	if !r.full {
		err := r.readRows(ctx, in, yield)
		if err != nil && err != errStopped {
			err = cmp.Or(in.changed(), err) // which is why
		}
		if err != nil {
			return err
		}
	}
	r.done += max(0, in.size())
	sum, err := in.sum()
	r.source.Files = append(r.source.Files, File{r.Name, sum, r.kept - kept})
	return err
}

// readRows yields the rows of a file.
func (r *reader) readRows(ctx context.Context, in *storedFile, yield func(*Dense, error) bool) error {
	o := &r.options
	stored, size, err := decompress(in)
	if err != nil {
		return err
	}
	h, err := detect(stored, o.WordList != "")
	if err != nil {
		return err
	}
	columns := o.IDColumn+o.TextColumn != "" && o.WordList != "" || o.IDColumn+o.TextColumn+o.VectorColumn != "" && h.table == nil
	if columns {
		return errColumns
	}
	if r.declared = h.words; h.dim > 0 {
		r.dim = h.dim
	}
	if o.WordList != "" && r.list == nil {
		if r.list, err = r.openWordList(ctx); err != nil {
			return err
		}
	}
	if r.list != nil {
		r.names = r.list.name
	}
	chunks, err := r.open(ctx, h, stored, &content{stored, size, in})
	if err != nil {
		return err
	}
	if err := r.checkSchema(h); err != nil {
		return err
	}
	if err := r.filterAll(chunks, yield); err != nil {
		return err
	}
	return r.endFile()
}

// open returns the chunks of a file that begins with h.
func (r *reader) open(ctx context.Context, h heading, stored *bufio.Reader, c *content) (iter.Seq2[chunk, error], error) {
	switch h.format {
	case formatGloVe, formatText, formatBare:
		r.lines, r.position = true, h.lines
		return r.readText(ctx, stored, textChunk, h.format == formatBare), nil
	case formatBinary:
		return readBinary(stored, r.dim, r.declared), nil
	case formatNpy:
		return r.readNpy(c)
	case formatNpz:
		return r.readNpz(c)
	case formatTensor:
		return r.readSafetensors(c)
	}
	return r.readTable(ctx, h.table, c)
}

// filterAll yields the rows that are kept, in a block for each chunk, up to the number that is
// wanted.
func (r *reader) filterAll(chunks iter.Seq2[chunk, error], yield func(*Dense, error) bool) error {
	for c, err := range chunks {
		if err != nil {
			return err
		}
		block, err := r.filter(c)
		if err != nil {
			return err
		}
		if r.size > 0 {
			r.options.Progress(min(1, float64(r.done+r.stored.delivered.Load())/float64(r.size)))
		}
		if block.Len() > 0 && !yield(block, nil) {
			return errStopped
		}
		if r.ended() {
			break
		}
	}
	return nil
}

// ended reports whether no more rows of the file are wanted.
func (r *reader) ended() bool { return r.full || r.excess }

// filter returns the rows of c that are kept. It uses the memory of c.
func (r *reader) filter(c chunk) (*Dense, error) {
	block := &Dense{Words: make([]string, 0, len(c.rows)), Dim: r.dim, Data: c.data[:0]}
	if r.texts {
		block.Texts = newTexts(r.columns)
	}
	for _, row := range c.rows {
		if r.found-r.before == r.declared {
			r.excess = true
			break
		}
		var vector []float32
		if row.err == nil {
			vector, c.data = c.data[:r.dim], c.data[r.dim:]
		}
		word, text, err := r.name(&row)
		if err != nil {
			return nil, err
		}
		r.found++
		keep, err := r.check(&row, word, text, vector)
		if err != nil {
			if err := r.reject(&row, word, err); err != nil {
				return nil, err
			}
		}
		if !keep {
			continue
		}
		block.Words = append(block.Words, word)
		if r.texts {
			block.Texts.Add(text, slices.Concat(row.columns, r.values))
		}
		block.Data = appendInPlace(block.Data, vector)
		if r.kept++; r.kept == r.options.MaxWords {
			r.full = true
			break
		}
	}
	r.position += c.span
	return block, nil
}

// appendInPlace appends a vector that is further on in the memory of data, or there already.
func appendInPlace(data, vector []float32) []float32 {
	n := len(data)
	data = data[:n+len(vector)]
	if &data[n] != &vector[0] { // rows before were left out
		copy(data[n:], vector)
	}
	return data
}

// name returns the word of a row, or the id and the text.
func (r *reader) name(row *row) (word, text string, err error) {
	name := row.name
	if r.names != nil {
		if name, err = r.names(); err != nil {
			return "", "", err
		}
	}
	switch {
	case !r.texts:
		return name, "", nil
	case r.hasIDs:
		word = row.id
	default:
		word = strconv.Itoa(r.found)
	}
	if !utf8.ValidString(name) {
		r.repaired.add(word)
		name = strings.ToValidUTF8(name, "\uFFFD")
	}
	return word, name, nil
}

// check reports whether a row is kept, or returns why it is malformed.
func (r *reader) check(row *row, word, text string, vector []float32) (keep bool, err error) {
	if err := cmp.Or(row.err, r.checkName(row, word, text)); err != nil {
		return false, err
	}
	if r.repeated(word) {
		if r.texts {
			return false, &tabular.OptionError{Option: "IDColumn", Err: fmt.Errorf("the id %s is that of a row before", quote(word))}
		}
		r.duplicate.add(quote(word))
		return false, nil
	}
	if !slices.ContainsFunc(vector, func(x float32) bool { return x != 0 }) {
		if !r.options.Distinct && !r.texts {
			return false, errZero
		}
		r.zero.add(quote(word))
	}
	if row.doubtful {
		r.doubtful.add(quote(word))
	}
	return true, nil
}

var (
	errColumns = errors.New("columns can be named only in tables, such as Parquet, whose rows have no word list")
	errZero    = errors.New("all numbers are zero")
	errNoID    = &tabular.OptionError{Option: "IDColumn", Err: errors.New("it has no id")}
)

// checkName returns why a row can't be called so.
func (r *reader) checkName(row *row, word, text string) error {
	switch {
	case !r.texts:
		if err := cmp.Or(row.notWord, CheckWord(word)); err != nil {
			return &tabular.OptionError{Option: "Rows", Err: err}
		}
		return nil
	case r.hasIDs && word == "":
		return errNoID
	case len(text) > maxText:
		return fmt.Errorf("a text of over %d bytes", maxText)
	}
	if err := CheckWord(word); err != nil {
		return &tabular.OptionError{Option: "IDColumn", Err: fmt.Errorf("its id, %s, can't be one: %w", quote(word), err)}
	}
	return nil
}

// wordSeeds make two hashes of a word, which together no two words of a file share.
var wordSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// repeated reports whether a row before has the same word or id, if that matters.
func (r *reader) repeated(word string) bool {
	if !r.options.Distinct && !r.hasIDs {
		return false
	}
	if r.seen == nil {
		r.seen = make(map[[2]uint64]struct{})
	}
	key := [2]uint64{maphash.String(wordSeeds[0], word), maphash.String(wordSeeds[1], word)}
	if _, ok := r.seen[key]; ok {
		return true
	}
	r.seen[key] = struct{}{}
	return false
}

// reject counts a malformed row or, unless such rows are dropped, returns the reason with its
// place.
func (r *reader) reject(row *row, word string, reason error) error {
	err := &InputError{File: displayName(r.Path), Err: reason}
	if !r.texts {
		err.Word = word
	}
	number := r.position + row.number + 1
	if r.lines {
		err.Line = number
	} else {
		err.Row = number
	}
	if r.options.SkipBad {
		r.dropped.add(err.Error())
		return nil
	}
	err.Err = &tabular.OptionError{Option: "SkipBad", Err: reason}
	return err
}

// endFile checks that a file has all rows that it declares, and no more names than rows.
func (r *reader) endFile() error {
	if r.excess {
		warning := fmt.Sprintf("more rows than the %d that the header declares; the rest is ignored", r.declared)
		if r.source.Files != nil {
			warning = r.Name + ": " + warning
		}
		r.source.Warnings = append(r.source.Warnings, warning)
	}
	if r.ended() {
		return nil
	}
	if n := r.found - r.before; n < r.declared {
		return fmt.Errorf("the header declares %d words, the file has %d; it is cut short", r.declared, n)
	}
	if r.endNames != nil {
		return r.endNames()
	}
	return nil
}

// finish completes the source, unless there are no rows, or names for others.
func (r *reader) finish(paths []string, members []input.Member) error {
	switch {
	case r.kept == 0 && r.dropped.count > 0:
		return fmt.Errorf("every row is malformed, the first is %s", r.dropped.first[0])
	case r.kept == 0:
		return errors.New("no word vectors")
	}
	s := &r.source
	s.Name, s.Kind, s.Rows = filepath.Base(input.Name(paths...)), KindWords, r.kept
	if r.texts {
		s.Kind = KindTexts
	}
	if r.describe != nil {
		columns, warnings := r.describe(r.texts)
		s.Columns, s.Warnings = columns, slices.Concat(warnings, s.Warnings)
	}
	if n := len(r.values); n > 0 && r.texts {
		s.Columns += fmt.Sprintf(", and %.60q of folders", r.columns[len(r.columns)-n:])
	}
	s.Warnings = append(s.Warnings, r.warnings()...)
	if s.SHA256 = s.Files[0].SHA256; len(s.Files) > 1 {
		all := sha256.New()
		for _, f := range s.Files {
			fmt.Fprintln(all, f.SHA256)
		}
		s.SHA256 = hex.EncodeToString(all.Sum(nil))
	}
	if len(paths) == 1 && paths[0] == members[0].Path {
		s.Files = nil
	}
	if r.list == nil {
		return nil
	}
	if !r.full {
		if err := r.list.end(); err != nil {
			return err
		}
	}
	var err error
	s.WordsSHA256, err = r.list.sum()
	return err
}

func (r *reader) warnings() []string {
	var w []string
	if r.numbered && r.options.Rows != KindTexts {
		w = append(w, "no words: rows are named by their numbers, from 0, where no word list names them")
	}
	w = r.duplicate.warn(w, "duplicate words, the first of each kept")
	w = r.repaired.warn(w, "texts that are not UTF-8, with U+FFFD for each invalid byte")
	w = r.dropped.warn(w, "malformed rows dropped")
	w = r.doubtful.warn(w, "words that end in a number; if it is part of the vector, the row is too long")
	return r.zero.warn(w, "rows of zeros")
}

// numberRows names rows by their numbers, from 0.
func (r *reader) numberRows() {
	r.numbered = true
	r.names = func() (string, error) { return strconv.Itoa(r.found), nil }
}

// setKind decides whether rows are texts: as the options say, or as the first names look.
func (r *reader) setKind(names []string) {
	const sample = 1000
	if !r.decided && len(names) > 0 {
		r.texts, r.decided = areTexts(names[:min(sample, len(names))]), true
	}
}

// areTexts reports whether names look like texts: one has a line break, or most have three
// words or are long.
func areTexts(names []string) bool {
	const long = 24 // bytes: 8 characters of Chinese
	texts := 0
	for _, name := range names {
		if strings.ContainsAny(name, "\n\r") {
			return true
		}
		if len(name) >= long || len(strings.Fields(name)) > 2 {
			texts++
		}
	}
	return 2*texts > len(names)
}

// checkVector returns an error if vector can't be that of a row. Text is checked as it is
// parsed.
func checkVector(vector []float32) error {
	if float32s.Finite(vector) {
		return nil
	}
	for i, x := range vector {
		if x-x != 0 { // infinite or NaN
			return fmt.Errorf("value %d is %v, %w", i+1, x, errNotNumber)
		}
	}
	return nil
}

// CheckWord returns an error unless word can be that of a vector: a line of a list of
// words, in UTF-8 and not empty.
func CheckWord(word string) error {
	switch {
	case word == "":
		return errors.New("empty word")
	case len(word) > window:
		return fmt.Errorf("a word of over %d bytes", window)
	case !utf8.ValidString(word):
		return errors.New("the word isn't UTF-8")
	case strings.ContainsAny(word, "\x00\t\n\r"):
		return errors.New("the word contains a tab, a line break or a NUL")
	}
	return nil
}

// A tally counts things and remembers the first few.
type tally struct {
	count int
	first []string
}

func (t *tally) add(s string) {
	const few = 3
	if t.count++; t.count <= few {
		t.first = append(t.first, s)
	}
}

// warn appends a line to warnings if anything was counted.
func (t *tally) warn(warnings []string, what string) []string {
	if t.count == 0 {
		return warnings
	}
	list := strings.Join(t.first, ", ")
	if t.count > len(t.first) {
		list += ", …"
	}
	return append(warnings, fmt.Sprintf("%s: %d (%s)", what, t.count, list))
}
