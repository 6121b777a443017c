//go:build gpu

package kernels

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/model"
)

// Encoder encodes on a GPU. It implements [encode.Encoder]. Its methods may be
// called from any goroutine, one at a time.
type Encoder struct {
	*model.Dictionary
	*gpu
	widths
	options   encode.Options
	proximal  *graph.Proximal
	precision Precision // of products of floats
	halving   *halving  // with FP16, or nil
	step      float64   // s
	most      int       // k, not above K
	batch     int       // most rows at a time
	parts     int       // that a row's ⟨z−b, b−a⟩ is summed in

	staging                     []float32        // batch×L, page-locked: rows without their mean
	dictionary                  pointer[float32] // K×L
	y, residuals, decoded, last pointer[float32] // batch×L: rows, what their z leaves of them, bD and aD
	codes, before               pointer[float32] // batch×K: b and a
	against                     pointer[float32] // batch×parts
	momenta                     pointer[float32] // batch
	losses                      pointer[float64] // batch
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

// openEncoder is newEncoder but for the memory on the device.
func openEncoder(d Device, dictionary *model.Dictionary, o encode.Options, batch int) (*Encoder, error) {
	if err := dictionary.Validate(); err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Gap > 0 {
		return nil, fmt.Errorf("%w: exact codes", ErrUnsupported)
	}
	program, err := graph.Compile(graph.Encode, backend.Spec(dictionary, o))
	if err != nil {
		return nil, err
	}
	step, err := backend.StepSize(dictionary)
	if err != nil {
		return nil, err
	}
	g, err := d.open()
	if err != nil {
		return nil, err
	}
	atoms := dictionary.Len()
	e := &Encoder{
		Dictionary: dictionary, gpu: g, widths: newWidths(atoms, dictionary.Dim),
		options: o, proximal: program.Steps[0].(*graph.Proximal), precision: cmp.Or(d.Precision, TF32), step: step, most: min(o.Most, atoms), batch: batch,
		parts: divide(atoms, correlateColumns) * (correlateColumns / fistaColumns),
	}
	if d.Precision == FP16 {
		e.precision, e.widths, e.halving = TF32, newHalfWidths(atoms, dictionary.Dim), newHalving(dictionary.Atoms, dictionary.Dim)
	}
	return e, nil
}

// Device implements [encode.Encoder].
func (e *Encoder) Device() string {
	if e.halving != nil {
		return e.gpu.name(FP16)
	}
	return e.gpu.name(e.precision)
}

// Options implements [encode.Encoder].
func (e *Encoder) Options() encode.Options { return e.options }

// fixedBytes is the device memory that does not depend on the number of rows at a time.
func (e *Encoder) fixedBytes() int64 {
	const slack = 4 << 20 // what the driver rounds up
	_, atom := e.halvingBytes()
	return slack + int64(e.atoms)*(4*int64(e.dimPitch+1)+atom)
}

// rowBytes is the device memory that each row takes while it is encoded.
func (e *Encoder) rowBytes() int64 {
	row, _ := e.halvingBytes()
	return 4*int64(2*e.codePitch+4*e.dimPitch+e.parts+2*e.most) + 4*(1+2+2+2+2) + row
}

// prepare takes device memory, for batch rows or as many as fit beside so many bytes, and
// copies the dictionary. It is an error if fewer than least fit.
func (e *Encoder) prepare(least int, beside int64) error {
	g := e.gpu
	defer g.enter()()
	room := g.room()
	if g.err != nil {
		return g.err
	}
	e.batch = int(min(int64(e.batch), (room/20*19-e.fixedBytes()-beside)/e.rowBytes()))
	if e.batch < least {
		return fmt.Errorf("%w on GPU %d for %d sparse dimensions", backend.ErrMemory, g.device.Index, e.atoms)
	}
	rows := e.batch
	e.dictionary = alloc[float32](g, e.atoms*e.dimPitch)
	for _, m := range []*pointer[float32]{&e.y, &e.residuals, &e.decoded, &e.last} {
		*m = alloc[float32](g, rows*e.dimPitch)
	}
	e.codes, e.before = alloc[float32](g, rows*e.codePitch), alloc[float32](g, rows*e.codePitch)
	e.against, e.momenta, e.losses = alloc[float32](g, rows*e.parts), alloc[float32](g, rows), alloc[float64](g, rows)
	e.packing = packing{
		gpu: g, widths: e.widths,
		nonzeros: alloc[float64](g, rows), l1: alloc[float64](g, rows), used: alloc[int32](g, e.atoms), starts: alloc[int64](g, rows),
	}
	e.packing.reserve(rows * e.most)
	e.staging = g.allocHost(rows * e.dimPitch)
	toDevice(g, e.dictionary, pitched(e.Atoms, e.Dim, e.dimPitch), g.compute)
	e.prepareHalving(rows)
	e.halveDictionary()
	return e.prepared()
}

// prepared waits for what has been allocated and copied.
func (e *Encoder) prepared() error {
	g := e.gpu
	g.synchronize(g.compute)
	if errors.Is(g.err, cu.OutOfMemory) { // somebody else has taken what was free
		return fmt.Errorf("%w for %d sparse dimensions: %w", backend.ErrMemory, e.atoms, g.err)
	}
	return g.err
}

// Encode implements [encode.Encoder].
func (e *Encoder) Encode(ctx context.Context, x []float32) (*encode.Codes, error) {
	return e.encode(ctx, x, func(int) {})
}

// encode is Encode that calls each when some rows and their codes are on the device, with
// their number.
func (e *Encoder) encode(ctx context.Context, x []float32, each func(rows int)) (*encode.Codes, error) {
	if len(x)%e.Dim != 0 {
		return nil, fmt.Errorf("kernels: %d numbers are no vectors of length %d", len(x), e.Dim)
	}
	g := e.gpu
	defer g.enter()()
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
		if e.halving != nil {
			e.fistaHalves(n)
		} else {
			e.fista(n, e.options.Steps, e.proximal.Lambda, false)
			g.queue(keepLargest{codes: e.codes, shape: e.shape(n), most: int32(e.most)}.launch(), g.compute)
		}
		e.fista(n, backend.PolishSteps, 0, true)
		e.residual(n, 0, FP32) // so that losses are those of the codes
		toHost(g, out.Loss[lo:hi], e.losses, g.compute)
		e.packing.append(&out.CSR, e.codes, n)
		if err := e.withinHalves(out.Loss[:hi], lo); err != nil {
			return nil, err
		}
		each(n)
	}
	if g.err != nil {
		return nil, g.err
	}
	return out, nil
}

// start copies rows to the device, and sets their codes to zero.
func (e *Encoder) start(x []float32, rows int) {
	g := e.gpu
	y := e.staging[:rows*e.dimPitch]
	copyRows(y, e.dimPitch, x, e.Dim)
	for i := range rows {
		row := y[i*e.dimPitch:][:e.Dim]
		e.Center(row, row)
	}
	toDevice(g, e.y, y, g.compute)
	zero(g, e.codes, rows*e.codePitch, g.compute)
	zero(g, e.before, rows*e.codePitch, g.compute)
	zero(g, e.decoded, rows*e.dimPitch, g.compute)
	zero(g, e.last, rows*e.dimPitch, g.compute)
}

// fista takes steps from the codes b that there are. With support, what keepLargest has
// dropped stays zero.
func (e *Encoder) fista(rows, steps int, lambda float64, support bool) {
	before := 0.0
	for lambda, momentum := range backend.FISTA(lambda, steps) {
		e.residual(rows, before, e.precision)
		e.gpu.queue(fista{
			codes: e.codes, before: e.before, against: e.against, residuals: e.residuals, atoms: e.dictionary, momenta: e.momenta,
			size: -e.proximal.Gradient * e.step, threshold: lambda * e.step, shape: e.shape(rows), parts: int32(e.parts),
			nonnegative: e.proximal.Nonnegative, support: support,
		}.launch(e.precision), e.gpu.compute)
		e.codes, e.before = e.before, e.codes
		before = momentum
	}
}

// residual launches the computation of y − zD, where z is b with momentum.
func (e *Encoder) residual(rows int, momentum float64, p Precision) {
	g := e.gpu
	e.decoded, e.last = e.last, e.decoded
	g.queue(decode{product: e.decoded, codes: e.codes, atoms: e.dictionary, shape: e.shape(rows)}.launch(p), g.compute)
	g.queue(fistaResiduals{
		residuals: pointer[byte](e.residuals), momenta: e.momenta, losses: e.losses, y: e.y, decoded: e.decoded, last: e.last, against: e.against,
		momentum: momentum, shape: e.shape(rows), parts: int32(e.parts),
	}.launch(), g.compute)
}
