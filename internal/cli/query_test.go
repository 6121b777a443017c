package cli

import (
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// Queries are products of vectors of norm 1 with the atoms (1, 0), (0, 1) and (3, -4).
func TestQuery(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel([]string{"a", "b"}, [][]float32{{1, 0, 0}, {0, 1, 2}})
	m.Dictionary.Atoms = []float32{1, 0, 0, 1, 3, -4}
	dir := clitest.Save(t, m)
	dir.Write(t, "q.txt", []byte("first 3 4\nsecond 2 0\n"))
	for args, want := range map[string]string{
		"query model q.txt": `{"id":"first","dimensions":3,"indices":[0,1],"values":[0.6,0.8]}
{"id":"second","dimensions":3,"indices":[0,2],"values":[1,3]}
`,
		"query model q.txt --weights 1 --signed": `{"id":"first","dimensions":3,"indices":[2],"values":[-1.4]}
{"id":"second","dimensions":3,"indices":[2],"values":[3]}
`,
		"query model q.txt --more 2=2.5 --less 0 --max-words 1": `{"id":"first","dimensions":3,"indices":[0,1,2],"values":[0.1,0.8,1.1]}
`,
		"query model q.txt --less 0=2 --max-words 1": `{"id":"first","dimensions":3,"indices":[1],"values":[0.8]}
`,
	} {
		if stdout, _ := dir.MustRun(t, args); stdout != want {
			t.Errorf("%s printed\n%swant\n%s", args, stdout, want)
		}
	}
	dir.Write(t, "wide.txt", []byte("a 1 2 3\n"))
	before := dir.Tree(t)
	for args, want := range map[string]string{
		"query model wide.txt":                "wide.txt: wrong length of vectors (got 3, want 2, the length of the atoms of model)",
		"query model q.txt --more 3":          `--more is "3", want a dimension from 0 to 2`,
		"query model q.txt --weights 0":       "--weights is 0",
		"query model model":                   "is a model, not dense vectors",
		"query q.txt q.txt":                   "q.txt",
		"query model q.txt --less 1 --more 1": "dimension 1 already has a weight",
	} {
		checkRefused(t, dir, args, []string{want}, before)
	}
}
