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
	"overcomplete/internal/memory"
	"overcomplete/model"
)

// startRows is the most rows per atom that initial atoms are chosen from: the first ones.
const startRows = 8

// coherenceLimits are limits for the cosine between any two initial atoms, tried in order until as
// many rows as atoms are within the limit. The last is below the cosine of rows that are equal except
// for rounding. A lower limit gives a lower error; a higher limit makes the choice depend less on
// single rows. There are few limits so that a few more rows seldom change the limit.
var coherenceLimits = []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1 - 1e-5}

// meanSquare returns mean‖x − μ‖² of the rows of x, and ErrAllSame if that is zero except for
// rounding.
func meanSquare(x []float32, d *model.Dictionary) (float64, error) {
	sum, before := d.Squares(x), (&model.Dictionary{Dim: d.Dim}).Squares(x)
	const rounding = 1e-12 // of numbers that single precision rounded by 1e-7 at most
	if !(sum > rounding*before) {
		return 0, startError{ErrAllSame}
	}
	return sum / float64(len(x)/d.Dim), nil
}

func squares(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// initialiser chooses initial atoms among rows.
type initialiser struct {
	x     []float32         // V×L
	mean  *model.Dictionary // with the mean to subtract from x, and no atoms
	atoms int               // K
	order model.Order
	seed  uint64

	candidates [][]float32 // rows of norm 1
	chosen     []float32   // rows of norm 1, in order
}

// choose returns initial atoms, K×L, which are rows or the atoms of o.Like, and their norm: the
// root mean square norm of the rows of x, less the mean.
func (s *initialiser) choose(ctx context.Context, o Options) (atoms []float32, norm float64, err error) {
	square, err := meanSquare(s.x, s.mean)
	if err != nil {
		return nil, 0, err
	}
	dim := s.mean.Dim
	rows := min(len(s.x)/dim, startRows*s.atoms)
	bytes := 4 * float64(dim) * (2*float64(s.atoms) + float64(rows)) // with a copy for the device
	if total, ok := memory.Total(); ok && bytes > float64(total) {
		return nil, 0, startError{fmt.Errorf("%w: %d sparse dimensions need about %.1f GB to start from, and there can be %.1f GB", ErrMemory, s.atoms, bytes/1e9, float64(total)/1e9)}
	}
	norm = math.Sqrt(square)
	if least, most := 1e-15, 1e15; norm < least || norm > most {
		return nil, 0, startError{fmt.Errorf("the vectors' norm is %.1e, less the mean, and single precision takes %.0e to %.0e: scale them", norm, least, most)}
	}
	if o.Like != nil {
		atoms, err = likeAtoms(o.Like, norm)
		return atoms, norm, err
	}
	atoms, words, err := s.wordAtoms(ctx, norm, startOrder(s.x, dim, s.order == model.Frequency))
	if err != nil {
		return nil, 0, err
	}
	if words < s.atoms {
		o.note("%d atoms are more than the %d words that differ in direction: the other %d start from random directions", s.atoms, words, s.atoms-words)
	}
	return atoms, norm, nil
}

// startOrder returns the order in which rows of x are candidates for initial atoms. It is the order
// of the rows if frequent words come first. If not, it depends on the contents of a row and
// not on its position, so that rows that are added or removed change little.
func startOrder(x []float32, dim int, frequent bool) []int {
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

// wordAtoms returns K initial atoms of the given norm, K×L: the first rows in this order, less the
// mean, within the coherence limit. The choice depends on nothing random, and little on single rows.
// Words is the number of atoms that are rows; where too few rows differ in direction, the others
// are random directions.
func (s *initialiser) wordAtoms(ctx context.Context, norm float64, order []int) (start []float32, words int, err error) {
	dim := s.mean.Dim
	for _, i := range order[:min(len(order), startRows*s.atoms)] {
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
	start, words = s.chosen, len(s.chosen)/dim
	for i, v := range start {
		start[i] = float32(float64(v) * norm)
	}
	direction := make([]float32, dim)
	for k := words; k < s.atoms; k++ {
		backend.RandomDirection(direction, s.seed, k)
		length := math.Sqrt(squares(direction))
		for _, v := range direction {
			start = append(start, float32(float64(v)*norm/length))
		}
	}
	return start, words, nil
}

// likeAtoms returns the atoms of d, scaled to a norm.
func likeAtoms(d *model.Dictionary, norm float64) ([]float32, error) {
	atoms := slices.Clone(d.Atoms)
	for k := range d.Len() {
		atom := atoms[k*d.Dim:][:d.Dim]
		length := math.Sqrt(squares(atom))
		if !(length > 0) || math.IsInf(length, 0) {
			return nil, fmt.Errorf("train: dimension %d of the model to be like has no direction: its atom has norm %v", k, length)
		}
		for j, v := range atom {
			atom[j] = float32(float64(v) / length * norm)
		}
	}
	return atoms, nil
}

// addCandidate adds a row, unless it equals the mean.
func (s *initialiser) addCandidate(x []float32) {
	y := make([]float32, len(x))
	s.mean.Center(y, x)
	length := math.Sqrt(squares(y))
	if !(length > 1e-6*math.Sqrt(squares(x))) {
		return
	}
	for j := range y {
		y[j] = float32(float64(y[j]) / length)
	}
	s.candidates = append(s.candidates, y)
}

// blockRows is the number of candidates that are compared with the chosen rows before the first of them is
// chosen, and blockAtoms the number of chosen rows that they are compared with at a time.
const blockRows, blockAtoms = 192, 256

// chooseRows chooses candidates in order whose cosine to all rows chosen before is below limit, until
// there are enough atoms.
//
// Each block of candidates is multiplied with blocks of chosen rows, and the candidates that reach the limit
// leave it. 24,000 vectors of 300 numbers, of which 3,000 are chosen, are 26 Gflop in five passes, and
// take 0.7 s of a processor, which multiplies matrices at 100 Gflop/s.
func (s *initialiser) chooseRows(ctx context.Context, limit float64) (err error) {
	s.chosen = s.chosen[:0]
	var searchers []*cluster.Searcher // of blockAtoms chosen rows each
	for block := range slices.Chunk(s.candidates, blockRows) {
		left := slices.Clone(block)
		for _, searcher := range searchers {
			if left, err = searcher.Below(ctx, left, limit); err != nil {
				return err
			}
		}
		before := len(s.chosen)
		for _, row := range left {
			if len(s.chosen) == s.atoms*s.mean.Dim {
				return nil
			}
			if !s.reaches(row, s.chosen[before:], limit) {
				s.chosen = append(s.chosen, row...)
			}
		}
		searchers = searchers[:before/(blockAtoms*s.mean.Dim)] // the last may have had room
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

// reaches reports whether a row's cosine to one of some chosen rows is limit or more.
func (s *initialiser) reaches(row, chosen []float32, limit float64) bool {
	vector := func(x []float32) blas32.Vector { return blas32.Vector{N: len(row), Inc: 1, Data: x} }
	for c := range slices.Chunk(chosen, len(row)) {
		if float64(blas32.Dot(vector(row), vector(c))) >= limit {
			return true
		}
	}
	return false
}

// startError reports vectors that no dictionary can be initialised from.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }
