// Package emulator builds a CUDA driver that needs no GPU, for tests: a libcuda.so.1 over host memory.
//
//	library, err := emulator.Build()
//	os.Setenv("OVERCOMPLETE_LIBCUDA", library) // before package driver loads it
//
// Its kernels are the .cu files of package kernels, compiled as host C++ with libcuda/emulation.h. The threads of a
// block are fibers on one OS thread. They run one after the other, each until it must wait for others, in an order
// drawn for each warp and each block. Missing synchronisation therefore changes results, or is reported: a barrier
// that some threads don't reach is an error, shared memory starts as NaNs, and asynchronous copies happen only when
// they are waited for.
//
// The driver's functions behave as NVIDIA documents. If the documentation leaves a choice, they choose the behaviour
// that exposes mistakes. Streams are queues whose work runs when a synchronisation requires it, or in other permitted
// orders. Asynchronous copies access host memory only when they run, page-locked or not. Device memory starts as NaNs
// and ends at a protected page. After a fault of a kernel every call in every context returns its error. The driver
// reads only the names and parameters of kernels from PTX.
//
// A captured stream runs nothing; a launch of the graph runs the captured work. The emulator rejects some uses that
// CUDA permits: capture of the first launch of a kernel, because newer drivers load the kernel then; in a graph, copies
// of host memory that isn't page-locked; and graphs of several streams.
//
// Environment variables configure the driver. cuCtxCreate reads these and resets its counters. (EMULATED_FAIL_MODULE
// is read when a module is loaded.)
//
//	EMULATED_MEMORY           bytes of a device's memory (default 1 GiB)
//	EMULATED_FAIL_CONTEXT     n: creating a context on device 0 fails with the CUresult n
//	EMULATED_FAIL_ALLOCATION  n: the context's n-th allocation, of device or page-locked
//	                          memory, fails
//	EMULATED_FAIL_MODULE      n: loading a module fails with the CUresult n
//	EMULATED_FAIL_LAUNCH      n: the context's n-th kernel launch faults
//	EMULATED_LOSE_DEVICE      n: from the n-th launch on every call fails; creating a
//	                          context fails until the variable is unset
//	EMULATED_SEED             seed of the order of threads (default 1)
//	EMULATED_LOG              a file to which each launch appends a line with its kernel,
//	                          and a graph launch the names of its kernels after "graph:"
//	EMULATED_SCHEDULE         lazy (default): work runs when a synchronisation requires it
//	                          eager: work, and asynchronous copies in kernels, run at once
//	                          copies: all work except kernels runs as soon as its
//	                          dependencies are done; kernels are lazy
//	                          kernels: kernels and their dependencies run at once;
//	                          other work is lazy
//
// cuInit reads these:
//
//	EMULATED_FAIL_INIT        n: cuInit fails with the CUresult n
//	EMULATED_DEVICES          number of devices (default 1)
//	EMULATED_CAPABILITY       compute capabilities (default 8.0), such as 8.0,9.0; the last one
//	                          applies to all further devices; it determines the shared memory
//	                          per block
package emulator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Build compiles the driver, with the kernels of the source tree, to build/emulator/libcuda.so.1, unless this file is
// newer than its sources, and returns its path. It takes some seconds and requires g++ and Linux on x86-64 or arm64. With
// go's flag -asan the driver is compiled with the address and undefined-behaviour sanitizers.
func Build() (library string, err error) {
	here, err := directory()
	if err != nil {
		return "", err
	}
	library = filepath.Join(here, "../../build/emulator"+suffix, "libcuda.so.1")
	if old, err := outdated(library, here); !old || err != nil {
		return library, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(library), "")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "libcuda.so.1")
	if err := compile(built, "libcuda/kernels.cpp", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1,-z,defs"); err != nil {
		return "", err
	}
	return library, os.Rename(built, library) // atomic, because another process may build it, too
}

// directory returns the directory of this package.
func directory() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("emulator: its sources can't be found: built with -trimpath")
	}
	return filepath.Dir(file), nil
}

// outdated reports whether the library is missing or older than one of its sources. It creates the library's directory.
func outdated(library, here string) (bool, error) {
	if err := os.MkdirAll(filepath.Dir(library), 0o777); err != nil {
		return true, err
	}
	built, err := os.Stat(library)
	if err != nil {
		return true, nil
	}
	for _, pattern := range []string{"*.go", "libcuda/*", "../../kernels/*.cu", "../../kernels/*.cuh"} {
		sources, err := filepath.Glob(filepath.Join(here, pattern))
		if err != nil {
			return true, err
		}
		for _, source := range sources {
			if info, err := os.Stat(source); err != nil || info.ModTime().After(built.ModTime()) {
				return true, err
			}
		}
	}
	return false, nil
}

// compile links the emulator with the kernels that the named file, relative to this directory, registers.
func compile(output, kernels string, flags ...string) error {
	here, err := directory()
	if err != nil {
		return err
	}
	// -ffp-contract=off makes results independent of the machine. Kernels require -fno-strict-aliasing, because they
	// read floats as float4.
	arguments := []string{"-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread",
		"-Wall", "-Wextra", "-Wno-unknown-pragmas", "-I" + filepath.Join(here, "libcuda"), "-I" + filepath.Join(here, "../../kernels")}
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
