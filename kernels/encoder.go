//go:build gpu

package kernels

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
	"overcomplete/model"
)

// encoder encodes on a GPU. It implements [encode.Encoder]. Its methods may be called from any goroutine,
// one at a time.
type encoder struct {
	dictionary *model.Dictionary
	gpu        *gpu
	widths     widths
	options    encode.Options
	nonzeros   int // maximum per row, at most K
	capacity   int // see backend.Capacity
	batch      int // maximum number of rows at a time

	atoms   pointer[float32] // D, K×L
	step    pointer[float64] // FISTA's step size
	rounded roundedAtoms
	search  searchState
	codes   pointer[float32]   // batch×K for a learner, otherwise 0
	work    pointer[float32]   // batch×nonzeros, rounded up: extrapolated codes of the polish
	polish  pointer[iteration] // the iterations of the polish
	used    pointer[int32]     // K for a learner, otherwise 0

	learns bool // the encoder belongs to a learner: it stores dense codes on the device, and returns none

	slot    *encoderSlot   // slot of the current rows
	slots   []*encoderSlot // pending slots from the oldest to the latest, then free slots; a learner's encoder has one
	pending int
}

// encoderSlot holds a batch of rows and their results, so that copies of one batch overlap the kernels of another.
type encoderSlot struct {
	staging  []float32        // batch×L, in page-locked host memory: rows minus the mean
	y        pointer[float32] // batch×L: copy of staging on the device
	losses   pointer[float64] // batch: one loss per row
	nonzeros pointer[float64] // batch: one count per row; then Σ|a| of each row
	index    pointer[int32]   // batch×nonzeros
	value    pointer[float32]
	onHost   struct { // copies of the results in page-locked host memory
		losses, nonzeros []float64
		index            []int32
		value            []float32
	}
	squares                  []float64 // squared norms of the rows in staging; nil for a learner
	loaded, computed, stored cu.Event

	result *encode.Codes
	rows   int
}

// Encoder implements [encode.Device]. If o asks for exact codes (Gap > 0), the error wraps [ErrUnsupported].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := newEncoder(d, dictionary, o, encode.Block)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// newEncoder returns an encoder that encodes at most batch rows at a time. Tests choose small batches.
func newEncoder(d Device, dictionary *model.Dictionary, o encode.Options, batch int) (*encoder, error) {
	e, err := openEncoder(d, dictionary, o, batch)
	if err != nil {
		return nil, err
	}
	if err := e.prepare(1, 0); err != nil {
		e.gpu.Close()
		return nil, err
	}
	return e, nil
}

// openEncoder returns an encoder without device memory. It also loads the kernels of the given files.
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
	g, err := d.open(append(files, "search_atoms", "polish")...)
	if err != nil {
		return nil, err
	}
	if g, err = g.with(searchFor(dictionary.Dim, g.maxShared).name); err != nil {
		return nil, err
	}
	atoms := dictionary.Len()
	return &encoder{
		dictionary: dictionary, gpu: g, widths: newWidths(fp32, atoms, dictionary.Dim),
		options: o, nonzeros: min(o.Nonzeros, atoms), capacity: backend.Capacity(o, atoms), batch: batch,
		slots: make([]*encoderSlot, 2),
	}, nil
}

// Device returns one name for all GPUs, because they compute the same bits.
func (e *encoder) Device() string { return "cuda" }

func (e *encoder) Close() error { return e.gpu.Close() }

func (e *encoder) Options() encode.Options { return e.options }

// fixedBytes returns the bytes of device memory that do not depend on the number of rows.
func (e *encoder) fixedBytes() int64 {
	k := e.searchKernel()
	bytes, across := e.widths.roundedBytes(k)
	return slack + int64(e.widths.atoms)*4*int64(e.widths.dimPitch+3) + 8*int64(e.widths.searchPitch()) + int64(bytes+across) + searchRows*e.widths.searchBytes(k)
}

func (e *encoder) searchKernel() searchKernel { return searchFor(e.widths.dim, e.gpu.maxShared) }

// searchBytes returns the bytes of [searchState] per row.
func (w widths) searchBytes(k searchKernel) int64 {
	each := 8 // bytes per code, and per element of a row
	if k.length == 0 {
		each = 9
	}
	return int64(each)*int64(w.searchPitch()+w.bytePitch(w.dim)) + 4*int64(w.searchPitch()/searchRows) + 8
}

// slack bounds the bytes that the driver adds when it rounds up allocations, and the bytes of small arrays.
const slack = 4 << 20

func (e *encoder) rowBytes() int64 {
	dense := 0
	if e.learns {
		dense = e.widths.codePitch
	}
	return e.widths.searchBytes(e.searchKernel()) + 4*int64(dense+roundUp(e.nonzeros, polishBatch)) + int64(len(e.slots))*int64(4*e.widths.dimPitch+8*e.nonzeros+8*3)
}

// maxPacked is the maximum number of bytes of a slot's packed codes on the host.
const maxPacked = 256 << 20

// prepare copies the dictionary and allocates device memory for e.batch rows. It reduces e.batch to the number
// of rows that fit beside the reserved bytes, and returns an error if fewer than minRows fit.
func (e *encoder) prepare(minRows int, reserved int64) error {
	g := e.gpu
	defer g.enter()()
	free := g.availableMemory()
	if g.err != nil {
		return g.err
	}
	e.batch = int(min(int64(e.batch), (free/20*19-e.fixedBytes()-reserved)/e.rowBytes()))
	if !e.learns {
		e.batch = min(e.batch, max(1, maxPacked/(8*e.nonzeros)))
	}
	if e.batch < minRows {
		need := (e.fixedBytes() + reserved + int64(minRows)*e.rowBytes()) / 19 * 20
		return g.memoryError(fmt.Sprintf("%d sparse dimensions", e.widths.atoms), need, free)
	}
	rows, step := e.batch, 0.0
	if !e.learns { // a learner computes the step size itself
		var err error
		if step, err = backend.StepSize(e.dictionary); err != nil {
			return err
		}
	}
	e.atoms, e.step = alloc[float32](g, e.widths.atoms*e.widths.dimPitch), upload(g, []float64{step})
	memory := func(n int, _ bool) pointer[byte] { return alloc[byte](g, n) }
	e.rounded, e.search = newRoundedAtoms(memory, e.widths, e.searchKernel()), newSearchState(memory, e.widths, rows, e.searchKernel())
	e.search.iterations, e.search.count = upload(g, schedule(e.options.Lambda, e.options.Steps)), e.options.Steps
	e.work, e.polish = alloc[float32](g, rows*roundUp(e.nonzeros, polishBatch)), upload(g, schedule(0, backend.PolishSteps))
	if e.learns {
		e.codes, e.used = alloc[float32](g, rows*e.widths.codePitch), alloc[int32](g, e.widths.atoms)
	}
	for i := range e.slots {
		e.slots[i] = e.newSlot()
	}
	e.slot = e.slots[0]
	toDevice(g, e.atoms, pitched(e.dictionary.Atoms, e.widths.dim, e.widths.dimPitch), g.compute)
	e.roundAtoms()
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

// newSlot returns a slot, with memory for results on the host except for a learner.
func (e *encoder) newSlot() *encoderSlot {
	g, rows, packed := e.gpu, e.batch, e.batch*e.nonzeros
	s := &encoderSlot{
		staging: allocHost[float32](g, rows*e.widths.dimPitch), y: alloc[float32](g, rows*e.widths.dimPitch), losses: alloc[float64](g, 3*rows),
		index: alloc[int32](g, packed), value: alloc[float32](g, packed),
		loaded: g.event(), computed: g.event(), stored: g.event(),
	}
	s.nonzeros = s.losses.at(rows)
	if !e.learns {
		s.onHost.losses, s.onHost.nonzeros = allocHost[float64](g, rows), allocHost[float64](g, rows)
		s.squares = make([]float64, rows)
		s.onHost.index, s.onHost.value = allocHost[int32](g, packed), allocHost[float32](g, packed)
	}
	return s
}

func (e *encoder) Start(ctx context.Context, x []float32, out *encode.Codes) (wait func() error) {
	if len(x)%e.widths.dim != 0 {
		return func() error {
			return fmt.Errorf("kernels: %d numbers are not vectors of length %d", len(x), e.widths.dim)
		}
	}
	defer e.gpu.enter()()
	rows := len(x) / e.widths.dim
	out.Rows, out.Cols, out.Ptr = 0, e.widths.atoms, append(slices.Grow(out.Ptr[:0], rows+1), 0)
	out.Index, out.Value, out.Loss = out.Index[:0], out.Value[:0], slices.Grow(out.Loss[:0], rows)
	out.Squares = slices.Grow(out.Squares[:0], rows)
	for lo := 0; lo < rows && ctx.Err() == nil && e.gpu.err == nil; lo += e.batch {
		if e.pending == len(e.slots) {
			e.collect()
		}
		e.begin(out, min(e.batch, rows-lo), func(i int) []float32 { return x[(lo+i)*e.widths.dim:][:e.widths.dim] })
	}
	return func() error {
		defer e.gpu.enter()()
		for e.pending > 0 && out.Rows < rows && ctx.Err() == nil {
			e.collect()
		}
		switch {
		case e.gpu.err != nil:
			return e.gpu.err
		case out.Rows < rows:
			return ctx.Err()
		}
		return nil
	}
}

// begin queues the encoding of n rows, in the next slot.
func (e *encoder) begin(out *encode.Codes, n int, row func(i int) []float32) {
	g, s := e.gpu, e.slots[e.pending]
	e.pending++
	e.slot, s.result, s.rows = s, out, n
	e.load(s.y, n, row)
	e.encode(n)
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
	out.Loss, out.Squares = append(out.Loss, s.onHost.losses[:s.rows]...), append(out.Squares, s.squares[:s.rows]...)
}

// load centres n rows and copies them to the device.
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
	s, dim := e.slot, e.widths.dim
	parallel.Ranges(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y := s.staging[i*e.widths.dimPitch:][:e.widths.dimPitch]
			e.dictionary.Center(y[:dim], row(i))
			clear(y[dim:])
			if s.squares != nil {
				s.squares[i] = float32s.Squares(y[:dim])
			}
		}
	})
}

func (e *encoder) encode(n int) {
	g, s := e.gpu, e.slot
	g.queue(e.search.launch(&e.rounded, search{
		y: s.y, step: e.step, capacity: int32(e.capacity), shape: e.widths.shape(n), nonnegative: e.options.Nonnegative,
	}), g.compute)
	g.queue(polish{
		index: s.index, value: s.value, momentumCodes: e.work, residuals: e.search.residuals,
		losses: s.losses, nonzeros: s.nonzeros, l1: s.nonzeros.at(e.batch), dense: e.codes, used: e.used,
		codes: e.search.codes, factors: e.search.factors, y: s.y, atoms: e.atoms,
		iterations: e.polish, step: e.step, count: backend.PolishSteps,
		maxNonzeros: int32(e.nonzeros), shape: e.widths.shape(n), nonnegative: e.options.Nonnegative,
	}.launch(g.maxShared), g.compute)
}

// roundAtoms queues the rounding of the current atoms to 8-bit integers, for the current step size.
func (e *encoder) roundAtoms() {
	for _, l := range e.rounded.round(e.widths, e.atoms, e.step) {
		e.gpu.queue(l, e.gpu.compute)
	}
}
