//go:build gpu

package kernels

import "overcomplete/vectors"

// codePacker converts dense codes in device memory to compressed rows.
type codePacker struct {
	gpu *gpu
	widths
	precision    Precision        // fp16 if the codes are float16
	scale        float64          // scale of float16 codes
	nonzeros, l1 pointer[float64] // per row, written by finishCodes
	used         pointer[int32]   // per atom, written by finishCodes
	starts       pointer[int64]   // per row: index of its first nonzero
	capacity     int              // length of index and value, which grow
	index        pointer[int32]
	value        pointer[float32]
}

// markUsed sets used[k] for each atom k that finishCodes found in use.
func markUsed(used []bool, found []int32) {
	for k, u := range found {
		used[k] = used[k] || u != 0
	}
}

// append packs the codes of the given number of rows and appends them to the argument all. It waits for the copies.
func (p *codePacker) append(all *vectors.CSR, codes pointer[float32], rows int) {
	g := p.gpu
	nonzeros := make([]float64, rows)
	g.queue(finishCodes{codes: pointer[byte](codes), nonzeros: p.nonzeros, l1: p.l1, used: p.used, scale: p.scale, shape: p.shape(rows)}.launch(p.precision), g.compute)
	toHost(g, nonzeros, p.nonzeros, g.compute)
	g.synchronize(g.compute)
	if g.err != nil {
		return
	}
	start, count := make([]int64, rows), 0
	for i, n := range nonzeros {
		start[i] = int64(count)
		count += int(n)
		all.Ptr = append(all.Ptr, all.Ptr[len(all.Ptr)-1]+int64(n))
	}
	p.reserve(count)
	toDevice(g, p.starts, start, g.compute)
	g.queue(packCodes{
		codes: pointer[byte](codes), starts: p.starts, index: p.index, value: p.value, scale: p.scale, shape: p.shape(rows),
	}.launch(p.precision), g.compute)
	n := len(all.Index)
	all.Index = append(all.Index, make([]int32, count)...)
	all.Value = append(all.Value, make([]float32, count)...)
	toHost(g, all.Index[n:], p.index, g.compute)
	toHost(g, all.Value[n:], p.value, g.compute)
	g.synchronize(g.compute)
}

func (p *codePacker) reserve(nonzeros int) {
	if nonzeros > p.capacity {
		g := p.gpu
		free(g, p.index)
		free(g, p.value)
		p.capacity, p.index, p.value = nonzeros, alloc[int32](g, nonzeros), alloc[float32](g, nonzeros)
	}
}
