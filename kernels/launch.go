package kernels

import (
	"embed"
	"math/bits"
	"unsafe"
)

//go:embed ptx/*.ptx
var ptx embed.FS

// launch is a kernel launch: the kernel, its arguments and its grid.
type launch struct {
	kernel    string
	arguments unsafe.Pointer // points to a struct of abi.go
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
	rememberTile   = tile{rememberSize, rememberSize, rememberShared}
	squareTile     = tile{squareSize, squareSize, squareShared}

	halfDecodeTile     = tile{halfDecodeRows, halfDecodeColumns, halfDecodeShared}
	halfAccumulateTile = tile{halfAccumulateRows, halfAccumulateColumns, halfAccumulateShared}
)

func (t tile) grid(rows, columns int32) grid {
	return grid{divide(int(rows), t.rows), divide(int(columns), t.columns), productThreads, t.shared}
}

// rowGrid returns the grid of a kernel that processes one row per warp.
func rowGrid(rows int32) grid { return grid{divide(int(rows), rowThreads/warp), 1, rowThreads, 0} }

// divide returns ⌈n/by⌉.
func divide(n, by int) int { return (n + by - 1) / by }

func (k decode) launch(p Precision) launch {
	return launch{"decode_" + string(p), unsafe.Pointer(&k), decodeTile.grid(k.shape.rows, k.shape.dimPitch)}
}

// launch makes k.shares blocks share each tile. If k.shares is 0, one block computes a tile.
func (k decodeHalf) launch() launch {
	k.shares = max(1, k.shares)
	g := halfDecodeTile.grid(k.shape.rows, k.shape.dimPitch)
	g.x *= int(k.shares)
	return launch{"decode_fp16", unsafe.Pointer(&k), g}
}

func (k accumulate) launch(p Precision) launch {
	return launch{"accumulate_" + string(p), unsafe.Pointer(&k), accumulateTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k updateHalf) launch() launch {
	return launch{"update_fp16", unsafe.Pointer(&k), halfAccumulateTile.grid(k.shape.atoms, k.shape.dimPitch)}
}

func (k correlate) launch(p Precision) launch {
	return launch{"correlate_" + string(p), unsafe.Pointer(&k), correlateTile.grid(k.shape.rows, k.shape.codePitch)}
}

func (k updateCodes) launch() launch {
	return launch{"update_codes", unsafe.Pointer(&k), grid{divide(int(k.shape.rows), updateCodesRows), 1, updateCodesThreads, updateCodesShared}}
}

func (k roundAtoms) launch() launch {
	return launch{"round_atoms", unsafe.Pointer(&k), rowGrid(k.shape.atoms)}
}

func (k scaleAtoms) launch() launch {
	return launch{"scale_atoms", unsafe.Pointer(&k), grid{1, 1, scaleThreads, scaleShared}}
}

func (k search) launch(with searchKernel) launch {
	threads, shared := searchThreads, searchShared
	if with.length > 0 {
		threads, shared = with.warps*warp, with.shared()
	}
	return launch{with.name, unsafe.Pointer(&k), grid{divide(int(k.shape.rows), searchRows), 1, threads, shared}}
}

// launch assigns shared memory to the state of a row, and then to as many of the row's atoms as fit. If a half or a third
// of the memory holds at least three fifths of these atoms, the block uses only this part, so that an SM runs two or three
// blocks. For 90 atoms of 300 elements, an H200 takes 0.74 ms per 8,192 rows with three blocks, and 0.81 ms with two.
func (k polish) launch(maxShared int) launch {
	const reserved = 1 << 10 // bytes that the driver reserves per block
	shared, most, atom := polishShared, int(k.maxNonzeros), 4*int(k.shape.dimPitch)
	if staged := shared + 3*4*roundUp(most, polishBatch) + atom; staged <= maxShared {
		fit := func(shared int) int {
			if n := max(0, shared-staged) / atom; n < most {
				return n / polishBatch * polishBatch
			}
			return most
		}
		full := fit(maxShared)
		n := full
		for blocks := 2; blocks <= 3; blocks++ {
			if part := fit((maxShared+reserved)/blocks - reserved); 5*part >= 3*full {
				n = part
			}
		}
		shared, k.staged, k.gathered = staged+n*atom, true, int32(n)
	}
	return launch{"polish", unsafe.Pointer(&k), grid{int(k.shape.rows), 1, polishThreads, shared}}
}

func (k remember) launch() launch {
	if k.products == 0 {
		return launch{"square", unsafe.Pointer(&k), squareTile.grid(k.shape.atoms, k.shape.codePitch)}
	}
	g := rememberTile.grid(k.shape.atoms, k.shape.codePitch)
	g.y += rememberTile.grid(k.shape.atoms, k.shape.dimPitch).y
	return launch{"remember", unsafe.Pointer(&k), g}
}

// cooperative is the name of the kernel whose blocks wait for each other. All its blocks must run at once.
const cooperative = "jacobi"

// launch starts at most one thread block per multiprocessor. Its number of teams is a power of two, so that a block of
// atoms is a whole number of chunks (the rows that a thread block processes at a time).
func (k jacobi) launch(multiprocessors int) launch {
	k.rowThreads = int32(min(jacobiThreads/2, roundUp(int(k.shape.dimPitch)/4, warp)))
	teams := 1 << (bits.Len(uint(jacobiThreads/k.rowThreads)) - 1)
	blocks := min(multiprocessors, divide(int(k.shape.atoms), jacobiRows*teams))
	return launch{cooperative, unsafe.Pointer(&k), grid{blocks, 1, teams * int(k.rowThreads), jacobiShared}}
}

func (k power) launch() launch {
	return launch{"power", unsafe.Pointer(&k), grid{1, 1, powerThreads, powerShared}}
}

func (k gather) launch() launch {
	return launch{"gather", unsafe.Pointer(&k), rowGrid(k.shape.rows)}
}

// withHalves returns the name of the kernel for float16 or for float32 matrices.
func withHalves(kernel string, halves bool) string {
	if halves {
		return kernel + "_fp16"
	}
	return kernel
}

func (k finishCodes) launch(p Precision) launch {
	return launch{withHalves("finish_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.rows)}
}

func (k packCodes) launch(p Precision) launch {
	return launch{withHalves("pack_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.rows)}
}

func (k randomCodes) launch(p Precision) launch {
	return launch{withHalves("random_codes", p == fp16), unsafe.Pointer(&k), rowGrid(k.shape.rows)}
}

func (k body) launch() launch {
	const limit = 48 << 10 // bytes of shared memory; if a full block needs more, it gets fewer warps
	warps := max(1, min(rowThreads/warp, limit/k.rowMemory()))
	return launch{"body", unsafe.Pointer(&k), grid{divide(int(k.rows), warps), 1, warps * warp, warps * k.rowMemory()}}
}

func (k body) rowMemory() int {
	return roundUp(8*int(k.numberCount), 16) + 4*int(k.temps)*roundUp(int(k.width), 4)
}

func (k totals) launch() launch {
	return launch{"totals", unsafe.Pointer(&k), grid{1, 1, totalsThreads, totalsShared}}
}

func (p pointer[T]) at(i int) pointer[T] { return p + pointer[T](bytesOf[T](i)) }

func bytesOf[T any](n int) int64 {
	var element T
	return int64(n) * int64(unsafe.Sizeof(element))
}
