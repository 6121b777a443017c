package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/table"
	"overcomplete/interpret"
)

func newCompare() *cobra.Command {
	var dimensions int
	cmd := &cobra.Command{
		Use:   "compare MODEL WORD WORD...",
		Short: "Show why words are alike, and what tells them apart",
		Long: `Compare shows the cosine of words and which dimensions it is made of: with a and b for
the codes of two words, divided by their norms, dimension k has the part a_k·b_k in
their cosine, and (a_k − b_k)²/2 in what is left of 1. So parts add up to the number
above them. Beside each part are its percentage of that number, the dimension, and a_k
and b_k. Of more than two words, cosine and parts are means over all pairs.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete compare model bank river
  overcomplete compare model bank river money --dimensions 5 --json`,
		Args: cobra.MinimumNArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(0, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			var rows []int
			c := comparison{Words: []string{}, Pairs: []pair{}}
			for _, word := range args[1:] {
				row, err := findWord(x, word)
				if err != nil {
					return err
				}
				rows = append(rows, row)
				c.Words = append(c.Words, x.Codes.Words[row])
				if x.Codes.Texts != nil {
					c.Texts = append(c.Texts, x.Codes.Texts.Text[row])
				}
			}
			for j := range rows {
				for i := range j {
					c.Pairs = append(c.Pairs, pair{c.Words[i], c.Words[j], x.Compare([]int{rows[i], rows[j]}).Cosine})
				}
			}
			all := x.Compare(rows)
			c.Shared = newRanking(x, labels, all.Cosine, all.Shared, dimensions)
			c.Apart = newRanking(x, labels, 1-all.Cosine, all.Apart, dimensions)
			return show(cmd, c, c.print)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&dimensions, "dimensions", 10, "most dimensions of each list, 0 for all")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

type comparison struct {
	Words  []string `json:"words"`
	Texts  []string `json:"texts,omitempty"` // if words are their ids
	Pairs  []pair   `json:"pairs"`
	Shared ranking  `json:"shared"`
	Apart  ranking  `json:"apart"`
}

type pair struct {
	First  string  `json:"first"`
	Second string  `json:"second"`
	Cosine float64 `json:"cosine"`
}

// A ranking is a number and the dimensions that it is made of: it is the sum of their
// parts and of Rest.
type ranking struct {
	Sum        float64        `json:"sum"`
	Dimensions []contribution `json:"dimensions"`
	Others     int            `json:"others"` // dimensions that are left out
	Rest       float64        `json:"rest"`   // their parts
}

type contribution struct {
	Label string `json:"label"`
	interpret.Contribution
}

// newRanking takes as many of the largest parts as most says, or all if that is 0.
func newRanking(x *interpret.Index, labels interpret.Labels, sum float64, parts []interpret.Contribution, most int) ranking {
	r := ranking{Sum: sum, Dimensions: []contribution{}}
	for i, p := range parts {
		if most > 0 && i >= most {
			r.Others++
			r.Rest += p.Part
			continue
		}
		strongest := 0.0 // of the sides that the words are on, the label is that of the strongest
		for _, v := range p.Values {
			if max(v, -v) > max(strongest, -strongest) {
				strongest = v
			}
		}
		r.Dimensions = append(r.Dimensions, contribution{labels.Of(x, p.Dimension, strongest < 0), p})
	}
	return r
}

// share is a part in percent of the sum.
func (r ranking) share(part float64) float64 {
	if r.Sum == 0 {
		return 0
	}
	return 100 * part / r.Sum
}

func (c comparison) print(b *strings.Builder) {
	for i, text := range c.Texts {
		fmt.Fprintf(b, "%v\n", item{c.Words[i], &text})
	}
	for _, p := range c.Pairs {
		fmt.Fprintf(b, "%s, %s: cosine %.3f\n", escape.Word(p.First), escape.Word(p.Second), p.Cosine)
	}
	mean := ""
	if len(c.Pairs) > 1 {
		mean = ", the mean"
	}
	fmt.Fprintf(b, "\nwhat they share: %.3f%s\n", c.Shared.Sum, mean)
	c.table(b, c.Shared)
	fmt.Fprintf(b, "\nwhat tells them apart: %.3f%s\n", c.Apart.Sum, mean)
	c.table(b, c.Apart)
}

func (c comparison) table(b *strings.Builder, r ranking) {
	rows := table.Table{{"part", "%", "dimension", "label"}}
	for i := range c.Words {
		rows[0] = append(rows[0], wordList(c.Words[i:i+1], ""))
	}
	add := func(part float64, cells ...string) {
		rows = append(rows, append([]string{fmt.Sprintf("%7.4f", part), fmt.Sprintf("%4.1f", r.share(part))}, cells...))
	}
	for _, d := range r.Dimensions {
		cells := []string{strconv.Itoa(d.Dimension), d.Label}
		for _, v := range d.Values {
			cells = append(cells, fmt.Sprintf("%.3f", v))
		}
		add(d.Part, cells...)
	}
	if r.Others > 0 {
		add(r.Rest, fmt.Sprintf("and %d others", r.Others))
	}
	b.WriteString(rows.Text("rrrlr", nil))
}
