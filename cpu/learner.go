package cpu

import (
	"context"
	"fmt"
	"math"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/simd"
	"overcomplete/model"
)

// blockAtoms is how many atoms move with one product of G and D: a multiple of
// [simd.TileRows], for two workers and more.
const blockAtoms = 4 * simd.TileRows

// learner moves the encoder's own dictionary.
type learner struct {
	*encoder
	x         []float32 // V×L
	update    *graph.AtomUpdate
	anchors   []float32 // W, K×L
	spectrum  backend.Spectrum
	gram      simd.Matrix // G, K×K
	products  simd.Matrix // B, K×L
	residuals simd.Matrix // B − GD of some atoms
	batch     codes
}

// Learner implements [train.Device].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	k, l := float64(dictionary.Len()), float64(dictionary.Dim)
	lanes := float64(d.workers()) * mostWords
	bytes := 4 * (k*k + 7*k*l + lanes*4*k) // G; B, D, W, packed atoms, copies; what lanes have in hand
	if err := d.checkNeed(fmt.Sprintf("learning %d sparse dimensions takes", dictionary.Len()), bytes, 4*k*max(k, l)); err != nil {
		return nil, err
	}
	spec := backend.Spec(dictionary, o)
	spec.Norm = norm
	program, err := graph.Compile(graph.Learn, spec)
	if err != nil {
		return nil, err
	}
	own := &model.Dictionary{Dim: dictionary.Dim, Atoms: append([]float32(nil), dictionary.Atoms...), Mean: dictionary.Mean}
	e, err := d.encoder(own, o)
	if err != nil {
		return nil, err
	}
	if len(x)%e.Dim != 0 {
		return nil, fmt.Errorf("cpu: %d numbers are no vectors of length %d", len(x), e.Dim)
	}
	return &learner{
		encoder: e, x: x, update: program.Steps[0].(*graph.AtomUpdate), anchors: append([]float32(nil), dictionary.Atoms...),
		gram: simd.NewMatrix(e.atoms, e.atoms), products: simd.NewMatrix(e.atoms, e.Dim),
	}, nil
}

// Learn implements [backend.Learner].
func (l *learner) Learn(ctx context.Context, rows []int32, remember, pull float64, sums *backend.Sums) error {
	if err := l.refresh(); err != nil {
		return err
	}
	a, err := l.encode(ctx, len(rows), func(i int) []float32 { return l.x[int(rows[i])*l.Dim:][:l.Dim] })
	if err != nil {
		return err
	}
	l.remember(a, float32(remember))
	l.move(float32(pull))
	for _, loss := range a.Loss {
		sums.RunningLoss += loss
	}
	sums.Count(a.Index, a.Value)
	return nil
}

// refresh prepares encoding with the atoms as they are now.
func (l *learner) refresh() (err error) {
	l.step, err = l.spectrum.StepSize(l.encoder.Dictionary)
	pack(&l.packed, l.kernels, l.dictionary, l.atoms, l.lanes)
	return err
}

// remember makes G = fG + AᵀA and B = fB + AᵀY, of the rows that were encoded last.
func (l *learner) remember(a *encode.Codes, f float32) {
	l.batch.index, l.batch.value = simd.Sized(l.batch.index, a.Rows), simd.Sized(l.batch.value, a.Rows)
	for i := range a.Rows {
		l.batch.index[i], l.batch.value[i] = a.Row(i)
	}
	parallel(l.lanes, (l.atoms+mostAtoms-1)/mostAtoms, func(lane *encodeLane, unit int) {
		lo := unit * mostAtoms
		hi := min(lo+mostAtoms, l.atoms)
		c := &lane.columns
		c.transpose(&l.batch, a.Rows, lo, hi)
		for k := lo; k < hi; k++ {
			words, values := c.of(k - lo)
			g, b := l.gram.Row(k), l.products.Row(k)
			l.kernels.Scale(g, g, f)
			l.kernels.Scale(b, b, f)
			for n, word := range words {
				v, others := values[n], l.batch.value[word]
				for j, other := range l.batch.index[word] {
					g[other] += v * others[j]
				}
			}
			l.kernels.Decode(l.products.Padded(k), words, values, l.y.Data, l.y.Pitch, int32(a.Rows))
		}
	})
}

// move runs the [graph.AtomUpdate].
func (l *learner) move(pull float32) {
	for lo := 0; lo < l.atoms; lo += blockAtoms {
		n := min(blockAtoms, l.atoms-lo)
		l.residuals.Zero(n, l.Dim)
		parallel(l.lanes, (n+simd.TileRows-1)/simd.TileRows, func(_ *encodeLane, i int) {
			first := i * simd.TileRows
			rows := min(simd.TileRows, n-first)
			r := l.residuals.From(first)
			l.kernels.Multiply(r, rows, l.gram.View(lo+first, 0), l.dictionary, l.atoms)
			for j := range rows {
				l.kernels.Combine(r.Row(j), 1, l.products.Row(lo+first+j), -1, r.Row(j))
			}
		})
		for i := range n {
			l.moveAtom(lo, i, n, pull)
		}
	}
}

func (l *learner) moveAtom(block, i, n int, pull float32) {
	k := block + i
	g := l.gram.Row(k)
	if !(float64(g[k]) > l.update.LeastUse) {
		return
	}
	d, r := l.dictionary.Row(k), l.residuals.Row(i)
	size := g[k] + pull
	l.kernels.Combine(r, 1/size, r, g[k]/size, d)
	l.kernels.Combine(r, 1, r, pull/size, l.anchors[k*l.Dim:][:l.Dim])
	var squares float64
	for _, v := range r {
		squares += float64(v) * float64(v)
	}
	if !(squares > 0) {
		return
	}
	// r becomes the atom's way, which the block's other atoms have not seen yet.
	l.kernels.Combine(r, float32(l.update.Norm/math.Sqrt(squares)), r, -1, d)
	l.kernels.Combine(d, 1, d, 1, r)
	copy(l.Atom(k), d)
	for j := i + 1; j < n; j++ {
		if c := g[block+j]; c != 0 {
			other := l.residuals.Row(j)
			l.kernels.Combine(other, 1, other, -c, r)
		}
	}
}

// Exchange implements [backend.Learner].
func (l *learner) Exchange(way backend.Way, m checkpoint.Matrix, f func(part []float32) error) error {
	switch m {
	case checkpoint.CodeProducts:
		return eachRow(l.gram, l.atoms, f)
	case checkpoint.RowProducts:
		return eachRow(l.products, l.atoms, f)
	}
	if way == backend.Restore {
		l.spectrum.Direction = make([]float32, l.Dim)
	}
	return f(l.spectrum.Direction)
}

// Restore implements [backend.Learner].
func (l *learner) Restore(atoms []float32) error {
	copy(l.Atoms, atoms)
	for k := range l.atoms {
		copy(l.dictionary.Row(k), l.Atom(k))
	}
	return nil
}

// Dictionary implements [backend.Learner].
func (l *learner) Dictionary() ([]float32, error) {
	return append([]float32(nil), l.Atoms...), nil
}
