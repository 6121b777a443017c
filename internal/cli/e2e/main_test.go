package e2e

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

func TestMain(m *testing.M) {
	// Signals that the tests ignore, for instance under nohup, the program would ignore, too.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	clitest.MainOfBuilt(m)
}

// checkCovered checks that there is a line for every command.
func checkCovered(t *testing.T, lines []string) {
	t.Helper()
	dir := clitest.New(t)
	var visit func(command []string)
	visit = func(command []string) {
		_, list, _ := clitest.Output(t, dir.Command(slices.Concat([]string{"__complete"}, command, []string{""})...))
		leaf := true
		for line := range strings.Lines(list) {
			if name, _, ok := strings.Cut(line, "\t"); ok && name != "help" && name != "completion" && name[0] != '-' {
				leaf = false
				visit(append(slices.Clone(command), name))
			}
		}
		tried := func(line string) bool { return strings.HasPrefix(line+" ", strings.Join(command, " ")+" ") }
		if leaf && !slices.ContainsFunc(lines, tried) {
			t.Errorf("%q is not tried", command)
		}
	}
	visit(nil)
}
