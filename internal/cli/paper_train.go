package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/kernels"
	"overcomplete/model"
)

func newPaperTrain() *cobra.Command {
	f := trainFlags{passes: 2}
	var objective objectiveFlags
	h := &objective.Paper
	cmd := &cobra.Command{
		Use:   "train VECTORS -o MODEL",
		Short: "Learn codes and dictionary by the paper's objective and trainer",
		Long: `Train minimises the paper's objective as the paper does: AdaGrad for the dictionary,
regularised dual averaging for the codes. It reads and writes the same files as
"overcomplete train", which learns better codes in less time.

With --sparsity or --nonzeros it searches for the λ that gives this sparsity, to half
a point, in at most six trainings.`,
		Example: `  overcomplete paper train glove.6B.300d.txt.gz -o model --lambda 1
  overcomplete paper train glove.6B.300d.txt.gz -o model --method B --sparsity 0.92`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	f.registerOutput(cmd)
	objective.registerObjective(cmd)
	f.registerCommon(cmd, &h.Common, "(default 10 times the dense ones)", "(default as λ gives): searches for the λ",
		"(default 20 for method A, 30 for B)")
	flags.StringVar((*string)(&h.Method), "method", string(h.Method), "A, or B for nonnegative codes")
	flags.StringVar((*string)(&h.Init), "init", string(h.Init), "initialise the dictionary from random numbers (random) or from words that are far apart (words)")
	flags.BoolVar(&h.Center, "center", false, "subtract the mean of the frequent words first")
	flags.StringVar((*string)(&h.Stop), "stop", string(h.Stop), "stop after --epochs (epochs), or by the rule of the authors' program (authors)")
	flags.StringVar((*string)(&h.Algorithm), "algorithm", string(h.Algorithm), "minibatch, or that of the authors' program, word by word and slow (authors)")
	flags.StringVar((*string)(&h.State), "state", string(h.State), "storage of sums of gradients: float32, 8 bytes per word and dimension, or float16, half of it, rounded")
	f.registerRest(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		changed := flags.Changed
		searches := changed("sparsity") || changed("nonzeros")
		if err := objective.check(cmd); err != nil {
			return err
		}
		switch {
		case searches && changed("lambda"):
			return usagef("give --lambda, or --sparsity or --nonzeros, which search for a λ, not both")
		case searches && (changed("checkpoint") || f.resume):
			return usagef("--sparsity and --nonzeros make several trainings, which have no checkpoints; give --lambda")
		case changed("stop") && changed("epochs"):
			return usagef("give --epochs or --stop, not both")
		case h.Algorithm == model.Authors && changed("dictionary-steps"):
			return usagef("--dictionary-steps has no meaning with --algorithm authors, which takes one step a word")
		}
		if err := f.check(cmd, *h, kernels.Supports(*h)); err != nil {
			return err
		}
		return f.train(cmd, args[0], *h)
	}
	return cmd
}
