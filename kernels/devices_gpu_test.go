//go:build gpu

package kernels

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
)

// Device.Compiling is called before the compilation of the kernels, and its result afterwards, even on failure.
func TestCompiling(t *testing.T) {
	var told []string
	d := Device{Compiling: func() func() {
		told = append(told, "compiling")
		return func() { told = append(told, "done") }
	}}
	for variable, want := range map[string][]string{"NONE": {"compiling", "done"}, "EMULATED_FAIL_CONTEXT": nil, "EMULATED_FAIL_MODULE": {"compiling", "done"}} {
		t.Run(variable, func(t *testing.T) {
			told = nil
			setting(t, variable, "222")
			b, err := d.Trainer(sample(10))
			if errors.Is(err, ErrUnavailable) != (variable != "NONE") || !slices.Equal(told, want) {
				t.Errorf("told %q, want %q; error %v", told, want, err)
			}
			if err == nil {
				b.Close()
			}
		})
	}
}

// listed is a driver with two devices on which contexts can't be created. The first device has no UUID, the second
// is a slice of a GPU.
const listed = `
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strcpy(name, device == 0 ? "NVIDIA T" : "NVIDIA A MIG 1g.5gb"); return 0; }
int cuDeviceGetUuid_v2(void *uuid, int device) {
	memcpy(uuid, "\x89\x32\xf9\x37\xd7\x2c\x41\x06\xc1\x2f\x20\xbd\x9f\xae\xd9\x06", 16);
	return device == 0 ? 801 : 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return attribute != 75 && attribute != 76; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1000 + device; return 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) { __builtin_trap(); }
`

func TestGPUs(t *testing.T) {
	if os.Getenv("LIST_DEVICES") != "" { // a process of its own, because a process loads only one driver
		fmt.Println(GPUs())
		return
	}
	if !emulated {
		t.Skip("on a machine with a GPU there need be no C compiler")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "listed.c"), filepath.Join(dir, "libcuda.so.1")
	testonly.Must(t, os.WriteFile(source, []byte(listed), 0o666))
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestGPUs$")
	cmd.Env = append(os.Environ(), "LIST_DEVICES=1", "OVERCOMPLETE_LIBCUDA="+library)
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintln([]GPU{
		{Index: 0, Name: "NVIDIA T", Major: 9, Total: 1000, Driver: "12.8"},
		{Index: 1, Name: "NVIDIA A MIG 1g.5gb", UUID: "MIG-8932f937-d72c-4106-c12f-20bd9faed906", Major: 9, Total: 1001, Driver: "12.8"},
	}, error(nil))
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v\n%swant\n%s", err, out, want)
	}
}

// Freed memory is available again.
func TestRoom(t *testing.T) {
	g, err := Device{Memory: 1 << 20}.open()
	testonly.Must(t, err)
	defer g.Close()
	defer g.enter()()
	for range 2 {
		p := alloc[float32](g, 1000)
		if room := g.availableMemory(); room != 1<<20-4000 {
			t.Errorf("%d bytes are left", room)
		}
		free(g, p)
		if room := g.availableMemory(); room != 1<<20 || g.err != nil {
			t.Errorf("%d bytes are left, error %v", room, g.err)
		}
	}
}

// A learner and the encoder after it use one context, and compute the same bits as in two. If the context is
// in use or has failed, a device starts another.
func TestStart(t *testing.T) {
	x, d := encodetest.Problem(encoderSample.rows, encoderSample.dim, encoderSample.atoms)
	o := encode.Options{Lambda: 1, Steps: 5, Nonzeros: 20}
	open := func(device Device) (*learner, error) {
		return newLearner(device, x, d, 5, o, encoderSample.batch)
	}
	run := func(device Device) (codes *encode.Codes, rooms [2]int64) {
		l, err := open(device)
		testonly.Must(t, err)
		before := l.gpu.availableMemory() + l.gpu.allocated
		_, err = l.Learn(t.Context(), []backend.Minibatch{{Rows: sampleRows()}}, 1, 1, nil)
		testonly.Must(t, err)
		atoms, err := l.Dictionary()
		testonly.Must(t, cmp.Or(err, l.Close()))
		e, err := newEncoder(device, &model.Dictionary{Dim: d.Dim, Atoms: atoms}, o, encoderSample.batch)
		testonly.Must(t, err)
		defer e.Close()
		return encodetest.Encode(t, e, x), [2]int64{before, e.gpu.availableMemory() + e.gpu.allocated}
	}
	want, _ := run(Device{})
	device := Device{}.Start()
	device.pool.started.Wait()
	setting(t, "EMULATED_FAIL_CONTEXT", "46")
	got, rooms := run(device)
	if !reflect.DeepEqual(got, want) {
		t.Error("other codes")
	}
	if rooms[0] != rooms[1] {
		t.Errorf("%d bytes of memory at first, then %d", rooms[0], rooms[1])
	}

	l, err := open(device)
	testonly.Must(t, err)
	if _, err := open(device); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v for a second learner, want the error of a new context", err)
	}
	setting(t, "EMULATED_FAIL_CONTEXT", "")
	second, err := open(device)
	testonly.Must(t, err)
	failure := errors.New("as if a call had failed")
	l.gpu.err = failure
	err = cmp.Or(second.Close(), l.Close())
	kept := device.pool.take()
	if err != failure || kept != second.gpu.session {
		t.Errorf("error %v, or a context that has failed is kept", err)
	}
	device.pool.keep(kept)
	if got, _ := run(device); !reflect.DeepEqual(got, want) {
		t.Error("other codes in another context")
	}
}
