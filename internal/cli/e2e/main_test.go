package e2e

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/testonly/clitest"
)

func TestMain(m *testing.M) {
	// What the tests ignore, under nohup for one, the program would too.
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
	var visit func(command string)
	visit = func(command string) {
		help, _ := dir.MustRun(t, command+" --help")
		_, list, ok := strings.Cut(help, "\nAvailable Commands:\n")
		if !ok {
			for _, line := range lines {
				if strings.HasPrefix(line+" ", command+" ") {
					return
				}
			}
			t.Errorf("%q is not tried", command)
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if name := strings.Fields(line)[0]; name != "completion" {
				visit(strings.TrimSpace(command + " " + name))
			}
		}
	}
	visit("")
}
