package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"overcomplete/model"
	"overcomplete/train"
)

// methodFlag returns the value of --method.
func methodFlag(p *model.Method, value model.Method) *choice[model.Method] {
	return oneOf(p, value, string(model.Signed), string(model.Nonnegative))
}

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
	flags.Var(oneOf(&f.Loss, f.Loss, model.Squared, model.Huber), "loss", "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&f.HuberDelta, "huber-delta", f.HuberDelta, "|r| where --loss huber turns linear")
}

// check refuses values outside their domain and names the flag.
func (f *objectiveFlags) check(cmd *cobra.Command) error {
	if (f.Loss == model.Huber) != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	return withFlag(f.Paper.Validate())
}

// withFlag returns err. If a hyperparameter is outside its domain, the error is a [usageError] that names its flag.
func withFlag(err error) error {
	if e, ok := errors.AsType[*model.InvalidError](err); ok {
		return usagef("--%w", e)
	}
	return err
}
