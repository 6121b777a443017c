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
}

// registerInput adds all of these flags.
func (f *inputFlags) registerInput(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.registerMaxWords(flags)
	flags.BoolVar(&f.skipBad, "skip-bad", false, "drop malformed rows instead of stopping at the first")
	flags.StringVar(&f.wordList, "words", "", "`file` with a word a line, for vectors without words, or instead of words in .npz, .safetensors, Arrow and Parquet")
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
	return nil
}

func (f *inputFlags) readOptions() vectors.ReadOptions {
	return vectors.ReadOptions{MaxWords: f.maxWords, SkipBad: f.skipBad, WordList: f.wordList}
}
