package eval

import (
	"math"
	"slices"
)

// Spearman returns Spearman's rank correlation ρ of x and y, from −1 to 1. It is the
// correlation of their ranks; equal values have the average of the ranks that they
// take up together. It is NaN if all values of x are equal, or all of y. Both must have
// the same length.
func Spearman(x, y []float64) float64 {
	return pearson(ranks(x), ranks(y))
}

// ranks returns the rank of each value, from 1.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case x[i] < x[j]:
			return -1
		case x[i] > x[j]:
			return 1
		}
		return 0
	})
	rank := make([]float64, len(x))
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) && x[order[last+1]] == x[order[first]] {
			last++
		}
		for _, i := range order[first : last+1] {
			rank[i] = float64(first+last)/2 + 1
		}
		first = last + 1
	}
	return rank
}

func pearson(x, y []float64) float64 {
	var meanX, meanY float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(y))
	}
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return xy / math.Sqrt(xx*yy)
}
