package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/internal/backend"
	"overcomplete/internal/cluster"
	"overcomplete/internal/float32s"
	"overcomplete/internal/memory"
	"overcomplete/model"
)

// candidatesPerAtom limits the candidates for initial atoms to the first candidatesPerAtom·K rows.
const candidatesPerAtom = 8

// coherenceLimits are upper bounds for the cosine between any two initial atoms, tried in order until
// K rows satisfy one. The last excludes rows that are equal except for rounding. Low bounds come first
// because they give a lower error, although the choice of rows then depends more on single rows. The bounds
// are few, so that adding a few rows seldom changes the bound.
var coherenceLimits = []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1 - 1e-5}

// meanSquare returns mean‖x − μ‖² of the rows of x, or ErrIdenticalRows if it is zero except for
// rounding.
func meanSquare(x []float32, d *model.Dictionary) (float64, error) {
	sum, before := d.Squares(x), (&model.Dictionary{Dim: d.Dim}).Squares(x)
	const rounding = 1e-12 // float32 rounds by at most 1e-7, relative
	if !(sum > rounding*before) {
		return 0, initialiserError{ErrIdenticalRows}
	}
	return sum / float64(len(x)/d.Dim), nil
}

// initialiser chooses initial atoms among rows.
type initialiser struct {
	x     []float32         // V×L
	mean  *model.Dictionary // holds the mean to subtract from x, and no atoms
	atoms int               // K
	order model.Order
	seed  uint64

	candidates [][]float32 // rows of norm 1
	chosen     []float32   // rows of norm 1, in order
}

// choose returns the initial atoms, K×L: rows less the mean, or the atoms of o.Like, all scaled to
// the same norm, the root mean square of ‖x_i − μ‖. It also returns this norm.
func (s *initialiser) choose(ctx context.Context, o Options) (atoms []float32, norm float64, err error) {
	square, err := meanSquare(s.x, s.mean)
	if err != nil {
		return nil, 0, err
	}
	dim := s.mean.Dim
	rows := min(len(s.x)/dim, candidatesPerAtom*s.atoms)
	bytes := 4 * float64(dim) * (4*float64(s.atoms) + float64(rows)) // with a copy for the device and two in the searchers
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
	b := make([]byte, 0, 4*dim)
	for i := range sums {
		b = b[:0]
		for _, v := range x[i*dim:][:dim] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		hash := fnv.New64a()
		hash.Write(b)
		sums[i] = hash.Sum64()
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(sums[i], sums[j]) })
	return order
}

// rowAtoms returns K initial atoms of the given norm, K×L: the first rows in this order, less the
// mean, within the coherence limit. The choice of rows isn't random and depends little on single rows.
// The first fromRows atoms are rows. If too few rows differ in direction, the other atoms are random.
func (s *initialiser) rowAtoms(ctx context.Context, norm float64, order []int) (atoms []float32, fromRows int, err error) {
	dim := s.mean.Dim
	for _, i := range order[:min(len(order), candidatesPerAtom*s.atoms)] {
		s.addCandidate(s.x[i*dim:][:dim])
	}
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

// addCandidate adds x, less the mean and scaled to norm 1, unless x equals the mean.
func (s *initialiser) addCandidate(x []float32) {
	y := make([]float32, len(x))
	s.mean.Center(y, x)
	length := math.Sqrt(float32s.Squares(y))
	if !(length > 1e-6*math.Sqrt(float32s.Squares(x))) {
		return
	}
	for j := range y {
		y[j] = float32(float64(y[j]) / length)
	}
	s.candidates = append(s.candidates, y)
}

// A block of blockRows candidates is compared with blocks of blockAtoms chosen rows.
const blockRows, blockAtoms = 192, 256

// chooseRows chooses candidates in order whose cosine to every row chosen before is below limit, until
// K rows are chosen.
//
// It multiplies each block of candidates with blocks of chosen rows, and drops the candidates that
// reach the limit. Choosing 3,000 of 24,000 rows with L = 300 costs 26 Gflop over five limits, at
// least 0.26 s of one core at 100 Gflop/s.
func (s *initialiser) chooseRows(ctx context.Context, limit float64) (err error) {
	s.chosen = s.chosen[:0]
	var searchers []*cluster.Searcher // each over blockAtoms chosen rows
	for block := range slices.Chunk(s.candidates, blockRows) {
		below := slices.Clone(block)
		for _, searcher := range searchers {
			if below, err = searcher.Below(ctx, below, limit); err != nil {
				return err
			}
		}
		before := len(s.chosen)
		for _, row := range below {
			if len(s.chosen) == s.atoms*s.mean.Dim {
				return nil
			}
			if !reachesLimit(row, s.chosen[before:], limit) {
				s.chosen = append(s.chosen, row...)
			}
		}
		searchers = searchers[:before/(blockAtoms*s.mean.Dim)] // rebuild the last if it wasn't full
		for rows := range slices.Chunk(s.chosen[len(searchers)*blockAtoms*s.mean.Dim:], blockAtoms*s.mean.Dim) {
			searcher, err := cluster.NewSearcher(rows, s.mean.Dim)
			if err != nil {
				return err
			}
			searchers = append(searchers, searcher)
		}
	}
	return nil
}

// reachesLimit reports whether the cosine of row and any chosen row is at least limit.
func reachesLimit(row, chosen []float32, limit float64) bool {
	vector := func(x []float32) blas32.Vector { return blas32.Vector{N: len(row), Inc: 1, Data: x} }
	for c := range slices.Chunk(chosen, len(row)) {
		if float64(blas32.Dot(vector(row), vector(c))) >= limit {
			return true
		}
	}
	return false
}

// initialiserError reports vectors from which no dictionary can be initialised.
type initialiserError struct{ error }

func (e initialiserError) Unwrap() error { return e.error }
