//go:build gpu

package kernels

// The shapes of launches. The kernels have the same numbers (product.cuh,
// body.cu, codes.cu, encode.cu, random.cu).

// grid is the shape of a launch.
type grid struct {
	x, y    int // blocks
	threads int // a block
	shared  int // bytes of dynamic shared memory a block
}

// tile is what a block of a product kernel computes.
type tile struct {
	rows, columns int
	shared        int // bytes
}

const productThreads = 256

var (
	decodeTile     = tile{128, 64, 82944}
	accumulateTile = tile{128, 64, 79872}
	correlateTile  = tile{128, 128, 73728}
)

// Columns of the result of fista, in tiles of correlate, that a warp has; a row's
// sum has a part for each.
const fistaColumns = 32

func (t tile) grid(rows, columns int) grid {
	return grid{divide(rows, t.rows), divide(columns, t.columns), productThreads, t.shared}
}

// Warps a block of the kernels that take a row a warp.
const (
	bodyWarps     = 8
	bodyShared    = 48 << 10 // bytes; a body that needs more gets fewer warps
	finishWarps   = 8
	packWarps     = 8
	randomWarps   = 8
	residualWarps = 8
	keepWarps     = 8
)

// The kernel that adds up rows has one block.
const (
	totalsThreads = 1024
	totalsShared  = 256 // bytes: a float64 a warp
)

func divide(n, by int) int { return (n + by - 1) / by }
