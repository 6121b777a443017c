package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newSearch() *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "search MODEL QUERY...",
		Short: "Find texts, or words, that have something in them",
		Long: `Search prints the rows whose text, or word, has all words of the query in it, without
regard to case: first those in which it stands as a whole. A line has the number of
the row, from 0, its id and its text. Other commands take the id for a word, or a
query that is in one text only, or "row 17".

` + aboutInput,
		Example: `  overcomplete search model rain
  overcomplete search model "a triumph of" --most 50
  overcomplete explain model sst-train-17`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--most", most}); err != nil {
				return err
			}
			x, err := loadIndex(cmd, args[0])
			if err != nil {
				return err
			}
			query := strings.Join(args[1:], " ")
			rows, total := x.Search(query, most)
			if total == 0 {
				return usagef("%.100q is in none of the %d rows", query, x.Codes.Rows)
			}
			type row struct {
				Row int `json:"row"`
				item
			}
			found := []row{}
			for _, i := range rows {
				found = append(found, row{i, newItem(x, i)})
			}
			return show(cmd, struct {
				Total int   `json:"total"`
				Rows  []row `json:"rows"`
			}{total, found}, func(b *strings.Builder) {
				for _, r := range found {
					fmt.Fprintf(b, "%8d  %v\n", r.Row, r.item)
				}
				if total > len(found) {
					fmt.Fprintf(b, "and %d more\n", total-len(found))
				}
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&most, "most", "n", 20, "rows to print at most")
	addSkipBad(cmd)
	addJSON(cmd, "print the rows with their whole texts as JSON")
	return cmd
}

// shownText is how many characters of a text are shown in a list.
const shownText = 100
