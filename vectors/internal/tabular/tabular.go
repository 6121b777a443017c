// Package tabular is the interface between package vectors and the packages that read formats of
// tables. Those packages need large libraries, so only some programs import them. A package
// registers its format:
//
//	func init() {
//		tabular.Formats = append(tabular.Formats, tabular.Format{Name: "Parquet", Magic: "PAR1", Open: open})
//	}
package tabular

import (
	"io"
	"iter"
	"slices"
)

// The kinds of rows.
const (
	Words = "words"
	Texts = "texts"
)

// MaxDim is the maximum length of a vector.
const MaxDim = 1 << 20

// The names of the columns of ids and texts.
const (
	IDName   = "id"
	TextName = "text"
)

// Options are the fields of vectors.ReadOptions that concern tables.
type Options struct {
	Rows                                string // [Words], [Texts], or "" to detect the kind
	IDColumn, TextColumn, VectorColumns string
	WordList                            bool // a word list names the rows
	NamesOnly                           bool // the table is a word list: it names the rows of other vectors
}

// An OptionError reports a problem that another value of an option may solve.
type OptionError struct {
	Option string // the name of a field of vectors.ReadOptions
	Err    error
}

func (e *OptionError) Error() string { return e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// A Content is the decompressed content of a file.
type Content interface {
	io.Reader

	// Length returns the number of bytes, or -1 if it is unknown.
	Length() int64

	// RandomAccess returns the content for reads at any offset, and its size in bytes. It
	// must be called before the first Read.
	RandomAccess() (io.ReaderAt, int64, error)
}

// FreeName returns name with underscores appended until it is neither in columns nor the name of the ids or texts.
func FreeName(name string, columns []string) string {
	for name == IDName || name == TextName || slices.Contains(columns, name) {
		name += "_"
	}
	return name
}

// NamesVectors reports whether a column of this name usually contains vectors.
func NamesVectors(name string) bool { return hasName(vectorNames, name) }

// NamesTexts reports whether a column of this name usually contains words or texts.
func NamesTexts(name string) bool { return hasName(wordNames, name) || hasName(textNames, name) }

// A Row is a row of a file before checks.
type Row struct {
	Name     string   // its word or text; may be incomplete if Err isn't nil
	NotID    error    // the reason why Name is no valid word although it is a valid text, such as null
	ID       string   // id of a text, if the input has ids
	Columns  []string // values of the other columns
	Len      int      // length of the vector
	Vector   string   // the vector as a string, such as "[1, 2]", if its column has strings; Len is then 0
	Err      error    // the reason why the row is malformed, or nil
	Number   int      // index of the row's line in the file or block, or of the row in its block
	Doubtful bool     // Name may contain numbers of the vector
}

// A Block is a run of rows, and the numbers of their vectors, concatenated.
type Block struct {
	Rows    []Row
	Numbers []float32
}

// Blocks iterates over the blocks of a table, up to the first error. The caller may keep the blocks.
type Blocks = iter.Seq2[Block, error]

// A Format is a format of tables.
type Format struct {
	Name  string // for display, such as "Parquet"
	Magic string // the first bytes of its files
	Open  func(Content, Options) (*Layout, Blocks, error)
}

// Formats are the registered formats.
var Formats []Format
