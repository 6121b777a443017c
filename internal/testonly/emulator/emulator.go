// Package emulator builds a CUDA driver that needs no GPU, for tests: a libcuda.so.1
// over host memory.
//
// Its kernels are the very .cu files of package kernels, compiled as host C++ against
// libcuda/emulation.h. The threads of a block are fibers on one OS thread. They run one
// after the other, each until it must wait for others, in an order that is drawn for
// each warp and each block, so that what a kernel computes is a matter of its
// synchronisation, and a mistake in that shows: a barrier that some threads don't come to
// is reported, shared memory starts as NaNs, asynchronous copies are done when they are
// waited for and no sooner.
//
// The driver's functions behave as documented by NVIDIA, and where that leaves a choice
// they choose what makes mistakes show. Streams are queues whose work is done when a
// synchronisation requires it, or in other orders that are allowed. Asynchronous copies read
// and write the host's memory then, page-locked or not. Device memory starts as NaNs and
// ends at a page that must not be touched. A kernel's fault leaves the process of no use:
// whatever is called then, in whatever context, gives the fault's error. The PTX is read
// for the names and parameters of its kernels only.
//
// A stream that is captured does nothing, and a launch of the graph has it do all that it was
// given meanwhile. What CUDA lets pass and this driver does not: the capture of a kernel's first
// launch, with which newer drivers load the kernel; copies, in a graph, of the host's memory
// that is not page-locked; and graphs of more than one stream.
//
// Environment variables set it up. Read by cuCtxCreate, which also starts counting anew,
// but for EMULATED_FAIL_MODULE, which is read when a module is loaded:
//
//	EMULATED_MEMORY           bytes of a device's memory (default 1 GiB)
//	EMULATED_FAIL_CONTEXT     n: making a context on device 0 fails with the CUresult n
//	EMULATED_FAIL_ALLOCATION  n: the context's n-th allocation, of device or page-locked
//	                          memory, fails
//	EMULATED_FAIL_MODULE      n: loading a module fails with the CUresult n
//	EMULATED_FAIL_LAUNCH      n: the context's n-th kernel launch faults
//	EMULATED_LOSE_DEVICE      n: from the n-th launch on every call fails, and so does
//	                          making a context until the variable is taken away
//	EMULATED_SEED             of the order of threads (default 1)
//	EMULATED_LOG              a file to which each launch adds its kernel's name, a line,
//	                          and a graph's launch those of all its kernels, after "graph:"
//	EMULATED_SCHEDULE         lazy (default)
//	                          eager: work, and asynchronous copies in kernels, are done at once
//	                          copies: copies, and all but kernels, are done as soon as what
//	                          they must follow is done; kernels as lazily as ever
//	                          kernels: kernels are done at once, with what they must follow,
//	                          and the rest lazily
//
// Read by cuInit:
//
//	EMULATED_FAIL_INIT        n: cuInit fails with the CUresult n
//	EMULATED_DEVICES          number of devices (default 1)
//	EMULATED_CAPABILITY       their compute capabilities (default 8.0), such as 8.0,9.0; the last
//	                          one is of all further devices, too; it says how much shared memory
//	                          a block may have
package emulator

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Build compiles the driver, with the kernels as they are in the source tree, to
// dir/libcuda.so.1, and returns that path. It takes some seconds and needs g++, Linux, and
// x86-64 or arm64. In what go builds with -asan, the driver has the sanitizers of addresses
// and of undefined behaviour.
func Build(dir string) (library string, err error) {
	library = filepath.Join(dir, "libcuda.so.1")
	return library, compile(library, "libcuda/kernels.cpp", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1,-z,defs")
}

// compile links the emulator with the kernels that the named file, relative to this
// directory, registers.
func compile(output, kernels string, flags ...string) error {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return errors.New("emulator: its sources can't be found: built with -trimpath")
	}
	here := filepath.Dir(file)
	// No contraction of a·b + c: results don't depend on the machine. The kernels read
	// floats as float4.
	arguments := []string{"-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread",
		"-Wall", "-Wextra", "-Wno-unknown-pragmas", "-I" + filepath.Join(here, "libcuda"), "-I" + filepath.Join(here, "../../../kernels")}
	arguments = append(append(arguments, sanitizers...), flags...)
	arguments = append(arguments, "-o", output)
	for _, source := range []string{kernels, "libcuda/driver.cpp", "libcuda/grid.cpp", "libcuda/fibers.cpp"} {
		arguments = append(arguments, filepath.Join(here, source))
	}
	if messages, err := exec.Command("g++", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("emulator: g++: %w\n%s", err, messages)
	}
	return nil
}
