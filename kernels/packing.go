//go:build gpu

package kernels

import (
	"gorgonia.org/cu"

	"overcomplete/vectors"
)

// packing gathers the nonzeros of dense codes on the device into compressed rows.
// It needs room there.
type packing struct {
	gpu              *gpu
	atoms, codePitch int
	nonzeros, l1     cu.DevicePtr // float64 for each row at a time, and
	used             cu.DevicePtr // int32 for each dimension, for finishCodes to fill in
	starts           cu.DevicePtr // int64 for each row
	room             int          // nonzeros that the next two hold; they grow
	index, value     cu.DevicePtr
}

// append adds rows of codes to all. It waits for the device.
func (p *packing) append(all *vectors.CSR, codes cu.DevicePtr, words int) {
	g := p.gpu
	nonzeros := make([]float64, words)
	g.finishCodes(codes, words, p.atoms, p.codePitch, 0, p.nonzeros, p.l1, p.used)
	toHost(g, nonzeros, p.nonzeros, g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return
	}
	start, count := make([]int64, words), 0
	for i, n := range nonzeros {
		start[i] = int64(count)
		count += int(n)
		all.Ptr = append(all.Ptr, all.Ptr[len(all.Ptr)-1]+int64(n))
	}
	p.reserve(count)
	toDevice(g, p.starts, start, g.compute)
	g.launch("pack_codes", grid{divide(words, packWarps), 1, 32 * packWarps, 0}, g.compute,
		codes, p.starts, words, p.atoms, p.codePitch, p.index, p.value)
	n := len(all.Index)
	all.Index = append(all.Index, make([]int32, count)...)
	all.Value = append(all.Value, make([]float32, count)...)
	toHost(g, all.Index[n:], p.index, g.compute)
	toHost(g, all.Value[n:], p.value, g.compute)
	g.synchronize(g.compute)
}

// reserve makes room for nonzeros.
func (p *packing) reserve(nonzeros int) {
	if nonzeros > p.room {
		g := p.gpu
		g.free(p.index)
		g.free(p.value)
		p.room, p.index, p.value = nonzeros, g.alloc(4*int64(nonzeros)), g.alloc(4*int64(nonzeros))
	}
}

// finishCodes launches the scaling (factors may be 0) and counting of codes.
func (g *gpu) finishCodes(codes cu.DevicePtr, words, atoms, codePitch int, factors, nonzeros, l1, used cu.DevicePtr) {
	g.launch("finish_codes", grid{divide(words, finishWarps), 1, 32 * finishWarps, 0}, g.compute,
		codes, factors, words, atoms, codePitch, nonzeros, l1, used)
}
