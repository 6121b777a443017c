//go:build gpu

package kernels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/model"
)

// Learner learns a dictionary on a GPU. It implements [backend.Learner]. Its methods may be
// called from any goroutine, one at a time.
//
// The dictionary is the encoder's own, on the device.
type Learner struct {
	*Encoder
	x      []float32 // V×L
	update *graph.AtomUpdate

	gram, products stateMatrix // G, K×K, and B, K×L
	direction      stateMatrix // 1×L: near the eigenvector of DᵀD with the largest eigenvalue

	anchors    pointer[float32] // W, K×L
	forces     pointer[float32] // K×L: GD, and what is made of it
	moves      pointer[float32] // of a block of atoms
	square     pointer[float32] // DᵀD, L×L
	work       pointer[float64] // power's
	eigenvalue pointer[float64]

	resident pointer[float32]     // V×L: all rows without their mean, or 0 if these don't fit
	chosen   pointer[int32]       // batch: which of them are encoded
	adding   pointer[instruction] // totals' program
	sums     pointer[float64]     // of losses, nonzeros and Σ|a|, and room for one more
}

// Learner implements [backend.Device]. It does not do exact codes, Options.Gap. What it
// returns is a [*Learner].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	l, err := newLearner(d, x, dictionary, norm, o, encode.Block)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// newLearner is Device.Learner with a number of rows that are encoded and added up at a
// time, for tests. G and B depend on it, and so not on the memory that there is.
func newLearner(d Device, x []float32, dictionary *model.Dictionary, norm float64, o encode.Options, batch int) (*Learner, error) {
	spec := backend.Spec(dictionary, o)
	spec.Norm = norm
	program, err := graph.Compile(graph.Learn, spec)
	if err != nil {
		return nil, err
	}
	if len(x)%dictionary.Dim != 0 {
		return nil, fmt.Errorf("kernels: %d numbers are no vectors of length %d", len(x), dictionary.Dim)
	}
	e, err := openEncoder(d, dictionary, o, batch, "learner", "body")
	if err != nil {
		return nil, err
	}
	l := &Learner{Encoder: e, x: x, update: program.Steps[0].(*graph.AtomUpdate)}
	if err := l.prepare(dictionary.Atoms); err != nil {
		e.gpu.Close()
		return nil, err
	}
	return l, nil
}

// summed is how many numbers of each row are added up: its loss, its nonzeros and its Σ|a|.
const summed = 3

// learningBytes is the device memory that a learner takes beside an encoder's, but for that of
// all rows.
func (l *Learner) learningBytes() int64 {
	return 4*int64(l.atoms)*int64(l.codePitch+3*l.dimPitch) + 4*int64(blockAtoms+l.dim)*int64(l.dimPitch) + 4*int64(l.dim) + 8*int64(2*l.dim+1) +
		4*int64(l.batch) + 8*(summed+1) + 16*2*summed
}

// prepare takes device memory.
func (l *Learner) prepare(start []float32) error {
	if err := l.Encoder.prepare(l.batch, l.learningBytes(), 1, 0); err != nil {
		return err
	}
	g := l.gpu
	defer g.enter()()
	l.gram = stateMatrix{nil, alloc[float32](g, l.atoms*l.codePitch), l.atoms, l.atoms, l.codePitch, floats}
	l.products = stateMatrix{nil, alloc[float32](g, l.atoms*l.dimPitch), l.atoms, l.dim, l.dimPitch, floats}
	l.anchors = upload(g, pitched(start, l.dim, l.dimPitch))
	l.forces = alloc[float32](g, l.atoms*l.dimPitch)
	l.moves, l.square = alloc[float32](g, blockAtoms*l.dimPitch), alloc[float32](g, l.dim*l.dimPitch)
	l.direction = stateMatrix{nil, upload(g, direction(l.dim)), 1, l.dim, l.dim, floats}
	l.work, l.eigenvalue = alloc[float64](g, 2*l.dim), alloc[float64](g, 1)
	var adding []instruction
	for i := range int32(summed) {
		adding = append(adding, instruction{op: opTotal, dst: summed, a: i}, instruction{op: opAccumulate, dst: i, a: summed})
	}
	l.chosen = alloc[int32](g, l.batch)
	l.adding, l.sums = upload(g, adding), alloc[float64](g, summed+1)
	l.keep()
	return l.prepared()
}

// direction returns a vector of norm 1, which is orthogonal to nothing in particular.
func direction(dim int) []float32 {
	v, rng := make([]float32, dim), rand.New(rand.NewPCG(1, 1))
	var squares float64
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		squares += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(squares))
	}
	return v
}

// keep copies all rows to the device, if there is room.
func (l *Learner) keep() {
	g, rows := l.gpu, len(l.x)/l.dim
	if g.err != nil || 4*int64(rows)*int64(l.dimPitch) > g.room()/20*19-slack {
		return
	}
	l.resident = alloc[float32](g, rows*l.dimPitch)
	if errors.Is(g.err, cu.OutOfMemory) { // somebody else has taken what was free
		l.resident, g.err = 0, nil
		return
	}
	g.synchronize(g.compute) // which makes it zero
	for lo := 0; lo < rows; lo += l.batch {
		l.load(l.resident.at(lo*l.dimPitch), min(l.batch, rows-lo), func(i int) []float32 { return l.row(lo + i) })
	}
}

func (l *Learner) row(i int) []float32 { return l.x[i*l.dim:][:l.dim] }

// sharesOf is how many blocks share a tile of decode of n rows: so many that there are blocks for the
// multiprocessors of a GPU, some 130, that each has a step, and that there is room for the shares.
// What is learned depends on it, and so it doesn't depend on the GPU.
func (l *Learner) sharesOf(n int) int {
	tiles := decodeTile.grid(int32(n), int32(l.dimPitch))
	return max(1, min(mostShares, l.batch/n, 160/(tiles.x*tiles.y), l.atoms/decodeDepth))
}

// Learn implements [backend.Learner]. It learns from all rows or, if ctx was cancelled
// before, from none. Where the rows are on the device it waits twice: for the size of steps, and
// for the sums at its end.
func (l *Learner) Learn(ctx context.Context, rows []int32, remember, pull float64, sums *backend.Sums) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g := l.gpu
	defer g.enter()()
	if err := l.refresh(); err != nil {
		return err
	}
	zero(g, l.used, l.atoms, g.compute)
	zero(g, l.sums, summed+1, g.compute)
	for part := range slices.Chunk(rows, l.batch) {
		n, s := len(part), l.slot
		if l.resident != 0 {
			toDevice(g, l.chosen, part, g.compute)
			g.queue(gather{batch: s.y, rows: l.resident, index: l.chosen, shape: l.shape(n)}.launch(), g.compute)
		} else {
			l.load(s.y, n, func(i int) []float32 { return l.row(int(part[i])) })
		}
		l.shares = l.sharesOf(n)
		l.encode(n)
		g.queue(totals{
			program: l.adding, numbers: l.sums, rowNumbers: s.losses, rowPitch: int64(l.batch), instructions: 2 * summed, rows: int32(n),
		}.launch(), g.compute)
		l.remember(l.gram, l.codes, n, remember)
		l.remember(l.products, s.y, n, remember)
		remember = 1
		g.record(s.computed, g.compute)
	}
	l.move(pull)
	var measured [summed]float64
	used := make([]int32, l.atoms)
	toHost(g, measured[:], l.sums, g.compute)
	toHost(g, used, l.used, g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return g.err
	}
	if l.halving != nil && !(measured[0] <= math.MaxFloat64) && !slices.ContainsFunc(rows, func(i int32) bool { return l.tooLong(l.row(int(i))) }) {
		return fmt.Errorf("kernels: %w", errHalves)
	}
	sums.RunningLoss += measured[0]
	sums.Nonzeros += int64(measured[1])
	sums.L1 += measured[2]
	use(sums.Used, used)
	return nil
}

// refresh makes the encoder's steps those of the atoms as they are now, as [backend.Spectrum]
// does. Each time it begins where it ended. Of TF32 factors ‖D‖₂² is off by far less than what
// [backend.StepSize] leaves for it.
func (l *Learner) refresh() error {
	g := l.gpu
	shape := shape{int32(l.atoms), int32(l.dim), int32(l.dim), int32(l.dimPitch), int32(l.dimPitch)}
	g.queue(remember{sums: l.square, codes: l.dictionary, rows: l.dictionary, shape: shape, symmetric: true}.launch(l.precision), g.compute)
	g.queue(power{
		vector: l.direction.device, work: l.work, value: l.eigenvalue, matrix: l.square,
		tolerance: backend.SpectrumTolerance, most: backend.SpectrumSteps, dim: int32(l.dim), dimPitch: int32(l.dimPitch),
	}.launch(), g.compute)
	l.halveDictionary()
	var value [1]float64
	toHost(g, value[:], l.eigenvalue, g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return g.err
	}
	var err error
	l.step, err = backend.StepOf(value[0])
	return err
}

// remember launches m = keep·m + Aᵀ·rows, for the rows that have been encoded last.
func (l *Learner) remember(m stateMatrix, rows pointer[float32], words int, keep float64) {
	shape := shape{int32(words), int32(l.atoms), int32(m.width), int32(l.codePitch), int32(m.pitch)}
	l.gpu.queue(remember{sums: m.device, codes: l.codes, rows: rows, keep: keep, shape: shape, symmetric: rows == l.codes}.launch(l.precision), l.gpu.compute)
}

// move launches the [graph.AtomUpdate], in blocks of atoms. GD − B is small, as a difference
// of larger numbers: hence FP32, though G and B may be of TF32 factors.
func (l *Learner) move(pull float64) {
	g := l.gpu
	g.queue(decode{product: l.forces, codes: l.gram.device, atoms: l.dictionary, shape: l.shape(l.atoms)}.launch(FP32), g.compute)
	g.queue(forces{
		forces: l.forces, atoms: l.dictionary, products: l.products.device, anchors: l.anchors, gram: l.gram.device, pull: pull, shape: l.shape(0),
	}.launch(), g.compute)
	for lo := 0; lo < l.atoms; lo += blockAtoms {
		hi := min(lo+blockAtoms, l.atoms)
		block, gram := lo*l.dimPitch, l.gram.device.at(lo*l.codePitch)
		shape := l.shape(0)
		shape.atoms = int32(hi - lo)
		g.queue(moveAtoms{
			atoms: l.dictionary.at(block), moves: l.moves, forces: l.forces.at(block), gram: gram.at(lo), norm: l.update.Norm, unused: l.update.LeastUse, pull: pull, shape: shape,
		}.launch(), g.compute)
		if hi < l.atoms {
			shape.words, shape.atoms = int32(hi-lo), int32(l.atoms-hi)
			g.queue(remember{
				sums: l.forces.at(hi * l.dimPitch), codes: gram.at(hi), rows: l.moves, keep: 1, shape: shape,
			}.launch(l.precision), g.compute)
		}
	}
}

// Exchange implements [backend.Learner].
func (l *Learner) Exchange(way backend.Way, m checkpoint.Matrix, f func(part []float32) error) error {
	defer l.gpu.enter()()
	of := l.direction
	switch m {
	case checkpoint.CodeProducts:
		of = l.gram
	case checkpoint.RowProducts:
		of = l.products
	}
	return l.gpu.exchange(way, of, l.batch, f)
}

// Restore implements [backend.Learner].
func (l *Learner) Restore(atoms []float32) error {
	if len(atoms) != l.atoms*l.dim {
		return fmt.Errorf("kernels: a dictionary of %d numbers, want %d × %d", len(atoms), l.atoms, l.dim)
	}
	defer l.gpu.enter()()
	toDevice(l.gpu, l.dictionary, pitched(atoms, l.dim, l.dimPitch), l.gpu.compute)
	l.gpu.synchronize(l.gpu.compute)
	return l.gpu.err
}

// Dictionary implements [backend.Learner].
func (l *Learner) Dictionary() ([]float32, error) {
	defer l.gpu.enter()()
	return l.gpu.unpadded(l.dictionary, l.atoms, l.dim, l.dimPitch)
}
