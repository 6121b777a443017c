package cpu

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
	"overcomplete/vectors"
)

// searchRows limits the rows of a unit of work. At the end of a call, a worker is idle for about half of a unit's time.
// This matters to a learner, whose calls have few units.
const searchRows = 4 * simd.TileRows

// encoder implements [encode.Encoder].
type encoder struct {
	dictionary *model.Dictionary
	k, dim     int // K, L
	options    encode.Options
	kernels    *simd.Kernels
	lanes      []*encodeLane

	atoms    simd.Matrix // D, K×L with padded rows
	coarse   simd.Coarse // D in 8-bit integers
	packed   simd.Panels // D, for the exact lasso
	gram     simd.Matrix // DDᵀ, for the exact lasso
	step     float64     // s, the step size
	capacity int         // see backend.Capacity
	spectrum backend.Spectrum
	y        simd.Matrix // centred rows of the latest call

	started chan struct{} // closed when the rows of the latest Start are encoded; nil before the first Start
}

// encodeLane is the memory of a worker. The worker encodes n rows together.
type encodeLane struct {
	y        simd.Matrix // n×L: centred rows, a view of encoder.y
	search   searchLane
	codes    codes       // codes of the rows; they alias the search's lists
	decoded  simd.Matrix // aD of one row
	residual simd.Matrix // y − aD of one row
	r, a     simd.Matrix // for the exact lasso: n×L residuals and their n×K products with atoms
	sums     []float32   // scratch memory for Correlate
	lasso    lassoLane
	columns  columns // nonzeros of a learner's batch, grouped by atom
}

// Encoder implements [encode.Device].
func (d Device) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := d.encoder(dictionary, o)
	if err == nil {
		err = e.refresh()
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// encoder returns an encoder that must be refreshed before it encodes.
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
	e.capacity = backend.Capacity(o, e.k)
	e.atoms = simd.NewMatrix(e.k, e.dim)
	for i := range dictionary.Len() {
		copy(e.atoms.Row(i), dictionary.Atom(i))
	}
	for range min(d.workers(), encode.Block) {
		e.lanes = append(e.lanes, new(encodeLane))
	}
	e.coarse.Resize(k, e.k, e.dim)
	if o.Gap > 0 {
		bytes := 4 * float64(dictionary.Len()) * float64(dictionary.Len())
		if err := d.checkNeed(fmt.Sprintf("the products of %d atoms with each other need", dictionary.Len()), bytes, bytes); err != nil {
			return nil, err
		}
		pack(&e.packed, k, e.atoms, e.k, e.lanes)
		e.makeGram()
	}
	return e, nil
}

// refresh rounds the atoms to 8-bit integers and sets the step size.
func (e *encoder) refresh() (err error) {
	if e.step, err = e.spectrum.StepSize(e.dictionary); err != nil {
		return err
	}
	units := (e.k + maxAtoms - 1) / maxAtoms
	parallel.With(e.lanes, units, func(_ *encodeLane, i int) {
		e.coarse.Measure(e.atoms, i*maxAtoms, min((i+1)*maxAtoms, e.k))
	})
	parallel.With(e.lanes, units, func(_ *encodeLane, i int) {
		e.coarse.Fill(e.kernels, e.atoms, i*maxAtoms, min((i+1)*maxAtoms, e.k))
	})
	e.coarse.SetStep(e.step)
	return nil
}

// Device returns one name for all levels of an architecture except generic, because they compute the same bits.
func (e *encoder) Device() string {
	if e.kernels.Name == "generic" {
		return name(e.kernels)
	}
	return "cpu " + runtime.GOARCH
}

func (e *encoder) Options() encode.Options { return e.options }

func (e *encoder) Close() error {
	if e.started != nil {
		<-e.started
	}
	return nil
}

// Start encodes x in a goroutine, after the rows of earlier calls.
func (e *encoder) Start(ctx context.Context, x []float32, codes *encode.Codes) (wait func() error) {
	var err error
	if len(x)%e.dim != 0 {
		err = fmt.Errorf("cpu: %d numbers are not vectors of length %d", len(x), e.dim)
		return func() error { return err }
	}
	before, done := e.started, make(chan struct{})
	e.started = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		err = e.encode(ctx, len(x)/e.dim, func(i int) []float32 { return x[i*e.dim:][:e.dim] }, codes)
	}()
	return func() error {
		<-done
		return err
	}
}

// encode stores the codes of the rows in out; see [encode.Encoder].
func (e *encoder) encode(ctx context.Context, rows int, row func(i int) []float32, out *encode.Codes) error {
	out.Loss, out.Squares = simd.Sized(out.Loss, rows), simd.Sized(out.Squares, rows)
	if e.options.Gap > 0 {
		out.Gap = simd.Sized(out.Gap, rows)
	}
	out.Rows, out.Cols, out.Ptr = 0, e.k, append(slices.Grow(out.Ptr[:0], rows+1), 0)
	e.y.Resize(rows, e.dim)
	// Each worker gets about one tile, or several tiles of searchRows rows.
	share := (rows/len(e.lanes) + simd.TileRows) / simd.TileRows * simd.TileRows
	perTile := min(share, searchRows)
	tiles := make([]vectors.CSR, (rows+perTile-1)/perTile)
	parallel.With(e.lanes, len(tiles), func(l *encodeLane, i int) {
		if ctx.Err() != nil {
			return
		}
		lo, hi := i*perTile, min((i+1)*perTile, rows)
		n := hi - lo
		l.y = e.y.From(lo)
		l.prepare(e, out.Squares[lo:hi], func(i int) []float32 { return row(lo + i) })
		if e.options.Gap > 0 {
			e.search(ctx, l, n, lassoSteps)
			l.setCodes(e, n, e.k)
			e.lasso(ctx, l, out.Loss[lo:hi], out.Gap[lo:hi])
		} else {
			e.search(ctx, l, n, e.options.Steps)
			l.setCodes(e, n, e.options.Nonzeros)
			for j := range n {
				out.Loss[lo+j] = e.polish(l, j)
			}
		}
		l.codes.store(&tiles[i], n)
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	nonzeros := 0
	for i := range tiles {
		nonzeros += tiles[i].Nonzeros()
	}
	out.Index, out.Value = slices.Grow(out.Index[:0], nonzeros), slices.Grow(out.Value[:0], nonzeros)
	for i := range tiles {
		out.Append(&tiles[i])
	}
	return nil
}

// prepare sets y to the centred rows, and squares to their squared norms.
func (l *encodeLane) prepare(e *encoder, squares []float64, row func(i int) []float32) {
	for i := range squares {
		e.dictionary.Center(l.y.Row(i), row(i))
		squares[i] = float32s.Squares(l.y.Row(i))
	}
	l.decoded.Resize(1, e.dim)
	l.residual.Resize(1, e.dim)
}

// setCodes sets the codes to the largest values that the search found, at most limit per row.
func (l *encodeLane) setCodes(e *encoder, rows, limit int) {
	l.codes.index, l.codes.value = simd.Sized(l.codes.index, rows), simd.Sized(l.codes.value, rows)
	for i := range rows {
		row := &l.search.rows[i]
		row.reserve(row.n)
		l.search.choose(row, 1/e.coarse.Unit, limit)
		l.codes.index[i], l.codes.value[i] = row.index[:row.n], row.b[:row.n]
	}
}

// floor returns the lower bound of codes.
func (e *encoder) floor() float32 {
	if e.options.Nonnegative {
		return 0
	}
	return float32(math.Inf(-1))
}

// polish runs FISTA without shrinkage on the support of a code, in float32. It returns ‖y − aD‖². A step
// processes a few atoms at a time: it decodes their new codes while these atoms are in the level-1 cache.
func (e *encoder) polish(l *encodeLane, i int) float64 {
	const few = simd.Width
	k, s, row := e.kernels, &l.search, &l.search.rows[i]
	clear(row.share[:row.n])
	row.pad()
	copy(row.z, row.b[:row.n])
	s.active, s.values = simd.Sized(s.active, 2*few), simd.Sized(s.values, 2*few)
	y, r, decoded := l.y.Padded(i), l.residual.Padded(0), l.decoded.Padded(0)
	decode := func(code []float32, lo, hi int) {
		k.Decode(decoded, row.index[lo:hi], code[lo:hi], e.atoms.Data, e.atoms.Pitch, int32(e.k))
	}
	clear(decoded)
	decode(row.b, 0, row.n)
	k.Combine(r, 1, y, -1, decoded)
	step, t := float32(2*e.step), 0 // the gradient of ‖r‖² with respect to the code is −2rDᵀ
	for _, momentum := range backend.FISTA(0, backend.PolishSteps) {
		code := row.z
		if t++; t == backend.PolishSteps {
			code = row.b
		}
		clear(decoded)
		for lo := 0; lo < row.n; lo += few {
			hi, end := min(lo+few, row.n), lo+few
			k.Dots(row.dots[lo:hi], row.index[lo:hi], r, e.atoms.Data, e.atoms.Pitch, int32(e.k))
			k.Advance(s.active, s.values, row.index[lo:end], row.dots[lo:end], row.z[lo:end], row.b[lo:end],
				row.share[lo:end], step, 0, e.floor(), float32(momentum), 0, math.MaxUint32)
			decode(code, lo, hi)
		}
		k.Combine(r, 1, y, -1, decoded)
	}
	l.codes.dropZeros(i)
	k.Mul(r, r, r)
	return k.Sum(r[:e.dim])
}
