// Online dictionary learning (Mairal et al., 2010), after polish.cu has computed the codes
// A[rows × atoms] of a mini-batch of rows Y[rows × dim]:
//
//     remember   G = decay·G + AᵀA,  B = decay·B + AᵀY
//     decode     P = GD (decode.cu)
//     jacobi     updates the atoms of a block, all at once; then P += G[·, block] · its moves;
//                then the next block
//
// Before the next mini-batch, FISTA's step size needs ‖D‖₂²: square computes DᵀD, and
// power its largest eigenvalue.
//
// The update of a block depends on the updates of the blocks before it, but the updates of a
// block's atoms don't depend on each other. G is symmetric, so its rows serve as columns.
#include "product.cuh"

// remember: gram[atoms × atoms] = decay·gram + codesᵀ · codes
//           products[atoms × dim] = decay·products + codesᵀ · rows, unless products is null
//
// with codes[rows × atoms] and rows[rows × dim]. decay is the forgetting factor. The
// reduction runs along the columns of both factors (see product.cuh). Only the tiles of gram on and below
// the diagonal are computed. The grid has the tiles of a row of gram, then the tiles of products, so
// that products fill the multiprocessors that gram leaves idle at the end.
//
// Factors are TF32, whatever the precision of the paper's training.
//
// Lower bounds. Bytes: 4·(rows·(atoms + dim) + 2·atoms·(atoms + dim)). Flops: rows·atoms·(atoms + 2·dim).
// For 4096 rows of 300 and 3000 atoms on an H200: 133 MB, 31 µs at 4.3 TB/s, and 44 Gflop, 0.15 ms if
// mma.sync does 300 TFLOP/s in TF32.
//
// Tile: 128 × 128 as in correlate, because there are many atoms and the whole result is read
// and written.
//
// square is remember without products, for few columns and many rows, as DᵀD has. Its tile is 64 × 64, because the time is
// the latency of rows/REMEMBER_DEPTH steps.
template <int SIZE, int STAGES, int SHARED>
__device__ __forceinline__ void add_products(float* shared, const Remember& args)
{
    using P = Product<float, SIZE, SIZE, REMEMBER_DEPTH, STAGES, ALONG_COLUMNS, ALONG_COLUMNS>;
    static_assert(P::SHARED == SHARED, "the host asks for this much");
    const Shape& s = args.shape;
    P p;
    const int gram_columns = (s.code_pitch + SIZE - 1) / SIZE * SIZE;
    const bool symmetric = p.column < gram_columns;
    if (symmetric && p.column > p.row)
        return; // the block of the mirrored tile writes this tile
    if (!symmetric)
        p.column -= gram_columns;
    float* const sums = symmetric ? args.gram : args.products;
    const int pitch = symmetric ? s.code_pitch : s.dim_pitch;
    p.run(shared, {args.codes, s.rows, s.code_pitch}, {symmetric ? args.codes : args.rows, s.rows, pitch}, s.rows);
    const float decay = float_once(args.decay);
    const bool mirrored = symmetric && p.column < p.row;
    p.each_row([&](int row, int column, int i, int half) {
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < pitch) {
                float2* at = reinterpret_cast<float2*>(sums + static_cast<size_t>(row) * pitch + column + 8 * j);
                float2 sum = decay == 0 ? make_float2(0, 0) : *at; // 0 even if the old sum is NaN
                sum.x = fmaf(decay, sum.x, p.sums[i][j][2 * half]);
                sum.y = fmaf(decay, sum.y, p.sums[i][j][2 * half + 1]);
                *at = sum;
                if (mirrored) { // eight lanes write 32 bytes, a sector
                    float* across = sums + static_cast<size_t>(column + 8 * j) * pitch + row;
                    across[0] = sum.x;
                    across[pitch] = sum.y;
                }
            }
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember(Remember args)
{
    SHARED_MEMORY(float, shared);
    add_products<REMEMBER_SIZE, REMEMBER_STAGES, REMEMBER_SHARED>(shared, args);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS) square(Remember args)
{
    SHARED_MEMORY(float, shared);
    add_products<SQUARE_SIZE, SQUARE_STAGES, SQUARE_SHARED>(shared, args);
}

// jacobi updates the atoms, block after block, by graph.Learn. All atoms of a block are updated from
// the same P = GD. For each block, it first adds the moves of the previous block to the rows p of P,
// from the block's first row on, with the rows g of G:
//
//     p += Σ_j g_j·move_j, over the atoms j of the previous block
//
// Then it updates each atom of the block, with the rows d, b and w of D, B and W, and the diagonal
// element g of G:
//
//     h = max(g, Σ_j |g_j| / relaxation), over the atoms j of the block
//     u = (h·d − (p − b) + anchor_weight·w) / (h + anchor_weight)
//     move = norm·u/‖u‖ − d,  d += move
//
// The move is zero if g ≤ min_usage, and if u is zero or NaN. It replaces the row of P.
//
// A thread block processes a chunk of rows at a time, a part of a block of atoms: row_threads threads process JACOBI_ROWS
// rows, four columns at a time. Chunk c belongs to thread block c mod gridDim.x. A thread block counts its updated chunks in
// `updated`, which must be 0 before the launch. The others wait until the previous block is updated. In the
// meantime they add earlier moves to rows of later blocks. All thread blocks must therefore run at once.
//
// Lower bounds. Bytes, which L2 holds: for each block of atoms (8·dim + 4·BLOCK_ATOMS)·rows, and 4·BLOCK_ATOMS·dim
// per multiprocessor for the moves. Flops: 2·BLOCK_ATOMS·dim·rows. A block of 3000 atoms of 300 has 1500 later rows
// on average. On an H100, its 9 MB take 2 µs at 5.5 TB/s, and its 29 Mflop 0.5 µs at 60 TFLOP/s. The chain from the
// moves of a block to the moves of the next one takes as long.
extern "C" __global__ void __launch_bounds__(JACOBI_THREADS, 1) jacobi(Jacobi args)
{
    constexpr int ROWS = JACOBI_ROWS;
    static_assert(BLOCK_ATOMS == WARP && BLOCK_ATOMS % ROWS == 0, "a lane has one g_j");
    static_assert(4 * ROWS * JACOBI_THREADS / WARP == JACOBI_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    const int team = threadIdx.x / args.row_threads, warps = args.row_threads / WARP; // a team processes ROWS rows
    const int chunk = ROWS * (blockDim.x / args.row_threads), stride = chunk * gridDim.x;
    const int lane = threadIdx.x % WARP, column = 4 * (threadIdx.x % args.row_threads), step = 4 * args.row_threads;
    const float anchor_weight = float_once(args.anchor_weight * *args.loss), norm = float_once(args.norm);
    const float inverse_relaxation = float_once(args.inverse_relaxation);
    const float4 zero = make_float4(0, 0, 0, 0);
    int own = chunk * blockIdx.x; // the thread block's first chunk that is not updated
    UNROLL_BY(1)
    for (int block = 0; block < s.atoms; block += BLOCK_ATOMS) {
        while (own < block)
            own += stride;
        if (own >= s.atoms)
            return;
        const float* const last_moves = args.decoded + static_cast<long long>(block - BLOCK_ATOMS) * s.dim_pitch;
        UNROLL_BY(1)
        for (int start = own; start < s.atoms; start += stride) {
            const bool updates = start < block + BLOCK_ATOMS;
            if (block == 0 && !updates)
                break;
            // Loops over rows load before they compute, so that their loads overlap.
            const int first = start + team * ROWS, rows = min(ROWS, s.atoms - first);
            const int begin = rows > 0 ? column : s.dim_pitch;
            long long at[ROWS]; // rows past the end repeat the last row
            const float* gram[ROWS]; // from the block's first column on
            float g[ROWS], h[ROWS], size[ROWS], scale[ROWS], squares[ROWS] = {};
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                const int row = min(first + r, s.atoms - 1);
                at[r] = static_cast<long long>(row) * s.dim_pitch;
                gram[r] = args.gram + static_cast<long long>(row) * s.code_pitch + block;
                if (updates) {
                    g[r] = gram[r][row - block];
                    h[r] = block + lane < s.atoms ? fabsf(gram[r][lane]) : 0;
                }
            }
            if (updates) {
                UNROLL
                for (int r = 0; r < ROWS; r++) {
                    const float bound = warp_sum(h[r]) * inverse_relaxation;
                    h[r] = bound > g[r] ? bound : g[r];
                    size[r] = 1 / ((h[r] + anchor_weight) * norm); // u in units of norm: its square doesn't overflow
                }
            }
            if (block > 0 && start == own) {
                if (threadIdx.x == 0)
                    await(args.updated, static_cast<unsigned>(block) / chunk);
                __syncthreads();
            }
            UNROLL_BY(1)
            for (int i = begin; i < s.dim_pitch; i += step) {
                float4 p[ROWS], others[ROWS]; // p, then p − b; the other summands of u
                UNROLL
                for (int r = 0; r < ROWS; r++) {
                    p[r] = load(args.decoded + at[r] + i);
                    if (updates) {
                        p[r] = add(-1, load(args.products + at[r] + i), p[r]);
                        others[r] = add(h[r], load(args.atoms + at[r] + i), add(anchor_weight, load(args.anchors + at[r] + i), zero));
                    }
                }
                if (block > 0) {
                    UNROLL_BY(4)
                    for (int j = 0; j < BLOCK_ATOMS; j += 4) {
                        float4 moves[4];
                        UNROLL
                        for (int k = 0; k < 4; k++)
                            moves[k] = load(last_moves + static_cast<long long>(j + k) * s.dim_pitch + i);
                        UNROLL
                        for (int r = 0; r < ROWS; r++) {
                            const float4 c = load(gram[r] + (j - BLOCK_ATOMS));
                            p[r] = add(c.w, moves[3], add(c.z, moves[2], add(c.y, moves[1], add(c.x, moves[0], p[r]))));
                        }
                    }
                }
                UNROLL
                for (int r = 0; r < ROWS; r++) {
                    if (updates) {
                        p[r] = add(size[r], add(-1, p[r], others[r]), zero);
                        squares[r] += p[r].x * p[r].x + p[r].y * p[r].y + (p[r].z * p[r].z + p[r].w * p[r].w);
                    }
                    if (r < rows)
                        store(args.decoded + at[r] + i, p[r]);
                }
            }
            if (!updates)
                continue;
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                squares[r] = warp_sum(squares[r]);
                if (lane == 0)
                    shared[threadIdx.x / WARP * ROWS + r] = squares[r];
                squares[r] = 0;
            }
            __syncthreads();
            UNROLL_BY(1)
            for (int warp = team * warps; warp < (team + 1) * warps; warp++) {
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    squares[r] += shared[warp * ROWS + r];
            }
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                scale[r] = norm / sqrtf(squares[r]);
                if (!(g[r] > args.min_usage && squares[r] > 0))
                    scale[r] = 0;
            }
            UNROLL_BY(1)
            for (int i = begin; i < s.dim_pitch; i += step) {
                float4 d[ROWS], move[ROWS];
                UNROLL
                for (int r = 0; r < ROWS; r++) {
                    d[r] = load(args.atoms + at[r] + i);
                    move[r] = add(scale[r], load(args.decoded + at[r] + i), make_float4(-d[r].x, -d[r].y, -d[r].z, -d[r].w));
                }
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    if (r < rows) {
                        if (!(scale[r] > 0))
                            move[r] = zero;
                        store(args.decoded + at[r] + i, move[r]);
                        store(args.atoms + at[r] + i, add(1, move[r], d[r]));
                    }
            }
            __syncthreads();
            if (threadIdx.x == 0)
                post(args.updated);
        }
    }
}

// power computes the largest eigenvalue of a positive semidefinite matrix[dim × dim] by power
// iteration. It starts from the unit vector in vector and stores the last iterate, rounded,
// there. It stops when the relative growth of the eigenvalue is at most tolerance, or after
// max_iterations. It also stores the step size, or 0 if the step size is outside the normal
// range of float, as backend.StepOf defines it. It uses one block.
//
// Lower bound: 4·dim² bytes. Each iteration reads the matrix: 300 × 300 are 360 KB, 3 µs at the
// 64 bytes per clock that an SM reads from L2.
extern "C" __global__ void __launch_bounds__(POWER_THREADS, 1) power(Power args)
{
    SHARED_MEMORY(double, warps);
    constexpr int TOGETHER = 5, WARPS = POWER_THREADS / WARP; // rows that a warp loads at a time
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    double *vector = args.work, *next = vector + args.dim;
    UNROLL_BY(1)
    for (int i = threadIdx.x; i < args.dim; i += POWER_THREADS)
        vector[i] = args.vector[i];
    __syncthreads();
    double value = 0, scale = 1; // scale·vector has norm 1
    for (int n = 0; n < args.max_iterations; n++) {
        double product = 0, squares = 0; // ⟨vector, matrix·vector⟩ and ‖matrix·vector‖²
        for (int first = warp; first < args.dim; first += TOGETHER * WARPS) {
            double parts[TOGETHER] = {}, dots[TOGETHER], own[TOGETHER]; // parts: the lane's partial sums
            const float* rows[TOGETHER];
            UNROLL
            for (int r = 0; r < TOGETHER; r++) // rows past the end repeat the last row
                rows[r] = args.matrix + static_cast<size_t>(min(first + r * WARPS, args.dim - 1)) * args.dim_pitch;
            UNROLL_BY(2)
            for (int i = lane; i < args.dim; i += WARP) {
                const double x = vector[i];
                UNROLL
                for (int r = 0; r < TOGETHER; r++)
                    parts[r] += rows[r][i] * x;
            }
            UNROLL
            for (int r = 0; r < TOGETHER; r++) {
                own[r] = first + r * WARPS < args.dim ? vector[first + r * WARPS] : 0;
                dots[r] = parts[r];
            }
            UNROLL
            for (int apart = WARP / 2; apart > 0; apart /= 2) { // as warp_sum does
                double others[TOGETHER];
                UNROLL
                for (int r = 0; r < TOGETHER; r++)
                    others[r] = __shfl_xor_sync(ALL_LANES, dots[r], apart);
                UNROLL
                for (int r = 0; r < TOGETHER; r++)
                    dots[r] += others[r];
            }
            UNROLL
            for (int r = 0; r < TOGETHER; r++)
                if (first + r * WARPS < args.dim) {
                    product += own[r] * parts[r];
                    squares += dots[r] * parts[r];
                    if (lane == 0)
                        next[first + r * WARPS] = scale * dots[r];
                }
        }
        const double before = value;
        value = scale * scale * block_sum(warps, product);
        scale = 1 / (scale * sqrt(block_sum(warps, squares)));
        double* last = vector;
        vector = next;
        next = last;
        if (!(value - before > args.tolerance * value)) // also stops at a NaN
            break;
    }
    UNROLL_BY(1)
    for (int i = threadIdx.x; i < args.dim; i += POWER_THREADS)
        args.vector[i] = float(scale * vector[i]);
    if (threadIdx.x == 0) {
        const double step = 1 / (args.margin * value);
        *args.value = value;
        *args.step = 2 * step >= 0x1p-126 && 2 * step <= 0x1.fffffep127 ? step : 0;
    }
}

// gather copies rows with their padding: batch[i] = rows[index[i]]. A warp processes one row
// at a time, and a lane 16 bytes.
//
// Lower bound: 8·rows·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) gather(Gather args)
{
    for (long long row = first_row(); row < args.shape.rows; row += row_step()) {
        const float4* from = reinterpret_cast<const float4*>(args.rows + static_cast<long long>(args.index[row]) * args.shape.dim_pitch);
        float4* to = reinterpret_cast<float4*>(args.batch + row * args.shape.dim_pitch);
        for (int i = threadIdx.x % WARP; i < args.shape.dim_pitch / 4; i += WARP)
            to[i] = from[i];
    }
}
