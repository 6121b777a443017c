//go:build gpu

package kernels

import (
	"context"
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/model"
	"overcomplete/train"
)

// Encoder encodes on a GPU. It implements [encode.Encoder]. Its methods may be
// called from any goroutine, one at a time.
type Encoder struct {
	*model.Dictionary
	gpu                 *gpu
	options             encode.Options
	precision           Precision
	step                float64 // s
	most                int     // k, not above K
	atoms               int     // K
	codePitch, dimPitch int
	batch               int // most rows at a time
	parts               int // that a row's ⟨z−b, b−a⟩ is summed in

	staging                     []float32    // batch×L, page-locked: rows without their mean
	dictionary                  cu.DevicePtr // K×L
	y, residuals, decoded, last cu.DevicePtr // batch×L: rows, what their z leaves of them, bD and aD
	codes, before               cu.DevicePtr // batch×K: b and a
	against                     cu.DevicePtr // float32, batch×parts
	momenta                     cu.DevicePtr // float32, batch
	losses                      cu.DevicePtr // float64, batch
	packing                     packing
}

// Encoder implements [encode.Device]. It does not do exact codes, Options.Gap. What it
// returns is an [*Encoder].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := newEncoder(d, dictionary, o, encode.Block)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// newEncoder is Device.Encoder with a number of rows to encode at a time if there is
// memory for so many, for tests.
func newEncoder(d Device, dictionary *model.Dictionary, o encode.Options, batch int) (*Encoder, error) {
	if err := dictionary.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Gap > 0 {
		return nil, fmt.Errorf("%w: exact codes are of the CPU only", ErrUnavailable)
	}
	step, err := encode.StepSize(dictionary)
	if err != nil {
		return nil, err
	}
	g, err := openGPU(d.Index)
	if err != nil {
		return nil, err
	}
	atoms := dictionary.Len()
	e := &Encoder{
		Dictionary: dictionary,
		gpu:        g, options: o, precision: d.precision(), step: step, most: min(o.Most, atoms),
		atoms: atoms, codePitch: roundUp(atoms, 4), dimPitch: roundUp(dictionary.Dim, 4), batch: batch,
		parts: divide(atoms, correlateTile.columns) * (correlateTile.columns / fistaColumns),
	}
	if err := e.prepare(); err != nil {
		g.close()
		return nil, err
	}
	return e, nil
}

// Device implements [encode.Encoder].
func (e *Encoder) Device() string { return e.gpu.name(e.precision) }

// Options implements [encode.Encoder].
func (e *Encoder) Options() encode.Options { return e.options }

// Close implements [encode.Encoder]. It releases the GPU.
func (e *Encoder) Close() error { return e.gpu.close() }

// fixedBytes is what does not depend on the number of rows on the device.
func (e *Encoder) fixedBytes() int64 {
	const slack = 4 << 20 // what the driver rounds up
	return slack + 4*int64(e.atoms)*int64(e.dimPitch+1)
}

// rowBytes is what a row takes there while it is encoded.
func (e *Encoder) rowBytes() int64 {
	return 4*int64(2*e.codePitch+4*e.dimPitch+e.parts+2*e.most) + 4*(1+2+2+2+2)
}

// prepare takes the device's memory, for as many rows as there is, and brings the
// dictionary there.
func (e *Encoder) prepare() error {
	g := e.gpu
	g.enter()
	defer g.leave()
	free, _, err := cu.MemInfo()
	g.check("cuMemGetInfo", err)
	if g.err != nil {
		return g.err
	}
	e.batch = int(min(int64(e.batch), (free/20*19-e.fixedBytes())/e.rowBytes()))
	if e.batch < 1 {
		return fmt.Errorf("%w on GPU %d to encode with %d sparse dimensions", train.ErrMemory, g.device.Index, e.atoms)
	}
	rows := int64(e.batch)
	e.dictionary = g.alloc(4 * int64(e.atoms) * int64(e.dimPitch))
	e.y, e.residuals = g.alloc(4*rows*int64(e.dimPitch)), g.alloc(4*rows*int64(e.dimPitch))
	e.decoded, e.last = g.alloc(4*rows*int64(e.dimPitch)), g.alloc(4*rows*int64(e.dimPitch))
	e.codes, e.before = g.alloc(4*rows*int64(e.codePitch)), g.alloc(4*rows*int64(e.codePitch))
	e.against, e.momenta, e.losses = g.alloc(4*rows*int64(e.parts)), g.alloc(4*rows), g.alloc(8*rows)
	e.packing = packing{
		gpu: g, atoms: e.atoms, codePitch: e.codePitch,
		nonzeros: g.alloc(8 * rows), l1: g.alloc(8 * rows), used: g.alloc(4 * int64(e.atoms)), starts: g.alloc(8 * rows),
	}
	e.packing.reserve(e.batch * e.most)
	e.staging = g.allocHost(rows * int64(e.dimPitch))
	toDevice(g, e.dictionary, pitched(e.Atoms, e.Dim, e.dimPitch), g.compute)
	g.synchronize(g.compute)
	if errors.Is(g.err, cu.OutOfMemory) { // somebody else has taken what was free
		return fmt.Errorf("%w to encode with %d sparse dimensions: %w", train.ErrMemory, e.atoms, g.err)
	}
	return g.err
}

// Encode implements [encode.Encoder].
func (e *Encoder) Encode(ctx context.Context, x []float32) (*encode.Codes, error) {
	if len(x)%e.Dim != 0 {
		return nil, fmt.Errorf("kernels: %d numbers are no vectors of length %d", len(x), e.Dim)
	}
	g := e.gpu
	g.enter()
	defer g.leave()
	rows := len(x) / e.Dim
	out := &encode.Codes{Loss: make([]float64, rows)}
	out.Rows, out.Cols, out.Ptr = rows, e.atoms, make([]int64, 1, rows+1)
	for lo := 0; lo < rows && g.err == nil; lo += e.batch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hi := min(lo+e.batch, rows)
		n := hi - lo
		e.start(x[lo*e.Dim:hi*e.Dim], n)
		e.fista(n, e.options.Steps, e.options.Lambda*e.step, false)
		g.launch("keep_largest", grid{divide(n, keepWarps), 1, 32 * keepWarps, 0}, g.compute,
			e.codes, e.before, n, e.atoms, e.codePitch, e.most)
		if !e.options.Nonnegative {
			e.fista(n, encode.PolishSteps, 0, true)
		}
		e.residual(n, 0, FP32) // so that losses are those of the codes
		toHost(g, out.Loss[lo:hi], e.losses, g.compute)
		e.packing.append(&out.CSR, e.codes, n)
	}
	if g.err != nil {
		return nil, g.err
	}
	return out, nil
}

// start brings rows to the device, and codes of zero.
func (e *Encoder) start(x []float32, rows int) {
	g := e.gpu
	y := e.staging[:rows*e.dimPitch]
	copyRows(y, e.dimPitch, x, e.Dim)
	for i := range rows {
		row := y[i*e.dimPitch:][:e.Dim]
		e.Center(row, row)
	}
	toDevice(g, e.y, y, g.compute)
	for _, m := range []cu.DevicePtr{e.codes, e.before} {
		g.zero(m, 4*int64(rows)*int64(e.codePitch), g.compute)
	}
	for _, m := range []cu.DevicePtr{e.decoded, e.last} {
		g.zero(m, 4*int64(rows)*int64(e.dimPitch), g.compute)
	}
}

// fista takes steps from the codes b that there are. With support, what is zero
// stays zero (as would a code that two steps in a row bring to exactly that).
func (e *Encoder) fista(rows, steps int, threshold float64, support bool) {
	momentum, q := 0.0, 1.0
	for range steps {
		e.residual(rows, momentum, e.precision)
		e.gpu.launch("fista_"+string(e.precision), correlateTile.grid(rows, e.codePitch), e.gpu.compute,
			e.codes, e.before, e.against, e.residuals, e.dictionary, e.momenta, rows, e.atoms, e.codePitch, e.dimPitch,
			e.parts, 2*e.step, threshold, e.options.Nonnegative, support)
		e.codes, e.before = e.before, e.codes
		momentum, q = encode.Momentum(q)
	}
}

// residual launches y − zD, z being b with momentum.
func (e *Encoder) residual(rows int, momentum float64, p Precision) {
	g := e.gpu
	e.decoded, e.last = e.last, e.decoded
	g.launch("decode_"+string(p), decodeTile.grid(rows, e.dimPitch), g.compute,
		e.decoded, e.codes, e.dictionary, rows, e.atoms, e.codePitch, e.dimPitch)
	g.launch("fista_residuals", grid{divide(rows, residualWarps), 1, 32 * residualWarps, 0}, g.compute,
		e.residuals, e.momenta, e.losses, e.y, e.decoded, e.last, e.against, rows, e.parts, e.Dim, e.dimPitch, momentum)
}
