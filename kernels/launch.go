//go:build gpu

package kernels

import "unsafe"

// launch is a kernel that is ready to be started, and the least that it will have to do,
// as the head of its source file counts that.
type launch struct {
	kernel    string
	arguments unsafe.Pointer // the struct of abi.go
	x, y      int            // blocks
	threads   int            // a block
	shared    int            // bytes of dynamic shared memory a block
	bytes     float64        // to and from the device's memory, each matrix once
	flops     float64        // of the tensor cores, with TF32 factors
}

// tile is what a block of a product computes.
type tile struct {
	rows, columns int
	shared        int // bytes
}

var (
	decodeTile     = tile{decodeRows, decodeColumns, decodeShared}
	accumulateTile = tile{accumulateRows, accumulateColumns, accumulateShared}
	correlateTile  = tile{correlateRows, correlateColumns, correlateShared}
)

// product makes it the launch of the kernel of a precision, with a grid for a result of
// rows × columns.
func (l launch) product(p Precision, t tile, rows, columns int32) launch {
	l.kernel += "_" + string(p)
	l.x, l.y, l.threads, l.shared = divide(int(rows), t.rows), divide(int(columns), t.columns), productThreads, t.shared
	if p == FP32 {
		l.flops *= 3
	}
	return l
}

// rows gives it a grid in which each warp has a row, and no shared memory.
func (l launch) rows(rows int32) launch {
	l.x, l.y, l.threads = divide(int(rows), rowThreads/warp), 1, rowThreads
	return l
}

func divide(n, by int) int { return (n + by - 1) / by }

// floats returns the sizes, that of vectors with the padding that products compute too.
func (s shape) floats() (words, atoms, dim float64) {
	return float64(s.words), float64(s.atoms), float64(s.dimPitch)
}

func (k decode) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	return launch{
		kernel: "decode", arguments: unsafe.Pointer(&k),
		bytes: 4 * (words*atoms + atoms*dim + words*dim), flops: 2 * words * atoms * dim,
	}.product(p, decodeTile, k.shape.words, k.shape.dimPitch)
}

func (k accumulate) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	return launch{
		kernel: "accumulate", arguments: unsafe.Pointer(&k),
		bytes: 4 * (words*atoms + words*dim + 2*atoms*dim), flops: 4 * words * atoms * dim,
	}.product(p, accumulateTile, k.shape.atoms, k.shape.dimPitch)
}

func (k correlate) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	return launch{
		kernel: "correlate", arguments: unsafe.Pointer(&k),
		bytes: 20*words*atoms + 4*(words+atoms)*dim, flops: 2 * words * atoms * dim,
	}.product(p, correlateTile, k.shape.words, k.shape.codePitch)
}

func (k fista) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	return launch{
		kernel: "fista", arguments: unsafe.Pointer(&k),
		bytes: 12*words*atoms + 4*(words+atoms)*dim, flops: 2 * words * atoms * dim,
	}.product(p, correlateTile, k.shape.words, k.shape.codePitch)
}

// Of what depends on the numbers, nonzeros and rows that need no scaling, the floors of
// the following count none.

func (k finishCodes) launch() launch {
	words, atoms, _ := k.shape.floats()
	return launch{kernel: "finish_codes", arguments: unsafe.Pointer(&k), bytes: 4 * words * atoms}.rows(k.shape.words)
}

func (k packCodes) launch() launch {
	words, atoms, _ := k.shape.floats()
	return launch{kernel: "pack_codes", arguments: unsafe.Pointer(&k), bytes: 4 * words * atoms}.rows(k.shape.words)
}

func (k randomCodes) launch() launch {
	words, atoms, _ := k.shape.floats()
	return launch{kernel: "random_codes", arguments: unsafe.Pointer(&k), bytes: 4 * words * atoms}.rows(k.shape.words)
}

func (k keepLargest) launch() launch {
	words, atoms, _ := k.shape.floats()
	return launch{kernel: "keep_largest", arguments: unsafe.Pointer(&k), bytes: 12 * words * atoms}.rows(k.shape.words)
}

func (k fistaResiduals) launch() launch {
	bytes := 4 * float64(k.shape.words) * float64(4*k.shape.dim+k.parts)
	return launch{kernel: "fista_residuals", arguments: unsafe.Pointer(&k), bytes: bytes}.rows(k.shape.words)
}

// rowMemory is the shared memory of a warp, in bytes.
func (k body) rowMemory() int {
	return roundUp(8*int(k.numberCount), 16) + 4*int(k.temps)*roundUp(int(k.width), 4)
}

// launch takes how many matrices the program reads and writes.
func (k body) launch(matrices int) launch {
	const most = 48 << 10 // bytes; a body that needs more gets fewer warps
	warps := max(1, min(rowThreads/warp, most/k.rowMemory()))
	return launch{
		kernel: "body", arguments: unsafe.Pointer(&k), bytes: 4 * float64(k.rows) * float64(k.width) * float64(matrices),
		x: divide(int(k.rows), warps), y: 1, threads: warps * warp, shared: warps * k.rowMemory(),
	}
}

// launch takes how many numbers of each row the program sums.
func (k totals) launch(sums int) launch {
	return launch{
		kernel: "totals", arguments: unsafe.Pointer(&k), bytes: 8 * float64(k.rows) * float64(sums),
		x: 1, y: 1, threads: totalsThreads, shared: totalsShared,
	}
}

func (k peakTF32) launch(blocks int) launch {
	return launch{
		kernel: "peak_tf32", arguments: unsafe.Pointer(&k), x: blocks, y: 1, threads: peakThreads,
		flops: float64(k.steps) * float64(blocks) * peakThreads / warp * peakChains * 2 * 16 * 8 * 8,
	}
}
