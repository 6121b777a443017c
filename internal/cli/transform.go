package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/internal/lab/eval"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newTransform() *cobra.Command {
	var method, output string
	var escape bool
	cmd := &cobra.Command{
		Use:   "transform VECTORS --method M -o FILE",
		Short: "Make dense vectors sparse without training, as the paper does to compare",
		Long: `Transform writes the paper's alternatives to sparse coding, which keep the
vectors' length, as text:

  thresh1   1 where a value is positive, 0 elsewhere
  thresh2   1 where a value is at least the mean of all positive values, -1 where
            it is at most that of the negative ones, 0 elsewhere (Guo et al. 2014)

A word with white space would be ambiguous, so it stops the command; with --escape,
white space and % in words are written as in a URL.`,
		Example: `  overcomplete transform glove.txt --method thresh2 -o glove.thresh2.txt`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			open := func() (*model.Model, error) {
				x, _, err := readDense(cmd, args[0])
				if err != nil {
					return nil, err
				}
				if escape {
					x.Words = vectors.Escape(x.Words)
				}
				return &model.Model{Codes: eval.Transforms[method](x)}, nil
			}
			return writeFormat(cmd, "glove", output, "", open)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&method, "method", "", "thresh1 or thresh2")
	addOutput(cmd, &output, "`file` to write, or - for standard output", "a file that exists")
	flags.BoolVar(&escape, "escape", false, "encode white space and % in words")
	addSkipBad(cmd)
	cmd.MarkFlagRequired("method")
	return cmd
}
