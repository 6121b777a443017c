//go:build gpu

package kernels

import (
	"fmt"
	"slices"

	"overcomplete/graph"
)

// program is an executable in device memory.
type program struct {
	*executable
	numbers pointer[float64]
	places  []place
	steps   []rowWork
	words   int // that the numbers are for, 0 for none
}

// rowWork is a step's work for the row machine, but for the words that it is to be done on.
type rowWork struct {
	body   body
	totals totals
}

// newProgram gives an executable its memory; inputs and products are where the
// training has them.
func (b *Trainer) newProgram(x *executable) (*program, error) {
	g := b.gpu
	p := &program{executable: x, numbers: alloc[float64](g, x.numbers), places: make([]place, len(x.Vectors)+1)}
	for i, v := range x.Vectors {
		var data pointer[float32]
		switch {
		case v.Rows == graph.One:
		case i <= graph.SquaresProduct:
			data = b.products[i]
		case v.Input == "D":
			data = b.dictionary
		case v.Input == "H":
			data = b.squares
		default:
			data = alloc[float32](g, b.rows(v.Rows)*b.dimPitch)
		}
		p.places[i] = place{data, int64(b.dimPitch)}
	}
	for _, s := range x.steps {
		places := slices.Clone(p.places)
		for i, v := range s.scratch {
			places[v] = place{0, int64(i)}
		}
		w := rowWork{
			body: body{
				program: upload(g, s.body), places: upload(g, places), numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch),
				instructions: int32(len(s.body)), numberCount: int32(x.numbers), temps: int32(len(s.scratch)), width: int32(b.dim),
			},
			totals: totals{
				program: upload(g, s.totals), numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch),
				instructions: int32(len(s.totals)),
			},
		}
		if need := w.body.rowMemory(); need > g.mostShared {
			return nil, fmt.Errorf("%w: vectors of length %d need %d bytes of shared memory, and GPU %d has %d",
				ErrUnavailable, b.dim, need, g.device.Index, g.mostShared)
		}
		p.steps = append(p.steps, w)
	}
	return p, g.err
}

func upload[T any](g *gpu, values []T) pointer[T] {
	p := alloc[T](g, len(values))
	toDevice(g, p, values, g.compute)
	return p
}

// start clears the program's sums.
func (b *Trainer) start(p *program) {
	p.words = 0
	zero(b.gpu, p.numbers, p.executable.numbers, b.gpu.compute)
}

// sums waits for the program and returns what its runs added up since start.
func (b *Trainer) sums(p *program) (map[string]float64, error) {
	numbers := make([]float64, p.executable.numbers)
	toHost(b.gpu, numbers, p.numbers, b.gpu.compute)
	b.gpu.synchronize(b.gpu.compute)
	sums := make(map[string]float64)
	for name, slot := range p.sums {
		sums[name] = numbers[slot]
	}
	return sums, b.gpu.err
}

// run launches the program for some words of a slot.
func (b *Trainer) run(p *program, at parts[pointer[float32]], words, epoch int) {
	g := b.gpu
	if words != p.words {
		numbers := make([]float64, len(p.Numbers))
		p.Start(numbers, words, epoch)
		toDevice(g, p.numbers, numbers, g.compute)
		p.words = words
	}
	for i, s := range p.executable.steps {
		rows := b.atoms
		if s.rows == graph.Words {
			rows = words
		}
		if g.profiling {
			g.step = fmt.Sprintf("%s %d", p.Name, i+1)
		}
		b.multiply(p, s.Step, at, words, epoch)
		if len(s.body) > 0 {
			k := p.steps[i].body
			k.input, k.rows = at.x, int32(rows)
			g.queue(k.launch(s.matrices), g.compute)
		}
		if f := p.finish; f != nil && i == len(p.steps)-1 {
			g.queue(finishCodes{
				codes: at.codes, factors: b.rowNumber(f.factors), nonzeros: b.rowNumber(f.nonzeros), l1: b.rowNumber(f.l1),
				used: b.used, shape: b.shape(words),
			}.launch(), g.compute)
		}
		if len(s.totals) > 0 {
			k := p.steps[i].totals
			k.rows = int32(rows)
			g.queue(k.launch(s.rowTotals()), g.compute)
		}
	}
	g.step = ""
}

// multiply launches a step's product, if it has one.
func (b *Trainer) multiply(p *program, s graph.Step, at parts[pointer[float32]], words, epoch int) {
	g, shape := b.gpu, b.shape(words)
	vector := func(i int) pointer[float32] { return p.places[i].data }
	switch s := s.(type) {
	case *graph.Decode:
		g.queue(decode{
			product: vector(graph.DecodeProduct), codes: at.codes, atoms: vector(s.Atoms), shape: shape,
		}.launch(b.precision), g.compute)
	case *graph.Accumulate: // the squares cost little
		g.queue(accumulate{
			product: vector(graph.AccumulateProduct), squares: vector(graph.SquaresProduct), codes: at.codes,
			residuals: vector(s.Residuals), shape: shape,
		}.launch(b.precision), g.compute)
	case *graph.Correlate:
		g.queue(correlate{
			codes: at.codes, sumG: at.sumG, sumQ: at.sumQ, residuals: vector(s.Residuals), atoms: vector(s.Atoms),
			gradient: s.Gradient, square: s.Square, threshold: float64(epoch) * s.Lambda, rate: s.Rate,
			shape: shape, nonnegative: s.Nonnegative,
		}.launch(b.precision), g.compute)
	}
}

// rowNumber is where the rows leave a number, or 0 for number −1.
func (b *Trainer) rowNumber(i int) pointer[float64] {
	if i < 0 {
		return 0
	}
	return b.rowNumbers.at(i * b.rowPitch)
}
