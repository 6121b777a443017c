//go:build full && linux

package e2e

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
)

// The commands in the table of docs/reference/guarantees.md use at most a third more resident memory than it states.
// The tolerance is large because the amount of uncollected memory differs between runs.
func TestMostMemory(t *testing.T) {
	t.Parallel()
	dir := clitest.New(t)
	const words, dim = 40_000, 100
	x := clitest.Vectors(words, dim)
	dir.Write(t, "x.txt", clitest.Text(x))
	dir.Write(t, "pairs.txt", []byte("word1 word2 1\nword3 word4 2\nword5 word6 3\nword7 word8 2\n"))
	text := testonly.ReadFile(t, "../../docs/reference/guarantees.md")
	_, table, _ := strings.Cut(string(text), "\n| command | MB |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.*)`.* \\| (\\d+) \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) != strings.Count(table, "\n") { // the line below the head has no row, and the last row no line break
		t.Fatalf("%d rows in\n%s", len(rows), table)
	}
	for _, row := range rows {
		said, _ := strconv.Atoi(row[2])
		used := resident(t, dir, row[1]) / 1e6
		t.Logf("%4d MB, %4d in the table: %s", used, said, row[1])
		if used > said+said/3 {
			t.Errorf("%s: %d MB, the table has %d", row[1], used, said)
		}
	}
}

// resident runs the program and returns its peak resident memory in bytes. Python starts it, because the peak of a process
// includes its parent's at the time of the start.
func resident(t *testing.T, dir clitest.Dir, args string) int {
	t.Helper()
	const program = `
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)`
	cmd := dir.Command(strings.Fields(args)...)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=2")
	cmd.Args = slices.Concat([]string{"python", "-c", program, cmd.Path}, cmd.Args[1:])
	cmd.Path = testonly.PythonPath(t)
	code, stdout, stderr := clitest.Output(t, cmd)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	kilobytes, err := strconv.Atoi(lines[len(lines)-1])
	if code != 0 || err != nil {
		t.Fatalf("%s: exit code %d, %v\n%s", args, code, err, stderr)
	}
	return kilobytes << 10
}
