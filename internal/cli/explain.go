package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/interpret"
)

func newExplain() *cobra.Command {
	var words, dimensions, neighbours int
	var skipBad, asJSON bool
	cmd := &cobra.Command{
		Use:   "explain MODEL WORD...",
		Short: "Show a word's dimensions, with their top words, and its neighbours",
		Long: `Explain shows the dimensions in which a word is not zero, strongest first: the
weight, and the words with the largest values or, where the weight is negative, the
most negative ones. The nearest words are those with the largest cosines between
their sparse vectors and the word's. A word that is not there as it stands is looked
up in lower case.

` + aboutInput,
		Example: `  overcomplete explain model bank
  overcomplete explain model bank river --dimensions 5 --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := checkCounts(0, count{"--words", words}, count{"--dimensions", dimensions}, count{"--neighbours", neighbours})
			if err != nil {
				return err
			}
			x, err := loadIndex(cmd, args[0], skipBad)
			if err != nil {
				return err
			}
			var explained []explanation
			for _, word := range args[1:] {
				row, err := findWord(x, word)
				if err != nil {
					return err
				}
				explained = append(explained, explain(x, row, words, dimensions, neighbours))
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), explained)
			}
			for i, e := range explained {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := e.print(cmd.OutOrStdout(), x.Codes.Cols); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&words, "words", "n", 8, "words of each dimension")
	flags.IntVar(&dimensions, "dimensions", 20, "most dimensions to show, 0 for all")
	flags.IntVar(&neighbours, "neighbours", 10, "nearest words to show")
	addSkipBad(cmd, &skipBad)
	flags.BoolVar(&asJSON, "json", false, "print the same as JSON")
	return cmd
}

// explanation is a word's dimensions and neighbours.
type explanation struct {
	Word    string                `json:"word"`
	Active  int                   `json:"active"` // dimensions that are not zero
	Nearest []neighbour           `json:"nearest"`
	Strong  []interpret.Explained `json:"dimensions"`
}

type neighbour struct {
	Word   string  `json:"word"`
	Cosine float64 `json:"cosine"`
}

func explain(x *interpret.Index, row, words, dimensions, neighbours int) explanation {
	index, value := x.Codes.Row(row)
	e := explanation{Word: x.Codes.Words[row], Active: len(index), Nearest: []neighbour{}, Strong: x.Explain(index, value, dimensions, words)}
	for _, n := range x.Nearest(row, neighbours) {
		e.Nearest = append(e.Nearest, neighbour{x.Codes.Words[n.Row], n.Cosine})
	}
	return e
}

func (e explanation) print(w io.Writer, dimensions int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d dimensions\n", escape.Word(e.Word), e.Active, dimensions)
	if len(e.Nearest) > 0 {
		var nearest []string
		for _, n := range e.Nearest {
			nearest = append(nearest, fmt.Sprintf("%s %.2f", escape.Word(n.Word), n.Cosine))
		}
		fmt.Fprintf(&b, "nearest: %s\n", strings.Join(nearest, ", "))
	}
	fmt.Fprintf(&b, "dimension   weight  words\n")
	for _, d := range e.Strong {
		fmt.Fprintf(&b, "%9d  %7.3g  %s\n", d.Dimension, d.Weight, wordList(d.Words, " "))
	}
	if left := e.Active - len(e.Strong); left > 0 {
		fmt.Fprintf(&b, "and %d weaker ones\n", left)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
