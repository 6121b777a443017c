package interpret

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// A Class is the rows that have one value in a column, and the dimensions that tell them from
// all others.
type Class struct {
	Value       string      `json:"value"`
	Rows        int         `json:"rows"`
	Dimensions  []Separated `json:"dimensions"`  // best first
	Significant int         `json:"significant"` // dimensions with |z| above [Significance], of all
}

// Separated is how well the values of a dimension tell the rows of a class from others.
type Separated struct {
	Dimension int     `json:"dimension"`
	AUC       float64 `json:"auc"` // the chance that a row of the class has a larger value than another; 0.5 if it tells nothing, less if its values are smaller
	Z         float64 `json:"z"`   // how many standard deviations that is from 0.5, if it were chance (Mann and Whitney, with ties)
}

// Significance is what |z| is above by chance for one dimension in a thousand.
const Significance = 3.290526731491895

// Separate returns what tells the rows of each value of a column apart, which has a value for
// each row: of the values that most rows have, so many of them, those of at least ten rows, with n
// dimensions each. A larger class comes before a smaller one. If ctx is cancelled, its error is
// returned.
func (x *Index) Separate(ctx context.Context, column []string, values, n int) ([]Class, error) {
	const fewest = 10
	counts := map[string]int{}
	for _, v := range column {
		counts[v]++
	}
	classes := []Class{}
	for v, rows := range counts {
		if rows >= fewest && rows <= len(column)-fewest {
			classes = append(classes, Class{Value: v, Rows: rows})
		}
	}
	slices.SortFunc(classes, func(a, b Class) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Value, b.Value)) })
	classes = classes[:min(values, len(classes))]
	number := map[string]int{}
	for c := range classes {
		number[classes[c].Value] = c
	}
	of := make([]int, len(column)) // the class of each row, -1 for none
	for i, v := range column {
		of[i] = -1
		if c, ok := number[v]; ok {
			of[i] = c
		}
	}
	all := make([][]Separated, x.Codes.Cols) // by dimension and class
	err := parallel(ctx, x.Codes.Cols, func(k int) { all[k] = x.separate(k, of, classes) })
	if err != nil {
		return nil, err
	}
	for c := range classes {
		found := []Separated{}
		for _, of := range all {
			if s := of[c]; s.Z != 0 {
				found = append(found, s)
				if math.Abs(s.Z) > Significance {
					classes[c].Significant++
				}
			}
		}
		slices.SortStableFunc(found, func(a, b Separated) int { return cmp.Compare(math.Abs(b.Z), math.Abs(a.Z)) })
		classes[c].Dimensions = found[:min(n, len(found))]
	}
	return classes, nil
}

// separate returns how well dimension k tells each class from the rest. The sum of the ranks of a
// class's rows, less the least that it can be, is Mann and Whitney's U. Rows of equal values, such
// as zero, have the mean of their ranks.
func (x *Index) separate(k int, of []int, classes []Class) []Separated {
	type ranked struct {
		row   int32
		value float32
	}
	rows, values := x.Dimension(k)
	sorted := make([]ranked, len(rows))
	for i := range rows {
		sorted[i] = ranked{rows[i], values[i]}
	}
	slices.SortFunc(sorted, func(a, b ranked) int { return cmp.Compare(a.value, b.value) })
	sums := make([]float64, len(classes))
	zeros := make([]int, len(classes)) // rows that have no value here
	for c := range classes {
		zeros[c] = classes[c].Rows
	}
	rank, ties := 0.0, 0.0
	tie := func(n int) (mean float64) { // of the next n ranks, from 1
		mean = rank + (float64(n)+1)/2
		rank += float64(n)
		ties += float64(n) * (float64(n)*float64(n) - 1)
		return mean
	}
	empty := len(of) - len(sorted)
	zeroRank, passed := 0.0, false
	for i := 0; i < len(sorted) || !passed; {
		if !passed && (i == len(sorted) || sorted[i].value > 0) {
			zeroRank, passed = tie(empty), true
			continue
		}
		end := i
		for end < len(sorted) && sorted[end].value == sorted[i].value {
			end++
		}
		mean := tie(end - i)
		for ; i < end; i++ {
			if c := of[sorted[i].row]; c >= 0 {
				sums[c] += mean
				zeros[c]--
			}
		}
	}
	n := float64(len(of))
	separated := make([]Separated, len(classes))
	for c, class := range classes {
		in := float64(class.Rows)
		pairs := in * (n - in)
		auc := (sums[c] + float64(zeros[c])*zeroRank - in*(in+1)/2) / pairs
		separated[c] = Separated{Dimension: k, AUC: auc}
		if deviation := math.Sqrt(((n + 1) - ties/(n*(n-1))) / (12 * pairs)); deviation > 0 {
			separated[c].Z = (auc - 0.5) / deviation
		}
	}
	return separated
}
