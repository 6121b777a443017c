package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
)

func newEncoder(t testing.TB, d *model.Dictionary, o encode.Options, workers int) *encoder {
	t.Helper()
	e, err := anyEncoder(d, o, workers)
	testonly.Must(t, err)
	return e.(*encoder)
}

// Codes equal the definition with a polish in float64, within the accumulated rounding of float32: 10⁻⁵ of the largest
// value.
func TestEncode(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		encodetest.Run(t, 1e-5, anyEncoder)
	})
}

func anyEncoder(d *model.Dictionary, o encode.Options, workers int) (encode.Encoder, error) {
	return Device{Workers: workers}.Encoder(d, o)
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// The number of workers is limited by the work: a huge number of workers needs no memory.
func TestEncoderWorkers(t *testing.T) {
	e := newEncoder(t, &model.Dictionary{Dim: 2, Atoms: []float32{1, 0, 0, 1}}, encode.Options{Lambda: 1, Steps: 1, Nonzeros: 1}, 1<<40)
	if codes := encodetest.Encode(t, e, []float32{2, 0, 0, 2}); codes.Rows != 2 {
		t.Errorf("codes of %d rows", codes.Rows)
	}
}

// Exact codes don't depend on the number of workers either.
func TestEncodeExactKeepsBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		encodetest.SameBits(t, encode.Options{Lambda: 1, Gap: 1e-4}, anyEncoder)
	})
}

// The gap of the exact lasso's codes, computed in float64, is at most the requested one, within the
// rounding of correlations in float32, 10⁻⁶.
func TestEncodeExact(t *testing.T) {
	const rows = 30
	eachLevel(t, func(t *testing.T) {
		for _, c := range []struct {
			dim, atoms int
			o          encode.Options
		}{
			{8, 40, encode.Options{Lambda: 0.5, Gap: 1e-4}},
			{8, 40, encode.Options{Lambda: 0.5, Gap: 1e-4, Nonnegative: true}},
			{50, 301, encode.Options{Lambda: 1, Gap: 1e-5}},
			{50, 301, encode.Options{Lambda: 10, Gap: 1e-2}},
			{50, 600, encode.Options{Lambda: 2, Gap: 1e-5, Nonnegative: true}},
			{1, 5, encode.Options{Lambda: 0.1, Gap: 1e-4}},
			{20, 50, encode.Options{Lambda: 1e6, Gap: 1e-4}}, // all codes are zero
		} {
			what := fmt.Sprintf("%d → %d, %+v", c.dim, c.atoms, c.o)
			x, d := encodetest.Problem(rows, c.dim, c.atoms)
			clear(x[:c.dim])           // the code of the first row is zero
			clear(d.Atom(2))           // a zero atom
			copy(d.Atom(1), d.Atom(0)) // two equal atoms
			codes := encodetest.Encode(t, newEncoder(t, d, c.o, 2), x)
			for i := range rows {
				y, a := encodetest.Widen(x[i*c.dim:][:c.dim]), encodetest.Row(codes, i)
				objective, gap := encodetest.Objective(y, encodetest.Widen(d.Atoms), a, c.o.Lambda, c.o.Nonnegative)
				if objective == 0 {
					continue
				}
				if gap /= objective; gap > c.o.Gap+1e-6 || math.Abs(gap-codes.Gap[i]) > 1e-6 || codes.Gap[i] > c.o.Gap {
					t.Errorf("%s: gap of row %d is %.2e, said to be %.2e", what, i, gap, codes.Gap[i])
				}
				if slices.Min(a) < 0 && c.o.Nonnegative {
					t.Errorf("%s: row %d has a negative code", what, i)
				}
			}
		}
	})
}

// A gap below the precision of float32 is not reported as reached.
func TestEncodeExactUnreached(t *testing.T) {
	x, d := encodetest.Problem(20, 50, 301)
	codes := encodetest.Encode(t, newEncoder(t, d, encode.Options{Lambda: 1, Gap: 1e-12}, 1), x)
	if reached := slices.Min(codes.Gap); reached > 1e-5 || slices.Max(codes.Gap) < 1e-12 {
		t.Errorf("gaps from %v to %v", reached, slices.Max(codes.Gap))
	}
}

// cancelledAt is a context whose Err reports a cancellation after a few calls.
type cancelledAt struct {
	context.Context
	asked, last int
}

func (c *cancelledAt) Err() error {
	if c.asked++; c.asked > c.last {
		return context.Canceled
	}
	return nil
}

// Cancellation stops exact encoding within a tile: a whole tile can take minutes.
func TestEncodeExactCancelledAmidTile(t *testing.T) {
	x, d := encodetest.Problem(20, 50, 301)
	e := newEncoder(t, d, encode.Options{Lambda: 1, Gap: 1e-12}, 1)
	whole := &cancelledAt{Context: t.Context(), last: math.MaxInt}
	_, err := encode.Rows(whole, e, x)
	testonly.Must(t, err)
	half := &cancelledAt{Context: t.Context(), last: whole.asked / 2}
	if _, err := encode.Rows(half, e, x); err != context.Canceled || half.asked > whole.asked*3/4 {
		t.Errorf("error %v after asking %d times, of %d", err, half.asked, whole.asked)
	}
}

func TestEncoderRefuses(t *testing.T) {
	nan := math.NaN()
	good, d := encode.Options{Lambda: 1, Steps: 1, Nonzeros: 1}, model.Dictionary{Dim: 3, Atoms: []float32{1, 2, 3, 4, 5, 6}}
	for _, c := range []struct {
		d model.Dictionary
		o encode.Options
	}{
		{model.Dictionary{Dim: 1, Atoms: []float32{1e-30}}, good}, {model.Dictionary{Dim: 1, Atoms: []float32{1e30}}, good},
		{model.Dictionary{Dim: 1, Atoms: []float32{float32(nan)}}, good},
		{d, encode.Options{Lambda: 1e39, Steps: 1, Nonzeros: 1}},
		{d, encode.Options{Lambda: 1, Gap: nan}}, {d, encode.Options{Lambda: 1, Gap: 1}}, {d, encode.Options{Gap: 0.1}},
	} {
		if _, err := anyEncoder(&c.d, c.o, 1); err == nil {
			t.Errorf("no error for %+v", c)
		}
	}
}
