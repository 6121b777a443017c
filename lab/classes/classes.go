// Package classes finds the dimensions that separate the rows of a class from all other rows:
//
//	found, err := classes.Separate(ctx, index, topicOfRow, []string{"sports"}, 5)
//	best := found[0].Dimensions[0] // AUC 0.93: a text about sports has the larger value in 93 % of pairs
package classes

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
)

// A Class describes the rows that share a value of a column, and the dimensions that separate them
// from all other rows with a value.
type Class struct {
	Value       string       `json:"value"`
	Rows        int          `json:"rows"`
	Others      int          `json:"others"`      // number of other rows
	Significant int          `json:"significant"` // number of dimensions with P < [Level]
	Dimensions  []Separation `json:"dimensions"`  // in decreasing order of |Z|
}

// Level is the significance level.
const Level = 0.05

// A Separation measures how well the values of a dimension separate a class.
type Separation struct {
	Dimension  int     `json:"dimension"`
	Negative   bool    `json:"negative,omitempty"` // see [Separation.Pole]
	Share      float64 `json:"share"`              // share of the class's rows with a nonzero at the pole
	OtherShare float64 `json:"other_share"`        // share of the other rows
	AUC        float64 `json:"auc"`                // probability that a row of the class has a larger value than another row; 0.5 is chance
	Z          float64 `json:"z"`                  // deviation from 0.5 in standard deviations (Mann and Whitney, with ties)
	P          float64 `json:"p"`                  // two-sided p of Z, adjusted for K dimensions (Benjamini and Hochberg 1995)
	Examples   []int   `json:"-"`                  // rows with the largest values at the pole: of the class if its share is larger, else of the others
}

// Pole returns the pole whose nonzeros Share and OtherShare count: the pole where the two shares differ more.
func (s Separation) Pole() interpret.Pole {
	return interpret.Pole{Dimension: s.Dimension, Negative: s.Negative}
}

// maxExamples is the largest number of examples of a separation.
const maxExamples = 3

// Classes of rows that are in none of the compared classes.
const (
	otherClass = -1
	noClass    = -2 // the row has no value
)

// Separate compares the rows of each given value of a column with all other rows, and returns the n
// dimensions with the largest |Z| for each. column has a value for each row of x; rows with the value
// "" are left out. Each value must have rows, and there must be others. If ctx is cancelled, Separate
// returns ctx's error.
func Separate(ctx context.Context, x *interpret.Index, column, values []string, n int) ([]Class, error) {
	classes, number := make([]Class, len(values)), map[string]int{"": noClass}
	for c, v := range values {
		classes[c].Value, number[v] = v, c
	}
	classOf, rows := make([]int, len(column)), 0
	for i, v := range column {
		c, known := number[v]
		if !known {
			c = otherClass
		}
		if classOf[i] = c; c != noClass {
			rows++
		}
		if c >= 0 {
			classes[c].Rows++
		}
	}
	for c := range classes {
		classes[c].Others = rows - classes[c].Rows
	}
	separations := make([][]Separation, x.Codes.Cols) // by dimension and class
	err := parallel.Each(ctx, x.Codes.Cols, func(k int) { separations[k] = separate(x, k, classOf, classes, rows) })
	if err != nil {
		return nil, err
	}
	err = parallel.Each(ctx, len(classes), func(c int) {
		found := make([]Separation, len(separations))
		for k, of := range separations {
			found[k] = of[c]
		}
		slices.SortStableFunc(found, func(a, b Separation) int { return cmp.Compare(math.Abs(b.Z), math.Abs(a.Z)) })
		classes[c].Significant = adjust(found)
		for len(found) > 0 && (len(found) > n || found[len(found)-1].Z == 0) {
			found = found[:len(found)-1]
		}
		for i := range found {
			found[i].Examples = examples(x, found[i], func(row int) bool {
				return classOf[row] != noClass && (classOf[row] == c) == (found[i].Share >= found[i].OtherShare)
			})
		}
		classes[c].Dimensions = found
	})
	return classes, err
}

// adjust sets P of separations in decreasing order of |Z|, and returns the number below Level. The
// adjusted p-value is min over j ≥ i of p_j·K/j: the least false discovery rate at which the dimension
// is significant.
func adjust(found []Separation) (significant int) {
	least := 1.0
	for i := len(found) - 1; i >= 0; i-- {
		p := math.Erfc(math.Abs(found[i].Z) / math.Sqrt2)
		least = min(least, p*float64(len(found))/float64(i+1))
		if found[i].P = least; least < Level {
			significant++
		}
	}
	return significant
}

// separate returns the separation of each class by dimension k; all is the number of rows with a value. The rank sum of a
// class minus its smallest possible value is Mann and Whitney's U. Rows with equal values, such as zero, share the mean
// of their ranks.
func separate(x *interpret.Index, k int, classOf []int, classes []Class, all int) []Separation {
	rows, values := x.Dimension(k)
	order := make([]int, 0, len(rows))
	nonzeros := make([][2]float64, len(classes)) // number of positive and of negative values, by class
	var nonzerosOfAll [2]float64
	for i, v := range values {
		c := classOf[rows[i]]
		if c == noClass || v == 0 {
			continue
		}
		order = append(order, i)
		sign := 0
		if v < 0 {
			sign = 1
		}
		nonzerosOfAll[sign]++
		if c >= 0 {
			nonzeros[c][sign]++
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	rankSums := make([]float64, len(classes))
	rank, ties := 0.0, 0.0
	tie := func(n int) (mean float64) { // mean rank of the next n rows, whose values are equal
		mean = rank + (float64(n)+1)/2
		rank += float64(n)
		ties += float64(n) * (float64(n)*float64(n) - 1)
		return mean
	}
	zeroRank := 0.0
	for i := 0; i < len(order); {
		value := values[order[i]]
		if value > 0 && zeroRank == 0 {
			zeroRank = tie(all - len(order))
		}
		end := i
		for end < len(order) && values[order[end]] == value {
			end++
		}
		mean := tie(end - i)
		for ; i < end; i++ {
			if c := classOf[rows[order[i]]]; c >= 0 {
				rankSums[c] += mean
			}
		}
	}
	if zeroRank == 0 {
		zeroRank = tie(all - len(order))
	}
	separations := make([]Separation, len(classes))
	for c, class := range classes {
		in, n := float64(class.Rows), float64(all)
		pairs := in * (n - in)
		zeros := in - nonzeros[c][0] - nonzeros[c][1]
		s := Separation{Dimension: k, AUC: (rankSums[c] + zeros*zeroRank - in*(in+1)/2) / pairs}
		if deviation := math.Sqrt(((n + 1) - ties/(n*(n-1))) / (12 * pairs)); deviation > 0 {
			s.Z = (s.AUC - 0.5) / deviation
		}
		for sign, total := range nonzerosOfAll {
			share, others := nonzeros[c][sign]/in, (total-nonzeros[c][sign])/(n-in)
			if math.Abs(share-others) > math.Abs(s.Share-s.OtherShare) || sign == 0 {
				s.Negative, s.Share, s.OtherShare = sign == 1, share, others
			}
		}
		separations[c] = s
	}
	return separations
}

// examples returns the eligible rows with the largest values at the pole, without empty texts.
func examples(x *interpret.Index, s Separation, eligible func(row int) bool) []int {
	best := ranking.Ranking{N: maxExamples}
	rows, values := x.Dimension(s.Dimension)
	for i, row := range rows {
		empty := x.Codes.Texts != nil && strings.TrimSpace(x.Codes.Texts.Text[row]) == ""
		if eligible(int(row)) && !empty && values[i] != 0 && (values[i] < 0) == s.Negative {
			best.Add(ranking.Item{Index: int(row), Score: math.Abs(float64(values[i]))})
		}
	}
	var found []int
	for _, item := range best.Items() {
		found = append(found, item.Index)
	}
	return found
}
