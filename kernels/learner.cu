// Online dictionary learning (Mairal et al., 2010), after encode.cu has computed the codes
// A[words × atoms] of a mini-batch of rows Y[words × dim]:
//
//     remember      G = decay·G + AᵀA,  B = decay·B + AᵀY
//     decode        F = GD (decode.cu)
//     forces        F −= diag(G)·D + B + anchor_weight·W: the force on each atom
//     move_atoms    block coordinate descent: updates the atoms of a block one by one
//     remember      F += G[·, block] · moves, for the atoms after the block; then the next block
//
// Before the next mini-batch, FISTA's step size needs ‖D‖₂²: remember computes DᵀD, and
// power its largest eigenvalue.
//
// The update of an atom depends on the updates of all previous atoms. One launch per atom
// would mean thousands of launches, each with a product of one row. Instead move_atoms
// updates the 64 atoms of a block in one launch, on one SM, and a single product on all SMs
// applies their moves to the forces on the later atoms. G is symmetric, so its rows serve as
// columns.
#include "product.cuh"

// remember: sums[atoms × dim] = decay·sums + codesᵀ · rows
//
// with codes[words × atoms] and rows[words × dim]. decay is the forgetting factor. The
// reduction runs along the columns of both factors (see product.cuh). With `symmetric`, rows
// are the codes, and only the tiles on and below the diagonal are computed.
//
// Lower bounds. Bytes: 4·(words·atoms + words·dim + 2·atoms·dim). Flops: 2·words·atoms·dim,
// three times as many for fp32. If symmetric, half of both, except for the bytes of the sums.
// For G of 4096 words and 3000 atoms on an H200: 120 MB, 28 µs at 4.3 TB/s, and 37 Gflop,
// 0.12 ms if mma.sync does 300 TFLOP/s in TF32. This is a tenth of the time of the 50 products
// that encode rows of 300.
//
// Tile: 128 × 128 as in correlate, because there are many atoms and the whole result is read
// and written.
template <bool SPLIT>
__device__ __forceinline__ void remember(const Remember& args)
{
    using P = Product<float, REMEMBER_ROWS, REMEMBER_COLUMNS, REMEMBER_DEPTH, REMEMBER_STAGES, ALONG_COLUMNS, ALONG_COLUMNS, SPLIT>;
    static_assert(P::SHARED == REMEMBER_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    if (args.symmetric && p.column > p.row)
        return; // the block of the mirrored tile writes this tile
    p.run(shared, {args.codes, s.words, s.code_pitch}, {args.rows, s.words, s.dim_pitch}, s.words);
    const float decay = float_once(args.decay);
    const bool mirrored = args.symmetric && p.column < p.row;
    p.each_row([&](int row, int column, int i, int half) {
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < s.dim_pitch) {
                float2* at = reinterpret_cast<float2*>(args.sums + static_cast<size_t>(row) * s.dim_pitch + column + 8 * j);
                float2 sum = decay == 0 ? make_float2(0, 0) : *at; // ignores a NaN
                sum.x = fmaf(decay, sum.x, p.sums[i][j][2 * half]);
                sum.y = fmaf(decay, sum.y, p.sums[i][j][2 * half + 1]);
                *at = sum;
                if (mirrored) { // eight lanes write 32 bytes, a sector
                    float* across = args.sums + static_cast<size_t>(column + 8 * j) * s.dim_pitch + row;
                    across[0] = sum.x;
                    across[s.dim_pitch] = sum.y;
                }
            }
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_tf32(Remember args) { remember<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_fp32(Remember args) { remember<true>(args); }

// forces computes from P = GD the force on each atom d, which sums the effects of the other
// atoms, the rows and the anchors:
//
//     f = p − g·d − b − anchor_weight·w
//
// p, d, b and w are the atom's rows of P, D, B and W, and g is its diagonal element of G. The
// gradient of tr(DᵀGD) − 2tr(DᵀB) + anchor_weight·‖D − W‖² with respect to d is
// 2(f + (g + anchor_weight)·d). A warp processes one row at a time, and a lane four numbers.
//
// Lower bound: 20·atoms·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) forces(Forces args)
{
    const Shape& s = args.shape;
    const float anchor_weight = float_once(args.anchor_weight);
    for (long long row = first_row(); row < s.atoms; row += row_step()) {
        const float g = args.gram[row * s.code_pitch + row];
        UNROLL_BY(1)
        for (int i = 4 * (threadIdx.x % WARP); i < s.dim_pitch; i += 4 * WARP) {
            const long long at = row * s.dim_pitch + i;
            float4 f = add(-g, load(args.atoms + at), load(args.forces + at));
            f = add(-1, load(args.products + at), f);
            store(args.forces + at, add(-anchor_weight, load(args.anchors + at), f));
        }
    }
}

// InRegisters and InMemory hold a thread's elements of u (see move_atoms) for a group of atoms:
// four columns in registers, or more columns in memory, in the rows of their moves.
struct InRegisters {
    static constexpr int TOGETHER = MOVE_TOGETHER;
    static constexpr bool ONCE = true; // a thread has only four columns
    float4 u[TOGETHER];

    __device__ __forceinline__ InRegisters(int) {}
    __device__ __forceinline__ void begin(float*) {}
    __device__ __forceinline__ float4 get(int k, int) const { return u[k]; }
    __device__ __forceinline__ void set(int k, int, float4 x) { u[k] = x; }
};

struct InMemory {
    static constexpr int TOGETHER = 4; // smaller code for a rare case
    static constexpr bool ONCE = false;
    float4 u[TOGETHER]; // of the current columns
    float* moves;
    int pitch;

    __device__ __forceinline__ InMemory(int p) : pitch(p) {}
    __device__ __forceinline__ void begin(float* rows) { moves = rows; }
    __device__ __forceinline__ float4 get(int k, int column) const { return load(moves + k * pitch + column); }
    __device__ __forceinline__ void set(int k, int column, float4 x) { store(moves + k * pitch + column, x); }
};

// each_column calls f for each of a thread's groups of four columns; with ONCE, for the first only.
template <bool ONCE, typename F>
__device__ __forceinline__ void each_column(int thread, int threads, int pitch, F f)
{
    for (int column = 4 * thread; column < pitch; column += 4 * threads) {
        f(column);
        if (ONCE)
            break;
    }
}

// move_atoms updates each atom d of the block in turn. It minimises tr(DᵀGD) − 2tr(DᵀB) +
// anchor_weight·‖D − W‖² with respect to d, the others fixed, and scales d to its norm:
//
//     u = −(f + Σ g_j·move_j)/(g + anchor_weight),  move = norm·u/‖u‖ − d,  d += move
//
// f is the atom's row of the forces. The sum is over the atoms j of the block that have been
// updated, and g_j is the element of G for d and j. The move is zero if g ≤ min_usage, and if
// u is zero or NaN.
//
// A set of threads holds u of a group of atoms, four columns per thread. The threads of a set
// exchange ‖u‖; other sets need the move. One barrier per atom serves both. While the atoms of
// one group are updated in turn, the sets of later groups subtract each move from their u, one
// barrier later. A set that has finished its group begins another one. The more columns, the
// fewer sets fit: only one if a thread has more than four columns.
//
// Lower bound: 4·(4·atoms·dim + atoms²) bytes. The kernel is bound by latency on one SM:
// sums over lanes, barriers, and a square root. A warp executes about 140 instructions per
// atom on sm_90.
template <typename Atoms>
__device__ __forceinline__ void move_in_turn(const MoveAtoms& args, float* shared)
{
    const Shape& s = args.shape;
    const int pitch = s.dim_pitch, threads = Atoms::ONCE ? (pitch / 4 + WARP - 1) / WARP * WARP : blockDim.x; // of a set
    const int sets = blockDim.x / threads, set = threadIdx.x / threads, thread = threadIdx.x - set * threads;
    const int lane = threadIdx.x % WARP, warps = threads / WARP;
    constexpr int TOGETHER = Atoms::TOGETHER, PARTS = 4 * MOVE_THREADS / WARP;
    // u is divided by the norm, so that its square doesn't overflow.
    float* weights = shared;                               // −g_j/((g + anchor_weight)·norm): row j, column of the atom
    float* sizes = weights + BLOCK_ATOMS * BLOCK_ATOMS;    // −1/((g + anchor_weight)·norm)
    float* norms = sizes + BLOCK_ATOMS;                    // 0 for an unused atom
    float* parts = norms + BLOCK_ATOMS;                    // partial sums of ‖u‖² of two atoms, four per warp
    float* latest = parts + 2 * PARTS;                     // the latest two moves, for other sets
    static_assert(4 * (BLOCK_ATOMS * (BLOCK_ATOMS + 2) + 2 * PARTS) == MOVE_SHARED, "the host asks for this much, and for the moves");
    for (int i = lane; i < BLOCK_ATOMS; i += WARP) {
        const bool exists = i < s.atoms;
        const float g = exists ? args.gram[static_cast<size_t>(i) * s.code_pitch + i] : 1, anchor_weight = float_once(args.anchor_weight), norm = float_once(args.norm);
        const float size = -1 / ((g + anchor_weight) * norm);
        for (int j = threadIdx.x / WARP; j < BLOCK_ATOMS; j += blockDim.x / WARP)
            weights[j * BLOCK_ATOMS + i] = exists && j < i ? size * args.gram[static_cast<size_t>(j) * s.code_pitch + i] : 0;
        if (threadIdx.x < WARP) {
            sizes[i] = size;
            norms[i] = g > args.min_usage ? norm : 0;
        }
    }
    for (int i = threadIdx.x; i < 2 * PARTS; i += blockDim.x)
        parts[i] = 0;
    __syncthreads();

    Atoms own(pitch);
    int first; // atom of the set's group
    // subtract_move subtracts the effect of an atom's move from the group's u.
    const auto subtract_move = [&](int atom, float4 move) {
        UNROLL
        for (int k = 0; k < TOGETHER; k += 4) {
            const float4 weight = load(weights + atom * BLOCK_ATOMS + first + k);
            own.u[k] = add(weight.x, move, own.u[k]);
            own.u[k + 1] = add(weight.y, move, own.u[k + 1]);
            own.u[k + 2] = add(weight.z, move, own.u[k + 2]);
            own.u[k + 3] = add(weight.w, move, own.u[k + 3]);
        }
    };
    // begin computes u of the set's group after the updates of the first `moved` atoms.
    const auto begin = [&](int moved) {
        if (first >= s.atoms)
            return;
        own.begin(args.moves + first * pitch);
        each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
            const float4 zero = make_float4(0, 0, 0, 0);
            UNROLL
            for (int k = 0; k < TOGETHER; k++)
                own.u[k] = first + k < s.atoms ? add(sizes[first + k], load(args.forces + (first + k) * pitch + column), zero) : zero;
            UNROLL_BY(4)
            for (int before = 0; before < moved; before++)
                subtract_move(before, load(args.moves + before * pitch + column));
            UNROLL
            for (int k = 0; k < TOGETHER; k++)
                if (first + k < s.atoms)
                    own.set(k, column, own.u[k]);
        });
    };
    first = set * TOGETHER;
    begin(0);
    for (int group = 0; group < s.atoms; group += TOGETHER) {
        const bool turn = first == group, later = Atoms::ONCE && first > group && first < s.atoms && 4 * thread < pitch;
        const int count = s.atoms - group;
        float4 atoms[2]; // the current and the next one
        UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            const int atom = group + k;
            if (k >= count)
                return;
            float* part = parts + k % 2 * PARTS; // double buffers: other threads may still read the previous atom's sums and move
            float* latest_move = latest + k % 2 * pitch;
            float norm = 0;
            if (turn) {
                norm = norms[atom];
                float squares = 0;
                each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
                    if (Atoms::ONCE && k == 0)
                        atoms[0] = load(args.atoms + atom * pitch + column);
                    const float4 u = own.get(k, column);
                    const float four = u.x * u.x + u.y * u.y + (u.z * u.z + u.w * u.w);
                    squares = Atoms::ONCE ? four : squares + four;
                });
                UNROLL
                for (int apart = WARP / 2; apart >= 4; apart /= 2)
                    squares += __shfl_xor_sync(ALL_LANES, squares, apart);
                if (lane < 4)
                    part[4 * (thread / WARP) + lane] = squares;
            }
            __syncthreads();
            if (turn) {
                const auto four_warps = [&](const float* of) {
                    return add(1, add(1, load(of), load(of + 4)), add(1, load(of + 8), load(of + 12)));
                };
                float4 sum = four_warps(part);
                if (Atoms::ONCE && k + 1 < min(TOGETHER, count) && 4 * thread < pitch)
                    atoms[(k + 1) % 2] = load(args.atoms + (atom + 1) * pitch + 4 * thread);
                UNROLL_BY(1)
                for (int i = 4; i < warps; i += 4)
                    sum = add(1, four_warps(part + 4 * i), sum);
                const float squares = sum.x + sum.y + (sum.z + sum.w);
                float inverse = inverse_sqrt(squares);
                inverse *= fmaf(-0.5f * squares * inverse, inverse, 1.5f); // Newton step; not positive if squares are 0 or NaN
                float length = squares * inverse;
                length = fmaf(fmaf(-length, length, squares), 0.5f * inverse, length);
                each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
                    const int at = atom * pitch + column;
                    const float4 d = Atoms::ONCE ? atoms[k % 2] : load(args.atoms + at);
                    float4 move = make_float4(0, 0, 0, 0);
                    if (norm > 0 && inverse > 0) { // u/‖u‖ with a correction of its rounding, exact if u has one nonzero
                        const float4 u = own.get(k, column), whole = add(inverse, u, move);
                        const float4 rest = make_float4(fmaf(-whole.x, length, u.x), fmaf(-whole.y, length, u.y),
                                                        fmaf(-whole.z, length, u.z), fmaf(-whole.w, length, u.w));
                        move = add(norm, add(inverse, rest, whole), make_float4(-d.x, -d.y, -d.z, -d.w));
                    }
                    UNROLL
                    for (int j = k + 1; j < TOGETHER; j++)
                        if (Atoms::ONCE || group + j < s.atoms) // memory has no rows for others
                            own.set(j, column, add(weights[atom * BLOCK_ATOMS + group + j], move, own.get(j, column)));
                    store(args.moves + at, move);
                    store(args.atoms + at, add(1, move, d));
                    if (sets > 1)
                        store(latest_move + column, move);
                });
            } else if (later && k > 0) {
                subtract_move(atom - 1, load(latest + (k - 1) % 2 * pitch + 4 * thread));
            }
        }
        __syncthreads();
        if (later)
            subtract_move(group + TOGETHER - 1, load(latest + (TOGETHER - 1) % 2 * pitch + 4 * thread));
        if (turn) {
            first += sets * TOGETHER;
            begin(group + TOGETHER);
        }
    }
}

extern "C" __global__ void __launch_bounds__(MOVE_THREADS, 1) move_atoms(MoveAtoms args)
{
    SHARED_MEMORY(float, shared_weights);
    move_in_turn<InRegisters>(args, shared_weights);
}

// move_wide_atoms is move_atoms for rows of more than four columns per thread.
extern "C" __global__ void __launch_bounds__(MOVE_THREADS, 1) move_wide_atoms(MoveAtoms args)
{
    SHARED_MEMORY(float, shared_wide_weights);
    move_in_turn<InMemory>(args, shared_wide_weights);
}

// power computes the largest eigenvalue of a positive semidefinite matrix[dim × dim] by power
// iteration. It starts from the unit vector in vector and stores the last iterate, rounded,
// there. It stops when the eigenvalue grows by at most tolerance, relative, or after
// max_iterations. It uses one block.
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
            for (int r = 0; r < TOGETHER; r++) // past the end, the last row again
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
    if (threadIdx.x == 0)
        *args.value = value;
}

// gather copies rows with their padding: batch[i] = rows[index[i]]. A warp processes one row
// at a time, and a lane 16 bytes.
//
// Lower bound: 8·words·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) gather(Gather args)
{
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        const float4* from = reinterpret_cast<const float4*>(args.rows + static_cast<long long>(args.index[row]) * args.shape.dim_pitch);
        float4* to = reinterpret_cast<float4*>(args.batch + row * args.shape.dim_pitch);
        for (int i = threadIdx.x % WARP; i < args.shape.dim_pitch / 4; i += WARP)
            to[i] = from[i];
    }
}
