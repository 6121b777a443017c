package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands into a directory",
		Example: "  overcomplete man /usr/local/share/man/man1",
		Hidden:  true, // releases contain the pages
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().DisableAutoGenTag = true // the generated line contains the date
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Source: "overcomplete"}, args[0])
		},
	}
}
