package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/printing"
	"overcomplete/interpret"
)

func newNearest() *cobra.Command {
	var words, dimensions int
	var more, less []string
	cmd := &cobra.Command{
		Use:        "nearest MODEL WORD [± WORD]... | TEXT",
		SuggestFor: []string{"search", "find", "similar", "neighbours", "analogy"},
		Short:      "Find nearest neighbours and why they are near; search texts",
		Long: `Nearest prints the words with the largest cosines to a word, to a sum and difference of
words, or to the mean of the words of a text, and the labels of the dimensions that
have the largest parts in each cosine, in percent of it. Each word of the query counts
the same, whatever the norm of its code.

+ and - stand between spaces, or between words that the model has: king-man+woman. Five
words or more are a text, and fewer in quotes that the shell leaves: '"river bank"'. Words
that a model lacks are left out of a text. bank - #13 is bank without its dimension 13.

If rows are texts, words are ids. Any other query is a search: if one text has all of its
words, this is the query; otherwise the texts are listed, best first (BM25). In quotes that
the shell leaves, any query is a search that lists texts: '"48"' isn't dimension 48.

--more and --less steer the result by dimensions, whether the query has them or not. They
add s·v to the score of a row, where v is the value of the dimension in the row's code of
norm 1, and s is 0.5, or the number after =, for --more and its negative for --less:

  score = cosine + s·v + …

Rows are sorted by this score, which is printed with its parts. A search has no cosine: the
texts that have all words, or else the best 100, are sorted by s·v + … alone; --json has its parts.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete nearest model bank
  overcomplete nearest model king - man + woman
  overcomplete nearest model "bank - #13"
  overcomplete nearest sentences "a triumph of" -n 50
  overcomplete nearest sentences q-1 --more 17 --less 203=0.8`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			steering, err := parseSteering(x.Codes.Cols, more, less)
			if err != nil {
				return err
			}
			steering.label(x, labels)
			query := strings.Join(args[1:], " ")
			if _, ok := x.Row(query); !ok {
				if err := checkSearch(x); err != nil {
					return err
				}
			}
			q, err := x.Parse(query, nil)
			if unknown, ok := errors.AsType[*interpret.UnknownIDError](err); ok && q.Quoted {
				return usagef("no text has a word of %.100q", unknown.ID)
			} else if ok {
				return unknownRow(x, unknown)
			} else if err != nil {
				return usageError{err}
			}
			switch q.Kind {
			case interpret.QueryDimension:
				advice := ""
				if x.Codes.Texts != nil {
					advice = fmt.Sprintf(", or search the texts for '%q'", query)
				}
				return usagef("%q is a dimension, not a word: see overcomplete top%s", query, advice)
			case interpret.QuerySearch:
				if q.Total != 1 || q.Quoted {
					if err := refuseFlags(cmd, "is for neighbours, and this query is a search, whose texts have no cosines; drop it", "dimensions"); err != nil {
						return err
					}
					return search(cmd, x, steering, query, words)
				}
				q = interpret.Query{Kind: interpret.QueryWords, Terms: []interpret.Term{{Row: q.Rows[0], Weight: 1}}, Matched: q.Matched}
			}
			n := newNeighbourhood(x, labels, q, steering, words, dimensions)
			return show(cmd, n, n.print)
		},
	}
	flags := cmd.Flags()
	flags.VarP(count(&words, 10), "words", "n", "most words or texts to print")
	flags.Var(countFrom0(&dimensions, 3), "dimensions", "most dimensions per neighbour, 0 for all")
	addSteering(cmd, &more, &less)
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON, with whole texts")
	return cmd
}

// A steering adds weighted dimensions to scores; see [interpret.Code.Steer].
type steering []steered

type steered struct {
	Dimension int     `json:"dimension"`
	Label     string  `json:"label"`
	Weight    float64 `json:"weight"`
	Part      float64 `json:"part"` // this dimension's part of a row's score
}

func addSteering(cmd *cobra.Command, more, less *[]string) {
	cmd.Flags().StringSliceVar(more, "more", nil, "prefer rows with `dimension[=s]`, several separated by commas")
	cmd.Flags().StringSliceVar(less, "less", nil, "avoid rows with `dimension[=s]`")
}

// parseSteering parses the values of --more and --less for K dimensions: a dimension, or dimension=weight (3=0.5).
func parseSteering(dimensions int, more, less []string) (steering, error) {
	for flag, values := range map[string][]string{"--more": more, "--less": less} {
		if values != nil && len(values) == 0 {
			return nil, usagef("%s is empty, want a dimension from 0 to %d", flag, dimensions-1)
		}
	}
	const maxWeight = 1_000_000 // so that scores don't overflow
	var all steering
	for i, value := range slices.Concat(more, less) {
		flag, sign := "--more", 1.0
		if i >= len(more) {
			flag, sign = "--less", -1
		}
		dimension, amount, given := strings.Cut(value, "=")
		k, err := strconv.Atoi(dimension)
		if err != nil || k < 0 || k >= dimensions {
			return nil, usagef("%s is %.60q, want a dimension from 0 to %d", flag, value, dimensions-1)
		}
		weight := 0.5
		if given {
			weight, err = strconv.ParseFloat(amount, 64)
		}
		if err != nil || !(weight > 0 && weight <= maxWeight) {
			return nil, usagef("%s is %.60q, want a positive number up to %d after =", flag, value, maxWeight)
		}
		if slices.ContainsFunc(all, func(s steered) bool { return s.Dimension == k }) {
			return nil, usagef("%s is %.60q, but dimension %d already has a weight", flag, value, k)
		}
		all = append(all, steered{Dimension: k, Weight: sign * weight})
	}
	return all, nil
}

func (s steering) label(x *interpret.Index, labels interpret.Labels) {
	for i := range s {
		pole := interpret.Pole{Dimension: s[i].Dimension}
		if poles := x.Poles(pole.Dimension); len(poles) == 1 {
			pole = poles[0]
		}
		s[i].Label = labels.Name(x, pole)
	}
}

// s.of(x, row) returns s with Part set to each dimension's part in the score of the row, and the sum of these parts.
func (s steering) of(x *interpret.Index, row int) (parts steering, sum float64) {
	code := x.Code(row)
	norm := cmp.Or(code.Norm(), 1)
	for _, d := range s {
		d.Part = d.Weight * float64(code.At(d.Dimension)) / norm
		parts, sum = append(parts, d), sum+d.Part
	}
	return parts, sum
}

func (s steering) weights() (weights []interpret.Weight) {
	for _, d := range s {
		weights = append(weights, interpret.Weight{Dimension: d.Dimension, Value: float32(d.Weight)})
	}
	return weights
}

// String returns the parts as terms of a sum.
func (s steering) String() string {
	terms := ""
	for _, d := range s {
		sign := "+"
		if d.Part < 0 {
			sign = "−"
		}
		terms += fmt.Sprintf(" %s %.3f %s (%d)", sign, math.Abs(d.Part), printing.Text(d.Label), d.Dimension)
	}
	return terms
}

// steeredTexts is the number of partially matching texts that steering ranks.
const steeredTexts = 100

// search prints the n best texts for a query. With steering, it ranks texts by their steered scores. It then considers
// the texts with all words of the query or, without such texts, the best matches.
func search(cmd *cobra.Command, x *interpret.Index, s steering, query string, n int) error {
	most := n
	if s != nil {
		most = x.Codes.Rows
	}
	q := x.Search(query, most)
	if s != nil {
		q.Rows = q.Rows[:min(len(q.Rows), cmp.Or(q.Total, steeredTexts))]
	}
	type text struct {
		item
		Score   *float64 `json:"score,omitempty"`
		Steered steering `json:"steered,omitempty"`
	}
	found := make([]text, 0, len(q.Rows))
	for _, row := range q.Rows {
		t := text{item: newHit(x, row, q.Matched)}
		if s != nil {
			parts, score := s.of(x, row)
			t.Score, t.Steered = &score, parts
		}
		found = append(found, t)
	}
	if s != nil {
		slices.SortStableFunc(found, func(a, b text) int { return cmp.Compare(*b.Score, *a.Score) })
	}
	found = found[:min(n, len(found))]
	return show(cmd, struct {
		Kind  string `json:"kind"`
		Total int    `json:"total"`
		Texts []text `json:"texts"`
	}{interpret.QuerySearch, q.Total, found}, func(b *strings.Builder) {
		contain := "texts contain"
		if q.Total == 1 {
			contain = "text contains"
		}
		fmt.Fprintf(b, "%d %s all words; the best:\n", q.Total, contain)
		for _, t := range found {
			if s != nil {
				fmt.Fprintf(b, "%6.3f", *t.Score)
			}
			fmt.Fprintf(b, "  %v\n", t.item)
		}
	})
}

// A neighbourhood is the answer to a query for words, their sum or a text.
type neighbourhood struct {
	Kind    string      `json:"kind"` // see [interpret.Query]
	Terms   []weighted  `json:"terms"`
	Without []int       `json:"without,omitempty"` // excluded dimensions
	Unknown []string    `json:"unknown"`           // unknown words of a text
	Nearest []explained `json:"nearest"`
}

type weighted struct {
	item
	Weight float64 `json:"weight"`
}

type explained struct {
	item
	Cosine  breakdown `json:"cosine"`
	Score   *float64  `json:"score,omitempty"` // with steering: the cosine plus the parts of Steered
	Steered steering  `json:"steered,omitempty"`
}

func newNeighbourhood(x *interpret.Index, labels interpret.Labels, q interpret.Query, s steering, words, dimensions int) neighbourhood {
	h := neighbourhood{Kind: q.Kind, Without: q.Without, Unknown: append([]string{}, q.Unknown...), Nearest: []explained{}}
	var own []int
	for _, t := range q.Terms {
		i := newItem(x, t.Row)
		if q.Matched != nil { // the only text that a search found
			i = newHit(x, t.Row, q.Matched)
		}
		h.Terms = append(h.Terms, weighted{i, t.Weight})
		own = append(own, t.Row)
	}
	sum := x.Sum(q)
	steered := sum
	if s != nil {
		steered = sum.Steer(s.weights()...)
	}
	for _, n := range x.Nearest(steered, words, own...) {
		shared, _ := interpret.Compare(sum, x.Code(n.Row))
		e := explained{item: newItem(x, n.Row), Cosine: newBreakdown(x, labels, sumOf(shared), shared, dimensions)}
		if s != nil {
			parts, score := s.of(x, n.Row)
			score += e.Cosine.Sum
			e.Score, e.Steered = &score, parts
		}
		h.Nearest = append(h.Nearest, e)
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
		if h.Nearest[0].Score != nil {
			b.WriteString(" score = cosine + parts of the steered dimensions\n")
		}
		b.WriteString("cosine  word  dimensions, % of the cosine\n")
	}
	for _, n := range h.Nearest {
		if n.Score != nil {
			fmt.Fprintf(b, "%6.3f = %.3f%v\n", *n.Score, n.Cosine.Sum, n.Steered)
		}
		fmt.Fprintf(b, "%6.3f  %v  ", n.Cosine.Sum, n.item)
		if n.Text != nil {
			fmt.Fprintf(b, "\n%8s", "")
		}
		for _, d := range n.Cosine.Dimensions {
			fmt.Fprintf(b, "%s (%d) %.0f · ", printing.Text(d.Label), d.Dimension, n.Cosine.percent(d.Part))
		}
		fmt.Fprintf(b, "%d others %.0f\n", n.Cosine.Others, n.Cosine.percent(n.Cosine.Rest))
	}
}
