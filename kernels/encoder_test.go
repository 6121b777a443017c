//go:build gpu

package kernels

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
)

// Codes have the bits of the definition before the polish, which is in float32.
func TestEncoder(t *testing.T) {
	onSchedules(t, func(t *testing.T, next func() bool) {
		encodetest.Run(t, 1e-5, func(d *model.Dictionary, o encode.Options, workers int) (encode.Encoder, error) {
			next()
			return newEncoder(Device{}, d, o, 200/workers) // the number of workers determines the batch size
		})
	})
}

// encoderSample is a problem of four batches: each slot of an encoder is used twice.
var encoderSample = struct{ rows, dim, atoms, batch int }{60, 21, 150, 16}

func sampleEncoder(t *testing.T, o encode.Options, batch int) (e *encoder, x []float32, d *model.Dictionary) {
	t.Helper()
	s := encoderSample
	x, d = encodetest.Problem(s.rows, s.dim, s.atoms)
	e, err := newEncoder(Device{}, d, o, batch)
	return testonly.Opened(t, e, err), x, d
}

// Codes have the same bits for every schedule of the emulated driver and every amount of memory.
func TestEncoderKeepsBits(t *testing.T) {
	o := encode.Options{Lambda: 1, Steps: 5, Nonzeros: 20}
	var want *encode.Codes
	var fixed, rowBytes int
	encoded := func(name, variable, value string, batch, wantBatch int) {
		t.Run(name, func(t *testing.T) {
			setting(t, variable, value)
			e, x, _ := sampleEncoder(t, o, batch)
			fixed, rowBytes = int(e.fixedBytes()), int(e.rowBytes())
			if e.batch != wantBatch {
				t.Errorf("%d rows at a time, want %d", e.batch, wantBatch)
			}
			got := encodetest.Encode(t, e, x)
			if want == nil {
				want = got
			}
			if !slices.Equal(got.Ptr, want.Ptr) || !slices.Equal(got.Index, want.Index) || !slices.Equal(got.Value, want.Value) || !slices.Equal(got.Loss, want.Loss) {
				t.Error("other bits")
			}
		})
	}
	for _, schedule := range schedules {
		encoded(schedule, "EMULATED_SCHEDULE", schedule, encode.Block, encode.Block)
		encoded(schedule+", batches", "EMULATED_SCHEDULE", schedule, encoderSample.batch, encoderSample.batch)
	}
	for _, seed := range []string{"2", "3"} {
		encoded("threads in order "+seed, "EMULATED_SEED", seed, encode.Block, encode.Block)
	}
	for _, rows := range []int{7, 60} {
		encoded(fmt.Sprint("memory for ", rows), "EMULATED_MEMORY", strconv.Itoa((fixed+rows*rowBytes+rowBytes/2)*20/19), encode.Block, rows)
	}
	setting(t, "EMULATED_MEMORY", strconv.Itoa(fixed))
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	if _, err := (Device{}).Encoder(d, o); !errors.Is(err, backend.ErrMemory) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %v", err, backend.ErrMemory)
	}
}

// If a launch fails, at once or while it runs, Encode returns no codes and an error that names the kernel.
func TestEncoderFaults(t *testing.T) {
	x, d := encodetest.Problem(encoderSample.rows, encoderSample.dim, encoderSample.atoms)
	failEachLaunch(t, "polish round_atoms scale_atoms search_128", func() error {
		e, err := newEncoder(Device{}, d, encode.Options{Lambda: 1, Steps: 2, Nonzeros: 20}, encoderSample.batch)
		if err != nil {
			return err
		}
		defer e.Close()
		codes, err := encode.Rows(t.Context(), e, x)
		if (codes == nil) != (err != nil) {
			t.Errorf("codes %t, error %v", codes != nil, err)
		}
		return err
	})
}

// A failing allocation is an error, even if the memory was free before: another process may allocate it.
func TestEncoderAllocations(t *testing.T) {
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	failed := failEachAllocation(t, func() error {
		e, err := Device{}.Encoder(d, encode.Options{Steps: 1, Nonzeros: 20})
		if err != nil && !errors.Is(err, backend.ErrMemory) {
			t.Errorf("error %v", err)
		}
		if err == nil {
			e.Close()
		}
		return err
	})
	if want := encoderAllocations + 2*slotAllocations; failed != want {
		t.Errorf("%d allocations failed, of %d", failed, want)
	}
}

// Numbers of allocations: of an encoder without its slots, and of a slot.
const encoderAllocations, slotAllocations = 17, 9

func TestEncoderRefuses(t *testing.T) {
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	zero := &model.Dictionary{Dim: d.Dim, Atoms: make([]float32, len(d.Atoms))}
	for want, test := range map[string]struct {
		d *model.Dictionary
		o encode.Options
	}{
		"exact codes":            {d, encode.Options{Lambda: 1, Gap: 1e-4}},
		"the dictionary is zero": {zero, encode.Options{Steps: 1, Nonzeros: 1}},
	} {
		_, err := Device{}.Encoder(test.d, test.o)
		testonly.ErrorSays(t, want, err, want)
	}
}
