package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"gorgonia.org/tensor"

	"overcomplete/graph"
	"overcomplete/train"
)

// trainingSteps are the graphs that can be looked at.
var trainingSteps = []struct {
	name  string
	build graph.Build
}{
	{"dictionary", graph.Dictionary},
	{"code", graph.Code},
	{"authors", graph.Authors},
}

func newGraph() *cobra.Command {
	var f modelFlags
	var dot string
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Show the training step: its expression graph and what is run for it",
		Long: `Graph prints the programs that training runs. Each is made from a Gorgonia
expression graph of the loss and its gradients, simplified and fused into a few
steps. Sizes in the listing: n words of a batch, K sparse dimensions, L dense ones.`,
		Example: `  overcomplete graph --method B --loss huber --huber-delta 0.3
  overcomplete graph --dot code | dot -Tsvg > code.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if dot != "" {
				return writeDOT(cmd, f, dot)
			}
			return listPrograms(cmd, f)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&dot, "dot", "", "print the expression graph of a `step` (dictionary, code or authors) for Graphviz instead")
	return cmd
}

// The listing does not depend on the sizes, and a picture needs only small ones.
const exampleAtoms, exampleDim, exampleWords = 5, 3, 4

func (f *modelFlags) exampleSpec() graph.Spec {
	h := f.Hyperparameters
	h.Atoms = exampleAtoms
	return train.Problem{Dim: exampleDim, Hyperparameters: h}.Spec()
}

func listPrograms(cmd *cobra.Command, f modelFlags) error {
	for i, step := range trainingSteps {
		expr, err := step.build(f.exampleSpec(), exampleWords, tensor.Float32)
		if err != nil {
			return err
		}
		p, err := graph.Compile(step.build, f.exampleSpec())
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d nodes, fused into\n%v", len(expr.Graph.AllNodes()), p)
	}
	return nil
}

func writeDOT(cmd *cobra.Command, f modelFlags, name string) error {
	for _, step := range trainingSteps {
		if step.name != name {
			continue
		}
		expr, err := step.build(f.exampleSpec(), exampleWords, tensor.Float32)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), expr.Graph.ToDot())
		return err
	}
	return usagef("--dot is %q, want dictionary, code or authors", name)
}
