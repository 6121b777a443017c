//go:build gpu

package kernels

import (
	"fmt"
	"slices"

	"overcomplete/graph"
	"overcomplete/internal/program"
)

// deviceProgram is an executable loaded into device memory.
type deviceProgram struct {
	*executable
	numbers   pointer[float64]
	places    []place
	scales    []float64 // scales of the float16 copies
	rows      int       // batch size for which constants are set; 0 if they are not set
	constants []float64 // numbers that the host computes before a run
}

// newProgram loads an executable. Its inputs and products are the trainer's matrices.
func (b *trainer) newProgram(x *executable) (*deviceProgram, error) {
	g := b.gpu
	p := &deviceProgram{executable: x, numbers: alloc[float64](g, x.numbers), places: make([]place, x.places()+halfDecodeShares-1)}
	for i, v := range x.Vectors {
		var data pointer[float32]
		switch {
		case v.Rows == program.One:
		case i <= program.SquaresProduct:
			data = b.products[i]
		case v.Input == "D":
			data = b.dictionary
		case v.Input == "H":
			data = b.squares
		default:
			data = alloc[float32](g, b.length(v.Rows)*b.dimPitch)
		}
		p.places[i] = place{data, int64(b.dimPitch)}
	}
	for _, h := range x.halves {
		v := x.Vectors[h.vector]
		data, scale := b.dictionaryHalves, b.scales.dictionary
		switch {
		case v.Input == "D":
		case v.Rows == program.Rows:
			data, scale = alloc[half](g, b.length(v.Rows)*b.dimPitch), b.scales.residuals
		default:
			data, scale = alloc[half](g, b.length(v.Rows)*b.dimPitch), b.scales.steps
		}
		p.places[h.place] = place{pointer[float32](data), int64(b.dimPitch)}
		p.scales = append(p.scales, scale)
	}
	if x.share > 0 {
		for i := range halfDecodeShares - 1 {
			p.places[x.share+i] = place{b.products[program.DecodeProduct].at((1 + i) * b.length(program.Rows) * b.dimPitch), int64(b.dimPitch)}
		}
	}
	for _, s := range x.steps {
		places := slices.Clone(p.places)
		for i, v := range s.scratch {
			places[v] = place{0, int64(i)}
		}
		s.bodyLaunch = body{
			program: upload(g, s.body), places: upload(g, places), numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch()),
			instructions: int32(len(s.body)), numberCount: int32(x.numbers), temps: int32(len(s.scratch)), width: int32(b.dim),
		}
		s.totalsLaunch = totals{
			program: upload(g, s.totals), numbers: p.numbers, rowNumbers: b.rowNumbers, rowPitch: int64(b.rowPitch()),
			instructions: int32(len(s.totals)),
		}
		if need := s.bodyLaunch.rowMemory(); need > g.maxShared {
			return nil, fmt.Errorf("%w: vectors of length %d need %d bytes of shared memory, and GPU %d has %d",
				ErrUnavailable, b.dim, need, g.device.Index, g.maxShared)
		}
	}
	return p, g.err
}

// squaresOf returns a launch that stores ‖d‖² of each atom d in squares.
func (g *gpu) squaresOf(atoms pointer[float32], squares pointer[float64], w widths) body {
	return body{
		program: upload(g, []instruction{{op: opRowDot}, {op: opStore}}), places: upload(g, []place{{0, int64(w.dimPitch)}}),
		input: atoms, numbers: alloc[float64](g, 1), rowNumbers: squares, rowPitch: int64(w.atoms),
		instructions: 2, numberCount: 1, rows: int32(w.atoms), width: int32(w.dim),
	}
}

// rowNumbersOf runs k and returns the row numbers that it stores.
func (g *gpu) rowNumbersOf(k body) ([]float64, error) {
	numbers := make([]float64, k.rows)
	g.queue(k.launch(), g.compute)
	toHost(g, numbers, k.rowNumbers, g.compute)
	g.synchronize(g.compute)
	return numbers, g.err
}

func upload[T any](g *gpu, values []T) pointer[T] {
	p := alloc[T](g, len(values))
	toDevice(g, p, values, g.compute)
	return p
}

// resetSums sets the program's sums to zero. It clears all numbers, so that the next run copies the constants again.
func (b *trainer) resetSums(p *deviceProgram) {
	p.rows = 0
	zero(b.gpu, p.numbers, p.executable.numbers, b.gpu.compute)
}

// readSums waits for the program and returns its sums over all runs since resetSums, by name.
func (b *trainer) readSums(p *deviceProgram) (map[string]float64, error) {
	numbers := make([]float64, p.executable.numbers)
	toHost(b.gpu, numbers, p.numbers, b.gpu.compute)
	b.gpu.synchronize(b.gpu.compute)
	sums := make(map[string]float64)
	for name, slot := range p.sums {
		sums[name] = numbers[slot]
	}
	return sums, b.gpu.err
}

// setConstants copies the program's constants for a number of rows to the device, unless they are there already.
func (b *trainer) setConstants(p *deviceProgram, rows int) {
	if rows == p.rows {
		return
	}
	numbers := make([]float64, len(p.Numbers), len(p.Numbers)+len(p.scales))
	p.Start(numbers, rows)
	p.constants = numbers
	numbers = append(numbers, p.scales...)
	toDevice(b.gpu, p.numbers, numbers, b.gpu.compute)
	p.rows = rows
}

// run launches the program for a batch of rows. The argument at is the state from the batch's first row on.
func (b *trainer) run(p *deviceProgram, at rowState, batch, epoch int) {
	g := b.gpu
	b.setConstants(p, batch)
	for i, s := range p.steps {
		rows := b.atoms
		if s.rows == program.Rows {
			rows = batch
		}
		b.multiply(p, s.Step, at, batch, epoch)
		if len(s.body) > 0 {
			k := s.bodyLaunch
			k.input, k.rows = at.x, int32(rows)
			g.queue(k.launch(), g.compute)
		}
		if f := p.finish; f != nil && i == len(p.steps)-1 {
			g.queue(finishCodes{
				codes: pointer[byte](at.codes), factors: b.rowNumber(f.factors), nonzeros: b.rowNumber(f.nonzeros), l1: b.rowNumber(f.l1),
				used: b.used, scale: b.scales.codes, shape: b.shape(batch),
			}.launch(b.precision), g.compute)
		}
		if len(s.totals) > 0 {
			k := s.totalsLaunch
			k.rows = int32(rows)
			g.queue(k.launch(), g.compute)
		}
	}
}

func (b *trainer) multiply(p *deviceProgram, s program.Step, at rowState, rows, epoch int) {
	if b.precision == fp16 {
		b.multiplyHalves(p, s, at, rows, epoch)
		return
	}
	g, shape := b.gpu, b.shape(rows)
	vector := func(i int) pointer[float32] { return p.places[i].data }
	switch s := s.(type) {
	case *program.Decode:
		g.queue(decode{
			product: vector(program.DecodeProduct), codes: at.codes, atoms: vector(s.Atoms), shape: shape,
		}.launch(b.precision), g.compute)
	case *program.Accumulate: // the kernel also computes the squares, at little cost
		g.queue(accumulate{
			product: vector(program.AccumulateProduct), squares: vector(program.SquaresProduct), codes: at.codes,
			residuals: vector(s.Residuals), shape: shape,
		}.launch(b.precision), g.compute)
	case *program.Correlate:
		g.queue(correlate{
			codes: at.codes, sumG: at.sumG, sumQ: at.sumQ, residuals: vector(s.Residuals), atoms: vector(s.Atoms),
			gradient: s.Gradient, square: s.Square, threshold: float64(epoch) * s.Lambda, rate: s.Rate,
			shape: shape, nonnegative: s.Nonnegative,
		}.launch(b.precision), g.compute)
	}
}

// multiplyHalves launches the product of a step with float16 factors.
func (b *trainer) multiplyHalves(p *deviceProgram, s program.Step, at rowState, batch, epoch int) {
	g, shape, codes := b.gpu, b.shape(batch), pointer[half](at.codes)
	factor := func(vector int) (pointer[half], float64) {
		h := p.halvesOf(vector)
		return pointer[half](p.places[h.place].data), p.scales[h.number-len(p.Numbers)]
	}
	switch s := s.(type) {
	case *program.Decode:
		atoms, scale := factor(s.Atoms)
		k := decodeHalf{product: p.places[program.DecodeProduct].data, codes: codes, atoms: atoms, scale: b.scales.codes * scale, shape: shape}
		if p.share > 0 {
			k.shares, k.sharePitch = halfDecodeShares, int64(b.length(program.Rows)*b.dimPitch)
		}
		g.queue(k.launch(), g.compute)
	case *program.Update:
		residuals, scale := factor(s.Accumulate.Residuals)
		steps, stepScale := factor(s.P)
		scale *= b.scales.codes
		c := func(i int) float64 { return p.constants[s.Coefficients[i]] }
		g.queue(updateHalf{
			squares: p.places[s.H].data, steps: p.places[s.P].data, stepHalves: steps, atoms: p.places[s.D].data, codes: codes, residuals: residuals,
			c0: c(0) / scale / scale, c1: c(1) / scale, c2: c(2), c3: c(3), c4: c(4) / scale, epsilon: graph.Epsilon,
			stepScale: stepScale, shape: shape,
		}.launch(), g.compute)
	case *program.Correlate: // the kernel also computes the two Decode steps around it
		atoms, scale := factor(s.Atoms)
		product := scale * b.scales.residuals
		g.queue(updateCodes{
			codes: codes, sumG: at.sumG, sumQ: at.sumQ, factors: b.rowNumber(p.finish.factors), losses: b.rowNumber(0), x: at.x, atoms: atoms,
			gradient: s.Gradient / product, square: s.Square / product / product, threshold: float64(epoch) * s.Lambda, rate: s.Rate,
			codeScale: b.scales.codes, atomScale: scale, residualScale: b.scales.residuals, shape: shape, nonnegative: s.Nonnegative,
		}.launch(), g.compute)
	}
}

// convertDictionary converts the dictionary to float16 if the precision is fp16.
func (b *trainer) convertDictionary() {
	if b.precision != fp16 {
		return
	}
	g := b.gpu
	program := []instruction{{op: opHalves, dst: 1}}
	places := []place{{0, int64(b.dimPitch)}, {pointer[float32](b.dictionaryHalves), int64(b.dimPitch)}}
	k := body{
		program: upload(g, program), places: upload(g, places), input: b.dictionary, numbers: upload(g, []float64{b.scales.dictionary}),
		instructions: 1, numberCount: 1, rows: int32(b.atoms), width: int32(b.dim),
	}
	g.queue(k.launch(), g.compute)
	g.synchronize(g.compute)
	free(g, k.program)
	free(g, k.places)
	free(g, k.numbers)
}

// rowNumber returns the address of array i of numbers, which has one number per row. It returns 0 for i = −1.
func (b *trainer) rowNumber(i int) pointer[float64] {
	if i < 0 {
		return 0
	}
	return b.rowNumbers.at(i * b.rowPitch())
}
