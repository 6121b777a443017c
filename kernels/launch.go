package kernels

import "unsafe"

// launch is a kernel that is ready to be started, and the least that it has to do, whatever
// the numbers, as the head of its source file counts it.
type launch struct {
	kernel    string
	arguments unsafe.Pointer // a struct of abi.go
	grid
	bytes float64 // to and from the device's memory, each matrix once
	flops float64 // of the tensor cores, with TF32 factors; with halves they take half as long, and count half
}

// grid is the shape of a launch.
type grid struct {
	x, y    int // blocks
	threads int // a block
	shared  int // bytes of dynamic shared memory a block
}

// tile is what a block of a product computes.
type tile struct{ rows, columns, shared int }

var (
	decodeTile     = tile{decodeRows, decodeColumns, decodeShared}
	accumulateTile = tile{accumulateRows, accumulateColumns, accumulateShared}
	correlateTile  = tile{correlateRows, correlateColumns, correlateShared}
	rememberTile   = tile{rememberRows, rememberColumns, rememberShared}

	halfDecodeTile     = tile{halfDecodeRows, halfDecodeColumns, halfDecodeShared}
	aheadDecodeTile    = tile{halfDecodeRows, halfDecodeColumns, aheadHalfDecodeShared}
	halfAccumulateTile = tile{halfAccumulateRows, halfAccumulateColumns, halfAccumulateShared}
	halfCorrelateTile  = tile{halfCorrelateRows, halfCorrelateColumns, halfCorrelateShared}
)

func (t tile) grid(rows, columns int32) grid {
	return grid{divide(int(rows), t.rows), divide(int(columns), t.columns), productThreads, t.shared}
}

// rowGrid has a warp for each row.
func rowGrid(rows int32) grid { return grid{divide(int(rows), rowThreads/warp), 1, rowThreads, 0} }

func divide(n, by int) int { return (n + by - 1) / by }

// in takes a product's kernel of a precision.
func (l launch) in(p Precision) launch {
	l.kernel += "_" + string(p)
	if p == FP32 {
		l.flops *= 3
	}
	return l
}

// floats returns the sizes of products, which compute vectors with their padding.
func (s shape) floats() (words, atoms, dim float64) {
	return float64(s.words), float64(s.atoms), float64(s.dimPitch)
}

func (k decode) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 4*(words*atoms+atoms*dim), 2*words*atoms*dim
	return launch{"decode", unsafe.Pointer(&k), decodeTile.grid(k.shape.words, k.shape.dimPitch), bytes, flops}.inShares(&k.shares, k.shape).in(p)
}

// inShares takes how many blocks share a tile of a decode, one if it is not said.
func (l launch) inShares(shares *int32, s shape) launch {
	*shares = max(1, *shares)
	words, _, dim := s.floats()
	l.x *= int(*shares)
	l.bytes += 4 * words * dim * float64(*shares)
	return l
}

func (k accumulate) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 4*(words*atoms+words*dim+2*atoms*dim), 4*words*atoms*dim
	return launch{"accumulate", unsafe.Pointer(&k), accumulateTile.grid(k.shape.atoms, k.shape.dimPitch), bytes, flops}.in(p)
}

// These take whether sums are halves.

func (k correlate) launch(p Precision, halfSums bool) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 20*words*atoms+4*(words+atoms)*dim, 2*words*atoms*dim
	return launch{"correlate", unsafe.Pointer(&k), correlateTile.grid(k.shape.words, k.shape.codePitch), bytes, flops}.sums(halfSums, words*atoms).in(p)
}

func (k correlateHalf) launch(halfSums bool) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 18*words*atoms+2*(words+atoms)*dim, words*atoms*dim
	return launch{"correlate", unsafe.Pointer(&k), halfCorrelateTile.grid(k.shape.words, k.shape.codePitch), bytes, flops}.sums(halfSums, words*atoms).in(FP16)
}

// sums takes a kernel for so many sums of each kind that are halves.
func (l launch) sums(halves bool, n float64) launch {
	if halves {
		l.kernel += "_float16"
		l.bytes -= 8 * n
	}
	return l
}

// launch takes how much shared memory a block may have, in bytes.
func (k decodeHalf) launch(mostShared int) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 2*(words*atoms+atoms*dim), words*atoms*dim
	kernel, tile := "decode_fp16", halfDecodeTile
	if mostShared >= aheadDecodeTile.shared {
		kernel, tile = "decode_ahead_fp16", aheadDecodeTile
	}
	return launch{kernel, unsafe.Pointer(&k), tile.grid(k.shape.words, k.shape.dimPitch), bytes, flops}.inShares(&k.shares, k.shape)
}

func (k accumulateHalf) launch() launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 2*(words*atoms+words*dim)+8*atoms*dim, 2*words*atoms*dim
	return launch{"accumulate_fp16", unsafe.Pointer(&k), halfAccumulateTile.grid(k.shape.atoms, k.shape.dimPitch), bytes, flops}
}

func (k updateHalf) launch() launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 2*(words*atoms+words*dim)+18*atoms*dim, 2*words*atoms*dim
	return launch{"update_fp16", unsafe.Pointer(&k), halfAccumulateTile.grid(k.shape.atoms, k.shape.dimPitch), bytes, flops}
}

func (k fista) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 12*words*atoms+4*(words+atoms)*dim, 2*words*atoms*dim
	return launch{"fista", unsafe.Pointer(&k), correlateTile.grid(k.shape.words, k.shape.codePitch), bytes, flops}.in(p)
}

func (k fistaHalf) launch() launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 6*words*atoms+2*(words+atoms)*dim, words*atoms*dim
	return launch{"fista", unsafe.Pointer(&k), halfCorrelateTile.grid(k.shape.words, k.shape.codePitch), bytes, flops}.in(FP16)
}

func (k remember) launch(p Precision) launch {
	words, atoms, dim := k.shape.floats()
	bytes, flops := 4*(words*atoms+words*dim+2*atoms*dim), 2*words*atoms*dim
	if k.symmetric {
		bytes, flops = 4*(words*atoms+2*atoms*dim), flops/2
	}
	return launch{"remember", unsafe.Pointer(&k), rememberTile.grid(k.shape.atoms, k.shape.dimPitch), bytes, flops}.in(p)
}

func (k forces) launch() launch {
	_, atoms, dim := k.shape.floats()
	return launch{"forces", unsafe.Pointer(&k), rowGrid(k.shape.atoms), 20 * atoms * dim, 0}
}

// launch has one block, as an atom's move needs that of the atom before it, with a set of threads
// for each group of atoms if there are so many threads.
func (k moveAtoms) launch() launch {
	threads := min(moveThreads, roundUp(divide(int(k.shape.dimPitch), 4), warp))
	sets, shared := min(moveThreads/threads, divide(int(k.shape.atoms), moveTogether)), moveShared
	if sets > 1 {
		shared += 4 * 2 * int(k.shape.dimPitch)
	}
	kernel := "move_atoms"
	if int(k.shape.dimPitch) > 4*moveThreads {
		kernel = "move_wide_atoms"
	}
	atoms, dim := float64(k.shape.atoms), float64(k.shape.dim)
	return launch{kernel, unsafe.Pointer(&k), grid{1, 1, sets * threads, shared}, 4 * atoms * (4*dim + atoms), 0}
}

func (k power) launch() launch {
	return launch{"power", unsafe.Pointer(&k), grid{1, 1, powerThreads, powerShared}, 4 * float64(k.dim) * float64(k.dim), 0}
}

func (k gather) launch() launch {
	return launch{"gather", unsafe.Pointer(&k), rowGrid(k.shape.words), 8 * float64(k.shape.words) * float64(k.shape.dim), 0}
}

func (k fistaResiduals) launch() launch {
	words, dim := float64(k.shape.words), float64(k.shape.dim)
	bytes := words * (4*dim + 8*dim*float64(k.shares) + 4*float64(k.parts))
	if k.scales != 0 {
		return launch{"fista_residuals_fp16", unsafe.Pointer(&k), rowGrid(k.shape.words), bytes + 2*words*dim, 0}
	}
	return launch{"fista_residuals", unsafe.Pointer(&k), rowGrid(k.shape.words), bytes + 4*words*dim, 0}
}

func (k rowScales) launch() launch {
	return launch{"row_scales", unsafe.Pointer(&k), rowGrid(k.shape.words), 4 * float64(k.shape.words) * float64(k.shape.dim), 0}
}

func (k toHalves) launch() launch {
	return launch{"to_halves", unsafe.Pointer(&k), rowGrid(k.shape.words), 6 * float64(k.shape.words) * float64(k.shape.dim), 0}
}

// codes is the launch of a kernel that reads or writes codes, so often.
func (s shape) codes(kernel string, arguments unsafe.Pointer, times float64, p Precision) launch {
	bytes := times * 4
	if p == FP16 {
		kernel, bytes = kernel+"_fp16", times*2
	}
	return launch{kernel, arguments, rowGrid(s.words), bytes * float64(s.words) * float64(s.atoms), 0}
}

func (k keepLargest) launch() launch {
	if k.halves != 0 {
		return k.shape.codes("keep_largest", unsafe.Pointer(&k), 3, FP16)
	}
	return k.shape.codes("keep_largest", unsafe.Pointer(&k), 2, FP32)
}

// These take the precision that says how codes are stored.

func (k finishCodes) launch(p Precision) launch {
	return k.shape.codes("finish_codes", unsafe.Pointer(&k), 1, p)
}

func (k packCodes) launch(p Precision) launch {
	return k.shape.codes("pack_codes", unsafe.Pointer(&k), 1, p)
}

func (k randomCodes) launch(p Precision) launch {
	return k.shape.codes("random_codes", unsafe.Pointer(&k), 1, p)
}

// launch takes the number of matrices that the program reads and writes.
func (k body) launch(matrices int) launch {
	const most = 48 << 10 // bytes; a body that needs more gets fewer warps
	warps := max(1, min(rowThreads/warp, most/k.rowMemory()))
	g := grid{divide(int(k.rows), warps), 1, warps * warp, warps * k.rowMemory()}
	return launch{"body", unsafe.Pointer(&k), g, 4 * float64(k.rows) * float64(k.width) * float64(matrices), 0}
}

// rowMemory is the shared memory of a warp, in bytes.
func (k body) rowMemory() int {
	return roundUp(8*int(k.numberCount), 16) + 4*int(k.temps)*roundUp(int(k.width), 4)
}

// launch takes how many numbers of each row the program sums.
func (k totals) launch(sums int) launch {
	return launch{"totals", unsafe.Pointer(&k), grid{1, 1, totalsThreads, totalsShared}, 8 * float64(k.rows) * float64(sums), 0}
}

// launch takes the precision, tf32 or fp16. Flops are counted as they are.
func (k peak) launch(blocks int, p Precision) launch {
	flops := float64(k.steps) * float64(blocks) * peakThreads / warp * peakChains * 2 * 16 * 8 * 8
	if p == FP16 {
		flops *= 2
	}
	return launch{"peak_" + string(p), unsafe.Pointer(&k), grid{blocks, 1, peakThreads, 0}, 0, flops}
}

// launch has bytes that L2 reads.
func (k peakL2) launch(blocks int) launch {
	return launch{"peak_l2", unsafe.Pointer(&k), grid{blocks, 1, peakThreads, peakShared}, 4 * peakTile * float64(k.steps) * float64(blocks), 0}
}

// at is the address of element i.
func (p pointer[T]) at(i int) pointer[T] { return p + pointer[T](bytesOf[T](i)) }

// bytesOf is the size of n elements.
func bytesOf[T any](n int) int64 {
	var element T
	return int64(n) * int64(unsafe.Sizeof(element))
}
