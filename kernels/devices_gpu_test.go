//go:build gpu

package kernels

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/encode/encodetest"
)

// Whoever asks for the devices may be at work on one.
func TestDevicesKeepContext(t *testing.T) {
	devices, err := GPUs()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range devices {
		mine, err := cu.Device(i).MakeContext(cu.SchedAuto)
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Destroy()
		again, err := GPUs()
		if err != nil || len(again) != len(devices) {
			t.Errorf("%d devices, then %d, %v", len(devices), len(again), err)
		}
		if now, err := cu.CurrentContext(); err != nil || now != mine {
			t.Errorf("context %v is current, want %v; %v", now, mine, err)
		}
	}
	for _, d := range devices {
		if d.Name == "" || d.Free == 0 || d.Free > d.Total || d.Driver == "" || d.Major == 0 {
			t.Errorf("%+v", d)
		}
	}
}

// Those kernels are compiled that are needed, and who asked for it knows when.
func TestCompiling(t *testing.T) {
	_, dictionary := encodetest.Problem(1, 8, 16)
	options := encode.Options{Lambda: 1, Steps: 1, Most: 4}
	var told []string
	d := Device{Compiling: func() func() {
		told = append(told, "compiling")
		return func() { told = append(told, "done") }
	}}
	for _, tt := range []struct {
		name  string
		files int
		open  func() (*gpu, error)
	}{
		{"encoder", 3, func() (*gpu, error) {
			e, err := d.Encoder(dictionary, options)
			return e.(*Encoder).gpu, err
		}},
		{"learner", 4, func() (*gpu, error) {
			l, err := d.Learner(dictionary, 1, options)
			return l.(*Learner).gpu, err
		}},
		{"trainer", 6, func() (*gpu, error) {
			b, err := d.Trainer(sample(10))
			return b.(*Trainer).gpu, err
		}},
	} {
		told = nil
		g, err := tt.open()
		if err != nil {
			t.Fatal(err)
		}
		if len(g.modules) != tt.files || !slices.Equal(told, []string{"compiling", "done"}) {
			t.Errorf("%s: kernels of %d files, want %d; told %q", tt.name, len(g.modules), tt.files, told)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	for variable, want := range map[string][]string{"EMULATED_FAIL_CONTEXT": nil, "EMULATED_FAIL_MODULE": {"compiling", "done"}} {
		t.Run(variable, func(t *testing.T) {
			told = nil
			setting(t, variable, "222")
			if _, err := d.Trainer(sample(10)); !errors.Is(err, ErrUnavailable) || !slices.Equal(told, want) {
				t.Errorf("told %q, want %q; error %v", told, want, err)
			}
		})
	}
}

// exclusive is a driver with two devices; the second is another process's.
const exclusive = `
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strcpy(name, device == 0 ? "first" : "second"); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return attribute != 75 && attribute != 76; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1000 + device; return 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) { static int some; *context = &some; return device == 0 ? 0 : 46; }
int cuCtxDestroy_v2(void *context) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 600; *total = 1000; return 0; }
`

func TestDevicesExclusive(t *testing.T) {
	if os.Getenv("LIST_DEVICES") != "" { // in a process of its own: one loads one driver
		fmt.Println(GPUs())
		return
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "exclusive.c"), filepath.Join(dir, "libcuda.so.1")
	if err := os.WriteFile(source, []byte(exclusive), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDevicesExclusive$")
	cmd.Env = append(os.Environ(), "LIST_DEVICES=1", "OVERCOMPLETE_LIBCUDA="+library)
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintln([]GPU{
		{Index: 0, Name: "first", Major: 9, Free: 600, Total: 1000, Driver: "12.8"},
		{Index: 1, Name: "second", Major: 9, Total: 1001, Driver: "12.8", Problem: "cuCtxCreate: UnknownErrorCode:46"},
	}, error(nil))
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v\n%swant\n%s", err, out, want)
	}
}
