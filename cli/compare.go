package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/printing"
	"overcomplete/interpret"
	"overcomplete/model"
)

func newCompare() *cobra.Command {
	var dimensions int
	cmd := &cobra.Command{
		Use:        "compare MODEL WORD WORD... | MODEL OTHER",
		SuggestFor: []string{"match", "diff", "align"},
		Short:      "Compare rows, or match dimensions between two models",
		Long: `Compare MODEL WORD WORD prints the cosine of the codes of words and the part of each
dimension in it. With a and b for two codes, divided by their norms, dimension k has the
part a_k·b_k in the cosine, and (a_k − b_k)²/2 in the rest to 1. For more than two words,
cosine and parts are means over all pairs.

Compare MODEL OTHER matches the atoms of two models of vectors of one space one to one,
with the largest sum of cosines. It prints the mean cosine, which measures the stability
across seeds or vocabularies, and the dimensions with the lowest cosines.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete compare model bank river
  overcomplete compare model bank river money --dimensions 5 --json
  overcomplete compare model retrained`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return compareModels(cmd, args[0], args[1], dimensions)
			}
			return compareWords(cmd, args[0], args[1:], dimensions)
		},
	}
	flags := cmd.Flags()
	flags.Var(countFrom0(&dimensions, 10), "dimensions", "most dimensions of each list, 0 for all")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON, with the matches of all dimensions of two models")
	return cmd
}

// A comparison is the result of comparing words.
type comparison struct {
	Words  []string  `json:"words"`
	Texts  []string  `json:"texts,omitempty"` // set if words are ids of texts
	items  []item    // the texts, for printing
	Pairs  []pair    `json:"pairs"`
	Shared breakdown `json:"shared"`
	Apart  breakdown `json:"apart"`
}

type pair struct {
	First  string  `json:"first"`
	Second string  `json:"second"`
	Cosine float64 `json:"cosine"`
}

func compareWords(cmd *cobra.Command, path string, words []string, dimensions int) error {
	x, labels, err := loadLabelled(cmd, path)
	if err != nil {
		return err
	}
	c := comparison{Pairs: []pair{}}
	var codes []interpret.Code
	for _, word := range words {
		row, err := findRow(x, word)
		if err != nil {
			return err
		}
		word = x.Codes.IDs[row]
		code := x.Code(row)
		for i, other := range codes {
			shared, _ := interpret.Compare(other, code)
			c.Pairs = append(c.Pairs, pair{c.Words[i], word, sumOf(shared)})
		}
		codes, c.Words = append(codes, code), append(c.Words, word)
		if x.Codes.Texts != nil {
			c.Texts, c.items = append(c.Texts, x.Codes.Texts.Text[row]), append(c.items, newItem(x, row))
		}
	}
	shared, apart := interpret.Compare(codes...)
	c.Shared = newBreakdown(x, labels, sumOf(shared), shared, dimensions)
	c.Apart = newBreakdown(x, labels, 1-sumOf(shared), apart, dimensions)
	return show(cmd, c, c.print)
}

func sumOf(parts []interpret.Contribution) (sum float64) {
	for _, p := range parts {
		sum += p.Part
	}
	return sum
}

// A breakdown splits Sum into a part per dimension, plus Rest.
type breakdown struct {
	Sum        float64        `json:"sum"`
	Dimensions []contribution `json:"dimensions"`
	Others     int            `json:"others"` // number of dimensions that aren't listed
	Rest       float64        `json:"rest"`   // sum of the parts that aren't listed
}

type contribution struct {
	Label string `json:"label"`
	interpret.Contribution
}

// newBreakdown lists the n largest parts, or all if n is 0.
func newBreakdown(x *interpret.Index, labels interpret.Labels, sum float64, parts []interpret.Contribution, n int) breakdown {
	if n == 0 {
		n = len(parts)
	}
	n = min(n, len(parts))
	b := breakdown{Sum: sum, Dimensions: []contribution{}, Others: len(parts) - n, Rest: sumOf(parts[n:])}
	for _, p := range parts[:n] {
		b.Dimensions = append(b.Dimensions, contribution{labels.Name(x, strongestPole(p)), p})
	}
	return b
}

// strongestPole returns the pole of the value with the largest magnitude.
func strongestPole(c interpret.Contribution) interpret.Pole {
	strongest := 0.0
	for _, v := range c.Values {
		if math.Abs(v) > math.Abs(strongest) {
			strongest = v
		}
	}
	return interpret.Pole{Dimension: c.Dimension, Negative: strongest < 0}
}

func (b breakdown) percent(part float64) float64 {
	if b.Sum == 0 {
		return 0
	}
	return 100 * part / b.Sum
}

func (c comparison) print(b *strings.Builder) {
	for _, i := range c.items {
		fmt.Fprintf(b, "%v\n", i)
	}
	for _, p := range c.Pairs {
		fmt.Fprintf(b, "%s, %s: cosine %.3f\n", printing.Word(p.First), printing.Word(p.Second), p.Cosine)
	}
	mean := ""
	if len(c.Pairs) > 1 {
		mean = ", the mean"
	}
	fmt.Fprintf(b, "\nshared: %.3f%s\n", c.Shared.Sum, mean)
	b.WriteString(c.Shared.table(c.Words))
	fmt.Fprintf(b, "\napart: %.3f%s\n", c.Apart.Sum, mean)
	b.WriteString(c.Apart.table(c.Words))
}

func (b breakdown) table(words []string) string {
	rows := printing.Table{{"part", "%", "dimension", "label"}}
	for i := range words {
		rows[0] = append(rows[0], wordList(words[i:i+1], ""))
	}
	add := func(part float64, cells ...string) {
		rows = append(rows, append([]string{fmt.Sprintf("%7.4f", part), fmt.Sprintf("%4.1f", b.percent(part))}, cells...))
	}
	for _, d := range b.Dimensions {
		cells := []string{strconv.Itoa(d.Dimension), d.Label}
		for _, v := range d.Values {
			cells = append(cells, fmt.Sprintf("%.3f", v))
		}
		add(d.Part, cells...)
	}
	if b.Others > 0 {
		add(b.Rest, fmt.Sprintf("and %d others", b.Others))
	}
	return rows.Text("rrrlr")
}

// A modelMatch is the result of comparing two models.
type modelMatch struct {
	Dimensions int               `json:"dimensions"`  // number of dimensions of MODEL
	Other      int               `json:"other"`       // number of dimensions of OTHER
	Mean       float64           `json:"mean_cosine"` // mean cosine of matched dimensions
	Above      float64           `json:"above_0.9"`   // share of matched dimensions with a cosine above 0.9
	Matches    []interpret.Match `json:"matches"`     // match of each dimension of MODEL
	Lowest     []labelledMatch   `json:"lowest"`      // matches with the lowest cosines
}

type labelledMatch struct {
	Dimension int `json:"dimension"` // a dimension of MODEL
	interpret.Match
	Label      string `json:"label"`
	OtherLabel string `json:"other_label"`
}

func compareModels(cmd *cobra.Command, path, otherPath string, dimensions int) error {
	if !model.Is(otherPath) {
		return usagef("%q is not a model; compare accepts two models, or a model and at least two words", otherPath)
	}
	if err := refuseFlags(cmd, "is for dense vectors, and these are models", "skip-bad"); err != nil {
		return err
	}
	first, x, labels, err := loadNamed(cmd, path)
	if err != nil {
		return err
	}
	x.Label(interpret.Pole{}) // computes the words of labels, so that the check of the other model's memory counts them
	second, otherX, otherLabels, err := loadNamed(cmd, otherPath)
	if err != nil {
		return err
	}
	a, b := first.Dictionary, second.Dictionary
	if a.Dim != b.Dim {
		return usagef("atoms of %s have %d numbers and atoms of %s %d; the models are of different spaces", path, a.Dim, otherPath, b.Dim)
	}
	matches, err := interpret.MatchAtoms(cmd.Context(), a.Atoms, b.Atoms, a.Dim)
	if err != nil {
		return err
	}
	r := modelMatch{Dimensions: a.Len(), Other: b.Len(), Matches: matches, Lowest: []labelledMatch{}}
	var order []int
	for k, m := range matches {
		if m.Dimension < 0 {
			continue
		}
		order = append(order, k)
		r.Mean += m.Cosine
		if m.Cosine > 0.9 {
			r.Above++
		}
	}
	if n := float64(len(order)); n > 0 {
		r.Mean, r.Above = r.Mean/n, r.Above/n
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(matches[i].Cosine, matches[j].Cosine) })
	if dimensions > 0 {
		order = order[:min(dimensions, len(order))]
	}
	for _, k := range order {
		m := matches[k]
		pole := interpret.Pole{Dimension: k}
		if poles := x.Poles(k); len(poles) > 0 {
			pole = poles[0]
		}
		other := interpret.Pole{Dimension: m.Dimension, Negative: pole.Negative != (m.Cosine < 0)}
		r.Lowest = append(r.Lowest, labelledMatch{k, m, labels.Name(x, pole), otherLabels.Name(otherX, other)})
	}
	return show(cmd, r, func(b *strings.Builder) {
		fmt.Fprintf(b, "%d dimensions of %s, %d of %s\n", r.Dimensions, printing.Text(path), r.Other, printing.Text(otherPath))
		fmt.Fprintf(b, "  mean cosine  %.3f\n  above 0.9    %.1f %%\n", r.Mean, 100*r.Above)
		if len(r.Lowest) == 0 {
			return
		}
		rows := printing.Table{{"dimension", "label", "other", "cosine", "its label"}}
		for _, m := range r.Lowest {
			rows = append(rows, []string{strconv.Itoa(m.Dimension), m.Label, strconv.Itoa(m.Match.Dimension), fmt.Sprintf("%.3f", m.Cosine), m.OtherLabel})
		}
		b.WriteString("lowest cosines:\n" + rows.Text("rlrrl"))
	})
}
