package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
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
		"query model q.txt --more 2=2.5 --less 0 --max-rows 1": `{"id":"first","dimensions":3,"indices":[0,1,2],"values":[0.1,0.8,1.1]}
`,
		"query model q.txt --less 0=2 --max-rows 1": `{"id":"first","dimensions":3,"indices":[1],"values":[0.8]}
`,
	} {
		checkOutput(t, dir, args, want)
	}
	dir.Write(t, "wide.txt", []byte("a 1 2 3\n"))
	dir.Write(t, "zero.txt", []byte("zero 0 0\none 1 0\n"))
	dir.Write(t, "zero.tsv", []byte("id\ttext\te0\te1\none\ta text\t1\t0\nzero\t\t0\t0\n"))
	if stdout, stderr := dir.MustRun(t, "query model zero.txt --skip-bad"); stdout != `{"id":"one","dimensions":3,"indices":[0,2],"values":[1,3]}`+"\n" || !strings.Contains(stderr, `"zero"`) {
		t.Errorf("printed %s%s", stdout, stderr)
	}
	checkRefusals(t, dir, "", map[string]string{
		"query model wide.txt":          "wide.txt: wrong length of vectors (got 3, want 2, the length of the atoms of model)",
		"query model zero.txt":          `zero.txt:1: word "zero": all numbers are zero; --skip-bad drops such rows`,
		"query model zero.tsv":          `zero.tsv:3: all numbers are zero`,
		"query model q.txt --more 3":    `--more is "3", want a dimension from 0 to 2`,
		"query model q.txt --weights 0": "--weights is 0",
		"query model model":             "is a model, not dense vectors",
		"query q.txt q.txt":             "q.txt",
	})
}

// Queries of all blocks are printed in order. The first lines are printed before the end, and an interrupt then still
// ends the command.
func TestQueryBlocks(t *testing.T) {
	t.Parallel()
	m := clitest.NewModel([]string{"a", "b"}, [][]float32{{1, 0}, {0, 1}})
	m.Dictionary.Atoms = []float32{1, 0, 0, 1}
	dir := clitest.Save(t, m)
	const rows = 100_000 // several blocks
	var words, table, want strings.Builder
	table.WriteString("id\ttext\tnr\te0\te1\n")
	for i := range rows {
		nr := fmt.Sprint(i)
		if i == rows-1 {
			nr = "last"
		}
		fmt.Fprintf(&words, "w%d 1 0\n", i)
		fmt.Fprintf(&table, "w%d\ta text\t%s\t1\t0\n", i, nr)
		fmt.Fprintf(&want, `{"id":"w%d","dimensions":2,"indices":[0],"values":[1]}`+"\n", i)
	}
	dir.Write(t, "q.txt", []byte(words.String()))
	dir.Write(t, "q.tsv", []byte(table.String()))
	if stdout, _ := dir.MustRun(t, "query model q.txt"); stdout != want.String() {
		t.Errorf("%d bytes, want %d", len(stdout), want.Len())
	}
	// A column has one type in all blocks.
	if stdout, _ := dir.MustRun(t, "query model q.tsv"); strings.Count(stdout, "\n") != rows || !strings.HasPrefix(stdout, `{"id":"w0","text":"a text","nr":"0","dimensions":2,"indices":[0]`) {
		t.Errorf("%d lines, %.200s", strings.Count(stdout, "\n"), stdout)
	}
	ctx, cancel := context.WithCancel(t.Context())
	written := 0
	stdout := writerFunc(func(p []byte) (int, error) {
		written += bytes.Count(p, []byte("\n"))
		cancel()
		return len(p), nil
	})
	if code := run(ctx, []string{"query", dir.Path("model"), dir.Path("q.txt")}, stdout, io.Discard); code != exitInterrupted || written == 0 || written >= rows/2 {
		t.Errorf("exit code %d after %d lines", code, written)
	}
}
