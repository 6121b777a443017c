package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/model"
)

func newExplain() *cobra.Command {
	var words, dimensions, neighbours int
	var vocabulary string
	cmd := &cobra.Command{
		Use:   "explain MODEL WORD...",
		Short: "Explain a row by its dimensions and nearest rows",
		Long: `Explain prints the dimensions in which a word is not zero, strongest first: the weight,
the label, and the words with the largest values or, if the weight is negative, the most
negative ones. The nearest words are those with the largest cosines of codes. A word that
the model lacks is looked up in lower case.

` + aboutLabels + `

The codes that encode gave to new words have the dimensions of the model that they
were made with. With --vocabulary, that model, its words and labels describe them.

` + aboutInput,
		Example: `  overcomplete explain model bank
  overcomplete explain model bank river --dimensions 5 --json
  overcomplete explain encoded "river bank" --vocabulary model`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			by := x
			if vocabulary != "" {
				if _, by, labels, err = loadVocabulary(cmd, args[0], vocabulary); err != nil {
					return err
				}
			}
			var all []explanation
			for _, word := range args[1:] {
				row, err := findRow(x, word)
				if err != nil {
					return err
				}
				e := explanation{item: newItem(x, row), Nearest: []neighbour{}, Dimensions: []labelledWeight{}}
				weights := x.Code(row).Weights()
				e.Active = len(weights)
				if dimensions > 0 {
					weights = weights[:min(dimensions, len(weights))]
				}
				for _, w := range weights {
					e.Dimensions = append(e.Dimensions, labelledWeight{labels.Name(by, w.Pole()), w.Dimension, w.Value, by.Words(w.Pole(), words)})
				}
				var without []int
				if by == x {
					without = []int{row}
				}
				for _, n := range by.Nearest(x.Code(row), neighbours, without...) {
					e.Nearest = append(e.Nearest, neighbour{newItem(by, n.Row), n.Cosine})
				}
				all = append(all, e)
			}
			return show(cmd, all, func(b *strings.Builder) {
				for i, e := range all {
					if i > 0 {
						b.WriteByte('\n')
					}
					e.print(b, by.Codes.Cols, by.Codes.Texts != nil)
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.VarP(countFrom0(&words, 8), "words", "n", "words of each dimension")
	flags.Var(countFrom0(&dimensions, 20), "dimensions", "most dimensions to print, 0 for all")
	flags.Var(countFrom0(&neighbours, 10), "neighbours", "nearest words to print")
	flags.StringVar(&vocabulary, "vocabulary", "", "describe dimensions by the words of this `model`")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

// loadVocabulary reads the model that --vocabulary names. Its words describe the dimensions and topics of the codes at
// path. These codes must have been encoded with the model's dictionary.
func loadVocabulary(cmd *cobra.Command, path, vocabulary string) (*model.Model, *interpret.Index, interpret.Labels, error) {
	if !model.Is(path) {
		return nil, nil, nil, usagef("%s is not a model; --vocabulary describes the codes that encode wrote", path)
	}
	encoded, err := input.Wait(cmd.Context(), func() (*model.Model, error) { return model.OpenDictionary(path) })
	if err != nil {
		return nil, nil, nil, err
	}
	m, x, labels, err := loadNamed(cmd, vocabulary)
	if err == nil {
		err = checkVocabulary(path, encoded, vocabulary, m)
	}
	return m, x, labels, err
}

// checkVocabulary returns an error unless the codes at path were encoded with the dictionary of m.
func checkVocabulary(path string, encoded *model.Model, vocabulary string, m *model.Model) error {
	if a, b := &encoded.Dictionary, &m.Dictionary; a.Dim != b.Dim || !slices.Equal(a.Atoms, b.Atoms) {
		return usagef("%s was not encoded with the dictionary of %s; --vocabulary must be the model that encoded it", path, vocabulary)
	}
	return nil
}

type explanation struct {
	item
	Active     int              `json:"active"` // number of nonzeros
	Nearest    []neighbour      `json:"nearest"`
	Dimensions []labelledWeight `json:"dimensions"`
}

type labelledWeight struct {
	Label     string   `json:"label"`
	Dimension int      `json:"dimension"`
	Weight    float32  `json:"weight"`
	Words     []string `json:"words"`
}

type neighbour struct {
	item
	Cosine float64 `json:"cosine"`
}

func (e explanation) print(b *strings.Builder, dimensions int, texts bool) {
	fmt.Fprintf(b, "%s: %d of %d dimensions\n", printing.Word(e.Word), e.Active, dimensions)
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
			nearest = append(nearest, fmt.Sprintf("%s %.2f", printing.Word(n.Word), n.Cosine))
		}
		fmt.Fprintf(b, "nearest: %s\n", strings.Join(nearest, ", "))
	}
	rows := printing.Table{{"dimension", " weight", "label", "words"}}
	for _, d := range e.Dimensions {
		rows = append(rows, []string{strconv.Itoa(d.Dimension), fmt.Sprintf("%.3g", d.Weight), d.Label, wordList(d.Words, " ")})
	}
	b.WriteString(rows.Text("rrl"))
	if left := e.Active - len(e.Dimensions); left > 0 {
		fmt.Fprintf(b, "and %d weaker ones\n", left)
	}
}
