package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/encode"
	"overcomplete/model"
)

func newMerge() *cobra.Command {
	var output string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "merge SHARD... -o OUT",
		Short: "Put the outputs of encode --shard together",
		Long: `Merge puts the models that "overcomplete encode --shard 1/n" to "n/n" wrote
together. OUT is, to the byte, what encode writes without --shard. All shards have
to be there, in any order, and of the same model, input, flags and kind of
processor; what they hold is streamed, however much it is.`,
		Example: `  overcomplete merge part*.model -o all.model`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usagef("-o is empty, want the name of a directory")
			}
			if err := model.CheckSave(output, model.MayReplace(force)); err != nil {
				return err
			}
			info, err := encode.Merge(cmd.Context(), output, force, args...)
			if err != nil {
				return err
			}
			return reportEncoding(cmd, output, info, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "", "model `directory` to write")
	flags.BoolVar(&force, "force", false, "replace a model that exists")
	flags.BoolVar(&asJSON, "json", false, "print the results as JSON")
	cmd.MarkFlagRequired("output")
	return cmd
}
