package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/kernels"
	"overcomplete/train"
)

func newPaperTrain() *cobra.Command {
	f := trainFlags{passes: 2}
	h := train.Paper()
	cmd := &cobra.Command{
		Use:   "train VECTORS... -o MODEL",
		Short: "Learn codes and dictionary by the paper's objective and trainer",
		Long: `Train minimises the paper's objective with the paper's trainer: AdaGrad for the
dictionary, regularised dual averaging for the codes. It reads and writes the same files
as "overcomplete train", whose dimensions are easier to read.`,
		Example: `  overcomplete paper train glove.6B.300d.txt.gz -o model --lambda 1
  overcomplete paper train glove.6B.300d.txt.gz -o model --method B --lambda 0.5`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	f.registerOutput(cmd)
	registerObjective(cmd, &h)
	f.registerCommon(cmd, &h.Common, "(default 10·L)", "(default 20; 30 for method B)")
	flags.Var(methodFlag(&h.Method, h.Method), "method", "A, or B for nonnegative codes")
	flags.BoolVar(&h.FromRows, "from-rows", false, "initialise the dictionary from rows that are far apart, instead of random numbers")
	flags.BoolVar(&h.Center, "center", false, "subtract the mean of the frequent words")
	flags.BoolVar(&h.AuthorsStop, "authors-stop", false, "stop by the rule of the authors' program, instead of after --epochs")
	flags.BoolVar(&h.AuthorsOrder, "authors-order", false, "update word by word as the authors' program, which is slow")
	excludes(cmd, "authors-stop", "epochs")
	excludes(cmd, "authors-order", "dictionary-steps")
	f.registerRest(cmd)
	f.registerPrecision(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkObjective(cmd, h); err != nil {
			return err
		}
		if err := f.check(cmd, h, kernels.Supports(h)); err != nil {
			return err
		}
		return f.train(cmd, args, h)
	}
	return cmd
}
