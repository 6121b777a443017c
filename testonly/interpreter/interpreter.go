// Package interpreter runs PTX, NVIDIA's assembly language, without a GPU. Tests use it to check the results of a
// kernel and rules that a GPU doesn't check:
//
//	kernels, err := interpreter.Parse(ptx)
//	m := interpreter.New(1)
//	out := m.Alloc("out", 4*n)
//	err = m.Launch(kernels["square"], interpreter.Launch{Grid: [2]int{1, 1}, Threads: 32, Arguments: arguments})
//	result, err := m.Read(out, 4*n)
//
// Lanes, warps and blocks behave as the PTX ISA specifies. If it leaves a choice, the interpreter draws it from a
// seed: the next block and warp, the number of instructions until the next switch, the side of a branch that runs
// first, and whether an asynchronous copy happens at once or as late as possible. A correct kernel gives the same
// bits for every seed.
//
// A launch ends with an error that names the instruction and the thread, if there is
//
//   - an access outside all buffers, or not aligned to its size,
//   - a read of a register or of a byte of memory before it is written,
//   - a race: two threads access the same bytes, at least one of them writes, and no barrier separates them
//     (bar.warp.sync within a warp, bar.sync within a block; between blocks, bar.sync and red.release in one, then
//     ld.acquire and bar.sync in the other),
//   - an access to the target of an asynchronous copy before its thread has waited for it,
//   - a bar.sync, or an instruction of whole warps, that not all warps or lanes reach,
//   - a factor of mma with more bits than TF32 has.
//
// Arithmetic rounds as the instruction specifies. If the ISA leaves the result open, the interpreter returns the
// worst one: mma truncates the exact sum, as tensor cores do, and approximations have the largest documented error.
//
// It supports only the instructions of our kernels (operations.go).
package interpreter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const lanes = 32
const allLanes = 1<<lanes - 1

// Machine is an interpreted GPU: its memory and the seed of its choices.
type Machine struct {
	// MostSteps is the maximum number of warp instructions of a launch; 0 for no limit.
	MostSteps int
	// Steps is the number of warp instructions executed so far.
	Steps int

	rng     *rand.Rand
	buffers []*memory // buffers of global memory
	clock   uint32    // incremented by every synchronisation
}

// New returns a machine without buffers.
func New(seed uint64) *Machine {
	return &Machine{rng: rand.New(rand.NewPCG(seed, 0)), clock: 1}
}

// Clone returns a machine with a copy of the memory, at the same addresses, and another seed.
func (m *Machine) Clone(seed uint64) *Machine {
	c := New(seed)
	c.MostSteps, c.clock = m.MostSteps, m.clock
	for _, b := range m.buffers {
		copied := *b
		copied.data, copied.known, copied.words = bytes.Clone(b.data), slices.Clone(b.known), slices.Clone(b.words)
		c.buffers = append(c.buffers, &copied)
	}
	return c
}

// Equal returns an error that names the first difference between the memory of a machine and its clone.
func (m *Machine) Equal(o *Machine) error {
	for i, b := range m.buffers {
		for at := range b.data {
			if b.data[at] != o.buffers[i].data[at] || b.knows(at) != o.buffers[i].knows(at) {
				return fmt.Errorf("byte %d of %s is %#02x or %#02x: it depends on the order in which warps run", at, b, b.data[at], o.buffers[i].data[at])
			}
		}
	}
	return nil
}

// Launch is the configuration of a launch and its arguments.
type Launch struct {
	Grid      [2]int   // blocks
	Threads   int      // per block, a multiple of 32
	Shared    int      // bytes of dynamic shared memory per block
	Together  bool     // all blocks run at once, so that they may wait for each other; otherwise one after the other
	Arguments [][]byte // one per parameter, little-endian
}

// launch is the state of a running launch.
type launch struct {
	*Machine
	Launch
	kernel     *Kernel
	parameters []byte
	started    uint32   // clock at the start
	released   []uint32 // for each block, clock of its last barrier before it released its writes; 0 at first
}

// Launch runs a kernel to its end. The error names the faulty instruction and thread.
func (m *Machine) Launch(k *Kernel, l Launch) (err error) {
	if l.Threads < 1 || l.Threads%lanes != 0 || l.Threads > k.mostThreads {
		return fmt.Errorf("%s: %d threads a block, want a multiple of %d up to %d", k.Name, l.Threads, lanes, k.mostThreads)
	}
	if len(l.Arguments) != len(k.Parameters) {
		return fmt.Errorf("%s: %d arguments for %d parameters", k.Name, len(l.Arguments), len(k.Parameters))
	}
	m.clock++
	run := &launch{Machine: m, Launch: l, kernel: k, parameters: make([]byte, k.parameterBytes), started: m.clock}
	for i, p := range k.Parameters {
		if len(l.Arguments[i]) != p.Size {
			return fmt.Errorf("%s: argument %d has %d bytes, the parameter %d", k.Name, i, len(l.Arguments[i]), p.Size)
		}
		copy(run.parameters[p.offset:], l.Arguments[i])
	}
	run.released = make([]uint32, l.Grid[0]*l.Grid[1])
	defer recoverFault(&err)
	var blocks []*block
	for _, number := range m.rng.Perm(len(run.released)) {
		if len(blocks) == 0 || l.Together {
			blocks = append(blocks, newBlock(run))
		}
		b := blocks[len(blocks)-1]
		b.start(number)
		if !l.Together {
			run.run(blocks)
		}
	}
	if l.Together {
		run.run(blocks)
	}
	return nil
}

// run runs blocks to their end.
func (l *launch) run(blocks []*block) {
	var ready []*warp
	for _, b := range blocks {
		ready = append(ready, b.warps...)
	}
	for len(ready) > 0 {
		i := l.rng.IntN(len(ready))
		w := ready[i]
		if !w.run(1 + l.rng.IntN(400)) {
			continue
		}
		ready = slices.Delete(ready, i, i+1)
		if w.block.running--; w.block.running == 0 {
			ready = append(ready, w.block.meet()...)
		}
	}
}

// block is the state of a running block.
type block struct {
	*launch
	number   int
	shared   memory
	warps    []*warp
	running  int      // number of warps that neither wait nor have ended
	synced   uint32   // clock at its last barrier
	acquired []uint32 // copy of launch.released at the block's last acquiring load
	seen     []uint32 // copy of acquired at the block's last barrier
}

func newBlock(l *launch) *block {
	b := &block{launch: l, shared: memory{name: "shared memory"}, acquired: make([]uint32, len(l.released)), seen: make([]uint32, len(l.released))}
	for i := range l.Threads / lanes {
		b.warps = append(b.warps, newWarp(l, i))
	}
	return b
}

// start moves the block to the beginning of the kernel. The argument number is its index in the grid.
func (b *block) start(number int) {
	b.number, b.running = number, len(b.warps)
	b.clock++
	b.synced = b.clock
	clear(b.acquired)
	clear(b.seen)
	b.shared.clear(b.kernel.sharedBytes + b.Shared)
	for _, w := range b.warps {
		w.start(b)
	}
}

// meet resolves a barrier at which all warps wait or have ended. It returns the warps that continue.
func (b *block) meet() []*warp {
	first := b.warps[0]
	for _, w := range b.warps {
		if !w.waiting.sameBarrier(first.waiting) {
			if w.waiting == nil {
				w, first = first, w
			}
			if first.waiting == nil {
				w.fail(0, "waits for warps that have ended")
			}
			w.fail(0, "waits while other warps do at line %d", first.waiting.line)
		}
	}
	if first.waiting == nil {
		return nil
	}
	b.clock++
	b.synced, b.running = b.clock, len(b.warps)
	copy(b.seen, b.acquired)
	for _, w := range b.warps {
		w.waiting, w.synced = nil, b.clock
	}
	return b.warps
}

// fault is the panic that ends a launch or Parse early.
type fault struct{ message string }

func (f fault) Error() string { return f.message }

// recoverFault sets err to the fault of the deferring function.
func recoverFault(err *error) {
	switch f := recover().(type) {
	case nil:
	case fault:
		*err = f
	default:
		panic(f)
	}
}

// fail ends the launch with an error. The subject of the message is the instruction.
func (w *warp) fail(lane int, format string, args ...any) {
	in, b := w.at, w.block
	panic(fault{fmt.Sprintf("%s, block (%d, %d), thread %d: line %d, %s, %s", b.kernel.Name, b.number%b.Grid[0], b.number/b.Grid[0],
		w.number*lanes+lane, in.line, strings.Join(strings.Fields(in.text), " "), fmt.Sprintf(format, args...))})
}
