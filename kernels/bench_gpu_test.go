//go:build gpu && !asan

package kernels

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"overcomplete/testonly"
)

// bench runs single kernels on a GPU or the emulated driver.
type bench struct {
	*gpu
	t   testing.TB
	rng *rand.Rand
}

func newBench(t testing.TB) *bench {
	t.Helper()
	files, err := fs.Glob(ptx, "ptx/*.ptx")
	testonly.Must(t, err)
	for i, file := range files {
		files[i] = strings.TrimSuffix(path.Base(file), ".ptx")
	}
	g, err := Device{}.open(files...)
	return &bench{gpu: testonly.Opened(t, g, err), t: t, rng: rand.New(rand.NewPCG(1, 2))}
}

// begin makes the bench work for a test, on its goroutine's thread, until end.
func (b *bench) begin(t testing.TB) (end func()) {
	b.t = t
	return b.enter()
}

// put returns the address of values in the device's memory.
func put[T any](b *bench, values []T) pointer[T] { return upload(b.gpu, values) }

// memory returns the address of n bytes, zeros or NaNs.
func (b *bench) memory(n int, zeroed bool) pointer[byte] {
	if zeroed {
		return put(b, make([]byte, n))
	}
	return put(b, slices.Repeat([]byte{0xff}, n))
}

// readBack returns n values from device memory.
func readBack[T any](b *bench, p pointer[T], n int) []T {
	b.t.Helper()
	values := make([]T, n)
	toHost(b.gpu, values, p, b.compute)
	b.synchronize(b.compute)
	if b.err != nil {
		b.t.Fatal(b.err)
	}
	return values
}

// Guards before and after a matrix detect writes outside.
const guard, guardValue = 64, 12345

// matrix returns the address of padded rows. Without values, the rows are NaNs.
func (b *bench) matrix(values []float32, a array) pointer[float32] {
	if values == nil {
		values = pitched(slices.Repeat([]float32{float32(math.NaN())}, a.rows*a.width), a.width, a.pitch)
	}
	around := slices.Repeat([]float32{guardValue}, guard)
	return put(b, slices.Concat(around, values, around)).at(guard)
}

// padded returns padded rows. It fails if a kernel wrote outside the matrix.
func (b *bench) padded(a array) []float32 {
	b.t.Helper()
	all := readBack(b, a.data.at(-guard), guard+a.rows*a.pitch+guard)
	for i := range guard {
		if all[i] != guardValue || all[len(all)-1-i] != guardValue {
			b.t.Fatal("a kernel wrote outside its result")
		}
	}
	return all[guard : len(all)-guard]
}

// allowSameValue has an effect only in the interpreter.
func allowSameValue[T any](*bench, pointer[T]) {}

// run launches a kernel.
func (b *bench) run(l launch) { b.queue(l, b.compute) }
