package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"gorgonia.org/tensor"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// steps are the graphs that can be looked at.
var steps = []struct {
	name  string
	build graph.Build
	loss  bool // whether it has the training's
}{
	{"dictionary", graph.Dictionary, true},
	{"code", graph.Code, true},
	{"authors", graph.Authors, true},
	{"encode", graph.Encode, false},
	{"learn", graph.Learn, false},
}

func stepNames() (names []string) {
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

func newGraph() *cobra.Command {
	var f objectiveFlags
	var dot string
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Show the steps of training: their expression graphs and what is run for them",
		Long: `Graph prints the programs that training and encoding run. Each is made from a
Gorgonia expression graph of the loss and its gradients, simplified and fused into
a few steps. Sizes in the listing: n words of a batch, K sparse dimensions, L dense
ones.

The paper's trainer runs "dictionary" and "code", or "authors" in the order of the
paper's own program. Codes for a fixed dictionary come from steps of "encode", and
online learning moves the dictionary by "learn": both with the squared loss, here
for vectors of mean squared norm 1.`,
		Example: `  overcomplete graph --method B --loss huber --huber-delta 0.3
  overcomplete graph --dot code | dot -Tsvg > code.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			for i, step := range steps {
				if dot != "" && dot != step.name {
					continue
				}
				spec := f.exampleSpec(step.loss)
				expr, err := step.build(spec, exampleWords, tensor.Float32)
				if err != nil {
					return err
				}
				if dot != "" {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), expr.Graph.ToDot())
					return err
				}
				p, err := graph.Compile(step.build, spec)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%d nodes, fused into\n%v", len(expr.Graph.AllNodes()), p)
			}
			return nil
		},
	}
	cmd.Flags().StringVar((*string)(&f.Method), "method", string(model.Signed), "A, or B for nonnegative codes")
	f.registerObjective(cmd)
	cmd.Flags().StringVar(&dot, "dot", "", "print the expression graph of a `step` ("+orNames(stepNames())+") for Graphviz instead")
	return cmd
}

// The listing does not depend on the sizes, and a picture needs only small ones.
const exampleAtoms, exampleDim, exampleWords = 5, 3, 4

func (f *objectiveFlags) exampleSpec(loss bool) graph.Spec {
	h := f.Paper
	h.Atoms = exampleAtoms
	s := backend.Problem{Dim: exampleDim, Hyperparameters: h}.Spec()
	if !loss {
		s.Loss, s.Norm = graph.Squared, 1
	}
	return s
}
