//go:build linux

package emulator

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDriver runs the checks of testdata/selftest.cpp, which has kernels of its own, each
// in a process of its own: as they are, and with every access to memory checked.
func TestDriver(t *testing.T) {
	for _, build := range []struct {
		name  string
		flags []string
	}{
		{"plain", nil},
		{"sanitized", []string{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}},
	} {
		t.Run(build.name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "selftest")
			if err := compile(program, "testdata/selftest.cpp", build.flags...); err != nil {
				t.Fatal(err)
			}
			names, err := exec.Command(program).Output()
			if err != nil {
				t.Fatal(err)
			}
			checks := strings.Fields(string(names))
			if len(checks) == 0 {
				t.Fatal("the self-test has no checks")
			}
			for _, name := range checks {
				t.Run(name, func(t *testing.T) {
					if output, err := exec.Command(program, name).CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, output)
					}
				})
			}
		})
	}
}

// TestBuild looks at the library with the project's kernels: it exports the driver's
// functions under the names that cuda.h maps them to, and nothing else.
func TestBuild(t *testing.T) {
	t.Parallel()
	library, err := Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			got = append(got, s.Name)
		}
	}
	want := strings.Fields(`
		cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString
		cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2 cuDeviceGetUuid
		cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxSetCurrent cuCtxGetCurrent cuCtxPushCurrent_v2 cuCtxPopCurrent_v2
		cuCtxSynchronize
		cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemAllocHost_v2 cuMemHostAlloc cuMemFreeHost
		cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
		cuMemsetD8_v2 cuMemsetD8Async cuMemsetD32_v2 cuMemsetD32Async
		cuModuleLoadData cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction
		cuFuncSetAttribute cuFuncGetAttribute cuOccupancyMaxActiveBlocksPerMultiprocessor cuLaunchKernel
		cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamQuery cuStreamWaitEvent
		cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventSynchronize cuEventQuery cuEventElapsedTime
		cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphLaunch cuGraphDestroy cuGraphExecDestroy`)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("exports\n%v\nwant\n%v", got, want)
	}
}
