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
	numbers  pointer[float64]
	matrices []pointer[float32]
	steps    []rowWork
}

// rowWork is a step's work for the row machine, but for the words that it is to be done on.
type rowWork struct {
	body     body
	matrices int // that body reads and writes
	totals   totals
}

// newProgram gives an executable its memory; inputs are where the training has
// them.
func (b *Backend) newProgram(x *executable) (*program, error) {
	g := b.gpu
	p := &program{executable: x, numbers: alloc[float64](g, len(x.numbers))}
	for _, m := range x.matrices {
		switch m.input {
		case "X": // wherever the batch is
			p.matrices = append(p.matrices, 0)
		case "D":
			p.matrices = append(p.matrices, b.dictionary)
		case "H":
			p.matrices = append(p.matrices, b.squares)
		default:
			p.matrices = append(p.matrices, alloc[float32](g, b.rows(m.shape[0])*b.dimPitch))
		}
	}
	for _, s := range x.steps {
		w := rowWork{
			body: body{
				numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch), instructions: int32(len(s.body)),
				numberCount: int32(len(x.numbers)), temps: int32(s.temps), width: int32(b.dim),
			},
			totals: totals{numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch), instructions: int32(len(s.totals))},
		}
		if need := w.body.rowMemory(); need > g.mostShared {
			return nil, fmt.Errorf("%w: vectors of length %d need %d bytes of shared memory, and GPU %d has %d",
				ErrUnavailable, b.dim, need, g.device.Index, g.mostShared)
		}
		var places []place
		for _, v := range s.vectors {
			if v.matrix < 0 {
				places = append(places, place{0, int64(v.temp)})
			} else {
				places = append(places, place{p.matrices[v.matrix], int64(b.dimPitch)})
			}
		}
		w.body.program, w.body.places, w.totals.program = upload(g, s.body), upload(g, places), upload(g, s.totals)
		w.matrices = s.traffic()
		p.steps = append(p.steps, w)
	}
	return p, g.err
}

func upload[T any](g *gpu, values []T) pointer[T] {
	p := alloc[T](g, len(values))
	toDevice(g, p, values, g.compute)
	return p
}

// start sets the program's inputs and clears its sums.
func (b *Backend) start(p *program, inputs map[string]float64) {
	numbers := slices.Clone(p.executable.numbers)
	for name, slot := range p.inputs {
		numbers[slot] = inputs[name]
	}
	toDevice(b.gpu, p.numbers, numbers, b.gpu.compute)
}

// setInput changes an input from the next run on.
func (b *Backend) setInput(p *program, name string, value float64) {
	if slot, ok := p.inputs[name]; ok {
		toDevice(b.gpu, p.numbers.at(slot), []float64{value}, b.gpu.compute)
	}
}

// sums waits for the program and returns what its runs added up since start.
func (b *Backend) sums(p *program) (map[string]float64, error) {
	numbers := make([]float64, len(p.executable.numbers))
	toHost(b.gpu, numbers, p.numbers, b.gpu.compute)
	b.gpu.synchronize(b.gpu.compute)
	sums := make(map[string]float64)
	for name, slot := range p.sums {
		sums[name] = numbers[slot]
	}
	return sums, b.gpu.err
}

// run launches the program for some words of a slot.
func (b *Backend) run(p *program, at parts[pointer[float32]], words, epoch int) {
	g := b.gpu
	for i, s := range p.executable.steps {
		rows := b.atoms
		if s.shape[0] == graph.Words {
			rows = words
		}
		b.multiply(p, s, at, words, epoch)
		if len(s.body) > 0 {
			k := p.steps[i].body
			k.input, k.rows = at.x, int32(rows)
			g.queue(k.launch(p.steps[i].matrices), g.compute)
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
}

// multiply launches a step's product.
func (b *Backend) multiply(p *program, s *step, at parts[pointer[float32]], words, epoch int) {
	g, shape := b.gpu, b.shape(words)
	switch s.kind {
	case graph.Decode:
		for _, m := range s.product {
			g.queue(decode{
				product: p.matrices[m.result], codes: at.codes, atoms: p.matrices[m.right], shape: shape,
			}.launch(b.precision), g.compute)
		}
	case graph.Accumulate:
		m, squares := s.product[0], s.product[1]
		g.queue(accumulate{
			product: p.matrices[m.result], squares: p.matrices[squares.result], codes: at.codes,
			residuals: p.matrices[m.right], shape: shape,
		}.launch(b.precision), g.compute)
	case graph.Correlate:
		m, d := s.product[0], s.averaging
		g.queue(correlate{
			codes: at.codes, sumG: at.sumG, sumQ: at.sumQ, residuals: p.matrices[m.left], atoms: p.matrices[m.right],
			gradient: d.Gradient, square: d.Square, threshold: float64(epoch) * d.Lambda, rate: d.Rate,
			shape: shape, nonnegative: d.Nonnegative,
		}.launch(b.precision), g.compute)
	}
}

// rowNumber is where the rows leave a number, or 0 for number −1.
func (b *Backend) rowNumber(i int) pointer[float64] {
	if i < 0 {
		return 0
	}
	return b.rowNumbers.at(i * b.rowPitch)
}
