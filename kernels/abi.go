//go:build gpu

package kernels

// What Go and the kernels share. From this file and instructions.go "go generate"
// makes abi.cuh: a constant becomes a constexpr, a struct one of the same layout. So
// there are no imports here, structs have fields of fixed sizes, and padding is written
// out.

// warp is how many threads work in step.
const warp = 32

// rowThreads is the most threads of a block in those kernels in which a warp takes
// one row after the other. Any number of blocks will do.
const rowThreads = 256

// A block of totals: its threads, and its dynamic shared memory in bytes, a double
// a warp.
const (
	totalsThreads = 1024
	totalsShared  = 8 * totalsThreads / warp
)

// A block of decode, accumulate and correlate, and of fista, which is as correlate,
// computes a tile of the result, rows × columns. It walks along the reduction by depth,
// and has so many stages of both factors in shared memory; see product.cuh. Shared is
// that memory in bytes: below the 99 KB of the smaller chips (sm_86, sm_89), and little
// enough for two blocks on an SM of the larger (sm_80, sm_90).
const (
	productThreads = 256

	decodeRows    = 128
	decodeColumns = 64
	decodeDepth   = 32
	decodeStages  = 3
	decodeShared  = 82944

	accumulateRows    = 128
	accumulateColumns = 64
	accumulateDepth   = 32
	accumulateStages  = 3
	accumulateShared  = 79872

	correlateRows    = 128
	correlateColumns = 128
	correlateDepth   = 32
	correlateStages  = 2 // three would need 108 KB
	correlateShared  = 73728
)

// fistaColumns is how many columns of the result of fista a warp has: a sum over a row
// has a part for each.
const fistaColumns = 32

// A block of peak_tf32, and the sums that each of its warps adds to.
const (
	peakThreads = 256
	peakChains  = 8
)

// pointer is the address of elements in the device's memory; 0 is none.
type pointer[T any] uintptr

// shape is the sizes of matrices. Codes are words × atoms, dictionaries atoms × dim,
// vectors words × dim, all row-major. Rows of codes begin codePitch floats after each
// other, those of the others dimPitch: what is between, less than 16 bytes, are zeros.
type shape struct {
	words, atoms, dim   int32
	codePitch, dimPitch int32
}

// place is where a vector operand of the row machine lives: row r begins pitch·r floats
// after data. Without data it is the temporary row number pitch.
type place struct {
	data  pointer[float32]
	pitch int64
}

// decode is product = codes · atoms.
type decode struct {
	product pointer[float32] // words × dim
	codes   pointer[float32]
	atoms   pointer[float32]
	shape   shape
	_       [4]byte
}

// accumulate is product = codesᵀ · residuals and squares = (codes∘codes)ᵀ ·
// (residuals∘residuals).
type accumulate struct {
	product   pointer[float32] // atoms × dim
	squares   pointer[float32] // atoms × dim
	codes     pointer[float32]
	residuals pointer[float32] // words × dim
	shape     shape
	_         [4]byte
}

// correlate is a step of dual averaging of codes, whose sums are S and Q, words × atoms,
// with p = residuals · atomsᵀ:
//
//	S += gradient·p,  Q += square·p²,  u = |S| − threshold
//	code = 0 where u ≤ 0, else −sgn(S)·rate·u/√(Q + 1e-30); max(code, 0) if nonnegative
type correlate struct {
	codes, sumG, sumQ pointer[float32]
	residuals         pointer[float32] // words × dim
	atoms             pointer[float32]
	gradient, square  float64
	threshold, rate   float64
	shape             shape
	nonnegative       bool
	_                 [3]byte
}

// finishCodes multiplies rows of codes by factors, and counts what is in them.
type finishCodes struct {
	codes    pointer[float32]
	factors  pointer[float64] // one a word; none: all are 1
	nonzeros pointer[float64] // result, one a word
	l1       pointer[float64] // result, one a word: the sum of absolute values
	used     pointer[int32]   // result, one an atom: 1 if any word has it, else as it was
	shape    shape
	_        [4]byte
}

// packCodes gathers the nonzeros of each row of codes.
type packCodes struct {
	codes  pointer[float32]
	starts pointer[int64]   // one a word: where its nonzeros begin in index and value
	index  pointer[int32]   // result: the columns of nonzeros
	value  pointer[float32] // result: the nonzeros themselves
	shape  shape
	_      [4]byte
}

// randomCodes draws the codes that training starts from.
type randomCodes struct {
	codes     pointer[float32]
	firstWord int64 // number of the first row's word
	seed      uint64
	scale     float64 // numbers are between −scale and scale
	shape     shape
	_         [4]byte
}

// fista is a step b' = shrink(z + size·residuals·atomsᵀ) from codes b and those before,
// a, where z = b + momentum·(b − a), for each word with a momentum of its own.
type fista struct {
	codes       pointer[float32] // b
	before      pointer[float32] // a, which b' replaces
	against     pointer[float32] // result, words × parts: ⟨z − b', b' − b⟩
	residuals   pointer[float32] // words × dim
	atoms       pointer[float32]
	momenta     pointer[float32] // one a word
	size        float64
	threshold   float64 // of the shrinkage
	shape       shape
	parts       int32
	nonnegative bool
	support     bool // whether codes that are 0 in b and a stay 0
	_           [6]byte
}

// fistaResiduals is residuals = y − zD, from the decoded codes bD and those before, aD.
// A word's momentum is 0 if the sum of its parts of against is positive.
type fistaResiduals struct {
	residuals pointer[float32] // result, words × dim
	momenta   pointer[float32] // result, one a word
	losses    pointer[float64] // result, one a word: the sum of squared residuals
	y         pointer[float32] // words × dim
	decoded   pointer[float32] // words × dim
	last      pointer[float32] // words × dim
	against   pointer[float32] // words × parts
	momentum  float64
	shape     shape
	parts     int32
}

// keepLargest sets all but the most largest magnitudes of each row of codes to 0, and
// copies the row.
type keepLargest struct {
	codes  pointer[float32]
	before pointer[float32] // the copy, words × atoms
	shape  shape
	most   int32
}

// body runs a program of the row machine on each of some rows.
type body struct {
	program      pointer[instruction]
	places       pointer[place]   // of vector operands
	input        pointer[float32] // data of the first of them, in place of what it says
	numbers      pointer[float64] // before each row
	rowNumbers   pointer[float64] // what opStore stores: one a row, those of the next number rowPitch after
	rowPitch     int64
	instructions int32
	numberCount  int32
	temps        int32 // temporary rows
	rows, width  int32 // of vectors
	_            [4]byte
}

// totals runs a program of the row machine once.
type totals struct {
	program      pointer[instruction]
	numbers      pointer[float64] // read and written
	rowNumbers   pointer[float64] // as body left them
	rowPitch     int64
	instructions int32
	rows         int32
}

// peakTF32 repeats products of matrices in registers.
type peakTF32 struct {
	out   pointer[float32] // result, one a thread
	steps int32
	_     [4]byte
}
