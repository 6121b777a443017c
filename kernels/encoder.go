//go:build gpu

package kernels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/parallel"
	"overcomplete/model"
)

// encoder encodes on a GPU. It implements [encode.Encoder]. Its methods may be called from any goroutine,
// one at a time.
//
// FISTA's symbols, as in encode.cu: y is a row minus the mean, b its current code, a its code one iteration
// earlier, and z = b + momentum·(b − a).
type encoder struct {
	dictionary *model.Dictionary
	gpu        *gpu
	widths     widths
	options    encode.Options
	precision  Precision    // of products of floats
	half       *halfBuffers // nil unless fp16
	step       float64      // FISTA's step size
	nonzeros   int          // maximum per row, at most K
	batch      int          // maximum number of rows at a time
	shares     int          // blocks that share a tile of decode (split-K)
	parts      int          // number of partial sums of a row's restart test

	atoms                               pointer[float32] // D, K×L
	residuals, decoded, previousDecoded pointer[float32] // batch×L: y − zD, bD and aD
	codes, previous                     pointer[float32] // batch×K: b and a
	restarts                            pointer[float32] // batch×parts
	momenta                             pointer[float32] // batch
	used                                pointer[int32]   // K
	starts                              pointer[int64]   // batch: index of each row's first packed nonzero

	slot    *encoderSlot   // of the current rows
	slots   []*encoderSlot // the pending slots first, the oldest of them at index 0
	pending int
}

// encoderSlot holds a batch of rows and their results, so that copies of one batch overlap the kernels of another.
type encoderSlot struct {
	staging  []float32        // batch×L, page-locked: rows minus the mean
	y        pointer[float32] // batch×L: copy of staging
	losses   pointer[float64] // batch
	nonzeros pointer[float64] // batch; followed by Σ|a| of each row
	index    pointer[int32]   // packed codes
	value    pointer[float32]
	onHost   struct { // copies of these results, page-locked
		losses, nonzeros []float64
		index            []int32
		value            []float32
	}
	loaded, computed, stored cu.Event

	result *encode.Codes
	rows   int
}

// Encoder implements [encode.Device]. For exact codes, o.Gap > 0, it returns an error that wraps [ErrUnsupported].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := newEncoder(d, dictionary, o, encode.Block)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// newEncoder returns an encoder of at most batch rows at a time. Tests choose small batches.
func newEncoder(d Device, dictionary *model.Dictionary, o encode.Options, batch int) (*encoder, error) {
	e, err := openEncoder(d, dictionary, o, batch)
	if err != nil {
		return nil, err
	}
	e.shares = encoderShares
	if err := e.prepare(1, 0, 2, e.nonzeros); err != nil {
		e.gpu.Close()
		return nil, err
	}
	return e, nil
}

// openEncoder returns an encoder without device memory. It loads the kernels of the given files too.
func openEncoder(d Device, dictionary *model.Dictionary, o encode.Options, batch int, files ...string) (*encoder, error) {
	if err := dictionary.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Gap > 0 {
		return nil, fmt.Errorf("%w: exact codes", ErrUnsupported)
	}
	step, err := backend.StepSize(dictionary)
	if err != nil {
		return nil, err
	}
	g, err := d.open(append(files, "decode", "encode", "codes")...)
	if err != nil {
		return nil, err
	}
	atoms := dictionary.Len()
	e := &encoder{
		dictionary: dictionary, gpu: g, widths: newWidths(atoms, dictionary.Dim),
		options: o, precision: cmp.Or(d.Precision, tf32), step: step, nonzeros: min(o.Nonzeros, atoms), batch: batch, shares: 1,
		parts: divide(atoms, correlateColumns) * (correlateColumns / fistaColumns),
	}
	if d.Precision == fp16 {
		e.precision, e.widths, e.half = tf32, newHalfWidths(atoms, dictionary.Dim), newHalfBuffers(dictionary.Atoms, dictionary.Dim)
	}
	return e, nil
}

// Device implements [encode.Encoder].
func (e *encoder) Device() string {
	if e.half != nil {
		return e.gpu.name(fp16)
	}
	return e.gpu.name(e.precision)
}

// Search implements [encode.Encoder].
func (e *encoder) Search() int { return 0 }

// Close implements [encode.Encoder].
func (e *encoder) Close() error { return e.gpu.Close() }

// Options implements [encode.Encoder].
func (e *encoder) Options() encode.Options { return e.options }

// fixedBytes returns the bytes of device memory that do not depend on the number of rows.
func (e *encoder) fixedBytes() int64 {
	_, atom := e.halfBufferBytes()
	return slack + int64(e.widths.atoms)*(4*int64(e.widths.dimPitch+1)+atom)
}

// encoderShares is the number of blocks that share a tile of decode (split-K). The 160 tiles of 4,096 rows of
// length 300 would leave a third of the multiprocessors of an H100 or RTX 4090 idle. The number is a constant,
// because it determines the order of additions: codes must depend neither on the GPU nor on the number of rows.
const encoderShares = 2

// maxShares returns the number of partial products of decode for which memory is allocated.
func (e *encoder) maxShares() int {
	if e.half != nil {
		return max(2, e.shares)
	}
	return e.shares
}

// slack bounds the bytes that the driver adds when it rounds up allocations.
const slack = 4 << 20

// rowBytes returns the bytes of device memory per row, for the given numbers of slots and of packed nonzeros.
func (e *encoder) rowBytes(slots, packed int) int64 {
	row, _ := e.halfBufferBytes()
	return row + 4*int64(2*e.widths.codePitch+(1+2*e.maxShares())*e.widths.dimPitch+e.parts+1) + 8 + int64(slots)*int64(4*e.widths.dimPitch+8*packed+8*3)
}

// maxPacked is the maximum number of bytes of a slot's packed codes, on the device and again on the host.
const maxPacked = 256 << 20

// prepare copies the dictionary and allocates device memory for e.batch rows. It reduces e.batch to the number
// of rows that fit beside the reserved bytes, and returns an error if fewer than minRows fit. The argument
// packed is the maximum number of nonzeros of a row in each slot.
func (e *encoder) prepare(minRows int, reserved int64, slots, packed int) error {
	g := e.gpu
	defer g.enter()()
	free := g.availableMemory()
	if g.err != nil {
		return g.err
	}
	e.batch = int(min(int64(e.batch), (free/20*19-e.fixedBytes()-reserved)/e.rowBytes(slots, packed)))
	if packed > 0 {
		e.batch = min(e.batch, max(1, maxPacked/(8*packed)))
	}
	if e.batch < minRows {
		need := (e.fixedBytes() + reserved + int64(minRows)*e.rowBytes(slots, packed)) / 19 * 20
		return g.memoryError(fmt.Sprintf("%d sparse dimensions", e.widths.atoms), need, free)
	}
	rows := e.batch
	e.atoms = alloc[float32](g, e.widths.atoms*e.widths.dimPitch)
	products := rows * e.widths.dimPitch
	e.residuals = alloc[float32](g, products)
	products *= e.maxShares()
	e.decoded, e.previousDecoded = alloc[float32](g, products), alloc[float32](g, products)
	e.codes, e.previous = alloc[float32](g, rows*e.widths.codePitch), alloc[float32](g, rows*e.widths.codePitch)
	e.restarts, e.momenta, e.used = alloc[float32](g, rows*e.parts), alloc[float32](g, rows), alloc[int32](g, e.widths.atoms)
	starts := make([]int64, rows)
	for i := range starts {
		starts[i] = int64(i * e.nonzeros)
	}
	e.starts = upload(g, starts)
	for range slots {
		e.slots = append(e.slots, newEncoderSlot(g, rows, e.widths.dimPitch, packed))
	}
	e.slot = e.slots[0]
	toDevice(g, e.atoms, pitched(e.dictionary.Atoms, e.widths.dim, e.widths.dimPitch), g.compute)
	e.allocHalfBuffers(rows)
	e.convertAtoms()
	return e.prepared()
}

// prepared waits for the work of prepare and returns its error.
func (e *encoder) prepared() error {
	g := e.gpu
	g.synchronize(g.compute)
	if errors.Is(g.err, cu.OutOfMemory) {
		return fmt.Errorf("%w on GPU %d for %d sparse dimensions: another process allocated it meanwhile: %w",
			backend.ErrMemory, g.device.Index, e.widths.atoms, g.err)
	}
	return g.err
}

func newEncoderSlot(g *gpu, rows, dimPitch, packed int) *encoderSlot {
	s := &encoderSlot{
		staging: allocHost[float32](g, rows*dimPitch), y: alloc[float32](g, rows*dimPitch), losses: alloc[float64](g, 3*rows),
		loaded: g.event(), computed: g.event(), stored: g.event(),
	}
	s.nonzeros = s.losses.at(rows)
	if n := rows * packed; n > 0 {
		s.index, s.value = alloc[int32](g, n), alloc[float32](g, n)
		s.onHost.losses, s.onHost.nonzeros = allocHost[float64](g, rows), allocHost[float64](g, rows)
		s.onHost.index, s.onHost.value = allocHost[int32](g, n), allocHost[float32](g, n)
	}
	return s
}

// Encode implements [encode.Encoder].
func (e *encoder) Encode(ctx context.Context, x []float32) (*encode.Codes, error) {
	return e.Start(ctx, x)()
}

// Start implements [encode.Encoder].
func (e *encoder) Start(ctx context.Context, x []float32) func() (*encode.Codes, error) {
	if len(x)%e.widths.dim != 0 {
		return func() (*encode.Codes, error) {
			return nil, fmt.Errorf("kernels: %d numbers are not vectors of length %d", len(x), e.widths.dim)
		}
	}
	defer e.gpu.enter()()
	rows := len(x) / e.widths.dim
	out := &encode.Codes{Loss: make([]float64, 0, rows)}
	out.Cols, out.Ptr = e.widths.atoms, make([]int64, 1, rows+1)
	for lo := 0; lo < rows && ctx.Err() == nil && e.gpu.err == nil; lo += e.batch {
		if e.pending == len(e.slots) {
			e.collect()
		}
		e.begin(out, min(e.batch, rows-lo), func(i int) []float32 { return x[(lo+i)*e.widths.dim:][:e.widths.dim] })
	}
	return func() (*encode.Codes, error) {
		defer e.gpu.enter()()
		for e.pending > 0 && out.Rows < rows && ctx.Err() == nil {
			e.collect()
		}
		switch {
		case e.gpu.err != nil:
			return nil, e.gpu.err
		case out.Rows < rows:
			return nil, ctx.Err()
		}
		if err := e.checkHalfRange(x, out.Loss); err != nil {
			return nil, err
		}
		return out, nil
	}
}

// begin queues the encoding of n rows, in the next slot.
func (e *encoder) begin(out *encode.Codes, n int, row func(i int) []float32) {
	g, s := e.gpu, e.slots[e.pending]
	e.pending++
	e.slot, s.result, s.rows = s, out, n
	e.load(s.y, n, row)
	e.encode(n)
	g.queue(packCodes{codes: pointer[byte](e.codes), starts: e.starts, index: s.index, value: s.value, shape: e.widths.shape(n)}.launch(fp32), g.compute)
	g.record(s.computed, g.compute)
	g.wait(g.store, s.computed)
	toHost(g, s.onHost.losses[:n], s.losses, g.store)
	toHost(g, s.onHost.nonzeros[:n], s.nonzeros, g.store)
	toHost(g, s.onHost.index[:n*e.nonzeros], s.index, g.store)
	toHost(g, s.onHost.value[:n*e.nonzeros], s.value, g.store)
	g.record(s.stored, g.store)
}

// collect waits for the oldest pending batch and appends its codes to the result.
func (e *encoder) collect() {
	s := e.slots[0]
	e.gpu.waitHost(s.stored)
	copy(e.slots, e.slots[1:])
	e.slots[len(e.slots)-1] = s
	e.pending--
	if e.gpu.err != nil {
		return
	}
	out, first := s.result, s.result.Rows
	for _, n := range s.onHost.nonzeros[:s.rows] {
		out.Ptr = append(out.Ptr, out.Ptr[out.Rows]+int64(n))
		out.Rows++
	}
	nonzeros := int(out.Ptr[out.Rows])
	out.Index = slices.Grow(out.Index, nonzeros-len(out.Index))[:nonzeros]
	out.Value = slices.Grow(out.Value, nonzeros-len(out.Value))[:nonzeros]
	parallel.Ranges(s.rows, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			index, value := out.Row(first + i)
			copy(index, s.onHost.index[i*e.nonzeros:])
			copy(value, s.onHost.value[i*e.nonzeros:])
		}
	})
	out.Loss = append(out.Loss, s.onHost.losses[:s.rows]...)
}

// load copies n rows minus the mean to the device.
func (e *encoder) load(y pointer[float32], n int, row func(i int) []float32) {
	g, s := e.gpu, e.slot
	g.waitHost(s.loaded) // the slot's last copy may still read staging
	e.stage(n, row)
	g.wait(g.load, s.computed)
	toDevice(g, y, s.staging[:n*e.widths.dimPitch], g.load)
	g.record(s.loaded, g.load)
	g.wait(g.compute, s.loaded)
}

// stage centres n rows into page-locked memory.
func (e *encoder) stage(n int, row func(i int) []float32) {
	parallel.Ranges(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y := e.slot.staging[i*e.widths.dimPitch:][:e.widths.dimPitch]
			e.dictionary.Center(y[:e.widths.dim], row(i))
			clear(y[e.widths.dim:])
		}
	})
}

// encode queues the kernels that encode the n rows of the current slot.
func (e *encoder) encode(n int) {
	g := e.gpu
	zero(g, e.codes, n*e.widths.codePitch, g.compute)
	zero(g, e.previous, n*e.widths.codePitch, g.compute)
	if e.half != nil {
		e.fistaHalf(n)
	} else {
		e.fista(n, e.options.Steps, e.options.Lambda, e.precision, false)
		g.queue(keepLargest{codes: e.codes, shape: e.widths.shape(n), maxNonzeros: int32(e.nonzeros)}.launch(), g.compute)
	}
	e.fista(n, backend.PolishSteps, 0, e.precision, true)
	e.residual(n, 0, fp32, false) // losses of the final codes
	g.queue(finishCodes{
		codes: pointer[byte](e.codes), nonzeros: e.slot.nonzeros, l1: e.slot.nonzeros.at(e.batch), used: e.used, shape: e.widths.shape(n),
	}.launch(fp32), g.compute)
}

// fista queues FISTA iterations. They start from the current codes, or from zero codes unless fixedSupport is
// set. With fixedSupport, codes that keepLargest set to −0 stay zero.
func (e *encoder) fista(rows, steps int, lambda float64, p Precision, fixedSupport bool) {
	previousMomentum, zeroCodes := 0.0, !fixedSupport
	for lambda, momentum := range backend.FISTA(lambda, steps) {
		e.residual(rows, previousMomentum, p, zeroCodes)
		zeroCodes = false
		size, threshold := 2*e.step, lambda*e.step
		if h := e.half; p == fp16 {
			e.gpu.queue(fistaHalf{
				codes: h.codes, previous: h.previous, restarts: e.restarts, residuals: h.residuals, atoms: h.dictionary, momenta: e.momenta, scales: h.rows,
				stepSize: size * h.codeScale / (unitResiduals * h.atomScale), threshold: threshold * h.codeScale,
				shape: e.widths.shape(rows), parts: int32(e.parts), nonnegative: e.options.Nonnegative,
			}.launch(), e.gpu.compute)
			h.codes, h.previous = h.previous, h.codes
		} else {
			e.gpu.queue(fista{
				codes: e.codes, previous: e.previous, restarts: e.restarts, residuals: e.residuals, atoms: e.atoms, momenta: e.momenta,
				stepSize: size, threshold: threshold, shape: e.widths.shape(rows), parts: int32(e.parts), nonnegative: e.options.Nonnegative, fixedSupport: fixedSupport,
			}.launch(p), e.gpu.compute)
			e.codes, e.previous = e.previous, e.codes
		}
		previousMomentum = momentum
	}
}

// residual queues the computation of y − zD, where z = b + momentum·(b − a). The argument zeroCodes states that
// all codes b are zero, so that bD is set to zero without a product.
func (e *encoder) residual(rows int, momentum float64, p Precision, zeroCodes bool) {
	g := e.gpu
	e.decoded, e.previousDecoded = e.previousDecoded, e.decoded
	shares, pitch := e.shares, int64(rows*e.widths.dimPitch)
	if p == fp16 {
		shares = max(2, shares)
	}
	residuals := fistaResiduals{
		residuals: pointer[byte](e.residuals), momenta: e.momenta, losses: e.slot.losses, y: e.slot.y, decoded: e.decoded, previousDecoded: e.previousDecoded,
		restarts: e.restarts, momentum: momentum, shape: e.widths.shape(rows), parts: int32(e.parts), shares: int32(shares), sharePitch: pitch,
	}
	h := e.half
	if p == fp16 {
		residuals.residuals, residuals.scales, residuals.scale = pointer[byte](h.residuals), h.rows, unitResiduals
	}
	switch {
	case zeroCodes:
		zero(g, e.decoded, shares*rows*e.widths.dimPitch, g.compute)
	case p == fp16:
		g.queue(decodeHalf{
			product: e.decoded, codes: h.codes, atoms: h.dictionary, scale: h.codeScale * h.atomScale, shape: e.widths.shape(rows),
			shares: int32(shares), sharePitch: pitch,
		}.launch(g.maxShared), g.compute)
	default:
		g.queue(decode{
			product: e.decoded, codes: e.codes, atoms: e.atoms, shape: e.widths.shape(rows), shares: int32(shares), sharePitch: pitch,
		}.launch(p), g.compute)
	}
	g.queue(residuals.launch(), g.compute)
}
