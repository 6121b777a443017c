package interpret

import (
	"math/rand/v2"
	"slices"
)

// maxSample is the largest number of texts whose words are counted for labels. It bounds the time of labelling.
const maxSample = 20_000

// A sample is an index of some rows of another index.
type sample struct {
	*Index
	rows []int // numbers of the rows in the other index
}

// drawSample draws one row at random from each of maxSample ranges of rows. It returns all rows if there are
// no more than maxSample.
func (x *Index) drawSample() *sample {
	n := x.Codes.Rows
	s := &sample{x, make([]int, min(n, x.maxSample))}
	known := 0
	rng := rand.New(rand.NewPCG(1, 0))
	for i := range s.rows {
		lo, hi := i*n/len(s.rows), (i+1)*n/len(s.rows)
		s.rows[i] = lo + rng.IntN(hi-lo)
		if s.rows[i] < x.Known {
			known++
		}
	}
	if len(s.rows) < n {
		s.Index = NewIndex(SelectRows(x.Codes, s.rows))
		s.Index.Known = known
	}
	return s
}

// sampled returns the rows of the sample that are in each group of rows of x.
func (x *Index) sampled(groups [][]int32) [][]int32 {
	sampled, at := make([][]int32, len(groups)), slices.Repeat([]int32{-1}, x.Codes.Rows)
	for i, row := range x.sample().rows {
		at[row] = int32(i)
	}
	for g, rows := range groups {
		for _, row := range rows {
			if at[row] >= 0 {
				sampled[g] = append(sampled[g], at[row])
			}
		}
	}
	return sampled
}
