// Package tabular connects package vectors to formats of tables whose libraries only some
// programs need.
package tabular

import (
	"io"
	"slices"
)

// The kinds of rows.
const (
	Words = "words"
	Texts = "texts"
)

// MaxDim bounds the length of a vector.
const MaxDim = 1 << 20

// The names of the ids and the texts in a table with all columns of the rows.
const (
	IDName   = "id"
	TextName = "text"
)

// Options are the fields of vectors.ReadOptions that concern tables.
type Options struct {
	Rows                               string // [Words], [Texts], or "" if the table shall tell
	IDColumn, TextColumn, VectorColumn string
	WordList                           bool // a word list names the rows
}

// An OptionError reports something that another value of an option can mend.
type OptionError struct {
	Option string // the name of a field of vectors.ReadOptions
	Err    error
}

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// A Content is the decompressed content of a file.
type Content interface {
	io.Reader

	// Size returns the number of bytes, or -1 if only reading tells.
	Size() int64

	// RandomAccess returns the content as a file that can be read from anywhere, and its
	// size in bytes. Nothing may have been read before.
	RandomAccess() (io.ReaderAt, int64, error)
}

// A Table is an open file of a registered format.
type Table struct {
	Named   bool     // rows have words or texts
	Kind    string   // [Words], [Texts], or "" if only the rows tell
	IDs     bool     // texts have ids
	Columns []string // names of the other columns of texts
	Schema  []string // all that is read, such as a column of vectors, as people call it

	// Describe returns for people which columns were read, and warnings.
	Describe func(texts bool) (columns string, warnings []string)

	// Next returns some rows at a time, in their order, with their numbers one row after the other, and
	// io.EOF after the last. The next call overwrites the rows, but not the numbers.
	Next func() (rows []Row, numbers []float32, err error)
}

// FreeName returns the name for another column of texts: with underscores at its end, if it is taken.
func FreeName(name string, columns []string) string {
	for name == IDName || name == TextName || slices.Contains(columns, name) {
		name += "_"
	}
	return name
}

// A Row is a row of a [Table].
type Row struct {
	Name    string   // its word or text
	NotWord error    // why Name can't be a word, such as null, or nil
	ID      string   // of a text
	Columns []string // values
	Len     int      // of its vector, the same in all rows
	Err     error    // why the row is malformed, or nil
}

// A Format is a format of tables.
type Format struct {
	Name  string // for people, such as "Parquet"
	Magic string // with which its files begin
	Open  func(Content, Options) (*Table, error)
}

// Formats are the registered formats. Packages that know one add it when they are
// initialised.
var Formats []Format
