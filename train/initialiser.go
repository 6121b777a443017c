package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"overcomplete/internal/backend"
	"overcomplete/internal/cluster"
	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/model"
)

// candidatesPerAtom limits the candidates for initial atoms to the first candidatesPerAtom·K rows.
const candidatesPerAtom = 8

// coherenceLimits are upper bounds for the cosine between any two initial atoms, tried in order until K rows satisfy
// one. The last excludes rows that are equal except for rounding. Low bounds come first because they give a lower
// error, although the chosen rows then change more if a single row changes. The bounds are far apart, so that a small change of
// the input seldom leads to another bound.
var coherenceLimits = []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1 - 1e-5}

// meanSquare returns the mean of ‖x − μ‖² over the rows of x, where μ is d.Mean. If this mean square is zero up to
// rounding, meanSquare returns ErrIdenticalRows.
func meanSquare(x []float32, d *model.Dictionary) (float64, error) {
	rows := float64(len(x) / d.Dim)
	square := d.Squares(x) / rows
	const rounding = 1e-12                                      // exceeds the square of float32's relative error, 1e-7
	if !(square > rounding*(square+float32s.Squares(d.Mean))) { // the sum in parentheses is the mean of ‖x‖²
		return 0, initialiserError{ErrIdenticalRows}
	}
	return square, nil
}

// initialiser chooses initial atoms among rows.
type initialiser struct {
	x     []float32         // V×L
	mean  *model.Dictionary // holds the mean to subtract from x, and no atoms
	atoms int               // K
	order model.Order
	seed  uint64

	candidates []float32 // rows of norm 1
	chosen     []float32 // rows of norm 1, in order
}

// choose returns K initial atoms, K×L, and their norm. The atoms are the atoms of o.Like if it is set, otherwise rows
// minus the mean. All are scaled to the same norm, the root mean square of ‖x_i − μ‖.
func (s *initialiser) choose(ctx context.Context, o Options) (atoms []float32, norm float64, err error) {
	square, err := meanSquare(s.x, s.mean)
	if err != nil {
		return nil, 0, err
	}
	dim := s.mean.Dim
	rows := min(len(s.x)/dim, candidatesPerAtom*s.atoms)
	bytes := 4 * float64(dim) * (4*float64(s.atoms) + float64(rows)) // copies of atoms: 1 for the device, 2 in searchers
	if limit, ok := memory.Limit(); ok && bytes > float64(limit) {
		return nil, 0, initialiserError{fmt.Errorf("%w: initialising %d sparse dimensions requires about %.1f GB, and the limit is %.1f GB: use fewer dimensions", ErrMemory, s.atoms, bytes/1e9, float64(limit)/1e9)}
	}
	norm = math.Sqrt(square)
	if least, greatest := 1e-15, 1e15; norm < least || norm > greatest {
		return nil, 0, initialiserError{fmt.Errorf("the vectors' norm is outside the range of single precision (got %.1e less the mean, want %.0e to %.0e): scale them", norm, least, greatest)}
	}
	if o.Like != nil {
		atoms, err = scaledAtoms(o.Like, norm)
		return atoms, norm, err
	}
	atoms, fromRows, err := s.rowAtoms(ctx, norm, candidateOrder(s.x, dim, s.order == model.Frequency))
	if err != nil {
		return nil, 0, err
	}
	if fromRows < s.atoms {
		o.note("only %d rows differ in direction: the other %d of %d atoms are initialised from random directions", fromRows, s.atoms-fromRows, s.atoms)
	}
	return atoms, norm, nil
}

// candidateOrder returns the order in which rows of x are considered as initial atoms. Frequent words
// keep their order. Other rows are ordered by a hash of their values and not by position, so that
// adding or removing rows changes little.
func candidateOrder(x []float32, dim int, frequent bool) []int {
	order := make([]int, len(x)/dim)
	for i := range order {
		order[i] = i
	}
	if frequent {
		return order
	}
	sums := make([]uint64, len(order))
	parallel.Ranges(len(sums), func(lo, hi int) {
		row := func(i int) (int, []float32) {
			i = min(i, hi-1)
			return i, x[i*dim:][:dim]
		}
		for ; lo < hi; lo += 4 {
			a, x := row(lo)
			b, y := row(lo + 1)
			c, z := row(lo + 2)
			d, w := row(lo + 3)
			sums[a], sums[b], sums[c], sums[d] = hashRows(x, y, z, w)
		}
	})
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(sums[i], sums[j]), i-j) })
	return order
}

// hashRows returns the 64-bit FNV-1a hashes of the little-endian bytes of four rows. It takes hardly longer than
// hashing one row, because each multiplication of a hash waits for the previous one.
func hashRows(x, y, z, w []float32) (a, b, c, d uint64) {
	a = 14695981039346656037
	b, c, d = a, a, a
	for j, v := range x {
		a, b, c, d = addHash(a, v), addHash(b, y[j]), addHash(c, z[j]), addHash(d, w[j])
	}
	return a, b, c, d
}

// addHash adds the bytes of v to an FNV-1a hash.
func addHash(hash uint64, v float32) uint64 {
	const prime = 1099511628211
	bits := math.Float32bits(v)
	hash = (hash ^ uint64(byte(bits))) * prime
	hash = (hash ^ uint64(byte(bits>>8))) * prime
	hash = (hash ^ uint64(byte(bits>>16))) * prime
	return (hash ^ uint64(byte(bits>>24))) * prime
}

// rowAtoms returns K initial atoms of the given norm, K×L. It takes rows in the given order, subtracts the mean, and
// skips rows above the coherence limit. The choice isn't random and depends little on single rows. The first fromRows
// atoms are rows. If too few rows differ in direction, the other atoms are random.
func (s *initialiser) rowAtoms(ctx context.Context, norm float64, order []int) (atoms []float32, fromRows int, err error) {
	dim := s.mean.Dim
	s.addCandidates(order[:min(len(order), candidatesPerAtom*s.atoms)])
	s.chosen = make([]float32, 0, s.atoms*dim)
	for _, limit := range coherenceLimits {
		if err := s.chooseRows(ctx, limit); err != nil {
			return nil, 0, err
		}
		if len(s.chosen) == s.atoms*dim {
			break
		}
	}
	atoms, fromRows = s.chosen, len(s.chosen)/dim
	for i, v := range atoms {
		atoms[i] = float32(float64(v) * norm)
	}
	direction := make([]float32, dim)
	for k := fromRows; k < s.atoms; k++ {
		backend.RandomDirection(direction, s.seed, k)
		length := math.Sqrt(float32s.Squares(direction))
		for _, v := range direction {
			atoms = append(atoms, float32(float64(v)*norm/length))
		}
	}
	return atoms, fromRows, nil
}

// scaledAtoms returns the atoms of d, scaled to the given norm.
func scaledAtoms(d *model.Dictionary, norm float64) ([]float32, error) {
	atoms := slices.Clone(d.Atoms)
	for k := range d.Len() {
		atom := atoms[k*d.Dim:][:d.Dim]
		length := math.Sqrt(float32s.Squares(atom))
		if !(length > 0) || math.IsInf(length, 0) {
			return nil, fmt.Errorf("train: the norm of atom %d of the earlier model is not positive and finite (got %v)", k, length)
		}
		for j, v := range atom {
			atom[j] = float32(float64(v) / length * norm)
		}
	}
	return atoms, nil
}

// addCandidates adds rows of x, minus the mean and scaled to norm 1, except rows that equal the mean.
func (s *initialiser) addCandidates(rows []int) {
	dim := s.mean.Dim
	s.candidates = make([]float32, len(rows)*dim)
	equal := make([]bool, len(rows))
	parallel.Ranges(len(rows), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x, y := s.x[rows[i]*dim:][:dim], s.candidates[i*dim:][:dim]
			s.mean.Center(y, x)
			length := math.Sqrt(float32s.Squares(y))
			equal[i] = !(length > 1e-6*math.Sqrt(float32s.Squares(x)))
			for j := range y {
				y[j] = float32(float64(y[j]) / length)
			}
		}
	})
	s.candidates = remove(s.candidates, dim, equal)
}

// Each groupRows candidates are compared with the rows chosen before, blockAtoms at a time, and then with each other.
const groupRows, blockAtoms = 768, 256

// chooseRows visits the candidates in order, and chooses those whose cosine to every row chosen before is below limit,
// until it has K rows. Choosing 3,000 of 8,000 vectors of GoogleNews takes 23 Gflop over all limits, at least 0.23 s of
// a core with 100 Gflop/s.
func (s *initialiser) chooseRows(ctx context.Context, limit float64) error {
	dim := s.mean.Dim
	s.chosen = s.chosen[:0]
	var searchers []*cluster.Searcher // each searches blockAtoms chosen rows; the last may search fewer
	for group := range slices.Chunk(s.candidates, groupRows*dim) {
		group, err := s.below(ctx, slices.Clone(group), searchers, limit)
		if err != nil {
			return err
		}
		before := len(s.chosen)
		if err := s.chooseFrom(ctx, group, limit); err != nil || len(s.chosen) == s.atoms*dim {
			return err
		}
		searchers = searchers[:before/(blockAtoms*dim)] // rebuild the last if it wasn't full
		for rows := range slices.Chunk(s.chosen[len(searchers)*blockAtoms*dim:], blockAtoms*dim) {
			searcher, err := cluster.NewSearcher(rows, dim)
			if err != nil {
				return err
			}
			searchers = append(searchers, searcher)
		}
	}
	return nil
}

// below returns the candidates whose cosines to all rows of searchers are below limit. It overwrites candidates.
func (s *initialiser) below(ctx context.Context, candidates []float32, searchers []*cluster.Searcher, limit float64) ([]float32, error) {
	dim := s.mean.Dim
	for _, searcher := range searchers {
		reached := make([]bool, len(candidates)/dim)
		row := func(i int) []float32 { return candidates[i*dim:][:dim] }
		if err := searcher.Products(ctx, len(reached), row, func(i, _ int, cosines []float32) {
			reached[i] = reached[i] || slices.ContainsFunc(cosines, func(c float32) bool { return float64(c) >= limit })
		}); err != nil {
			return nil, err
		}
		candidates = remove(candidates, dim, reached)
	}
	return candidates, nil
}

// chooseFrom chooses, in order, the candidates whose cosine to every candidate chosen before is below limit, until it
// has K rows.
func (s *initialiser) chooseFrom(ctx context.Context, candidates []float32, limit float64) error {
	dim := s.mean.Dim
	searcher, err := cluster.NewSearcher(candidates, dim)
	if err != nil {
		return err
	}
	near := make([][]int32, len(candidates)/dim) // for each candidate: earlier ones with cosines of at least limit
	row := func(i int) []float32 { return candidates[i*dim:][:dim] }
	err = searcher.Products(ctx, len(near), row, func(i, first int, cosines []float32) {
		for j, c := range cosines[:min(len(cosines), max(0, i-first))] {
			if float64(c) >= limit {
				near[i] = append(near[i], int32(first+j))
			}
		}
	})
	chosen := make([]bool, len(near))
	for i := range near {
		if err != nil || len(s.chosen) == s.atoms*dim {
			return err
		}
		chosen[i] = !slices.ContainsFunc(near[i], func(j int32) bool { return chosen[j] })
		if chosen[i] {
			s.chosen = append(s.chosen, row(i)...)
		}
	}
	return err
}

// remove removes rows from x, n×dim row-major, in place.
func remove(x []float32, dim int, removed []bool) []float32 {
	n := 0
	for i, removed := range removed {
		if !removed {
			copy(x[n*dim:][:dim], x[i*dim:])
			n++
		}
	}
	return x[:n*dim]
}

// initialiserError reports vectors from which no dictionary can be initialised.
type initialiserError struct{ error }

func (e initialiserError) Unwrap() error { return e.error }
