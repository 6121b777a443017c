package cli

import (
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
		Short: "Find the nearest words of a word, a sum or a text, and why they are near; search texts",
		Long: `Nearest prints the words with the largest cosines to a word, to a sum and difference of
words, or to the mean of the words of a text, and the labels of the dimensions that
have the largest parts in each cosine, in percent of it. Each word of the query counts
the same, whatever the norm of its code.

+ and - stand between spaces, or between words that the model has: king-man+woman. Five
words or more are a text, and fewer in quotes that the shell leaves: '"river bank"'. Words
that a model lacks are left out of a text. bank - #13 is bank without its dimension 13.

If rows are texts, words are ids. Any other query is searched for in the texts, whatever
its case. If one text contains it, this is the query; if several do, these are listed.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete nearest model bank
  overcomplete nearest model king - man + woman
  overcomplete nearest model "bank - #13"
  overcomplete nearest sentences "a triumph of" -n 50`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			query := strings.Join(args[1:], " ")
			q, err := x.Parse(query, nil)
			if unknown, ok := errors.AsType[*interpret.UnknownWordError](err); ok {
				return unknownWord(x, unknown)
			} else if err != nil {
				return usageError{err}
			}
			switch q.Kind {
			case interpret.QueryDimension:
				return usagef("%q is a dimension, and no word: see overcomplete top", args[1])
			case interpret.QuerySearch:
				return search(cmd, x, query, words)
			}
			n := newNeighbourhood(x, labels, q, words, dimensions)
			return show(cmd, n, n.print)
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&words, "words", "n", 10, "most words or texts to print")
	flags.IntVar(&dimensions, "dimensions", 3, "dimensions to print of each, 0 for all")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON, with whole texts")
	return cmd
}

// search prints the first n texts that contain a query.
func search(cmd *cobra.Command, x *interpret.Index, query string, n int) error {
	rows, total := x.Search(query, n)
	found := []item{}
	for _, row := range rows {
		found = append(found, newItem(x, row))
	}
	return show(cmd, struct {
		Kind  string `json:"kind"`
		Total int    `json:"total"`
		Texts []item `json:"texts"`
	}{interpret.QuerySearch, total, found}, func(b *strings.Builder) {
		fmt.Fprintf(b, "%d texts contain it:\n", total)
		for _, i := range found {
			fmt.Fprintf(b, "  %v\n", i)
		}
		if total > len(found) {
			fmt.Fprintf(b, "and %d more\n", total-len(found))
		}
	})
}

// neighbourhood is the result for words.
type neighbourhood struct {
	Kind    string      `json:"kind"` // see [interpret.Query]
	Terms   []weighted  `json:"terms"`
	Without []int       `json:"without,omitempty"` // excluded dimensions
	Unknown []string    `json:"unknown"`           // words of a text
	Nearest []explained `json:"nearest"`
}

type weighted struct {
	item
	Weight float64 `json:"weight"`
}

type explained struct {
	item
	Cosine breakdown `json:"cosine"`
}

func newNeighbourhood(x *interpret.Index, labels interpret.Labels, q interpret.Query, words, dimensions int) neighbourhood {
	h := neighbourhood{Kind: q.Kind, Without: q.Without, Unknown: append([]string{}, q.Unknown...), Nearest: []explained{}}
	var own []int
	for _, t := range q.Terms {
		h.Terms = append(h.Terms, weighted{newItem(x, t.Row), t.Weight})
		own = append(own, t.Row)
	}
	sum := x.Sum(q)
	for _, n := range x.Nearest(sum, words, own...) {
		shared, _ := interpret.Compare(sum, x.Code(n.Row))
		h.Nearest = append(h.Nearest, explained{newItem(x, n.Row), newBreakdown(x, labels, n.Cosine, shared, dimensions)})
	}
	return h
}

func (h neighbourhood) print(b *strings.Builder) {
	for i, t := range h.Terms {
		switch {
		case t.Weight < 0:
			b.WriteString("− ")
		case i > 0 && h.Kind == interpret.QuerySum:
			b.WriteString("+ ")
		}
		if times := max(t.Weight, -t.Weight); times != 1 {
			fmt.Fprintf(b, "%g·", times)
		}
		end := " "
		if i == len(h.Terms)-1 {
			end = "\n"
		}
		b.WriteString(t.item.String() + end)
	}
	for _, k := range h.Without {
		fmt.Fprintf(b, "without dimension %d\n", k)
	}
	if len(h.Unknown) > 0 {
		fmt.Fprintf(b, "not in the model: %s\n", wordList(h.Unknown, ", "))
	}
	if len(h.Nearest) == 0 {
		b.WriteString("no word is near\n")
	} else {
		b.WriteString("cosine  word  dimensions, % of the cosine\n")
	}
	for _, n := range h.Nearest {
		fmt.Fprintf(b, "%6.3f  %v  ", n.Cosine.Sum, n.item)
		if n.Text != nil {
			fmt.Fprintf(b, "\n%8s", "")
		}
		for _, d := range n.Cosine.Dimensions {
			fmt.Fprintf(b, "%s (%d) %.0f · ", escape.Text(d.Label), d.Dimension, n.Cosine.percent(d.Part))
		}
		fmt.Fprintf(b, "%d others %.0f\n", n.Cosine.Others, n.Cosine.percent(n.Cosine.Rest))
	}
}
