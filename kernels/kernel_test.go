//go:build !gpu || !asan

package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gonum "gonum.org/v1/gonum/floats"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/encodetest"
)

// These tests compare each kernel with plain loops in float64. bench runs the kernels: with the tag gpu on the
// CUDA driver, a GPU's or the emulated one; otherwise in an interpreter of their PTX, which detects more errors
// than the address sanitizer.

// array is a matrix in the device's memory.
type array struct {
	data               pointer[float32]
	rows, width, pitch int
	scale              float64 // scale of halves; 0 for floats
}

// array puts rows into the device's memory; nil stands for numbers that the kernel must overwrite. Padding is zero, as
// kernels find it.
func (b *bench) array(values []float32, rows, width int) array {
	return b.pitched(values, rows, width, 4)
}

// pitched is like array, but the pitch is a multiple of unit elements.
func (b *bench) pitched(values []float32, rows, width, unit int) array {
	a := array{rows: rows, width: width, pitch: roundUp(width, unit)}
	if values != nil {
		values = pitched(values, width, a.pitch)
	}
	a.data = b.matrix(values, a)
	return a
}

// read returns the rows, and fails if padding is not zero.
func (b *bench) read(a array) []float32 {
	b.t.Helper()
	var padded []float32
	if a.scale == 0 {
		padded = b.padded(a)
	} else {
		for _, two := range b.padded(a.packed()) {
			for _, bits := range []uint32{math.Float32bits(two) & 0xffff, math.Float32bits(two) >> 16} {
				padded = append(padded, float32s.FromFloat16(uint16(bits))/float32(a.scale))
			}
		}
	}
	rows := make([]float32, a.rows*a.width)
	copyRows(rows, a.width, padded, a.pitch)
	if !slices.Equal(pitched(rows, a.width, a.pitch), padded) && !slices.ContainsFunc(rows, isNaN) {
		b.t.Fatal("a kernel wrote into padding")
	}
	return rows
}

// packed returns a matrix of halves as a matrix of floats: each float holds two halves.
func (a array) packed() array {
	return array{data: a.data, rows: a.rows, width: a.pitch / 2, pitch: a.pitch / 2}
}

// halves puts rows into the device's memory as scaled halves; nil stands for numbers that the kernel must overwrite.
func (b *bench) halves(values []float32, rows, width int, scale float64) array {
	a := array{rows: rows, width: width, pitch: roundUp(width, 8), scale: scale}
	packed := make([]float32, rows*a.pitch/2)
	for i := range rows {
		for j := range a.pitch {
			x := uint16(0x7e00) // NaN
			switch {
			case j >= width:
				x = 0
			case values != nil:
				x = float32s.ToFloat16(values[i*width+j] * float32(scale))
			}
			packed[(i*a.pitch+j)/2] = math.Float32frombits(math.Float32bits(packed[(i*a.pitch+j)/2]) | uint32(x)<<(16*(j%2)))
		}
	}
	a.data = b.matrix(packed, a.packed())
	return a
}

// stored puts rows into the device's memory in the format of a precision: scaled halves, or floats.
func (b *bench) stored(p Precision, values []float32, rows, width int, scale float64) array {
	if p == fp16 {
		return b.halves(values, rows, width, scale)
	}
	return b.array(values, rows, width)
}

// unitOf returns the divisor of the pitches of these matrices, in elements.
func unitOf(p Precision) int { return newWidths(p, 1, 1).dimPitch }

// rounded returns the values after conversion to scaled halves and back.
func rounded(values []float32, scale float64) []float32 {
	all := make([]float32, len(values))
	for i, v := range values {
		all[i] = float32s.FromFloat16(float32s.ToFloat16(v*float32(scale))) / float32(scale)
	}
	return all
}

// zeros returns the address of n elements of memory.
func zeros[T any](b *bench, n int) pointer[T] { return put(b, make([]T, n)) }

func isNaN(x float32) bool { return x != x }

// normal returns n normally distributed numbers, a fraction of them replaced by zero.
func (b *bench) normal(n int, zeros float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		if b.rng.Float64() >= zeros {
			x[i] = float32(b.rng.NormFloat64())
		}
	}
	return x
}

// codes returns codes with rows of zeros among them.
func (b *bench) codes(rows, atoms int) []float32 {
	x := b.normal(rows*atoms, 0.6)
	for i := 2; i < rows; i += 5 {
		clear(x[i*atoms : (i+1)*atoms])
	}
	return x
}

// few limits a launch to four warps, so that each warp processes several rows.
func few(l launch) launch {
	l.x, l.threads, l.shared = min(2, l.x), 2*warp, l.shared*2*warp/l.threads
	return l
}

// shapes are shapes of products: smaller and larger than a tile, exactly a tile, and sizes that no tile
// divides.
var shapes = [][3]int{
	{1, 1, 1}, {1, 12, 4}, {3, 5, 2}, {129, 130, 33}, {33, 7, 300}, {128, 64, 64}, {128, 128, 32}, {5, 300, 70}, {200, 37, 131},
}

// tolerance bounds the error of a sum of products, relative to the sum of their
// magnitudes. TF32 and float16 round each factor by up to 2⁻¹¹ of it, and the sum
// loses a little more. Factors of two TF32 parts lose about 2⁻²², and float32 sums
// of a few hundred terms lose more.
var tolerance = map[Precision]float64{fp16: 1.02 / 1024, tf32: 1.02 / 1024, fp32: 3e-6}

// squaresTolerance bounds the error of products of squares of float16 factors. Rounding to bfloat16 changes a square by
// up to 2⁻⁸. Rounding to float16 changes a factor by up to 2⁻¹¹, and its square by twice as much.
const squaresTolerance = 2*(1./256+2./2048) + 1e-4

// expect compares sums of products with the expected sums.
func (b *bench) expect(what string, got []float32, want, magnitude []float64, tolerance float64) {
	b.t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance*magnitude[i]) {
			b.t.Fatalf("%s: element %d is %v, want %v ± %.2g", what, i, got[i], want[i], tolerance*magnitude[i])
		}
	}
}

// multiply returns Σ_k left(i, k)·right(k, j) and Σ_k |left(i, k)·right(k, j)|, in float64.
func multiply(rows, columns, depth int, left, right func(i, k int) float32) (sum, magnitude []float64) {
	sum, magnitude = make([]float64, rows*columns), make([]float64, rows*columns)
	for i := range rows {
		for k := range depth {
			if l := float64(left(i, k)); l != 0 {
				for j := range columns {
					p := l * float64(right(k, j))
					sum[i*columns+j] += p
					magnitude[i*columns+j] += math.Abs(p)
				}
			}
		}
	}
	return sum, magnitude
}

// Each kernel agrees with plain loops.
func TestKernels(t *testing.T) {
	products, rows := []Precision{fp16, tf32, fp32}, []Precision{fp16, fp32}
	codes := [][3]int{{1, 1}, {3, 5}, {10, 128}, {33, 129}, {20, 515}}
	b := newBench(t) // one for all kernels, because a GPU takes most of a second to start
	for _, k := range []struct {
		name       string
		precisions []Precision // precisions of the kernel's factors or codes
		check      func(b *bench, p Precision, rows, atoms, dim int)
		sizes      [][3]int // arguments of check
	}{
		{"decode", products, checkDecode, shapes},
		{"accumulate", products[1:], checkAccumulate, shapes},
		{"update", products[:1], checkUpdate, shapes},
		{"correlate", products[1:], checkCorrelate, shapes},
		{"update_codes", products[:1], checkUpdateCodes, [][3]int{{1, 1, 1}, {3, 5, 2}, {130, 70, 37}, {65, 260, 300}, {64, 128, 320}}},
		{"remember", products[1:2], checkRemember, shapes},
		{"search_any", rows[1:], checkSearch("search_any"), [][3]int{{1, 1, 1}, {3, 31, 3}, {33, 300, 70}, {5, 66, 300}}},
		{"search_128", rows[1:], checkSearch("search_128"), [][3]int{{1, 1, 1}, {3, 31, 3}, {33, 300, 70}}},
		{"search_320", rows[1:], checkSearch("search_320"), [][3]int{{33, 133, 300}, {5, 66, 130}}},
		{"search_384", rows[1:], checkSearch("search_384"), [][3]int{{3, 133, 384}}},
		{"search_768", rows[1:], checkSearch("search_768"), [][3]int{{5, 133, 767}}},
		{"search_1024", rows[1:], checkSearch("search_1024"), [][3]int{{3, 66, 1021}}},
		{"polish", rows[1:], checkPolish, [][3]int{{1, 1, 1}, {5, 40, 3}, {4, 259, 133}, {2, 70, 1100}, {3, 800, 5}, {1, 4500, 5}}},
		{"finish_codes and pack_codes", rows, checkFinishAndPackCodes, codes},
		{"random_codes", rows, checkRandomCodes, [][3]int{{1, 1}, {5, 7}, {9, 130}}},
		{"jacobi", rows[1:], checkJacobi, [][3]int{{1, 1}, {3, 5}, {blockAtoms, 33}, {70, 9}, {70, 300}, {37, 140}, {6, 1100}}},
		{"gather", rows[1:], checkGather, [][3]int{{1, 1}, {3, 31}, {9, 128}, {17, 129}, {40, 300}, {2, 1300}}},
		{"power", rows[1:], checkPower, [][3]int{{1}, {2}, {33}, {64}, {133}}},
		{"body", rows[1:], checkBody, [][3]int{{1, 1}, {3, 31}, {9, 32}, {17, 33}, {40, 300}}},
		{"body, halves", rows[:1], checkBodyHalves, [][3]int{{1, 1}, {3, 31}, {17, 33}, {40, 300}}},
		{"body, numbers", rows[1:], checkBodyNumbers, [][3]int{{37, 45, 4}, {5, 300, 133}}},
		{"totals", rows[1:], checkTotals, [][3]int{{1}, {31}, {1024}, {5000}}},
	} {
		for _, p := range k.precisions {
			for _, s := range k.sizes {
				t.Run(fmt.Sprintf("%s/%s %d", k.name, p, s), func(t *testing.T) {
					defer b.begin(t)()
					b.rng = rand.New(rand.NewPCG(1, 2)) // the numbers don't depend on the cases that run
					k.check(b, p, s[0], s[1], s[2])
				})
			}
		}
	}
}

// checkDecode checks a product and, with halves, also its shares: products with some of the atoms each.
func checkDecode(b *bench, precision Precision, rows, atoms, dim int) {
	const scale, atomScale = 64, 0.125
	codes, d := b.codes(rows, atoms), b.normal(atoms*dim, 0)
	a, atomRows := b.stored(precision, codes, rows, atoms, scale), b.stored(precision, d, atoms, dim, atomScale)
	shape := newWidths(precision, atoms, dim).shape(rows)
	product := func(first, last int) (want, magnitude []float64) {
		return multiply(rows, dim, last-first,
			func(i, k int) float32 { return codes[i*atoms+first+k] }, func(k, j int) float32 { return d[(first+k)*dim+j] })
	}
	_, magnitude := product(0, atoms) // magnitude of all atoms, because a share may have only codes of few bits as halves
	for _, shares := range []int{1, 3, 8} {
		if precision != fp16 && shares > 1 {
			break
		}
		result := b.pitched(nil, shares*rows, dim, unitOf(precision))
		if precision == fp16 {
			b.run(decodeHalf{
				product: result.data, codes: pointer[half](a.data), atoms: pointer[half](atomRows.data), scale: scale * atomScale,
				shape: shape, shares: int32(shares), sharePitch: int64(rows * result.pitch),
			}.launch())
		} else {
			b.run(decode{product: result.data, codes: a.data, atoms: atomRows.data, shape: shape}.launch(precision))
		}
		got, each := b.read(result), divide(atoms, shares*halfDecodeDepth)*halfDecodeDepth
		if shares == 1 {
			each = atoms
		}
		for share := range shares {
			first, last := min(share*each, atoms), min((share+1)*each, atoms)
			want, _ := product(first, last)
			b.expect(fmt.Sprintf("share %d of %d", share+1, shares), got[share*rows*dim:][:rows*dim], want, magnitude, tolerance[precision])
		}
	}
}

func checkAccumulate(b *bench, precision Precision, rows, atoms, dim int) {
	codes, r := b.codes(rows, atoms), b.normal(rows*dim, 0)
	result, squares := b.array(nil, atoms, dim), b.array(nil, atoms, dim)
	b.run(accumulate{
		product: result.data, squares: squares.data, codes: b.array(codes, rows, atoms).data, residuals: b.array(r, rows, dim).data,
		shape: newWidths(fp32, atoms, dim).shape(rows),
	}.launch(precision))
	want, magnitude := multiply(atoms, dim, rows,
		func(i, k int) float32 { return codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] })
	b.expect("product", b.read(result), want, magnitude, tolerance[precision])
	want, magnitude = multiply(atoms, dim, rows,
		func(i, k int) float32 { return codes[k*atoms+i] * codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] * r[k*dim+j] })
	b.expect("product of squares", b.read(squares), want, magnitude, tolerance[precision])
}

// checkUpdate checks the sums and steps of AdaGrad, which the kernel of the product computes.
func checkUpdate(b *bench, precision Precision, rows, atoms, dim int) {
	const scale, residualScale, stepScale, epsilon = 64, 0.125, 32, 1e-30
	c := [5]float64{4, -0.3, 0.02, 0.4, -2}
	codes, r, d, h := b.codes(rows, atoms), b.normal(rows*dim, 0), b.normal(atoms*dim, 0), b.normal(atoms*dim, 0.5)
	for i := range h {
		h[i] *= h[i]
	}
	for i := 1; i < atoms; i += 5 { // H of these atoms stays 0
		for j := range rows {
			codes[j*atoms+i] = 0
		}
		clear(d[i*dim : (i+1)*dim])
		clear(h[i*dim : (i+1)*dim])
	}
	a, residuals := b.halves(codes, rows, atoms, scale), b.halves(r, rows, dim, residualScale)
	dictionary, squares := b.pitched(d, atoms, dim, 8), b.pitched(h, atoms, dim, 8)
	steps, halves := b.pitched(nil, atoms, dim, 8), b.halves(nil, atoms, dim, stepScale)
	const product = scale * residualScale
	b.run(updateHalf{
		squares: squares.data, steps: steps.data, stepHalves: pointer[half](halves.data), atoms: dictionary.data,
		codes: pointer[half](a.data), residuals: pointer[half](residuals.data),
		c0: c[0] / product / product, c1: c[1] / product, c2: c[2], c3: c[3], c4: c[4] / product, epsilon: epsilon, stepScale: stepScale,
		shape: newWidths(fp16, atoms, dim).shape(rows),
	}.launch())
	m, sizeM := multiply(atoms, dim, rows,
		func(i, k int) float32 { return codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] })
	n, _ := multiply(atoms, dim, rows,
		func(i, k int) float32 { return codes[k*atoms+i] * codes[k*atoms+i] }, func(k, j int) float32 { return r[k*dim+j] * r[k*dim+j] })
	wantH, sizeH := make([]float64, len(m)), make([]float64, len(m))
	for i, d := range encodetest.Widen(d) {
		wantH[i] = float64(h[i]) + max(c[0]*n[i]+d*(c[1]*m[i]+c[2]*d), 0)
		// sizeH is in units of the tolerance of squares, which is larger than the product's.
		sizeH[i] = float64(h[i])*1e-4 + c[0]*n[i] + math.Abs(c[1]*d)*sizeM[i] + 1e-4*c[2]*d*d
	}
	gotH := b.read(squares)
	b.expect("H", gotH, wantH, sizeH, squaresTolerance)
	// The expected steps follow from the H that the kernel wrote, and their float16 copies from the written steps.
	got, gotHalves := b.read(steps), b.read(halves)
	if want := rounded(got, stepScale); !slices.Equal(gotHalves, want) {
		b.t.Fatalf("steps as halves are %v, want %v", gotHalves, want)
	}
	for i := range got {
		root := math.Sqrt(float64(gotH[i]) + epsilon)
		want := (c[3]*float64(d[i]) + c[4]*m[i]) / root
		tolerance := (tolerance[precision]*math.Abs(c[4])*sizeM[i] + 1e-6*math.Abs(c[3]*float64(d[i]))) / root
		if !(math.Abs(float64(got[i])-want) <= tolerance+1e-6*math.Abs(want)) {
			b.t.Fatalf("step %d is %v, want %v ± %.2g", i, got[i], want, tolerance)
		}
	}
}

// averaging holds the arguments of correlate. The gradient is −2 and the square 4 per product of 1.
type averaging struct {
	r, d, g, q      []float32
	threshold, rate float64
	nonnegative     bool
}

func checkCorrelate(b *bench, precision Precision, rows, atoms, dim int) {
	a := averaging{rate: 0.05}
	for _, a.nonnegative = range []bool{false, true} {
		a.r, a.d = b.normal(rows*dim, 0), b.normal(atoms*dim, 0)
		for i := 4; i < rows; i += 5 { // products are 0, and Q stays 0 where it is 0
			clear(a.r[i*dim : (i+1)*dim])
		}
		b.drawSums(&a, rows, atoms)
		renewed, gs, qs := b.array(nil, rows, atoms), b.array(a.g, rows, atoms), b.array(a.q, rows, atoms)
		b.run(correlate{
			codes: renewed.data, sumG: gs.data, sumQ: qs.data, residuals: b.array(a.r, rows, dim).data, atoms: b.array(a.d, atoms, dim).data,
			gradient: -2, square: 4, threshold: a.threshold, rate: a.rate,
			shape: newWidths(fp32, atoms, dim).shape(rows), nonnegative: a.nonnegative,
		}.launch(precision))
		p, magnitude := multiply(rows, atoms, dim,
			func(i, k int) float32 { return a.r[i*dim+k] }, func(k, j int) float32 { return a.d[j*dim+k] })
		b.expectAverages(a, b.read(renewed), b.read(gs), b.read(qs), p, magnitude, tolerance[precision], 0)
	}
}

// drawSums draws S and Q, and a threshold.
func (b *bench) drawSums(a *averaging, rows, atoms int) {
	a.g, a.q = b.normal(rows*atoms, 0), b.normal(rows*atoms, 0.5)
	for i := range a.q {
		a.q[i] *= a.q[i]
	}
	a.threshold = 1.5
	if rows == 3 {
		a.threshold = 1e6 // all codes are zero
	}
}

// expectAverages checks new codes, S and Q, given the products p and the sums of the magnitudes of their terms.
// codeScale is the scale of float16 codes; 0 for float32.
func (b *bench) expectAverages(a averaging, codes, newG, newQ []float32, p, magnitude []float64, tolerance, codeScale float64) {
	b.t.Helper()
	wantG, wantQ := make([]float64, len(p)), make([]float64, len(p))
	sizeG, sizeQ := make([]float64, len(p)), make([]float64, len(p))
	for i := range p {
		wantG[i], sizeG[i] = float64(a.g[i])-2*p[i], math.Abs(float64(a.g[i]))+2*magnitude[i]
		wantQ[i], sizeQ[i] = float64(a.q[i])+4*p[i]*p[i], float64(a.q[i])+4*2*magnitude[i]*magnitude[i]
	}
	b.expect("S", newG, wantG, sizeG, tolerance)
	b.expect("Q", newQ, wantQ, sizeQ, tolerance)

	// The expected codes follow from the S and Q that the kernel wrote.
	shrinkage := graph.Shrinkage{Lambda: a.threshold, Rate: a.rate}
	zeros := 0
	for i, got := range codes {
		want := shrinkage.Apply(float64(newG[i]), float64(newQ[i]), 1)
		if a.nonnegative {
			want = max(want, 0)
		}
		// The second term is for the rounding of |S| − threshold, which may be small.
		tolerance := 1e-6*math.Abs(want) + 1e-6*a.rate*math.Abs(float64(newG[i]))/math.Sqrt(float64(newQ[i])+graph.Epsilon)
		if codeScale > 0 {
			want = max(-65504/codeScale, min(want, 65504/codeScale))
			tolerance += math.Abs(want)/2048 + 0x1p-25/codeScale
		}
		if !(math.Abs(float64(got)-want) <= tolerance) || a.nonnegative && got < 0 {
			b.t.Fatalf("code %d is %v, want %v", i, got, want)
		}
		if got == 0 {
			zeros++
		}
	}
	if len(p) > 100 && (zeros == 0 || a.threshold < 2 && zeros == len(p)) {
		b.t.Errorf("%d of %d codes are zero: a poor test", zeros, len(p))
	}
}

// checkUpdateCodes compares the code step with its formulas.
func checkUpdateCodes(b *bench, _ Precision, rows, atoms, dim int) {
	const codeScale, atomScale, residualScale = 1 << 9, 0.125, 32
	const product, sum = residualScale * atomScale, 3e-6 // sum is the error of a product's float32 sum
	a := averaging{rate: 0.05}
	for _, a.nonnegative = range []bool{false, true} {
		old, x := b.codes(rows, atoms), b.normal(rows*dim, 0)
		a.d = rounded(b.normal(atoms*dim, 0), atomScale)
		decode := func(codes []float32) (decoded, magnitude []float64) {
			return multiply(rows, dim, atoms,
				func(i, k int) float32 { return codes[i*atoms+k] }, func(k, j int) float32 { return a.d[k*dim+j] })
		}
		for i := range old {
			old[i] *= 0.1
		}
		codes := b.halves(old, rows, atoms, codeScale)
		decoded, decodedSize := decode(b.read(codes))
		for i := 4; i < rows; i += 5 { // the residual is 0, except for rounding
			for j := i * dim; j < (i+1)*dim; j++ {
				x[j] = float32(decoded[j])
			}
		}
		b.drawSums(&a, rows, atoms)
		for i := 3; i < rows; i += 5 { // long vectors; their new codes decode to shorter vectors
			for j := i * dim; j < (i+1)*dim; j++ {
				x[j] *= 20
			}
			clear(a.g[i*atoms : (i+1)*atoms])
			clear(a.q[i*atoms : (i+1)*atoms])
		}
		gs, qs := b.pitched(a.g, rows, atoms, 8), b.pitched(a.q, rows, atoms, 8)
		factors, losses := zeros[float64](b, rows), zeros[float64](b, rows)
		b.run(updateCodes{
			codes: pointer[half](codes.data), sumG: gs.data, sumQ: qs.data, factors: factors, losses: losses,
			x: b.pitched(x, rows, dim, 8).data, atoms: pointer[half](b.halves(a.d, atoms, dim, atomScale).data),
			gradient: -2. / product, square: 4. / product / product, threshold: a.threshold, rate: a.rate,
			codeScale: codeScale, atomScale: atomScale, residualScale: residualScale,
			shape: newWidths(fp16, atoms, dim).shape(rows), nonnegative: a.nonnegative,
		}.launch())

		p, magnitude := make([]float64, rows*atoms), make([]float64, rows*atoms)
		for i := range rows {
			for k := range atoms {
				for j, d := range encodetest.Widen(a.d[k*dim:][:dim]) {
					r := float64(x[i*dim+j]) - decoded[i*dim+j]
					p[i*atoms+k] += r * d
					// magnitude is in units of the tolerance of float16 residuals.
					magnitude[i*atoms+k] += (math.Abs(r) + sum/tolerance[fp16]*(math.Abs(float64(x[i*dim+j]))+decodedSize[i*dim+j])) * math.Abs(d)
				}
			}
		}
		renewed := b.read(codes)
		b.expectAverages(a, renewed, b.read(gs), b.read(qs), p, magnitude, tolerance[fp16], codeScale)

		decoded, decodedSize = decode(renewed)
		gotFactors, gotLosses := readBack(b, factors, rows), readBack(b, losses, rows)
		var kinds [3]int // factors of 0, between 0 and 1, and of 1
		for i := range rows {
			var xp, pp, xpError, ppError, loss, lossError float64
			for j := i * dim; j < (i+1)*dim; j++ {
				xp += float64(x[j]) * decoded[j]
				pp += decoded[j] * decoded[j]
				xpError += sum * math.Abs(float64(x[j])) * decodedSize[j]
				ppError += 2 * sum * math.Abs(decoded[j]) * decodedSize[j]
			}
			factor, factorError := graph.ClampedRatio(xp, pp), 0.
			if pp > 0 {
				factorError = (xpError + factor*ppError) / pp
			}
			if !(math.Abs(gotFactors[i]-factor) <= factorError) {
				b.t.Errorf("the factor of row %d is %v, want %v ± %.2g", i, gotFactors[i], factor, factorError)
			}
			kinds[int(math.Ceil(factor)+math.Floor(factor))]++
			for j := i * dim; j < (i+1)*dim; j++ {
				r := float64(x[j]) - gotFactors[i]*decoded[j]
				loss += r * r
				lossError += 2*math.Abs(r)*(sum*decodedSize[j]+0x1p-23*math.Abs(float64(x[j]))) + 0x1p-23*r*r
			}
			if !(math.Abs(gotLosses[i]-loss) <= lossError) {
				b.t.Errorf("the loss of row %d is %v, want %v ± %.2g", i, gotLosses[i], loss, lossError)
			}
		}
		if rows > 60 && slices.Min(kinds[:]) == 0 {
			b.t.Errorf("%v factors of 0, between, and of 1: a poor test", kinds)
		}
	}
}

// checkSearch compares a kernel of the search with the definition, bit by bit.
func checkSearch(name string) func(b *bench, _ Precision, rows, atoms, dim int) {
	kernel := searchKernel{name: name}
	for _, k := range searchKernels {
		if k.name == name {
			kernel = k
		}
	}
	return func(b *bench, _ Precision, rows, atoms, dim int) {
		with := kernel
		if with.shared() > b.maxShared { // this GPU runs another kernel; the interpreter runs all of them
			with = searchFor(dim, b.maxShared)
		}
		checkSearchWith(b, with, rows, atoms, dim)
	}
}

// Rows that are too long for the shared memory of a block use search_any.
func TestSearchKernels(t *testing.T) {
	for _, c := range []struct {
		dim, kilobytes int
		want           string
	}{
		{1, 99, "search_128"}, {129, 99, "search_320"}, {384, 99, "search_384"}, {385, 99, "search_any"},
		{768, 163, "search_768"}, {769, 163, "search_any"}, {1024, 227, "search_1024"}, {1025, 227, "search_any"},
	} {
		if got := searchFor(c.dim, c.kilobytes<<10); got.name != c.want {
			t.Errorf("%d elements, %d KB: %s, want %s", c.dim, c.kilobytes, got.name, c.want)
		}
	}
}

func checkSearchWith(b *bench, kernel searchKernel, n, atoms, dim int) {
	const steps = 8 // atoms enter in steps 0, 3 and 6, but not in the last step
	d := &model.Dictionary{Dim: dim, Atoms: b.normal(atoms*dim, 0)}
	y := b.normal(n*dim, 0)
	scale := func(x []float32, factor float64) {
		for i := range x {
			x[i] = float32(float64(x[i]) * factor)
		}
	}
	for k := range atoms {
		scale(d.Atom(k), []float64{1, 3, 0.01, 1e-37, 0}[k%5])
	}
	for i := range n {
		row := y[i*dim:][:dim]
		if scale(row, []float64{1, 0, 1e-20, 1e20, 1e-40, 5, 1e36}[i%7]); i%3 == 2 { // few numbers that aren't 0: the units of such a row differ
			for j := range row {
				if j%97 != 5*i%97 {
					row[j] = 0
				}
			}
		}
	}
	if n > 9 {
		y[8*dim] = float32(math.NaN())
		y[9*dim] = float32(math.Inf(-1))
	}
	s, err := backend.StepSize(d)
	testonly.Must(b.t, err)
	w := newWidths(fp32, atoms, dim)
	rounded, rows := newRoundedAtoms(b.memory, w, kernel), b.array(y, n, dim)
	step := put(b, []float64{s})
	round := rounded.round(w, b.array(d.Atoms, atoms, dim).data, step)
	b.run(few(round[0]))
	b.run(round[1])
	nonzeros := 0
	for _, o := range []encode.Options{{Lambda: 0.3, Steps: steps, Nonzeros: 1 + atoms/12}, {Lambda: 0.3, Steps: steps, Nonzeros: atoms, Nonnegative: true}, {Steps: 1, Nonzeros: 1}} {
		state := newSearchState(b.memory, w, n, kernel)
		schedule := schedule(o.Lambda, o.Steps)
		state.iterations, state.count = put(b, schedule), len(schedule)
		b.run(state.launch(&rounded, search{y: rows.data, step: step, capacity: int32(backend.Capacity(o, atoms)), shape: w.shape(n), nonnegative: o.Nonnegative}))
		factors := readBack(b, state.factors, n)
		for i := range n {
			var codes []float32
			for k := 0; k < atoms; k += searchAtoms {
				codes = append(codes, readBack(b, state.codes.at(codePlace(w, i, k)), min(searchAtoms, atoms-k))...)
			}
			for k, want := range encodetest.Search(y[i*dim:][:dim], d, s, o, backend.Capacity(o, atoms)) {
				got := float32(float64(codes[k]) * factors[i])
				if got != want {
					b.t.Fatalf("%+v: code %d of row %d is %v, want %v", o, k, i, got, want)
				}
				if want != 0 {
					nonzeros++
				}
			}
		}
	}
	if all := 3 * n * atoms; all > 100 && (nonzeros == 0 || nonzeros == all) {
		b.t.Errorf("%d of %d codes are not zero: a poor test", nonzeros, all)
	}
}

// codePlace returns the place of a code of the search, as code_place does.
func codePlace(w widths, row, atom int) int {
	return row/searchRows*searchRows*2*w.searchPitch() + (atom/searchAtoms*2*searchRows+row%searchRows)*searchAtoms + atom%searchAtoms
}

// checkPolish compares the polish with the formulas in float64, for codes with ties, zeros and few nonzeros.
func checkPolish(b *bench, _ Precision, rows, atoms, dim int) {
	d, y, w := b.normal(atoms*dim, 0), b.normal(rows*dim, 0), newWidths(fp32, atoms, dim)
	s, err := backend.StepSize(&model.Dictionary{Dim: dim, Atoms: d})
	testonly.Must(b.t, err)
	values, factors := b.normal(rows*atoms, 0.6), make([]float64, rows)
	for i := range rows {
		factors[i] = []float64{0.1, 1e-3}[i%2]
		for k := range atoms {
			switch v := &values[i*atoms+k]; i % 4 {
			case 1:
				*v = float32(math.Round(float64(2**v))) / 2 // many are equal
			case 2:
				*v *= float32(math.Pow(10, float64(b.rng.IntN(10)-5)))
			case 3:
				*v = 7
			}
		}
	}
	laid := slices.Repeat([]float32{7}, roundUp(rows, searchRows)*2*w.searchPitch()) // the polish must ignore numbers beyond the atoms
	for i, v := range values {
		laid[codePlace(w, i/atoms, i%atoms)] = v
	}
	codes := put(b, laid)
	for _, most := range []int{1, min(3, atoms), max(1, atoms/3), atoms} {
		state := 12*roundUp(most, polishBatch) + 4*w.dimPitch
		for _, c := range []struct {
			nonnegative, learns bool
			maxShared           int
		}{
			{false, true, b.maxShared},
			{true, false, polishShared}, // the state of a row is in global memory
			{false, false, polishShared + state + 4*w.dimPitch*min(most, 3*polishBatch/2)}, // only the state and the first batch of atoms fit into shared memory
		} {
			o := encode.Options{Nonzeros: most, Nonnegative: c.nonnegative}
			lists, losses := rows*most, zeros[float64](b, rows)
			nonzeros, l1 := zeros[float64](b, rows), zeros[float64](b, rows)
			k := polish{
				index: zeros[int32](b, lists), value: zeros[float32](b, lists), momentumCodes: zeros[float32](b, rows*roundUp(most, polishBatch)),
				residuals: b.array(nil, rows, dim).data, losses: losses, nonzeros: nonzeros, l1: l1,
				codes: codes, factors: put(b, factors), y: b.array(y, rows, dim).data, atoms: b.array(d, atoms, dim).data,
				iterations: put(b, schedule(0, backend.PolishSteps)), count: backend.PolishSteps, step: put(b, []float64{s}),
				maxNonzeros: int32(most), shape: w.shape(rows), nonnegative: c.nonnegative,
			}
			dense := b.array(nil, rows, atoms)
			if c.learns {
				k.dense, k.used = dense.data, zeros[int32](b, atoms)
				allowSameValue(b, k.used)
			}
			b.run(k.launch(c.maxShared))
			index, value, gotNonzeros := readBack(b, k.index, lists), readBack(b, k.value, lists), readBack(b, nonzeros, rows)
			gotL1, gotLosses := readBack(b, l1, rows), readBack(b, losses, rows)
			all, used := make([]float32, 0, rows*atoms), make([]int32, atoms)
			for i := range rows {
				row, want := encodetest.Widen(y[i*dim:][:dim]), make([]float64, atoms)
				for k, v := range values[i*atoms:][:atoms] {
					want[k] = float64(v) * factors[i]
				}
				encodetest.Polish(want, row, encodetest.Widen(d), s, o)
				got, sum := make([]float32, atoms), 0.
				last := int32(-1)
				for n := range int(gotNonzeros[i]) {
					k, v := index[i*most+n], value[i*most+n]
					if k <= last || v == 0 {
						b.t.Fatalf("%+v, %d: element %d of row %d is %v of atom %d, after %d", c, most, n, i, v, k, last)
					}
					got[k], last = v, k
					sum += math.Abs(float64(v))
					used[k] = 1
				}
				testonly.Near(b.t, fmt.Sprintf("%+v, %d: row %d", c, most, i), encodetest.Widen(got), want, 2e-6)
				loss := 0.
				for _, r := range encodetest.Residual(row, encodetest.Widen(d), encodetest.Widen(got)) {
					loss += r * r
				}
				if !(math.Abs(gotLosses[i]-loss) <= 1e-5*(1+loss)) || !(math.Abs(gotL1[i]-sum) <= 1e-12*(1+sum)) {
					b.t.Errorf("%+v, %d: row %d has the loss %v and Σ|a| %v, want %v and %v", c, most, i, gotLosses[i], gotL1[i], loss, sum)
				}
				all = append(all, got...)
			}
			if c.learns && (!slices.Equal(b.read(dense), all) || !slices.Equal(readBack(b, k.used, atoms), used)) {
				b.t.Errorf("%+v, %d: dense codes or used atoms differ from the lists", c, most)
			}
		}
	}
}

// checkRemember checks sums of products.
func checkRemember(b *bench, precision Precision, n, atoms, dim int) {
	for _, c := range []struct {
		keep float64
		both bool // B, too
	}{{0, true}, {0.75, true}, {0.5, false}} {
		a, r, g, s := b.codes(n, atoms), b.normal(n*dim, 0), b.normal(atoms*atoms, 0), b.normal(atoms*dim, 0)
		codes, rows := b.array(a, n, atoms), b.array(r, n, dim)
		if c.keep == 0 { // the kernel must ignore the old sums
			g[0], s[0] = float32(math.NaN()), float32(math.NaN())
		}
		for i := range atoms {
			for j := range i {
				g[j*atoms+i] = g[i*atoms+j]
			}
		}
		gram, products := b.array(g, atoms, atoms), b.array(s, atoms, dim)
		k := remember{gram: gram.data, codes: codes.data, decay: c.keep, shape: newWidths(fp32, atoms, dim).shape(n)}
		if c.both {
			k.products, k.rows = products.data, rows.data
		}
		b.run(k.launch())
		expect := func(sums array, old, rows []float32, width int) {
			want, magnitude := multiply(atoms, width, n,
				func(i, k int) float32 { return a[k*atoms+i] }, func(k, j int) float32 { return rows[k*width+j] })
			for i := range want {
				if c.keep > 0 {
					want[i] += c.keep * float64(old[i])
					magnitude[i] += c.keep * math.Abs(float64(old[i]))
				}
			}
			b.expect(fmt.Sprintf("%+v: sums", c), b.read(sums), want, magnitude, tolerance[precision])
		}
		expect(gram, g, a, atoms)
		if c.both {
			expect(products, s, r, dim)
		}
	}
}

// checkJacobi compares the new atoms of each block with the tape machine's. Atoms that are not used, or that have no new
// direction, must stay. The moves, which replace GD, must be the changes of the atoms.
func checkJacobi(b *bench, _ Precision, atoms, dim, _ int) {
	const norm, pull = 2.5, 0.75
	d, decoded, products, anchors := b.normal(atoms*dim, 0), b.normal(atoms*dim, 0), b.normal(atoms*dim, 0), b.normal(atoms*dim, 0)
	g, stays := b.normal(atoms*atoms, 0.9), make([]bool, atoms)
	for i := range atoms {
		for j := range i {
			g[i*atoms+j] = g[j*atoms+i]
		}
		diagonal := &g[i*atoms+i]
		*diagonal = 0.5 + 4*b.rng.Float32() // less or more than the sum of the others
		switch stays[i] = i > 0; i % 9 {    // 9 is coprime to the rows of a chunk
		case 2:
			*diagonal = 0.9e-8
		case 3:
			decoded[i*dim] = float32(math.NaN())
		case 7: // u is zero
			for _, m := range [][]float32{d, decoded, products, anchors} {
				clear(m[i*dim : (i+1)*dim])
			}
			for j := range i / blockAtoms * blockAtoms {
				g[i*atoms+j], g[j*atoms+i] = 0, 0
			}
		case 4:
			*diagonal = float32(math.NaN())
		case 5:
			decoded[i*dim] = 1e38 // the square of u overflows, or u itself
		case 6: // little use
			*diagonal, stays[i] = 1.1e-8, false
		default:
			stays[i] = false
		}
	}
	dictionary, sums := b.array(d, atoms, dim), b.array(decoded, atoms, dim)
	b.run(jacobi{
		atoms: dictionary.data, decoded: sums.data, products: b.array(products, atoms, dim).data, anchors: b.array(anchors, atoms, dim).data,
		gram: b.array(g, atoms, atoms).data, updated: zeros[int32](b, 1), loss: put(b, []float64{2}),
		norm: norm, minUsage: graph.LeastUse, inverseRelaxation: 1 / graph.Relaxation, anchorWeight: pull / 2, shape: newWidths(fp32, atoms, dim).shape(0),
	}.launch(b.multiprocessors))
	gotAtoms, moves := b.read(dictionary), b.read(sums)

	for first := 0; first < atoms; first += blockAtoms {
		n := min(blockAtoms, atoms-first)
		at := func(i, j int) float64 { return float64(g[(first+i)*atoms+first+j]) }
		// p is GD after the moves of the previous blocks.
		p, _ := multiply(n, dim, first, func(i, k int) float32 { return g[(first+i)*atoms+k] }, func(k, j int) float32 { return moves[k*dim+j] })
		// The formula needs B without the parts of other atoms: B − GD, plus the block's G times its D.
		blockG, blockB := make([]float64, 0, n*n), make([]float64, n*dim)
		for i := range n {
			blockG = append(blockG, encodetest.Widen(g[(first+i)*atoms+first:][:n])...)
			for c := range dim {
				blockB[i*dim+c] = float64(products[(first+i)*dim+c]) - float64(decoded[(first+i)*dim+c]) - p[i*dim+c]
				for j := range n {
					if !stays[first+i] {
						blockB[i*dim+c] += at(i, j) * float64(d[(first+j)*dim+c])
					}
				}
			}
		}
		learn, err := graph.Learn(graph.Spec{Atoms: n, Dim: dim, Norm: norm}, 1)
		testonly.Must(b.t, err)
		out, err := learn.Run(map[string][]float64{
			"D": encodetest.Widen(d[first*dim:][:n*dim]), "G": blockG, "B": blockB, "W": encodetest.Widen(anchors[first*dim:][:n*dim]), "c": {pull},
		})
		testonly.Must(b.t, err)
		for i := range n * dim {
			e := first*dim + i
			want, tolerance := float64(d[e]), 0.
			if !stays[e/dim] {
				want, tolerance = out["D"][i], 2e-6*norm // a few roundings of numbers up to four times the size of u
			}
			if move := float64(moves[e]); !(math.Abs(float64(gotAtoms[e])-want) <= tolerance) || !(math.Abs(move-want+float64(d[e])) <= tolerance) {
				b.t.Fatalf("element %d of atom %d has moved by %v to %v, want %v ± %.2g, from %v", e%dim, e/dim, move, gotAtoms[e], want, tolerance, d[e])
			}
		}
	}
}

func checkGather(b *bench, _ Precision, n, dim, _ int) {
	const all = 23
	rows := b.normal(all*dim, 0)
	index, want := make([]int32, n), make([]float32, 0, n*dim)
	for i := range index {
		index[i] = int32(b.rng.IntN(all)) // some indices repeat
		want = append(want, rows[int(index[i])*dim:][:dim]...)
	}
	batch, of := b.array(nil, n, dim), b.array(rows, all, dim)
	b.run(few(gather{batch: batch.data, rows: of.data, index: put(b, index), shape: newWidths(fp32, 1, dim).shape(n)}.launch()))
	if !slices.Equal(b.read(batch), want) {
		b.t.Error("other rows")
	}
}

// checkPower compares power with iterations of v ← Mv/‖Mv‖ in float64, for a matrix M = AᵀA.
func checkPower(b *bench, _ Precision, dim, _, _ int) {
	depth := min(dim, 300)
	a, start := b.normal(depth*dim, 0), b.normal(dim, 0)
	products, _ := multiply(dim, dim, depth, func(i, k int) float32 { return a[k*dim+i] }, func(k, j int) float32 { return a[k*dim+j] })
	elements, norm := make([]float32, dim*dim), gonum.Norm(encodetest.Widen(start), 2)
	for i, p := range products {
		elements[i] = float32(p)
	}
	for j := range start {
		start[j] /= float32(norm)
	}
	matrix, m := b.array(elements, dim, dim), encodetest.Widen(elements)
	cases := []struct {
		most      int
		tolerance float64
	}{{1, 0}, {2, 0}, {5, 0}, {1000, 0.1}, {1000, 1e-6}}
	if dim > 1000 {
		cases = cases[:1] // the interpreter takes too long for more
	}
	for _, c := range cases {
		vector, value, step := put(b, start), zeros[float64](b, 1), zeros[float64](b, 1)
		b.run(power{
			vector: vector, work: zeros[float64](b, 2*dim), value: value, step: step, matrix: matrix.data, margin: backend.StepMargin,
			tolerance: c.tolerance, maxIterations: int32(c.most), dim: int32(dim), dimPitch: int32(matrix.pitch),
		}.launch())
		v, size := encodetest.Widen(start), 0.
		for range c.most {
			next, before := make([]float64, dim), size
			for j := range next {
				next[j] = gonum.Dot(m[j*dim:][:dim], v)
			}
			size = gonum.Dot(v, next)
			gonum.ScaleTo(v, 1/gonum.Norm(next, 2), next)
			if size-before <= c.tolerance*size {
				break
			}
		}
		// Elements round to float32.
		if got := readBack(b, value, 1)[0]; !(math.Abs(got-size) <= 1e-6*size) {
			b.t.Errorf("%+v: the eigenvalue is %v, want %v", c, got, size)
		} else if want, err := backend.StepOf(got); err != nil || readBack(b, step, 1)[0] != want {
			b.t.Errorf("%+v: the step size is %v, want %v, error %v", c, readBack(b, step, 1), want, err)
		}
		testonly.Near(b.t, fmt.Sprintf("%+v: vector", c), encodetest.Widen(readBack(b, vector, dim)), v, 1e-5)
	}
}

// vectorOps are the elementwise operations of the row machine.
var vectorOps = map[op]func(a, b float32) float32{
	opAddVV: func(a, b float32) float32 { return a + b }, opAddVN: func(a, b float32) float32 { return a + b },
	opSubVV: func(a, b float32) float32 { return a - b }, opSubVN: func(a, b float32) float32 { return a - b },
	opMulVV: func(a, b float32) float32 { return a * b }, opMulVN: func(a, b float32) float32 { return a * b },
	opDivVV: func(a, b float32) float32 { return a / b },
	opSqrt:  func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) },
	opAbs:   func(a, _ float32) float32 { return float32(math.Abs(float64(a))) },
	opSign: func(a, _ float32) float32 {
		switch {
		case a > 0:
			return 1
		case a < 0:
			return -1
		}
		return 0
	},
	opRelu: func(a, _ float32) float32 { return max(a, 0) },
}

var numberOps = map[op]func(a, b float64) float64{
	opMul: func(a, b float64) float64 { return a * b }, opRatio: graph.ClampedRatio,
}

// checkBody runs every instruction of the row machine, on rows in memory and in scratch.
func checkBody(b *bench, _ Precision, rows, width, _ int) {
	x, y := b.normal(rows*width, 0.2), b.normal(rows*width, 0.2)
	copy(x, []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), 1e-40})
	first, second := b.array(x, rows, width), b.array(y, rows, width)
	in := func(a array) place { return place{a.data, int64(a.pitch)} }
	for o := opAddVV; o <= opRelu; o++ {
		inMemory, inScratch := b.array(nil, rows, width), b.array(nil, rows, width)
		places := []place{{pitch: int64(first.pitch)}, in(second), in(inMemory), in(inScratch), {pitch: 1}, {pitch: 2}, {pitch: 3}, {pitch: 0}}
		operand, copied := int32(1), int32(5) // vector y
		if o >= opAddVN && o <= opMulVN {
			operand, copied = 1, 1 // number 0.75
		}
		b.body([]instruction{
			{op: opMulVN, dst: 7, a: 0, b: 0}, // scratch row 0 must not matter
			{o, 2, 0, operand},
			{op: opMulVN, dst: 4, a: 0, b: 2}, {op: opMulVN, dst: 5, a: 1, b: 2}, {o, 6, 4, copied}, {op: opMulVN, dst: 3, a: 6, b: 2},
		}, places, []float64{-3, 0.75, 1}, 0, body{input: first.data, rows: int32(rows), width: int32(width), temps: 4})
		got, gotInScratch := b.read(inMemory), b.read(inScratch)
		for i := range got {
			var operand float32 = 0.75
			if o < opAddVN {
				operand = y[i]
			}
			want := vectorOps[o](x[i], operand)
			for _, got := range []float32{got[i], gotInScratch[i]} {
				if got != want && !(isNaN(got) && isNaN(want)) {
					b.t.Fatalf("instruction %d: element %d of %v and %v is %v, want %v", o, i, x[i], operand, got, want)
				}
			}
		}
	}
}

// checkBodyHalves checks the halves of a scaled row. Numbers outside the range of halves are clamped.
func checkBodyHalves(b *bench, _ Precision, rows, width, _ int) {
	const scale = 0.25
	x := b.normal(rows*width, 0.2)
	for i := range x {
		if i%7 == 0 {
			x[i] *= float32(math.Pow(10, float64(b.rng.IntN(20)-10)))
		}
	}
	from, to := b.array(x, rows, width), b.halves(nil, rows, width, 1)
	places := []place{{pitch: int64(from.pitch)}, {to.data, int64(to.pitch)}}
	b.body([]instruction{{opHalves, 1, 0, 1}}, places, []float64{0, scale}, 0, body{input: from.data, rows: int32(rows), width: int32(width)})
	for i, got := range b.read(to) {
		if want := rounded([]float32{max(-65504, min(x[i]*scale, 65504))}, 1)[0]; got != want {
			b.t.Fatalf("element %d of %v is %v, want %v", i, x[i], got, want)
		}
	}
}

// body launches the row machine with a program. It returns the row numbers 0 to stored − 1, each with one value per
// row.
func (b *bench) body(program []instruction, places []place, numbers []float64, stored int, k body) []float64 {
	k.program, k.places, k.numbers = put(b, program), put(b, places), put(b, numbers)
	k.instructions, k.numberCount = int32(len(program)), int32(len(numbers))
	k.rowNumbers, k.rowPitch = zeros[float64](b, max(1, stored)*int(k.rows)), int64(k.rows)
	b.run(few(k.launch()))
	return readBack(b, k.rowNumbers, stored*int(k.rows))
}

func checkBodyNumbers(b *bench, _ Precision, rows, width, count int) {
	x, y := b.normal(rows*width, 0), b.normal(rows*width, 0)
	a, other := b.array(x, rows, width), b.array(y, rows, width)
	// Number 1 is a constant, number 2 the sum of the row, and number 3 the result. The others stay as they were.
	for o := opMul; o <= opRatio; o++ {
		f := numberOps[o]
		for _, constant := range []float64{0, 2, -2, 100} {
			numbers := []float64{0, constant, 1, -1}
			program := []instruction{
				{op: opRowSum, dst: 3, a: 0}, {op: opStore, dst: 0, a: 3},
				{op: opMulVN, dst: 1, a: 0, b: 2}, // a copy in scratch; the next instruction replaces number 2
				{op: opRowSum, dst: 2, a: 1}, {o, 3, 2, 1}, {op: opStore, dst: 2, a: 2}, {op: opStore, dst: 3, a: 3},
				{op: opMulVN, dst: 1, a: 0, b: 3}, // a dot product replaces number 3 at once, and then all threads read it
				{op: opRowDot, dst: 3, a: 0, b: 2}, {op: opAddVN, dst: 1, a: 0, b: 3}, {op: opStore, dst: 1, a: 3},
				{op: opMul, dst: 1, a: 1, b: 2}, // changes only the row's copy of number 1: the next row must not see it
				{op: opAddVN, dst: 1, a: 0, b: 1},
			}
			for i := 4; i < count; i++ {
				numbers, program = append(numbers, float64(i)/2), append(program, instruction{op: opStore, dst: int32(i), a: int32(i)})
			}
			places := []place{{pitch: int64(a.pitch)}, {pitch: 1}, {other.data, int64(other.pitch)}}
			stored := b.body(program, places, numbers, count, body{input: a.data, rows: int32(rows), width: int32(width), temps: 2})
			for row := range rows {
				var sum, dot float64
				for i, v := range x[row*width : (row+1)*width] {
					sum += float64(v)
					dot += float64(v * y[row*width+i])
				}
				// Float64 sums in another order.
				got := stored[2*rows+row]
				if inMemory := stored[row]; math.Abs(got-sum) > 1e-12 || got != inMemory {
					b.t.Fatalf("sum of row %d is %v, in memory %v, want %v", row, got, inMemory, sum)
				}
				if got := stored[rows+row]; math.Abs(got-dot) > 1e-12 {
					b.t.Fatalf("product of row %d is %v, want %v", row, got, dot)
				}
				if result, want := stored[3*rows+row], f(got, constant); result != want && !math.IsNaN(want) {
					b.t.Errorf("instruction %d of %v and %v is %v, want %v", o, got, constant, result, want)
				}
				for i := 4; i < count; i++ {
					if got := stored[i*rows+row]; got != numbers[i] {
						b.t.Fatalf("number %d of row %d is %v, want %v", i, row, got, numbers[i])
					}
				}
			}
		}
	}
}

func checkTotals(b *bench, _ Precision, rows, _, _ int) {
	values := make([]float64, 2*rows)
	var first, second float64
	for i := range rows {
		values[i], values[rows+i] = b.rng.NormFloat64(), b.rng.Float64()
		first, second = first+values[i], second+values[rows+i]
	}
	before := []float64{0, 0, 0, 10, 5, 5, 2, 3, -3}
	program := []instruction{
		{op: opTotal, dst: 1, a: 1}, {op: opTotal, dst: 0, a: 0}, {opRatio, 2, 0, 1},
		{op: opAccumulate, dst: 3, a: 1}, {op: opCountBelowOne, dst: 4, a: 2}, {op: opCountBelowOne, dst: 5, a: 6}, {opMul, 6, 6, 6},
	}
	want := []float64{first, second, 0, 10 + second, 5, 5, 4, 3, -3}
	for o := opMul; o <= opRatio; o++ {
		f := numberOps[o]
		for _, operands := range [][2]int32{{7, 6}, {6, 7}, {8, 7}, {7, 5}} {
			program = append(program, instruction{o, int32(len(want)), operands[0], operands[1]})
			before, want = append(before, 0), append(want, f(want[operands[0]], want[operands[1]]))
		}
	}
	numbers := put(b, before)
	b.run(totals{
		program: put(b, program), instructions: int32(len(program)), numbers: numbers,
		rowNumbers: put(b, values), rowPitch: int64(rows), rows: int32(rows),
	}.launch())
	got := readBack(b, numbers, len(want))
	want[2] = graph.ClampedRatio(got[0], got[1])
	if want[2] < 1 {
		want[4]++
	}
	for i := range want {
		// Float64 sums in another order.
		if math.Abs(got[i]-want[i]) > 1e-14*float64(rows) {
			b.t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func checkFinishAndPackCodes(b *bench, precision Precision, rows, atoms, _ int) {
	const scale = 1 << 9
	for _, scaled := range []bool{false, true} {
		values := b.codes(rows, atoms)
		codes, shape := b.stored(precision, values, rows, atoms, scale), newWidths(precision, atoms, 1).shape(rows)
		values = b.read(codes) // rounded
		if precision != fp16 {
			padded := slices.Clone(pitched(values, atoms, codes.pitch))
			for i := range padded {
				if i%codes.pitch >= atoms { // as after a diverged training
					padded[i] = float32(math.NaN())
				}
			}
			codes.data = b.matrix(padded, codes)
		}
		factors := make([]float64, rows)
		var onDevice pointer[float64]
		for i := range factors {
			factors[i] = []float64{0.3, 1, 0}[i%3]
		}
		if scaled {
			onDevice = put(b, factors)
		}
		nonzeros, l1, used := zeros[float64](b, rows), zeros[float64](b, rows), zeros[int32](b, atoms)
		allowSameValue(b, used)
		b.run(few(finishCodes{
			codes: pointer[byte](codes.data), factors: onDevice, nonzeros: nonzeros, l1: l1, used: used, scale: scale, shape: shape,
		}.launch(precision)))

		want := slices.Clone(values)
		if scaled {
			for i := range want {
				want[i] *= float32(factors[i/atoms])
			}
			if precision == fp16 {
				want = rounded(want, scale)
			}
		}
		var start []int64
		var index []int32
		var packed []float32
		wantUsed := make([]int32, atoms)
		gotNonzeros, gotL1 := readBack(b, nonzeros, rows), readBack(b, l1, rows)
		for i := range rows {
			start = append(start, int64(len(packed)))
			var size float64
			for j := range atoms {
				v := &want[i*atoms+j]
				if *v != 0 {
					index, packed = append(index, int32(j)), append(packed, *v)
					wantUsed[j] = 1
					size += math.Abs(float64(*v))
				}
			}
			if n := len(packed) - int(start[i]); int(gotNonzeros[i]) != n || math.Abs(gotL1[i]-size) > 1e-12*(1+size) {
				b.t.Errorf("row %d: %v nonzeros, Σ|a| %v, want %d, %v", i, gotNonzeros[i], gotL1[i], n, size)
			}
		}
		got := make([]float32, rows*atoms)
		if precision == fp16 {
			got = b.read(codes)
		} else {
			copyRows(got, atoms, b.padded(codes), codes.pitch)
		}
		if !slices.Equal(got, want) {
			b.t.Error("codes are not scaled as they should be")
		}
		if got := readBack(b, used, atoms); !slices.Equal(got, wantUsed) {
			b.t.Errorf("used dimensions %v, want %v", got, wantUsed)
		}
		// The last element is a guard.
		packedIndex, packedValue := zeros[int32](b, len(packed)+1), zeros[float32](b, len(packed)+1)
		b.run(few(packCodes{
			codes: pointer[byte](codes.data), starts: put(b, start), index: packedIndex, value: packedValue, scale: scale, shape: shape,
		}.launch(precision)))
		gotIndex, gotValue := readBack(b, packedIndex, len(packed)+1), readBack(b, packedValue, len(packed)+1)
		if !slices.Equal(gotValue, append(packed, 0)) || !slices.Equal(gotIndex, append(index, 0)) {
			b.t.Errorf("packed values %v of columns %v, want %v of %v", gotValue, gotIndex, packed, index)
		}
	}
}

// checkRandomCodes compares the initial codes with the CPU's, bit by bit.
func checkRandomCodes(b *bench, precision Precision, rows, atoms, _ int) {
	const scale, seed = 1 << 9, 1<<63 + 42
	codes, shape := b.stored(precision, nil, rows, atoms, scale), newWidths(precision, atoms, 1).shape(rows)
	b.run(few(randomCodes{
		codes: pointer[byte](codes.data), seed: seed, maxMagnitude: backend.InitialCodeScale(atoms), scale: max(1, codes.scale), shape: shape,
	}.launch(precision)))
	var want []float32
	for i := range rows {
		code := make([]float32, atoms)
		backend.InitialCode(code, seed, i)
		want = append(want, code...)
	}
	if precision == fp16 {
		want = rounded(want, scale)
	}
	if !slices.Equal(b.read(codes), want) {
		b.t.Error("other numbers than the CPU's")
	}
}
