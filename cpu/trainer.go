package cpu

import (
	"context"
	"fmt"
	"time"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/memory"
	"overcomplete/internal/parallel"
	"overcomplete/internal/program"
	"overcomplete/internal/simd"
	"overcomplete/vectors"
)

// trainer implements [backend.Trainer]. An epoch consists of two passes. The first one updates D, in the authors' order
// also the codes. The second one updates and measures the codes, in the authors' order it only measures them.
type trainer struct {
	problem   backend.Problem
	rows, dim int // V, L
	atoms     int // K

	first, second *executable // programs of the two passes
	batches       [2]frame    // the batch of the current step of the first pass, and the next

	dictionary simd.Matrix    // D, K×L
	squares    simd.Matrix    // H, K×L
	sums       simd.State     // S and Q, V×K
	tiles      []*vectors.CSR // A, tileRows rows each; nil before the first pass over a tile: its codes are random and dense
	tileRows   int
	allAtoms   []int32     // 0, 1, …, K−1: the columns of a dense code
	packed     simd.Panels // D, for the second pass

	kernels *simd.Kernels
	lanes   []*lane // one per worker
}

// Trainer implements [backend.Device].
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) {
	kernels, _, err := simd.Choose()
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
	var passes [2]*executable
	for i, build := range builds {
		program, err := build(p.Spec())
		if err != nil {
			return nil, err
		}
		passes[i] = &executable{program, kernels}
	}
	h := p.Hyperparameters
	rows, k := p.Len(), h.Atoms
	if err := d.checkMemory(rows, p.Dim, h); err != nil {
		return nil, err
	}
	if p.Rows == nil {
		p.Rows = func(int) {}
	}
	s := &trainer{
		problem: p, atoms: k, rows: rows, dim: p.Dim, first: passes[0], second: passes[1], kernels: kernels,
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
	s.tiles = make([]*vectors.CSR, (rows+s.tileRows-1)/s.tileRows)
	return s, nil
}

func (s *trainer) setDictionary(atoms []float32) {
	for k := range s.atoms {
		copy(s.dictionary.Row(k), atoms[k*s.dim:])
	}
}

func (s *trainer) Device() string { return name(s.kernels) }

func (s *trainer) Close() error { return nil }

// bind prepares f to run program x on the rows from lo to hi in epoch t.
func (s *trainer) bind(f *frame, x *executable, lo, hi, t int, lanes []*lane) {
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

func (s *trainer) Epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	start := time.Now()
	if err := s.firstPass(ctx, epoch, batch, &sums); err != nil {
		return sums, err
	}
	between := time.Now()
	err = s.secondPass(ctx, epoch, &sums)
	sums.DictionarySeconds, sums.CodeSeconds = between.Sub(start).Seconds(), time.Since(between).Seconds()
	return sums, err
}

// firstPass runs a step for each batch of rows, in order. In the authors' order, a batch is a row.
func (s *trainer) firstPass(ctx context.Context, epoch, batch int, sums *backend.Sums) error {
	authorsOrder := s.problem.Hyperparameters.AuthorsOrder
	if authorsOrder {
		batch = 1
	}
	x, f, next := s.first, &s.batches[0], &s.batches[1]
	s.bind(f, x, 0, min(batch, s.rows), epoch, s.lanes)
	for lo := 0; lo < s.rows; lo += batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+batch, s.rows)
		f.next = nil
		if hi < s.rows {
			s.bind(next, x, hi, min(hi+batch, s.rows), epoch, s.lanes)
			f.next = next
		}
		x.run(f, s.lanes)
		sums.RunningLoss += x.number(f, "loss")
		sums.Steps++
		if authorsOrder {
			s.store(lo, f)
		} else if x.number(f, "alpha") < 1 {
			sums.Shortened++
		}
		s.problem.Rows(hi - lo)
		f, next = next, f
	}
	if s.tiles[0] == nil { // the random codes are large and never drawn again
		s.batches = [2]frame{}
	}
	return nil
}

// secondPass runs a step on every tile, stores the tile's codes, and adds the metrics of all tiles in order. A single
// worker runs all of a tile.
func (s *trainer) secondPass(ctx context.Context, epoch int, sums *backend.Sums) error {
	x := s.second
	pack(&s.packed, s.kernels, s.dictionary, s.atoms, s.lanes)
	losses, errors := make([]float64, len(s.tiles)), make([]float64, len(s.tiles))
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
		losses[i], errors[i] = x.number(f, "loss"), x.number(f, "error")
		s.store(i, f)
		s.problem.Rows(hi - lo)
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	sums.Used = make([]bool, s.atoms)
	for i, t := range s.tiles {
		sums.Loss += losses[i]
		sums.Error += errors[i]
		sums.Count(t.Index, t.Value)
	}
	return nil
}

func (s *trainer) store(i int, f *frame) {
	if s.tiles[i] == nil {
		s.tiles[i] = new(vectors.CSR)
	}
	f.codes.store(s.tiles[i], f.rows)
}

func (s *trainer) AtomSquares() ([]float64, error) {
	d, err := s.Dictionary()
	return backend.AtomSquares(d, s.dim), err
}

func (s *trainer) Dictionary() ([]float32, error) {
	d := make([]float32, 0, s.atoms*s.dim)
	for k := range s.atoms {
		d = append(d, s.dictionary.Row(k)...)
	}
	return d, nil
}

// Codes returns random and dense codes before the first epoch.
func (s *trainer) Codes() (*vectors.CSR, error) {
	nonzeros := 0
	for i, t := range s.tiles {
		if t != nil {
			nonzeros += t.Nonzeros()
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

// LoadState calls SaveState, because f may write to the parts that it gets.
func (s *trainer) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	return s.SaveState(m, f)
}

func (s *trainer) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	switch m {
	case checkpoint.GradientSums:
		return f(s.sums.S)
	case checkpoint.SquareSums:
		return f(s.sums.Q)
	}
	return eachRow(s.squares, s.atoms, f)
}

func eachRow(m simd.Matrix, rows int, f func(row []float32) error) error {
	for i := range rows {
		if err := f(m.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *trainer) Restore(dictionary []float32, a *vectors.CSR) error {
	if len(dictionary) != s.atoms*s.dim || a.Rows != s.rows || a.Cols != s.atoms {
		return fmt.Errorf("cpu: a state of %d rows × %d atoms, want %d × %d", a.Rows, a.Cols, s.rows, s.atoms)
	}
	s.setDictionary(dictionary)
	for i := range s.tiles {
		s.tiles[i] = new(vectors.CSR)
		for row := i * s.tileRows; row < min((i+1)*s.tileRows, s.rows); row++ {
			s.tiles[i].AppendRow(a.Row(row))
		}
	}
	return nil
}
