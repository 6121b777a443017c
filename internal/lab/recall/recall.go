// Package recall measures search by codes: how many of the rows that are nearest to one by
// dense vectors are found in an inverted index of sparse codes. How that is asked matters
// more than which codes are there, so it measures three ways, see [Found].
package recall

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Questions are rows of dense vectors, and the rows that are nearest to each.
type Questions struct {
	Rows    []int   // that ask
	Nearest [][]int // k rows for each but itself, with the largest cosines, largest first
	Seconds float64 // of a question that all rows are compared with, on all processors

	x *vectors.Dense
}

// Candidates is how many rows [Found.Refined] chooses from.
const Candidates = 100

// Found is how well a model's codes answer questions. D is its dictionary, K×L, μ its mean, and
// a the code of a row, which stands for the vector μ + aD.
type Found struct {
	// Codes: the question is its own code, and rows are nearest by the cosine of codes.
	Codes Search `json:"codes"`
	// Products: the question is the dense vector's products with all atoms, w = Dx, and rows
	// are nearest by w·a / ‖μ + aD‖. As w·a is x·(aD), that is, but for the part of μ and for
	// ‖x‖, the cosine of the question and what the code stands for.
	Products Search `json:"products"`
	// Refined: of the [Candidates] nearest by Codes, those that are nearest by Products.
	Refined Search `json:"refined"`
}

// Search is one way to ask.
type Search struct {
	Recall  float64 `json:"recall"`  // recall@k: the share of the k nearest rows that are among the k found, the mean over questions
	StdErr  float64 `json:"stderr"`  // of the mean
	Seconds float64 `json:"seconds"` // of a question, on all processors
}

// Ask draws n rows of x, V×L, or all if there are fewer, and finds the k rows that are nearest
// to each. Rows of zeros have no direction and don't ask. Of equal cosines the first rows count.
// The error is ctx's, or says that there are too few rows.
func Ask(ctx context.Context, x *vectors.Dense, n, k int, seed uint64) (*Questions, error) {
	q := &Questions{x: x}
	over := make([]float64, x.Len())
	for i := range over {
		over[i] = inverse(math.Sqrt(dot(x.Row(i), x.Row(i))))
	}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(x.Len()) {
		if over[i] > 0 && len(q.Rows) < n {
			q.Rows = append(q.Rows, i)
		}
	}
	if len(q.Rows) == 0 || k < 1 || x.Len() <= k {
		return nil, fmt.Errorf("%d rows, of which %d are not zero, are too few for questions about the nearest %d", x.Len(), len(q.Rows), k)
	}
	var err error
	q.Nearest, q.Seconds, err = q.answer(ctx, func(row int) []int {
		found := newNearest(k)
		for i, over := range over {
			if i != row {
				found.add(i, over*dot(x.Row(row), x.Row(i)))
			}
		}
		return found.rows
	})
	return q, err
}

// Find asks the codes of a model, whose rows are those of the questions' vectors in the same
// order. The error is ctx's, or says that they are not.
func (q *Questions) Find(ctx context.Context, m *model.Model) (f Found, err error) {
	if m.Dictionary.Dim != q.x.Dim {
		return f, fmt.Errorf("its atoms have %d numbers, and the vectors %d", m.Dictionary.Dim, q.x.Dim)
	}
	if m.Codes.Rows != q.x.Len() {
		return f, fmt.Errorf("it has the codes of %d rows, and there are %d vectors", m.Codes.Rows, q.x.Len())
	}
	for i, word := range m.Codes.Words {
		if word != q.x.Words[i] {
			return f, fmt.Errorf("row %d is %.100q in it, and %.100q in the vectors", i, word, q.x.Words[i])
		}
	}
	index := interpret.NewIndex(m.Codes)
	norms, err := m.Norms(ctx)
	if err != nil {
		return f, err
	}
	k := len(q.Nearest[0])
	codes := func(row, n int) (found []int) {
		for _, near := range index.Nearest(index.Code(row), n, row) {
			found = append(found, near.Row)
		}
		return found
	}
	products := func(row int, among func(add func(i int))) []int {
		w := weights(&m.Dictionary, q.x.Row(row))
		found := newNearest(k)
		among(func(i int) {
			if i != row {
				found.add(i, inverse(norms[i])*product(m.Codes, i, w))
			}
		})
		return found.rows
	}
	for _, way := range []struct {
		to   *Search
		find func(row int) []int
	}{
		{&f.Codes, func(row int) []int { return codes(row, k) }},
		{&f.Products, func(row int) []int {
			return products(row, func(add func(i int)) {
				for i := range m.Codes.Rows {
					add(i)
				}
			})
		}},
		{&f.Refined, func(row int) []int {
			return products(row, func(add func(i int)) {
				for _, i := range codes(row, max(k, Candidates)) {
					add(i)
				}
			})
		}},
	} {
		found, each, err := q.answer(ctx, way.find)
		if err != nil {
			return f, err
		}
		*way.to = q.score(found)
		way.to.Seconds = each
	}
	return f, nil
}

// score compares what was found with the nearest.
func (q *Questions) score(found [][]int) Search {
	shares := make([]float64, len(found))
	sum := 0.0
	for i, rows := range found {
		for _, row := range rows {
			if slices.Contains(q.Nearest[i], row) {
				shares[i]++
			}
		}
		shares[i] /= float64(len(q.Nearest[i]))
		sum += shares[i]
	}
	n := float64(len(shares))
	s := Search{Recall: sum / n}
	squares := 0.0
	for _, share := range shares {
		squares += (share - s.Recall) * (share - s.Recall)
	}
	s.StdErr = math.Sqrt(squares / max(1, n-1) / n)
	return s
}

// answer calls find for each question, on all processors, and returns what it found and the
// seconds of a question.
func (q *Questions) answer(ctx context.Context, find func(row int) []int) (found [][]int, each float64, err error) {
	start := time.Now()
	found = make([][]int, len(q.Rows))
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(q.Rows) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				found[i] = find(q.Rows[i])
			}
		})
	}
	group.Wait()
	return found, time.Since(start).Seconds() / float64(len(q.Rows)), ctx.Err()
}

// inverse returns 1/x, or 0 for 0: what has no direction is near to nothing.
func inverse(x float64) float64 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

// weights returns the products of x with all atoms, Dx, of length K.
func weights(d *model.Dictionary, x []float32) []float64 {
	w := make([]float64, d.Len())
	for k := range w {
		w[k] = dot(d.Atom(k), x)
	}
	return w
}

// product returns w·a of the code of a row.
func product(codes *vectors.Sparse, row int, w []float64) (sum float64) {
	index, value := codes.Row(row)
	for j, k := range index {
		sum += w[k] * float64(value[j])
	}
	return sum
}

func dot(a, b []float32) float64 {
	return blas32.DDot(blas32.Vector{N: len(a), Inc: 1, Data: a}, blas32.Vector{N: len(b), Inc: 1, Data: b})
}

// nearest has the n rows of the largest scores, largest first and equal ones as they came.
type nearest struct {
	rows   []int
	scores []float64
}

func newNearest(n int) *nearest { return &nearest{make([]int, 0, n), make([]float64, 0, n)} }

func (b *nearest) add(row int, score float64) {
	if len(b.rows) == cap(b.rows) {
		last := len(b.rows) - 1
		if !(score > b.scores[last]) {
			return
		}
		b.rows, b.scores = b.rows[:last], b.scores[:last]
	}
	at := sort.Search(len(b.scores), func(i int) bool { return b.scores[i] < score })
	b.rows, b.scores = slices.Insert(b.rows, at, row), slices.Insert(b.scores, at, score)
}
