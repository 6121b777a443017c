package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"overcomplete/model"
)

func methodFlag(p *model.Method, value model.Method) *choice[model.Method] {
	return oneOf(p, value, string(model.Signed), string(model.Nonnegative))
}

// registerObjective adds the flags of the paper's objective, which "paper train" and "graph" share.
func registerObjective(cmd *cobra.Command, h *model.Paper) {
	flags := cmd.Flags()
	flags.Float64Var(&h.Lambda, "lambda", h.Lambda, "weight λ of Σ|a|: larger is sparser")
	flags.Float64Var(&h.Tau, "tau", h.Tau, "weight τ of ‖D‖²")
	flags.Float64Var(&h.Rate, "rate", h.Rate, "learning rate η of AdaGrad")
	flags.Var(oneOf(&h.Loss, h.Loss, model.Squared, model.Huber), "loss", "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&h.HuberDelta, "huber-delta", h.HuberDelta, "|r| where --loss huber turns linear")
}

// checkObjective refuses values outside their domain and names the flag.
func checkObjective(cmd *cobra.Command, h model.Paper) error {
	if (h.Loss == model.Huber) != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	return withFlag(h.Validate())
}

// withFlag returns err. If a hyperparameter is outside its domain, the error is a [usageError] that names the flag.
func withFlag(err error) error {
	if e, ok := errors.AsType[*model.InvalidError](err); ok {
		return usagef("--%w", e)
	}
	return err
}
