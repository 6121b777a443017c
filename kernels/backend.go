//go:build gpu

package kernels

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorgonia.org/cu"

	"overcomplete/graph"
	"overcomplete/internal/memory"
	"overcomplete/train"
	"overcomplete/vectors"
)

// Backend trains on a GPU. It implements [train.Resumable]. Its methods may be
// called from any goroutine, one at a time.
type Backend struct {
	gpu *gpu
	sizes
	precision Precision
	seed      uint64
	progress  func(int)

	dictionaryStep, codeStep *program

	dictionary cu.DevicePtr // D, K×L
	squares    cu.DevicePtr // H, K×L
	rowNumbers cu.DevicePtr // float64, a row of them for each number
	rowPitch   int
	used       cu.DevicePtr // int32, K: 1 where a dimension has a nonzero

	slots     []*slot
	slotWords int
	host      parts[[]float32] // all words, if they don't fit on the device
	fresh     bool             // before the first code pass: codes are random, S and Q zero
	nonzeros  int64            // of the codes, after it
}

// parts are the state of words.
type parts[T any] struct{ x, codes, sumG, sumQ T }

// slot is device memory for the state of some words.
type slot struct {
	parts[cu.DevicePtr]
	loaded, computed, stored cu.Event
}

// Trainer implements [train.Device]. It copies the problem's vectors. What it returns
// is a [*Backend].
func (d Device) Trainer(p train.Problem) (train.Trainer, error) {
	b, err := newBackend(d, p, 0)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// newBackend is Trainer with a number of words a code step, for tests; see newSizes.
func newBackend(d Device, p train.Problem, codeBatch int) (*Backend, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := Supports(p.Hyperparameters); err != nil {
		return nil, err
	}
	dictionaryStep, err := compileStep(graph.Dictionary, p.Spec())
	if err != nil {
		return nil, err
	}
	codeStep, err := compileStep(graph.Code, p.Spec())
	if err != nil {
		return nil, err
	}
	g, err := openGPU(d.Index)
	if err != nil {
		return nil, err
	}
	b := &Backend{
		gpu: g, sizes: newSizes(p, codeBatch),
		precision: d.precision(), seed: p.Hyperparameters.Seed, progress: p.Words, fresh: true,
	}
	if b.progress == nil {
		b.progress = func(int) {}
	}
	if err := b.prepare(p.X, dictionaryStep, codeStep); err != nil {
		g.close()
		return nil, err
	}
	return b, nil
}

func compileStep(build graph.Build, spec graph.Spec) (*executable, error) {
	p, err := graph.Compile(build, spec)
	if err != nil {
		return nil, err
	}
	return compile(p)
}

// Device implements [train.Trainer].
func (b *Backend) Device() string { return b.gpu.name(b.precision) }

// Close implements [train.Trainer]. It releases the GPU.
func (b *Backend) Close() error { return b.gpu.close() }

// prepare makes sure that there is memory enough, and takes it.
func (b *Backend) prepare(x []float32, dictionaryStep, codeStep *executable) error {
	g := b.gpu
	g.enter()
	defer g.leave()
	free, _, err := cu.MemInfo()
	g.check("cuMemGetInfo", err)
	if g.err != nil {
		return g.err
	}
	var ok bool
	if b.slotWords, ok = b.plan(free, dictionaryStep, codeStep); !ok {
		return fmt.Errorf("%w on GPU %d for %d words × %d sparse dimensions: at most %d words would fit",
			train.ErrMemory, g.device.Index, b.words, b.atoms, b.mostWords(free, dictionaryStep, codeStep))
	}
	resident := b.slotWords == b.words
	if total, ok := memory.Total(); ok && !resident {
		if fit := b.hostWords(total); b.words > fit {
			return fmt.Errorf("%w: %d words × %d sparse dimensions fit neither on the GPU nor into the machine's memory; at most %d words would fit",
				train.ErrMemory, b.words, b.atoms, fit)
		}
	}
	if err := b.fill(x, dictionaryStep, codeStep); !errors.Is(err, cu.OutOfMemory) {
		return err
	}
	// Somebody else has taken what was free, or the machine has too little that
	// can be page-locked.
	fit := b.mostWords(g.allocated, dictionaryStep, codeStep)
	if g.lacksHost {
		fit = int(g.locked / b.wordBytes())
	}
	return fmt.Errorf("%w for %d words × %d sparse dimensions: at most %d words would fit: %w",
		train.ErrMemory, b.words, b.atoms, fit, g.err)
}

// fill allocates the device's memory and fills it.
func (b *Backend) fill(x []float32, dictionaryStep, codeStep *executable) (err error) {
	g, resident := b.gpu, b.slotWords == b.words
	b.rowPitch = max(b.rows(graph.Words), b.atoms)
	b.rowNumbers = g.alloc(8 * int64(b.rowPitch) * int64(max(dictionaryStep.rowNumbers, codeStep.rowNumbers)))
	b.used = g.alloc(4 * int64(b.atoms))
	b.dictionary = g.alloc(4 * int64(b.atoms) * int64(b.dimPitch))
	b.squares = g.alloc(4 * int64(b.atoms) * int64(b.dimPitch))
	toDevice(g, b.dictionary, pitched(train.InitialDictionary(b.seed, b.atoms, b.dim), b.dim, b.dimPitch), g.compute)
	if b.dictionaryStep, err = b.newProgram(dictionaryStep); err != nil {
		return err
	}
	if b.codeStep, err = b.newProgram(codeStep); err != nil {
		return err
	}
	slots := 1
	if !resident {
		slots = 2
		b.host.codes = g.allocHost(int64(b.words) * int64(b.codePitch))
		b.host.sumG = g.allocHost(int64(b.words) * int64(b.codePitch))
		b.host.sumQ = g.allocHost(int64(b.words) * int64(b.codePitch))
		b.host.x = g.allocHost(int64(b.words) * int64(b.dimPitch))
	}
	for range slots {
		codes := 4 * int64(b.slotWords) * int64(b.codePitch)
		s := &slot{loaded: g.event(), computed: g.event(), stored: g.event()}
		s.codes, s.sumG, s.sumQ = g.alloc(codes), g.alloc(codes), g.alloc(codes)
		s.x = g.alloc(4 * int64(b.slotWords) * int64(b.dimPitch))
		b.slots = append(b.slots, s)
	}
	if g.err == nil {
		if resident {
			toDevice(g, b.slots[0].x, pitched(x, b.dim, b.dimPitch), g.compute)
			b.reset(b.slots[0].parts, 0, b.words, g.compute)
		} else {
			copyRows(b.host.x, b.dimPitch, x, b.dim)
		}
	}
	g.synchronize(g.compute)
	return g.err
}

// reset makes the state of some words that before training.
func (b *Backend) reset(at parts[cu.DevicePtr], first, words int, s cu.Stream) {
	bytes := 4 * int64(words) * int64(b.codePitch)
	b.gpu.zero(at.sumG, bytes, s)
	b.gpu.zero(at.sumQ, bytes, s)
	b.gpu.launch("random_codes", grid{divide(words, randomWarps), 1, 32 * randomWarps, 0}, s,
		at.codes, words, b.atoms, b.codePitch, first, b.seed, train.InitialCodeScale(b.atoms))
}

// from is the state from the word at index i of a part on.
func (b *Backend) from(p parts[cu.DevicePtr], i int) parts[cu.DevicePtr] {
	codes, x := cu.DevicePtr(4*i*b.codePitch), cu.DevicePtr(4*i*b.dimPitch)
	return parts[cu.DevicePtr]{p.x + x, p.codes + codes, p.sumG + codes, p.sumQ + codes}
}

// Epoch implements [train.Trainer].
func (b *Backend) Epoch(ctx context.Context, epoch, batch int) (sums train.Sums, err error) {
	b.gpu.enter()
	defer b.gpu.leave()
	start := time.Now()
	if err := b.dictionaryPass(ctx, batch, &sums); err != nil {
		return sums, err
	}
	between := time.Now()
	err = b.codePass(ctx, epoch, &sums)
	sums.DictionarySeconds, sums.CodeSeconds = between.Sub(start).Seconds(), time.Since(between).Seconds()
	return sums, err
}

// dictionaryPass takes a dictionary step for each batch of words, in order.
func (b *Backend) dictionaryPass(ctx context.Context, batch int, sums *train.Sums) error {
	batch = min(batch, b.words)
	if batch > b.batch {
		return fmt.Errorf("kernels: a dictionary step of %d words, prepared for %d", batch, b.batch)
	}
	p, current := b.dictionaryStep, batch
	b.start(p, map[string]float64{"n": float64(batch)})
	err := b.eachSlot(ctx, b.slotWords/batch*batch, false, func(at parts[cu.DevicePtr], first, words int) {
		for lo := 0; lo < words; lo += batch {
			n := min(batch, words-lo)
			if n != current {
				b.setInput(p, "n", float64(n))
				current = n
			}
			b.run(p, b.from(at, lo), n, 0)
			sums.Steps++
		}
	})
	if err != nil {
		return err
	}
	of, err := b.sums(p)
	sums.RunningLoss, sums.Shortened = of["loss"], int(of["shortened"])
	return err
}

// codePass renews all codes.
func (b *Backend) codePass(ctx context.Context, epoch int, sums *train.Sums) error {
	p := b.codeStep
	b.start(p, map[string]float64{"t": float64(epoch)})
	b.gpu.zero(b.used, 4*int64(b.atoms), b.gpu.compute)
	err := b.eachSlot(ctx, b.slotWords, true, func(at parts[cu.DevicePtr], first, words int) {
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
	for _, u := range used {
		sums.UsedAtoms += int(u)
	}
	return err
}

// eachSlot calls f for all words in turn, at most a number at a time, with
// their state on the device. f launches kernels and leaves it changed if renew
// is set; else it reads vectors and codes alone.
//
// Words that don't fit on the device all at once come and go through two slots:
// while kernels work on one, the other is stored and loaded.
func (b *Backend) eachSlot(ctx context.Context, most int, renew bool, f func(at parts[cu.DevicePtr], first, words int)) error {
	g := b.gpu
	if b.slotWords == b.words {
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
	for first, i := 0, 0; first < b.words; first, i = first+most, i+1 {
		s, words := b.slots[i%len(b.slots)], min(most, b.words-first)
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

// loadSlot queues the way of words to the device.
func (b *Backend) loadSlot(s *slot, first, words int, sums bool) {
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

// storeSlot queues the way of their new state back.
func (b *Backend) storeSlot(s *slot, first, words int) {
	g, h := b.gpu, b.at(b.host, first, words)
	toHost(g, h.codes, s.codes, g.store)
	toHost(g, h.sumG, s.sumG, g.store)
	toHost(g, h.sumQ, s.sumQ, g.store)
	g.record(s.stored, g.store)
}

// at is the state of some words in host memory.
func (b *Backend) at(h parts[[]float32], first, words int) parts[[]float32] {
	rows := func(m []float32, pitch int) []float32 { return m[first*pitch : (first+words)*pitch] }
	return parts[[]float32]{rows(h.x, b.dimPitch), rows(h.codes, b.codePitch), rows(h.sumG, b.codePitch), rows(h.sumQ, b.codePitch)}
}

// Dictionary implements [train.Trainer].
func (b *Backend) Dictionary() ([]float32, error) {
	b.gpu.enter()
	defer b.gpu.leave()
	rows := make([]float32, b.atoms*b.dimPitch)
	toHost(b.gpu, rows, b.dictionary, b.gpu.compute)
	b.gpu.synchronize(b.gpu.compute)
	d := make([]float32, b.atoms*b.dim)
	copyRows(d, b.dim, rows, b.dimPitch)
	return d, b.gpu.err
}

// Codes implements [train.Trainer].
func (b *Backend) Codes() (*vectors.CSR, error) {
	b.gpu.enter()
	defer b.gpu.leave()
	g := b.gpu
	all := &vectors.CSR{
		Rows: b.words, Cols: b.atoms,
		Ptr: make([]int64, 1, b.words+1), Index: make([]int32, 0, b.nonzeros), Value: make([]float32, 0, b.nonzeros),
	}
	p := packing{
		gpu: g, atoms: b.atoms, codePitch: b.codePitch,
		nonzeros: b.rowNumber(0), l1: b.rowNumber(1), used: b.used, starts: g.alloc(8 * int64(min(b.codeBatch, b.words))),
	}
	quiet := b.progress
	b.progress = func(int) {}
	err := b.eachSlot(context.Background(), b.slotWords, false, func(at parts[cu.DevicePtr], _, words int) {
		for lo := 0; lo < words; lo += b.codeBatch {
			p.append(all, b.from(at, lo).codes, min(b.codeBatch, words-lo))
		}
	})
	b.progress = quiet
	for _, m := range []cu.DevicePtr{p.index, p.value, p.starts} {
		g.free(m)
	}
	if err == nil {
		err = g.err
	}
	return all, err
}

// copyRows copies rows to others of another pitch. Padding that they have not is
// zero.
func copyRows(dst []float32, dstPitch int, src []float32, srcPitch int) {
	for i := range len(dst) / dstPitch {
		row := dst[i*dstPitch : (i+1)*dstPitch]
		clear(row[copy(row, src[i*srcPitch:(i+1)*srcPitch]):])
	}
}

// pitched returns rows of a length at a pitch.
func pitched(rows []float32, length, pitch int) []float32 {
	if length == pitch {
		return rows
	}
	p := make([]float32, len(rows)/length*pitch)
	copyRows(p, pitch, rows, length)
	return p
}
