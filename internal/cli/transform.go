package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/lab/eval"
	"overcomplete/model"
	"overcomplete/vectors"
)

func newTransform() *cobra.Command {
	var method, output string
	var force, escape, skipBad bool
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
			transform := eval.Transforms[method]
			if transform == nil {
				return usagef("--method is %q, want thresh1 or thresh2", method)
			}
			open := func() (*model.Model, error) {
				x, _, err := readDense(cmd.Context(), cmd.ErrOrStderr(), args[0], skipBad)
				if err != nil {
					return nil, err
				}
				if escape {
					x.Words = vectors.Escape(x.Words)
				}
				return &model.Model{Codes: transform(x)}, nil
			}
			return writeFormat(cmd, "glove", output, force, "", open)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&method, "method", "", "thresh1 or thresh2")
	flags.StringVarP(&output, "output", "o", "", "`file` to write, or - for standard output")
	flags.BoolVar(&force, "force", false, "replace a file that exists")
	flags.BoolVar(&escape, "escape", false, "encode white space and % in words")
	addSkipBad(cmd, &skipBad)
	cmd.MarkFlagRequired("method")
	cmd.MarkFlagRequired("output")
	return cmd
}
