// Package recall measures search by codes: the share of the nearest neighbours by dense vectors that
// an inverted index of sparse codes finds.
//
//	queries, err := recall.NewQueries(ctx, x, 1000, 10, 1)
//	r, err := queries.Measure(ctx, m) // r.Codes.Recall 0.62, r.Reranked.Recall 0.88
package recall

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Queries holds rows of dense vectors and the exact k nearest neighbours of each by cosine.
type Queries struct {
	Rows       []int
	Neighbours [][]int // row numbers by query, nearest first, without the query itself
	Seconds    float64 // wall-clock time of the exact search per query, on all processors

	x *vectors.Dense
}

// Candidates is the number of rows that [Recalls.Reranked] reranks.
const Candidates = 100

// Recalls holds the results of three searches by the codes of a model. D is its dictionary, μ its mean
// and a the code of a row, whose reconstruction is μ + aD.
type Recalls struct {
	// Codes scores documents by the cosine of their code and the code of the query.
	Codes Recall `json:"codes"`
	// Products scores documents by the dot product with the dense query x. The query weights are
	// w = Dx, the score is w·a / ‖μ + aD‖. Since w·a = x·(aD), it is close to the cosine of x and μ + aD.
	Products Recall `json:"products"`
	// Reranked reranks the [Candidates] nearest rows of Codes by the score of Products.
	Reranked Recall `json:"reranked"`
}

// Recall is the mean recall@k of a search over queries.
type Recall struct {
	Recall  float64 `json:"recall"`  // share of the k nearest neighbours that the search finds
	Stderr  float64 `json:"stderr"`  // standard error of Recall
	Seconds float64 `json:"seconds"` // wall-clock time per query, on all processors
}

// NewQueries draws n nonzero rows of x, or all if there are fewer, and finds the k nearest neighbours
// of each. Ties are resolved in favour of lower row numbers. The error says that x has no nonzero row
// or at most k rows.
func NewQueries(ctx context.Context, x *vectors.Dense, n, k int, seed uint64) (*Queries, error) {
	q := &Queries{x: x}
	scale := make([]float64, x.Len())
	for i := range scale {
		scale[i] = inverse(math.Sqrt(dot(x.Row(i), x.Row(i))))
	}
	nonzero := 0
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(x.Len()) {
		if scale[i] == 0 {
			continue
		}
		if nonzero++; nonzero <= n {
			q.Rows = append(q.Rows, i)
		}
	}
	if nonzero == 0 || k < 1 || x.Len() <= k {
		return nil, fmt.Errorf("too few rows for the nearest %d (got %d rows, %d of them not zero)", k, x.Len(), nonzero)
	}
	var err error
	q.Neighbours, q.Seconds, err = q.search(ctx, func(row int) []int {
		found := ranking.Ranking{N: k}
		for i, s := range scale {
			if i != row {
				found.Add(ranking.Item{Index: i, Score: s * dot(x.Row(row), x.Row(i))})
			}
		}
		return indices(found)
	})
	return q, err
}

// Measure searches by the codes of a model. It returns an error if the model's words or vector length
// differ from the dense vectors'.
func (q *Queries) Measure(ctx context.Context, m *model.Model) (r Recalls, err error) {
	switch {
	case m.Dictionary.Dim != q.x.Dim:
		return r, fmt.Errorf("wrong length of atoms (got %d, want %d of the vectors)", m.Dictionary.Dim, q.x.Dim)
	case m.Codes.Rows != q.x.Len():
		return r, fmt.Errorf("wrong number of codes (got %d, want %d of the vectors)", m.Codes.Rows, q.x.Len())
	}
	for i, word := range m.Codes.Words {
		if word != q.x.Words[i] {
			return r, fmt.Errorf("row %d differs (got %.100q, want %.100q of the vectors)", i, word, q.x.Words[i])
		}
	}
	bytes, _ := interpret.Memory(m.Codes)
	if err := memory.Check(bytes); err != nil {
		return r, fmt.Errorf("an index of %d rows: %w", m.Codes.Rows, err)
	}
	index := interpret.NewIndex(m.Codes)
	norms, err := m.Norms(ctx)
	if err != nil {
		return r, err
	}
	k := len(q.Neighbours[0])
	byCodes := func(row, n int) (rows []int) {
		for _, neighbour := range index.Nearest(index.Code(row), n, row) {
			rows = append(rows, neighbour.Row)
		}
		return rows
	}
	byProducts := func(row int, candidates []int) []int {
		w := make([]float64, m.Dictionary.Len())
		for k := range w {
			w[k] = dot(m.Dictionary.Atom(k), q.x.Row(row))
		}
		found := ranking.Ranking{N: k}
		for _, i := range candidates {
			if i == row {
				continue
			}
			product := 0.0
			index, value := m.Codes.Row(i)
			for j, k := range index {
				product += w[k] * float64(value[j])
			}
			found.Add(ranking.Item{Index: i, Score: inverse(norms[i]) * product})
		}
		return indices(found)
	}
	all := make([]int, m.Codes.Rows)
	for i := range all {
		all[i] = i
	}
	if r.Codes, err = q.recall(ctx, func(row int) []int { return byCodes(row, k) }); err != nil {
		return r, err
	}
	if r.Products, err = q.recall(ctx, func(row int) []int { return byProducts(row, all) }); err != nil {
		return r, err
	}
	r.Reranked, err = q.recall(ctx, func(row int) []int { return byProducts(row, byCodes(row, max(k, Candidates))) })
	return r, err
}

// recall compares the results of a search with the nearest neighbours.
func (q *Queries) recall(ctx context.Context, search func(row int) []int) (Recall, error) {
	found, seconds, err := q.search(ctx, search)
	if err != nil {
		return Recall{}, err
	}
	shares := make([]float64, len(found))
	for i, rows := range found {
		for _, row := range rows {
			if slices.Contains(q.Neighbours[i], row) {
				shares[i] += 1 / float64(len(q.Neighbours[i]))
			}
		}
	}
	mean, deviation := stat.MeanStdDev(shares, nil)
	if len(shares) == 1 {
		deviation = 0
	}
	return Recall{mean, deviation / math.Sqrt(float64(len(shares))), seconds}, nil
}

// search calls find with each query. It returns the rows found and the seconds per query.
func (q *Queries) search(ctx context.Context, find func(row int) []int) (found [][]int, seconds float64, err error) {
	start := time.Now()
	found = make([][]int, len(q.Rows))
	err = parallel.Each(ctx, len(found), func(i int) { found[i] = find(q.Rows[i]) })
	return found, time.Since(start).Seconds() / float64(len(q.Rows)), err
}

// inverse returns 1/x, or 0 if x is 0.
func inverse(x float64) float64 {
	if x == 0 {
		return 0
	}
	return 1 / x
}

func dot(a, b []float32) float64 {
	return blas32.DDot(blas32.Vector{N: len(a), Inc: 1, Data: a}, blas32.Vector{N: len(b), Inc: 1, Data: b})
}

// indices returns the row numbers of a ranking, best first.
func indices(r ranking.Ranking) []int {
	rows := make([]int, 0, r.N)
	for _, i := range r.Items() {
		rows = append(rows, i.Index)
	}
	return rows
}
