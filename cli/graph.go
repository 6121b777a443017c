package cli

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	programs "overcomplete/internal/program"
	"overcomplete/model"
	"overcomplete/train"
)

// steps are the graphs of training and encoding. Graphs of the paper's trainer also have a program.
var steps = []struct {
	name    string
	build   graph.Build
	program func(graph.Spec) (*programs.Program, error)
}{
	{"dictionary", graph.Dictionary, programs.Dictionary},
	{"code", graph.Code, programs.Code},
	{"authors", graph.Authors, programs.Authors},
	{"encode", graph.Encode, nil},
	{"learn", graph.Learn, nil},
}

func stepNames() (names []string) {
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

func newGraph() *cobra.Command {
	h := train.Paper()
	var dot string
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Print the expression graphs of training and encoding",
		Long: `Graph prints the programs of the paper's trainer: "dictionary" and "code", or "authors" in
the order of the paper's own program. Their loss and its gradient come from a Gorgonia
expression graph. Sizes: n words of a batch, K sparse dimensions, L dense ones.

--dot prints the whole expression graph of a step. "encode" is a step of the codes of a
fixed dictionary, "learn" one of online learning, both with the squared loss.`,
		Example: `  overcomplete graph --method B --loss huber --huber-delta 0.3
  overcomplete graph --dot code | dot -Tsvg > code.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			others := map[string][]string{"encode": {"loss", "tau", "rate"}, "learn": {"loss", "tau", "rate", "lambda", "method"}}
			if err := cmp.Or(checkObjective(cmd, h), refuseFlags(cmd, "has no effect on this step; drop it", others[dot]...)); err != nil {
				return err
			}
			var all []string // programs, or a graph in the language of Graphviz
			for _, step := range steps {
				switch {
				case dot == step.name:
					expr, err := step.build(exampleSpec(h), exampleRows)
					if err != nil {
						return err
					}
					all = append(all, expr.Graph.ToDot()+"\n")
				case dot == "" && step.program != nil:
					p, err := step.program(exampleSpec(h))
					if err != nil {
						return err
					}
					all = append(all, p.String())
				}
			}
			_, err := io.WriteString(cmd.OutOrStdout(), strings.Join(all, "\n"))
			return err
		},
	}
	cmd.Flags().Var(methodFlag(&h.Method, h.Method), "method", "A, or B for nonnegative codes")
	registerObjective(cmd, &h)
	cmd.Flags().Var(oneOf(&dot, "", stepNames()...), "dot", "print the expression graph of a `step` ("+orNames(stepNames())+") for Graphviz instead")
	return cmd
}

// Sizes of the graphs. A listing doesn't depend on them, and a picture needs only small ones.
const exampleAtoms, exampleDim, exampleRows = 5, 3, 4

func exampleSpec(h model.Paper) graph.Spec {
	h.Atoms = exampleAtoms
	s := backend.Problem{Dim: exampleDim, Hyperparameters: h}.Spec()
	s.Norm = 1 // used by "learn"
	return s
}
