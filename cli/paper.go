package cli

import "github.com/spf13/cobra"

func newPaper() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "paper",
		SuggestFor: []string{"tune", "report", "sweep", "heatmap"},
		Short:      "Repeat the training and experiments of the 2015 paper",
		Long: `Paper groups the commands that repeat the experiments of Faruqui et al., Sparse
Overcomplete Word Vector Representations (ACL 2015).`,
		Example: "  overcomplete paper train glove.6B.300d.txt.gz -o model --lambda 1",
	}
	cmd.AddCommand(newPaperTrain(), newPaperTune(), newPaperReport())
	return cmd
}
