package cli

import (
	"math"

	"github.com/spf13/cobra"

	"overcomplete/graph"
	"overcomplete/model"
)

// modelFlags are the flags that state the objective; train and graph share them.
type modelFlags struct {
	model.Hyperparameters
}

func (f *modelFlags) register(cmd *cobra.Command) {
	f.Hyperparameters = model.Defaults()
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Method, "method", f.Method, "A, or B for nonnegative codes")
	flags.Float64Var(&f.Lambda, "lambda", f.Lambda, "weight λ of the codes' Σ|a|: larger is sparser")
	flags.Float64Var(&f.Tau, "tau", f.Tau, "weight τ of the dictionary's ‖D‖²")
	flags.Float64Var(&f.Rate, "rate", f.Rate, "learning rate η of AdaGrad")
	flags.StringVar(&f.Loss, "loss", f.Loss, "loss of a residual r: squared, or huber (r² up to --huber-delta, linear beyond)")
	flags.Float64Var(&f.HuberDelta, "huber-delta", f.HuberDelta, "|r| where --loss huber turns linear")
}

// check refuses values outside their domain, naming the flag.
func (f *modelFlags) check(cmd *cobra.Command) error {
	if f.Method != "A" && f.Method != "B" {
		return usagef("--method is %q, want A or B", f.Method)
	}
	if f.Loss != "squared" && f.Loss != "huber" {
		return usagef("--loss is %q, want squared or huber", f.Loss)
	}
	if (f.Loss == "huber") != cmd.Flags().Changed("huber-delta") {
		return usagef("--loss huber and --huber-delta go together")
	}
	for _, v := range []struct {
		flag     string
		value    float64
		positive bool
	}{
		{"lambda", f.Lambda, false}, {"tau", f.Tau, false}, {"rate", f.Rate, true}, {"huber-delta", f.HuberDelta, f.Loss == "huber"},
	} {
		switch {
		case v.positive && !(v.value > 0) || math.IsInf(v.value, 0):
			return usagef("--%s is %v, want a positive number", v.flag, v.value)
		case !(v.value >= 0):
			return usagef("--%s is %v, want 0 or more", v.flag, v.value)
		}
		if single := float32(v.value); v.value != 0 && single == 0 || math.IsInf(float64(single), 0) {
			return usagef("--%s is %v, which is %v in single precision, that of training", v.flag, v.value, single)
		}
	}
	return nil
}

// spec states the model for vectors of length dim.
func (f *modelFlags) spec(dim int) graph.Spec {
	s := graph.Spec{
		Atoms: f.Atoms, Dim: dim,
		Lambda: f.Lambda, Tau: f.Tau, Rate: f.Rate,
		Loss: graph.Squared, Nonnegative: f.Method == "B",
	}
	if f.Loss == "huber" {
		s.Loss = graph.Huber(f.HuberDelta)
	}
	return s
}
