package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
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

// starting chooses initial atoms among rows.
type starting struct {
	x     []float32         // V×L
	mean  *model.Dictionary // with the mean to subtract from x, and no atoms
	atoms int               // K
	order model.Order
	seed  uint64
}

// choose returns initial atoms, K×L, which are rows or the atoms of o.Like, and their norm: the
// root mean square norm of the rows of x, less the mean.
func (s *starting) choose(ctx context.Context, o Options) (atoms []float32, norm float64, err error) {
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
	order := startOrder(s.x, dim, s.order == model.Frequency)
	atoms, words := wordAtoms(ctx, s.x, s.mean, norm, s.atoms, order, s.seed, o.Workers)
	if err := ctx.Err(); err != nil {
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

// wordAtoms returns K initial atoms of the given norm, K×L: the first rows of x in this order, less
// the mean of d, within the coherence limit. The choice depends on nothing random, and little on
// single rows. Words is the number of atoms that are rows; where too few rows differ in direction,
// the others are random directions. It ends early when ctx is done.
func wordAtoms(ctx context.Context, x []float32, d *model.Dictionary, norm float64, atoms int, order []int, seed uint64, workers int) (start []float32, words int) {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	c := &candidates{dim: d.Dim, workers: workers, chosen: make([]float32, 0, atoms*d.Dim)}
	for _, i := range order[:min(len(order), startRows*atoms)] {
		c.add(x[i*d.Dim:][:d.Dim], d)
	}
	for _, limit := range coherenceLimits {
		if c.choose(ctx, atoms, limit); len(c.chosen) == atoms*d.Dim || ctx.Err() != nil {
			break
		}
	}
	start, words = c.chosen, len(c.chosen)/d.Dim
	for i, v := range start {
		start[i] = float32(float64(v) * norm)
	}
	direction := make([]float32, d.Dim)
	for k := words; k < atoms; k++ {
		backend.RandomDirection(direction, seed, k)
		length := math.Sqrt(squares(direction))
		for _, v := range direction {
			start = append(start, float32(float64(v)*norm/length))
		}
	}
	return start, words
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

// candidates are rows to choose initial atoms from.
type candidates struct {
	dim     int
	workers int
	rows    []candidate
	chosen  []float32 // K×L, in order
}

// candidate is a row, scaled to norm 1.
type candidate struct {
	row      []float32
	compared int     // number of chosen rows that it was compared with: the first
	nearest  float64 // largest cosine to these
}

// add adds a row of the input, unless it equals the mean.
func (c *candidates) add(x []float32, d *model.Dictionary) {
	y := make([]float32, d.Dim)
	d.Center(y, x)
	length := math.Sqrt(squares(y))
	if !(length > 1e-6*math.Sqrt(squares(x))) {
		return
	}
	for j := range y {
		y[j] = float32(float64(y[j]) / length)
	}
	c.rows = append(c.rows, candidate{row: y})
}

// blockRows is the number of rows that all workers compare before the first of them is chosen.
const blockRows = 64

// choose chooses rows in order whose cosine to all rows chosen before is below limit, until there
// are enough atoms.
func (c *candidates) choose(ctx context.Context, atoms int, limit float64) {
	c.chosen = c.chosen[:0]
	for i := range c.rows {
		c.rows[i].compared, c.rows[i].nearest = 0, -1
	}
	for block := range slices.Chunk(c.rows, blockRows) {
		if ctx.Err() != nil {
			return
		}
		parallel.With(make([]struct{}, c.workers), len(block), func(_ struct{}, i int) { c.compare(&block[i], limit) })
		for i := range block {
			if len(c.chosen) == atoms*c.dim {
				return
			}
			c.compare(&block[i], limit) // with rows chosen in this block
			if block[i].nearest < limit {
				c.chosen = append(c.chosen, block[i].row...)
			}
		}
	}
}

// compare compares a row with the chosen rows, until one reaches the limit.
func (c *candidates) compare(r *candidate, limit float64) {
	for ; r.nearest < limit && r.compared < len(c.chosen)/c.dim; r.compared++ {
		cosine := blas32.Dot(c.vector(r.row), c.vector(c.chosen[r.compared*c.dim:][:c.dim]))
		r.nearest = max(r.nearest, float64(cosine))
	}
}

func (c *candidates) vector(row []float32) blas32.Vector {
	return blas32.Vector{N: c.dim, Inc: 1, Data: row}
}

// startError reports vectors that no dictionary can be initialised from.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }
