package interpreter

import (
	"math/bits"
	"unsafe"
)

// register is a register of a warp, with a value for each lane in its low bits. A predicate stores the
// bits of all lanes in its first value.
type register [lanes]uint64

// lane returns a lane's value as the type of an instruction.
func lane[T any](r *register, i int) *T { return (*T)(unsafe.Pointer(&r[i])) }

// wide returns a value as a register stores it.
func wide[T any](value T) (x uint64) {
	*(*T)(unsafe.Pointer(&x)) = value
	return x
}

// warp is the state of a warp, 32 threads that execute together.
type warp struct {
	block     *block
	number    int // number in its block
	registers []register
	set       []uint32     // for each register, the lanes with a value
	paths     []path       // the last one is running
	at        *instruction // current
	waiting   *instruction // barrier at which it waits
	synced    uint32       // clock when its lanes last synchronised
	copies    []copying
	group     int // group of the next asynchronous copy
}

// path is a set of lanes at the same instruction, and their reconvergence point.
type path struct {
	pc, end int
	lanes   uint32
}

func newWarp(l *launch, number int) *warp {
	w := &warp{number: number, registers: make([]register, l.kernel.registers), set: make([]uint32, l.kernel.registers)}
	for _, c := range l.kernel.constants {
		for i := range w.registers[c.register] {
			w.registers[c.register][i] = c.bits
		}
	}
	return w
}

// start moves the warp to the beginning of the kernel.
func (w *warp) start(b *block) {
	w.block, w.waiting, w.synced, w.copies, w.group = b, nil, b.clock, w.copies[:0], 0
	w.paths = append(w.paths[:0], path{0, len(b.kernel.code), allLanes})
	clear(w.set)
	for _, c := range b.kernel.constants {
		w.set[c.register] = allLanes
	}
	for name, r := range b.kernel.specials {
		w.set[r] = allLanes
		for i := range lanes {
			w.registers[r][i] = uint64(map[string]int{
				"%tid.x": w.number*lanes + i, "%laneid": i,
				"%ctaid.x": b.number % b.Grid[0], "%ctaid.y": b.number / b.Grid[0],
				"%ntid.x": b.Threads, "%nctaid.x": b.Grid[0], "%nctaid.y": b.Grid[1],
			}[name])
		}
	}
}

// run executes some instructions. It returns true if the warp has ended or waits for other warps.
func (w *warp) run(steps int) bool {
	b, code := w.block, w.block.kernel.code
	if b.MostSteps > 0 && b.Steps > b.MostSteps {
		w.fail(0, "follows %d instructions of warps: no end in sight", b.Steps)
	}
	for range steps {
		b.Steps++
		for {
			if len(w.paths) == 0 {
				return true
			}
			if p := w.paths[len(w.paths)-1]; p.pc != p.end && p.lanes != 0 {
				break
			}
			w.paths = w.paths[:len(w.paths)-1]
		}
		p := &w.paths[len(w.paths)-1]
		in := &code[p.pc]
		w.at = in
		active := p.lanes
		if in.guarded {
			w.check(in.guard, active)
			active &= uint32(w.registers[in.guard][0]) ^ in.inverted
		}
		switch in.flow {
		case flowBranch:
			w.branch(p, in, active)
			continue
		case flowExit:
			for i := range w.paths {
				w.paths[i].lanes &^= active
			}
			if p.lanes != 0 {
				p.pc++
			}
			continue
		}
		p.pc++
		if active == 0 {
			continue
		}
		for _, r := range in.sources {
			if w.set[r]&active != active {
				w.check(r, active)
			}
		}
		if in.together && active != allLanes {
			w.fail(bits.TrailingZeros32(^active), "is not reached by this lane together with the others")
		}
		if in.flow == flowBarrier {
			if len(in.args) == 2 && in.args[1] != lanes*len(w.block.warps) {
				w.fail(0, "is not for all %d threads of the block", lanes*len(w.block.warps))
			}
			w.waiting = in
			return true
		}
		in.run(w, in, active)
		for _, r := range in.results {
			w.set[r] |= active
		}
	}
	return false
}

// check fails if lanes read a register before it is written.
func (w *warp) check(r int, active uint32) {
	if unset := active &^ w.set[r]; unset != 0 {
		w.fail(bits.TrailingZeros32(unset), "reads %s, which has no value", w.block.kernel.registerName(r))
	}
}

// branch moves lanes to the target of the instruction. If lanes diverge, one side continues, and the other one
// starts when the first reaches their reconvergence point.
func (w *warp) branch(p *path, in *instruction, taken uint32) {
	all, next := p.lanes, p.pc+1
	switch taken {
	case 0:
		p.pc = next
		return
	case all:
		p.pc = in.target
		return
	}
	meet, end := in.meet, p.end
	p.pc = meet
	if meet == end {
		w.paths = w.paths[:len(w.paths)-1]
	}
	sides := [2]path{{in.target, meet, taken}, {next, meet, all &^ taken}}
	if w.block.rng.IntN(2) == 0 {
		sides[0], sides[1] = sides[1], sides[0]
	}
	w.paths = append(w.paths, sides[0], sides[1])
}
