//go:build gpu

package driver

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"overcomplete/testonly"
)

// A process loads only one driver. Each driver is therefore tested in its own process, which reports its
// findings instead of running the tests.
func TestMain(m *testing.M) {
	if os.Getenv("LOOK_AT_DRIVER") == "" {
		os.Exit(m.Run())
	}
	look()
}

func look() {
	_, err := cu.NumDevices()
	fmt.Println("before:", err)

	err = Err()
	fmt.Println("driver:", err)
	fmt.Println("no device:", errors.Is(err, cu.NoDevice))
	fmt.Println("again:", Err() == err)

	n, err := cu.NumDevices()
	fmt.Println("devices:", n, err)
	p, err := HostAlloc(64)
	fmt.Println("allocate:", err)
	if err == nil {
		clear(unsafe.Slice((*byte)(p), 64))
		fmt.Println("free:", HostFree(p))
	}
	fmt.Println("shared:", SetDynamicShared(cu.Function{}, 100_000))
	argument := unsafe.Pointer(&[3]int64{8, 9, 10})
	fmt.Println("launch:", Launch(cu.Function{}, 1, 2, 4, 7, false, cu.Stream{}, argument))
	fmt.Println("launch together:", Launch(cu.Function{}, 1, 2, 4, 7, true, cu.Stream{}, argument))
	graph, err := Capture(cu.Stream{}, func() { fmt.Println("capturing") })
	fmt.Println("capture:", err)
	if err == nil {
		fmt.Println("launch graph:", graph.Launch(cu.Stream{}))
		fmt.Println("destroy graph:", graph.Destroy())
	}
}

// fake is the source of a driver, from which a test's definitions remove functions.
const fake = `
#include <stdlib.h>
#ifndef VERSION
#define VERSION 12040
#endif
#ifdef INIT
int cuInit(unsigned flags) { return flags == 0 ? INIT : 1; }
#endif
int cuGetErrorName(int result, const char **name) {
	*name = result == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" : NULL;
	return *name ? 0 : 1;
}
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuDeviceGetCount(int *count) { *count = 3; return 0; }
#ifdef HOST
int cuMemAllocHost_v2(void **p, size_t bytes) { *p = bytes == 64 ? malloc(bytes) : NULL; return *p ? 0 : 2; }
int cuMemFreeHost(void *p) { free(p); return 0; }
#endif
// 8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
int cuFuncSetAttribute(void *f, int attribute, int value) { return f == NULL && attribute == 8 && value == 100000 ? 0 : 1; }
#ifdef CAPTURE
static int captures, graph, executable; // numbers of objects
// 1 is CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
int cuStreamBeginCapture_v2(void *stream, int mode) { return stream == NULL && mode == 1 && ++captures == 1 ? 0 : 1; }
int cuStreamEndCapture(void *stream, void **out) {
	*out = CAPTURE == 0 && ++graph ? &graph : NULL;
	return stream == NULL && --captures == 0 ? CAPTURE : 1;
}
int cuGraphInstantiateWithFlags(void **out, void *from, unsigned long long flags) {
	*out = &executable;
	return from == &graph && graph == 1 && flags == 0 && ++executable == 1 ? 0 : 1;
}
int cuGraphDestroy(void *g) { return g == &graph && --graph == 0 ? 0 : 1; }
int cuGraphLaunch(void *g, void *stream) { return g == &executable && executable == 1 && graph == 0 && stream == NULL ? 0 : 1; }
int cuGraphExecDestroy(void *g) { return g == &executable && --executable == 0 ? 0 : 1; }
#endif
// Some arguments are in registers, some on the stack.
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		unsigned shared, void *stream, void **parameters, void **extra) {
	long long *argument = parameters[0];
	return f == NULL && gx == 1 && gy == 2 && gz == 1 && bx == 4 && by == 1 && bz == 1 && shared == 7 &&
		stream == NULL && argument[0] == 8 && argument[1] == 9 && argument[2] == 10 && extra == NULL ? 0 : 1;
}
int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		unsigned shared, void *stream, void **parameters) {
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}
`

const noDriver = "driver: no CUDA driver was found: install the NVIDIA driver, or give the container its GPUs (docker run --gpus all): "

func TestDriver(t *testing.T) {
	for _, tt := range []struct {
		name    string
		defines []string // nil: there is no library
		want    []string // lines
	}{
		{"works", []string{"-DINIT=0", "-DHOST", "-DCAPTURE=0"}, []string{
			"driver: <nil>", "devices: 3 <nil>", "allocate: <nil>", "free: <nil>", "shared: <nil>", "launch: <nil>",
			"launch together: <nil>", "capturing", "capture: <nil>", "launch graph: <nil>", "destroy graph: <nil>"}},
		{"no graph", []string{"-DINIT=0", "-DCAPTURE=901"}, []string{"capturing", "capture: StreamCaptureInvalidated"}},
		{"no library", nil, []string{
			noDriver + "LIBRARY: cannot open shared object file: No such file or directory",
			"devices: 0 NotInitialized", "allocate: NotInitialized", "shared: NotInitialized", "launch: NotInitialized",
			"capture: NotInitialized"}},
		{"another library", []string{}, []string{noDriver + "LIBRARY: undefined symbol: cuInit", "devices: 0 NotInitialized"}},
		{"no GPU", []string{"-DINIT=100"}, []string{"driver: the CUDA driver did not start: cuInit: NoDevice: the driver sees no GPU: " +
			"CUDA_VISIBLE_DEVICES must name one, and a container must have it (docker run --gpus all)", "no device: true"}},
		{"broken", []string{"-DINIT=999"}, []string{"driver: the CUDA driver did not start: cuInit: Unknown: the driver says no more, but dmesg or nvidia-smi may; " +
			"a container needs all of /dev/nvidia*, nvidia-uvm too (docker run --gpus all)"}},
		{"no fabric manager", []string{"-DINIT=802"}, []string{"driver: the CUDA driver did not start: cuInit: SystemNotReady: " +
			"start NVIDIA's services, on machines with NVSwitch the fabric manager (systemctl start nvidia-fabricmanager)"}},
		{"other versions", []string{"-DINIT=803"}, []string{"driver: the CUDA driver did not start: cuInit: SystemDriverMismatch: libcuda and the kernel's module " +
			"are of different versions: restart the machine after an update of the NVIDIA driver; a container must use the host's libcuda"}},
		{"a name of the driver's", []string{"-DINIT=222"}, []string{"driver: the CUDA driver did not start: cuInit: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: " +
			"the driver is too old for these kernels: update the NVIDIA driver"}},
		{"without a name", []string{"-DINIT=34"}, []string{"driver: the CUDA driver did not start: cuInit: UnknownErrorCode:34"}},
		{"old", []string{"-DINIT=0", "-DVERSION=11070"}, []string{"driver: the CUDA driver is for CUDA 11.7, want 11.8 or newer: update the NVIDIA driver"}},
		{"just new enough", []string{"-DINIT=0", "-DVERSION=11080"}, []string{"driver: <nil>"}},
		{"functions missing", []string{"-DINIT=0"}, []string{"driver: <nil>", "devices: 3 <nil>", "allocate: NotSupported", "capture: NotSupported"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			library := filepath.Join(dir, "libcuda.so.1")
			if tt.defines != nil {
				source := filepath.Join(dir, "fake.c")
				testonly.Must(t, os.WriteFile(source, []byte(fake), 0o666))
				args := append([]string{"-shared", "-fPIC", "-o", library, source}, tt.defines...)
				if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
					t.Fatalf("gcc: %v\n%s", err, out)
				}
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "LOOK_AT_DRIVER=1", "OVERCOMPLETE_LIBCUDA="+library)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got := strings.Split(strings.ReplaceAll(string(out), library, "LIBRARY"), "\n")
			for _, want := range append(tt.want, "before: NotInitialized", "again: true") {
				if !slices.Contains(got, want) {
					t.Errorf("no line %q in\n%s", want, out)
				}
			}
		})
	}
}

// The dynamic linker's folders precede the folders of containers, WSL and NixOS.
func TestWhereItIs(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOOK_AT_DRIVER=1", "OVERCOMPLETE_LIBCUDA=", "LD_DEBUG=files")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string // libraries that the linker was asked to load, in order
	for _, m := range regexp.MustCompile(`file=(\S*libcuda\.\S*) \[0\];  (?:dynamically loaded by|generating)`).FindAllStringSubmatch(string(out), -1) {
		if !slices.Contains(got, m[1]) {
			got = append(got, m[1])
		}
	}
	want := []string{"libcuda.so.1", "libcuda.so", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1"}
	if bytes.Contains(out, []byte("driver: <nil>")) { // a machine with a driver: the search ends there
		want = want[:len(got)]
	}
	if len(got) == 0 || !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// A program with GPU support must start on machines without a driver.
func TestNotLinked(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	testonly.Must(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	testonly.Must(t, err)
	for _, library := range libraries {
		if strings.Contains(library, "cuda") {
			t.Errorf("the program is linked to %s", library)
		}
	}
	// The library would call our symbols instead of its own.
	symbols, err := f.DynamicSymbols()
	testonly.Must(t, err)
	for _, s := range symbols {
		if s.Name == "cuInit" || s.Name == "cuMemAlloc_v2" {
			t.Errorf("the program exports or imports %s", s.Name)
		}
	}
}

// Our linker flags must precede cu's -lcuda.
func TestLinkOrder(t *testing.T) {
	cmd := exec.Command("go", "build", "-tags", "gpu", "-ldflags", "-v", "-o", filepath.Join(t.TempDir(), "overcomplete"), "overcomplete")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours, library := bytes.Index(out, []byte(`kernels/internal/driver" "-Wl,--as-needed"`)), bytes.Index(out, []byte(`"-lcuda"`))
	if ours < 0 || library < ours {
		t.Errorf("our flags are at %d of the linker's arguments, -lcuda at %d", ours, library)
	}
}
