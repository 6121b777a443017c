//go:build gpu

package kernels

import "overcomplete/vectors"

// packing gathers the nonzeros of dense codes into compressed rows on the device.
type packing struct {
	gpu *gpu
	widths
	precision    Precision        // FP16 if the codes are halves, and
	scale        float64          // then so many times what they stand for
	nonzeros, l1 pointer[float64] // for each row at a time, and
	used         pointer[int32]   // for each dimension, for finishCodes to fill in
	starts       pointer[int64]   // for each row
	room         int              // nonzeros that the next two hold; they grow
	index        pointer[int32]
	value        pointer[float32]
}

// use marks the dimensions that finishCodes has found used.
func use(used []bool, found []int32) {
	for k, u := range found {
		used[k] = used[k] || u != 0
	}
}

// append appends the codes of some words to all, and waits.
func (p *packing) append(all *vectors.CSR, codes pointer[float32], words int) {
	g := p.gpu
	nonzeros := make([]float64, words)
	g.queue(finishCodes{codes: pointer[byte](codes), nonzeros: p.nonzeros, l1: p.l1, used: p.used, scale: p.scale, shape: p.shape(words)}.launch(p.precision), g.compute)
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
	g.queue(packCodes{
		codes: pointer[byte](codes), starts: p.starts, index: p.index, value: p.value, scale: p.scale, shape: p.shape(words),
	}.launch(p.precision), g.compute)
	n := len(all.Index)
	all.Index = append(all.Index, make([]int32, count)...)
	all.Value = append(all.Value, make([]float32, count)...)
	toHost(g, all.Index[n:], p.index, g.compute)
	toHost(g, all.Value[n:], p.value, g.compute)
	g.synchronize(g.compute)
}

func (p *packing) reserve(nonzeros int) {
	if nonzeros > p.room {
		g := p.gpu
		free(g, p.index)
		free(g, p.value)
		p.room, p.index, p.value = nonzeros, alloc[int32](g, nonzeros), alloc[float32](g, nonzeros)
	}
}
