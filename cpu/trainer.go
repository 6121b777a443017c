package cpu

import (
	"context"
	"fmt"
	"time"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
	"overcomplete/vectors"
)

// state holds the variables and workers of both trainers.
type state struct {
	problem   backend.Problem
	rows, dim int // V, L
	atoms     int // K

	dictionary simd.Matrix // D, K×L
	squares    simd.Matrix // H, K×L
	sums       simd.State  // S and Q, V×K
	tiles      []*tile     // A
	tileRows   int
	allAtoms   []int32     // 0, 1, …, K−1: the columns of a dense code
	packed     simd.Panels // D, for a code pass

	kernels *simd.Kernels
	lanes   []*lane // one per worker
}

// minibatch trains in two passes per epoch.
type minibatch struct {
	*state
	dictionaryStep, codeStep *executable
	batches                  [2]frame // the batch of the current dictionary step, and the next
}

// authors trains in the order of the paper's program, row by row.
type authors struct {
	*state
	step, evaluate *executable
}

// Trainer implements [backend.Device].
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	builds := [2]func(graph.Spec) (*program.Program, error){program.Dictionary, program.Code}
	if p.Hyperparameters.AuthorsOrder {
		builds = [2]func(graph.Spec) (*program.Program, error){program.Authors, program.Evaluate}
	}
	var steps [2]*executable
	for i, build := range builds {
		program, err := build(p.Spec())
		if err != nil {
			return nil, err
		}
		steps[i] = &executable{program, k}
	}
	s, err := d.newState(p, k)
	if err != nil {
		return nil, err
	}
	if p.Hyperparameters.AuthorsOrder {
		return &authors{s, steps[0], steps[1]}, nil
	}
	return &minibatch{state: s, dictionaryStep: steps[0], codeStep: steps[1]}, nil
}

func (d Device) newState(p backend.Problem, kernels *simd.Kernels) (*state, error) {
	h := p.Hyperparameters
	rows, k := p.Len(), h.Atoms
	if err := d.checkMemory(rows, p.Dim, h); err != nil {
		return nil, err
	}
	if p.Rows == nil {
		p.Rows = func(int) {}
	}
	s := &state{
		problem: p, atoms: k, rows: rows, dim: p.Dim, kernels: kernels,
		dictionary: simd.NewMatrix(k, p.Dim),
		squares:    simd.NewMatrix(k, p.Dim),
		sums:       simd.State{Columns: k, S: memory.Zeros[float32](rows * k), Q: memory.Zeros[float32](rows * k)},
		allAtoms:   make([]int32, k),
	}
	s.setDictionary(p.InitialDictionary())
	for i := range s.allAtoms {
		s.allAtoms[i] = int32(i)
	}
	for range min(d.workers(), max(rows, k)) { // no step has more units of work
		s.lanes = append(s.lanes, new(lane))
	}
	// There are at least 32 tiles, if there are enough rows. Losses are summed by tile, so the size of tiles must not
	// depend on the number of lanes.
	share := (rows/32 + simd.TileRows) / simd.TileRows * simd.TileRows
	s.tileRows = min(share, maxRows)
	if h.AuthorsOrder {
		s.tileRows = 1
	}
	s.tiles = make([]*tile, (rows+s.tileRows-1)/s.tileRows)
	return s, nil
}

func (s *state) setDictionary(atoms []float32) {
	for k := range s.atoms {
		copy(s.dictionary.Row(k), atoms[k*s.dim:])
	}
}

// Device implements [backend.Trainer].
func (s *state) Device() string { return name(s.kernels) }

// Close implements [backend.Trainer].
func (s *state) Close() error { return nil }

// bind prepares f to run program x on the rows from lo to hi in epoch t.
func (s *state) bind(f *frame, x *executable, lo, hi, t int, lanes []*lane) {
	n, k, l := hi-lo, s.atoms, s.dim
	f.rows, f.atoms, f.dim, f.epoch = n, k, l, t
	f.sums = s.sums.Rows(lo, hi)
	f.vectors = simd.Sized(f.vectors, len(x.Vectors))
	for i, v := range x.Vectors {
		m := &f.vectors[i]
		switch {
		case v.Input == "X":
			*m = simd.Matrix{Data: s.problem.X[lo*l : hi*l], Width: l, Pitch: l}
		case v.Input == "D":
			*m = s.dictionary
		case v.Input == "H":
			*m = s.squares
		case i > program.SquaresProduct && v.Rows != program.One: // the other vectors are in the lanes
			m.Resize(f.length(v.Rows), l)
		}
	}
	f.codes.index, f.codes.value = simd.Sized(f.codes.index, n), simd.Sized(f.codes.value, n)
	s.view(f, &f.codes, lo, lanes)
	f.numbers = simd.Sized(f.numbers, len(x.Numbers))
	x.Start(f.numbers, n)
	for len(f.stored) < x.Stored {
		f.stored = append(f.stored, nil)
	}
	for i := range x.Stored {
		f.stored[i] = simd.Sized(f.stored[i], max(n, k))
	}
}

func (x *executable) number(f *frame, output string) float64 { return f.numbers[x.Outputs[output]] }

// Epoch implements [backend.Trainer].
func (b *minibatch) Epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	start := time.Now()
	if err := b.dictionaryPass(ctx, batch, &sums); err != nil {
		return sums, err
	}
	between := time.Now()
	err = b.codePass(ctx, epoch, &sums)
	sums.DictionarySeconds, sums.CodeSeconds = between.Sub(start).Seconds(), time.Since(between).Seconds()
	return sums, err
}

// dictionaryPass runs a dictionary step for each batch of rows, in order.
func (b *minibatch) dictionaryPass(ctx context.Context, batch int, sums *backend.Sums) error {
	x, f, next := b.dictionaryStep, &b.batches[0], &b.batches[1]
	b.bind(f, x, 0, min(batch, b.rows), 0, b.lanes)
	for lo := 0; lo < b.rows; lo += batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+batch, b.rows)
		f.next = nil
		if hi < b.rows {
			b.bind(next, x, hi, min(hi+batch, b.rows), 0, b.lanes)
			f.next = next
		}
		x.run(f, b.lanes)
		sums.RunningLoss += x.number(f, "loss")
		sums.Steps++
		if x.number(f, "alpha") < 1 {
			sums.Shortened++
		}
		b.problem.Rows(hi - lo)
		f, next = next, f
	}
	if b.tiles[0] == nil { // the random codes are large and never drawn again
		b.batches = [2]frame{}
	}
	return nil
}

// codePass computes new codes of all rows.
func (b *minibatch) codePass(ctx context.Context, epoch int, sums *backend.Sums) error {
	x := b.codeStep
	pack(&b.packed, b.kernels, b.dictionary, b.atoms, b.lanes)
	measured := make([]measures, len(b.tiles))
	b.eachTile(ctx, x, epoch, func(f *frame, i int) {
		measured[i] = x.measures(f)
		b.store(i, f)
	})
	b.sum(measured, sums)
	return ctx.Err()
}

// Epoch implements [backend.Trainer]. It updates D and the code of each row in turn, and measures all codes
// at the end.
func (b *authors) Epoch(ctx context.Context, epoch, _ int) (sums backend.Sums, err error) {
	start := time.Now()
	x, f := b.step, new(frame)
	for i := range b.rows {
		if err := ctx.Err(); err != nil {
			return sums, err
		}
		b.bind(f, x, i, i+1, epoch, b.lanes)
		x.run(f, b.lanes)
		sums.RunningLoss += x.number(f, "loss")
		sums.Steps++
		b.store(i, f)
		b.problem.Rows(1)
	}
	between := time.Now()
	measured := make([]measures, b.rows)
	b.eachTile(ctx, b.evaluate, epoch, func(f *frame, i int) { measured[i] = b.evaluate.measures(f) })
	b.sum(measured, &sums)
	sums.DictionarySeconds, sums.CodeSeconds = between.Sub(start).Seconds(), time.Since(between).Seconds()
	return sums, ctx.Err()
}

// eachTile runs x on every tile. A single worker runs all of a tile. It stops if ctx is cancelled.
func (s *state) eachTile(ctx context.Context, x *executable, epoch int, done func(f *frame, i int)) {
	parallel.With(s.lanes, len(s.tiles), func(l *lane, i int) {
		if ctx.Err() != nil {
			return
		}
		f, lo := &l.tile, i*s.tileRows
		hi := min(lo+s.tileRows, s.rows)
		alone := []*lane{l}
		s.bind(f, x, lo, hi, epoch, alone)
		f.packed, f.borrowed = s.packed, true
		x.run(f, alone)
		done(f, i)
		s.problem.Rows(hi - lo)
	})
}

func (s *state) store(i int, f *frame) {
	if s.tiles[i] == nil {
		s.tiles[i] = new(tile)
	}
	s.tiles[i].pack(&f.codes, f.rows)
}

type measures struct{ loss, squared float64 } // squared is Σ‖x − aD‖²

func (x *executable) measures(f *frame) measures {
	return measures{x.number(f, "loss"), x.number(f, "error")}
}

// sum adds the metrics of all tiles to sums, in order.
func (s *state) sum(measured []measures, sums *backend.Sums) {
	sums.Used = make([]bool, s.atoms)
	for i, t := range s.tiles {
		if t == nil {
			continue // cancelled before its first pass
		}
		sums.Loss += measured[i].loss
		sums.Error += measured[i].squared
		sums.Count(t.index, t.value)
	}
}

// AtomSquares implements [backend.Trainer].
func (s *state) AtomSquares() ([]float64, error) {
	d, err := s.Dictionary()
	return backend.AtomSquares(d, s.dim), err
}

// Dictionary implements [backend.Trainer].
func (s *state) Dictionary() ([]float32, error) {
	d := make([]float32, 0, s.atoms*s.dim)
	for k := range s.atoms {
		d = append(d, s.dictionary.Row(k)...)
	}
	return d, nil
}

// Codes implements [backend.Trainer]. Before the first code pass the codes are random and dense.
func (s *state) Codes() (*vectors.CSR, error) {
	nonzeros := 0
	for i, t := range s.tiles {
		if t != nil {
			nonzeros += len(t.value)
		} else {
			nonzeros += (min((i+1)*s.tileRows, s.rows) - i*s.tileRows) * s.atoms
		}
	}
	all := &vectors.CSR{
		Cols:  s.atoms,
		Ptr:   make([]int64, 1, s.rows+1),
		Index: make([]int32, 0, nonzeros),
		Value: make([]float32, 0, nonzeros),
	}
	f := frame{rows: 1}
	c := &codes{index: make([][]int32, 1), value: make([][]float32, 1)}
	for i := range s.rows {
		s.view(&f, c, i, s.lanes)
		all.AppendRow(c.index[0], c.value[0])
	}
	return all, nil
}
