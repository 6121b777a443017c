package interpreter

import (
	"bytes"
	"fmt"
	"math/bits"
)

// The first addresses of the spaces. cvta adds a constant to addresses of the shared space to make them generic.
// Buffers of global memory are so far apart that a wrong offset doesn't reach another buffer.
const (
	sharedBase   = 1 << 10
	sharedWindow = 1 << 40
	bufferSpace  = 1 << 36
	bufferBase   = 1 << 44
)

// Pointer is an address of global memory.
type Pointer uint64

// Alloc returns the address of a new, unwritten buffer of size bytes. Errors contain its name.
func (m *Machine) Alloc(name string, size int) Pointer {
	b := &memory{name: name}
	b.clear(size)
	m.buffers = append(m.buffers, b)
	return Pointer(bufferBase + bufferSpace*(len(m.buffers)-1))
}

// AllowSameValue permits races for a buffer if all writes of a launch to a word have the same value.
func (m *Machine) AllowSameValue(p Pointer) {
	b, _ := m.buffer(uint64(p))
	b.sameValue = true
}

// Write copies data to a buffer.
func (m *Machine) Write(p Pointer, data []byte) error {
	b, at := m.buffer(uint64(p))
	if b == nil || at+len(data) > len(b.data) {
		return fmt.Errorf("%d bytes do not lie in one buffer", len(data))
	}
	copy(b.data[at:], data)
	for i := range data {
		b.known[(at+i)/4] |= 1 << ((at + i) % 4)
	}
	return nil
}

// Read copies data from a buffer. It returns an error if a byte was never written.
func (m *Machine) Read(p Pointer, size int) ([]byte, error) {
	b, at := m.buffer(uint64(p))
	if b == nil || at+size > len(b.data) {
		return nil, fmt.Errorf("%d bytes do not lie in one buffer", size)
	}
	for i := at; i < at+size; i++ {
		if !b.knows(i) {
			return nil, fmt.Errorf("byte %d of %s was never written", i, b)
		}
	}
	return append([]byte(nil), b.data[at:at+size]...), nil
}

// buffer returns the buffer of an address and the offset in it, which may exceed its size; nil if there is none.
func (m *Machine) buffer(address uint64) (*memory, int) {
	if i := address/bufferSpace - bufferBase/bufferSpace; address >= bufferBase && i < uint64(len(m.buffers)) {
		return m.buffers[i], int(address % bufferSpace)
	}
	return nil, 0
}

// memory is a buffer of global memory, or a block's shared memory.
type memory struct {
	name      string
	data      []byte
	known     []uint8 // a bit for each byte of a word that was ever written
	words     []word
	sameValue bool
}

// word is the access history of 4 bytes: the last write, the last read, and whether other threads have read since the
// last barrier.
type word struct {
	writer, reader          uint32 // threads of the last write and the last read
	written, read           uint32 // clock at the last write and the last read
	writtenBytes, readBytes uint8  // a bit for each byte
	readers                 readers
	awaited                 bool // an asynchronous copy of the writer to this word is pending
}

type readers uint8

const (
	readersOne    readers = iota
	readersLanes          // several lanes of a warp
	readersWarps          // several warps
	readersBlocks         // several blocks
)

func (m *memory) String() string { return m.name }

// clear resizes the memory to n bytes and marks them unwritten.
func (m *memory) clear(size int) {
	if len(m.data) != size {
		m.data, m.known, m.words = make([]byte, size), make([]uint8, (size+3)/4), make([]word, (size+3)/4)
		return
	}
	clear(m.known)
	clear(m.words)
}

func (m *memory) knows(at int) bool { return m.known[at/4]>>(at%4)&1 != 0 }

// mostThreads is the limit of threads per block. Threads are numbered within a launch, mostThreads per block.
const mostThreads = 1024

func (w *warp) thread(lane int) uint32 {
	return uint32(w.block.number*mostThreads + w.number*lanes + lane)
}

func blockOf(thread uint32) uint32 { return thread / mostThreads }
func warpOf(thread uint32) uint32  { return thread / lanes }

// since returns the clock of the last barrier between another thread and a thread of the warp. If the other
// thread is in another block, it is that block's last barrier released to the warp's. Later accesses are concurrent.
func (w *warp) since(other, thread uint32) uint32 {
	switch {
	case blockOf(other) != blockOf(thread):
		if seen, at := w.block.seen, int(blockOf(other)); at < len(seen) { // an earlier launch may have had more blocks
			return max(w.block.started, seen[at])
		}
		return w.block.started
	case warpOf(other) != warpOf(thread):
		return w.block.synced
	}
	return w.synced
}

// sinceReaders is like since, for the threads that have read a word.
func (w *warp) sinceReaders(c *word, thread uint32) uint32 {
	switch {
	case c.readers == readersBlocks:
		return w.block.started
	case c.readers == readersWarps && blockOf(c.reader) == blockOf(thread):
		return w.block.synced
	case c.readers == readersOne && c.reader == thread:
		return w.block.clock
	}
	return w.since(c.reader, thread)
}

// place returns the memory and the offset of an address, and checks an access of size bytes.
func (w *warp) place(lane int, s space, address uint64, size int) (*memory, int) {
	var m *memory
	var at int
	b := w.block
	switch {
	case s == spaceShared:
		m, at = &b.shared, int(address-sharedBase)
	case s == spaceGeneric && address < bufferBase:
		m, at = &b.shared, int(address-sharedBase-sharedWindow)
	default:
		m, at = b.buffer(address)
	}
	switch {
	case m == nil:
		w.fail(lane, "uses the address %#x, where nothing is", address)
	case at < 0 || at+size > len(m.data):
		w.fail(lane, "uses bytes %d to %d of %s, which has %d", at, at+size-1, m, len(m.data))
	case address%uint64(size) != 0:
		w.fail(lane, "uses %d bytes at byte %d of %s, which is not aligned", size, at, m)
	}
	return m, at
}

// each calls f for every word of a range of bytes. The second argument of f has a bit for each byte in the range.
func each(at, size int, f func(word int, some uint8)) {
	if size < 4 {
		f(at/4, (1<<size-1)<<(at%4))
		return
	}
	for i := range size / 4 {
		f(at/4+i, 0xf)
	}
}

// mayRead checks and records a read of a lane.
func (w *warp) mayRead(lane int, m *memory, at, size int) {
	thread, now := w.thread(lane), w.block.clock
	each(at, size, func(i int, some uint8) {
		c := &m.words[i]
		if unknown := some &^ m.known[i]; unknown != 0 {
			w.fail(lane, "reads byte %d of %s, which nobody has written", 4*i+bits.TrailingZeros8(unknown), m)
		}
		if c.awaited {
			w.fail(lane, "reads byte %d of %s, where thread %d has not waited for its copy", 4*i, m, c.writer%mostThreads)
		}
		if m.sameValue {
			return
		}
		if c.writer != thread && c.written >= w.since(c.writer, thread) && c.writtenBytes&some != 0 {
			w.race(lane, m, i, "reads", "written", c.writer)
		}
		if c.read < w.sinceReaders(c, thread) {
			c.readers, c.readBytes = readersOne, 0
		} else {
			kind := readersOne
			switch {
			case blockOf(c.reader) != blockOf(thread):
				kind = readersBlocks
			case warpOf(c.reader) != warpOf(thread):
				kind = readersWarps
			case c.reader != thread:
				kind = readersLanes
			}
			c.readers = max(c.readers, kind)
		}
		c.reader, c.read, c.readBytes = thread, now, c.readBytes|some
	})
}

// mayWrite checks and records a write of a lane.
func (w *warp) mayWrite(lane int, m *memory, at int, data []byte) {
	thread, now := w.thread(lane), w.block.clock
	each(at, len(data), func(i int, some uint8) {
		c := &m.words[i]
		if c.awaited {
			w.fail(lane, "writes byte %d of %s, where thread %d has not waited for its copy", 4*i, m, c.writer%mostThreads)
		}
		if m.sameValue {
			from, size := max(at, 4*i), min(4, len(data))
			if c.written >= w.block.started && !bytes.Equal(m.data[from:from+size], data[from-at:from-at+size]) {
				w.fail(lane, "writes another value to byte %d of %s than thread %d", 4*i, m, c.writer%mostThreads)
			}
		} else {
			if c.writer != thread && c.written >= w.since(c.writer, thread) && c.writtenBytes&some != 0 {
				w.race(lane, m, i, "writes", "written", c.writer)
			}
			own := c.reader == thread && c.readers == readersOne
			if !own && c.read >= w.sinceReaders(c, thread) && c.readBytes&some != 0 {
				w.race(lane, m, i, "writes", "read", c.reader)
			}
		}
		if c.writer != thread || c.written != now {
			c.writtenBytes = 0
		}
		c.writer, c.written, c.writtenBytes = thread, now, c.writtenBytes|some
		m.known[i] |= some
	})
}

func (w *warp) race(lane int, m *memory, word int, does, did string, other uint32) {
	b := int(blockOf(other))
	w.fail(lane, "%s byte %d of %s, %s by thread %d of block (%d, %d) without a barrier between", does, 4*word, m,
		did, other%mostThreads, b%w.block.Grid[0], b/w.block.Grid[0])
}
