package e2e

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"overcomplete/testonly/clitest"
)

func TestMain(m *testing.M) {
	// The program would also ignore the signals that the tests ignore, for instance under nohup.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	clitest.MainOfBuilt(m)
}
