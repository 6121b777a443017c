package interpret

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"overcomplete/internal/parallel"
	"overcomplete/vectors"
)

// KMeans partitions dense vectors, V×L, into k clusters and returns the cluster of each, 0 to k−1. It
// is initialised by k-means++ (Arthur and Vassilvitskii 2007) and iterates Lloyd's algorithm until no
// vector changes its cluster, at most 100 times. If there are fewer distinct vectors than clusters,
// some clusters are empty. It returns an error if a value isn't finite, and ctx's error.
func KMeans(ctx context.Context, x *vectors.Dense, k int, seed uint64) ([]int, error) {
	for i, v := range x.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("interpret: k-means: %q has a value that isn't finite (%v)", x.Words[i/x.Dim], v)
		}
	}
	centers, err := plusPlus(ctx, x, k, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		return nil, err
	}
	cluster := slices.Repeat([]int{-1}, x.Len())
	for range 100 {
		var changed atomic.Bool
		err := parallel.Each(ctx, x.Len(), func(i int) {
			best, least := 0, math.Inf(1)
			for c, center := range centers {
				if d := squaredDistance(x.Row(i), center); d < least {
					best, least = c, d
				}
			}
			if best != cluster[i] {
				cluster[i] = best
				changed.Store(true)
			}
		})
		if err != nil || !changed.Load() {
			return cluster, err
		}
		sizes := make([]float64, k)
		for _, c := range cluster {
			sizes[c]++
		}
		for c := range centers {
			if sizes[c] > 0 { // an empty cluster keeps its centre
				clear(centers[c])
			}
		}
		for i, c := range cluster {
			for l, v := range x.Row(i) {
				centers[c][l] += float64(v) / sizes[c]
			}
		}
	}
	return cluster, nil
}

// plusPlus returns k centres: vectors drawn with a probability proportional to the squared distance to
// the nearest centre so far.
func plusPlus(ctx context.Context, x *vectors.Dense, k int, rng *rand.Rand) ([][]float64, error) {
	centers := make([][]float64, k)
	nearest := slices.Repeat([]float64{1}, x.Len())
	for c := range centers {
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
		centers[c] = make([]float64, x.Dim)
		for l, v := range x.Row(drawn) {
			centers[c][l] = float64(v)
		}
		err := parallel.Each(ctx, x.Len(), func(i int) {
			if d := squaredDistance(x.Row(i), centers[c]); c == 0 || d < nearest[i] {
				nearest[i] = d
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return centers, nil
}

func squaredDistance(x []float32, center []float64) float64 {
	d := 0.0
	for l, v := range x {
		d += (float64(v) - center[l]) * (float64(v) - center[l])
	}
	return d
}

// chunk is the number of rows that a goroutine processes at a time.
const chunk = 256
