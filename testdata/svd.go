package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// The iteration carries more columns than asked for, which is what makes it
// converge: by σ_{k+oversampling+1}/σ_k a step.
const (
	oversampling = 50
	iterations   = 100
)

// svd returns the k largest singular values of the symmetric matrix m in
// decreasing order, and the left singular vectors as the columns of u. The sign
// of a singular vector is arbitrary: its largest component is made positive.
//
// This is simultaneous iteration from a random start: Q becomes the left
// singular vectors of MQ. Once Q spans an invariant subspace of M, with
// eigenvalues Λ, they are those of M: for Q = UR, R orthogonal, it is
// (MQ)(MQ)ᵀ = UΛRRᵀΛUᵀ = UΛ²Uᵀ.
func svd(m *sparse, k int, seed uint64) (u *mat.Dense, sigma []float64) {
	n := len(m.value)
	q := randomNormal(n, min(n, k+oversampling), seed)
	var f mat.SVD
	for range iterations {
		if !f.Factorize(m.mul(q), mat.SVDThin) {
			panic("svd: no convergence") // needs NaN or Inf, which PPMI has not
		}
		f.UTo(q)
	}
	u = mat.DenseCopyOf(q.Slice(0, n, 0, k))
	fixSigns(u)
	return u, f.Values(nil)[:k]
}

// fixSigns makes the component of largest magnitude of each column positive.
func fixSigns(u *mat.Dense) {
	rows, cols := u.Dims()
	for j := range cols {
		var largest float64
		for i := range rows {
			if v := u.At(i, j); math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 {
			for i := range rows {
				u.Set(i, j, -u.At(i, j))
			}
		}
	}
}

func randomNormal(rows, cols int, seed uint64) *mat.Dense {
	rng := rand.New(rand.NewPCG(seed, 0))
	x := mat.NewDense(rows, cols, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, x)
	return x
}

// mul returns MX.
func (m *sparse) mul(x *mat.Dense) *mat.Dense {
	_, cols := x.Dims()
	y := mat.NewDense(len(m.value), cols, nil)
	for i, columns := range m.column {
		row := y.RawRowView(i)
		for p, j := range columns {
			floats.AddScaled(row, m.value[i][p], x.RawRowView(j))
		}
	}
	return y
}
