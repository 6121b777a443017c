package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"overcomplete/testonly/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, program) }

// interruption is an environment variable that makes a program interrupt itself: when it writes a text for the nth
// time, or before it begins if n is 0.
const interruption = "OVERCOMPLETE_TEST_INTERRUPTION"

// program is Main with the interruption that a test requests.
func program() int {
	at, ok := os.LookupEnv(interruption)
	if !ok {
		return Main()
	}
	var left int
	times, text, _ := strings.Cut(at, " ")
	fmt.Sscan(times, &left)
	ctx, cancel := context.WithCancel(context.Background())
	if left == 0 {
		cancel()
	}
	return run(ctx, os.Args[1:], os.Stdout, writerFunc(func(p []byte) (int, error) {
		if found := strings.Count(string(p), text); found > 0 {
			if left -= found; left <= 0 {
				defer cancel()
			}
		}
		return os.Stderr.Write(p)
	}))
}

// A writerFunc is called for each Write.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// interruptAt runs a command that interrupts itself when it writes a text to standard error for the nth time, or before it
// begins if n is 0. It checks the exit code.
func interruptAt(t *testing.T, dir clitest.Dir, line string, n int, text string) (stdout, stderr string) {
	t.Helper()
	cmd := dir.Command(strings.Fields(line)...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d %s", interruption, n, text))
	code, stdout, stderr := clitest.Output(t, cmd)
	if code != exitInterrupted {
		t.Fatalf("%s: exit code %d, want %d\n%s", line, code, exitInterrupted, stderr)
	}
	return stdout, stderr
}

// interruptAfter runs a training and interrupts it after an epoch.
func interruptAfter(t *testing.T, dir clitest.Dir, line string, epoch int) (stderr string) {
	t.Helper()
	_, stderr = interruptAt(t, dir, line+" --progress", 1, fmt.Sprintf("epoch %d/", epoch))
	return stderr
}

// inProcess runs a command in the process of the test, whose working directory differs.
func inProcess(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

// checkRefusals checks that commands with the same beginning fail with a one-line error, and leave the files of their
// directory unchanged. The argument want maps the rest of a command to parts of its error, separated by " … ".
func checkRefusals(t *testing.T, dir clitest.Dir, begin string, want map[string]string) {
	t.Helper()
	before := dir.Tree(t)
	for args, parts := range want {
		code, stdout, stderr := dir.Run(t, begin+args)
		var complaints []string
		for line := range strings.Lines(stderr) {
			if !strings.HasPrefix(line, "warning: ") && !strings.HasPrefix(line, "read ") {
				complaints = append(complaints, line)
			}
		}
		if code != exitUsage || stdout != "" || len(complaints) != 1 || !strings.HasPrefix(complaints[0], "overcomplete: ") {
			t.Errorf("%s: exit code %d, %q on standard output, on standard error\n%s", begin+args, code, stdout, stderr)
		}
		checkParts(t, begin+args, stderr, parts)
		dir.Unchanged(t, before)
	}
}

// checkPrints checks that a command succeeds, and that it prints the given parts to standard output and to standard error.
func checkPrints(t *testing.T, dir clitest.Dir, line, stdout, stderr string) {
	t.Helper()
	gotOut, gotErr := dir.MustRun(t, line)
	checkParts(t, line, gotOut, stdout)
	checkParts(t, line, gotErr, stderr)
}

// checkParts checks that a command printed the given parts, which are separated by " … ", or nothing if there are none.
func checkParts(t *testing.T, line, printed, parts string) {
	t.Helper()
	for part := range strings.SplitSeq(parts, " … ") {
		if !strings.Contains(printed, part) || parts == "" && printed != "" {
			t.Errorf("%s prints\n%s\nwant %q", line, printed, part)
		}
	}
}

func runJSON[T any](t *testing.T, dir clitest.Dir, line string) (printed T) {
	t.Helper()
	stdout, _ := dir.MustRun(t, line)
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return printed
}

// commands returns a command and all below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		all = append(all, commands(c)...)
	}
	return all
}

func checkOutput(t *testing.T, dir clitest.Dir, line, want string) {
	t.Helper()
	if stdout, _ := dir.MustRun(t, line); stdout != want {
		t.Errorf("%s prints\n%swant\n%s", line, stdout, want)
	}
}

// checkTable checks the table that a command prints, for any width of its columns.
func checkTable(t *testing.T, dir clitest.Dir, line, want string) {
	t.Helper()
	if stdout, _ := dir.MustRun(t, line); !reflect.DeepEqual(rows(stdout), rows(want)) {
		t.Errorf("%s prints\n%swant\n%s", line, stdout, want)
	}
}

// rows returns the fields of a table's lines. Fields are separated by two or more spaces.
func rows(table string) (rows [][]string) {
	for line := range strings.Lines(table) {
		rows = append(rows, between.Split(strings.TrimSpace(line), -1))
	}
	return rows
}

var between = regexp.MustCompile(` {2,}`)
