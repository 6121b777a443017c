package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"overcomplete/lab/eval"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/evaltest"
	"overcomplete/vectors"
)

// evalDir returns a directory with vectors in x.txt and the data of the tasks in data.
func evalDir(t *testing.T) (clitest.Dir, *vectors.Dense) {
	t.Helper()
	data, x := evaltest.Write(t)
	dir := clitest.New(t)
	testonly.Must(t, os.Rename(data, dir.Path("data")))
	dir.Write(t, "x.txt", clitest.Text(x))
	return dir, x
}

func TestEval(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	dir.MustRun(t, "paper train x.txt -o a --lambda 0.1 --epochs 5 --quiet")
	dir.MustRun(t, "paper train x.txt -o b --lambda 0.1 --epochs 5 --method B --quiet")
	dir.MustRun(t, "export b -f binary -o b.npz")
	const specs = "x.txt a b b:binary thresh1:x.txt thresh2:x.txt"
	stdout, stderr := dir.MustRun(t, "eval "+specs+" --data data --tasks WS-353,NP --json --wordsim data/wordsim/EN-WS-353-ALL.txt")
	type table struct {
		Rows []struct {
			Name  string
			Tasks map[string]struct{ Score float64 }
		}
	}
	var got table
	testonly.Must(t, json.Unmarshal([]byte(stdout), &got))
	scores := map[string]string{}
	for i, name := range strings.Fields(specs) {
		row := got.Rows[i]
		if row.Name != name {
			t.Errorf("row %d is %s, want %s", i, row.Name, name)
		}
		tasks := slices.Sorted(maps.Keys(row.Tasks))
		if !slices.Equal(tasks, []string{"EN-WS-353-ALL", "NP", "WS-353"}) || row.Tasks["EN-WS-353-ALL"] != row.Tasks["WS-353"] {
			t.Errorf("%s: %+v", name, row.Tasks)
		}
		scores[name] = fmt.Sprint(row.Tasks)
		checkParts(t, "eval "+specs, stderr, "evaluated "+name+" in ")
	}
	if scores["b"] == scores["b:binary"] || scores["a"] == scores["x.txt"] {
		t.Error("what should differ is the same")
	}

	// Without --tasks, all tasks of the paper are evaluated.
	got = runJSON[table](t, dir, "eval x.txt --data data --json")
	if tasks := slices.Sorted(maps.Keys(got.Rows[0].Tasks)); !slices.Equal(tasks, slices.Sorted(slices.Values(eval.TaskNames()))) {
		t.Errorf("x.txt has scores in %q, want in %q", tasks, eval.TaskNames())
	}

	for flag, want := range map[string]string{"": "x.txt  ", "--markdown --json=false": "| x.txt |"} {
		checkPrints(t, dir, "eval x.txt --data data --tasks SimLex-999,NP --quiet "+flag, want+" … Average over SimLex-999, NP.", "")
	}
}

func TestEvalUsage(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	dir.MustRun(t, "paper train x.txt -o a --epochs 1 --quiet")
	testonly.Must(t, os.Rename(dir.Path("data/trec"), dir.Path("data/elsewhere")))
	dir.Write(t, "bad.txt", []byte("a b 1\na b c d\n"))
	dir.Write(t, "NP.tsv", []byte("a b 1\n"))
	dir.Write(t, "pairs.txt", []byte("a b 1\n"))
	checkRefusals(t, dir, "", map[string]string{
		"eval x.txt --data data":                              "data/trec/raw.TREC.train: no such file or directory: task TREC needs it; docs/results/evaluation.md lists",
		"eval x.txt":                                          "the paper's tasks need --data",
		"eval x.txt --wordsim NP.tsv":                         "task NP: the name is taken",
		"eval x.txt a none.txt --wordsim pairs.txt":           "none.txt: ",
		"eval x.txt --data data --tasks WS-353,OTHER":         `--tasks has "OTHER"`,
		"eval x.txt --data data --tasks=":                     "no tasks",
		"eval x.txt --data data --tasks NP,NP":                `task "NP" is given twice`,
		"eval x.txt --data data --tasks NP --wordsim bad.txt": "bad.txt:2: 4 fields",
		"eval x.txt --data data --tasks NP --json --markdown": "give --markdown or --json, not both",
		"eval a:binary --data data --tasks NP":                "a:binary: binary vectors require a model of method B",
		"eval data --data data --tasks NP":                    "data: not a model",
		"eval thresh1:a --data data --tasks NP":               "a: ",
	})
}

// Completed rows are printed, even if the evaluation is interrupted.
func TestEvalInterrupted(t *testing.T) {
	t.Parallel()
	dir, _ := evalDir(t)
	for _, flag := range []string{"", "--json"} {
		stdout, stderr := interruptAt(t, dir, "eval x.txt thresh1:x.txt thresh2:x.txt --data data --tasks NP "+flag, 1, "evaluated x.txt")
		if !strings.Contains(stdout, "x.txt") || strings.Contains(stdout, "thresh") {
			t.Errorf("printed\n%s", stdout)
		}
		checkParts(t, "eval", stderr, "interrupted; the table has the vectors that were finished")
	}
}
