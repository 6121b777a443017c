//go:build gpu

package kernels

import (
	"fmt"
	"os"
	"testing"

	"overcomplete/internal/testonly/emulator"
)

// libcuda says where the driver is, if it is not to be the emulated one.
const libcuda = "OVERCOMPLETE_LIBCUDA"

// failingLaunch is, in a process that failEachLaunch starts, the number of the launch
// that fails.
const failingLaunch = "OVERCOMPLETE_TEST_FAILING_LAUNCH"

// emulated is whether tests run on the emulated driver, whose memory and faults
// they can choose. With OVERCOMPLETE_LIBCUDA=libcuda.so.1 they run on a GPU.
var emulated = os.Getenv(libcuda) == "" || os.Getenv(failingLaunch) != ""

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv(libcuda) == "" {
			dir, err := os.MkdirTemp("", "")
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			defer os.RemoveAll(dir)
			library, err := emulator.Build(dir)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			os.Setenv(libcuda, library)
		}
		return m.Run()
	}())
}
