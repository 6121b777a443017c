package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/table"
	"overcomplete/interpret"
)

func newMatch() *cobra.Command {
	var dimensions int
	cmd := &cobra.Command{
		Use:   "match MODEL OTHER",
		Short: "Show which dimensions of a model are in another one, too",
		Long: `Match pairs the dimensions of two models one to one, so that the cosines of their atoms
add up to the most that there is, and prints the mean of the cosines: 1 if each dimension
of the one is in the other, and what two unlike dictionaries have if none is. So it tells
whether dimensions are there again after a training with another seed, or with other
words. The models are of vectors of the same space, such as those of one file.

The dimensions that are listed are those of MODEL that have the least in common with
their match. ` + aboutLabels,
		Example: `  overcomplete match model retrained
  overcomplete match model retrained --dimensions 0 --json > matches.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(0, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			var sides [2]matchSide
			for i, path := range args {
				m, err := loadModel(cmd, path)
				if err != nil {
					return err
				}
				sides[i] = matchSide{atoms: m.Dictionary.Atoms, dim: m.Dictionary.Dim, index: newIndex(cmd, m)}
				if sides[i].labels, err = loadLabels(path, sides[i].index.Codes.Cols); err != nil {
					return err
				}
			}
			a, b := sides[0], sides[1]
			if a.dim != b.dim {
				return usagef("atoms of %s have %d numbers, and those of %s %d: they are of different spaces", args[0], a.dim, args[1], b.dim)
			}
			matches, err := interpret.MatchAtoms(cmd.Context(), a.atoms, b.atoms, a.dim)
			if err != nil {
				return err
			}
			report := newMatchReport(matches, a, b, dimensions)
			return show(cmd, report, func(b *strings.Builder) { report.print(b, args) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&dimensions, "dimensions", 10, "how many dimensions to list; JSON has the match of all")
	addRare(cmd)
	addJSON(cmd, "print the same, and the match of each dimension, as JSON")
	return cmd
}

// matchSide is one of the two models.
type matchSide struct {
	atoms  []float32
	dim    int
	index  *interpret.Index
	labels interpret.Labels
}

func (s matchSide) label(dimension int, negative bool) string {
	return s.labels.Of(s.index, dimension, negative)
}

type matchReport struct {
	Dimensions int               `json:"dimensions"`   // of MODEL
	Other      int               `json:"other"`        // of OTHER
	Mean       float64           `json:"mean_cosine"`  // of those that have a match
	Above      float64           `json:"above_0.9"`    // share of those
	Matches    []interpret.Match `json:"matches"`      // of each dimension of MODEL
	Least      []leastMatch      `json:"least_common"` // by cosine
}

type leastMatch struct {
	Dimension int `json:"dimension"` // of MODEL
	interpret.Match
	Label      string `json:"label"`
	OtherLabel string `json:"other_label"`
}

func newMatchReport(matches []interpret.Match, a, b matchSide, most int) matchReport {
	r := matchReport{Dimensions: len(matches), Other: len(b.atoms) / b.dim, Matches: matches, Least: []leastMatch{}}
	order := []int{}
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
	for _, k := range order[:min(most, len(order))] {
		negative := a.index.Stronger(k) // of the other, it is the side that is alike
		r.Least = append(r.Least, leastMatch{k, matches[k], a.label(k, negative), b.label(matches[k].Dimension, negative != (matches[k].Cosine < 0))})
	}
	return r
}

func (r matchReport) print(b *strings.Builder, names []string) {
	fmt.Fprintf(b, "%d dimensions of %s, %d of %s\n", r.Dimensions, escape.Text(names[0]), r.Other, escape.Text(names[1]))
	fmt.Fprintf(b, "  mean cosine  %.3f\n  above 0.9    %.1f %%\n", r.Mean, 100*r.Above)
	if len(r.Least) > 0 {
		rows := table.Table{{"dimension", "label", "other", "cosine", "its label"}}
		for _, m := range r.Least {
			rows = append(rows, []string{strconv.Itoa(m.Dimension), m.Label, strconv.Itoa(m.Match.Dimension), fmt.Sprintf("%.3f", m.Cosine), m.OtherLabel})
		}
		b.WriteString("least in common:\n" + rows.Text("rlrrl", nil))
	}
}
