//go:build gpu

package kernels

import (
	"fmt"
	"os"
	"testing"

	"overcomplete/testonly/emulator"
)

// libcuda names the library of the driver, such as an emulated one that is already built.
const libcuda = "OVERCOMPLETE_LIBCUDA"

// failingLaunch is the environment variable with the number of the launch that fails, in a process that failEachLaunch
// starts.
const failingLaunch = "OVERCOMPLETE_TEST_FAILING_LAUNCH"

// emulated is true if tests run on the emulated driver, whose memory and faults they can choose. With
// OVERCOMPLETE_TEST_GPU=1 they run on a GPU.
var emulated = os.Getenv("OVERCOMPLETE_TEST_GPU") == ""

func TestMain(m *testing.M) {
	if emulated && os.Getenv(libcuda) == "" {
		library, err := emulator.Build()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Setenv(libcuda, library)
	}
	os.Exit(m.Run())
}
