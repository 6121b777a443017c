//go:build gpu

// Package driver loads the CUDA driver on first use, so that a program with GPU support also starts on machines
// without one. It adds the driver functions that [gorgonia.org/cu] lacks. Call [Err] first, because
// the functions of cu fail until Err has returned nil:
//
//	if err := driver.Err(); err != nil {
//		return err
//	}
//	n, err := cu.NumDevices()
package driver

/*
// With these flags cu's -lcuda finds libcuda.a, which is empty, instead of libcuda.so.
// --as-needed drops libcuda.so if the linker finds it nevertheless. The flags must precede
// cu's, so every package that imports cu repeats them.
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

// oldest is CUDA 11.8, in the format of cuDriverGetVersion. It is the first version of the driver that supports
// PTX 7.8, the version of the kernels.
const oldest = 11080

var load = sync.OnceValue(func() error {
	libraries := []string{"libcuda.so.1", "libcuda.so"}
	// Folders of containers, WSL and NixOS; the dynamic linker may not search them.
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
		return fmt.Errorf("the CUDA driver did not start: cuInit: %w", Describe(err))
	}
	switch version := cu.Version(); {
	case version < 0:
		return errors.New("the CUDA driver doesn't report its version")
	case version < oldest:
		return fmt.Errorf("the CUDA driver is for CUDA %s, want %s or newer: update the NVIDIA driver", versionString(version), versionString(oldest))
	}
	return nil
})

// Err loads and initialises the CUDA driver on the first call, and returns the reason if that fails. It loads
// the library in the environment variable OVERCOMPLETE_LIBCUDA, or else libcuda.so.1 from the folders of
// the dynamic linker, containers, WSL and NixOS.
func Err() error { return load() }

// open loads the first library that can be loaded. If all fail, it returns the error of the first.
func open(libraries []string) (err error) {
	for _, library := range libraries {
		name := C.CString(library)
		message := C.open_driver(name)
		C.free(unsafe.Pointer(name))
		if message == nil {
			return nil
		}
		if err == nil {
			err = errors.New(C.GoString(message))
		}
		C.free(unsafe.Pointer(message))
	}
	return err
}

// Version returns the newest version of CUDA that the driver supports, such as "12.4".
func Version() string { return versionString(cu.Version()) }

func versionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// UUID returns the UUID of a GPU or of a MIG instance.
func UUID(device cu.Device) (uuid [16]byte, err error) {
	err = asError(C.cuDeviceGetUuid_v2((*C.CUuuid)(unsafe.Pointer(&uuid)), C.CUdevice(device)))
	return uuid, err
}

// HostAlloc returns page-locked host memory, for asynchronous copies. It belongs to the current context.
func HostAlloc(bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	err := asError(C.cuMemAllocHost(&p, C.size_t(bytes)))
	return p, err
}

// HostFree frees memory that [HostAlloc] returned.
func HostFree(p unsafe.Pointer) error { return asError(C.cuMemFreeHost(p)) }

// SetDynamicShared sets the limit of dynamic shared memory per block of a kernel, in bytes. The default is
// 48 KiB.
func SetDynamicShared(fn cu.Function, bytes int) error {
	// A cu.Function is a CUfunction in an unexported field.
	f := *(*C.CUfunction)(unsafe.Pointer(&fn))
	return asError(C.cuFuncSetAttribute(f, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Launch launches a kernel, whose only argument is a struct, on a grid of x × y blocks. The argument
// shared is the number of bytes of dynamic shared memory per block. A cooperative launch fails unless all blocks can
// run at once.
func Launch(fn cu.Function, x, y, threads, shared int, cooperative bool, stream cu.Stream, argument unsafe.Pointer) error {
	f, s := *(*C.CUfunction)(unsafe.Pointer(&fn)), *(*C.CUstream)(unsafe.Pointer(&stream))
	return asError(C.launch_kernel(f, C.uint(x), C.uint(y), C.uint(threads), C.uint(shared), C.bool(cooperative), s, argument))
}

// Graph is a CUDA graph, ready to launch.
type Graph struct{ executable C.CUgraphExec }

// Capture returns a graph of the work that f queues in a stream, without running it. f must not allocate device
// memory, wait for the stream, launch a kernel for the first time, or change the thread.
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

// Launch queues the graph in a stream.
func (g *Graph) Launch(stream cu.Stream) error {
	return asError(C.cuGraphLaunch(g.executable, *(*C.CUstream)(unsafe.Pointer(&stream))))
}

// Destroy releases the graph. Pending launches still run.
func (g *Graph) Destroy() error { return asError(C.cuGraphExecDestroy(g.executable)) }

// Describe adds advice to an error of the driver, if there is any advice. If cu doesn't know the error, Describe uses the
// driver's name for it. It returns other errors unchanged.
func Describe(err error) error {
	code := reflect.ValueOf(err)
	if code.Kind() != reflect.Int {
		return err
	}
	result, text := C.CUresult(code.Int()), err.Error()
	var name *C.char
	if strings.HasPrefix(text, "UnknownErrorCode") && C.cuGetErrorName(result, &name) == C.CUDA_SUCCESS && name != nil {
		text = C.GoString(name)
	}
	if remedy := advice(result); remedy != "" {
		text += ": " + remedy
	}
	if text == err.Error() {
		return err
	}
	return describedError{err, text}
}

// describedError is an error of cu with another text.
type describedError struct {
	error
	text string
}

func (n describedError) Error() string { return n.text }
func (n describedError) Unwrap() error { return n.error }

// advice returns the remedy for a failed call, or "" if none is known.
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

// asError returns cu's error for a result; nil for success.
func asError(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return convert(cu.Success, int(r))
}

// convert converts code to the type of its first argument, because cu doesn't export the type of its errors.
func convert[T interface {
	~int
	error
}](_ T, code int) error {
	return T(code)
}
