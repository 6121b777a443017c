package cli

import (
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"overcomplete/vectors"
)

// inputFlags are how vectors to train on or to encode are read.
type inputFlags struct {
	maxWords int
	skipBad  bool
	wordList string
	rows     string // words, texts or ""

	idColumn, textColumn, vectorColumn string
}

// registerInput adds all of these flags.
func (f *inputFlags) registerInput(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.registerMaxWords(flags)
	flags.BoolVar(&f.skipBad, "skip-bad", false, "drop malformed rows instead of stopping at the first")
	flags.StringVar(&f.wordList, "words", "", "`file` with a word a line, for vectors without words, or instead of words in .npz, .safetensors, Arrow and Parquet")
	flags.StringVar(&f.rows, "rows", "", "what rows are: `words`, each there once, or texts, such as sentences, of which every row is kept (default as their column is named or, in .npz, .safetensors, Arrow, Parquet and --words, as they look)")
	flags.StringVar(&f.textColumn, "text-column", "", "`name` of the column of Arrow or Parquet with the texts, or words (default word, words, token, text, sentence, document, content or passage, or the only one)")
	flags.StringVar(&f.idColumn, "id-column", "", "`name` of the column with the ids of texts, or none for their numbers (default id, _id or doc_id, if there is one)")
	flags.StringVar(&f.vectorColumn, "vector-column", "", "`name` of the column with the vectors (default vector, vectors, embedding or embeddings, or the only one of lists, or all of numbers)")
}

// registerMaxWords adds the flag that says how many words are read.
func (f *inputFlags) registerMaxWords(flags *pflag.FlagSet) {
	flags.IntVar(&f.maxWords, "max-words", 0, "read only the first `n` words (default all)")
}

// check refuses flags outside their domain.
func (f *inputFlags) check(changed func(flag string) bool) error {
	if changed("max-words") && (f.maxWords < 1 || f.maxWords > math.MaxInt32) {
		return usagef("--max-words is %d, want 1 to %d", f.maxWords, math.MaxInt32)
	}
	for flag, name := range map[string]string{"id-column": f.idColumn, "text-column": f.textColumn, "vector-column": f.vectorColumn} {
		if changed(flag) && name == "" {
			return usagef("--%s is empty, want the name of a column", flag)
		}
	}
	return nil
}

func (f *inputFlags) readOptions() vectors.ReadOptions {
	return vectors.ReadOptions{MaxWords: f.maxWords, SkipBad: f.skipBad, WordList: f.wordList, Rows: vectors.Kind(f.rows),
		IDColumn: f.idColumn, TextColumn: f.textColumn, VectorColumn: f.vectorColumn}
}
