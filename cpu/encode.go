package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
)

// encoder encodes on the CPU.
type encoder struct {
	dictionary *model.Dictionary
	k, dim     int // K, L
	options    encode.Options
	kernels    *simd.Kernels
	lanes      []*encodeLane

	atoms  simd.Matrix // D, K×L with padded rows
	packed simd.Panels // D
	gram   simd.Matrix // DDᵀ, of the exact lasso
	step   float64     // s, the step size
	y      simd.Matrix // centred rows of the latest call

	started chan struct{} // closed when the latest rows of Start are encoded, or nil
}

// encodeLane is the memory of a worker, which encodes n rows together.
type encodeLane struct {
	y, r          simd.Matrix // n×L: centred rows, part of the encoder's, and residuals
	decoded, last simd.Matrix // n×L: bD and aD
	b, a          simd.Matrix // n×K: the latest codes and the codes of the step before
	dots          simd.Matrix // n×nonzeros: products of residuals with the atoms of their codes
	codes         codes       // nonzeros of b
	momentum      []float32   // by row
	against       []float64   // by row: momentum restarts if positive
	sums          []float32   // scratch of Correlate
	next          []int       // by row: number of nonzeros that are processed
	magnitudes    []float32
	spareIndex    []int32 // output of FISTA that polish ignores
	spareValue    []float32
	lasso         lassoLane
	columns       columns // of a learner's batch
}

// Encoder implements [encode.Device].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	return d.encoder(dictionary, o)
}

func (d Device) encoder(dictionary *model.Dictionary, o encode.Options) (*encoder, error) {
	k, _, err := simd.Choose()
	if err != nil {
		return nil, err
	}
	if err := dictionary.Validate(); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &encoder{dictionary: dictionary, k: dictionary.Len(), dim: dictionary.Dim, options: o, kernels: k}
	e.atoms = simd.NewMatrix(e.k, e.dim)
	if e.step, err = backend.StepSize(dictionary); err != nil {
		return nil, err
	}
	for i := range dictionary.Len() {
		copy(e.atoms.Row(i), dictionary.Atom(i))
	}
	for range min(d.workers(), encode.Block) {
		e.lanes = append(e.lanes, new(encodeLane))
	}
	pack(&e.packed, k, e.atoms, dictionary.Len(), e.lanes)
	if o.Gap > 0 {
		bytes := 4 * float64(dictionary.Len()) * float64(dictionary.Len())
		if err := d.checkNeed(fmt.Sprintf("the products of %d atoms with each other need", dictionary.Len()), bytes, bytes); err != nil {
			return nil, err
		}
		e.makeGram()
	}
	return e, nil
}

// Device implements [encode.Encoder].
func (e *encoder) Device() string { return name(e.kernels) }

// Options implements [encode.Encoder].
func (e *encoder) Options() encode.Options { return e.options }

// Close implements [encode.Encoder].
func (e *encoder) Close() error {
	if e.started != nil {
		<-e.started
	}
	return nil
}

// Encode implements [encode.Encoder].
func (e *encoder) Encode(ctx context.Context, x []float32) (*encode.Codes, error) {
	return e.Start(ctx, x)()
}

// Start implements [encode.Encoder]. A goroutine encodes x after the rows that were started before.
func (e *encoder) Start(ctx context.Context, x []float32) (wait func() (*encode.Codes, error)) {
	var codes *encode.Codes
	var err error
	if len(x)%e.dim != 0 {
		err = fmt.Errorf("cpu: %d numbers are not vectors of length %d", len(x), e.dim)
		return func() (*encode.Codes, error) { return nil, err }
	}
	before, done := e.started, make(chan struct{})
	e.started = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		codes, err = e.encode(ctx, len(x)/e.dim, func(i int) []float32 { return x[i*e.dim:][:e.dim] })
	}()
	return func() (*encode.Codes, error) {
		<-done
		return codes, err
	}
}

// encode encodes n rows; see [encode.Encoder].
func (e *encoder) encode(ctx context.Context, rows int, row func(i int) []float32) (*encode.Codes, error) {
	out := &encode.Codes{Loss: make([]float64, rows)}
	if e.options.Gap > 0 {
		out.Gap = make([]float64, rows)
	}
	out.Cols, out.Ptr = e.k, make([]int64, 1, rows+1)
	e.y.Resize(rows, e.dim)
	// About one tile per worker, or more.
	share := (rows/len(e.lanes) + simd.TileRows) / simd.TileRows * simd.TileRows
	words := min(share, maxWords)
	tiles := make([]tile, (rows+words-1)/words)
	parallel.With(e.lanes, len(tiles), func(l *encodeLane, i int) {
		if ctx.Err() != nil {
			return
		}
		lo, hi := i*words, min((i+1)*words, rows)
		n := hi - lo
		l.y = e.y.From(lo)
		l.prepare(e, n, func(i int) []float32 { return row(lo + i) })
		if e.options.Gap > 0 {
			e.fista(ctx, l, n, lassoSteps)
			e.lasso(ctx, l, out.Loss[lo:hi], out.Gap[lo:hi])
		} else {
			e.fista(ctx, l, n, e.options.Steps)
			e.keepLargest(l, n)
			e.polish(l, n)
			l.losses(e, out.Loss[lo:hi])
		}
		tiles[i].pack(&l.codes, n)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	nonzeros := 0
	for i := range tiles {
		nonzeros += len(tiles[i].index)
	}
	out.Index, out.Value = make([]int32, 0, nonzeros), make([]float32, 0, nonzeros)
	for i := range tiles {
		for j := range tiles[i].end {
			out.AppendRow(tiles[i].row(j))
		}
	}
	return out, nil
}

// prepare sets y to n centred rows, and their codes to zero.
func (l *encodeLane) prepare(e *encoder, rows int, row func(i int) []float32) {
	for _, m := range []*simd.Matrix{&l.r, &l.decoded, &l.last} {
		m.Resize(rows, e.dim)
	}
	for _, m := range []*simd.Matrix{&l.b, &l.a} {
		m.Resize(rows, e.k)
		clear(m.Data)
	}
	clear(l.decoded.Data)
	for i := range rows {
		y := l.y.Row(i)
		e.dictionary.Center(y, row(i))
		copy(l.r.Row(i), y)
	}
	l.codes.index, l.codes.value = simd.Sized(l.codes.index, rows), simd.Sized(l.codes.value, rows)
	l.codes.reserve(rows, e.k+simd.Width)
	l.momentum, l.against = zeroed(l.momentum, rows), zeroed(l.against, rows)
}

// fista runs this number of steps with decreasing shrinkage. It stops earlier if ctx is cancelled.
func (e *encoder) fista(ctx context.Context, l *encodeLane, rows, steps int) {
	for lambda, momentum := range backend.FISTA(e.options.Lambda, steps) {
		if ctx.Err() != nil {
			return
		}
		e.correlate(l, rows, lambda)
		e.advance(l, rows, momentum)
	}
}

// correlate computes the codes of the next step.
func (e *encoder) correlate(l *encodeLane, rows int, lambda float64) {
	step, threshold, floor := e.stepAlong(), float32(lambda*e.step), e.floor()
	c := &l.codes
	for i := range rows {
		c.index[i], c.value[i] = c.index[i][:0], c.value[i][:0]
	}
	clear(l.against)
	e.kernels.Correlate(l.r, 0, rows, &e.packed, nil, &l.sums, func(i, atom int, sums []float32) {
		n, end := len(c.index[i]), atom+len(sums)
		found, against := e.kernels.FISTA(c.index[i][n:cap(c.index[i])], c.value[i][n:cap(c.value[i])], sums,
			l.b.Row(i)[atom:end], l.a.Row(i)[atom:end], int32(atom), l.momentum[i], step, threshold, floor)
		c.index[i], c.value[i] = c.index[i][:n+found], c.value[i][:n+found]
		l.against[i] += float64(against)
	})
	l.a, l.b = l.b, l.a
}

// stepAlong returns the factor of RDᵀ in a step, 2s: the gradient of ‖R‖² by the codes is −2RDᵀ.
func (e *encoder) stepAlong() float32 { return float32(2 * e.step) }

// floor returns the lower bound of codes.
func (e *encoder) floor() float32 {
	if e.options.Nonnegative {
		return 0
	}
	return float32(math.Inf(-1))
}

// advance decodes the new codes b and computes the residuals y − zD, where z extrapolates b by the momentum.
func (e *encoder) advance(l *encodeLane, rows int, momentum float64) {
	l.decoded, l.last = l.last, l.decoded
	e.decode(l, rows)
	for i := range rows {
		l.momentum[i] = float32(momentum)
		if l.against[i] > 0 {
			l.momentum[i] = 0
		}
		// zD = bD + momentum·(bD − aD)
		r, m := l.r.Row(i), l.momentum[i]
		e.kernels.Combine(r, 1+m, l.decoded.Row(i), -m, l.last.Row(i))
		e.kernels.Combine(r, 1, l.y.Row(i), -1, r)
	}
}

func (e *encoder) decode(l *encodeLane, rows int) {
	clear(l.decoded.Data[:rows*l.decoded.Pitch])
	l.codes.decode(e.kernels, l.decoded, e.atoms, 0, rows, 0, e.k, &l.next)
}

// keepLargest keeps the largest magnitudes of each code, the first of equal ones.
func (e *encoder) keepLargest(l *encodeLane, rows int) {
	for i := range rows {
		index, value := l.codes.index[i], l.codes.value[i]
		limit := e.options.Nonzeros
		if len(value) <= limit {
			continue
		}
		l.magnitudes = simd.Sized(l.magnitudes, len(value))
		simd.Abs(l.magnitudes, value)
		slices.Sort(l.magnitudes)
		least := l.magnitudes[len(value)-limit]
		equal := limit // number of kept values whose magnitude is least
		for _, m := range l.magnitudes[len(value)-limit:] {
			if m > least {
				equal--
			}
		}
		kept := 0
		for j, v := range value {
			m := max(v, -v)
			if m == least {
				equal--
			}
			if m > least || m == least && equal >= 0 {
				index[kept], value[kept] = index[j], v
				kept++
			}
		}
		l.codes.index[i], l.codes.value[i] = index[:kept], value[:kept]
	}
}

// polish runs FISTA without shrinkage on the support of each code. Rows of b and a hold the values of the
// support only.
func (e *encoder) polish(l *encodeLane, rows int) {
	longest := 0
	for i := range rows {
		value := l.codes.value[i]
		copy(l.b.Row(i), value)
		copy(l.a.Row(i), value)
		longest = max(longest, len(value))
		l.momentum[i], l.against[i] = 0, 0
	}
	l.dots.Resize(rows, longest)
	l.spareIndex, l.spareValue = simd.Sized(l.spareIndex, longest+simd.Width), simd.Sized(l.spareValue, longest+simd.Width)
	e.advance(l, rows, 0) // residuals of the codes, without momentum
	for _, momentum := range backend.FISTA(0, backend.PolishSteps) {
		e.correlateSupport(l, rows)
		for i := range rows {
			n := len(l.codes.index[i])
			_, against := e.kernels.FISTA(l.spareIndex, l.spareValue, l.dots.Row(i)[:n], l.b.Row(i)[:n], l.a.Row(i)[:n],
				0, l.momentum[i], e.stepAlong(), 0, e.floor())
			l.against[i] = float64(against)
			copy(l.codes.value[i], l.a.Row(i))
		}
		l.a, l.b = l.b, l.a
		e.advance(l, rows, momentum)
	}
	for i := range rows {
		l.codes.dropZeros(i)
	}
}

// correlateSupport multiplies each residual with the atoms of its code.
func (e *encoder) correlateSupport(l *encodeLane, rows int) {
	l.next = zeroed(l.next, rows)
	size := blockRows(e.atoms.Pitch)
	for block := 0; block < e.k; block += size {
		end := int32(min(block+size, e.k))
		for i := range rows {
			next := &l.next[i]
			*next += e.kernels.Dots(l.dots.Row(i)[*next:], l.codes.index[i][*next:], l.r.Padded(i), e.atoms.Data, e.atoms.Pitch, end)
		}
	}
}

// losses computes ‖y − bD‖² of each row, with the last bD.
func (l *encodeLane) losses(e *encoder, losses []float64) {
	for i := range losses {
		r := l.r.Row(i)
		e.kernels.Combine(r, 1, l.y.Row(i), -1, l.decoded.Row(i))
		e.kernels.Mul(r, r, r)
		losses[i] = e.kernels.Sum(r)
	}
}
