package cli

import (
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/input"
	"overcomplete/internal/printing"
	"overcomplete/lab/intrusion"
)

func newIntrusionMake() *cobra.Command {
	var output string
	var dimensions int
	cmd := &cobra.Command{
		Use:   "make CONDITION=MODEL... -o TEST.tsv",
		Short: "Make a test for judges, with its key",
		Long: `Make draws the questions of a word intrusion test, one for each of the dimensions of the
highest variance of each MODEL. Four words have the largest values there; the intruder is
from the bottom half of the dimension and from the top tenth of another one. The questions
of all conditions are mixed. A condition can have several models. It writes

  TEST.tsv        the questions, to be answered in the last column with 1 to 5
  TEST.key.json   the key, which judges must not see

` + aboutInput,
		Example: "  overcomplete intrusion make X=glove.txt X=sg.bin A=glove.model A=sg.model -o test.tsv",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, isTSV := strings.CutSuffix(output, ".tsv")
			if !isTSV {
				return usagef("-o is %q, want a name that ends in .tsv", output)
			}
			rng := rand.New(rand.NewPCG(1, 0))
			var questions []intrusion.Question
			for _, arg := range args {
				condition, path, ok := strings.Cut(arg, "=")
				if !ok || condition == "" {
					return usagef("%.100q: want CONDITION=MODEL, such as A=%.100s", arg, strings.TrimPrefix(arg, "="))
				}
				x, err := loadIndex(cmd, path)
				if err != nil {
					return err
				}
				drawn := intrusion.Draw(x, dimensions, condition, rng)
				if len(drawn) < dimensions {
					return usagef("%s: too few dimensions have four words of positive value and an intruder (got %d, want --dimensions %d)", path, len(drawn), dimensions)
				}
				questions = append(questions, drawn...)
			}
			rng.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
			return writeFile(cmd, output, func(tsv io.Writer) error {
				return writeFile(cmd, name+".key.json", func(key io.Writer) error { return intrusion.NewSheet(questions).Write(tsv, key) })
			})
		},
	}
	addOutput(cmd, &output, "`file` to write the questions to, a name that ends in .tsv", "files that exist")
	cmd.Flags().VarP(count(&dimensions, 25), "dimensions", "n", "dimensions of each model")
	addSkipBad(cmd)
	return cmd
}

func newIntrusionScore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "score TEST.key.json ANSWERS.tsv...",
		Short: "Print the accuracy and agreement of judges",
		Long: `Score prints the percentage of right answers for each condition, and the agreement of
judges: the percentage of pairs who are both right or both wrong, averaged over questions.
Fleiss' kappa corrects it for chance: 1 is full agreement, 0 is chance.`,
		Example: "  overcomplete intrusion score test.key.json ann.tsv ben.tsv",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseRepeated("file", args); err != nil {
				return err
			}
			scores, err := input.Wait(cmd.Context(), func() ([]intrusion.Score, error) { return intrusion.ScoreFiles(args[0], args[1:]...) })
			if err != nil {
				return usageError{err}
			}
			return show(cmd, scores, func(b *strings.Builder) {
				rows := printing.Table{{"condition", "questions", "accuracy", "agreement", "kappa"}}
				for _, s := range scores {
					rows = append(rows, []string{printing.Word(s.Condition), strconv.Itoa(s.Questions),
						(100 * s.Accuracy).Text("%.1f"), (100 * s.Agreement).Text("%.1f"), s.Kappa.Text("%.2f")})
				}
				b.WriteString(rows.Text("lr"))
			})
		},
	}
	addJSON(cmd, "print the same as JSON")
	return cmd
}
