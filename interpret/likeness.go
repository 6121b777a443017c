package interpret

import "math"

// likeRows is how many rows of a side of a dimension are compared.
const likeRows = 8

// Likeness returns how alike the strongest rows of a side of a dimension are but for it: the mean
// cosine of the codes of eight, without the dimension, less that of any two rows. Of a side that
// means something the rows share other dimensions, too; 0 is chance. It is NaN if there are not
// two rows.
//
// It needs no other vectors, and so it says less than word intrusion ([Intrusion.OddOneOut]). Over
// both sides of 3,000 dimensions from GoogleNews, by the recipe best, its rank correlation with the
// share of matched intruders that GloVe finds is 0.79. It tells the positive sides, which are made
// from words, from the negative ones, which mean little. Among the positive ones it is 0.43, where
// ten questions have 0.64 with ten others. Texts that nearly repeat each other are alike whatever
// they say.
func (x *Index) Likeness(dimension int, negative bool) float64 {
	var rows []int
	for _, e := range x.Side(dimension, likeRows, negative) {
		rows = append(rows, e.Row)
	}
	return x.meanCosine(rows, dimension) - x.chance()
}

// allRows are the numbers of n rows.
func allRows(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// meanCosine returns the mean cosine of the codes of each two of the rows, without a dimension
// unless that is −1: that of codes u of norm 1 is (‖Σu‖² − n)/(n² − n). Cosines with zeros are 0.
func (x *Index) meanCosine(rows []int, without int) float64 {
	n := float64(len(rows))
	if n < 2 {
		return math.NaN()
	}
	sums := make([]float64, x.Codes.Cols)
	pairs := 0.0
	for _, row := range rows {
		index, value := x.Codes.Row(row)
		squares := 0.0
		for j, k := range index {
			if int(k) != without {
				squares += float64(value[j]) * float64(value[j])
			}
		}
		for j, k := range index {
			if int(k) != without && squares > 0 {
				u := float64(value[j]) / math.Sqrt(squares)
				sums[k] += u
				pairs -= u * u // with itself
			}
		}
	}
	for _, s := range sums {
		pairs += s * s
	}
	return pairs / (n * (n - 1))
}
