package explore

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// place puts n atoms of length dim, row-major, on a plane so that atoms of a
// similar direction are close, in the unit square.
//
// It begins with the two principal components, then pulls each atom to those of
// the largest cosine and pushes it from others drawn at random, with
// the gradients of LargeVis (Tang et al. 2016) for a Cauchy kernel. Same atoms,
// same places.
func place(atoms []float32, n, dim int) [][2]float64 {
	const (
		neighbours = 12
		epochs     = 200
		draws      = 5 // atoms to be pushed from, for each to be pulled to
		spread     = 20.0
		longest    = 4.0 // of a step
	)
	at := make([][2]float64, n)
	if n < 3 {
		for i := range at {
			at[i] = [2]float64{(float64(i) + 1) / float64(n+1), .5}
		}
		return at
	}
	x := directions(atoms, n, dim)
	components(at, x)
	fit(at, spread)
	nearest := nearestRows(x, min(neighbours, n-1))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range at { // or else what is at one place stays there
		at[i][0] += rng.Float64() * spread / 1e4
		at[i][1] += rng.Float64() * spread / 1e4
	}
	for epoch := range epochs {
		rate := 1 - float64(epoch)/epochs
		// move changes the place of i by pull times the way from j, no further than
		// the longest step.
		move := func(i, j int, pull float64) {
			for c := range 2 {
				at[i][c] += rate * max(-longest, min(longest, pull*(at[i][c]-at[j][c])))
			}
		}
		for i := range at {
			for _, j := range nearest[i] {
				d := distance2(at[i], at[j])
				move(i, j, -2/(1+d))
				move(j, i, -2/(1+d))
				for range draws {
					other := rng.IntN(n)
					d := distance2(at[i], at[other])
					move(i, other, 2/((.01+d)*(1+d)))
				}
			}
		}
	}
	fit(at, 1)
	return at
}

func distance2(a, b [2]float64) float64 {
	return (a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1])
}

// directions returns the atoms scaled to unit length; those of zeros stay so.
func directions(atoms []float32, n, dim int) *mat.Dense {
	x := mat.NewDense(n, dim, nil)
	for i := range n {
		row := x.RawRowView(i)
		sum := 0.0
		for c, v := range atoms[i*dim : (i+1)*dim] {
			row[c] = float64(v)
			sum += row[c] * row[c]
		}
		if sum > 0 {
			for c := range row {
				row[c] /= math.Sqrt(sum)
			}
		}
	}
	return x
}

// components sets at to the rows' first two principal components, or one where
// rows have no more.
func components(at [][2]float64, x *mat.Dense) {
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, x, nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return // all start from one point
	}
	var axes, projected mat.Dense
	eigen.VectorsTo(&axes) // by increasing eigenvalue
	_, dim := x.Dims()
	projected.Mul(x, axes.Slice(0, dim, max(dim-2, 0), dim))
	_, found := projected.Dims()
	for i := range at {
		for c := range found {
			at[i][c] = projected.At(i, found-1-c)
		}
	}
}

// nearestRows returns for each row the k others of the largest inner product,
// which are computed for a block of rows at a time.
func nearestRows(x *mat.Dense, k int) [][]int {
	const block = 256
	n, dim := x.Dims()
	nearest := make([][]int, n)
	var products mat.Dense
	for lo := 0; lo < n; lo += block {
		hi := min(lo+block, n)
		products.Reset()
		products.Mul(x.Slice(lo, hi, 0, dim), x.T())
		eachRange(hi-lo, func(from, to int) {
			for r := from; r < to; r++ {
				nearest[lo+r] = largest(products.RawRowView(r), lo+r, k)
			}
		})
	}
	return nearest
}

// largest returns the indices of the k largest values, but for the index self.
func largest(values []float64, self, k int) []int {
	top := make([]int, 0, k+1)
	for j, v := range values {
		if j == self || len(top) == k && v <= values[top[k-1]] {
			continue
		}
		i := len(top)
		for i > 0 && v > values[top[i-1]] {
			i--
		}
		top = slices.Insert(top, i, j)[:min(len(top)+1, k)]
	}
	return top
}

// fit moves and scales the points into a square of the given side; what is
// shorter than the side is centred.
func fit(at [][2]float64, side float64) {
	low, high := at[0], at[0]
	for _, p := range at {
		for c := range 2 {
			low[c], high[c] = min(low[c], p[c]), max(high[c], p[c])
		}
	}
	extent := max(high[0]-low[0], high[1]-low[1])
	if extent == 0 {
		extent = 1
	}
	for i := range at {
		for c := range 2 {
			rest := 1 - (high[c]-low[c])/extent
			at[i][c] = side * ((at[i][c]-low[c])/extent + rest/2)
		}
	}
}
