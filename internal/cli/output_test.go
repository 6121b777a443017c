package cli

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"syscall"
	"testing"
)

// Whatever a command prints, that it could not is its failure. What it writes to a file
// beside that is not there then.
func TestFullStandardOutput(t *testing.T) {
	sampleDir(t)
	mustRun(t, "train --recipe paper in.txt -o old --epochs 1 --method B")
	mustRun(t, "intrusion make X=in.txt -n 2 -o test.json")
	writeFile(t, "answers.jsonl", nil)
	writeFile(t, "pairs.txt", []byte("word0 word1 1\nword2 word3 3\nword0 word3 2\n"))
	before := tree(t, ".")
	full := writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC })
	for _, args := range []string{
		"", "help", "help train", "train --recipe paper --help", "version", "graph", "graph --dot code", "devices", "devices --json", "completion bash",
		"top old", "top old --json", "explain old word1 word2", "clusters old", "heatmap old word1,word2 -o map.svg",
		"eval old --wordsim pairs.txt", "eval old --wordsim pairs.txt --json", "eval old --wordsim pairs.txt --markdown",
		"intrusion score test.key.json answers.jsonl", "export old -f sparse -o -", "export old -f csr -o -",
		"transform in.txt --method thresh1 -o -",
	} {
		var stderr bytes.Buffer
		code := run(context.Background(), strings.Fields(args), full, &stderr)
		if code != exitFailed || !strings.HasSuffix(stderr.String(), "overcomplete: no space left on device\n") || strings.Count(stderr.String(), "overcomplete: ") != 1 {
			t.Errorf("%q: exit code %d, %q", args, code, stderr.String())
		}
		if after := tree(t, "."); !maps.Equal(before, after) {
			t.Fatalf("%q changed files", args)
		}
	}
}
