//go:build gpu

package kernels

import (
	"fmt"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"overcomplete/graph"
)

// program is an executable in device memory.
type program struct {
	*executable
	numbers  cu.DevicePtr // float64
	matrices []cu.DevicePtr
	steps    []stepMemory
}

// stepMemory is what the row machine reads of a step.
type stepMemory struct{ body, totals, vectors cu.DevicePtr }

// place is where a body's vector operand is, as the kernels read it.
type place struct {
	data  cu.DevicePtr // 0 for scratch
	pitch int64        // or the number of the scratch row
}

// newProgram gives an executable its memory; inputs are where the training has
// them.
func (b *Backend) newProgram(x *executable) (*program, error) {
	g := b.gpu
	p := &program{executable: x, numbers: g.alloc(8 * int64(len(x.numbers)))}
	for _, m := range x.matrices {
		switch m.input {
		case "X": // wherever the batch is
			p.matrices = append(p.matrices, 0)
		case "D":
			p.matrices = append(p.matrices, b.dictionary)
		case "H":
			p.matrices = append(p.matrices, b.squares)
		default:
			p.matrices = append(p.matrices, g.alloc(4*int64(b.rows(m.shape[0]))*int64(b.dimPitch)))
		}
	}
	for _, s := range x.steps {
		if need := b.rowMemory(x, s); need > g.mostShared {
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
		p.steps = append(p.steps, stepMemory{upload(g, s.body), upload(g, s.totals), upload(g, places)})
	}
	return p, g.err
}

func upload[T any](g *gpu, values []T) cu.DevicePtr {
	var element T
	p := g.alloc(int64(len(values)) * int64(unsafe.Sizeof(element)))
	toDevice(g, p, values, g.compute)
	return p
}

// rowMemory is the shared memory of a warp that runs a body.
func (b *Backend) rowMemory(x *executable, s *step) int {
	return roundUp(8*len(x.numbers), 16) + 4*s.temps*b.dimPitch
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
		toDevice(b.gpu, p.numbers+cu.DevicePtr(8*slot), []float64{value}, b.gpu.compute)
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
func (b *Backend) run(p *program, at parts[cu.DevicePtr], words, epoch int) {
	g := b.gpu
	for i, s := range p.executable.steps {
		rows := b.atoms
		if s.shape[0] == graph.Words {
			rows = words
		}
		b.multiply(p, s, at, words, epoch)
		if len(s.body) > 0 {
			memory := b.rowMemory(p.executable, s)
			warps := max(1, min(bodyWarps, bodyShared/memory))
			g.launch("body", grid{divide(rows, warps), 1, 32 * warps, warps * memory}, g.compute,
				p.steps[i].body, len(s.body), p.steps[i].vectors, at.x, p.numbers, len(p.executable.numbers),
				b.rowNumbers, b.rowPitch, rows, b.dim, s.temps)
		}
		if f := p.finish; f != nil && i == len(p.steps)-1 {
			g.finishCodes(at.codes, words, b.atoms, b.codePitch, b.rowNumber(f.factors), b.rowNumber(f.nonzeros), b.rowNumber(f.l1), b.used)
		}
		if len(s.totals) > 0 {
			g.launch("totals", grid{1, 1, totalsThreads, totalsShared}, g.compute,
				p.steps[i].totals, len(s.totals), p.numbers, b.rowNumbers, b.rowPitch, rows)
		}
	}
}

// multiply launches a step's product.
func (b *Backend) multiply(p *program, s *step, at parts[cu.DevicePtr], words, epoch int) {
	switch s.kind {
	case graph.Decode:
		for _, m := range s.product {
			b.gpu.launch("decode_"+string(b.precision), decodeTile.grid(words, b.dimPitch), b.gpu.compute,
				p.matrices[m.result], at.codes, p.matrices[m.right], words, b.atoms, b.codePitch, b.dimPitch)
		}
	case graph.Accumulate:
		m := s.product[0]
		b.gpu.launch("accumulate_"+string(b.precision), accumulateTile.grid(b.atoms, b.dimPitch), b.gpu.compute,
			p.matrices[m.result], p.matrices[s.product[1].result], at.codes, p.matrices[m.right], words, b.atoms, b.codePitch, b.dimPitch)
	case graph.Correlate:
		m, d := s.product[0], s.averaging
		b.gpu.launch("correlate_"+string(b.precision), correlateTile.grid(words, b.codePitch), b.gpu.compute,
			at.codes, at.sumG, at.sumQ, p.matrices[m.left], p.matrices[m.right], words, b.atoms, b.codePitch, b.dimPitch,
			d.Gradient, d.Square, float64(epoch)*d.Lambda, d.Rate, d.Nonnegative)
	}
}

// rowNumber is where the rows leave a number, or 0 for number −1.
func (b *Backend) rowNumber(i int) cu.DevicePtr {
	if i < 0 {
		return 0
	}
	return b.rowNumbers + cu.DevicePtr(8*i*b.rowPitch)
}
