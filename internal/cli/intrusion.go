package cli

import (
	"cmp"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/lab/intrusion"
	"overcomplete/internal/table"
)

func newIntrusion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "intrusion",
		Short: "Test by word intrusion whether dimensions are interpretable",
		Long: `Intrusion is the paper's test of the meaning of dimensions (§4.1): four of five words have
the largest values in a dimension, the fifth does not. If the dimension means something,
people find this intruder. Make and score test with people, auto without.`,
		Example: `  overcomplete intrusion make X=glove.txt A=model -o test.tsv
  overcomplete intrusion score test.key.json ann.tsv ben.tsv
  overcomplete intrusion auto model --input glove.txt --reference other.txt`,
	}
	cmd.AddCommand(newIntrusionMake(), newIntrusionScore(), newIntrusionAuto())
	return cmd
}

func newIntrusionMake() *cobra.Command {
	var output string
	var dimensions int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "make CONDITION=MODEL... -o TEST.tsv",
		Short: "Make a test for people, and its key",
		Long: `Make draws the questions of a word intrusion test, one for each of the dimensions of the
highest variance of each MODEL. Four words have the largest values there; the intruder is
from the bottom half of the dimension and from the top tenth of another one. The questions
of all conditions are mixed. A condition can have several models. It writes

  TEST.tsv        the questions, to be answered in the last column with 1 to 5
  TEST.html       the same as a page, which saves the answers to a TSV file
  TEST.key.json   the key, which judges must not see

` + aboutInput,
		Example: `  overcomplete intrusion make X=glove.txt A=model -o test.tsv
  overcomplete intrusion make X=glove.txt X=sg.bin A=glove.model A=sg.model -o test.tsv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, ok := strings.CutSuffix(output, ".tsv")
			if !ok {
				return usagef("-o is %q, want a name that ends in .tsv", output)
			}
			rng := rand.New(rand.NewPCG(seed, 0))
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
					return usagef("%s: too few dimensions have four words of positive value and an intruder (got %d, want %d); set --dimensions %[2]d", path, len(drawn), dimensions)
				}
				questions = append(questions, drawn...)
			}
			rng.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
			sheet := intrusion.NewSheet(questions)
			return writeFiles(cmd, []string{output, name + ".html", name + ".key.json"}, func(files []io.Writer) error {
				return cmp.Or(sheet.WriteTSV(files[0]), sheet.WriteHTML(files[1]), sheet.WriteKey(files[2]))
			})
		},
	}
	flags := cmd.Flags()
	addOutput(cmd, &output, "`file` to write the questions to, a name that ends in .tsv", "files that exist")
	flags.IntVarP(&dimensions, "dimensions", "n", 25, "dimensions of each model")
	flags.Uint64Var(&seed, "seed", 1, "seed of intruders and order")
	addSkipBad(cmd)
	return cmd
}

func newIntrusionScore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "score TEST.key.json ANSWERS.tsv...",
		Short: "Print the accuracy and agreement of judges",
		Long: `Score prints the percentage of right answers for each condition. Each judge has a file of
answers. Agreement is the percentage of pairs of judges who are both right or both wrong,
averaged over questions that two judges answered. Fleiss' kappa corrects it for chance: 1
is full agreement, 0 is chance.`,
		Example: "  overcomplete intrusion score test.key.json ann.tsv ben.tsv",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			scores, err := input.Wait(cmd.Context(), func() ([]intrusion.Score, error) {
				key, err := intrusion.ReadKey(args[0])
				if err != nil {
					return nil, err
				}
				var answers [][]int
				for _, path := range args[1:] {
					judge, err := key.ReadAnswers(path)
					if err != nil {
						return nil, err
					}
					answers = append(answers, judge)
				}
				return key.Score(answers), nil
			})
			if err != nil {
				return usageError{err}
			}
			return show(cmd, scores, func(b *strings.Builder) {
				rows := table.Table{{"condition", "questions", "accuracy", "agreement", "kappa"}}
				for _, s := range scores {
					rows = append(rows, []string{escape.Word(s.Condition), strconv.Itoa(s.Questions),
						(100 * s.Accuracy).Text("%.1f"), (100 * s.Agreement).Text("%.1f"), s.Kappa.Text("%.2f")})
				}
				b.WriteString(rows.Text("lr"))
			})
		},
	}
	addJSON(cmd, "print the same as JSON")
	return cmd
}
