package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/train"
)

// modelFlags are the flags that state the objective of the recipe paper; train and graph share
// them.
type modelFlags struct {
	model.Paper
}

func (f *modelFlags) register(cmd *cobra.Command) {
	f.Paper = train.Paper()
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar((*string)(&f.Method), "method", string(f.Method), "A, or B for nonnegative codes")
	flags.Float64Var(&f.Lambda, "lambda", f.Lambda, "weight λ of the codes' Σ|a|: larger is sparser")
	flags.Float64Var(&f.Tau, "tau", f.Tau, "weight τ of the dictionary's ‖D‖²")
	flags.Float64Var(&f.Rate, "rate", f.Rate, "learning rate η of AdaGrad")
	flags.StringVar(&f.Loss, "loss", f.Loss, "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&f.HuberDelta, "huber-delta", f.HuberDelta, "|r| where --loss huber turns linear")
}

// check refuses values outside their domain, naming the flag.
func (f *modelFlags) check(cmd *cobra.Command) error {
	if (f.Loss == model.Huber) != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	if err := cmp.Or(backend.CheckLoss(f.Paper), f.Paper.Validate()); err != nil {
		return usagef("--%w", err)
	}
	return nil
}
