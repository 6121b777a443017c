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

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/testonly/encodetest"
	"overcomplete/model"
	"overcomplete/vectors"
)

// With FP32 codes are as near to the formulas as the CPU's are on the emulated
// driver. Tensor cores round sums of products less well.
func TestEncoder(t *testing.T) {
	onSchedules(t, func(t *testing.T, next func() bool) {
		encodetest.Run(t, 3e-5, encodetest.FloatCode, suiteEncoder(fp32, next))
	})
}

func TestEncoderHalves(t *testing.T) {
	onSchedules(t, func(t *testing.T, next func() bool) { encodetest.RunRounded(t, suiteEncoder(fp16, next)) })
}

// suiteEncoder opens encoders for the suite, whose workers decide how many rows a batch has.
func suiteEncoder(p Precision, next func() bool) encodetest.New {
	return func(d *model.Dictionary, o encode.Options, workers int) (encode.Encoder, error) {
		next()
		return newEncoder(Device{Precision: p}, d, o, 200/workers)
	}
}

// encoderSample is a problem of four batches: each slot of an encoder is used twice.
var encoderSample = struct{ rows, dim, atoms, batch int }{60, 21, 150, 16}

func sampleEncoder(t *testing.T, o encode.Options, p Precision, batch int) (e *encoder, x []float32, d *model.Dictionary) {
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
func TestEncoderTF32(t *testing.T) {
	onSchedules(t, func(t *testing.T, next func() bool) { roundedEncoder(t, tf32, roundedSample, next) })
}

func TestEncoderFP16(t *testing.T) {
	for name, change := range map[string]func(s *roundedProblem){
		"sample":        func(*roundedProblem) {},
		"small":         func(s *roundedProblem) { s.size = 0.0003 }, // rows and dictionaries have all norms
		"large":         func(s *roundedProblem) { s.size = 30000 },
		"half":          func(s *roundedProblem) { s.atoms, s.below = 64, 0.005 }, // the other part of a decode has none
		"one dimension": func(s *roundedProblem) { s.dim, s.atoms, s.most = 1, 5, 2 },
		"all codes":     func(s *roundedProblem) { s.most = s.atoms },
		"one row":       func(s *roundedProblem) { s.rows = 1 },
		"mean":          func(s *roundedProblem) { s.mean = true },
		"batches":       func(s *roundedProblem) { s.batch = 16 },
		"norms":         func(s *roundedProblem) { s.decades, s.lambda, s.below = 8, 1e-3, 0.005 },
	} {
		t.Run(name, func(t *testing.T) {
			s := roundedSample
			change(&s)
			onSchedules(t, func(t *testing.T, next func() bool) { roundedEncoder(t, fp16, s, next) })
		})
	}
}

// roundedProblem is one for roundedEncoder.
type roundedProblem struct {
	rows, dim, atoms, most, batch int
	size                          float32 // that all numbers are multiplied by
	lambda                        float64 // where that is 1
	mean                          bool    // whether the dictionary has one
	decades                       float64 // if not 0, norms of rows range over this many decades from 10⁻³ on

	// A code that is kept instead of another changes the objective of one row, by chance either way.
	// The sum of rows must not be more than 0.002 above what it should be, nor so much below.
	below float64
}

var roundedSample = roundedProblem{
	rows: encoderSample.rows, dim: encoderSample.dim, atoms: encoderSample.atoms, most: 20, batch: encode.Block, size: 1, lambda: 1, below: 0.002,
}

// roundedEncoder compares codes with the formulas.
func roundedEncoder(t *testing.T, p Precision, s roundedProblem, next func() bool) {
	for _, nonnegative := range []bool{false, true} {
		o := encode.Options{Lambda: s.lambda * float64(s.size) * float64(s.size), Steps: 20, Nonzeros: s.most, Nonnegative: nonnegative}
		x, d := encodetest.Problem(s.rows, s.dim, s.atoms)
		for i := range s.rows {
			row, factor := x[i*s.dim:][:s.dim], 1.
			switch {
			case s.decades > 0:
				factor = math.Pow(10, -3+s.decades*float64(i)/float64(s.rows-1)) / norm(encodetest.Widen(row))
			case i < 10 && s.rows > 10: // rows of other norms, and one that is zero
				factor = float64(i)
			}
			for j := range row {
				row[j] *= float32(factor)
			}
		}
		for _, all := range [][]float32{x, d.Atoms} {
			for i := range all {
				all[i] *= s.size
			}
		}
		if s.mean {
			d.Mean = slices.Clone(x[20*s.dim:][:s.dim])
		}
		next()
		e, err := newEncoder(Device{Precision: p}, d, o, s.batch)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		got, atoms := encodetest.Encode(t, e, x), encodetest.Widen(d.Atoms)
		var gotObjective, wantObjective float64
		kept, shared := 0, 0
		for i := range s.rows {
			centred := make([]float32, s.dim)
			d.Center(centred, x[i*s.dim:][:s.dim])
			y := encodetest.Widen(centred)
			want, a := encodetest.FloatCode(y, atoms, o), encodetest.Row(got, i)
			objective, _ := encodetest.Objective(y, atoms, want, o.Lambda, nonnegative)
			share := 1.
			if s.decades > 0 {
				share = 1 / math.Pow(norm(y), 2) // so that no row outweighs others
			}
			wantObjective += share * objective
			objective, _ = encodetest.Objective(y, atoms, a, o.Lambda, nonnegative)
			gotObjective += share * objective
			loss, square := math.Pow(norm(encodetest.Residual(y, atoms, a)), 2), math.Pow(norm(y), 2)
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
		if d := gotObjective/wantObjective - 1; !(d < 0.002 && d > -s.below) {
			t.Errorf("nonnegative %t: objective %v, want %v", nonnegative, gotObjective, wantObjective)
		}
		if n := len(got.Value); shared < kept*99/100 || n < kept*99/100 || n > kept*101/100 {
			t.Errorf("nonnegative %t: %d of %d nonzeros shared, of %d", nonnegative, shared, kept, n)
		}
	}
}

// norm is the Euclidean norm.
func norm(x []float64) float64 {
	var square float64
	for _, v := range x {
		square += v * v
	}
	return math.Sqrt(square)
}

// A row whose codes exceed the range of float16, but not of float32, is an error that names the row. Later
// calls still succeed. The test makes the step size ten times too large, so that codes diverge, except in rows
// so short that all their codes are zero.
func TestEncoderBeyondHalves(t *testing.T) { onSchedules(t, encoderBeyondHalves) }

func encoderBeyondHalves(t *testing.T, next func() bool) {
	o := encode.Options{Lambda: 1, Steps: 5, Nonzeros: 20}
	const large = 45
	for _, precision := range []Precision{tf32, fp16} {
		next()
		e, x, _ := sampleEncoder(t, o, precision, encoderSample.batch)
		e.step *= 10
		short := slices.Clone(x)
		for i := range short {
			short[i] /= 1000
		}
		want := encodetest.Encode(t, e, short)
		for _, sign := range []float32{1, -1} {
			wrong := slices.Clone(short)
			for i := large * e.widths.dim; i < (large+1)*e.widths.dim; i++ {
				wrong[i] = sign * x[i]
			}
			got, err := e.Encode(t.Context(), wrong)
			if precision == fp16 {
				if row, ok := errors.AsType[*vectors.InputError](err); !ok || row.Row != large+1 || row.Err != errHalfRange {
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

// Codes have the same bits for every schedule of the emulated driver and every amount of memory.
func TestEncoderKeepsBits(t *testing.T) {
	for _, precision := range []Precision{tf32, fp16} {
		t.Run(string(precision), func(t *testing.T) { encoderKeepsBits(t, precision) })
	}
}

func encoderKeepsBits(t *testing.T, p Precision) {
	o := encode.Options{Lambda: 1, Steps: 5, Nonzeros: 20}
	var want *encode.Codes
	var fixed, rowBytes int
	encoded := func(name, variable, value string, batch, wantBatch int) {
		t.Run(name, func(t *testing.T) {
			setting(t, variable, value)
			e, x, _ := sampleEncoder(t, o, p, batch)
			fixed, rowBytes = int(e.fixedBytes()), int(e.rowBytes(2, e.nonzeros))
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
	if _, err := (Device{Precision: p}).Encoder(d, o); !errors.Is(err, backend.ErrMemory) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %v", err, backend.ErrMemory)
	}
}

// If a launch fails, at once or while it runs, Encode returns no codes and an error that names the kernel.
func TestEncoderFaults(t *testing.T) {
	x, d := encodetest.Problem(encoderSample.rows, encoderSample.dim, encoderSample.atoms)
	const floats = "decode_fp32 decode_tf32 finish_codes fista_residuals fista_tf32 keep_largest pack_codes"
	const halves = "decode_ahead_fp16 decode_fp32 decode_tf32 finish_codes fista_fp16 fista_residuals fista_residuals_fp16 fista_tf32 " +
		"keep_largest_fp16 pack_codes row_scales to_halves"
	for precision, kernels := range map[Precision]string{tf32: floats, fp16: halves} {
		t.Run(string(precision), func(t *testing.T) {
			failEachLaunch(t, kernels, func() error {
				e, err := newEncoder(Device{Precision: precision}, d, encode.Options{Lambda: 1, Steps: 2, Nonzeros: 20}, encoderSample.batch)
				if err != nil {
					return err
				}
				defer e.Close()
				codes, err := e.Encode(t.Context(), x)
				if (codes == nil) != (err != nil) {
					t.Errorf("codes %t, error %v", codes != nil, err)
				}
				return err
			})
		})
	}
}

// Every failing allocation is an error, as if another process had allocated the memory meanwhile.
func TestEncoderAllocations(t *testing.T) {
	_, d := encodetest.Problem(1, encoderSample.dim, encoderSample.atoms)
	for precision, want := range map[Precision]int{tf32: 28, fp16: 28 + 5} {
		failed := failEachAllocation(t, func() error {
			e, err := Device{Precision: precision}.Encoder(d, encode.Options{Steps: 1, Nonzeros: 20})
			if err != nil && !errors.Is(err, backend.ErrMemory) {
				t.Errorf("%s: error %v", precision, err)
			}
			if err == nil {
				e.Close()
			}
			return err
		})
		if failed != want {
			t.Errorf("%s: %d allocations failed, of %d", precision, failed, want)
		}
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
		"no such GPU .got 7, want 0 to 0.": {d, encode.Options{Steps: 1, Nonzeros: 1}, 7},
		"exact codes":                      {d, encode.Options{Lambda: 1, Gap: 1e-4}, 0},
		"the dictionary is zero":           {zero, encode.Options{Steps: 1, Nonzeros: 1}, 0},
	} {
		if _, err := (Device{Index: test.device}).Encoder(test.d, test.o); err == nil || !regexp.MustCompile("^[^\n]*"+want).MatchString(err.Error()) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
