package kernels

import (
	"embed"
	"unsafe"
)

//go:embed ptx/*.ptx
var ptx embed.FS

// launch is a kernel launch: the kernel, its arguments and its grid.
type launch struct {
	kernel    string
	arguments unsafe.Pointer // to a struct of abi.go
	grid
}

// grid is the launch configuration of a kernel.
type grid struct {
	x, y    int // blocks
	threads int // per block
	shared  int // bytes of dynamic shared memory per block
}

// tile is the output tile of a block of a matrix product.
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

// rowGrid returns the grid of a kernel that processes one row per warp.
func rowGrid(rows int32) grid { return grid{divide(int(rows), rowThreads/warp), 1, rowThreads, 0} }

// divide returns ⌈n/by⌉.
func divide(n, by int) int { return (n + by - 1) / by }

func (k decode) launch(p Precision) launch {
	return launch{"decode_" + string(p), unsafe.Pointer(&k), decodeTile.grid(k.shape.words, k.shape.dimPitch)}
}

// times returns the grid with *shares blocks per tile, which split the reduction of the tile. It first raises
// *shares to at least 1.
func (g grid) times(shares *int32) grid {
	*shares = max(1, *shares)
	g.x *= int(*shares)
	return g
}

// launch chooses the kernel with a third pipeline stage if a block may use enough shared memory.
func (k decodeHalf) launch(maxShared int) launch {
	kernel, tile := "decode_fp16", halfDecodeTile
	if maxShared >= aheadDecodeTile.shared {
		kernel, tile = "decode_ahead_fp16", aheadDecodeTile
	}
	return launch{kernel, unsafe.Pointer(&k), tile.grid(k.shape.words, k.shape.dimPitch).times(&k.shares)}
}

func (k accumulate) launch(p Precision) launch {
	return launch{"accumulate_" + string(p), unsafe.Pointer(&k), accumulateTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k accumulateHalf) launch() launch {
	return launch{"accumulate_fp16", unsafe.Pointer(&k), halfAccumulateTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k updateHalf) launch() launch {
	return launch{"update_fp16", unsafe.Pointer(&k), halfAccumulateTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k correlate) launch(p Precision) launch {
	return launch{"correlate_" + string(p), unsafe.Pointer(&k), correlateTile.grid(k.shape.words, k.shape.codePitch)}
}

func (k correlateHalf) launch() launch {
	return launch{"correlate_fp16", unsafe.Pointer(&k), halfCorrelateTile.grid(k.shape.words, k.shape.codePitch)}
}

func (k roundAtoms) launch() launch {
	return launch{"round_atoms", unsafe.Pointer(&k), rowGrid(k.shape.atoms)}
}

func (k scaleAtoms) launch() launch {
	return launch{"scale_atoms", unsafe.Pointer(&k), grid{1, 1, scaleThreads, scaleShared}}
}

func (k search) launch() launch {
	return launch{"search", unsafe.Pointer(&k), grid{divide(int(k.shape.words), searchRows), 1, searchThreads, searchShared}}
}

// launch has the atoms gathered if they fit into the shared memory of a block.
func (k polish) launch(maxShared int) launch {
	shared := polishShared
	if all := shared + 4*int(k.maxNonzeros)*int(k.shape.dimPitch); all <= maxShared {
		shared, k.gathered = all, true
	}
	return launch{"polish", unsafe.Pointer(&k), grid{int(k.shape.words), 1, polishThreads, shared}}
}

func (k remember) launch() launch {
	return launch{"remember", unsafe.Pointer(&k), rememberTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k jacobi) launch() launch {
	threads := min(jacobiThreads, roundUp(int(k.shape.dimPitch)/4, warp))
	return launch{"jacobi", unsafe.Pointer(&k), grid{divide(int(k.shape.atoms), jacobiRows), 1, threads, jacobiShared}}
}

func (k power) launch() launch {
	return launch{"power", unsafe.Pointer(&k), grid{1, 1, powerThreads, powerShared}}
}

func (k gather) launch() launch {
	return launch{"gather", unsafe.Pointer(&k), rowGrid(k.shape.words)}
}

// withHalves returns the name of the kernel for float16 or for float32 matrices.
func withHalves(kernel string, halves bool) string {
	if halves {
		return kernel + "_fp16"
	}
	return kernel
}

func (k finishCodes) launch(p Precision) launch {
	return launch{withHalves("finish_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.words)}
}

func (k packCodes) launch(p Precision) launch {
	return launch{withHalves("pack_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.words)}
}

func (k randomCodes) launch(p Precision) launch {
	return launch{withHalves("random_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.words)}
}

func (k body) launch() launch {
	const limit = 48 << 10 // bytes of shared memory; if a full block needs more, it gets fewer warps
	warps := max(1, min(rowThreads/warp, limit/k.rowMemory()))
	return launch{"body", unsafe.Pointer(&k), grid{divide(int(k.rows), warps), 1, warps * warp, warps * k.rowMemory()}}
}

// rowMemory returns the bytes of shared memory per warp.
func (k body) rowMemory() int {
	return roundUp(8*int(k.numberCount), 16) + 4*int(k.temps)*roundUp(int(k.width), 4)
}

func (k totals) launch() launch {
	return launch{"totals", unsafe.Pointer(&k), grid{1, 1, totalsThreads, totalsShared}}
}

// at returns the address of element i.
func (p pointer[T]) at(i int) pointer[T] { return p + pointer[T](bytesOf[T](i)) }

// bytesOf returns the size of n elements in bytes.
func bytesOf[T any](n int) int64 {
	var element T
	return int64(n) * int64(unsafe.Sizeof(element))
}
