//go:build gpu

package kernels

import (
	"cmp"
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
	"overcomplete/internal/float32s"
	"overcomplete/model"
)

// learner learns a dictionary online on a GPU. It updates the atoms of its encoder in device memory. It
// implements [backend.Learner]. Its methods may be called from any goroutine, one at a time.
type learner struct {
	*encoder
	rows []float32 // X, V×L
	norm float64   // norm of updated atoms

	gram, products stateMatrix // G (K×K) and B (K×L) of [backend.Learner]
	direction      stateMatrix // 1×L: the leading eigenvector of DᵀD, approximately

	anchors pointer[float32] // W, K×L
	decoded pointer[float32] // K×L: GD
	square  pointer[float32] // DᵀD, L×L
	scratch pointer[float64] // 2·L: memory of the kernel power

	resident   pointer[float32]     // V×L: all rows minus the mean; 0 if they don't fit
	order      pointer[int32]       // V: indices of the rows of the queued mini-batches
	sumProgram pointer[instruction] // adds the losses, nonzeros and Σ|a| of a batch's codes a to numbers
	squares    body                 // launch for AtomSquares; the launch writes to decoded
	numbers    pointer[float64]     // numberCount numbers for the previous mini-batch, then for each queued mini-batch
}

// Learner implements [backend.Device]. If o asks for exact codes (Gap > 0), the error wraps [ErrUnsupported].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	l, err := newLearner(d, x, dictionary, norm, o, encode.Block)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// newLearner returns a learner that encodes at most batch rows at a time. G and B are rounded after each batch, so
// the batch size must not depend on free memory. Tests choose small batches.
func newLearner(d Device, x []float32, dictionary *model.Dictionary, norm float64, o encode.Options, batch int) (*learner, error) {
	if err := backend.CheckLearner(x, dictionary, norm); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	e, err := openEncoder(d, dictionary, o, batch, "decode", "learner", "body")
	if err != nil {
		return nil, err
	}
	e.learns, e.capacity, e.slots = true, dictionary.Len()+1, e.slots[:1]
	l := &learner{encoder: e, rows: x, norm: norm}
	if err := l.prepare(dictionary.Atoms); err != nil {
		e.gpu.Close()
		return nil, err
	}
	return l, nil
}

func (l *learner) Device() string { return l.gpu.name() }

// maxQueued is the maximum number of mini-batches that the host queues before it waits. It bounds the pending work.
const maxQueued = 64

// A mini-batch has numberCount numbers in device memory: sumCount sums over its rows (loss, nonzeros, Σ|a|), a scratch
// number, the largest eigenvalue of DᵀD before the step, and the count of jacobi's updated chunks.
const (
	sumCount         = 3
	eigenvalueNumber = sumCount + 1
	updatedNumber    = sumCount + 2
	numberCount      = sumCount + 3
)

// bytes returns the bytes of the learner's device memory, without its encoder and the resident rows.
func (l *learner) bytes() int64 {
	k, dim, codePitch, dimPitch := int64(l.widths.atoms), int64(l.widths.dim), int64(l.widths.codePitch), int64(l.widths.dimPitch)
	return 4*k*(codePitch+3*dimPitch) + 4*dim*dimPitch + 4*dim + 8*2*dim +
		8*(1+maxQueued)*numberCount + 16*2*sumCount
}

// prepare allocates device memory.
func (l *learner) prepare(start []float32) error {
	if err := l.encoder.prepare(l.encoder.batch, l.bytes()); err != nil {
		return err
	}
	g, w := l.gpu, l.widths
	defer g.enter()()
	l.gram = stateMatrix{alloc[float32](g, w.atoms*w.codePitch), w.atoms, w.atoms, w.codePitch, floats}
	l.products = stateMatrix{alloc[float32](g, w.atoms*w.dimPitch), w.atoms, w.dim, w.dimPitch, floats}
	l.anchors = upload(g, pitched(start, w.dim, w.dimPitch))
	l.decoded = alloc[float32](g, w.atoms*w.dimPitch)
	l.square = alloc[float32](g, w.dim*w.dimPitch)
	l.direction = stateMatrix{upload(g, randomDirection(w.dim)), 1, w.dim, w.dim, floats}
	l.scratch = alloc[float64](g, 2*w.dim)
	var sumProgram []instruction
	for i := range int32(sumCount) {
		sumProgram = append(sumProgram, instruction{op: opTotal, dst: sumCount, a: i}, instruction{op: opAccumulate, dst: i, a: sumCount})
	}
	l.sumProgram, l.numbers = upload(g, sumProgram), alloc[float64](g, (1+maxQueued)*numberCount)
	l.squares = g.squaresOf(l.encoder.atoms, pointer[float64](l.decoded), w)
	l.copyRowsToDevice()
	return l.encoder.prepared()
}

// randomDirection returns a random unit vector of length dim, with a fixed seed.
func randomDirection(dim int) []float32 {
	v, rng := make([]float32, dim), rand.New(rand.NewPCG(1, 1))
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	norm := float32(math.Sqrt(float32s.Squares(v)))
	for i := range v {
		v[i] /= norm
	}
	return v
}

// copyRowsToDevice makes all rows resident if they fit into the free memory.
func (l *learner) copyRowsToDevice() {
	g, pitch, rows := l.gpu, l.widths.dimPitch, len(l.rows)/l.widths.dim
	if g.err != nil || 4*int64(rows)*int64(pitch+1) > g.availableMemory()/20*19-slack {
		return
	}
	l.order, l.resident = alloc[int32](g, rows), alloc[float32](g, rows*pitch)
	if errors.Is(g.err, cu.OutOfMemory) { // another process has allocated the free memory
		l.resident, g.err = 0, nil
		return
	}
	g.synchronize(g.compute) // alloc clears the memory in this stream
	for lo := 0; lo < rows; lo += l.encoder.batch {
		l.encoder.load(l.resident.at(lo*pitch), min(l.encoder.batch, rows-lo), func(i int) []float32 { return l.row(lo + i) })
	}
}

func (l *learner) row(i int) []float32 { return l.rows[i*l.widths.dim:][:l.widths.dim] }

// Learn queues the steps of up to [maxQueued] mini-batches before it waits for them.
func (l *learner) Learn(ctx context.Context, batches []backend.Minibatch, anchor, noise float64, learned func(n int)) (backend.Sums, error) {
	defer l.gpu.enter()()
	sums := backend.Sums{Used: make([]bool, l.widths.atoms)}
	for queued := range slices.Chunk(batches, maxQueued) {
		if err := l.queue(ctx, queued, anchor, noise, learned); err != nil {
			return sums, err
		}
		loss, err := l.finish(len(queued), &sums)
		if err != nil {
			return sums, err
		}
		noise = loss / float64(len(queued[len(queued)-1].Rows))
	}
	return sums, nil
}

// queue queues steps of learning. Kernels compute the step sizes and anchor weights of all steps.
func (l *learner) queue(ctx context.Context, batches []backend.Minibatch, anchor, noise float64, learned func(n int)) error {
	g, e := l.gpu, l.encoder
	if l.resident != 0 {
		var order []int32
		for _, b := range batches {
			order = append(order, b.Rows...)
		}
		toDevice(g, l.order, order, g.compute)
	}
	zero(g, e.used, l.widths.atoms, g.compute)
	zero(g, l.numbers, (1+len(batches))*numberCount, g.compute)
	toDevice(g, l.numbers, []float64{noise}, g.compute)
	order, before, lossRows := l.order, l.numbers, 1
	for _, b := range batches {
		if err := cmp.Or(ctx.Err(), g.err); err != nil {
			return err
		}
		numbers := before.at(numberCount)
		l.refresh(numbers.at(eigenvalueNumber))
		forgetting := b.Forgetting
		for part := range slices.Chunk(b.Rows, e.batch) {
			n, s := len(part), e.slot
			if l.resident != 0 {
				g.queue(gather{batch: s.y, rows: l.resident, index: order, shape: l.widths.shape(n)}.launch(), g.compute)
			} else {
				e.load(s.y, n, func(i int) []float32 { return l.row(int(part[i])) })
			}
			order = order.at(n)
			e.encode(n)
			g.queue(totals{
				program: l.sumProgram, numbers: numbers, rowNumbers: s.losses, rowPitch: int64(e.batch), instructions: 2 * sumCount, rows: int32(n),
			}.launch(), g.compute)
			g.queue(remember{
				gram: l.gram.device, products: l.products.device, codes: e.codes, rows: s.y, decay: forgetting, shape: l.widths.shape(n),
			}.launch(), g.compute)
			forgetting = 1
			g.record(s.computed, g.compute)
		}
		l.updateAtoms(before, pointer[int32](numbers.at(updatedNumber)), anchor/float64(lossRows))
		before, lossRows = numbers, len(b.Rows)
		if learned != nil {
			learned(lossRows)
		}
	}
	return g.err
}

// finish waits for n queued steps, adds their sums, and returns the loss of the last step.
func (l *learner) finish(n int, sums *backend.Sums) (loss float64, err error) {
	g := l.gpu
	numbers, used := make([]float64, n*numberCount), make([]int32, l.widths.atoms)
	toHost(g, numbers, l.numbers.at(numberCount), g.compute)
	toHost(g, used, l.encoder.used, g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return 0, g.err
	}
	for step := range slices.Chunk(numbers, numberCount) {
		if _, err := backend.StepOf(step[eigenvalueNumber]); err != nil {
			return 0, err
		}
		loss = step[0]
		sums.RunningLoss += loss
		sums.Nonzeros += int64(step[1])
		sums.L1 += step[2]
		sums.Steps++
	}
	markUsed(sums.Used, used)
	return loss, nil
}

// refresh queues the computation of FISTA's step size for the current atoms, like [backend.Spectrum]. Power
// iteration starts from the last direction. TF32 factors change ‖D‖₂² by far less than [backend.StepMargin].
func (l *learner) refresh(eigenvalue pointer[float64]) {
	g, w, e := l.gpu, l.widths, l.encoder
	shape := shape{rows: int32(w.atoms), atoms: int32(w.dim), codePitch: int32(w.dimPitch)}
	g.queue(remember{gram: l.square, codes: e.atoms, shape: shape}.launch(), g.compute)
	g.queue(power{
		vector: l.direction.device, work: l.scratch, value: eigenvalue, step: e.step, matrix: l.square, margin: backend.StepMargin,
		tolerance: backend.SpectrumTolerance, maxIterations: backend.SpectrumSteps, dim: int32(w.dim), dimPitch: int32(w.dimPitch),
	}.launch(), g.compute)
	e.roundAtoms()
}

// updateAtoms queues the update of [graph.Learn] for each block of atoms in turn. GD is
// computed with the precision fp32, although G and B are sums of products of TF32 factors, because the
// subtraction GD − B cancels most digits. The anchor weight is anchor·loss.
func (l *learner) updateAtoms(loss pointer[float64], updated pointer[int32], anchor float64) {
	g, w, e := l.gpu, l.widths, l.encoder
	shape := w.shape(w.atoms)
	g.queue(decode{product: l.decoded, codes: l.gram.device, atoms: e.atoms, shape: shape}.launch(fp32), g.compute)
	g.queue(jacobi{
		atoms: e.atoms, decoded: l.decoded, products: l.products.device, anchors: l.anchors, gram: l.gram.device,
		updated: updated, loss: loss, norm: l.norm, minUsage: graph.LeastUse, inverseRelaxation: 1 / graph.Relaxation,
		anchorWeight: anchor, shape: shape,
	}.launch(g.multiprocessors), g.compute)
}

func (l *learner) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer l.gpu.enter()()
	return l.gpu.saveState(l.matrix(m), l.encoder.batch, f)
}

func (l *learner) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	defer l.gpu.enter()()
	return l.gpu.loadState(l.matrix(m), l.encoder.batch, f)
}

func (l *learner) matrix(m checkpoint.Matrix) stateMatrix {
	switch m {
	case checkpoint.CodeProducts:
		return l.gram
	case checkpoint.RowProducts:
		return l.products
	}
	return l.direction
}

func (l *learner) Restore(atoms []float32) error {
	w := l.widths
	if len(atoms) != w.atoms*w.dim {
		return fmt.Errorf("kernels: dictionary of wrong size (got %d numbers, want %d × %d)", len(atoms), w.atoms, w.dim)
	}
	defer l.gpu.enter()()
	toDevice(l.gpu, l.encoder.atoms, pitched(atoms, w.dim, w.dimPitch), l.gpu.compute)
	l.gpu.synchronize(l.gpu.compute)
	return l.gpu.err
}

func (l *learner) AtomSquares() ([]float64, error) {
	defer l.gpu.enter()()
	return l.gpu.rowNumbersOf(l.squares)
}

func (l *learner) Dictionary() ([]float32, error) {
	defer l.gpu.enter()()
	return l.gpu.unpadded(l.encoder.atoms, l.widths.atoms, l.widths.dim, l.widths.dimPitch)
}
