package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/model"
)

// startRows is how many rows there are to choose each starting atom from, at most: the
// first ones.
const startRows = 8

// apart are the cosines that rows to start from are below, any two of them: the first that
// leaves as many rows as there are atoms. The last is below that of rows that are the same
// but for rounding. The smaller it is, the less is left over by codes; the larger, the less
// do some rows more or less change what is chosen. They are few so that these seldom mean
// another.
var apart = []float64{0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1 - 1e-5}

// ErrAllSame is returned if the vectors to learn from are all the same, or zero.
var ErrAllSame = errors.New("the vectors to learn from are all the same, or zero")

// meanSquare returns mean‖x − μ‖² of the rows of x, and an error if that is zero but for
// rounding.
func meanSquare(x []float32, d *model.Dictionary) (float64, error) {
	sum, before := d.Squares(x), (&model.Dictionary{Dim: d.Dim}).Squares(x)
	const rounding = 1e-12 // of numbers that single precision rounded by 1e-7 at most
	if !(sum > rounding*before) {
		return 0, ErrAllSame
	}
	return sum / float64(len(x)/d.Dim), nil
}

func squares(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// starting is what a dictionary starts from: words.
type starting struct {
	x     []float32         // V×L, their vectors
	mean  *model.Dictionary // which is subtracted from x; it has no atoms
	atoms int               // K
	order model.Order
	seed  uint64
}

// choose returns atoms to start from, K×L, which are words, or those of the model to be like,
// and their norm: that of the rows of x, less the mean, in the root mean square.
func (s *starting) choose(ctx context.Context, o Options) (atoms []float32, norm float64, err error) {
	square, err := meanSquare(s.x, s.mean)
	if err != nil {
		return nil, 0, err
	}
	dim := s.mean.Dim
	rows := min(len(s.x)/dim, startRows*s.atoms)
	bytes := 4 * float64(dim) * (2*float64(s.atoms) + float64(rows)) // with a copy for the device
	if total, ok := memory.Total(); ok && bytes > float64(total) {
		return nil, 0, fmt.Errorf("train: %w: %d sparse dimensions need about %.1f GB to start from, and there can be %.1f GB", ErrMemory, s.atoms, bytes/1e9, float64(total)/1e9)
	}
	norm = math.Sqrt(square)
	if least, most := 1e-15, 1e15; norm < least || norm > most {
		return nil, 0, fmt.Errorf("train: the vectors' norm is %.1e, less the mean, and single precision takes %.0e to %.0e: %w", norm, least, most, ErrScale)
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

// startOrder lists the rows of x in the order in which words to start from are looked for.
// It is that of the rows, if the frequent words come first. If not, it is one that depends on
// what a row is and not on where it stands, so that rows which come or go change little.
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

// wordAtoms returns K atoms of the given norm, K×L, to start from and to be held to: the
// first rows of x in this order, less the mean of d, that are apart. What is chosen depends
// on nothing random, and little on a few rows more or less. Words is how many atoms are
// rows: where fewer differ in direction, the others are random directions. It ends early
// when ctx is done.
func wordAtoms(ctx context.Context, x []float32, d *model.Dictionary, norm float64, atoms int, order []int, seed uint64, workers int) (start []float32, words int) {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	c := &candidates{dim: d.Dim, workers: workers, chosen: make([]float32, 0, atoms*d.Dim)}
	for _, i := range order[:min(len(order), startRows*atoms)] {
		c.add(x[i*d.Dim:][:d.Dim], d)
	}
	for _, limit := range apart {
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

// likeAtoms returns the atoms of another dictionary, at a norm.
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

// candidates are rows to choose from.
type candidates struct {
	dim     int
	workers int
	rows    []candidate
	chosen  []float32 // K×L, in order
}

// candidate is a row, of norm 1.
type candidate struct {
	row     []float32
	looked  int     // at how many of those chosen: the first
	nearest float64 // the largest cosine to these
}

// add adds a row of the input, unless it is the mean.
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

// lookTogether is how many rows all workers look at before the first of them is chosen.
const lookTogether = 64

// choose chooses the rows, in order, whose cosine to all chosen before is below limit, until
// there are so many atoms.
func (c *candidates) choose(ctx context.Context, atoms int, limit float64) {
	c.chosen = c.chosen[:0]
	for i := range c.rows {
		c.rows[i].looked, c.rows[i].nearest = 0, -1
	}
	for block := range slices.Chunk(c.rows, lookTogether) {
		if ctx.Err() != nil {
			return
		}
		var group sync.WaitGroup
		for part := range slices.Chunk(block, (len(block)-1)/c.workers+1) {
			group.Go(func() {
				for i := range part {
					c.look(&part[i], limit)
				}
			})
		}
		group.Wait()
		for i := range block {
			if len(c.chosen) == atoms*c.dim {
				return
			}
			if c.look(&block[i], limit); block[i].nearest < limit { // to those chosen in the block, too
				c.chosen = append(c.chosen, block[i].row...)
			}
		}
	}
}

// look compares a row with those chosen, until one is as near as the limit.
func (c *candidates) look(r *candidate, limit float64) {
	for ; r.nearest < limit && r.looked < len(c.chosen)/c.dim; r.looked++ {
		cosine := blas32.Dot(c.vector(r.row), c.vector(c.chosen[r.looked*c.dim:][:c.dim]))
		r.nearest = max(r.nearest, float64(cosine))
	}
}

func (c *candidates) vector(row []float32) blas32.Vector {
	return blas32.Vector{N: c.dim, Inc: 1, Data: row}
}
