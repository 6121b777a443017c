package cli

import (
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
)

// Codes of two directions stand for vectors in two pairs of neighbours.
func TestRecall(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "c", "d"}
	m := clitest.NewModel(words, [][]float32{{1, 0}, {2, 0}, {0, 1}, {0, 3}})
	m.Dictionary.Atoms = []float32{1, 0, 0, 1}
	m.Info.Encoding.Error, m.Info.Encoding.Variance = 1, 4
	dir := clitest.Save(t, m)
	dir.Write(t, "x.txt", []byte("a 1 0.1\nb 2 0\nc 0.1 1\nd 0.2 3\n"))
	// Each search finds the right row.
	const other = "model encodes another file, in.txt, not x.txt"
	checkPrints(t, dir, "recall x.txt model -k 1", `recall@1 of 4 queries, rows of the index, over 4 rows; dense vectors: 0.0 MB
model  nonzeros  explained   index         codes      products       largest      reranked         dense
model       1.0     75.0 %  0.0 MB  1.000 ±0.000  1.000 ±0.000  1.000 ±0.000  1.000 ±0.000  1.000 ±0.000
`, other)
	got := runJSON[recallReport](t, dir, "recall x.txt model -k 2 --json --number 3 --seed 2")
	// The code of the second nearest neighbour is orthogonal to the query's.
	if found := got.Models[0]; got.Queries != 3 || got.Bytes != 32 || found.Bytes != 32 || found.Codes.Recall != 0.5 || found.Products.Recall < 0.5 {
		t.Errorf("JSON is %+v", got)
	}
	// A new query may have a word of the index, whose row it then finds.
	dir.Write(t, "q.txt", []byte("a 1 0.1\nnew 0.2 2\n"))
	stdout, _ := dir.MustRun(t, "recall x.txt model -k 1 --json --queries q.txt")
	if !strings.Contains(stdout, `"queries": 2,
  "new": 1,`) || strings.Count(stdout, `"recall": 1,`) != 5 {
		t.Errorf("JSON is %s", stdout)
	}
	checkPrints(t, dir, "recall x.txt model -k 1 --queries x.txt", "4 queries, rows of the index,", other)
	checkPrints(t, dir, "recall x.txt model -k 1 --queries q.txt", "2 queries, 1 of them new,", other)

	dir.MustRun(t, "train x.txt -o own -k 4 --quiet")
	checkPrints(t, dir, "recall x.txt own -k 1", "recall@1", "own was trained on queries of x.txt")

	dir.Write(t, "wide.txt", []byte("a 1 2 3\nb 3 4 5\n"))
	dir.Write(t, "other.txt", []byte("a 1 2\nb 3 4\nd 1 2\nc 3 3\n"))
	checkRefusals(t, dir, "", map[string]string{
		"recall x.txt":                                   "one argument is given",
		"recall x.txt model -k 4":                        "x.txt: too few rows for the nearest 4 (got 4 rows, and 4 queries that are not zero)",
		"recall x.txt model -k 0":                        "-k is 0",
		"recall x.txt model --number -1":                 "--number is -1",
		"recall x.txt model -k 1 --queries wide.txt":     "wide.txt: queries have the wrong length (got 3, want 2",
		"recall x.txt model -k 1 --queries nothing":      "nothing: no such file",
		"recall x.txt model --rows columns":              "--rows",
		"recall x.txt model nothing -k 4":                "nothing", // before the search, which would refuse -k
		"recall wide.txt model -k 1":                     "model: wrong length of atoms (got 2, want 3",
		"recall other.txt model -k 4":                    `model: row 2 differs (got "c", want "d"`,
		"recall x.txt model -k 1 --max-rows 3":           "model: wrong number of codes (got 4, want 3",
		"export model -f safetensors -o new --normalize": "--normalize has no effect on format safetensors",
		"export model -f labels -o new --normalize":      "--normalize has no effect on format labels",
	})
}
