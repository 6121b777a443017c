package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"

	"overcomplete/encode"
	"overcomplete/graph"
	"overcomplete/internal/backend"
	"overcomplete/internal/checkpoint"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
)

// blockAtoms is the number of atoms that are updated after one product of G and D. It is a multiple of
// [simd.TileRows], so that two or more workers share the product.
const blockAtoms = 4 * simd.TileRows

// learner learns a dictionary online. It updates a copy of the initial dictionary. Its encoder uses this copy.
type learner struct {
	encoder   *encoder
	rows      []float32 // X, V×L
	norm      float64   // ρ
	anchors   []float32 // W, K×L
	spectrum  backend.Spectrum
	gram      simd.Matrix // G, K×K
	products  simd.Matrix // B, K×L
	residuals simd.Matrix // B − GD of a block of atoms
	batch     codes
}

// Learner implements [backend.Device].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	k, l := float64(dictionary.Len()), float64(dictionary.Dim)
	lanes := float64(d.workers()) * maxWords
	bytes := 4 * (k*k + 7*k*l + lanes*4*k) // G; B, D, W, packed atoms, copies; codes of the lanes
	if err := d.checkNeed(fmt.Sprintf("learning %d sparse dimensions takes", dictionary.Len()), bytes, 4*k*max(k, l)); err != nil {
		return nil, err
	}
	if err := backend.CheckLearner(x, dictionary, norm); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	own := &model.Dictionary{Dim: dictionary.Dim, Atoms: slices.Clone(dictionary.Atoms), Mean: dictionary.Mean}
	e, err := d.encoder(own, o)
	if err != nil {
		return nil, err
	}
	return &learner{
		encoder: e, rows: x, norm: norm, anchors: slices.Clone(dictionary.Atoms),
		gram: simd.NewMatrix(e.k, e.k), products: simd.NewMatrix(e.k, e.dim),
	}, nil
}

// Device implements [backend.Learner].
func (l *learner) Device() string { return l.encoder.Device() }

// Close implements [backend.Learner].
func (l *learner) Close() error { return nil }

// Learn implements [backend.Learner].
func (l *learner) Learn(ctx context.Context, rows []int32, forgetting, anchorWeight float64, sums *backend.Sums) error {
	e := l.encoder
	if err := l.refresh(); err != nil {
		return err
	}
	a, err := e.encode(ctx, len(rows), func(i int) []float32 { return l.rows[int(rows[i])*e.dim:][:e.dim] })
	if err != nil {
		return err
	}
	l.accumulate(a, float32(forgetting))
	l.moveAtoms(float32(anchorWeight))
	for _, loss := range a.Loss {
		sums.RunningLoss += loss
	}
	sums.Count(a.Index, a.Value)
	return nil
}

// refresh updates the encoder's step size and integers.
func (l *learner) refresh() error {
	step, err := l.spectrum.StepSize(l.encoder.dictionary)
	if err == nil {
		l.encoder.quantise(step)
	}
	return err
}

// accumulate updates G = fG + AᵀA and B = fB + AᵀY with the rows of the latest call of encode.
func (l *learner) accumulate(a *encode.Codes, f float32) {
	e := l.encoder
	l.batch.index, l.batch.value = simd.Sized(l.batch.index, a.Rows), simd.Sized(l.batch.value, a.Rows)
	for i := range a.Rows {
		l.batch.index[i], l.batch.value[i] = a.Row(i)
	}
	parallel.With(e.lanes, (e.k+maxAtoms-1)/maxAtoms, func(lane *encodeLane, unit int) {
		lo := unit * maxAtoms
		hi := min(lo+maxAtoms, e.k)
		c := &lane.columns
		c.transpose(&l.batch, a.Rows, lo, hi)
		for k := lo; k < hi; k++ {
			words, values := c.atom(k - lo)
			g, b := l.gram.Row(k), l.products.Row(k)
			e.kernels.Scale(g, g, f)
			e.kernels.Scale(b, b, f)
			for n, word := range words {
				v, others := values[n], l.batch.value[word]
				for j, other := range l.batch.index[word] {
					g[other] += v * others[j]
				}
			}
			e.kernels.Decode(l.products.Padded(k), words, values, e.y.Data, e.y.Pitch, int32(a.Rows))
		}
	})
}

// moveAtoms updates each atom in turn by [graph.Learn], given the new atoms before it.
func (l *learner) moveAtoms(anchorWeight float32) {
	e := l.encoder
	for lo := 0; lo < e.k; lo += blockAtoms {
		n := min(blockAtoms, e.k-lo)
		l.residuals.Zero(n, e.dim)
		parallel.With(e.lanes, (n+simd.TileRows-1)/simd.TileRows, func(_ *encodeLane, i int) {
			first := i * simd.TileRows
			rows := min(simd.TileRows, n-first)
			r := l.residuals.From(first)
			e.kernels.Multiply(r, rows, l.gram.View(lo+first, 0), e.atoms, e.k)
			for j := range rows {
				e.kernels.Combine(r.Row(j), 1, l.products.Row(lo+first+j), -1, r.Row(j))
			}
		})
		for i := range n {
			l.moveAtom(lo, i, n, anchorWeight)
		}
	}
}

// moveAtom updates the atom block+i, in the block of n atoms that starts at block.
func (l *learner) moveAtom(block, i, n int, anchorWeight float32) {
	e, k := l.encoder, block+i
	g := l.gram.Row(k)
	if !(float64(g[k]) > graph.LeastUse) {
		return
	}
	d, r := e.atoms.Row(k), l.residuals.Row(i)
	size := g[k] + anchorWeight
	e.kernels.Combine(r, 1/size, r, g[k]/size, d)
	e.kernels.Combine(r, 1, r, anchorWeight/size, l.anchors[k*e.dim:][:e.dim])
	var squares float64
	for _, v := range r {
		squares += float64(v) * float64(v)
	}
	if !(squares > 0) {
		return
	}
	// r becomes the change of the atom, which the residuals of later atoms don't include yet.
	e.kernels.Combine(r, float32(l.norm/math.Sqrt(squares)), r, -1, d)
	e.kernels.Combine(d, 1, d, 1, r)
	copy(e.dictionary.Atom(k), d)
	for j := i + 1; j < n; j++ {
		if c := g[block+j]; c != 0 {
			other := l.residuals.Row(j)
			e.kernels.Combine(other, 1, other, -c, r)
		}
	}
}

// SaveState implements [backend.Learner].
func (l *learner) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	switch m {
	case checkpoint.CodeProducts:
		return eachRow(l.gram, l.encoder.k, f)
	case checkpoint.RowProducts:
		return eachRow(l.products, l.encoder.k, f)
	}
	return f(l.spectrum.Direction)
}

// LoadState implements [backend.Learner].
func (l *learner) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	if m == checkpoint.Direction {
		l.spectrum.Direction = make([]float32, l.encoder.dim)
	}
	return l.SaveState(m, f)
}

// Restore implements [backend.Learner].
func (l *learner) Restore(atoms []float32) error {
	e := l.encoder
	copy(e.dictionary.Atoms, atoms)
	for k := range e.k {
		copy(e.atoms.Row(k), e.dictionary.Atom(k))
	}
	return nil
}

// Dictionary implements [backend.Learner].
func (l *learner) Dictionary() ([]float32, error) {
	return slices.Clone(l.encoder.dictionary.Atoms), nil
}
