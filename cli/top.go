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

func newTop() *cobra.Command {
	var words, dimensions int
	var order string
	cmd := &cobra.Command{
		Use:        "top MODEL [DIMENSION...]",
		SuggestFor: []string{"show", "inspect", "describe", "dimensions"},
		Short:      "Show dimensions by their top words",
		Long: `Top prints the words with the largest values in each of these dimensions, numbered
from 0, or in the dimensions of the highest variance over all words. If values are negative, the
most negative words have a line of their own, whose label has a minus. The pole with the
larger values comes first.

--sort intrusion begins with the dimensions of the highest word intrusion accuracy, which
"overcomplete intrusion auto --save" measured. --sort coherence requires no other vectors:
it is the mean cosine of the codes of the eight strongest words, without the dimension,
minus the mean cosine of any two words. 0 is chance. The better pole of a dimension counts.

` + aboutLabels + `

` + aboutInput,
		Example: `  overcomplete top model
  overcomplete top model --sort coherence --dimensions 20
  overcomplete top model 210 218 --words 20
  overcomplete top glove.6B.300d.txt.gz`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && (cmd.Flags().Changed("dimensions") || cmd.Flags().Changed("sort")) {
				return usagef("give dimensions, or --dimensions and --sort to choose them, not both")
			}
			if err := refuseRepeated("dimension", args[1:]); err != nil {
				return err
			}
			x, labels, err := loadLabelled(cmd, args[0])
			if err != nil {
				return err
			}
			chosen, err := parseDimensions(args[1:], args[0], x.Codes.Cols)
			if err != nil {
				return err
			}
			scores, err := poleScores(args[0], x, order)
			if err != nil {
				return err
			}
			variances := x.Variances()
			if len(chosen) == 0 {
				chosen = bestDimensions(scores, variances)
				chosen = chosen[:min(dimensions, len(chosen))]
			}
			top := []topDimension{}
			for _, k := range chosen {
				d := topDimension{Dimension: k, Variance: variances[k], Poles: []topPole{}}
				for _, p := range x.Poles(k) {
					pole := topPole{Label: labels.Name(x, p), Negative: p.Negative}
					if score, ok := scores[p]; ok {
						pole.Score = &score
					}
					described := x.Label(p)
					for _, e := range x.Top(p, words) {
						pole.Words = append(pole.Words, topWord{newItem(x, e.Row, described...), e.Value})
					}
					d.Poles = append(d.Poles, pole)
				}
				top = append(top, d)
			}
			return show(cmd, top, func(b *strings.Builder) { printTop(b, top, order, x.Codes.Texts != nil) })
		},
	}
	flags := cmd.Flags()
	flags.VarP(countFrom0(&words, 8), "words", "n", "words of each dimension")
	flags.Var(count(&dimensions, 5), "dimensions", "number of dimensions, if none are named")
	flags.Var(oneOf(&order, byVariance, byVariance, byIntrusion, byCoherence), "sort", "`order` of dimensions: variance, intrusion or coherence, largest first")
	addRare(cmd)
	addSkipBad(cmd)
	addJSON(cmd, "print the words with their values as JSON")
	return cmd
}

// Values of --sort.
const (
	byVariance  = "variance"
	byIntrusion = "intrusion"
	byCoherence = "coherence"
)

func parseDimensions(args []string, path string, n int) (dimensions []int, err error) {
	for _, arg := range args {
		k, err := strconv.Atoi(arg)
		if err != nil || k < 0 || k >= n {
			return nil, usagef("%.100q is not a dimension of %s, want 0 to %d", arg, path, n-1)
		}
		dimensions = append(dimensions, k)
	}
	return dimensions, nil
}

// poleScores maps poles to the score by which --sort orders them. Poles without a score are absent. If --sort is
// "variance", the map is nil.
func poleScores(path string, x *interpret.Index, order string) (map[interpret.Pole]float64, error) {
	switch order {
	case byIntrusion:
		if !model.Is(path) {
			return nil, usagef("%s: not a model, which stores scores of dimensions", path)
		}
		_, scores, err := readAccuracy(path, x.Codes.Cols)
		if err == nil && scores == nil {
			err = usagef(`%s has no scores: first run "overcomplete intrusion auto %s --input VECTORS --reference VECTORS --save"`, path, path)
		}
		return scores, err
	case byCoherence:
		scores := map[interpret.Pole]float64{}
		for k := range x.Codes.Cols {
			for _, p := range x.Poles(k) {
				if coherence := x.Coherence(p); !math.IsNaN(coherence) {
					scores[p] = coherence
				}
			}
		}
		return scores, nil
	}
	return nil, nil
}

// bestDimensions sorts dimensions by the score of their better pole, then by variance. Unless scores is nil, it omits
// dimensions without a score.
func bestDimensions(scores map[interpret.Pole]float64, variances []float64) []int {
	best := slices.Repeat([]float64{math.Inf(-1)}, len(variances))
	for p, score := range scores {
		best[p.Dimension] = max(best[p.Dimension], score)
	}
	var dimensions []int
	for k := range best {
		if scores == nil || !math.IsInf(best[k], -1) {
			dimensions = append(dimensions, k)
		}
	}
	slices.SortStableFunc(dimensions, func(a, b int) int {
		return cmp.Or(cmp.Compare(best[b], best[a]), cmp.Compare(variances[b], variances[a]))
	})
	return dimensions
}

type topDimension struct {
	Dimension int       `json:"dimension"`
	Variance  float64   `json:"variance"`
	Poles     []topPole `json:"poles"` // poles that have words, first the one with the larger values
}

type topPole struct {
	Label    string    `json:"label"`
	Negative bool      `json:"negative,omitempty"`
	Score    *float64  `json:"score,omitempty"` // score that --sort selects: word intrusion accuracy or coherence
	Words    []topWord `json:"words"`
}

type topWord struct {
	item
	Value float32 `json:"value"`
}

// printTop prints a line per pole, followed by its texts if rows are texts.
func printTop(b *strings.Builder, top []topDimension, order string, texts bool) {
	header, align := []string{"dimension", "variance"}, "rr"
	if order != byVariance {
		header, align = append(header, order), align+"r"
	}
	if texts {
		header = append(header, "label", "texts")
	} else {
		header = append(header, "label", "words")
	}
	rows := printing.Table{header}
	for _, d := range top {
		row := []string{strconv.Itoa(d.Dimension), fmt.Sprintf("%.2e", d.Variance)}
		if len(d.Poles) == 0 {
			rows = append(rows, row)
		}
		for _, p := range d.Poles {
			switch {
			case order == byVariance:
			case p.Score == nil:
				row = append(row, "")
			case order == byIntrusion:
				row = append(row, fmt.Sprintf("%.0f %%", 100**p.Score))
			default:
				row = append(row, fmt.Sprintf("%.2f", *p.Score))
			}
			words, items := p.list(texts)
			rows = append(append(rows, append(row, p.Label, words)), items...)
			row = []string{"", ""} // the line of the second pole repeats no columns of the dimension
		}
	}
	b.WriteString(rows.Text(align + "l"))
}

// list returns words on one line, or each text on its own line.
func (p topPole) list(texts bool) (words string, items [][]string) {
	var all []string
	for _, w := range p.Words {
		if texts {
			items = append(items, []string{fmt.Sprintf("%20.3g  %v", w.Value, w.item)})
		} else {
			all = append(all, w.Word)
		}
	}
	return wordList(all, " "), items
}
