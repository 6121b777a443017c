package cli

import "github.com/spf13/cobra"

func newPaper() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "paper",
		Short: "Train and evaluate as the 2015 paper does",
		Long: `Paper groups the commands that repeat the experiments of Faruqui et al., Sparse
Overcomplete Word Vector Representations (ACL 2015).`,
		Example: "  overcomplete paper train glove.6B.300d.txt.gz -o model --lambda 1",
	}
	cmd.AddCommand(newPaperTrain(), newPaperTune(), newPaperReport())
	return cmd
}
