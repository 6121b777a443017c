//go:build gpu

package kernels

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/backendtest"
	"overcomplete/testonly/encodetest"
)

func TestLearner(t *testing.T) { onSchedules(t, testLearner) }

func testLearner(t *testing.T, next func() (hostRows bool)) {
	var last *learner
	// Products have TF32 factors, which round by up to 2⁻¹². The errors of the sums affect the dictionary updates, which
	// are small differences.
	tolerance := backendtest.LearnerTolerance{Codes: 3e-5, Products: 5e-4, Atoms: 0.003, Step: func() float64 {
		defer last.gpu.enter()()
		step := make([]float64, 1)
		toHost(last.gpu, step, last.encoder.step, last.gpu.compute)
		last.gpu.synchronize(last.gpu.compute)
		return step[0]
	}}
	backendtest.RunLearner(t, tolerance, func(x []float32, d *model.Dictionary, norm float64, o encode.Options, _ int) (backend.Learner, error) {
		hostRows := next()
		l, err := newLearner(Device{}, x, d, norm, o, 100)
		if hostRows && err == nil {
			l.resident = 0
		}
		last = l
		return l, err
	})
}

// learnerSample is a problem of five blocks of atoms and two batches. The encoder splits each batch.
var learnerSample = struct{ rows, dim, atoms, batch int }{60, 21, 150, 16}

// learnedSample holds all results of learning.
type learnedSample struct {
	sums        backend.Sums
	codes, rows []float32 // G and B
	atoms       []float32
	resident    bool
}

// learnSample learns from the sample, with its last row repeated until there are n rows. With hostRows the learner
// reads its rows from the host, even if they fit on the device.
func learnSample(n int, hostRows bool) (r learnedSample, err error) {
	s := learnerSample
	x, d := encodetest.Problem(s.rows, s.dim, s.atoms)
	for range n - s.rows {
		x = append(x, x[len(x)-s.dim:]...)
	}
	l, err := newLearner(Device{}, x, d, 5, encode.Options{Lambda: 1, Steps: 5, Nonzeros: 20}, s.batch)
	if err != nil {
		return r, err
	}
	defer l.Close()
	if hostRows {
		l.resident = 0
	}
	var batches []backend.Minibatch
	for half := range slices.Chunk(sampleRows(), s.rows/2) {
		batches = append(batches, backend.Minibatch{Rows: half, Forgetting: 0.5})
	}
	if r.sums, err = l.Learn(context.Background(), batches, 0.5, 1, nil); err != nil {
		return r, err
	}
	for m, to := range map[checkpoint.Matrix]*[]float32{checkpoint.CodeProducts: &r.codes, checkpoint.RowProducts: &r.rows} {
		if err := l.SaveState(m, func(part []float32) error {
			*to = append(*to, part...)
			return nil
		}); err != nil {
			return r, err
		}
	}
	r.resident = l.resident != 0
	r.atoms, err = l.Dictionary()
	return r, err
}

// sampleRows lists the rows of the sample, the last ones first.
func sampleRows() (rows []int32) {
	for i := range int32(learnerSample.rows) {
		rows = append(rows, int32(learnerSample.rows)-1-i)
	}
	return rows
}

// The results have the same bits for every schedule of the emulated driver, for every amount of memory, and for rows on
// the device or on the host. If not all rows fit on the device, the learner reads them from the host. If a batch
// doesn't fit, learning fails.
func TestLearnerKeepsBits(t *testing.T) {
	want, err := learnSample(learnerSample.rows, false)
	testonly.Must(t, err)
	if !want.resident {
		t.Error("rows are not on the device")
	}
	learned := func(variable, value string, rows int, hostRows, resident bool) {
		t.Run(fmt.Sprintf("%s=%s,host=%t", variable, value, hostRows), func(t *testing.T) {
			setting(t, variable, value)
			got, err := learnSample(rows, hostRows)
			testonly.Must(t, err)
			if got.resident != resident {
				t.Errorf("all rows on the device is %t", got.resident)
			}
			got.resident = true
			if !reflect.DeepEqual(got, want) {
				t.Error("other bits")
			}
		})
	}
	for _, schedule := range schedules {
		learned("EMULATED_SCHEDULE", schedule, learnerSample.rows, false, true)
		learned("EMULATED_SCHEDULE", schedule, learnerSample.rows, true, false)
	}
	for _, seed := range []string{"2", "3"} {
		learned("EMULATED_SEED", seed, learnerSample.rows, seed == "3", seed != "3")
	}
	const many = 50_000 // 4.8 MB, more than remains of the least memory
	least := learnerMemory(t)
	learned("EMULATED_MEMORY", strconv.Itoa(least), many, false, false)
	setting(t, "EMULATED_MEMORY", strconv.Itoa(least-100))
	if _, err := learnSample(many, false); !errors.Is(err, backend.ErrMemory) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %v", err, backend.ErrMemory)
	}
}

// learnerMemory returns the bytes of a device's memory in which the sample just fits.
func learnerMemory(t *testing.T) int {
	t.Helper()
	s := learnerSample
	x, d := encodetest.Problem(1, s.dim, s.atoms)
	l, err := newLearner(Device{}, x, d, 1, encode.Options{Steps: 1, Nonzeros: 20}, s.batch)
	testonly.Must(t, err)
	defer l.Close()
	taken := l.encoder.fixedBytes() + l.bytes() + int64(s.batch)*l.encoder.rowBytes()
	return int((taken + 18) / 19 * 20)
}

// If a launch fails, at once or while it runs, Learn returns no sums and an error that names the kernel.
func TestLearnerFaults(t *testing.T) {
	failEachLaunch(t, "decode_fp32 gather jacobi polish power remember round_atoms scale_atoms search_128 square totals",
		func() error {
			_, err := learnSample(learnerSample.rows, false)
			return err
		})
}

// After a fault all methods fail, and Close returns the error.
func TestLearnerAfterFault(t *testing.T) {
	s := learnerSample
	x, d := encodetest.Problem(s.rows, s.dim, s.atoms)
	setting(t, "EMULATED_LOSE_DEVICE", "9")
	l, err := newLearner(Device{}, x, d, 1, encode.Options{Steps: 1, Nonzeros: 20}, s.batch)
	testonly.Must(t, err)
	learn := func() error {
		_, err := l.Learn(t.Context(), []backend.Minibatch{{Rows: sampleRows()}}, 0, 0, nil)
		return err
	}
	fault := learn()
	if fault == nil {
		t.Fatal("no error")
	}
	again := learn()
	_, read := l.Dictionary()
	for call, err := range map[string]error{"Learn": again, "Dictionary": read, "Close": l.Close()} {
		if err != fault {
			t.Errorf("%s: error %v, want %v", call, err, fault)
		}
	}
	if err := learn(); err != errClosed {
		t.Errorf("error %v, want %v", err, errClosed)
	}
	setting(t, "EMULATED_LOSE_DEVICE", "")
	regain(t)
}

// A failing allocation is an error, except for the resident rows: the learner then reads its rows from the host.
func TestLearnerAllocations(t *testing.T) {
	x, d := encodetest.Problem(1, learnerSample.dim, learnerSample.atoms)
	resident := true
	failed := failEachAllocation(t, func() error {
		l, err := Device{}.Learner(x, d, 1, encode.Options{Steps: 1, Nonzeros: 20})
		if err != nil {
			return err
		}
		defer l.Close()
		resident = l.(*learner).resident != 0
		_, err = l.Learn(t.Context(), []backend.Minibatch{{Rows: []int32{0}}}, 0, 0, nil)
		return err
	})
	// The encoder also allocates dense codes and used atoms, and its slot has no memory for results on the host.
	if want := encoderAllocations + 2 + slotAllocations - 4 + 12; failed != want || resident {
		t.Errorf("%d allocations failed, of %d; all rows on the device is %t", failed, want, resident)
	}
}
