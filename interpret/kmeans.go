package interpret

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/vectors"
)

// KMeans partitions dense vectors, V×L, into k clusters by Lloyd's iteration,
// which goes on until no vector changes its cluster or, at most, 100 times. It
// starts from k-means++ (Arthur and Vassilvitskii 2007), drawn from seed. It returns
// the cluster of each vector. Where there are fewer distinct vectors than
// clusters, some clusters are empty.
func KMeans(x *vectors.Dense, k int, seed uint64) []int {
	return lloyd(x, plusPlus(x, k, rand.New(rand.NewPCG(seed, 0))))
}

// plusPlus returns k centres, k×L: vectors drawn one by one, each as likely as its
// squared distance to the nearest one drawn before.
func plusPlus(x *vectors.Dense, k int, rng *rand.Rand) []float32 {
	centers := make([]float32, 0, k*x.Dim)
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
		center := x.Row(drawn)
		first := len(centers) == 0
		centers = append(centers, center...)
		parallel((x.Len()+chunk-1)/chunk, func(c int) {
			for i := c * chunk; i < min((c+1)*chunk, x.Len()); i++ {
				d := 0.0
				for l, v := range x.Row(i) {
					d += float64(v-center[l]) * float64(v-center[l])
				}
				if first || d < nearest[i] {
					nearest[i] = d
				}
			}
		})
	}
	return centers
}

// lloyd improves centers, k×L, and returns the nearest one of each vector. A
// centre that no vector is nearest to stays where it is.
func lloyd(x *vectors.Dense, centers []float32) []int {
	k := len(centers) / x.Dim
	cluster := slices.Repeat([]int{-1}, x.Len())
	for range 100 {
		if !assign(x, centers, cluster) {
			break
		}
		members := make([][]int, k)
		for i, c := range cluster {
			members[c] = append(members[c], i)
		}
		parallel(k, func(c int) {
			if len(members[c]) == 0 {
				return
			}
			sum := make([]float64, x.Dim)
			for _, i := range members[c] {
				for l, v := range x.Row(i) {
					sum[l] += float64(v)
				}
			}
			for l, s := range sum {
				centers[c*x.Dim+l] = float32(s / float64(len(members[c])))
			}
		})
	}
	return cluster
}

// assign gives each vector its nearest centre and reports whether that has
// changed any. Of ‖x−c‖² only −2⟨x,c⟩ + ‖c‖² depends on the centre.
func assign(x *vectors.Dense, centers []float32, cluster []int) (changed bool) {
	k := len(centers) / x.Dim
	squares := make([]float32, k)
	for c := range squares {
		sum := 0.0
		for _, v := range centers[c*x.Dim : (c+1)*x.Dim] {
			sum += float64(v) * float64(v)
		}
		squares[c] = float32(sum)
	}
	changes := make([]bool, (x.Len()+chunk-1)/chunk)
	parallel(len(changes), func(part int) {
		lo, hi := part*chunk, min((part+1)*chunk, x.Len())
		scores := general(hi-lo, k, slices.Repeat(squares, hi-lo))
		blas32.Gemm(blas.NoTrans, blas.Trans, -2, general(hi-lo, x.Dim, x.Data[lo*x.Dim:hi*x.Dim]), general(k, x.Dim, centers), 1, scores)
		for i := lo; i < hi; i++ {
			best, least := 0, float32(math.Inf(1))
			for c, s := range scores.Data[(i-lo)*k : (i-lo+1)*k] {
				if s < least {
					best, least = c, s
				}
			}
			changes[part] = changes[part] || best != cluster[i]
			cluster[i] = best
		}
	})
	return slices.Contains(changes, true)
}
