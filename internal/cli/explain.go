package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/model"
)

func newExplain() *cobra.Command {
	var words, dimensions, neighbours int
	var of string
	cmd := &cobra.Command{
		Use:   "explain MODEL WORD...",
		Short: "Show a word's dimensions, with their top words, and its neighbours",
		Long: `Explain shows the dimensions in which a word is not zero, strongest first: the
weight, and the words with the largest values or, where the weight is negative, the
most negative ones. The nearest words are those with the largest cosines between
their sparse vectors and the word's. A word that is not there as it stands is looked
up in lower case.

` + aboutLabels + `

The codes that encode gave to new words have the dimensions of the model that they
were made with. With --vocabulary, that model, they are described by its words and
labels, and not by the new words alone.

` + aboutInput,
		Example: `  overcomplete explain model bank
  overcomplete explain model bank river --dimensions 5 --json
  overcomplete explain encoded "river bank" --vocabulary model`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := checkCounts(0, count{"--words", words}, count{"--dimensions", dimensions}, count{"--neighbours", neighbours})
			if err != nil {
				return err
			}
			q, err := askWords(cmd, args[0], of, args[1:])
			if err != nil {
				return err
			}
			var explained []explanation
			for _, row := range q.rows {
				explained = append(explained, explain(q.codes, row, q.by, q.labels, words, dimensions, neighbours))
			}
			return show(cmd, explained, func(b *strings.Builder) {
				for i, e := range explained {
					if i > 0 {
						b.WriteByte('\n')
					}
					e.print(b, q.by.Codes.Cols, q.by.Codes.Texts != nil)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	flags.IntVar(&dimensions, "dimensions", 20, "most dimensions to show, 0 for all")
	flags.IntVar(&neighbours, "neighbours", 10, "nearest words to show")
	flags.StringVar(&of, "vocabulary", "", "describe dimensions by the words of this `model`")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

// asked is rows of codes to explain, by an index of the same dimensions with its labels.
type asked struct {
	codes, by *interpret.Index
	rows      []int
	labels    interpret.Labels
}

// askWords finds words in what is at path, to be explained by the words of a vocabulary, or by its own.
func askWords(cmd *cobra.Command, path, vocabulary string, words []string) (q asked, err error) {
	if q.codes, err = loadIndex(cmd, path); err != nil {
		return q, err
	}
	q.by = q.codes
	if vocabulary != "" {
		if q.by, err = loadVocabulary(cmd, path, vocabulary); err != nil {
			return q, err
		}
		path = vocabulary
	}
	if q.labels, err = loadLabels(path, q.by.Codes.Cols); err != nil {
		return q, err
	}
	for _, word := range words {
		row, err := findWord(q.codes, word)
		if err != nil {
			return q, err
		}
		q.rows = append(q.rows, row)
	}
	return q, nil
}

// loadVocabulary reads the model whose words describe the dimensions of the one at path,
// which must be the same.
func loadVocabulary(cmd *cobra.Command, path, vocabulary string) (*interpret.Index, error) {
	if !model.Is(path) {
		return nil, usagef("%s: --vocabulary is for what encode wrote, and this is no model", path)
	}
	encoded, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.OpenDictionary(path) })
	if err != nil {
		return nil, usageError{err}
	}
	m, err := loadModel(cmd, vocabulary)
	if err != nil {
		return nil, err
	}
	if a, b := &encoded.Dictionary, &m.Dictionary; a.Dim != b.Dim || !slices.Equal(a.Atoms, b.Atoms) {
		return nil, usagef("%s was not encoded with the dictionary of %s: want --vocabulary to be the model that it was made with", path, vocabulary)
	}
	return newIndex(cmd, m), nil
}

// explanation is a word's dimensions and neighbours.
type explanation struct {
	item
	Active  int         `json:"active"` // dimensions that are not zero
	Nearest []neighbour `json:"nearest"`
	Strong  []labelled  `json:"dimensions"`
}

type labelled struct {
	Label string `json:"label"`
	interpret.Explained
}

type neighbour struct {
	item
	Cosine float64 `json:"cosine"`
}

// explain describes a row of x by the words of an index with the same dimensions.
func explain(x *interpret.Index, row int, by *interpret.Index, labels interpret.Labels, words, dimensions, neighbours int) explanation {
	index, value := x.Codes.Row(row)
	e := explanation{item: newItem(x, row), Active: len(index), Nearest: []neighbour{}, Strong: []labelled{}}
	for _, d := range by.Explain(index, value, dimensions, words) {
		e.Strong = append(e.Strong, labelled{labels.Of(by, d.Dimension, d.Weight < 0), d})
	}
	nearest := by.NearestTo(index, value, neighbours)
	if by == x {
		nearest = x.Nearest(row, neighbours)
	}
	for _, n := range nearest {
		e.Nearest = append(e.Nearest, neighbour{newItem(by, n.Row), n.Cosine})
	}
	return e
}

func (e explanation) print(b *strings.Builder, dimensions int, texts bool) {
	fmt.Fprintf(b, "%s: %d of %d dimensions\n", escape.Word(e.Word), e.Active, dimensions)
	if texts {
		if e.Text != nil && *e.Text != "" {
			fmt.Fprintln(b, shortText(strings.Join(strings.Fields(*e.Text), " "), 20*shownText))
		}
		b.WriteString("nearest:\n")
		for _, n := range e.Nearest {
			fmt.Fprintf(b, "%6.2f  %v\n", n.Cosine, n.item)
		}
	} else if len(e.Nearest) > 0 {
		var nearest []string
		for _, n := range e.Nearest {
			nearest = append(nearest, fmt.Sprintf("%s %.2f", escape.Word(n.Word), n.Cosine))
		}
		fmt.Fprintf(b, "nearest: %s\n", strings.Join(nearest, ", "))
	}
	rows := table.Table{{"dimension", " weight", "label", "words"}}
	for _, d := range e.Strong {
		rows = append(rows, []string{strconv.Itoa(d.Dimension), fmt.Sprintf("%.3g", d.Weight), d.Label, wordList(d.Words, " ")})
	}
	b.WriteString(rows.Text("rrl", nil))
	if left := e.Active - len(e.Strong); left > 0 {
		fmt.Fprintf(b, "and %d weaker ones\n", left)
	}
}
