package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// What the commands that look at dimensions share.

const aboutInput = `MODEL is a model, or a file of dense vectors as train reads them, whose dimensions
can be looked at in the same way.`

func addSkipBad(cmd *cobra.Command, skipBad *bool) {
	cmd.Flags().BoolVar(skipBad, "skip-bad", false, "drop malformed rows of dense vectors instead of stopping at the first")
}

// loadIndex reads a model, or a file of dense vectors, to look at its dimensions.
func loadIndex(cmd *cobra.Command, path string, skipBad bool) (*interpret.Index, error) {
	if model.Is(path) {
		m, err := model.Open(path)
		if err != nil {
			return nil, usageError{err}
		}
		return interpret.NewIndex(m.Codes), nil
	}
	x, _, err := readDense(cmd.Context(), cmd.ErrOrStderr(), path, skipBad)
	if err != nil {
		return nil, err
	}
	return interpret.NewIndex(interpret.FromDense(x)), nil
}

func readDense(ctx context.Context, stderr io.Writer, path string, skipBad bool) (*vectors.Dense, *vectors.Source, error) {
	x, source, err := vectors.Read(ctx, path, vectors.ReadOptions{SkipBad: skipBad})
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range source.Warnings {
		fmt.Fprintf(stderr, "warning: %s: %s\n", source.Name, warning)
	}
	return x, source, nil
}

// findWord returns the row of a word.
func findWord(x *interpret.Index, word string) (int, error) {
	row, ok := x.Row(word)
	if ok {
		return row, nil
	}
	closest := "no word is spelled alike"
	if words := x.Closest(word, 5); len(words) > 0 {
		closest = "the closest are " + wordList(words, ", ")
	}
	return 0, usagef("%.100q is none of the %d words; %s", word, len(x.Codes.Words), closest)
}

// checkCounts refuses counts below least.
func checkCounts(least int, counts ...count) error {
	for _, c := range counts {
		if c.value < least {
			return usagef("%s is %d, want %d or more", c.flag, c.value, least)
		}
	}
	return nil
}

type count struct {
	flag  string
	value int
}

// wordList joins words that are all on one line. Words that could be taken for
// several, because there is white space in them, are quoted.
func wordList(words []string, separator string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = printable(word)
		if word == "" || word[0] == '"' || strings.ContainsRune(word, ' ') {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, separator)
}

// printable returns a word as it is or, if a terminal could take a character for a
// command or show nothing for it, quoted with such characters escaped. Words are
// as others wrote them.
func printable(word string) string {
	// Persian and other scripts need the two joiners, which are not printable.
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) && r != '\u200c' && r != '\u200d' }) {
		return strconv.Quote(word)
	}
	return word
}
