//go:build !gpu

package kernels

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"testing"
	"unsafe"

	"overcomplete/testonly"
	"overcomplete/testonly/interpreter"
)

// bench runs single kernels in the interpreter of their PTX.
type bench struct {
	*interpreter.Machine
	t       testing.TB
	rng     *rand.Rand
	kernels map[string]*interpreter.Kernel
	orders  int // number of orders of threads in which each launch runs; their results must be equal

	maxShared, multiprocessors int // limits of dynamic shared memory in bytes, and of blocks that run together
}

func init() {
	if !testonly.Full {
		shapes = shapes[:5] // the others take seconds
	}
}

func newBench(t testing.TB) *bench {
	t.Helper()
	files, err := fs.Glob(ptx, "ptx/*.ptx")
	testonly.Must(t, err)
	kernels := make(map[string]*interpreter.Kernel)
	for _, file := range files {
		text, err := ptx.ReadFile(file)
		testonly.Must(t, err)
		parsed, err := interpreter.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		maps.Copy(kernels, parsed)
	}
	return &bench{Machine: interpreter.New(1), t: t, rng: rand.New(rand.NewPCG(1, 2)), kernels: kernels, orders: 2, maxShared: 227 << 10, multiprocessors: 3}
}

// begin makes the bench work for a test, with an empty memory, until end.
func (b *bench) begin(t testing.TB) (end func()) {
	b.Machine, b.t = interpreter.New(1), t
	return func() {}
}

// put returns the address of values in the device's memory.
func put[T any](b *bench, values []T) pointer[T] {
	data := raw(values)
	p := b.Alloc(fmt.Sprintf("%d %T", len(values), values), len(data))
	b.check(b.Write(p, data))
	return pointer[T](p)
}

// memory returns the address of n bytes, zeros or unwritten.
func (b *bench) memory(n int, zeroed bool) pointer[byte] {
	if zeroed {
		return put(b, make([]byte, n))
	}
	return pointer[byte](b.Alloc(fmt.Sprintf("%d bytes", n), n))
}

// readBack returns n values from device memory.
func readBack[T any](b *bench, p pointer[T], n int) []T {
	b.t.Helper()
	values := make([]T, n)
	data, err := b.Read(interpreter.Pointer(p), len(raw(values)))
	b.check(err)
	copy(raw(values), data)
	return values
}

func raw[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(*new(T))))
}

// matrix returns the address of padded rows. Without values, reading the rows before writing them is an error.
func (b *bench) matrix(values []float32, a array) pointer[float32] {
	if values != nil {
		return put(b, values)
	}
	p := b.Alloc(fmt.Sprintf("result %d×%d", a.rows, a.width), 4*a.rows*a.pitch)
	for i := range a.rows {
		b.check(b.Write(p+interpreter.Pointer(4*(i*a.pitch+a.width)), make([]byte, 4*(a.pitch-a.width))))
	}
	return pointer[float32](p)
}

// padded returns padded rows.
func (b *bench) padded(a array) []float32 {
	b.t.Helper()
	return readBack(b, a.data, a.rows*a.pitch)
}

// allowSameValue permits races in which all threads write the same value.
func allowSameValue[T any](b *bench, p pointer[T]) { b.AllowSameValue(interpreter.Pointer(p)) }

// run launches a kernel once for each order of threads, and compares the results.
func (b *bench) run(l launch) {
	b.t.Helper()
	k := b.kernels[l.kernel]
	if k == nil || len(k.Parameters) != 1 {
		b.t.Fatalf("the PTX has no %s with one parameter", l.kernel)
	}
	launch := interpreter.Launch{
		Grid: [2]int{l.x, l.y}, Threads: l.threads, Shared: l.shared, Together: l.kernel == cooperative,
		Arguments: [][]byte{unsafe.Slice((*byte)(l.arguments), k.Parameters[0].Size)},
	}
	var others []*interpreter.Machine
	for seed := range b.orders - 1 {
		others = append(others, b.Clone(uint64(2+seed)))
	}
	b.check(b.Launch(k, launch))
	for _, other := range others {
		b.check(other.Launch(k, launch))
		b.check(b.Equal(other))
	}
}

func (b *bench) check(err error) {
	b.t.Helper()
	testonly.Must(b.t, err)
}
