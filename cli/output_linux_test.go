package cli

import (
	"os"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// A command that can't print fails, and then writes no file.
func TestFullStandardOutput(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "paper train in.txt -o old --epochs 1 --method B")
	dir.MustRun(t, "intrusion make X=in.txt -n 2 -o test.tsv")
	dir.Write(t, "test.tsv", append(dir.Read(t, "test.tsv"), "1\t1\n"...))
	dir.Write(t, "pairs.txt", []byte("word0 word1 1\nword2 word3 3\nword0 word3 2\n"))
	before := dir.Tree(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testonly.Must(t, err)
	defer full.Close()
	for _, args := range []string{
		"", "help", "help train", "paper train --help", "version", "--version", "graph", "graph --dot code", "devices", "devices --json", "completion bash",
		"top old", "top old --json", "explain old word1 word2",
		"eval old --wordsim pairs.txt", "eval old --wordsim pairs.txt --json", "eval old --wordsim pairs.txt --markdown",
		"intrusion score test.key.json test.tsv", "export old -f jsonl -o -", "export old -f csr -o -",
	} {
		cmd := dir.Command(strings.Fields(args)...)
		cmd.Stdout = full
		if code, _, stderr := clitest.Output(t, cmd); code != exitFailed || !strings.HasSuffix(stderr, ": no space left on device\n") || strings.Count(stderr, "overcomplete: ") != 1 {
			t.Errorf("%q: exit code %d, %q", args, code, stderr)
		}
		dir.Unchanged(t, before)
	}
}
