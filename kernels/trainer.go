//go:build gpu

package kernels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorgonia.org/cu"

	"overcomplete/internal/backend"
	"overcomplete/internal/program"
	"overcomplete/vectors"
)

// trainer trains on a GPU. It implements [backend.Trainer]. Its methods may be called from any goroutine,
// one at a time.
type trainer struct {
	gpu *gpu
	sizes
	precision Precision
	scales    scales
	seed      uint64
	progress  func(int)

	dictionaryStep, codeStep *deviceProgram

	dictionary pointer[float32] // D, K×L
	squares    pointer[float32] // H, K×L
	// dictionaryHalves is a float16 copy of D, for fp16 only. The codes in state are then float16 too, two per float32.
	dictionaryHalves pointer[half]
	products         [program.SquaresProduct + 1]pointer[float32]
	rowNumbers       pointer[float64] // rowPitch values (one per row) for each index of a row number
	used             pointer[int32]   // K: 1 for atoms with a nonzero
	atomSquares      body             // launch for [trainer.AtomSquares]; the launch writes to rowNumbers

	state    rowState // state of all rows
	nonzeros int64    // number of nonzeros, after the first code pass
}

// rowState is the state of rows in device memory.
type rowState struct{ x, codes, sumG, sumQ pointer[float32] }

// Trainer implements [backend.Device]. It copies the problem's vectors to the GPU.
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) {
	b, err := newTrainer(d, p, 0)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newTrainer returns a trainer with codeBatch rows in a code step; 0 means the default. Tests choose few rows.
func newTrainer(d Device, p backend.Problem, codeBatch int) (*trainer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := Supports(p.Hyperparameters); err != nil {
		return nil, err
	}
	dictionaryStep, err := program.Dictionary(p.Spec())
	if err != nil {
		return nil, err
	}
	codeStep, err := program.Code(p.Spec())
	if err != nil {
		return nil, err
	}
	g, err := d.open("decode", "accumulate", "correlate", "update_codes", "body", "codes", "random")
	if err != nil {
		return nil, err
	}
	precision := g.trainingPrecision(cmp.Or(d.Precision, tf32), codeStep, p.Dim)
	b := &trainer{
		gpu: g, sizes: newSizes(p, precision, codeBatch), precision: precision, scales: newScales(p, precision),
		seed: p.Hyperparameters.Seed, progress: p.Rows,
	}
	if b.progress == nil {
		b.progress = func(int) {}
	}
	if err := b.prepare(p, compile(dictionaryStep, precision), compile(codeStep, precision)); err != nil {
		g.Close()
		return nil, err
	}
	return b, nil
}

// trainingPrecision returns tf32 instead of fp16 if the kernel update_codes can't run the code step.
func (g *gpu) trainingPrecision(wanted Precision, codeStep *program.Program, dim int) Precision {
	if wanted == fp16 && !(codeStep.Squared && dim <= updateCodesDim && updateCodesShared <= g.maxShared) {
		return tf32
	}
	return wanted
}

func (b *trainer) Close() error { return b.gpu.Close() }

func (b *trainer) Device() string { return b.gpu.name() + " " + string(b.precision) }

// prepare checks that the training fits into device memory and allocates it.
func (b *trainer) prepare(p backend.Problem, dictionaryStep, codeStep *executable) error {
	g := b.gpu
	defer g.enter()()
	free := g.availableMemory()
	if g.err != nil {
		return g.err
	}
	if !b.fits(free, dictionaryStep, codeStep) {
		need := (b.fixedBytes(dictionaryStep, codeStep) + int64(b.rows)*b.rowBytes()) / 19 * 20
		err := g.memoryError(fmt.Sprintf("%d rows × %d sparse dimensions", b.rows, b.atoms), need, free)
		return fmt.Errorf("%w; at most %d rows would fit", err, b.maxRows(free, dictionaryStep, codeStep))
	}
	if err := b.fill(p, dictionaryStep, codeStep); !errors.Is(err, cu.OutOfMemory) {
		return err
	}
	return fmt.Errorf("%w on GPU %d for %d rows × %d sparse dimensions: another process allocated it meanwhile; at most %d rows would fit: %w",
		backend.ErrMemory, g.device.Index, b.rows, b.atoms, b.maxRows(g.allocated, dictionaryStep, codeStep), g.err)
}

// fill allocates device memory, copies the problem and draws the initial codes.
func (b *trainer) fill(p backend.Problem, dictionaryStep, codeStep *executable) (err error) {
	g := b.gpu
	b.rowNumbers = alloc[float64](g, b.rowPitch()*max(dictionaryStep.rowNumbers, codeStep.rowNumbers))
	b.used = alloc[int32](g, b.atoms)
	atoms := b.atoms * b.dimPitch
	b.dictionary, b.squares = alloc[float32](g, atoms), alloc[float32](g, atoms)
	b.atomSquares = g.squaresOf(b.dictionary, b.rowNumber(0), b.widths)
	decoded := b.length(program.Rows)
	if dictionaryStep.share > 0 {
		decoded *= halfDecodeShares
	}
	b.products[program.DecodeProduct] = alloc[float32](g, decoded*b.dimPitch)
	b.products[program.AccumulateProduct], b.products[program.SquaresProduct] = alloc[float32](g, atoms), alloc[float32](g, atoms)
	if b.precision == fp16 {
		b.dictionaryHalves = alloc[half](g, atoms)
	}
	toDevice(g, b.dictionary, pitched(p.InitialDictionary(), b.dim, b.dimPitch), g.compute)
	b.convertDictionary()
	if b.dictionaryStep, err = b.newProgram(dictionaryStep); err != nil {
		return err
	}
	if b.codeStep, err = b.newProgram(codeStep); err != nil {
		return err
	}
	sums := b.rows * b.codePitch
	b.state.codes, b.state.sumG, b.state.sumQ = alloc[float32](g, b.rows*b.storePitch), alloc[float32](g, sums), alloc[float32](g, sums)
	b.state.x = alloc[float32](g, b.rows*b.dimPitch)
	if g.err == nil {
		toDevice(g, b.state.x, pitched(p.X, b.dim, b.dimPitch), g.compute)
		g.queue(randomCodes{
			codes: pointer[byte](b.state.codes), seed: b.seed, maxMagnitude: backend.InitialCodeScale(b.atoms), scale: b.scales.codes, shape: b.shape(b.rows),
		}.launch(b.precision), g.compute)
	}
	g.synchronize(g.compute)
	return g.err
}

func (b *trainer) stateAt(i int) rowState {
	sums := i * b.codePitch
	return rowState{b.state.x.at(i * b.dimPitch), b.state.codes.at(i * b.storePitch), b.state.sumG.at(sums), b.state.sumQ.at(sums)}
}

func (b *trainer) Epoch(ctx context.Context, epoch, batch int) (sums backend.Sums, err error) {
	defer b.gpu.enter()()
	start := time.Now()
	if err := b.dictionaryPass(ctx, batch, &sums); err != nil {
		return sums, err
	}
	between := time.Now()
	err = b.codePass(ctx, epoch, &sums)
	sums.DictionarySeconds, sums.CodeSeconds = between.Sub(start).Seconds(), time.Since(between).Seconds()
	return sums, err
}

// maxRepeated is the maximum number of dictionary steps in a CUDA graph. A graph's memory grows with its launches.
const maxRepeated = 1024

// dictionaryPass runs a dictionary step for each batch of rows, in order.
func (b *trainer) dictionaryPass(ctx context.Context, batch int, sums *backend.Sums) error {
	batch = min(batch, b.rows)
	if batch > b.batch {
		return fmt.Errorf("kernels: batch too large (got %d rows, want at most %d)", batch, b.batch)
	}
	p := b.dictionaryStep
	b.resetSums(p)
	err := b.pass(ctx, func() {
		b.setConstants(p, batch) // copies to the device first, because the graph must not contain copies
		fullBatches := b.rows / batch * batch
		steps := func() {
			for lo := 0; lo < fullBatches; lo += batch {
				b.run(p, b.stateAt(lo), batch, 0)
			}
		}
		if fullBatches > maxRepeated*batch {
			steps()
		} else {
			b.gpu.repeat(batch, steps)
		}
		if fullBatches < b.rows { // the last batch is smaller, so its constants differ
			b.run(p, b.stateAt(fullBatches), b.rows-fullBatches, 0)
		}
		sums.Steps = divide(b.rows, batch)
	})
	if err != nil {
		return err
	}
	outputs, err := b.readSums(p)
	sums.RunningLoss, sums.Shortened = outputs["loss"], int(outputs["shortened"])
	return err
}

func (b *trainer) codePass(ctx context.Context, epoch int, sums *backend.Sums) error {
	p := b.codeStep
	b.resetSums(p)
	zero(b.gpu, b.used, b.atoms, b.gpu.compute)
	err := b.pass(ctx, func() {
		for lo := 0; lo < b.rows; lo += b.codeRows() {
			b.run(p, b.stateAt(lo), min(b.codeRows(), b.rows-lo), epoch)
		}
	})
	if err != nil {
		return err
	}
	used := make([]int32, b.atoms)
	toHost(b.gpu, used, b.used, b.gpu.compute)
	outputs, err := b.readSums(p)
	b.nonzeros = int64(outputs["nonzeros"])
	sums.Loss, sums.Error, sums.L1, sums.Nonzeros = outputs["loss"], outputs["error"], outputs["l1"], b.nonzeros
	sums.Used = make([]bool, b.atoms)
	markUsed(sums.Used, used)
	return err
}

// pass runs f, which queues a pass over all rows, and waits for it. If ctx is already cancelled it does nothing.
func (b *trainer) pass(ctx context.Context, f func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f()
	b.gpu.synchronize(b.gpu.compute)
	if b.gpu.err == nil {
		b.progress(b.rows)
	}
	return b.gpu.err
}

func (b *trainer) AtomSquares() ([]float64, error) {
	defer b.gpu.enter()()
	return b.gpu.rowNumbersOf(b.atomSquares)
}

func (b *trainer) Dictionary() ([]float32, error) {
	defer b.gpu.enter()()
	return b.gpu.unpadded(b.dictionary, b.atoms, b.dim, b.dimPitch)
}

func (b *trainer) Codes() (*vectors.CSR, error) {
	defer b.gpu.enter()()
	g := b.gpu
	all := &vectors.CSR{
		Rows: b.rows, Cols: b.atoms,
		Ptr: make([]int64, 1, b.rows+1), Index: make([]int32, 0, b.nonzeros), Value: make([]float32, 0, b.nonzeros),
	}
	p := packedCodes{starts: alloc[int64](g, min(b.codeBatch, b.rows))}
	for lo := 0; lo < b.rows; lo += b.codeBatch {
		b.appendCodes(all, &p, pointer[byte](b.stateAt(lo).codes), min(b.codeBatch, b.rows-lo))
	}
	free(g, p.index)
	free(g, p.value)
	free(g, p.starts)
	return all, g.err
}

// packedCodes is device memory for compressed rows of codes.
type packedCodes struct {
	starts   pointer[int64] // per row: index of its first nonzero
	capacity int            // length of index and value, which grow
	index    pointer[int32]
	value    pointer[float32]
}

// appendCodes packs the codes of the given number of rows and appends them to the matrix all. It waits for the copies.
func (b *trainer) appendCodes(all *vectors.CSR, p *packedCodes, codes pointer[byte], rows int) {
	g, shape := b.gpu, b.shape(rows)
	nonzeros := make([]float64, rows)
	g.queue(finishCodes{
		codes: codes, nonzeros: b.rowNumber(0), l1: b.rowNumber(1), used: b.used, scale: b.scales.codes, shape: shape,
	}.launch(b.precision), g.compute)
	toHost(g, nonzeros, b.rowNumber(0), g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return
	}
	starts, count := make([]int64, rows), 0
	for i, n := range nonzeros {
		starts[i] = int64(count)
		count += int(n)
		all.Ptr = append(all.Ptr, all.Ptr[len(all.Ptr)-1]+int64(n))
	}
	if count > p.capacity {
		free(g, p.index)
		free(g, p.value)
		p.capacity, p.index, p.value = count, alloc[int32](g, count), alloc[float32](g, count)
	}
	toDevice(g, p.starts, starts, g.compute)
	g.queue(packCodes{
		codes: codes, starts: p.starts, index: p.index, value: p.value, scale: b.scales.codes, shape: shape,
	}.launch(b.precision), g.compute)
	n := len(all.Index)
	all.Index = append(all.Index, make([]int32, count)...)
	all.Value = append(all.Value, make([]float32, count)...)
	toHost(g, all.Index[n:], p.index, g.compute)
	toHost(g, all.Value[n:], p.value, g.compute)
	g.synchronize(g.compute)
}

// markUsed sets used[k] if found[k] ≠ 0. The kernels finish_codes and polish store found.
func markUsed(used []bool, found []int32) {
	for k, u := range found {
		used[k] = used[k] || u != 0
	}
}
