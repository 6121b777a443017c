package encodetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/testonly"
)

// New makes the encoder under test for the dictionary d. Each device defines the meaning of workers; results must not
// depend on their number.
type New func(d *model.Dictionary, o encode.Options, workers int) (encode.Encoder, error)

// open makes an encoder, which is closed at the end of the test.
func (n New) open(t *testing.T, d *model.Dictionary, o encode.Options, workers int) encode.Encoder {
	t.Helper()
	e, err := n(d, o, workers)
	return testonly.Opened(t, e, err)
}

// Run tests an encoder of early-stopped codes. It compares values with [Code], checks that the number of workers
// doesn't change the bits, and tests overflow and cancellation. The tolerance is relative to the row's largest value.
func Run(t *testing.T, tolerance float64, newEncoder New) {
	t.Run("reference", func(t *testing.T) { againstReference(t, tolerance, newEncoder) })
	t.Run("same bits", func(t *testing.T) {
		SameBits(t, encode.Options{Lambda: 0.5, Steps: 15, Nonzeros: 40}, newEncoder)
		SameBits(t, encode.Options{Lambda: 1, Steps: 15, Nonzeros: 20, Nonnegative: true}, newEncoder)
	})
	t.Run("started", func(t *testing.T) { started(t, newEncoder) })
	t.Run("too large", func(t *testing.T) { tooLarge(t, newEncoder) })
	t.Run("cancelled", func(t *testing.T) {
		x, d := Problem(10, 8, 40)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := encode.Rows(ctx, newEncoder.open(t, d, encode.Options{Steps: 1, Nonzeros: 5}, 2), x); err != context.Canceled {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
	t.Run("refuses", func(t *testing.T) {
		for _, d := range []model.Dictionary{
			{Dim: 3}, {Dim: 3, Atoms: make([]float32, 7)}, {Dim: 3, Atoms: make([]float32, 6), Mean: make([]float32, 2)}, {Dim: 3, Atoms: make([]float32, 6)},
		} {
			if _, err := newEncoder(&d, encode.Options{Steps: 1, Nonzeros: 1}, 1); err == nil {
				t.Errorf("no error for %+v", d)
			}
		}
		_, d := Problem(1, 8, 40)
		for _, o := range []encode.Options{{Nonzeros: 1}, {Steps: 1}, {Lambda: -1, Steps: 1, Nonzeros: 1}, {Lambda: math.NaN(), Steps: 1, Nonzeros: 1}} {
			if _, err := newEncoder(d, o, 1); err == nil {
				t.Errorf("no error for %+v", o)
			}
		}
		if _, err := encode.Rows(t.Context(), newEncoder.open(t, d, encode.Options{Steps: 1, Nonzeros: 1}, 1), make([]float32, 9)); err == nil {
			t.Error("no error for a row and a bit")
		}
	})
}

func againstReference(t *testing.T, tolerance float64, newEncoder New) {
	const rows = 30
	for _, c := range []struct {
		dim, atoms int
		twice      bool // each atom occurs twice; the first of two equal values is kept
		o          encode.Options
	}{
		{8, 40, false, encode.Options{Lambda: 0.5, Steps: 20, Nonzeros: 8}},
		{8, 40, false, encode.Options{Lambda: 0.5, Steps: 20, Nonzeros: 8, Nonnegative: true}},
		{8, 40, true, encode.Options{Lambda: 0.5, Steps: 20, Nonzeros: 7}},
		{50, 301, false, encode.Options{Lambda: 1, Steps: 20, Nonzeros: 30}},
		{50, 301, false, encode.Options{Lambda: 3, Steps: 40, Nonzeros: 301}},
		{50, 600, false, encode.Options{Lambda: 2, Steps: 10, Nonzeros: 60, Nonnegative: true}},
		{17, 33, false, encode.Options{Lambda: 0, Steps: 3, Nonzeros: 1}},
		{1, 5, false, encode.Options{Lambda: 0.1, Steps: 5, Nonzeros: 2}},
		{20, 50, false, encode.Options{Lambda: 1e6, Steps: 5, Nonzeros: 5}}, // all codes are zero
	} {
		what := fmt.Sprintf("%d → %d, twice %t, %+v", c.dim, c.atoms, c.twice, c.o)
		x, d := Problem(rows, c.dim, c.atoms)
		if c.twice {
			copy(d.Atoms[len(d.Atoms)/2:], d.Atoms[:len(d.Atoms)/2])
		}
		d.Mean = x[:c.dim]
		atoms := Widen(d.Atoms)
		codes := Encode(t, newEncoder.open(t, d, c.o, 2), x)
		for i := range rows {
			y := Widen(x[i*c.dim:][:c.dim])
			for j := range y {
				y[j] -= float64(d.Mean[j])
			}
			want, got := Code(y, atoms, c.o), Row(codes, i)
			testonly.Near(t, fmt.Sprintf("%s: code of row %d", what, i), got, want, tolerance)
			if c.o.Nonnegative && slices.Min(got) < 0 {
				t.Errorf("%s: row %d has a code of %v", what, i, slices.Min(got))
			}
			r := Residual(y, atoms, got)
			loss, square := floats.Dot(r, r), floats.Dot(y, y)
			if !(math.Abs(codes.Loss[i]-loss) <= 1e-5*square) {
				t.Errorf("%s: loss of row %d is %v, want %v", what, i, codes.Loss[i], loss)
			}
			if !(math.Abs(codes.Squares[i]-square) <= 1e-6*square) {
				t.Errorf("%s: squared norm of row %d is %v, want %v", what, i, codes.Squares[i], square)
			}
		}
	}
}

// SameBits tests that the code of a row has the same bits for any number of workers and any other rows in the
// call.
func SameBits(t *testing.T, o encode.Options, newEncoder New) {
	const rows, dim, atoms = 100, 30, 200
	x, d := Problem(rows, dim, atoms)
	want := Encode(t, newEncoder.open(t, d, o, 1), x)
	for workers := 2; workers <= 5; workers++ {
		got := Encode(t, newEncoder.open(t, d, o, workers), x)
		if !slices.Equal(got.Ptr, want.Ptr) || !slices.Equal(got.Index, want.Index) || !slices.Equal(got.Value, want.Value) ||
			!slices.Equal(got.Loss, want.Loss) || !slices.Equal(got.Squares, want.Squares) || !slices.Equal(got.Gap, want.Gap) {
			t.Errorf("%+v: %d workers give other codes than one", o, workers)
		}
	}
	e := newEncoder.open(t, d, o, 1)
	const few = 23
	for lo := 0; lo < rows; lo += few {
		hi := min(lo+few, rows)
		got := Encode(t, e, x[lo*dim:hi*dim])
		for i := lo; i < hi; i++ {
			gotIndex, gotValue := got.Row(i - lo)
			wantIndex, wantValue := want.Row(i)
			if !slices.Equal(gotIndex, wantIndex) || !slices.Equal(gotValue, wantValue) || got.Loss[i-lo] != want.Loss[i] {
				t.Fatalf("%+v: row %d has another code among others", o, i)
			}
		}
	}
}

// started calls Start again before it waits for earlier calls. The codes must equal the codes of separate calls, even
// if other calls are cancelled. After the wait, the encoder must not read the rows.
func started(t *testing.T, newEncoder New) {
	const dim, atoms = 8, 40
	x, d := Problem(60, dim, atoms)
	o := encode.Options{Lambda: 0.5, Steps: 10, Nonzeros: 8}
	for _, workers := range []int{1, 20} { // most calls have fewer than 20 rows
		e := newEncoder.open(t, d, o, workers)
		var waits []func() error
		var got []*encode.Codes
		var want []*encode.Codes
		for _, rows := range [][2]int{{0, 1}, {1, 30}, {30, 30}, {30, 45}, {45, 60}} {
			part := slices.Clone(x[rows[0]*dim : rows[1]*dim])
			want = append(want, Encode(t, newEncoder.open(t, d, o, workers), part))
			codes := Encode(t, newEncoder.open(t, d, o, workers), x) // memory to reuse
			got, waits = append(got, codes), append(waits, e.Start(t.Context(), part, codes))
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := e.Start(ctx, x, new(encode.Codes))
		cancel()
		for i, wait := range waits {
			if err := wait(); err != nil || fmt.Sprint(*got[i]) != fmt.Sprint(*want[i]) {
				t.Errorf("%d workers: codes of part %d differ, or error %v", workers, i, err)
			}
		}
		if err := given(); err != nil && err != context.Canceled {
			t.Error(err)
		}
		if got := Encode(t, e, x[:dim]); !reflect.DeepEqual(got, want[0]) {
			t.Errorf("%d workers: other codes after some that were given up", workers)
		}
	}
}

// tooLarge tests that a row whose code overflows float32 has no finite loss, and that it doesn't affect other rows
// or later calls.
func tooLarge(t *testing.T, newEncoder New) {
	const rows, dim, atoms, large = 20, 8, 40, 3
	for _, nonnegative := range []bool{false, true} {
		o := encode.Options{Lambda: 0.5, Steps: 20, Nonzeros: 8, Nonnegative: nonnegative}
		x, d := Problem(rows, dim, atoms)
		e := newEncoder.open(t, d, o, 1)
		want := Encode(t, e, x)
		spoiled := slices.Clone(x)
		copy(spoiled[large*dim:], []float32{3e38, -3e38, 3e38, 1})
		got, err := encode.Rows(t.Context(), e, spoiled)
		testonly.Must(t, err)
		after := Encode(t, e, x)
		for i := range rows {
			if loss := got.Loss[i]; i == large && loss-loss == 0 || i != large && loss != want.Loss[i] || after.Loss[i] != want.Loss[i] {
				t.Errorf("nonnegative %t: loss of row %d is %v, then %v, want %v", nonnegative, i, loss, after.Loss[i], want.Loss[i])
			}
		}
		if !slices.Equal(after.Index, want.Index) || !slices.Equal(after.Value, want.Value) {
			t.Errorf("nonnegative %t: codes differ after rows that were too large", nonnegative)
		}
	}
}

// Problem returns a random dictionary with atoms of length dim, and vectors x, rows×dim row-major. Each vector is
// a sum of a few atoms and noise.
func Problem(rows, dim, atoms int) (x []float32, d *model.Dictionary) {
	rng := rand.New(rand.NewPCG(3, 4))
	d = &model.Dictionary{Dim: dim, Atoms: make([]float32, atoms*dim)}
	for i := range d.Atoms {
		d.Atoms[i] = float32(rng.NormFloat64())
	}
	x = make([]float32, rows*dim)
	for i := range rows {
		for range 3 {
			k, c := rng.IntN(atoms), float32(rng.NormFloat64())
			for j, v := range d.Atom(k) {
				x[i*dim+j] += c*v + 0.1*float32(rng.NormFloat64())
			}
		}
	}
	return x, d
}

// Encode returns the codes of the rows of x. An error fails the test.
func Encode(t testing.TB, e encode.Encoder, x []float32) *encode.Codes {
	t.Helper()
	codes, err := encode.Rows(context.Background(), e, x)
	testonly.Must(t, err)
	testonly.Must(t, codes.Validate())
	return codes
}

// Row returns the code of one row as a dense vector of length K.
func Row(codes *encode.Codes, row int) []float64 {
	a := make([]float64, codes.Cols)
	index, value := codes.Row(row)
	for n, k := range index {
		a[k] = float64(value[n])
	}
	return a
}

// Widen returns x in float64.
func Widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}
