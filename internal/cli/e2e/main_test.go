package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"overcomplete/internal/cli"
	"overcomplete/internal/testonly/clitest"
)

func TestMain(m *testing.M) {
	// What the tests ignore, under nohup for one, the program would too.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	if os.Getenv(watched) != "" {
		os.Exit(runWatched())
	}
	clitest.MainOfBuilt(m)
}

// watched is set in the environment of a test binary that is to be the program, and to tell
// what watch asks for.
const watched = "OVERCOMPLETE_TEST_WATCHED"

// runWatched is the program, and writes a line for each line of standard input: the number of
// goroutines, and the bytes that are reachable.
func runWatched() int {
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(runtime.NumGoroutine(), m.HeapAlloc)
		}
		os.Exit(1) // who asked is no more
	}()
	return cli.Main()
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
