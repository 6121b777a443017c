package interpreter

// copying is a pending asynchronous copy to shared memory.
type copying struct {
	group, lane int
	to          int // offset of the 16 bytes in shared memory
	from        *memory
	at, size    int // offset of the source, and number of bytes to copy; the rest of the 16 become zeros
	done        bool
}

// copyAsync starts a copy of 16 bytes for each lane, from global to shared memory. The last operand is the number
// of bytes to read; the rest of the 16 become zeros.
func copyAsync(w *warp, in *instruction, active uint32) {
	early := w.block.rng.IntN(2) == 0
	for i := range lanes {
		if active>>i&1 == 0 {
			continue
		}
		size := int(*lane[uint32](&w.registers[in.args[3]], i))
		if in.args[2] != 16 || size > 16 {
			w.fail(i, "copies %d of %d bytes, not up to 16 of 16", size, in.args[2])
		}
		c := copying{group: w.group, lane: i, size: size}
		if size > 0 {
			c.from, c.at = w.place(i, spaceGlobal, w.address(in.args[1], in.offsets[1], i), 16)
			w.mayRead(i, c.from, c.at, roundUp(size, 4))
		}
		_, c.to = w.place(i, spaceShared, w.address(in.args[0], in.offsets[0], i), 16)
		shared := &w.block.shared
		w.mayWrite(i, shared, c.to, shared.data[c.to:c.to+16])
		for j := range 4 {
			shared.words[c.to/4+j].awaited = true
		}
		if early {
			c.make(shared)
		}
		w.copies = append(w.copies, c)
	}
}

func (c *copying) make(shared *memory) {
	if !c.done {
		clear(shared.data[c.to : c.to+16])
		if c.size > 0 {
			copy(shared.data[c.to:], c.from.data[c.at:c.at+c.size])
		}
		c.done = true
	}
}

// copyCommit makes a group of the copies since the last call.
func copyCommit(w *warp, _ *instruction, _ uint32) { w.group++ }

// copyWait waits until at most the latest n groups are pending. The bytes of earlier groups count as written now.
func copyWait(w *warp, in *instruction, _ uint32) {
	left := w.copies[:0]
	shared := &w.block.shared
	for _, c := range w.copies {
		if c.group >= w.group-in.args[0] {
			left = append(left, c)
			continue
		}
		c.make(shared)
		for j := range 4 {
			shared.words[c.to/4+j] = word{writer: w.thread(c.lane), written: w.block.clock, writtenBytes: 0xf}
		}
	}
	w.copies = left
}
