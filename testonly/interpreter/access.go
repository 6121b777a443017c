package interpreter

import (
	"encoding/binary"
	"regexp"
	"strconv"
)

// space is an address space. A generic address encodes its space.
type space int8

const (
	spaceGeneric space = iota
	spaceGlobal
	spaceShared
)

var accessName = regexp.MustCompile(`^(ld|st)(?:\.(param|global|shared))?(?:\.v([24]))?\.([busf])(8|16|32|64)$`)

// accessOperation returns the operation of a load or a store.
func accessOperation(name string) (op operation, ok bool) {
	m := accessName.FindStringSubmatch(name)
	if m == nil {
		return op, false
	}
	s := map[string]space{"global": spaceGlobal, "shared": spaceShared}[m[2]]
	size, _ := strconv.Atoi(m[5])
	a := access{space: s, count: 1, size: size / 8, signed: m[4] == "s"}
	if m[3] != "" {
		a.count, _ = strconv.Atoi(m[3])
	}
	switch {
	case m[2] == "param":
		return operation{operands: "R" + m[3] + " A", run: a.parameter}, m[1] == "ld"
	case m[1] == "ld":
		return operation{operands: "R" + m[3] + " A", run: a.load}, true
	default:
		return operation{operands: "A r" + m[3], run: a.store}, true
	}
}

// access is an access to adjacent elements.
type access struct {
	space  space
	count  int
	size   int // bytes per element
	signed bool
}

// address returns a lane's address: a register plus the instruction's offset.
func (w *warp) address(register, offset, i int) uint64 {
	return w.registers[register][i] + uint64(offset)
}

// element converts an element from memory to the value of a register.
func (a access) element(data []byte) uint64 {
	var bytes [8]byte
	copy(bytes[:], data[:a.size])
	x := binary.LittleEndian.Uint64(bytes[:])
	if a.signed {
		unused := 64 - 8*a.size // bits
		return uint64(int64(x<<unused) >> unused)
	}
	return x
}

func (a access) parameter(w *warp, in *instruction, active uint32) {
	n := a.count
	for i := range lanes {
		if active>>i&1 == 0 {
			continue
		}
		at := w.address(in.args[n], in.offsets[0], i)
		if size := uint64(n * a.size); at > uint64(len(w.block.parameters)) || at+size > uint64(len(w.block.parameters)) {
			w.fail(i, "reads beyond the parameters")
		}
		for j, r := range in.args[:n] {
			w.registers[r][i] = a.element(w.block.parameters[at+uint64(j*a.size):])
		}
	}
}

func (a access) load(w *warp, in *instruction, active uint32) {
	n := a.count
	for i := range lanes {
		if active>>i&1 == 0 {
			continue
		}
		m, at := w.place(i, a.space, w.address(in.args[n], in.offsets[0], i), n*a.size)
		w.mayRead(i, m, at, n*a.size)
		for j, r := range in.args[:n] {
			w.registers[r][i] = a.element(m.data[at+j*a.size:])
		}
	}
}

func (a access) store(w *warp, in *instruction, active uint32) {
	var data [16]byte
	for i := range lanes {
		if active>>i&1 == 0 {
			continue
		}
		for j, r := range in.args[1:] {
			var element [8]byte
			binary.LittleEndian.PutUint64(element[:], w.registers[r][i])
			copy(data[j*a.size:], element[:a.size])
		}
		m, at := w.place(i, a.space, w.address(in.args[0], in.offsets[0], i), a.count*a.size)
		w.mayWrite(i, m, at, data[:a.count*a.size])
		copy(m.data[at:], data[:a.count*a.size])
	}
}

// addReleasing adds to a word of global memory. Blocks that acquire later see the block's accesses before its last barrier.
func addReleasing(w *warp, in *instruction, active uint32) {
	b := w.block
	w.eachWord(in.args[0], in.offsets[0], active, func(lane int, word []byte) {
		value := binary.LittleEndian.Uint32(word) + uint32(w.registers[in.args[1]][lane])
		binary.LittleEndian.PutUint32(word, value)
	})
	b.released[b.number] = b.synced
}

// loadAcquiring reads a word of global memory. After its next barrier, the block sees what others have released.
func loadAcquiring(w *warp, in *instruction, active uint32) {
	w.eachWord(in.args[1], in.offsets[0], active, func(lane int, word []byte) {
		w.registers[in.args[0]][lane] = uint64(binary.LittleEndian.Uint32(word))
	})
	copy(w.block.acquired, w.block.released)
}

// eachWord calls f for the word of each active lane. Accesses of f are atomic: they are no races.
func (w *warp) eachWord(register, offset int, active uint32, f func(lane int, word []byte)) {
	for i := range lanes {
		if active>>i&1 != 0 {
			m, at := w.place(i, spaceGlobal, w.address(register, offset, i), 4)
			if m.known[at/4] != 0xf {
				w.fail(i, "reads byte %d of %s, which nobody has written", at, m)
			}
			f(i, m.data[at:at+4])
		}
	}
}
