package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/modeldir"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// What the commands that look at dimensions share.

const aboutInput = `MODEL is a model, or a file of dense vectors as train reads them, whose dimensions
can be looked at in the same way.`

const aboutLabels = `The label of a dimension is what a person called it (see labels), or else its most
distinctive words, which few other dimensions have. Of a vocabulary whose frequent words
the model was learned from, these come first in lists, if they have at least half of the
largest value.`

func addSkipBad(cmd *cobra.Command) {
	cmd.Flags().Bool("skip-bad", false, "drop malformed rows of dense vectors instead of stopping at the first")
}

// addRare adds the flag that has lists of words begin with rare ones, too.
func addRare(cmd *cobra.Command) {
	cmd.Flags().Bool("rare", false, "put rare words before the frequent ones that the model was learned from, if they have larger values")
}

// loadIndex reads a model, or a file of dense vectors, to look at its dimensions.
func loadIndex(cmd *cobra.Command, path string) (*interpret.Index, error) {
	if model.Is(path) {
		m, err := loadModel(cmd, path)
		if err != nil {
			return nil, err
		}
		return newIndex(cmd, m), nil
	}
	x, _, err := readDense(cmd, path)
	if err != nil {
		return nil, err
	}
	return interpret.NewIndex(interpret.FromDense(x)), nil
}

// newIndex is an index of a model's codes, for a command that lists words with the known ones
// first if it has the flag of addRare.
func newIndex(cmd *cobra.Command, m *model.Model) *interpret.Index {
	x := interpret.NewIndex(m.Codes)
	if rare, err := cmd.Flags().GetBool("rare"); err == nil && !rare {
		x.Known = m.Info.Known()
	}
	return x
}

// loadModel opens a model that has codes, which takes a while if it is large. It says if the
// model is not what it will be.
func loadModel(cmd *cobra.Command, path string) (*model.Model, error) {
	m, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.Open(path) })
	switch {
	case err != nil:
		return nil, usageError{err}
	case m.Codes == nil && modeldir.IsCheckpoint(path):
		return nil, usagef("%s is a checkpoint that has a dictionary and no codes yet: train --resume goes on with it, and encode makes codes with what it is now", path)
	case m.Codes == nil:
		return nil, usagef("%s has a dictionary and no codes: encode makes them", path)
	case modeldir.IsCheckpoint(path):
		warn(cmd.ErrOrStderr(), "%s is a checkpoint: its training is not finished, and train --resume goes on with it", path)
	}
	return m, nil
}

// coherenceFile returns the file in which the directory of a model has the scores of its
// dimensions.
func coherenceFile(path string) (string, error) {
	stat, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", usageError{err}
	}
	if err != nil || !stat.IsDir() {
		return "", usagef("%s: scores of dimensions are kept in the directory of a model, which this is not", path)
	}
	return filepath.Join(path, modeldir.Coherence), nil
}

// readDense reads vectors, without malformed rows if the command has the flag of addSkipBad.
func readDense(cmd *cobra.Command, path string) (*vectors.Dense, *vectors.Source, error) {
	skip, _ := cmd.Flags().GetBool("skip-bad")
	return readVectors(cmd, path, vectors.ReadOptions{SkipBad: skip})
}

// readVectors reads vectors, and says what is odd about them.
func readVectors(cmd *cobra.Command, path string, o vectors.ReadOptions) (*vectors.Dense, *vectors.Source, error) {
	x, source, err := vectors.Read(cmd.Context(), path, o)
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range source.Warnings {
		warn(cmd.ErrOrStderr(), "%s: %s", source.Name, warning)
	}
	return x, source, nil
}

// findWord returns the row of a word.
func findWord(x *interpret.Index, word string) (int, error) {
	row, ok := x.Row(word)
	if ok {
		return row, nil
	}
	if x.Codes.Texts != nil {
		return findText(x, word)
	}
	closest := "no word is spelled alike"
	if words := x.Closest(word, 5); len(words) > 0 {
		closest = "the closest are " + wordList(words, ", ")
	}
	return 0, usagef("%.100q is none of the %d words; %s", word, len(x.Codes.Words), closest)
}

// An item is a row in a list: a word, or the id of a text and the text.
type item struct {
	Word string  `json:"word"`
	Text *string `json:"text,omitempty"` // nil of a word; a text may be empty
}

func newItem(x *interpret.Index, row int) item {
	i := item{Word: x.Codes.Words[row]}
	if x.Codes.Texts != nil {
		i.Text = &x.Codes.Texts.Text[row]
	}
	return i
}

// String returns the item as it is printed.
func (i item) String() string {
	word := wordList([]string{i.Word}, "")
	if i.Text == nil || *i.Text == "" {
		return word
	}
	return word + "  " + shortText(strings.Join(strings.Fields(*i.Text), " "), shownText)
}

// findText returns the only row whose text has a query in it.
func findText(x *interpret.Index, query string) (int, error) {
	const few = 5
	rows, total := x.Search(query, few)
	switch total {
	case 0:
		return 0, usagef("%.100q is no id and in none of the %d texts", query, x.Codes.Rows)
	case 1:
		return rows[0], nil
	}
	var found []string
	for _, i := range rows {
		found = append(found, fmt.Sprintf("%s: %s", wordList(x.Codes.Words[i:i+1], ""), shortText(x.Codes.Name(i), 60)))
	}
	return 0, usagef("%.100q is in %d texts; name one by its id, such as %s", query, total, strings.Join(found, "; "))
}

// shortText is a text that can be printed, of at most so many characters.
func shortText(text string, most int) string {
	runes := []rune(escape.Text(text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// cutWords returns words to list, of which long ones are cut.
func cutWords(words []string) []string {
	cut := slices.Clone(words)
	for i, word := range cut {
		if runes := []rune(word); len(runes) > shownText/2 {
			cut[i] = string(runes[:shownText/2-1]) + "…"
		}
	}
	return cut
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
		quoted[i] = escape.Word(word)
		if word == "" || word[0] == '"' || strings.ContainsRune(word, ' ') {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, separator)
}
