package cli

import (
	"github.com/spf13/cobra"

	"overcomplete/encode"
)

func newMerge() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:        "merge SHARD... -o OUT",
		SuggestFor: []string{"join", "concat", "combine"},
		Short:      "Merge the outputs of encode --shard",
		Long: `Merge puts the models that "overcomplete encode --shard 1/n" to "n/n" wrote
together. OUT is, to the byte, what encode writes without --shard. All shards have
to be there, in any order, and of the same model, input, flags and kind of
processor; what they hold is streamed, however much it is.`,
		Example: `  overcomplete merge part*.model -o all.model`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := encode.Merge(cmd.Context(), output, isSet(cmd, "force"), args...)
			if err != nil {
				return err
			}
			return reportEncoding(cmd, output, info)
		},
	}
	addOutput(cmd, &output, "model `directory` to write", "a model that exists")
	addJSON(cmd, "print the results as JSON")
	return cmd
}
