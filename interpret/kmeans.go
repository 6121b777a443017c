package interpret

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"overcomplete/internal/parallel"
	"overcomplete/vectors"
)

// KMeans partitions dense vectors, V×L, into k clusters and returns the cluster, 0 to
// k−1, of each. It starts from k-means++ (Arthur and Vassilvitskii 2007) with random
// numbers from seed, and repeats Lloyd's iteration until no vector changes its cluster,
// at most 100 times. If there are fewer distinct vectors than clusters, some clusters
// are empty.
//
// It is an error if a value is not finite. If ctx is cancelled, its error is returned.
func KMeans(ctx context.Context, x *vectors.Dense, k int, seed uint64) ([]int, error) {
	for i, v := range x.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("interpret: k-means of vectors that are not finite: %q has %v", x.Words[i/x.Dim], v)
		}
	}
	centers, err := plusPlus(ctx, x, k, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		return nil, err
	}
	return lloyd(ctx, x, centers)
}

// plusPlus returns k centres, k×L: vectors drawn one by one, each as likely as its
// squared distance to the nearest one drawn before.
func plusPlus(ctx context.Context, x *vectors.Dense, k int, rng *rand.Rand) ([]float64, error) {
	centers := make([]float64, 0, k*x.Dim)
	nearest := slices.Repeat([]float64{1}, x.Len())
	for range k {
		sum := 0.0
		for _, d := range nearest {
			sum += d
		}
		drawn, at := 0, rng.Float64()*sum
		for i, d := range nearest {
			if d > 0 {
				drawn = i
				if at -= d; at < 0 {
					break
				}
			}
		}
		first := len(centers) == 0
		for _, v := range x.Row(drawn) {
			centers = append(centers, float64(v))
		}
		center := centers[len(centers)-x.Dim:]
		err := parallel.Each(ctx, (x.Len()+chunk-1)/chunk, func(c int) {
			for i := c * chunk; i < min((c+1)*chunk, x.Len()); i++ {
				d := 0.0
				for l, v := range x.Row(i) {
					d += (float64(v) - center[l]) * (float64(v) - center[l])
				}
				if first || d < nearest[i] {
					nearest[i] = d
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return centers, nil
}

// lloyd improves centers, k×L, and returns the nearest one of each vector. A
// centre that no vector is nearest to stays where it is.
func lloyd(ctx context.Context, x *vectors.Dense, centers []float64) ([]int, error) {
	k := len(centers) / x.Dim
	cluster := slices.Repeat([]int{-1}, x.Len())
	mean := make([]float64, x.Dim)
	for i, v := range x.Data {
		mean[i%x.Dim] += float64(v) / float64(x.Len())
	}
	for range 100 {
		changed, err := assign(ctx, x, mean, centers, cluster)
		if err != nil || !changed {
			return cluster, err
		}
		members := make([][]int, k)
		for i, c := range cluster {
			members[c] = append(members[c], i)
		}
		err = parallel.Each(ctx, k, func(c int) {
			if len(members[c]) == 0 {
				return
			}
			center := centers[c*x.Dim : (c+1)*x.Dim]
			clear(center)
			for _, i := range members[c] {
				for l, v := range x.Row(i) {
					center[l] += float64(v) / float64(len(members[c]))
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

// assign gives each vector its nearest centre and reports whether that has
// changed any. Of ‖x−c‖² only ‖c‖² − 2⟨x,c⟩ depends on the centre; so that little
// cancels, the mean of all vectors is subtracted from both.
func assign(ctx context.Context, x *vectors.Dense, mean, centers []float64, cluster []int) (changed bool, err error) {
	k := len(centers) / x.Dim
	shifted := blas64.General{Rows: k, Cols: x.Dim, Stride: x.Dim, Data: make([]float64, len(centers))}
	squares := make([]float64, k)
	for i, v := range centers {
		v -= mean[i%x.Dim]
		shifted.Data[i] = v
		squares[i/x.Dim] += v * v
	}
	changes := make([]bool, (x.Len()+chunk-1)/chunk)
	err = parallel.Each(ctx, len(changes), func(part int) {
		lo, hi := part*chunk, min((part+1)*chunk, x.Len())
		rows := blas64.General{Rows: hi - lo, Cols: x.Dim, Stride: x.Dim, Data: make([]float64, (hi-lo)*x.Dim)}
		for i, v := range x.Data[lo*x.Dim : hi*x.Dim] {
			rows.Data[i] = float64(v) - mean[i%x.Dim]
		}
		scores := blas64.General{Rows: hi - lo, Cols: k, Stride: k, Data: slices.Repeat(squares, hi-lo)}
		blas64.Gemm(blas.NoTrans, blas.Trans, -2, rows, shifted, 1, scores)
		for i := lo; i < hi; i++ {
			best, least := 0, math.Inf(1)
			for c, s := range scores.Data[(i-lo)*k : (i-lo+1)*k] {
				if s < least {
					best, least = c, s
				}
			}
			changes[part] = changes[part] || best != cluster[i]
			cluster[i] = best
		}
	})
	return slices.Contains(changes, true), err
}
