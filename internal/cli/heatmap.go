package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/lab/heatmap"
	"overcomplete/interpret"
)

func newHeatmap() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "heatmap MODEL WORD,WORD... [WORD,WORD...] -o FILE",
		Short: "Draw the values of groups of words, and count what they share",
		Long: `Heatmap draws a picture of words × dimensions, .png or .svg: negative values are red,
zeros white, positive values blue. A group is words with commas between; what is a
word as it stands, such as 1,000, is a group of that word. Among others, quote a word
that has a comma: '"1,000",million'. Dimensions are in the
order of their mean over the first group (the paper's figure); those that none of the
words uses are left out.

It prints how many dimensions the words of each group have in common, all of them
being nonzero there, and so all words of all groups.

` + aboutInput,
		Example: "  overcomplete heatmap model fish,horse,dog chicago,seattle,boston -o animals.png",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			format := strings.ToLower(strings.TrimPrefix(filepath.Ext(output), "."))
			if format != "png" && format != "svg" {
				return usagef("-o is %q, want a name that ends in .png or .svg", output)
			}
			x, err := loadIndex(cmd, args[0])
			if err != nil {
				return err
			}
			var groups [][]int
			overlap := overlaps{Dimensions: x.Codes.Cols}
			for _, arg := range args[1:] {
				var group []int
				for _, word := range splitGroup(x, arg) {
					row, err := findWord(x, word)
					if err != nil {
						return err
					}
					group = append(group, row)
				}
				groups = append(groups, group)
				overlap.add(x, group)
			}
			if len(groups) > 1 {
				overlap.add(x, slices.Concat(groups...))
			}
			return writeFiles(cmd, []string{output}, func(files []io.Writer) error {
				if err := heatmap.New(x, groups).Write(cmd.Context(), files[0], format); err != nil {
					return err
				}
				return show(cmd, overlap, overlap.print)
			})
		},
	}
	addOutput(cmd, &output, "picture to write, a `file` that ends in .png or .svg", "a file that exists")
	addSkipBad(cmd)
	addJSON(cmd, "print the counts as JSON")
	return cmd
}

// splitGroup returns the words of a group: the argument itself if that is a word, or else
// what is between its commas, or its quoted fields if that are no words.
func splitGroup(x *interpret.Index, arg string) []string {
	if _, ok := x.Row(arg); ok {
		return []string{arg}
	}
	words := strings.Split(arg, ",")
	for _, word := range words {
		if _, ok := x.Row(word); !ok {
			if quoted, err := csv.NewReader(strings.NewReader(arg)).Read(); err == nil {
				return quoted
			}
		}
	}
	return words
}

// overlaps are numbers of dimensions in use, of each group and then of all words.
type overlaps struct {
	Dimensions int       `json:"dimensions"` // K
	Groups     []overlap `json:"groups"`
}

type overlap struct {
	Words  []string `json:"words"`
	Active []int    `json:"active"` // dimensions of each word
	Common int      `json:"common"` // dimensions of all of them
}

func (o *overlaps) add(x *interpret.Index, rows []int) {
	g := overlap{Common: interpret.Common(x.Codes, rows)}
	for _, i := range rows {
		g.Words = append(g.Words, x.Codes.Words[i])
		g.Active = append(g.Active, len(x.Active(i)))
	}
	o.Groups = append(o.Groups, g)
}

func (o *overlaps) print(b *strings.Builder) {
	fmt.Fprintf(b, "dimensions in common, of %d\n", o.Dimensions)
	for _, g := range o.Groups {
		var words []string
		for i, word := range g.Words {
			words = append(words, fmt.Sprintf("%s (%d)", escape.Word(word), g.Active[i]))
		}
		fmt.Fprintf(b, "%5d  %s\n", g.Common, strings.Join(words, ", "))
	}
}
