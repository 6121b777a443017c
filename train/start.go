package train

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/blas32"

	"overcomplete/model"
)

// startRows is how many rows there are to choose each starting atom from, at most: a
// seeded sample of a large vocabulary.
const startRows = 4

// apart is the least distance, 1 − cosine, of rows that are different directions.
const apart = 1e-5

// ErrAllSame is returned for vectors that are all the same, or zero.
var ErrAllSame = errors.New("all vectors are the same, or zero: there is nothing to learn from")

// meanSquare returns mean‖x − μ‖² of the rows of x, and an error if that is zero but for
// rounding.
func meanSquare(x []float32, d *model.Dictionary) (float64, error) {
	var sum, before float64
	y := make([]float32, d.Dim)
	for i := 0; i < len(x); i += d.Dim {
		d.Center(y, x[i:i+d.Dim])
		sum += squares(y)
		before += squares(x[i : i+d.Dim])
	}
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

// wordAtoms returns K atoms of the given norm, K×L, to start from: rows of x, less the
// mean of d, that are far apart. Each is the row that is farthest by its cosine from all
// before (Gonzalez, Clustering to Minimize the Maximum Intercluster Distance, 1985), the
// first one any. Of a large vocabulary a sample is taken. Words is how many atoms are
// rows: where fewer differ in direction, the others are random directions. It ends early
// when ctx is done.
func wordAtoms(ctx context.Context, x []float32, d *model.Dictionary, norm float64, atoms int, seed uint64, workers int) (start []float32, words int) {
	rng := rand.New(rand.NewPCG(seed, wordStream))
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	c := &candidates{dim: d.Dim, workers: workers}
	v := len(x) / d.Dim
	order := rng.Perm(v)
	for _, i := range order[:min(v, startRows*atoms)] {
		c.add(x[i*d.Dim:][:d.Dim], d)
	}
	c.chosen = make([]float32, 0, atoms*d.Dim)
	for words < atoms && ctx.Err() == nil && c.next() {
		words++
	}
	start = c.chosen
	for i, v := range start {
		start[i] = float32(float64(v) * norm)
	}
	direction := make([]float32, d.Dim)
	for k := words; k < atoms; k++ {
		uniform(direction, 1, seed, wordStream, uint64(k))
		length := math.Sqrt(squares(direction))
		for _, v := range direction {
			start = append(start, float32(float64(v)*norm/length))
		}
	}
	return start, words
}

// candidates are rows to choose from. Those that are left are a heap, by what is known of
// their distance from the rows chosen, which only falls as more is known.
type candidates struct {
	dim      int
	workers  int
	rows     []float32 // of norm 1
	chosen   []float32 // rows, in order
	left     []int     // the heap
	distance []float64 // of each row to the nearest of those chosen that were looked at
	looked   []int     // how many were: the first
}

// add adds a row of the input, unless it is the mean.
func (c *candidates) add(x []float32, d *model.Dictionary) {
	at := len(c.rows)
	c.rows = append(c.rows, x...)
	y := c.rows[at:]
	d.Center(y, x)
	length := math.Sqrt(squares(y))
	if !(length > 1e-6*math.Sqrt(squares(x))) {
		c.rows = c.rows[:at]
		return
	}
	for j := range y {
		y[j] = float32(float64(y[j]) / length)
	}
	c.left = append(c.left, len(c.left))
	c.distance = append(c.distance, 2)
	c.looked = append(c.looked, 0)
}

// next chooses the row that is farthest from those chosen, of several the first. It
// returns false if none is apart from them.
func (c *candidates) next() bool {
	for len(c.left) > 0 && c.distance[c.left[0]] >= apart {
		if i := c.left[0]; c.looked[i] == len(c.chosen)/c.dim {
			heap.Pop(c)
			c.chosen = append(c.chosen, c.row(i)...)
			return true
		}
		c.look()
	}
	return false
}

const (
	lookTogether = 64 // rows, by all workers
	lookBlock    = 32 // rows chosen, which stay in a worker's cache
)

// look looks further at the first rows of the heap, at each until it is all known or no
// longer among the first.
func (c *candidates) look() {
	var first []int
	for len(first) < lookTogether && len(c.left) > 0 {
		first = append(first, heap.Pop(c).(int))
	}
	least := 0.
	if len(c.left) > 0 {
		least = c.distance[c.left[0]]
	}
	var group sync.WaitGroup
	for part := range slices.Chunk(first, (len(first)-1)/c.workers+1) {
		group.Go(func() {
			for end := lookBlock; end-lookBlock < len(c.chosen)/c.dim; end += lookBlock {
				for _, i := range part {
					y := c.vector(c.row(i))
					for c.looked[i] < min(end, len(c.chosen)/c.dim) && c.distance[i] >= least {
						cosine := blas32.Dot(y, c.vector(c.chosen[c.looked[i]*c.dim:][:c.dim]))
						c.distance[i] = min(c.distance[i], 1-float64(cosine))
						c.looked[i]++
					}
				}
			}
		})
	}
	group.Wait()
	for _, i := range first {
		heap.Push(c, i)
	}
}

func (c *candidates) row(i int) []float32 { return c.rows[i*c.dim : (i+1)*c.dim] }

func (c *candidates) vector(row []float32) blas32.Vector {
	return blas32.Vector{N: c.dim, Inc: 1, Data: row}
}

// The heap of left, by distance, and then by number so that the order is certain.

func (c *candidates) Len() int { return len(c.left) }
func (c *candidates) Less(a, b int) bool {
	i, j := c.left[a], c.left[b]
	return c.distance[i] > c.distance[j] || c.distance[i] == c.distance[j] && i < j
}
func (c *candidates) Swap(a, b int) { c.left[a], c.left[b] = c.left[b], c.left[a] }
func (c *candidates) Push(i any)    { c.left = append(c.left, i.(int)) }
func (c *candidates) Pop() any {
	last := len(c.left) - 1
	i := c.left[last]
	c.left = c.left[:last]
	return i
}
