// Learning a dictionary, after encode.cu has made the codes A[words × atoms] of a batch of
// rows Y[words × dim]:
//
//     remember      G = keep·G + AᵀA,  B = keep·B + AᵀY
//     decode        P = GD, which B would be if no atom were to move (decode.cu)
//     move_atoms    each atom of a block in turn
//     remember      P += G[·, block] · moves, for the atoms after the block; and so on
//
// and before the next batch, whose codes need ‖D‖₂², remember makes DᵀD, and power finds its
// largest eigenvalue.
//
// Where an atom goes depends on where those before it went. One launch an atom would be
// thousands, each of a product of one row. A block's atoms move in one launch, on one SM,
// and what that means for the others is one product, on all of them. G is symmetric: its rows
// stand for its columns.
#include "product.cuh"

// remember: sums[atoms × dim] = keep·sums + codesᵀ · rows
//
// with codes[words × atoms] and rows[words × dim]. The reduction runs along the columns of
// both factors; see product.cuh.
//
// Floor, in bytes: 4·(words·atoms + words·dim + 2·atoms·dim); in flops: 2·words·atoms·dim,
// three times that for fp32. For G of 4096 words and 3000 atoms on an H200: 170 MB, if the
// codes come twice, 40 µs at 4.3 TB/s, and 74 Gflop, 0.25 ms if mma.sync does 300 TFLOP/s
// in TF32, a fifth of what the 50 products of the codes take for rows of 300. Half of G
// would do.
//
// Shape: correlate's 128 × 128, as atoms are many and the result is read and written
// whole.
template <bool SPLIT>
__device__ __forceinline__ void remember(const Remember& args)
{
    using P = Product<float, REMEMBER_ROWS, REMEMBER_COLUMNS, REMEMBER_DEPTH, REMEMBER_STAGES, ALONG_COLUMNS, ALONG_COLUMNS, SPLIT>;
    static_assert(P::SHARED == REMEMBER_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    p.run(shared, {args.codes, s.words, s.code_pitch}, {args.rows, s.words, s.dim_pitch}, s.words);
    const float keep = float_once(args.keep);
    p.each_row([&](int row, int column, int i, int half) {
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < s.dim_pitch) {
                float2* at = reinterpret_cast<float2*>(args.sums + static_cast<size_t>(row) * s.dim_pitch + column + 8 * j);
                float2 sum = *at;
                sum.x = fmaf(keep, sum.x, p.sums[i][j][2 * half]);
                sum.y = fmaf(keep, sum.y, p.sums[i][j][2 * half + 1]);
                *at = sum;
            }
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_tf32(Remember args) { remember<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_fp32(Remember args) { remember<true>(args); }

// move_atoms moves each of the block's atoms d, in turn, to where tr(DᵀGD) − 2tr(DᵀB) +
// pull·‖D − W‖² is least with the others fixed, and gives it its norm again:
//
//     u = (b − p − Σ g_j·move_j + g·d + pull·w)/(g + pull),  move = norm·u/‖u‖ − d,  d += move
//
// where p, b and w are its rows of P, B and W, g is its element of G's diagonal, and g_j are
// those of G with the block's atoms that have moved. Its move is zero if g is not above
// `unused`, or if u is zero or no number.
//
// A thread has columns, of all atoms: it reads nothing that another one writes. What they
// have to tell each other is ‖u‖.
//
// Floor, in bytes: 4·(7·atoms·dim + atoms²). It is latency and one SM's L1 that bound it: at 128
// bytes a clock and 1.8 GHz the moves of 64 atoms of 300, which are 2.4 MB as often as they
// are read, take 11 µs; for 3000 atoms that is half a millisecond.
extern "C" __global__ void __launch_bounds__(MOVE_THREADS) move_atoms(MoveAtoms args)
{
    SHARED_MEMORY(double, warps);
    const Shape& s = args.shape;
    for (int i = 0; i < s.atoms; i++) {
        float* atom = args.atoms + static_cast<size_t>(i) * s.dim_pitch;
        float* move = args.moves + static_cast<size_t>(i) * s.dim_pitch;
        const float* p = args.predicted + static_cast<size_t>(i) * s.dim_pitch;
        const float* b = args.products + static_cast<size_t>(i) * s.dim_pitch;
        const float* w = args.anchors + static_cast<size_t>(i) * s.dim_pitch;
        const float* g = args.gram + static_cast<size_t>(i) * s.code_pitch;
        const float pull = float_once(args.pull), size = 1 / (g[i] + pull);
        const float own = g[i] * size, anchored = pull * size;
        double squares = 0;
        for (int column = threadIdx.x; column < s.dim; column += blockDim.x) {
            float sum = p[column];
            UNROLL_BY(8)
            for (int j = 0; j < i; j++)
                sum = fmaf(g[j], args.moves[static_cast<size_t>(j) * s.dim_pitch + column], sum);
            float u = fmaf(size, b[column] - sum, fmaf(own, atom[column], anchored * w[column]));
            move[column] = u;
            squares += static_cast<double>(u) * u;
        }
        squares = block_sum(warps, squares);
        const bool moves = g[i] > args.unused && squares > 0;
        const float scale = float_once(args.norm / sqrt(squares));
        for (int column = threadIdx.x; column < s.dim; column += blockDim.x) {
            float d = atom[column], change = moves ? fmaf(scale, move[column], -d) : 0;
            move[column] = change;
            atom[column] = d + change;
        }
    }
}

// power finds the largest eigenvalue of a symmetric matrix[dim × dim] without negative ones, by
// power iteration: from the unit vector on that it finds in vector, where it leaves the last
// one, rounded, until the eigenvalue grows by no more than tolerance, relative, or `most` times. It
// has one block.
//
// Floor, in bytes: 4·dim². What it takes depends on the iterations, each of which reads the
// matrix: 300 × 300 from one SM's L1 and L2 some µs.
extern "C" __global__ void __launch_bounds__(POWER_THREADS) power(Power args)
{
    SHARED_MEMORY(double, warps);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    double *vector = args.work, *next = vector + args.dim;
    for (int row = warp; row < args.dim; row += POWER_THREADS / WARP)
        if (lane == 0)
            vector[row] = args.vector[row];
    __syncthreads();
    double value = 0, scale = 1; // scale·vector has norm 1
    for (int n = 0; n < args.most; n++) {
        double product = 0, squares = 0; // of vector and what the matrix makes of it
        for (int row = warp; row < args.dim; row += POWER_THREADS / WARP) {
            const float* elements = args.matrix + static_cast<size_t>(row) * args.dim_pitch;
            double part = 0; // that the lane has
            for (int i = lane; i < args.dim; i += WARP)
                part += elements[i] * vector[i];
            const double dot = warp_sum(part);
            product += vector[row] * part;
            squares += dot * part;
            if (lane == 0)
                next[row] = scale * dot;
        }
        const double before = value;
        value = scale * scale * block_sum(warps, product);
        scale = 1 / (scale * sqrt(block_sum(warps, squares)));
        double* last = vector;
        vector = next;
        next = last;
        if (!(value - before > args.tolerance * value)) // nor if it is no number
            break;
    }
    for (int row = warp; row < args.dim; row += POWER_THREADS / WARP)
        if (lane == 0)
            args.vector[row] = float(scale * vector[row]);
    if (threadIdx.x == 0)
        *args.value = value;
}

// gather copies those rows that index names, with their padding: batch[i] = rows[index[i]]. A
// warp takes a row at a time, and a lane 16 bytes.
//
// Floor, in bytes: 8·words·dim.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) gather(Gather args)
{
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        const float4* from = reinterpret_cast<const float4*>(args.rows + static_cast<long long>(args.index[row]) * args.shape.dim_pitch);
        float4* to = reinterpret_cast<float4*>(args.batch + row * args.shape.dim_pitch);
        for (int i = threadIdx.x % WARP; i < args.shape.dim_pitch / 4; i += WARP)
            to[i] = from[i];
    }
}
