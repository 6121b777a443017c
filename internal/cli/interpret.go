package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// What the commands that look at dimensions share.

const aboutInput = `MODEL is a model, or a file of dense vectors as train reads them, whose dimensions
can be looked at in the same way.`

// loadIndex reads a model, or a file of dense vectors, to look at its dimensions.
func loadIndex(cmd *cobra.Command, path string) (*interpret.Index, error) {
	if model.Is(path) {
		m, err := model.Open(path)
		if err != nil {
			return nil, usageError{err}
		}
		return interpret.NewIndex(m.Words, m.Codes), nil
	}
	x, err := readDense(cmd.Context(), cmd.ErrOrStderr(), path)
	if err != nil {
		return nil, err
	}
	return interpret.NewIndex(x.Words, interpret.FromDense(x)), nil
}

func readDense(ctx context.Context, stderr io.Writer, path string) (*vectors.Dense, error) {
	x, source, err := vectors.Read(ctx, path, vectors.ReadOptions{})
	if err != nil {
		return nil, err
	}
	for _, warning := range source.Warnings {
		fmt.Fprintf(stderr, "warning: %s: %s\n", source.Name, warning)
	}
	return x, nil
}

// findWord returns the row of a word.
func findWord(x *interpret.Index, word string) (int, error) {
	row, ok := x.Row(word)
	if ok {
		return row, nil
	}
	closest := "no word is spelled alike"
	if words := x.Closest(word, 5); len(words) > 0 {
		closest = "the closest are " + strings.Join(words, ", ")
	}
	return 0, usagef("%.100q is none of the %d words; %s", word, len(x.Words), closest)
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

func wordsOf(x *interpret.Index, entries []interpret.Entry) []string {
	words := []string{}
	for _, e := range entries {
		words = append(words, x.Words[e.Row])
	}
	return words
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
