package vectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"

	"overcomplete/internal/input"
	"overcomplete/vectors/internal/tabular"
)

// ReadOptions are the options of [Read] and [Stream]. The zero value reads every row and
// returns an error for the first malformed one.
type ReadOptions struct {
	// MaxRows, if positive, limits the number of valid rows. Later rows are ignored.
	MaxRows int

	// SkipBad drops malformed rows and counts them in a warning.
	SkipBad bool

	// WordList is the path of a file with the words or texts, one per line in the order of the rows; "-" is
	// standard input. The file may be compressed. It may also be a table, whose texts, ids and other columns then
	// belong to the rows. The list names the rows of files without words, and replaces the words of tables.
	WordList string

	// Rows is the kind of the rows. If it is "", Read and Stream choose. Rows of tables and arrays
	// are texts if the name of their column says so, if most rows have three words or 24
	// bytes, if a row has a line break, or if more than one in ten of the first rows of a table is repeated.
	// Rows of text files and of word2vec binary are words, unless a WordList contains texts.
	Rows Kind

	// IDColumn, TextColumn and VectorColumns name columns of a table. TextColumn contains texts or words. VectorColumns
	// names a column of lists, an array in a .npz or .safetensors file, or columns of numbers: by a pattern of
	// [path.Match] or in the form first:last. If an option is "", Read chooses the column with a usual name, or else
	// the only column of its type. Columns of numbers are read as vectors only if the names count upwards, such as e0,
	// e1, e2. IDColumn "none" ignores ids.
	IDColumn, TextColumn, VectorColumns string

	// Keep, if not nil, limits the rows that [Read] stores. Read calls Keep after each block, with all rows so far but
	// without their vectors. If Keep returns a sample, Read adds these rows and all later ones to the sample. If it
	// returns an n from 1 to less than the number of rows, Read stores the first n. It validates and counts the rest,
	// but doesn't warn of their norms. After such a result, Read doesn't call Keep again.
	Keep func(rows *Dense) (n int, sample *Sample)

	// Progress, if not nil, is called before each block of rows with the fraction of all bytes that has
	// been read. It isn't called if the size is unknown, as for pipes.
	Progress func(share float64)

	// Earlier, if not nil, is the source of an earlier reading of the same paths with the same options and distinct
	// words. If the size, time and inode of each file are as they were then, Read reuses the hashes and repeated words
	// of this source. Otherwise Earlier has no effect. Read doesn't detect other changes of a file.
	Earlier *Source

	// Distinct makes [Stream] drop repeated words and accept rows of zeros, as Read does. It requires
	// about 50 bytes of memory per word.
	Distinct bool

	// Nonzero makes every row of zeros malformed.
	Nonzero bool
}

// Source describes an input of [Read] or [Stream].
type Source struct {
	Name     string   // base name of the file, folder or pattern, or "stdin"
	SHA256   string   // SHA-256 of the file as stored, in hexadecimal; for several files, of the list of their hashes, one per line
	Files    []File   // files of a folder, a pattern or several paths, in their order; nil for one file
	Format   string   // such as "word2vec text"
	Kind     Kind     // kind of the rows
	Columns  string   // description of the columns of a table of texts
	Warnings []string // one line each, such as on duplicate words
	Rows     int      // number of valid rows, including the ones that ReadOptions.Keep excludes

	WordsSHA256 string // SHA-256 of the word list, "" without one

	reading reading
}

// About returns a description of the input: the number of files if there are several, the format, and the columns
// of a table of texts.
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

// An InputError reports an invalid input, which only the user can correct.
type InputError struct {
	File string // path as given, or "stdin"; "" if the input isn't from a file
	Line int    // line of a text file, counted from 1; 0 if none applies
	Row  int    // row of any other file, counted from 1; 0 if none applies
	ID   string // word of the malformed row, or ""
	Err  error  // the problem

	// Options are the fields of [ReadOptions] that may make the input readable.
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
	if e.ID != "" {
		places = append(places, "word "+quote(e.ID))
	}
	return strings.Join(append(places, e.Err.Error()), ": ")
}

func (e *InputError) Unwrap() error { return e.Err }

// quote returns s in quotes, with unprintable characters escaped, cut to 60 bytes.
func quote[T string | []byte](s T) string {
	const limit = 60
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}

// MaxDim is the maximum of L. It bounds the memory that a header alone can claim.
const MaxDim = tabular.MaxDim

// Read reads vectors from the files that paths name, in order. A path names a file, standard input ("-"), a folder or a
// pattern of [filepath.Glob]. A folder stands for all files below it, in the order of their names. In folders and
// matches, Read skips names that begin with "." or "_". All files must have the same format, vector length and columns.
// If a path is a folder or a pattern, a folder named key=value on the way to a file adds a column to its texts:
// the column is named key and contains this value.
//
// Read detects the format, and a compression with gzip or zstd, from the content:
//
//   - GloVe text: each line is a word and L numbers, separated by spaces or tabs; the word may contain spaces. L is the
//     number that most of the first lines agree on.
//   - word2vec text and fastText's .vec: these lines after a first line "V L". A first
//     line of two whole numbers is always such a header.
//   - word2vec binary: a first line "V L", then for each row a word, a space, L
//     little-endian float32 and, in some files, a newline.
//   - text without words: L numbers per line. Without o.WordList, the first number of each line is the word, if the
//     first numbers are whole and distinct; otherwise the file is refused.
//   - NumPy's .npy: a V×L array of floating-point numbers, bfloat16 of the package ml_dtypes, or integers
//   - NumPy's .npz: such an array that is named "vectors", or the only array
//   - .safetensors: a V×L tensor of F32, F64, F16 or BF16, named "vectors", "embeddings" or "weight", or the only
//     tensor of two dimensions
//   - Tables: Arrow and Parquet, if the program imports package columnar; CSV with a header, and JSON lines.
//     Vectors in text are lists of numbers, base64 of little-endian float32, or a column per dimension.
//
// Words in o.WordList replace the words of tables. Rows without words are named by their numbers from 0, with a warning.
//
// An .npz or .safetensors file that is compressed as a whole, or read from a pipe, is held in
// memory. It is an error if such a file expands to more than a hundred times its size.
//
// A row is malformed if it has the wrong number of fields, if a field is not a finite decimal number
// in the range of float32, or if the word is empty, is not UTF-8 or contains a tab, a line break or a
// NUL. A file with fewer rows than its first line declares is an error; rows beyond the declared number are ignored,
// with a warning. If a word is repeated, Read drops its later rows. It keeps rows of
// zeros, and rows whose norm exceeds 1000 times the median. In these three cases it warns.
//
// Rows can be texts (see [ReadOptions]), such as sentences. Read keeps every text, under the input's
// id or its row number. A repeated id makes its row malformed.
//
// The result doesn't depend on the number of CPUs. Joining the rows requires twice their memory, except for one
// file with an array, read without o.Keep; Read returns an error if the machine has less. It reads files to
// their ends, even after o.MaxRows rows, to compute their SHA-256. A file that changes meanwhile is an error.
//
// An invalid input returns an [*InputError]. If ctx is cancelled, Read returns ctx.Err() at once,
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

// Stream reads the files of [Read] and yields their rows in blocks, in order. Its memory doesn't grow with the number
// of rows, with two exceptions. It stores about 64 bytes per row if texts have ids or o.Distinct is set. It holds in
// memory files that need random access, such as .npz and .safetensors, if they are compressed as a whole or come from a
// pipe. It reads arrays and word2vec binary in blocks of 8,192 rows, or fewer if these exceed 16 MiB, and holds up to
// five blocks. It holds a page per column of a Parquet file, a record batch of an Arrow file, and three blocks of
// either format with up to 16 MiB of text each. The caller may keep the rows. The iteration ends after the first error.
// If it completes without an error, Stream sets *source, which must not be nil.
//
// Unlike Read, Stream doesn't detect unusual norms. Unless o.Distinct is set, it detects repeated ids but
// not repeated words, and a word with a row of zeros is malformed.
func Stream(ctx context.Context, paths []string, o ReadOptions, source *Source) iter.Seq2[*Dense, error] {
	return (&reader{options: o}).stream(ctx, paths, source)
}

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

// inputError returns err as an InputError for the file at path, unless err already is an InputError.
func inputError(path string, err error) error {
	placed, ok := errors.AsType[*InputError](err)
	if !ok {
		if fromOS, ok := errors.AsType[*fs.PathError](err); ok {
			err = fromOS.Err // without the path
		}
		placed = &InputError{File: input.Name(path), Err: err}
	}
	for err := placed.Err; err != nil && placed.Options == nil; err = errors.Unwrap(err) {
		if o, ok := err.(*tabular.OptionError); ok {
			placed.Options = append(placed.Options, o.Option)
		}
	}
	return placed
}
