// Package recall measures how well search by codes replaces search by dense vectors. Recall is the share of the nearest
// neighbours by dense vectors that an inverted index of sparse codes finds.
//
//	queries, err := recall.NewQueries(ctx, x, nil, 1000, 10, 1)
//	r, err := queries.Measure(ctx, m, nil, model.QueryWeights) // r.Codes.Recall 0.62, r.Reranked.Recall 0.88
package recall

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/stat"

	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/ranking"
	"overcomplete/interpret"
	"overcomplete/model"
	"overcomplete/vectors"
)

// Queries holds dense query vectors and for each query the exact k nearest neighbours by cosine among an index's rows.
type Queries struct {
	Rows       []int   // row numbers of the queries
	Neighbours [][]int // by query: rows of the index, nearest first, without the query itself

	x, from *vectors.Dense // vectors of the index, and vectors whose rows are the queries: x unless the queries are new
}

// Candidates is the number of rows that are reranked.
const Candidates = 100

// Recalls holds the recall of five searches by the codes of a model. In the comments on its fields, D is the model's
// dictionary, μ its mean, and a the code of a row, whose reconstruction is μ + aD.
type Recalls struct {
	// Codes scores documents by the cosine of their code and the code of the query.
	Codes Recall `json:"codes"`
	// Products scores documents by the dot product with the dense query x. The query weights are w = Dx, the score is
	// w·a / ‖μ + aD‖. Since w·a = x·(aD), the score is close to the cosine of x and μ + aD.
	Products Recall `json:"products"`
	// Largest scores documents as Products does, but uses only the largest weights of [model.Dictionary.Query].
	Largest Recall `json:"largest"`
	// Reranked finds [Candidates] rows as Largest does, and reranks them by the score of Products.
	Reranked Recall `json:"reranked"`
	// Dense finds [Candidates] rows as Largest does, and reranks them by the cosine of dense vectors.
	Dense Recall `json:"dense"`
}

// Recall is the mean recall@k of a search over queries.
type Recall struct {
	Recall float64 `json:"recall"` // share of the k nearest neighbours that the search finds
	Stderr float64 `json:"stderr"` // standard error of Recall
}

// NewQueries draws up to n nonzero rows of queries, or of x if queries is nil. It finds the k nearest neighbours of
// each query among the rows of x. Ties are resolved in favour of lower row numbers. NewQueries returns an error if
// there is no nonzero query, if x has at most k rows, or if the lengths of vectors differ.
func NewQueries(ctx context.Context, x, queries *vectors.Dense, n, k int, seed uint64) (*Queries, error) {
	from := cmp.Or(queries, x)
	q := &Queries{x: x, from: from}
	if from.Dim != x.Dim {
		return nil, fmt.Errorf("queries have the wrong length (got %d, want %d of the vectors)", from.Dim, x.Dim)
	}
	nonzero := 0
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(from.Len()) {
		if dot(from.Row(i), from.Row(i)) == 0 {
			continue
		}
		if nonzero++; nonzero <= n {
			q.Rows = append(q.Rows, i)
		}
	}
	if nonzero == 0 || k < 1 || x.Len() <= k {
		return nil, fmt.Errorf("too few rows for the nearest %d (got %d rows, and %d queries that are not zero)", k, x.Len(), nonzero)
	}
	cosine := q.cosines()
	var err error
	q.Neighbours, err = q.search(ctx, func(row int) []int {
		return q.best(row, k, q.all(), func(i int) float64 { return cosine(row, i) })
	})
	return q, err
}

// Check returns an error if a model doesn't have the rows of x. It compares their number, their words and the vector
// length.
func Check(m *model.Model, x *vectors.Dense) error {
	switch {
	case m.Dictionary.Dim != x.Dim:
		return fmt.Errorf("wrong length of atoms (got %d, want %d of the vectors)", m.Dictionary.Dim, x.Dim)
	case m.Codes.Rows != x.Len():
		return fmt.Errorf("wrong number of codes (got %d, want %d of the vectors)", m.Codes.Rows, x.Len())
	}
	for i, word := range m.Codes.IDs {
		if word != x.IDs[i] {
			return fmt.Errorf("row %d differs (got %.100q, want %.100q of the vectors)", i, word, x.IDs[i])
		}
	}
	return nil
}

// New reports whether the queries aren't rows of the index.
func (q *Queries) New() bool { return q.from != q.x }

// CountNew returns the number of queries whose vectors aren't rows of the index.
func (q *Queries) CountNew() (n int) {
	for i, row := range q.Rows {
		if q.New() && !slices.Equal(q.from.Row(row), q.x.Row(q.Neighbours[i][0])) {
			n++
		}
	}
	return n
}

// cosines returns a function that computes the cosine of a query and row i of the index, times the norm of the query.
func (q *Queries) cosines() func(row, i int) float64 {
	scale := make([]float64, q.x.Len())
	for i := range scale {
		scale[i] = inverse(math.Sqrt(dot(q.x.Row(i), q.x.Row(i))))
	}
	return func(row, i int) float64 { return scale[i] * dot(q.from.Row(row), q.x.Row(i)) }
}

func (q *Queries) all() []int {
	all := make([]int, q.x.Len())
	for i := range all {
		all[i] = i
	}
	return all
}

// best returns the n rows with the largest scores among the given rows, without the query itself.
func (q *Queries) best(row, n int, among []int, score func(i int) float64) []int {
	found := ranking.Ranking{N: n}
	for _, i := range among {
		if q.New() || i != row {
			found.Add(ranking.Item{Index: i, Score: score(i)})
		}
	}
	rows := make([]int, 0, n)
	for _, i := range found.Items() {
		rows = append(rows, i.Index)
	}
	return rows
}

// Measure searches the rows of the index by the codes of a model. [Recalls.Largest] uses at most n weights. encoded holds
// the codes of new queries; it isn't used if the queries are rows of the index. The model must have the rows of the index,
// see [Check].
func (q *Queries) Measure(ctx context.Context, m *model.Model, encoded *vectors.Sparse, n int) (r Recalls, err error) {
	bytes, _ := interpret.Memory(m.Codes)
	if err := memory.Check(bytes); err != nil {
		return r, fmt.Errorf("an index of %d rows: %w", m.Codes.Rows, err)
	}
	index := interpret.NewIndex(m.Codes)
	norms, err := m.Norms(ctx)
	if err != nil {
		return r, err
	}
	k, all, cosine := len(q.Neighbours[0]), q.all(), q.cosines()
	signed := m.Info.Training.Recipe.Base().Method == model.Signed
	byCodes := func(row int) (rows []int) {
		code, without := interpret.Code{}, []int(nil)
		if q.New() {
			code.Index, code.Value = encoded.Row(row)
		} else {
			code, without = index.Code(row), []int{row}
		}
		for _, neighbour := range index.Nearest(code, k, without...) {
			rows = append(rows, neighbour.Row)
		}
		return rows
	}
	byWeights := func(row, found, weights int, signed bool, among []int) []int {
		w := make([]float64, m.Dictionary.Len())
		dimensions, values := m.Dictionary.Query(q.from.Row(row), weights, signed, nil)
		for j, k := range dimensions {
			w[k] = float64(values[j])
		}
		return q.best(row, found, among, func(i int) float64 {
			product := 0.0
			index, value := m.Codes.Row(i)
			for j, k := range index {
				product += w[k] * float64(value[j])
			}
			return inverse(norms[i]) * product
		})
	}
	candidates := func(row int) []int { return byWeights(row, max(k, Candidates), n, signed, all) }
	for _, s := range []struct {
		recall *Recall
		search func(row int) []int
	}{
		{&r.Codes, byCodes},
		{&r.Products, func(row int) []int { return byWeights(row, k, m.Dictionary.Len(), true, all) }},
		{&r.Largest, func(row int) []int { return byWeights(row, k, n, signed, all) }},
		{&r.Reranked, func(row int) []int { return byWeights(row, k, m.Dictionary.Len(), true, candidates(row)) }},
		{&r.Dense, func(row int) []int {
			return q.best(row, k, candidates(row), func(i int) float64 { return cosine(row, i) })
		}},
	} {
		if *s.recall, err = q.recall(ctx, s.search); err != nil {
			return r, err
		}
	}
	return r, nil
}

// recall compares the results of a search with the nearest neighbours.
func (q *Queries) recall(ctx context.Context, search func(row int) []int) (Recall, error) {
	found, err := q.search(ctx, search)
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
	return Recall{mean, deviation / math.Sqrt(float64(len(shares)))}, nil
}

// search calls find with each query, and returns the rows found.
func (q *Queries) search(ctx context.Context, find func(row int) []int) (found [][]int, err error) {
	found = make([][]int, len(q.Rows))
	err = parallel.Each(ctx, len(found), func(i int) { found[i] = find(q.Rows[i]) })
	return found, err
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
