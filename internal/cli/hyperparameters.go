package cli

import (
	"errors"
	"math"

	"github.com/spf13/cobra"

	"overcomplete/model"
	"overcomplete/train"
	"overcomplete/vectors"
)

// objectiveFlags are the flags of the paper's objective, which "paper train" and "graph" share.
type objectiveFlags struct {
	model.Paper
}

func (f *objectiveFlags) registerObjective(cmd *cobra.Command) {
	f.Paper = train.Paper()
	flags := cmd.Flags()
	flags.Float64Var(&f.Lambda, "lambda", f.Lambda, "weight λ of Σ|a|: larger is sparser")
	flags.Float64Var(&f.Tau, "tau", f.Tau, "weight τ of ‖D‖²")
	flags.Float64Var(&f.Rate, "rate", f.Rate, "learning rate η of AdaGrad")
	flags.StringVar(&f.Loss, "loss", f.Loss, "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&f.HuberDelta, "huber-delta", f.HuberDelta, "|r| where --loss huber turns linear")
}

// check refuses values outside their domain and names the flag.
func (f *objectiveFlags) check(cmd *cobra.Command) error {
	if (f.Loss == model.Huber) != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	return withFlag(f.Paper.Validate())
}

// withFlag returns err, as a [usageError] that names the flag if a hyperparameter is outside its
// domain.
func withFlag(err error) error {
	if e, ok := errors.AsType[*model.InvalidError](err); ok {
		return usagef("--%w", e)
	}
	return err
}

// sizeFlags are the flags of K and of the nonzeros per row that depend on the vectors.
type sizeFlags struct {
	factor   int
	sparsity float64
}

// registerCommon adds the flags of the hyperparameters that all recipes have. The usages of
// --atoms, --sparsity and --epochs end with their defaults.
func (f *sizeFlags) registerCommon(cmd *cobra.Command, c *model.Common, atoms, sparsity, epochs string) {
	flags := cmd.Flags()
	flags.IntVarP(&c.Atoms, "atoms", "k", 0, "number of sparse dimensions K, of L dense ones "+atoms)
	flags.IntVar(&f.factor, "factor", 0, "K as a multiple of L, instead of -k")
	flags.Float64Var(&f.sparsity, "sparsity", 0, "`share` of zeros "+sparsity)
	flags.IntVar(&c.Nonzeros, "nonzeros", 0, "nonzeros per row, instead of --sparsity")
	flags.IntVar(&c.Epochs, "epochs", 0, "maximum of epochs "+epochs)
	flags.IntVar(&c.DictionarySteps, "dictionary-steps", c.DictionarySteps, "dictionary updates per epoch")
	flags.Uint64Var(&c.Seed, "seed", c.Seed, "random seed")
}

// check refuses values outside their domain.
func (f *sizeFlags) check(changed func(flag string) bool) error {
	switch most := math.MaxInt32 / vectors.MaxDim; {
	case f.factor > most:
		return usagef("--factor is %d, want 1 to %d", f.factor, most)
	case changed("sparsity") && !(f.sparsity > 0 && f.sparsity < 1):
		return usagef("--sparsity is %v, want a share of zeros between 0 and 1, such as 0.95", f.sparsity)
	case changed("nonzeros") && changed("sparsity"):
		return usagef("give --sparsity or --nonzeros, not both")
	case changed("atoms") && changed("factor"):
		return usagef("give -k or --factor, not both")
	}
	return nil
}
