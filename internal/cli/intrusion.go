package cli

import (
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/escape"
	"overcomplete/internal/input"
	"overcomplete/internal/lab/judge"
	"overcomplete/internal/table"
	"overcomplete/interpret"
)

func newIntrusion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "intrusion",
		Short: "Test by word intrusion whether dimensions mean something",
		Long: `Intrusion is the paper's test of what dimensions mean (§4.1): of five words, four have
the largest values in a dimension and one has not. If the dimension means something,
people find the intruder. With people: make a test, let them judge, score their
answers. Without: auto.`,
		Example: `  overcomplete intrusion make X=glove.txt A=model -o test.json
  overcomplete intrusion judge test.json -o answers.jsonl --judge ann
  overcomplete intrusion score test.key.json answers.jsonl`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("intrusion needs one of its commands: make, judge, score or auto; see %s --help", cmd.CommandPath())
		},
	}
	cmd.AddCommand(newIntrusionMake(), newIntrusionJudge(), newIntrusionScore(), newIntrusionAuto())
	return cmd
}

func newIntrusionMake() *cobra.Command {
	var output string
	var dimensions int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "make CONDITION=MODEL... -o TEST.json",
		Short: "Make a test for people, and its key",
		Long: `Make draws the questions of a word intrusion test: of each MODEL one for each of the
dimensions of the highest variance. Four words have the largest values there; the
intruder is from the bottom half of the words, by their values, and in the top tenth
of another dimension. The questions of all conditions are mixed. What condition and
dimension they come from, and the intruders, are in the key, TEST.key.json: do not
show it to judges.

A condition is what is compared with others; several models can be of the same one.
` + aboutInput,
		Example: `  overcomplete intrusion make X=glove.txt A=model -o test.json
  overcomplete intrusion make X=glove.txt X=sg.bin A=glove.model A=sg.model -o test.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--dimensions", dimensions}); err != nil {
				return err
			}
			if filepath.Ext(output) != ".json" {
				return usagef("-o is %q, want a name that ends in .json", output)
			}
			var questions []judge.Solution
			paths := []string{output, strings.TrimSuffix(output, ".json") + ".key.json"}
			err := writeFiles(cmd, paths, func(files []io.Writer) error {
				rng := rand.New(rand.NewPCG(seed, 0))
				for _, arg := range args {
					condition, path, ok := strings.Cut(arg, "=")
					if !ok || condition == "" {
						return usagef("%.100q is no CONDITION=MODEL, such as A=%.100s", arg, strings.TrimPrefix(arg, "="))
					}
					drawn, err := drawQuestions(cmd, condition, path, dimensions, rng)
					if err != nil {
						return err
					}
					questions = append(questions, drawn...)
				}
				rng.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
				key := judge.NewKey(questions, seed)
				for i, content := range []any{key.Test(), key} {
					if err := escape.JSON(files[i], content); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			say(cmd.ErrOrStderr(), "%s: %d questions", output, len(questions))
			return nil
		},
	}
	flags := cmd.Flags()
	addOutput(cmd, &output, "`file` to write the questions to, a name that ends in .json", "files that exist")
	flags.IntVarP(&dimensions, "dimensions", "n", 25, "dimensions of each model")
	flags.Uint64Var(&seed, "seed", 1, "seed of intruders and order")
	addSkipBad(cmd)
	return cmd
}

// drawQuestions draws a question for each of the n dimensions of the highest
// variance.
func drawQuestions(cmd *cobra.Command, condition, path string, n int, rng *rand.Rand) ([]judge.Solution, error) {
	x, err := loadIndex(cmd, path)
	if err != nil {
		return nil, err
	}
	t := interpret.NewIntrusion(x)
	live := t.Dimensions()
	if len(live) < n {
		return nil, usagef("%s: only %d dimensions have four words of positive value and an intruder; --dimensions %[2]d takes them all", path, len(live))
	}
	var questions []judge.Solution
	for _, k := range live[:n] {
		instance := t.Draw(k, rng)
		q := judge.Solution{Condition: condition, Source: filepath.Base(path), Dimension: k}
		for _, row := range instance.Rows {
			q.Words = append(q.Words, x.Codes.Words[row])
		}
		q.Intruder = q.Words[instance.Intruder]
		questions = append(questions, q)
	}
	return questions, nil
}

func newIntrusionScore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "score TEST.key.json ANSWERS...",
		Short: "Score the answers of a test",
		Long: `Score prints for each condition the percentage of right answers of each judge and
their mean. Of the shared questions, those that two judges or more have answered, it
prints the agreement, the percentage of pairs of judges who are both right or both
wrong, averaged over questions. Beside it, Fleiss' kappa is 0 if that is what chance
would give, by the answers to all questions, and 1 if all agree (the paper's table of
the word intrusion task, §4.1).

Of a judge's answers to the same question the first counts.`,
		Example: "  overcomplete intrusion score test.key.json answers.jsonl",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := input.Wait(cmd.Context(), func() (*judge.Key, error) { return judge.ReadKey(args[0]) })
			if err != nil {
				return usageError{err}
			}
			var answers []judge.Answer
			for _, path := range args[1:] {
				torn, err := input.Wait(cmd.Context(), func() (torn bool, err error) {
					more, torn, err := judge.ReadAnswers(path, key.Test())
					answers = append(answers, more...)
					return torn, err
				})
				if err != nil {
					return usageError{err}
				}
				if torn {
					warn(cmd.ErrOrStderr(), "%s: the last line was cut short and does not count", path)
				}
			}
			scores, repeated := key.Score(answers)
			if len(repeated) > 0 {
				warn(cmd.ErrOrStderr(), "%d answers do not count, such as %q's to question %d, for the judge had answered the question before",
					len(repeated), repeated[0].Judge, repeated[0].Number)
			}
			return show(cmd, scores, func(b *strings.Builder) { b.WriteString(scoreTable(scores).Text("lr", nil)) })
		},
	}
	addJSON(cmd, "print the same as JSON")
	return cmd
}

func scoreTable(scores []judge.Score) table.Table {
	rows := table.Table{{"condition", "questions"}}
	for _, a := range scores[0].Judges {
		rows[0] = append(rows[0], escape.Word(a.Judge))
	}
	rows[0] = append(rows[0], "mean", "shared", "agreement", "kappa")
	for _, s := range scores {
		row := []string{escape.Word(s.Condition), strconv.Itoa(s.Questions)}
		for _, a := range s.Judges {
			row = append(row, (100 * a.Share).Text("%.1f"))
		}
		rows = append(rows, append(row, (100*s.Accuracy).Text("%.1f"), strconv.Itoa(s.Shared),
			(100*s.Agreement).Text("%.1f"), s.Kappa.Text("%.2f")))
	}
	return rows
}
