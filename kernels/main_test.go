//go:build gpu

package kernels

import (
	"fmt"
	"os"
	"testing"

	"overcomplete/kernels/emulator"
)

// emulated is whether tests run on the emulated driver, whose memory and faults
// they can choose. With OVERCOMPLETE_LIBCUDA=libcuda.so.1 they run on a GPU.
var emulated = os.Getenv("OVERCOMPLETE_LIBCUDA") == ""

// sanitizers are the flags that the emulated driver is built with; go test -asan
// sets them.
var sanitizers []string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if emulated {
			dir, err := os.MkdirTemp("", "")
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			defer os.RemoveAll(dir)
			library, err := emulator.Build(dir, sanitizers...)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			os.Setenv("OVERCOMPLETE_LIBCUDA", library)
		}
		return m.Run()
	}())
}
