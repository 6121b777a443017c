package interpreter

import "slices"

// meet finds the reconvergence point of each divergent branch: its immediate postdominator, the first instruction
// that all paths from the branch to the end contain. It computes dominators in the reversed control-flow graph
// (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm, 2001).
func meet(code []instruction) {
	end := len(code)
	next, before := make([][]int, end), make([][]int, end+1)
	for i := range code {
		in := &code[i]
		switch in.flow {
		case flowBranch:
			next[i] = append(next[i], in.target)
		case flowExit:
			next[i] = append(next[i], end)
		}
		if in.flow != flowBranch && in.flow != flowExit || in.guarded {
			next[i] = append(next[i], i+1)
		}
		for _, n := range next[i] {
			before[n] = append(before[n], i)
		}
	}

	// order is a postorder: except for loops, an instruction comes after its successors.
	var order []int
	rank := make([]int, end+1) // position in order, from 1 at its end; 0 for code that never ends
	seen := make([]bool, end+1)
	seen[end] = true
	for way := []int{end}; len(way) > 0; {
		at := way[len(way)-1]
		if i := slices.IndexFunc(before[at], func(b int) bool { return !seen[b] }); i >= 0 {
			seen[before[at][i]] = true
			way = append(way, before[at][i])
			continue
		}
		way = way[:len(way)-1]
		order = append(order, at)
		rank[at] = len(order)
	}
	slices.Reverse(order)

	found := slices.Repeat([]int{-1}, end+1)
	found[end] = end
	for changed := true; changed; {
		changed = false
		for _, at := range order[1:] {
			meet := -1
			for _, n := range next[at] {
				switch {
				case rank[n] == 0 || found[n] < 0:
				case meet < 0:
					meet = n
				default:
					for n != meet {
						for rank[n] < rank[meet] {
							n = found[n]
						}
						for rank[meet] < rank[n] {
							meet = found[meet]
						}
					}
				}
			}
			if found[at] != meet {
				found[at], changed = meet, true
			}
		}
	}
	for i := range code {
		code[i].meet = end
		if found[i] >= 0 {
			code[i].meet = found[i]
		}
	}
}
