// Package cluster groups dense vectors and searches their nearest neighbours.
//
// [KMeans] partitions vectors into clusters. [Ward] builds a tree whose leaves are the vectors, and [Cut]
// cuts the tree into clusters, here 20:
//
//	merges, err := cluster.Ward(ctx, x, dim)
//	clusterOf, tree := cluster.Cut(merges, len(x)/dim, 20)
//
// A [Searcher] finds the rows with the largest dot products. [Smooth] moves vectors towards their nearest
// neighbours.
package cluster

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"overcomplete/internal/parallel"
)

// KMeans partitions the rows of x, n×dim row-major and finite, into k clusters. It returns the cluster
// of each row, 0 to k−1. It is initialised by k-means++ (Arthur and Vassilvitskii 2007) and iterates
// Lloyd's algorithm until no row changes its cluster, at most 100 times. If x has fewer than k distinct
// rows, some clusters are empty. If ctx is cancelled, KMeans returns ctx.Err().
func KMeans(ctx context.Context, x []float32, dim, k int, seed uint64) ([]int, error) {
	n := len(x) / dim
	row := func(i int) []float32 { return x[i*dim : (i+1)*dim] }
	centers, err := initialCenters(ctx, n, k, row, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		return nil, err
	}
	cluster := slices.Repeat([]int{-1}, n)
	for range 100 {
		var changed atomic.Bool
		err := parallel.Each(ctx, n, func(i int) {
			best, least := 0, math.Inf(1)
			for c, center := range centers {
				if d := squaredDistance(row(i), center); d < least {
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
			for l, v := range row(i) {
				centers[c][l] += float64(v) / sizes[c]
			}
		}
	}
	return cluster, nil
}

// initialCenters returns k centres by k-means++. It draws each row with a probability proportional to
// its squared distance to the nearest earlier centre.
func initialCenters(ctx context.Context, n, k int, row func(i int) []float32, rng *rand.Rand) ([][]float64, error) {
	centers := make([][]float64, k)
	nearest := slices.Repeat([]float64{1}, n)
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
		for _, v := range row(drawn) {
			centers[c] = append(centers[c], float64(v))
		}
		err := parallel.Each(ctx, n, func(i int) {
			if d := squaredDistance(row(i), centers[c]); c == 0 || d < nearest[i] {
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
