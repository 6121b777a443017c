//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

// The vector of a word, given as a text of one's own, has the code and the neighbours of the word.
func TestExplainOwnTexts(t *testing.T) {
	t.Parallel()
	dir, x := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o model -k 20 --sparsity 0.8")
	explain := func(args ...string) (e []explanation) {
		t.Helper()
		code, stdout, stderr := clitest.Output(t, dir.Command(append([]string{"explain", "model", "--json"}, args...)...))
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	want := explain("word3", "word8", "--neighbours", "5")
	numbers := func(row int) string { return strings.Trim(fmt.Sprint(x.Row(row)), "[]") }
	for _, texts := range [][]string{
		{numbers(3), numbers(8), "--embedder", "cat"},
		{"3", "the\n8 ", "--embedder", "while read -r a b; do sed -n \"$(( ${b:-$a} + 1 )) s/^word[0-9]* //p\" in.txt | sed 's/ /, /g; s/.*/[&]/'; done"},
	} {
		got := explain(append(texts, "--neighbours", "6")...)
		for i, w := range want {
			g := got[i]
			if g.Word != texts[i] || g.Active != w.Active || len(g.Strong) != len(w.Strong) {
				t.Fatalf("%+v, want what %+v has", g, w)
			}
			for j, d := range w.Strong {
				// Numbers in brackets are of the same float32.
				if g.Strong[j].Dimension != d.Dimension || math.Abs(float64(g.Strong[j].Weight-d.Weight)) > 1e-6 {
					t.Errorf("%q: %+v, want %+v", texts[i], g.Strong[j], d)
				}
			}
			if g.Nearest[0].Word != w.Word || g.Nearest[1].Word != w.Nearest[0].Word {
				t.Errorf("nearest to %q: %+v, want the word itself and %+v", texts[i], g.Nearest, w.Nearest)
			}
		}
	}

	before := dir.Tree(t)
	for _, tt := range []struct{ command, want string }{
		{"cat", "line 1 has 2 numbers, and the vectors of the model 8"},
		{"echo 1 2 3 4 5 6 7 x", `line 1 has "x", want a finite number`},
		{"echo 1 2 3 4 5 6 7 NaN", `line 1 has "NaN"`},
		{"echo 1 2 3 4 5 6 7 1e99", `line 1 has "1e99"`},
		{"echo 1; echo 2", "wrote 2 lines for 1 texts"},
		{"true", "line 1 has 0 numbers"},
		{"exit 3", "exit status 3"},
		{"nothing-is-called-so", "exit status 127"},
		{"cat /dev/zero", "wrote more than"},
	} {
		code, _, stderr := clitest.Output(t, dir.Command("explain", "model", "a b", "--embedder", tt.command))
		if code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s; want 2 and %q", tt.command, code, stderr, tt.want)
		}
	}
	for args, want := range map[string]string{
		"explain in.txt a --embedder cat":                   "in.txt: --embedder needs a model",
		"explain model a --embedder cat --vocabulary model": "give one of --embedder and --vocabulary",
	} {
		checkRefused(t, dir, args, []string{want}, before)
	}
	code, _, stderr := clitest.Output(t, dir.Command("explain", "model", " \n", "--embedder", "cat"))
	if code != 2 || !strings.Contains(stderr, "text 1 is empty") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	dir.Unchanged(t, before)
}
