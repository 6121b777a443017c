// Package interpreter runs PTX, NVIDIA's assembly language, on no GPU, for tests: what
// a kernel computes, and whether it keeps the rules that a GPU does not check.
//
// Lanes, warps and blocks are those of the PTX ISA. Where it leaves a choice, the
// interpreter draws it from a seed: which block is next, which warp, for how many
// instructions, which side of a branch goes first, whether an asynchronous copy is made
// at once or not before it is waited for. A kernel that is right gives the same bits for
// every seed.
//
// These end a launch with an error that names the instruction and the thread:
//
//   - an access outside all buffers, or not aligned to its size,
//   - a register, or a byte of memory, that is read before it was written,
//   - a race: two threads use the same bytes, one of them writes, and no barrier is
//     between them (bar.warp.sync within a warp, bar.sync within a block, none between
//     blocks),
//   - any use of the target of an asynchronous copy before its thread has waited for it,
//   - bar.sync, and instructions of whole warps, that not all lanes or warps come to,
//   - a factor of mma with more bits than TF32 has.
//
// Arithmetic rounds as the instruction says. What the ISA leaves open is as bad as it may
// be: mma adds up exactly and then truncates, as tensor cores do, and approximations are
// off by what their documentation allows.
//
// It knows the instructions that the kernels have and no others: see operations.go.
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

// Machine is a GPU: its memory, and what it draws its choices from.
type Machine struct {
	// MostSteps ends a launch that takes more instructions of warps, if it is not 0.
	MostSteps int
	// Steps counts the instructions of warps.
	Steps int

	rng     *rand.Rand
	buffers []*memory // of global memory
	clock   uint32    // ticks at every synchronisation
}

// New returns a machine without memory.
func New(seed uint64) *Machine {
	return &Machine{rng: rand.New(rand.NewPCG(seed, 0)), clock: 1}
}

// Clone returns a machine with the same memory, at the same addresses, that makes other
// choices.
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

// Equal returns an error that says where the memory of two machines, one made by Clone
// from the other, differs.
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

// Launch is the shape of a launch and its arguments.
type Launch struct {
	Grid      [2]int   // blocks
	Threads   int      // of a block, a multiple of 32
	Shared    int      // bytes of dynamic shared memory
	Arguments [][]byte // of the kernel's parameters, little-endian
}

// launch is one under way.
type launch struct {
	*Machine
	Launch
	kernel     *Kernel
	parameters []byte
	started    uint32 // when
	warps      []*warp
}

// Launch runs a kernel.
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
	for i := range l.Threads / lanes {
		run.warps = append(run.warps, newWarp(run, i))
	}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			err = f
		default:
			panic(f)
		}
	}()
	b := &block{launch: run, shared: memory{name: "shared memory"}}
	for _, number := range m.rng.Perm(l.Grid[0] * l.Grid[1]) {
		b.run(number)
	}
	return nil
}

// block is a block under way.
type block struct {
	*launch
	number int
	shared memory
	synced uint32 // when its threads last met
}

func (b *block) run(number int) {
	b.number = number
	b.clock++
	b.synced = b.clock
	b.shared.clear(b.kernel.sharedBytes + b.Shared)
	for _, w := range b.warps {
		w.start(b)
	}
	ready := slices.Clone(b.warps)
	for len(ready) > 0 {
		i := b.rng.IntN(len(ready))
		if w := ready[i]; !w.run(1 + b.rng.IntN(400)) {
			continue
		}
		ready = slices.Delete(ready, i, i+1)
		if len(ready) == 0 {
			ready = b.meet()
		}
	}
}

// meet is where all warps either have ended or wait at a barrier. It returns those that
// go on.
func (b *block) meet() []*warp {
	first := b.warps[0]
	for _, w := range b.warps {
		if w.waiting != first.waiting {
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
	b.synced = b.clock
	for _, w := range b.warps {
		w.waiting, w.synced = nil, b.clock
	}
	return slices.Clone(b.warps)
}

// fault is how a launch ends early.
type fault struct{ message string }

func (f fault) Error() string { return f.message }

// fail ends the launch. The message's subject is the instruction.
func (w *warp) fail(lane int, format string, args ...any) {
	in, b := w.at, w.block
	panic(fault{fmt.Sprintf("%s, block (%d, %d), thread %d: line %d, %s, %s", b.kernel.Name, b.number%b.Grid[0], b.number/b.Grid[0],
		w.number*lanes+lane, in.line, strings.Join(strings.Fields(in.text), " "), fmt.Sprintf(format, args...))})
}
