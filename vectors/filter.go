package vectors

import (
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
	"unsafe"

	"overcomplete/internal/float32s"
	"overcomplete/internal/input"
	"overcomplete/internal/memory"
	"overcomplete/vectors/internal/tabular"
)

// A chunk is a run of consecutive rows.
type chunk struct {
	rows []tabular.Row // nil if no row has a name or an error, as in most arrays
	data []float32     // the vectors of the rows without an error, in order
	span int           // number of lines (text) or rows (other formats) of the chunk

	valid int // number of rows if rows is nil
}

// A reader converts chunks of files to blocks of valid rows. Rows of all formats pass the same
// stages: they are named, checked and compared with the previous rows.
type reader struct {
	options ReadOptions
	file            // the current file
	schema  schema  // schema of the first file
	source  Source  // description of the input so far
	earlier reading // earlier reading of the same, unchanged files; or empty
	dim     int     // vector length, L, or 0 before it is known

	list     *wordList // names of the rows of all files, or nil
	numbered bool      // rows are named by their numbers
	decided  bool      // the field texts is final
	texts    bool      // names are texts
	columns  []string  // names of the columns beside ids and texts
	seen     nameSet
	keys     map[string]bool // keys of JSON that aren't columns

	describe func(texts bool) (columns string, warnings []string) // describes a table; nil for other formats

	size int64 // bytes of all files, or 0 if unknown
	done int64 // size of the previous files in bytes

	found int  // number of rows so far, including malformed rows
	kept  int  // number of valid rows so far, without repeated rows
	full  bool // kept has reached the limit

	duplicate, dropped, doubtful, zero, repaired, unknown tally
}

// A file is the state of a reader in one file.
type file struct {
	input.Member
	stored    *storedFile
	declared  int // number of rows that the file's header declares, or -1
	announced int // number of rows in an array's shape, or 0; used only to allocate memory

	table    *tabular.Layout // nil for other formats
	measured bool            // the length of the table's vectors is known
	hasIDs   bool            // texts have ids in the input

	values []string // values of the folders key=value, which become columns

	lines    bool // rows are counted in lines
	position int  // number of lines or rows in the chunks so far
	before   int  // number of rows in the previous files
	excess   bool // there are more rows than declared
}

// errStopped ends a read whose caller has stopped the iteration.
var errStopped = errors.New("stopped")

// read yields the rows of the files that paths name, in one block per chunk.
func (r *reader) read(ctx context.Context, paths []string, yield func(*Dense, error) bool) error {
	if slices.Contains(paths, "-") && r.options.WordList == "-" {
		return &InputError{File: input.Name("-"), Err: errors.New("can't be both the vectors and the word list")}
	}
	members, err := findFiles(paths)
	if err != nil {
		return err
	}
	if r.options.Progress != nil {
		r.size = totalSize(members)
	}
	r.findEarlier(members)
	r.texts = r.options.Rows == KindTexts
	r.decided = r.options.Rows != ""
	defer func() {
		if r.list != nil {
			r.list.close()
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

// totalSize returns the number of bytes of all files, or 0 if a file is missing or a pipe.
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

// readFile yields the rows of a file, up to the limit, and adds the file to the source.
func (r *reader) readFile(ctx context.Context, yield func(*Dense, error) bool) error {
	in, err := open(ctx, r.Path, r.earlier.files[r.Path])
	if err != nil {
		return err
	}
	defer in.Close()
	r.stored = in
	kept := r.kept
	if !r.full {
		err := r.readRows(ctx, in, yield)
		if err != nil && err != errStopped {
			err = cmp.Or(in.changed(), err) // a change explains err
		}
		if err != nil {
			return err
		}
	}
	r.done += max(0, in.size())
	sum, err := r.sum(in)
	r.source.Files = append(r.source.Files, File{r.Name, sum, r.kept - kept})
	return err
}

func (r *reader) readRows(ctx context.Context, in *storedFile, yield func(*Dense, error) bool) error {
	o := &r.options
	stored, size, err := decompress(in)
	if err != nil {
		return err
	}
	h, err := detect(stored, o.WordList != "", in.size() < 0)
	if err != nil {
		return err
	}
	if o.WordList != "" && r.list == nil {
		if r.list, err = r.openWordList(ctx); err != nil {
			return err
		}
	}
	isTable := h.table != nil || h.record != nil
	named, listed := isTable, r.list != nil && r.list.table != nil
	if r.list != nil {
		named = listed
	}
	if o.IDColumn+o.TextColumn != "" && !named || o.VectorColumns != "" && !isTable && h.format != formatNpz && h.format != formatTensor {
		return errColumns
	}
	if r.declared = h.rows; h.dim > 0 {
		r.dim = h.dim
	}
	if r.list != nil {
		r.hasIDs = listed && r.list.table.ID >= 0 && r.texts
	}
	chunks, err := h.open(r, ctx, h, &content{stored, size, in})
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

// filterAll yields the valid rows, in one block per chunk, up to the limit.
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

// ended reports whether the remaining rows of the file are ignored.
func (r *reader) ended() bool { return r.full || r.excess }

// filter returns the valid rows of c. It reuses the memory of c.
func (r *reader) filter(c chunk) (*Dense, error) {
	if r.comparesNames() && r.earlier.files == nil {
		if err := memory.Check(r.seen.growth(len(c.rows) + c.valid)); err != nil {
			return nil, fmt.Errorf("hashes to detect repeated rows, after %d rows: %w", r.kept, err)
		}
	}
	mayBeZero := false // whether a vector may be zero; a separate loop lets the CPU overlap reads of different rows
	for i := 0; i < len(c.data); i += r.dim {
		mayBeZero = mayBeZero || c.data[i] == 0
	}
	block := &Dense{IDs: make([]string, 0, len(c.rows)+c.valid), Dim: r.dim, Data: c.data[:0]}
	if r.texts {
		block.Texts = newTexts(r.columns)
	}
	var unnamed tabular.Row
	for i := range len(c.rows) + c.valid {
		unnamed = tabular.Row{Number: i}
		row := &unnamed
		if c.rows != nil {
			row = &c.rows[i]
		}
		if r.found-r.before == r.declared {
			r.excess = true
			break
		}
		var vector []float32
		if row.Err == nil {
			vector, c.data = c.data[:r.dim], c.data[r.dim:]
		}
		id, text, err := r.name(row)
		if err != nil {
			return nil, err
		}
		r.found++
		keep, err := r.check(row, id, text, mayBeZero && float32s.Zero(vector))
		if err != nil {
			if err := r.reject(row, id, err); err != nil {
				return nil, err
			}
		}
		if !keep {
			continue
		}
		block.IDs = append(block.IDs, id)
		if r.texts {
			block.Texts.Add(text, slices.Concat(row.Columns, r.values))
		}
		block.Data = appendInPlace(block.Data, vector)
		if r.kept++; r.kept == r.options.MaxRows {
			r.full = true
			break
		}
	}
	r.position += c.span
	return block, nil
}

// appendInPlace appends a vector to data. The vector lies in the memory of data, at its end or beyond.
func appendInPlace(data, vector []float32) []float32 {
	n := len(data)
	data = data[:n+len(vector)]
	if &data[n] != &vector[0] {
		copy(data[n:], vector)
	}
	return data
}

// name returns the word of a row, or the id and the text.
func (r *reader) name(row *tabular.Row) (word, text string, err error) {
	if r.list != nil {
		if err := r.list.name(row, r.texts); err != nil {
			return "", "", err
		}
	} else if r.numbered {
		row.Name = strconv.Itoa(r.found)
	}
	name := row.Name
	switch {
	case !r.texts:
		return name, "", nil
	case r.hasIDs:
		word = row.ID
	default:
		word = strconv.Itoa(r.found)
	}
	invalid := !utf8.ValidString(name)
	for i, s := range row.Columns {
		if !utf8.ValidString(s) {
			invalid, row.Columns[i] = true, strings.ToValidUTF8(s, "\uFFFD")
		}
	}
	if invalid {
		r.repaired.add(word)
		name = strings.ToValidUTF8(name, "\uFFFD")
	}
	return word, name, nil
}

// check reports whether a row is kept, or returns the reason why it is malformed.
func (r *reader) check(row *tabular.Row, word, text string, zero bool) (keep bool, err error) {
	if row.Err != nil {
		return false, row.Err
	}
	err = r.checkName(row, word, text)
	if err == nil && r.repeated(word) {
		if !r.texts {
			r.duplicate.add(quote(word))
			return false, nil
		}
		err = &tabular.OptionError{Option: "IDColumn", Err: fmt.Errorf("a previous row has the same id, %s", quote(word))}
	}
	if err != nil && r.list != nil {
		err = r.list.locate(err)
	}
	if err != nil {
		return false, err
	}
	if zero {
		if r.options.Nonzero || !r.options.Distinct && !r.texts {
			return false, errZero
		}
		r.zero.add(quote(word))
	}
	if row.Doubtful {
		r.doubtful.add(quote(word))
	}
	return true, nil
}

var (
	errColumns = errors.New("columns can be named only for tables, such as CSV or Parquet; a word list that names the rows must be a table")
	errZero    = errors.New("all numbers are zero")
	errNoID    = &tabular.OptionError{Option: "IDColumn", Err: errors.New("the id is empty")}
)

// checkName returns the reason why the word or text of a row is invalid, or nil.
func (r *reader) checkName(row *tabular.Row, word, text string) error {
	switch {
	case !r.texts:
		if err := cmp.Or(row.NotID, CheckID(word)); err != nil {
			return &tabular.OptionError{Option: "Rows", Err: err}
		}
		return nil
	case r.hasIDs && word == "":
		return errNoID
	case len(text) > maxText:
		return fmt.Errorf("the text is too long (want at most %d bytes)", maxText)
	}
	if err := CheckID(word); err != nil {
		return &tabular.OptionError{Option: "IDColumn", Err: fmt.Errorf("invalid id %s: %w", quote(word), err)}
	}
	return nil
}

// idSeeds are the seeds of two 64-bit hashes, which together identify a word or id.
var idSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// comparesNames reports whether the words or ids of rows are compared. Row numbers aren't, because they are distinct.
func (r *reader) comparesNames() bool {
	return r.hasIDs || r.options.Distinct && !r.texts && !r.numbered
}

// repeated reports whether a previous row has the same word or id. If names aren't compared, it returns false.
func (r *reader) repeated(id string) bool {
	if !r.comparesNames() {
		return false
	}
	if r.earlier.files != nil {
		_, repeated := slices.BinarySearch(r.earlier.repeated, r.found)
		return repeated
	}
	if r.seen.add(id) {
		return false
	}
	r.source.reading.repeated = append(r.source.reading.repeated, r.found)
	return true
}

// A nameSet is a set of words or ids, each as two hashes. It is a hash table with open addressing, which takes a quarter of
// the time of a map.
type nameSet struct {
	table [][2]uint64 // free slots are zero; its length is a power of two
	used  int
}

// add adds a name, and reports whether it is new.
func (s *nameSet) add(name string) bool {
	if 4*s.used >= 3*len(s.table) {
		old := s.table
		s.table = make([][2]uint64, max(1<<10, 2*len(old)))
		for _, key := range old {
			if key[0] != 0 {
				*s.slot(key) = key
			}
		}
	}
	key := [2]uint64{maphash.String(idSeeds[0], name) | 1, maphash.String(idSeeds[1], name)}
	slot := s.slot(key)
	if *slot == key {
		return false
	}
	*slot = key
	s.used++
	return true
}

// growth returns the size in bytes of the larger table that n more names require, or 0 if they fit.
func (s *nameSet) growth(n int) uint64 {
	size := len(s.table)
	for 4*(s.used+n) > 3*size {
		size = max(1<<10, 2*size)
	}
	if size == len(s.table) {
		return 0
	}
	return uint64(size) * uint64(unsafe.Sizeof(s.table[0]))
}

// slot returns the slot that holds a key, or a free slot for the key.
func (s *nameSet) slot(key [2]uint64) *[2]uint64 {
	for i := key[1]; ; i++ {
		if slot := &s.table[i&uint64(len(s.table)-1)]; *slot == key || slot[0] == 0 {
			return slot
		}
	}
}

// reject counts a malformed row. Unless SkipBad is set, it returns the error, with the row's position. A reason that is
// an InputError has the position in the word list.
func (r *reader) reject(row *tabular.Row, id string, reason error) error {
	err, listed := reason.(*InputError)
	if !listed {
		err = &InputError{File: input.Name(r.Path), Err: reason}
		if number := r.position + row.Number + 1; r.lines {
			err.Line = number
		} else {
			err.Row = number
		}
	}
	if !r.texts {
		err.ID = id
	}
	if r.options.SkipBad {
		r.dropped.add(err.Error())
		return nil
	}
	err.Err = &tabular.OptionError{Option: "SkipBad", Err: err.Err}
	return err
}

// endFile returns an error if a file has fewer rows than it declares.
func (r *reader) endFile() error {
	if r.excess {
		warning := fmt.Sprintf("ignored the rows after the %d that the header declares", r.declared)
		if r.source.Files != nil {
			warning = r.Name + ": " + warning
		}
		r.source.Warnings = append(r.source.Warnings, warning)
	}
	if r.ended() {
		return nil
	}
	if n := r.found - r.before; n < r.declared {
		return fmt.Errorf("the file is cut short: its header declares more rows (got %d, want %d)", n, r.declared)
	}
	return nil
}

// finish completes the source. It returns an error if there are no rows, or more names than rows.
func (r *reader) finish(paths []string, members []input.Member) error {
	switch {
	case r.kept == 0 && r.dropped.count > 0:
		return fmt.Errorf("every row is malformed; the first one is %s", r.dropped.first[0])
	case r.kept == 0:
		return errors.New("contains no vectors")
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
	s.WordsSHA256, err = r.list.sum(r)
	return err
}

func (r *reader) warnings() []string {
	var w []string
	if r.numbered && r.options.Rows != KindTexts {
		w = append(w, "the input has no words: rows are named by their numbers, from 0; a word list can name them")
	}
	w = r.duplicate.warn(w, "duplicate words, only the first row of each kept")
	w = r.repaired.warn(w, "texts that are not UTF-8, invalid bytes replaced by U+FFFD")
	w = r.unknown.warn(w, "keys that the first objects lack, not read")
	w = r.dropped.warn(w, "malformed rows dropped")
	w = r.doubtful.warn(w, "words that end in a number, which may be an excess value of the vector")
	return r.zero.warn(w, "rows of zeros")
}

// setKind uses the first names to decide whether rows are texts, unless that is decided.
func (r *reader) setKind(names []string) {
	const sample = 1000
	if !r.decided && len(names) > 0 {
		r.texts, r.decided = areTexts(names[:min(sample, len(names))]), true
	}
}

// areTexts reports whether names are texts: a name has a line break, or most names are
// long or have at least three words.
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

// checkVector returns an error if a number is infinite or NaN. The parser of text checks
// its own numbers.
func checkVector(vector []float32) error {
	if i, problem := tabular.NotFinite(vector); i >= 0 {
		return fmt.Errorf("value %d is %s", i+1, problem)
	}
	return nil
}

// CheckID returns an error unless the word or id is valid: UTF-8, of 1 byte to 1 MiB, without
// tabs, line breaks and NULs.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("the word is empty")
	case len(id) > window:
		return fmt.Errorf("the word is too long (want at most %d bytes)", window)
	case !utf8.ValidString(id):
		return errors.New("the word isn't UTF-8")
	}
	for _, c := range []byte(id) { // takes half as long as strings.ContainsAny
		switch c {
		case 0, '\t', '\n', '\r':
			return errors.New("the word contains a tab, a line break or a NUL")
		}
	}
	return nil
}

// A tally counts the items that a warning reports, and stores the first few.
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

func (t *tally) warn(warnings []string, items string) []string {
	if t.count == 0 {
		return warnings
	}
	list := strings.Join(t.first, ", ")
	if t.count > len(t.first) {
		list += ", …"
	}
	return append(warnings, fmt.Sprintf("%s: %d (%s)", items, t.count, list))
}
