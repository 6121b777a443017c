//go:build gpu

package kernels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorgonia.org/cu"

	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/memory"
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

	dictionaryStep, codeStep *loadedProgram

	dictionary pointer[float32] // D, K×L
	squares    pointer[float32] // H, K×L
	// With fp16, a copy of D in halves. Codes are halves then, two per float32, as are sums of the state
	// float16.
	dictionaryHalves pointer[half]
	products         [program.SquaresProduct + 1]pointer[float32]
	rowNumbers       pointer[float64] // a row of them for each number
	rowPitch         int
	used             pointer[int32] // K: 1 where a dimension has a nonzero

	slots     []*slot
	slotWords int
	host      parts[[]float32] // all words, if they don't fit on the device
	fresh     bool             // before the first code pass: codes are random, S and Q zero
	nonzeros  int64            // of the codes, after it
}

// parts are the state of some words.
type parts[T any] struct{ x, codes, sumG, sumQ T }

// slot is device memory for the state of some words.
type slot struct {
	parts[pointer[float32]]
	loaded, computed, stored cu.Event
}

// Trainer implements [backend.Device]. It copies the problem's vectors.
func (d Device) Trainer(p backend.Problem) (backend.Trainer, error) {
	b, err := newTrainer(d, p, 0)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newTrainer lets tests choose the words of a code step.
func newTrainer(d Device, p backend.Problem, codeBatch int) (*trainer, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := Supports(p.Hyperparameters); err != nil {
		return nil, err
	}
	precision := cmp.Or(d.Precision, tf32)
	dictionaryStep, err := compileStep(program.Dictionary, p.Spec(), precision)
	if err != nil {
		return nil, err
	}
	codeStep, err := compileStep(program.Code, p.Spec(), precision)
	if err != nil {
		return nil, err
	}
	g, err := d.open("decode", "accumulate", "correlate", "body", "codes", "random")
	if err != nil {
		return nil, err
	}
	b := &trainer{
		gpu: g, sizes: newSizes(p, precision, codeBatch), precision: precision, scales: newScales(p, precision),
		seed: p.Hyperparameters.Seed, progress: p.Words, fresh: true,
	}
	if b.progress == nil {
		b.progress = func(int) {}
	}
	if err := b.prepare(p, dictionaryStep, codeStep); err != nil {
		g.Close()
		return nil, err
	}
	return b, nil
}

func compileStep(build func(graph.Spec) (*program.Program, error), spec graph.Spec, precision Precision) (*executable, error) {
	p, err := build(spec)
	if err != nil {
		return nil, err
	}
	return compile(p, precision), nil
}

// Close implements [backend.Trainer].
func (b *trainer) Close() error { return b.gpu.Close() }

// Device implements [backend.Trainer].
func (b *trainer) Device() string { return b.gpu.name(b.precision) }

// streams reports whether words stream through the device, because not all fit.
func (b *trainer) streams() bool { return b.slotWords < b.words }

// prepare checks that memory suffices and allocates it.
func (b *trainer) prepare(p backend.Problem, dictionaryStep, codeStep *executable) error {
	g := b.gpu
	defer g.enter()()
	free := g.room()
	if g.err != nil {
		return g.err
	}
	var ok bool
	if b.slotWords, ok = b.plan(free, dictionaryStep, codeStep); !ok {
		return fmt.Errorf("%w on GPU %d for %d words × %d sparse dimensions: at most %d words would fit",
			backend.ErrMemory, g.device.Index, b.words, b.atoms, b.maxWords(free, dictionaryStep, codeStep))
	}
	if total, ok := memory.Total(); ok && b.streams() {
		if fit := b.hostWords(total); b.words > fit {
			return fmt.Errorf("%w: %d words × %d sparse dimensions fit neither on the GPU nor into the machine's memory; at most %d words would fit",
				backend.ErrMemory, b.words, b.atoms, fit)
		}
	}
	if err := b.fill(p, dictionaryStep, codeStep); !errors.Is(err, cu.OutOfMemory) {
		return err
	}
	// Another process has taken what was free, or too little can be page-locked.
	fit := b.maxWords(g.allocated, dictionaryStep, codeStep)
	if g.lacksHost {
		fit = int(g.locked / b.wordBytes())
	}
	return fmt.Errorf("%w for %d words × %d sparse dimensions: at most %d words would fit: %w",
		backend.ErrMemory, b.words, b.atoms, fit, g.err)
}

// fill allocates the device's memory and fills it.
func (b *trainer) fill(p backend.Problem, dictionaryStep, codeStep *executable) (err error) {
	g, resident := b.gpu, !b.streams()
	b.rowPitch = max(b.rows(program.Words), b.atoms)
	b.rowNumbers = alloc[float64](g, b.rowPitch*max(dictionaryStep.rowNumbers, codeStep.rowNumbers))
	b.used = alloc[int32](g, b.atoms)
	atoms := b.atoms * b.dimPitch
	b.dictionary, b.squares = alloc[float32](g, atoms), alloc[float32](g, atoms)
	decoded := b.rows(program.Words)
	if dictionaryStep.share > 0 {
		decoded += b.batch
	}
	b.products[program.DecodeProduct] = alloc[float32](g, decoded*b.dimPitch)
	b.products[program.AccumulateProduct], b.products[program.SquaresProduct] = alloc[float32](g, atoms), alloc[float32](g, atoms)
	if b.precision == fp16 {
		b.dictionaryHalves = alloc[half](g, atoms)
	}
	toDevice(g, b.dictionary, pitched(p.InitialDictionary(), b.dim, b.dimPitch), g.compute)
	b.halve()
	if b.dictionaryStep, err = b.newProgram(dictionaryStep); err != nil {
		return err
	}
	if b.codeStep, err = b.newProgram(codeStep); err != nil {
		return err
	}
	slots := 1
	if !resident {
		slots = 2
		sums := b.words * b.sumPitch
		b.host.codes, b.host.sumG, b.host.sumQ = allocHost[float32](g, b.words*b.storePitch), allocHost[float32](g, sums), allocHost[float32](g, sums)
		b.host.x = allocHost[float32](g, b.words*b.dimPitch)
	}
	for range slots {
		sums := b.slotWords * b.sumPitch
		s := &slot{loaded: g.event(cu.DisableTiming), computed: g.event(cu.DisableTiming), stored: g.event(cu.DisableTiming)}
		s.codes, s.sumG, s.sumQ = alloc[float32](g, b.slotWords*b.storePitch), alloc[float32](g, sums), alloc[float32](g, sums)
		s.x = alloc[float32](g, b.slotWords*b.dimPitch)
		b.slots = append(b.slots, s)
	}
	if g.err == nil {
		if resident {
			toDevice(g, b.slots[0].x, pitched(p.X, b.dim, b.dimPitch), g.compute)
			b.reset(b.slots[0].parts, 0, b.words, g.compute)
		} else {
			copyRows(b.host.x, b.dimPitch, p.X, b.dim)
		}
	}
	g.synchronize(g.compute)
	return g.err
}

// reset gives words their initial state: random codes, and S and Q of zeros.
func (b *trainer) reset(at parts[pointer[float32]], first, words int, s cu.Stream) {
	zero(b.gpu, at.sumG, words*b.sumPitch, s)
	zero(b.gpu, at.sumQ, words*b.sumPitch, s)
	b.gpu.queue(randomCodes{
		codes: pointer[byte](at.codes), firstWord: int64(first), seed: b.seed, most: backend.InitialCodeScale(b.atoms), scale: b.scales.codes,
		shape: b.shape(words),
	}.launch(b.precision), s)
}

// from returns the state of p from word i on.
func (b *trainer) from(p parts[pointer[float32]], i int) parts[pointer[float32]] {
	sums := i * b.sumPitch
	return parts[pointer[float32]]{p.x.at(i * b.dimPitch), p.codes.at(i * b.storePitch), p.sumG.at(sums), p.sumQ.at(sums)}
}

// Epoch implements [backend.Trainer].
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

// maxRepeated is the largest number of dictionary steps in one graph, which takes memory for each launch.
const maxRepeated = 1024

// dictionaryPass runs a dictionary step for each batch of words, in order.
func (b *trainer) dictionaryPass(ctx context.Context, batch int, sums *backend.Sums) error {
	batch = min(batch, b.words)
	if batch > b.batch {
		return fmt.Errorf("kernels: a dictionary step of %d words, prepared for %d", batch, b.batch)
	}
	p := b.dictionaryStep
	b.start(p)
	err := b.eachSlot(ctx, b.slotWords/batch*batch, false, func(at parts[pointer[float32]], first, words int) {
		b.give(p, batch) // a copy, which is not to be part of the graph
		whole := words / batch * batch
		steps := func() {
			for lo := 0; lo < whole; lo += batch {
				b.run(p, b.from(at, lo), batch, 0)
			}
		}
		if b.streams() || whole > maxRepeated*batch {
			steps()
		} else {
			b.gpu.repeat(batch, steps)
		}
		if whole < words { // with other numbers
			b.run(p, b.from(at, whole), words-whole, 0)
		}
		sums.Steps += divide(words, batch)
	})
	if err != nil {
		return err
	}
	of, err := b.sums(p)
	sums.RunningLoss, sums.Shortened = of["loss"], int(of["shortened"])
	return err
}

// codePass renews all codes.
func (b *trainer) codePass(ctx context.Context, epoch int, sums *backend.Sums) error {
	p := b.codeStep
	b.start(p)
	zero(b.gpu, b.used, b.atoms, b.gpu.compute)
	err := b.eachSlot(ctx, b.slotWords, true, func(at parts[pointer[float32]], first, words int) {
		for lo := 0; lo < words; lo += b.codeBatch {
			b.run(p, b.from(at, lo), min(b.codeBatch, words-lo), epoch)
		}
	})
	if err != nil {
		return err
	}
	used := make([]int32, b.atoms)
	toHost(b.gpu, used, b.used, b.gpu.compute)
	of, err := b.sums(p)
	b.fresh, b.nonzeros = false, int64(of["nonzeros"])
	sums.Loss, sums.Error, sums.L1, sums.Nonzeros = of["loss"], of["error"], of["l1"], b.nonzeros
	sums.Used = make([]bool, b.atoms)
	use(sums.Used, used)
	return err
}

// eachSlot calls f for all words in turn, with the state of at most limit of them on the device. With
// renew, f launches kernels that change the state; without, kernels that only read vectors and codes.
//
// Words that don't fit go through two slots: while kernels work on the words of one, those of the other are
// stored and the next ones loaded.
func (b *trainer) eachSlot(ctx context.Context, limit int, renew bool, f func(at parts[pointer[float32]], first, words int)) error {
	g := b.gpu
	if !b.streams() {
		if err := ctx.Err(); err != nil {
			return err
		}
		f(b.slots[0].parts, 0, b.words)
		g.synchronize(g.compute)
		if g.err == nil {
			b.progress(b.words)
		}
		return g.err
	}
	var queued []int // words of the slots under way, oldest first
	finish := func(s *slot) {
		g.finished(s.computed)
		if g.err == nil {
			b.progress(queued[0])
		}
		queued = queued[1:]
	}
	for first, i := 0, 0; first < b.words; first, i = first+limit, i+1 {
		s, words := b.slots[i%len(b.slots)], min(limit, b.words-first)
		if len(queued) == len(b.slots) { // s is still in use
			finish(s)
		}
		if ctx.Err() != nil || g.err != nil {
			break
		}
		if renew {
			g.wait(g.load, s.stored)
		}
		b.loadSlot(s, first, words, renew)
		g.wait(g.compute, s.loaded)
		f(s.parts, first, words)
		g.record(s.computed, g.compute)
		queued = append(queued, words)
		if renew {
			g.wait(g.store, s.computed)
			b.storeSlot(s, first, words)
		}
	}
	g.synchronize(g.compute)
	g.synchronize(g.store)
	if err := ctx.Err(); err != nil && g.err == nil {
		return err
	}
	if g.err == nil {
		for _, words := range queued {
			b.progress(words)
		}
	}
	return g.err
}

// loadSlot queues the copies of words' state to the device, with S and Q if sums.
func (b *trainer) loadSlot(s *slot, first, words int, sums bool) {
	g, h := b.gpu, b.at(b.host, first, words)
	toDevice(g, s.x, h.x, g.load)
	switch {
	case b.fresh:
		b.reset(s.parts, first, words, g.load)
	case sums:
		toDevice(g, s.sumG, h.sumG, g.load)
		toDevice(g, s.sumQ, h.sumQ, g.load)
		fallthrough
	default:
		toDevice(g, s.codes, h.codes, g.load)
	}
	g.record(s.loaded, g.load)
}

// storeSlot queues the copies of their new state to the host.
func (b *trainer) storeSlot(s *slot, first, words int) {
	g, h := b.gpu, b.at(b.host, first, words)
	toHost(g, h.codes, s.codes, g.store)
	toHost(g, h.sumG, s.sumG, g.store)
	toHost(g, h.sumQ, s.sumQ, g.store)
	g.record(s.stored, g.store)
}

// at returns the state of some words in host memory.
func (b *trainer) at(h parts[[]float32], first, words int) parts[[]float32] {
	rows := func(m []float32, pitch int) []float32 { return m[first*pitch : (first+words)*pitch] }
	return parts[[]float32]{rows(h.x, b.dimPitch), rows(h.codes, b.storePitch), rows(h.sumG, b.sumPitch), rows(h.sumQ, b.sumPitch)}
}

// Dictionary implements [backend.Trainer].
func (b *trainer) Dictionary() ([]float32, error) {
	defer b.gpu.enter()()
	return b.gpu.unpadded(b.dictionary, b.atoms, b.dim, b.dimPitch)
}

// Codes implements [backend.Trainer].
func (b *trainer) Codes() (*vectors.CSR, error) {
	defer b.gpu.enter()()
	g := b.gpu
	all := &vectors.CSR{
		Rows: b.words, Cols: b.atoms,
		Ptr: make([]int64, 1, b.words+1), Index: make([]int32, 0, b.nonzeros), Value: make([]float32, 0, b.nonzeros),
	}
	p := packing{
		gpu: g, widths: b.widths, precision: b.precision, scale: b.scales.codes,
		nonzeros: b.rowNumber(0), l1: b.rowNumber(1), used: b.used, starts: alloc[int64](g, min(b.codeBatch, b.words)),
	}
	quiet := b.progress
	b.progress = func(int) {}
	err := b.eachSlot(context.Background(), b.slotWords, false, func(at parts[pointer[float32]], _, words int) {
		for lo := 0; lo < words; lo += b.codeBatch {
			p.append(all, b.from(at, lo).codes, min(b.codeBatch, words-lo))
		}
	})
	b.progress = quiet
	free(g, p.index)
	free(g, p.value)
	free(g, p.starts)
	if err == nil {
		err = g.err
	}
	return all, err
}
