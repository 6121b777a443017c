package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/interpret"
)

func newNearest() *cobra.Command {
	var words, dimensions int
	cmd := &cobra.Command{
		Use:   "nearest MODEL WORD [± WORD]... | TEXT",
		Short: "Show the words nearest to a word, to king - man + woman or to a text, and why",
		Long: `Nearest shows the words with the largest cosines to a word, to a sum and difference of
words, or to the mean of the words of a text, and the labels of the dimensions that
have the largest parts in each cosine, in percent of it. Each word of the question
counts the same, whatever the norm of its code. None of them is an answer.

+ and - stand between spaces, or between words that the model has: king-man+woman. Five
words or more are a text, and fewer in quotes that the shell leaves: '"river bank"'. Words
that a model does not have are left out of a text, and named. bank - #13 is bank without
its dimension 13.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete nearest model bank
  overcomplete nearest model king - man + woman
  overcomplete nearest model "bank - #13"
  overcomplete nearest model "the river rose above its banks" --json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(checkCounts(1, count{"--words", words}), checkCounts(0, count{"--dimensions", dimensions})); err != nil {
				return err
			}
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			q, err := x.Ask(strings.Join(args[1:], " "), nil)
			if unknown, ok := errors.AsType[*interpret.UnknownWordError](err); ok {
				_, err = findWord(x, unknown.Word) // says what is spelled alike
				return err
			} else if err != nil {
				return usageError{err}
			}
			if q.About == interpret.AboutSearch {
				_, err := findText(x, strings.Join(args[1:], " ")) // names some of them
				return err
			}
			if q.About == interpret.AboutDimension {
				return usagef("%q is a dimension, and no word: see overcomplete top", args[1])
			}
			r := newProximity(x, labels, q, words, dimensions)
			return show(cmd, r, r.print)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&words, "words", "n", 10, "nearest words to show")
	flags.IntVar(&dimensions, "dimensions", 3, "dimensions to show of each, 0 for all")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

// proximity is what is near to a question, and why.
type proximity struct {
	About   string      `json:"about"` // as in [interpret.Question]
	Terms   []weighted  `json:"terms"`
	Without []int       `json:"without,omitempty"` // dimensions
	Unknown []string    `json:"unknown"`           // words of a text
	Nearest []explained `json:"nearest"`
}

type weighted struct {
	item
	Weight float64 `json:"weight"`
}

type explained struct {
	item
	Cosine ranking `json:"cosine"`
}

func newProximity(x *interpret.Index, labels interpret.Labels, q interpret.Question, words, dimensions int) proximity {
	r := proximity{About: q.About, Without: q.Without, Unknown: append([]string{}, q.Unknown...), Nearest: []explained{}}
	var own []int
	for _, t := range q.Terms {
		r.Terms = append(r.Terms, weighted{newItem(x, t.Row), t.Weight})
		own = append(own, t.Row)
	}
	index, value := x.Combine(q)
	for _, n := range x.NearestTo(index, value, words, own...) {
		parts := x.Contributions(index, value, n.Row)
		r.Nearest = append(r.Nearest, explained{newItem(x, n.Row), newRanking(x, labels, n.Cosine, parts, dimensions)})
	}
	return r
}

func (r proximity) print(b *strings.Builder) {
	for i, t := range r.Terms {
		switch {
		case t.Weight < 0:
			b.WriteString("− ")
		case i > 0 && r.About == interpret.AboutSum:
			b.WriteString("+ ")
		}
		if times := max(t.Weight, -t.Weight); times != 1 {
			fmt.Fprintf(b, "%g·", times)
		}
		end := " "
		if i == len(r.Terms)-1 {
			end = "\n"
		}
		b.WriteString(t.item.String() + end)
	}
	for _, k := range r.Without {
		fmt.Fprintf(b, "without dimension %d\n", k)
	}
	if len(r.Unknown) > 0 {
		fmt.Fprintf(b, "not in the model: %s\n", wordList(r.Unknown, ", "))
	}
	if len(r.Nearest) == 0 {
		b.WriteString("no word is near\n")
	} else {
		b.WriteString("cosine  word  dimensions, % of the cosine\n")
	}
	for _, n := range r.Nearest {
		fmt.Fprintf(b, "%6.3f  %v  ", n.Cosine.Sum, n.item)
		if n.Text != nil {
			fmt.Fprintf(b, "\n%8s", "")
		}
		for _, d := range n.Cosine.Dimensions {
			fmt.Fprintf(b, "%s (%d) %.0f · ", escape.Text(d.Label), d.Dimension, n.Cosine.share(d.Part))
		}
		fmt.Fprintf(b, "%d others %.0f\n", n.Cosine.Others, n.Cosine.share(n.Cosine.Rest))
	}
}
