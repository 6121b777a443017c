//go:build unix

package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"overcomplete/testonly/clitest"
)

// namer answers each line with a label.
const namer = `sed 's/^{"topic":\([0-9]*\),"keywords":\[".*"\],"examples":\[".*"\]}$/{"topic":\1,"label":"Name \1"}/'`

// A command labels the topics that no person has labelled. Its labels are marked until a person edits them.
func TestPropose(t *testing.T) {
	t.Parallel()
	dir, _ := clitest.Sample(t)
	dir.MustRun(t, "train in.txt -o topics -k 20 --topics 3")
	propose := func(command string) (code int, stderr string) {
		t.Helper()
		code, stdout, stderr := clitest.Output(t, dir.Command("labels", "topics", "--propose", command))
		if stdout != "" {
			t.Errorf("%s printed %s", command, stdout)
		}
		return code, stderr
	}
	labels := func() string {
		t.Helper()
		stdout, _ := dir.MustRun(t, "labels topics --topics 3")
		return stdout
	}
	unchanged := func() bool {
		_, err := os.Stat(dir.Path("topics/labels.json"))
		return err != nil
	}
	before := labels()
	id, _, _ := strings.Cut(strings.Split(before, "\n")[2], "\t")
	for command, want := range map[string]string{
		namer + "; exit 3":      "the command failed (exit status 3); no label was changed",
		"no-such-program":       "no-such-program",
		"cat":                   "line 1 of the command's output is no label (got",
		"echo garbage":          `no label (got "garbage\n")`,
		"true":                  "the command wrote 0 labels for ",
		namer + " | tail -n +2": "is missing); want {",
		namer + "; echo '{\"topic\":0,\"label\":\"again\"}'":                  "is a label of topic 0, for which it wasn't asked or has answered",
		namer + "; echo '{\"topic\":999,\"label\":\"other\"}'":                "is a label of topic 999",
		namer + " | sed 's/Name.*\"/\"/'":                                     "is an empty label",
		namer + ` | sed 's/Name/\xff/'`:                                       "isn't UTF-8 text (got",
		namer + ` | sed 's/Name/\\ud800/'`:                                    "isn't UTF-8 text (got",
		namer + ` | sed 's/Name/\\u001b[2J/'`:                                 `the name isn't one line of UTF-8 text (got "\x1b[2J`,
		namer + " | sed 's/Name/" + strings.Repeat("x", 101) + "/'":           "the name is too long",
		"yes '{\"topic\":0,\"label\":\"" + strings.Repeat("x", 1000) + "\"}'": "the command wrote more than 16 MiB",
	} {
		if code, stderr := propose(command); code != exitUsage || !strings.Contains(stderr, want) || !unchanged() {
			t.Errorf("%s: exit code %d, %s, want %s", command, code, stderr, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stderr := writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "started") {
			cancel()
		}
		return len(p), nil
	})
	if code := run(ctx, []string{"labels", dir.Path("topics"), "--propose", "echo started >&2; sleep 1000"}, io.Discard, stderr); code != exitInterrupted || !unchanged() {
		t.Errorf("interrupted: exit code %d", code)
	}

	dir.Write(t, "labels.tsv", []byte("topic\tlabel\tnote\n"+id+"\tMine\ta note\n"))
	dir.MustRun(t, "labels topics --import labels.tsv")
	for range 2 { // new proposals replace earlier ones
		if code, stderr := propose(namer); code != 0 || !strings.HasSuffix(stderr, " labels proposed\n") {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
	}
	after := labels()
	if !strings.Contains(after, "\n"+id+"\tMine\ta note\t\t") || strings.Count(after, "\tyes\t") != strings.Count(after, "\n")-2 {
		t.Errorf("%s", after)
	}
	other, _, _ := strings.Cut(strings.Split(after, "\n")[1], "\t")
	checkPrints(t, dir, "labels topics --json", "\"topic\": "+other+",\n    \"name\": \"Name "+other+"\",\n    \"proposed\": true\n", "")
	dir.Write(t, "again.tsv", []byte(after))
	dir.MustRun(t, "labels topics --import again.tsv")
	checkOutput(t, dir, "labels topics --topics 3", after)
	dir.Write(t, "all.tsv", []byte(strings.ReplaceAll(after, "\tyes\t", "\t\t")))
	dir.MustRun(t, "labels topics --import all.tsv")
	if strings.Contains(labels(), "\tyes\t") {
		t.Error("labels of a person are marked as proposed")
	}
}
