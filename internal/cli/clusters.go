package cli

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"overcomplete/internal/table"
	"overcomplete/interpret"
	"overcomplete/vectors"
)

func newClusters() *cobra.Command {
	var words, clusters int
	var seed uint64
	var input string
	cmd := &cobra.Command{
		Use:   "clusters MODEL",
		Short: "Show words that share a binary dimension, beside k-means clusters",
		Long: `Clusters shows randomly picked dimensions of the binary vectors of a model of
method B as clusters: the words that have a 1 there, first ones first, which is by
frequency in most files (the paper's table of word clusters, §2.2). With --input, the dense
vectors, it shows as many clusters of theirs, picked from 100 by k-means.`,
		Example: `  overcomplete clusters model
  overcomplete clusters model --input glove.6B.300d.txt.gz --seed 7`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkCounts(1, count{"--words", words}, count{"--clusters", clusters}); err != nil {
				return err
			}
			m, err := loadModel(cmd, args[0])
			if err != nil {
				return err
			}
			if err := checkBinary(m); err != nil {
				return err
			}
			members := make([][]int, m.Codes.Cols)
			for i := range m.Codes.Rows {
				index, _ := m.Codes.Row(i)
				for _, k := range index {
					members[k] = append(members[k], i)
				}
			}
			found := clustering{Dimensions: pickClusters(names(m.Codes), members, clusters, words, seed)}
			x := interpret.NewIndex(m.Codes)
			labels, err := loadLabels(args[0], x.Codes.Cols)
			if err != nil {
				return err
			}
			for i, c := range found.Dimensions {
				found.Dimensions[i].Label = labels.Of(x, c.Number, false)
			}
			if input != "" {
				x, _, err := readDense(cmd, input)
				if err != nil {
					return err
				}
				members = make([][]int, min(100, x.Len()))
				clusterOf, err := interpret.KMeans(cmd.Context(), x, len(members), seed)
				if err != nil {
					return err
				}
				for i, c := range clusterOf {
					members[c] = append(members[c], i)
				}
				found.KMeans = pickClusters(names(interpret.FromDense(x)), members, clusters, words, seed)
			}
			return show(cmd, found, found.print)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&input, "input", "", "`file` of the dense vectors, for k-means")
	flags.IntVarP(&words, "words", "n", 8, "words of each cluster")
	flags.IntVar(&clusters, "clusters", 5, "clusters of each kind")
	flags.Uint64Var(&seed, "seed", 1, "seed of k-means and of what is picked")
	addSkipBad(cmd)
	addJSON(cmd, "print the same as JSON")
	return cmd
}

type clustering struct {
	Dimensions []cluster `json:"dimensions"`
	KMeans     []cluster `json:"kmeans,omitempty"`
}

type cluster struct {
	Number int      `json:"cluster"`         // the dimension, or k-means' own number
	Label  string   `json:"label,omitempty"` // of a dimension
	Size   int      `json:"size"`            // of its words
	Words  []string `json:"words"`           // the first of them
}

// names returns what rows are called in a list.
func names(s *vectors.Sparse) []string {
	if s.Texts == nil {
		return s.Words
	}
	var all []string
	for i := range s.Rows {
		all = append(all, s.Name(i))
	}
	return all
}

// pickClusters returns n clusters that are not empty, with their first words.
func pickClusters(words []string, members [][]int, n, shown int, seed uint64) []cluster {
	picked := []cluster{}
	for _, c := range rand.New(rand.NewPCG(seed, 0)).Perm(len(members)) {
		if len(members[c]) == 0 || len(picked) == n {
			continue
		}
		found := cluster{Number: c, Size: len(members[c])}
		for _, i := range members[c][:min(shown, len(members[c]))] {
			found.Words = append(found.Words, words[i])
		}
		picked = append(picked, found)
	}
	slices.SortFunc(picked, func(a, b cluster) int { return a.Number - b.Number })
	return picked
}

func (c clustering) print(b *strings.Builder) {
	rows := table.Table{{"dimension", "size", "label", "words"}}
	for _, d := range c.Dimensions {
		rows = append(rows, []string{strconv.Itoa(d.Number), strconv.Itoa(d.Size), d.Label, wordList(cutWords(d.Words), " ")})
	}
	if c.KMeans != nil {
		rows = append(rows, []string{"k-means", "size", "words"})
		for _, d := range c.KMeans {
			rows = append(rows, []string{strconv.Itoa(d.Number), strconv.Itoa(d.Size), wordList(cutWords(d.Words), " ")})
		}
	}
	b.WriteString(rows.Text("rrl", nil))
}
