// Package classes finds the dimensions that separate the rows of a class from all others.
package classes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"overcomplete/internal/parallel"
	"overcomplete/interpret"
)

// A Class is the rows that share a value of a column, and the dimensions that separate them from
// all other rows.
type Class struct {
	Value       string       `json:"value"`
	Rows        int          `json:"rows"`
	Dimensions  []Separation `json:"dimensions"`  // best first
	Significant int          `json:"significant"` // number of dimensions with p < 0.001
}

// A Separation says how well the values of a dimension separate a class.
type Separation struct {
	Dimension int     `json:"dimension"`
	AUC       float64 `json:"auc"` // probability that a row of the class has a larger value than another row; 0.5 is chance
	Z         float64 `json:"z"`   // deviation from 0.5 in standard deviations (Mann and Whitney, with ties)
}

// significantZ is the |z| of p = 0.001, two-sided.
const significantZ = 3.290526731491895

// Separate returns the n best dimensions of each class of a column, which has a value for each row.
// It returns the largest classes first, at most maxClasses of them, and none with fewer than ten rows
// or ten other rows. If ctx is cancelled, it returns ctx's error.
func Separate(ctx context.Context, x *interpret.Index, column []string, maxClasses, n int) ([]Class, error) {
	const minRows = 10
	counts := map[string]int{}
	for _, v := range column {
		counts[v]++
	}
	classes := []Class{}
	for v, rows := range counts {
		if rows >= minRows && rows <= len(column)-minRows {
			classes = append(classes, Class{Value: v, Rows: rows})
		}
	}
	slices.SortFunc(classes, func(a, b Class) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Value, b.Value)) })
	classes = classes[:min(maxClasses, len(classes))]
	classOf := make([]int, len(column)) // of each row, −1 for none
	for i, v := range column {
		classOf[i] = slices.IndexFunc(classes, func(c Class) bool { return c.Value == v })
	}
	separations := make([][]Separation, x.Codes.Cols) // by dimension and class
	err := parallel.Each(ctx, x.Codes.Cols, func(k int) { separations[k] = separate(x, k, classOf, classes) })
	if err != nil {
		return nil, err
	}
	for c := range classes {
		found := []Separation{}
		for _, of := range separations {
			if of[c].Z == 0 {
				continue
			}
			found = append(found, of[c])
			if math.Abs(of[c].Z) > significantZ {
				classes[c].Significant++
			}
		}
		slices.SortStableFunc(found, func(a, b Separation) int { return cmp.Compare(math.Abs(b.Z), math.Abs(a.Z)) })
		classes[c].Dimensions = found[:min(n, len(found))]
	}
	return classes, nil
}

// separate returns how well dimension k separates each class. The sum of the ranks of a class, minus
// its smallest possible value, is Mann and Whitney's U. Rows of equal values, such as zero, share
// the mean of their ranks.
func separate(x *interpret.Index, k int, classOf []int, classes []Class) []Separation {
	rows, values := x.Dimension(k)
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	rankSums := make([]float64, len(classes))
	zeros := make([]float64, len(classes)) // rows of each class whose value is 0
	for c := range classes {
		zeros[c] = float64(classes[c].Rows)
	}
	rank, ties := 0.0, 0.0
	tie := func(n int) (mean float64) { // rank of the next n rows, which have equal values
		mean = rank + (float64(n)+1)/2
		rank += float64(n)
		ties += float64(n) * (float64(n)*float64(n) - 1)
		return mean
	}
	n := len(classOf)
	zeroRank := 0.0
	for i := 0; i < len(order); {
		value := values[order[i]]
		if value > 0 && zeroRank == 0 {
			zeroRank = tie(n - len(order))
		}
		end := i
		for end < len(order) && values[order[end]] == value {
			end++
		}
		mean := tie(end - i)
		for ; i < end; i++ {
			if c := classOf[rows[order[i]]]; c >= 0 {
				rankSums[c] += mean
				zeros[c]--
			}
		}
	}
	if zeroRank == 0 {
		zeroRank = tie(n - len(order))
	}
	separations := make([]Separation, len(classes))
	for c, class := range classes {
		in, all := float64(class.Rows), float64(n)
		pairs := in * (all - in)
		auc := (rankSums[c] + zeros[c]*zeroRank - in*(in+1)/2) / pairs
		separations[c] = Separation{Dimension: k, AUC: auc}
		if deviation := math.Sqrt(((all + 1) - ties/(all*(all-1))) / (12 * pairs)); deviation > 0 {
			separations[c].Z = (auc - 0.5) / deviation
		}
	}
	return separations
}
