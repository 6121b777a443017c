//go:build gpu

// Package driver loads the CUDA driver when it is first asked for, so that a
// program with GPU support starts on machines without one. It also has the few
// of the driver's functions that [gorgonia.org/cu] lacks.
//
// Until [Err] has returned nil, all functions of cu fail.
package driver

/*
// In place of libcuda.so, cu's -lcuda shall find libcuda.a, which is empty, and be
// dropped should it find libcuda.so nevertheless. These flags must come before
// cu's, so that other packages that import cu need them too.
#cgo LDFLAGS: -L${SRCDIR} -Wl,--as-needed -ldl
#cgo CFLAGS: -I/usr/local/cuda/include
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// oldest is the first version of the driver's interface, as cuDriverGetVersion
// has it, that knows the PTX of our kernels: 7.8, of CUDA 11.8.
const oldest = 11080

var load = sync.OnceValue(func() error {
	libraries := []string{"libcuda.so.1", "libcuda.so"}
	// Where containers, WSL and NixOS put it, which the system's linker need not be told of.
	for _, folder := range []string{"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib"} {
		libraries = append(libraries, folder+"/libcuda.so.1")
	}
	if path := os.Getenv("OVERCOMPLETE_LIBCUDA"); path != "" {
		libraries = []string{path}
	}
	if err := open(libraries); err != nil {
		return fmt.Errorf("no CUDA driver was found: install the NVIDIA driver, or give the container its GPUs (docker run --gpus all): %w", err)
	}
	if err := asError(C.start_driver()); err != nil {
		return fmt.Errorf("the CUDA driver did not start: cuInit: %w", Named(err))
	}
	switch version := cu.Version(); {
	case version < 0:
		return errors.New("the CUDA driver does not tell its version")
	case version < oldest:
		return fmt.Errorf("the CUDA driver is for CUDA %s, want %s or newer: update the NVIDIA driver", versionString(version), versionString(oldest))
	}
	return nil
})

// Err loads and starts the CUDA driver, when called for the first time, and
// returns why none can be used. The driver is libcuda.so.1, where the system's linker or
// else containers, WSL or NixOS have it, or the library that the environment variable
// OVERCOMPLETE_LIBCUDA names.
func Err() error { return load() }

// open loads the first library that there is.
func open(libraries []string) (err error) {
	for _, library := range libraries {
		name := C.CString(library)
		message := C.open_driver(name)
		C.free(unsafe.Pointer(name))
		if message == nil {
			return nil
		}
		if err == nil { // the usual name tells more
			err = errors.New(C.GoString(message))
		}
		C.free(unsafe.Pointer(message))
	}
	return err
}

// Version returns the newest version of CUDA that the driver supports, such as "12.4".
func Version() string { return versionString(cu.Version()) }

func versionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// UUID returns a GPU's UUID or, in a slice of one (MIG), the slice's.
func UUID(device cu.Device) (uuid [16]byte, err error) {
	err = asError(C.cuDeviceGetUuid_v2((*C.CUuuid)(unsafe.Pointer(&uuid)), C.CUdevice(device)))
	return uuid, err
}

// HostAlloc returns page-locked memory of the host, which the device copies
// from and to on its own. It belongs to the current context.
func HostAlloc(bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	err := asError(C.cuMemAllocHost(&p, C.size_t(bytes)))
	return p, err
}

// HostFree frees what [HostAlloc] returned.
func HostFree(p unsafe.Pointer) error { return asError(C.cuMemFreeHost(p)) }

// SetDynamicShared lets a kernel be launched with up to so many bytes of
// dynamic shared memory a block. Without it, 48 KiB are the most.
func SetDynamicShared(fn cu.Function, bytes int) error {
	// A cu.Function is a CUfunction, which it does not export.
	f := *(*C.CUfunction)(unsafe.Pointer(&fn))
	return asError(C.cuFuncSetAttribute(f, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Launch starts a kernel with one argument, a struct, in a grid of x × y blocks.
func Launch(fn cu.Function, x, y, threads, shared int, stream cu.Stream, argument unsafe.Pointer) error {
	f, s := *(*C.CUfunction)(unsafe.Pointer(&fn)), *(*C.CUstream)(unsafe.Pointer(&stream))
	return asError(C.launch_kernel(f, C.uint(x), C.uint(y), C.uint(threads), C.uint(shared), s, argument))
}

// A Graph is work for a stream that is launched as one.
type Graph struct{ executable C.CUgraphExec }

// Capture returns the work that f gives to a stream, which does none of it. Meanwhile the thread
// must not allocate, wait for the stream, or launch a kernel for the first time; and it must be
// the same thread at the end.
func Capture(stream cu.Stream, f func()) (*Graph, error) {
	s, g := *(*C.CUstream)(unsafe.Pointer(&stream)), new(Graph)
	if err := asError(C.cuStreamBeginCapture(s, C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
		return nil, err
	}
	f()
	if err := asError(C.end_capture(s, &g.executable)); err != nil {
		return nil, err
	}
	return g, nil
}

// Launch has a stream do the work.
func (g *Graph) Launch(stream cu.Stream) error {
	return asError(C.cuGraphLaunch(g.executable, *(*C.CUstream)(unsafe.Pointer(&stream))))
}

// Destroy releases the graph. Work that was launched is still done.
func (g *Graph) Destroy() error { return asError(C.cuGraphExecDestroy(g.executable)) }

// Named gives an error of the driver its name, the driver's own where cu has none, and says
// what to do about it, if that is known.
func Named(err error) error {
	code := reflect.ValueOf(err)
	if code.Kind() != reflect.Int {
		return err
	}
	result, text := C.CUresult(code.Int()), err.Error()
	var name *C.char
	if strings.HasPrefix(text, "UnknownErrorCode") && C.cuGetErrorName(result, &name) == C.CUDA_SUCCESS && name != nil {
		text = C.GoString(name)
	}
	if what := advice(result); what != "" {
		text += ": " + what
	}
	if text == err.Error() {
		return err
	}
	return named{err, text}
}

// named is an error of cu's in other words.
type named struct {
	error
	text string
}

func (n named) Error() string { return n.text }
func (n named) Unwrap() error { return n.error }

// advice returns what to do about a result, or "".
func advice(result C.CUresult) string {
	switch result {
	case C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
		return "install the driver's compiler, libnvidia-ptxjitcompiler.so.1 (Debian's package libnvidia-ptxjitcompiler1), or name its folder in LD_LIBRARY_PATH"
	case C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
		return "the driver is too old for these kernels: update the NVIDIA driver"
	case C.CUDA_ERROR_DEVICE_UNAVAILABLE:
		return "another process uses the GPU alone, or its compute mode allows none: choose another GPU, wait, or have root allow several (nvidia-smi -c 0)"
	case C.CUDA_ERROR_NO_DEVICE:
		return "the driver sees no GPU: CUDA_VISIBLE_DEVICES must name one, and a container must have it (docker run --gpus all)"
	case C.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
		return "the libcuda of a cuda-compat package, which this GPU does not support, hides the driver's: take its folder from LD_LIBRARY_PATH, or update the NVIDIA driver"
	case C.CUDA_ERROR_SYSTEM_NOT_READY:
		return "start NVIDIA's services, on machines with NVSwitch the fabric manager (systemctl start nvidia-fabricmanager)"
	case C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
		return "libcuda and the kernel's module are of different versions: restart the machine after an update of the NVIDIA driver; a container must use the host's libcuda"
	case C.CUDA_ERROR_UNKNOWN:
		return "the driver says no more, but dmesg or nvidia-smi may; a container needs all of /dev/nvidia*, nvidia-uvm too (docker run --gpus all)"
	case C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT, C.CUDA_ERROR_ASSERT, C.CUDA_ERROR_HARDWARE_STACK_ERROR,
		C.CUDA_ERROR_ILLEGAL_INSTRUCTION, C.CUDA_ERROR_MISALIGNED_ADDRESS, C.CUDA_ERROR_INVALID_ADDRESS_SPACE,
		C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED:
		return "no GPU works in this process from now on: begin again in a new one"
	}
	return ""
}

// asError returns cu's error for a result.
func asError(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return convert(cu.Success, int(r))
}

// convert gives code the type of its first argument: that of cu's errors is not
// exported.
func convert[T interface {
	~int
	error
}](_ T, code int) error {
	return T(code)
}
