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
	"overcomplete/internal/float32s"
	"overcomplete/internal/parallel"
	"overcomplete/internal/simd"
	"overcomplete/model"
)

// panelAtoms is the number of atoms whose rows of GD are computed together. It is a multiple of
// [backend.BlockAtoms], and eight times [simd.TileRows], so that up to eight workers share the product.
const panelAtoms = 8 * simd.TileRows

// learner implements [backend.Learner]. It updates a copy of the initial dictionary, which its encoder uses.
type learner struct {
	codes encode.Codes // codes of the current batch

	encoder   *encoder
	rows      []float32   // X, V×L
	norm      float64     // ρ
	anchors   []float32   // W, K×L
	gram      simd.Matrix // G, K×K
	products  simd.Matrix // B, K×L
	gradients simd.Matrix // GD − B of a panel of atoms: half the gradient, without the anchors' term
	moves     simd.Matrix // changes of the atoms of a block
	batch     codes
}

// Learner implements [backend.Device].
func (d Device) Learner(x []float32, dictionary *model.Dictionary, norm float64, o encode.Options) (backend.Learner, error) {
	k, l := float64(dictionary.Len()), float64(dictionary.Dim)
	lanes := float64(d.workers()) * searchRows
	bytes := 4*(k*k+7*k*l) + lanes*k*searchRowBytes // G; B, D, W, packed atoms, copies; the lanes' lists
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
	e.capacity = e.k + 1
	return &learner{
		encoder: e, rows: x, norm: norm, anchors: slices.Clone(dictionary.Atoms),
		gram: simd.NewMatrix(e.k, e.k), products: simd.NewMatrix(e.k, e.dim), moves: simd.NewMatrix(backend.BlockAtoms, e.dim),
	}, nil
}

func (l *learner) Device() string { return l.encoder.Device() }

func (l *learner) Close() error { return nil }

func (l *learner) Learn(ctx context.Context, batches []backend.Minibatch, anchor, noise float64, learned func(n int)) (backend.Sums, error) {
	e, a, sums := l.encoder, &l.codes, backend.Sums{Used: make([]bool, l.encoder.k)}
	for _, b := range batches {
		if err := e.refresh(); err != nil {
			return sums, err
		}
		if err := e.encode(ctx, len(b.Rows), func(i int) []float32 { return l.rows[int(b.Rows[i])*e.dim:][:e.dim] }, a); err != nil {
			return sums, err
		}
		l.accumulate(a, float32(b.Forgetting))
		l.updateAtoms(float32(anchor * noise))
		var loss float64
		for _, row := range a.Loss {
			loss += row
		}
		noise = loss / float64(len(b.Rows))
		sums.RunningLoss += loss
		sums.Count(a.Index, a.Value)
		sums.Steps++
		if learned != nil {
			learned(len(b.Rows))
		}
	}
	return sums, nil
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
			rows, values := c.atom(k - lo)
			g, b := l.gram.Row(k), l.products.Row(k)
			e.kernels.Scale(g, g, f)
			e.kernels.Scale(b, b, f)
			for n, row := range rows {
				v, others := values[n], l.batch.value[row]
				for j, other := range l.batch.index[row] {
					g[other] += v * others[j]
				}
			}
			e.kernels.Decode(l.products.Padded(k), rows, values, e.y.Data, e.y.Pitch, int32(a.Rows))
		}
	})
}

// updateAtoms updates the atoms by [graph.Learn], in blocks. A block uses the new atoms of the blocks before it.
func (l *learner) updateAtoms(anchorWeight float32) {
	e := l.encoder
	for panel := 0; panel < e.k; panel += panelAtoms {
		n := min(panelAtoms, e.k-panel)
		l.gradients.Zero(n, e.dim)
		l.addProducts(panel, 0, n, 0, e.atoms, e.k)
		for i := range n {
			g := l.gradients.Row(i)
			e.kernels.Combine(g, 1, g, -1, l.products.Row(panel+i))
		}
		for first := 0; first < n; first += backend.BlockAtoms {
			end := min(first+backend.BlockAtoms, n)
			for i := first; i < end; i++ {
				l.updateAtom(panel+i, panel+first, panel+end, l.gradients.Row(i), l.moves.Row(i-first), anchorWeight)
			}
			l.addProducts(panel, end, n, panel+first, l.moves, end-first)
		}
	}
}

// addProducts adds GM to rows lo to hi of the panel's gradients. The rows of M belong to the n atoms from first on. A
// block of M's rows stays in the level-2 cache for all rows of a part. There are twice as many parts as workers,
// because a sleeping worker starts a tenth of the product's time late. Small products use one worker.
func (l *learner) addProducts(panel, lo, hi, first int, m simd.Matrix, n int) {
	e, tiles, size := l.encoder, (hi-lo+simd.TileRows-1)/simd.TileRows, blockRows(m.Pitch)
	parts := min(2*len(e.lanes), tiles)
	if n <= backend.BlockAtoms {
		parts = min(1, tiles)
	}
	parallel.With(e.lanes, parts, func(_ *encodeLane, i int) {
		from, to := lo+i*tiles/parts*simd.TileRows, min(lo+(i+1)*tiles/parts*simd.TileRows, hi)
		for block := 0; block < n; block += size {
			g := l.gram.View(panel+from, first+block)
			e.kernels.Multiply(l.gradients.From(from), to-from, g, m.From(block), min(size, n-block))
		}
	})
}

// updateAtom updates atom k of the block from lo to hi, and sets move to the atom's change. The argument gradient is
// the atom's row of GD − B; updateAtom overwrites it.
func (l *learner) updateAtom(k, lo, hi int, gradient, move []float32, anchorWeight float32) {
	e := l.encoder
	clear(move)
	g := l.gram.Row(k)
	if !(float64(g[k]) > graph.LeastUse) {
		return
	}
	var sum float32
	for _, other := range g[lo:hi] {
		sum += max(other, -other)
	}
	curvature := max(g[k], sum/graph.Relaxation)
	d, u, size := e.atoms.Row(k), gradient, curvature+anchorWeight
	e.kernels.Combine(u, curvature/size, d, -1/size, gradient)
	e.kernels.Combine(u, 1, u, anchorWeight/size, l.anchors[k*e.dim:][:e.dim])
	squares := float32s.Squares(u)
	if !(squares > 0) {
		return
	}
	e.kernels.Combine(move, float32(l.norm/math.Sqrt(squares)), u, -1, d)
	e.kernels.Combine(d, 1, d, 1, move)
	copy(e.dictionary.Atom(k), d)
}

func (l *learner) SaveState(m checkpoint.Matrix, f func(part []float32) error) error {
	switch m {
	case checkpoint.CodeProducts:
		return eachRow(l.gram, l.encoder.k, f)
	case checkpoint.RowProducts:
		return eachRow(l.products, l.encoder.k, f)
	}
	return f(l.encoder.spectrum.Direction)
}

func (l *learner) LoadState(m checkpoint.Matrix, f func(part []float32) error) error {
	if m == checkpoint.Direction {
		l.encoder.spectrum.Direction = make([]float32, l.encoder.dim)
	}
	return l.SaveState(m, f)
}

func (l *learner) Restore(atoms []float32) error {
	e := l.encoder
	copy(e.dictionary.Atoms, atoms)
	for k := range e.k {
		copy(e.atoms.Row(k), e.dictionary.Atom(k))
	}
	return nil
}

func (l *learner) AtomSquares() ([]float64, error) {
	return backend.AtomSquares(l.encoder.dictionary.Atoms, l.encoder.dictionary.Dim), nil
}

func (l *learner) Dictionary() ([]float32, error) {
	return slices.Clone(l.encoder.dictionary.Atoms), nil
}
