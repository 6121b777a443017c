//go:build gpu

package kernels

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/encode/encodetest"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// With FP32 codes are as near to the formulas as the CPU's are on the emulated
// driver. Tensor cores round sums of products less well.
func TestEncoder(t *testing.T) {
	// What the suite calls workers decides how many rows go at a time.
	encodetest.Run(t, 3e-5, func(d *model.Dictionary, o encode.Options, workers int) (encode.Encoder, error) {
		return newEncoder(Device{Precision: FP32}, d, o, 200/workers)
	})
}

// encoderSample is a problem of two batches.
var encoderSample = struct{ rows, dim, atoms, batch int }{60, 21, 150, 40}

func sampleEncoder(t *testing.T, o encode.Options, p Precision, batch int) (e *Encoder, x []float32, d *model.Dictionary) {
	t.Helper()
	s := encoderSample
	x, d = encodetest.Problem(s.rows, s.dim, s.atoms)
	e, err := newEncoder(Device{Precision: p}, d, o, batch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, x, d
}

// TF32 and halves change a code by some parts in a thousand, and now and then which of two
// codes of nearly the same size is kept. That adds nothing to the objective.
func TestEncoderTF32(t *testing.T) { roundedEncoder(t, TF32, 1) }

// Halves have rows and dictionaries of all norms, here of some 0.001 to 100,000.
func TestEncoderFP16(t *testing.T) {
	for _, size := range []float32{1, 0.0003, 30000} {
		roundedEncoder(t, FP16, size)
	}
}

// roundedEncoder encodes the sample, times a size.
func roundedEncoder(t *testing.T, p Precision, size float32) {
	for _, nonnegative := range []bool{false, true} {
		o := encode.Options{Lambda: float64(size) * float64(size), Steps: 20, Most: 20, Nonnegative: nonnegative}
		s := encoderSample
		x, d := encodetest.Problem(s.rows, s.dim, s.atoms)
		for _, all := range [][]float32{x, d.Atoms} {
			for i := range all {
				all[i] *= size
			}
		}
		for i := range x[:10*s.dim] { // rows of other norms, and one that is zero
			x[i] *= float32(i / s.dim)
		}
		e, err := newEncoder(Device{Precision: p}, d, o, encode.Block)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		got := encodetest.Encode(t, e, x)
		var gotObjective, wantObjective float64
		kept, shared := 0, 0
		for i := range encoderSample.rows {
			y := encodetest.Widen(x[i*encoderSample.dim:][:encoderSample.dim])
			want, a := encodetest.Code(y, encodetest.Widen(d.Atoms), o), encodetest.Row(got, i)
			objective, _ := encodetest.Objective(y, encodetest.Widen(d.Atoms), want, o.Lambda, nonnegative)
			wantObjective += objective
			objective, _ = encodetest.Objective(y, encodetest.Widen(d.Atoms), a, o.Lambda, nonnegative)
			gotObjective += objective
			var loss, square float64
			for j, r := range encodetest.Residual(y, encodetest.Widen(d.Atoms), a) {
				loss, square = loss+r*r, square+y[j]*y[j]
			}
			if !(math.Abs(got.Loss[i]-loss) <= 1e-5*square) {
				t.Errorf("nonnegative %t: loss of row %d is %v, want %v", nonnegative, i, got.Loss[i], loss)
			}
			for k := range want {
				if want[k] != 0 {
					kept++
					if a[k] != 0 {
						shared++
					}
				}
			}
		}
		t.Logf("nonnegative %t: objective %.5f, want %.5f; %d of %d nonzeros shared", nonnegative, gotObjective, wantObjective, shared, kept)
		if d := gotObjective/wantObjective - 1; !(math.Abs(d) < 0.002) {
			t.Errorf("nonnegative %t: objective %v, want %v", nonnegative, gotObjective, wantObjective)
		}
		if n := len(got.Value); shared < kept*99/100 || n < kept*99/100 || n > kept*101/100 {
			t.Errorf("nonnegative %t: %d of %d nonzeros shared, of %d", nonnegative, shared, kept, n)
		}
	}
}

// A row whose codes leave the range of halves, and not that of floats, is an error that names it,
// and those after it are encoded still. Codes do so only after thousands of steps, or here of steps
// that are ten times too long, with which they grow without end, but for rows so short that all
// their codes are zero.
func TestEncoderBeyondHalves(t *testing.T) {
	o := encode.Options{Lambda: 1, Steps: 5, Most: 20}
	const large = 45
	for _, precision := range []Precision{TF32, FP16} {
		e, x, _ := sampleEncoder(t, o, precision, encoderSample.batch)
		e.step *= 10
		short := slices.Clone(x)
		for i := range short {
			short[i] /= 1000
		}
		want := encodetest.Encode(t, e, short)
		for _, sign := range []float32{1, -1} {
			wrong := slices.Clone(short)
			for i := large * e.Dim; i < (large+1)*e.Dim; i++ {
				wrong[i] = sign * x[i]
			}
			got, err := e.Encode(t.Context(), wrong)
			if precision == FP16 {
				if row, ok := errors.AsType[*encode.RowError](err); !ok || row.Row != large || row.Err != errHalves {
					t.Errorf("error %v", err)
				}
			} else if err != nil || !(got.Loss[large] <= math.MaxFloat32) {
				t.Errorf("error %v, losses %v", err, got)
			}
			if got := encodetest.Encode(t, e, short); !slices.Equal(got.Value, want.Value) || !slices.Equal(got.Loss, want.Loss) {
				t.Error("other bits after an error")
			}
		}
	}
}

// Codes are the same bits in all orders that the emulated driver can work in, and
// however few rows there is memory for.
func TestEncoderKeepsBits(t *testing.T) {
	o := encode.Options{Lambda: 1, Steps: 5, Most: 20}
	var want *encode.Codes
	var fixed, rowBytes int
	encoded := func(name, variable, value string, batch, wantBatch int) {
		t.Run(name, func(t *testing.T) {
			setting(t, variable, value)
			e, x, _ := sampleEncoder(t, o, TF32, batch)
			fixed, rowBytes = int(e.fixedBytes()), int(e.rowBytes(2))
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

// Launches are made to fail in turn, at once or while they run: there are no codes, and
// one line says where.
func TestEncoderFaults(t *testing.T) {
	x, d := encodetest.Problem(encoderSample.rows, encoderSample.dim, encoderSample.atoms)
	run := func() error {
		e, err := newEncoder(Device{}, d, encode.Options{Lambda: 1, Steps: 1, Most: 20}, encoderSample.batch)
		if err != nil {
			return err
		}
		defer e.Close()
		codes, err := e.Encode(t.Context(), x)
		if (codes == nil) != (err != nil) {
			t.Errorf("codes %t, error %v", codes != nil, err)
		}
		return err
	}
	failEachLaunch(t, "decode_fp32 decode_tf32 finish_codes fista_residuals fista_tf32 keep_largest pack_codes", run)
}

// Memory that somebody else has taken meanwhile.
func TestEncoderAllocations(t *testing.T) {
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	failed := 0
	for n := 1; n < 40; n++ {
		setting(t, "EMULATED_FAIL_ALLOCATION", strconv.Itoa(n))
		e, err := Device{}.Encoder(d, encode.Options{Steps: 1, Most: 20})
		if err == nil {
			e.Close()
			continue
		}
		if failed++; !errors.Is(err, backend.ErrMemory) || !errors.Is(err, cu.OutOfMemory) || strings.Contains(err.Error(), "\n") {
			t.Errorf("allocation %d: error %v", n, err)
		}
	}
	if failed != 28 {
		t.Errorf("%d allocations failed, of 28", failed)
	}
}

func TestEncoderRefuses(t *testing.T) {
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	zero := &model.Dictionary{Dim: d.Dim, Atoms: make([]float32, len(d.Atoms))}
	for want, test := range map[string]struct {
		d      *model.Dictionary
		o      encode.Options
		device int
	}{
		"there is no GPU 7":      {d, encode.Options{Steps: 1, Most: 1}, 7},
		"exact codes":            {d, encode.Options{Lambda: 1, Gap: 1e-4}, 0},
		"the dictionary is zero": {zero, encode.Options{Steps: 1, Most: 1}, 0},
	} {
		if _, err := (Device{Index: test.device}).Encoder(test.d, test.o); err == nil || !regexp.MustCompile("^[^\n]*"+want).MatchString(err.Error()) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Launches are counted and told apart, and floors are those that the kernels'
// sources state.
func TestEncoderProfile(t *testing.T) {
	const steps, batches, passes = 3, 2, 3 + backend.PolishSteps // of a product each
	e, x, _ := sampleEncoder(t, encode.Options{Lambda: 1, Steps: steps, Most: 20}, TF32, encoderSample.batch)
	e.StartProfile()
	encodetest.Encode(t, e, x)
	times, err := e.Profile()
	if err != nil {
		t.Fatal(err)
	}
	rows, dim, atoms := float64(encoderSample.rows), float64(encoderSample.dim), float64(encoderSample.atoms)
	const pitch = 24                                                                                                // of rows of 21, all of which products compute
	once := KernelTime{Bytes: 4 * (rows*atoms + batches*atoms*pitch + rows*pitch), Flops: 2 * rows * atoms * pitch} // a decode
	want := map[string]KernelTime{
		"decode_tf32":     {Launches: passes * batches, Bytes: passes * once.Bytes, Flops: passes * once.Flops},
		"decode_fp32":     {Launches: batches, Bytes: once.Bytes, Flops: 3 * once.Flops},
		"fista_tf32":      {Launches: passes * batches, Bytes: passes * (once.Bytes + 8*rows*atoms), Flops: passes * once.Flops},
		"fista_residuals": {Launches: (passes + 1) * batches, Bytes: (passes + 1) * 4 * rows * (4*dim + 8)}, // 150 atoms in two tiles of four parts
		"keep_largest":    {Launches: batches, Bytes: 8 * rows * atoms},
		"finish_codes":    {Launches: batches, Bytes: 4 * rows * atoms},
		"pack_codes":      {Launches: batches, Bytes: 4 * rows * atoms},
	}
	for _, k := range times {
		w, ok := want[k.Name]
		if delete(want, k.Name); !ok || k.Launches != w.Launches || k.Bytes != w.Bytes || k.Flops != w.Flops || k.Seconds <= 0 {
			t.Errorf("%+v, want %+v", k, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
}
