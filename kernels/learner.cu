// Learning a dictionary, after encode.cu has made the codes A[words × atoms] of a batch of
// rows Y[words × dim]:
//
//     remember      G = keep·G + AᵀA,  B = keep·B + AᵀY
//     decode        F = GD (decode.cu)
//     forces        F −= diag(G)·D + B + pull·W: what moves each atom
//     move_atoms    each atom of a block in turn
//     remember      F += G[·, block] · moves, for the atoms after the block; and so on
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
// both factors; see product.cuh. With `symmetric` rows are the codes, and half of the product is
// computed: the tiles on the diagonal and below.
//
// Floor, in bytes: 4·(words·atoms + words·dim + 2·atoms·dim); in flops: 2·words·atoms·dim,
// three times that for fp32; half of both if it is symmetric, but for the sums' bytes. For G of
// 4096 words and 3000 atoms on an H200: 120 MB, 28 µs at 4.3 TB/s, and 37 Gflop, 0.12 ms if
// mma.sync does 300 TFLOP/s in TF32, a tenth of what the 50 products of the codes take for rows
// of 300.
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
    if (args.symmetric && p.column > p.row)
        return; // what lies below the diagonal is written here as well
    p.run(shared, {args.codes, s.words, s.code_pitch}, {args.rows, s.words, s.dim_pitch}, s.words);
    const float keep = float_once(args.keep);
    const bool mirrored = args.symmetric && p.column < p.row;
    p.each_row([&](int row, int column, int i, int half) {
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < s.dim_pitch) {
                float2* at = reinterpret_cast<float2*>(args.sums + static_cast<size_t>(row) * s.dim_pitch + column + 8 * j);
                float2 sum = keep == 0 ? make_float2(0, 0) : *at; // which may be no number
                sum.x = fmaf(keep, sum.x, p.sums[i][j][2 * half]);
                sum.y = fmaf(keep, sum.y, p.sums[i][j][2 * half + 1]);
                *at = sum;
                if (mirrored) { // eight lanes write 32 bytes of a row
                    float* across = args.sums + static_cast<size_t>(column + 8 * j) * s.dim_pitch + row;
                    across[0] = sum.x;
                    across[s.dim_pitch] = sum.y;
                }
            }
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_tf32(Remember args) { remember<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) remember_fp32(Remember args) { remember<true>(args); }

// forces makes of P = GD what the other atoms, the rows and the anchors do to each atom d:
//
//     f = p − g·d − b − pull·w
//
// where p, d, b and w are its rows of P, D, B and W, and g is its element of G's diagonal. The
// gradient of tr(DᵀGD) − 2tr(DᵀB) + pull·‖D − W‖² by d is 2(f + (g + pull)·d). A warp takes a row
// at a time, and a lane four numbers.
//
// Floor, in bytes: 20·atoms·dim.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) forces(Forces args)
{
    const Shape& s = args.shape;
    const float pull = float_once(args.pull);
    for (long long row = first_row(); row < s.atoms; row += row_step()) {
        const float g = args.gram[row * s.code_pitch + row];
        UNROLL_BY(1)
        for (int i = 4 * (threadIdx.x % WARP); i < s.dim_pitch; i += 4 * WARP) {
            const long long at = row * s.dim_pitch + i;
            float4 f = add(-g, load(args.atoms + at), load(args.forces + at));
            f = add(-1, load(args.products + at), f);
            store(args.forces + at, add(-pull, load(args.anchors + at), f));
        }
    }
}

// A thread of move_atoms has u of a group of atoms: of four columns in registers, or of more in
// memory, where the atoms' moves will be.
struct InRegisters {
    static constexpr int TOGETHER = MOVE_TOGETHER;
    static constexpr bool ONCE = true; // there are no further columns
    float4 u[TOGETHER];

    __device__ __forceinline__ InRegisters(int) {}
    __device__ __forceinline__ void begin(float*) {}
    __device__ __forceinline__ float4 get(int k, int) const { return u[k]; }
    __device__ __forceinline__ void set(int k, int, float4 x) { u[k] = x; }
};

struct InMemory {
    static constexpr int TOGETHER = 4; // less code, for what is rare
    static constexpr bool ONCE = false;
    float4 u[TOGETHER]; // of the columns that are at hand
    float* moves;
    int pitch;

    __device__ __forceinline__ InMemory(int p) : pitch(p) {}
    __device__ __forceinline__ void begin(float* rows) { moves = rows; }
    __device__ __forceinline__ float4 get(int k, int column) const { return load(moves + k * pitch + column); }
    __device__ __forceinline__ void set(int k, int column, float4 x) { store(moves + k * pitch + column, x); }
};

// each_column calls f for each four columns that a thread has, or once if there are no more.
template <bool ONCE, typename F>
__device__ __forceinline__ void each_column(int thread, int threads, int pitch, F f)
{
    for (int column = 4 * thread; column < pitch; column += 4 * threads) {
        f(column);
        if (ONCE)
            break;
    }
}

// move_atoms moves each of the block's atoms d, in turn, to where tr(DᵀGD) − 2tr(DᵀB) +
// pull·‖D − W‖² is least with the others fixed, and gives it its norm again:
//
//     u = −(f + Σ g_j·move_j)/(g + pull),  move = norm·u/‖u‖ − d,  d += move
//
// where f is its row of the forces, and g_j are those of G with the block's atoms that have
// moved. Its move is zero if g is not above `unused`, or if u is zero or no number.
//
// A set of threads has the u of a group of atoms, and a thread four of their columns. What the
// threads of a set have to tell each other is ‖u‖, and what they tell other sets is the move: one
// barrier an atom is for both. While the atoms of one group move in turn, the sets of those after
// it take each move off their u, a barrier later. A set whose group has moved begins another one.
// Where columns are many, sets are fewer: one, where a thread has more than four of them.
//
// Floor, in bytes: 4·(4·atoms·dim + atoms²). What bounds it is waiting, on one SM: for the sum of
// lanes, for other warps, for a root. A warp has some 140
// instructions for an atom in turn on sm_90.
template <typename Atoms>
__device__ __forceinline__ void move_in_turn(const MoveAtoms& args, float* shared)
{
    const Shape& s = args.shape;
    const int pitch = s.dim_pitch, threads = Atoms::ONCE ? (pitch / 4 + WARP - 1) / WARP * WARP : blockDim.x; // of a set
    const int sets = blockDim.x / threads, set = threadIdx.x / threads, thread = threadIdx.x - set * threads;
    const int lane = threadIdx.x % WARP, warps = threads / WARP;
    constexpr int TOGETHER = Atoms::TOGETHER, PARTS = 4 * MOVE_THREADS / WARP;
    // u is in units of the norm: its square is within float's range.
    float* weights = shared;                               // −g_j/((g + pull)·norm): a row for each j, of all atoms
    float* sizes = weights + BLOCK_ATOMS * BLOCK_ATOMS;    // −1/((g + pull)·norm)
    float* norms = sizes + BLOCK_ATOMS;                    // 0 for an atom that is not used
    float* parts = norms + BLOCK_ATOMS;                    // of two atoms' ‖u‖², four of each warp
    float* latest = parts + 2 * PARTS;                     // the moves of two atoms, for other sets
    static_assert(4 * (BLOCK_ATOMS * (BLOCK_ATOMS + 2) + 2 * PARTS) == MOVE_SHARED, "the host asks for this much, and for the moves");
    for (int i = lane; i < BLOCK_ATOMS; i += WARP) {
        const bool is = i < s.atoms;
        const float g = is ? args.gram[static_cast<size_t>(i) * s.code_pitch + i] : 1, pull = float_once(args.pull), norm = float_once(args.norm);
        const float size = -1 / ((g + pull) * norm);
        for (int j = threadIdx.x / WARP; j < BLOCK_ATOMS; j += blockDim.x / WARP)
            weights[j * BLOCK_ATOMS + i] = is && j < i ? size * args.gram[static_cast<size_t>(j) * s.code_pitch + i] : 0;
        if (threadIdx.x < WARP) {
            sizes[i] = size;
            norms[i] = g > args.unused ? norm : 0;
        }
    }
    for (int i = threadIdx.x; i < 2 * PARTS; i += blockDim.x)
        parts[i] = 0;
    __syncthreads();

    Atoms all(pitch);
    int first; // of the set's group
    // take takes the move of an atom off the group's u.
    const auto take = [&](int atom, float4 move) {
        UNROLL
        for (int k = 0; k < TOGETHER; k += 4) {
            const float4 weight = load(weights + atom * BLOCK_ATOMS + first + k);
            all.u[k] = add(weight.x, move, all.u[k]);
            all.u[k + 1] = add(weight.y, move, all.u[k + 1]);
            all.u[k + 2] = add(weight.z, move, all.u[k + 2]);
            all.u[k + 3] = add(weight.w, move, all.u[k + 3]);
        }
    };
    // begin begins the set's group, when those before `moved` have moved.
    const auto begin = [&](int moved) {
        if (first >= s.atoms)
            return;
        all.begin(args.moves + first * pitch);
        each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
            const float4 zero = make_float4(0, 0, 0, 0);
            UNROLL
            for (int k = 0; k < TOGETHER; k++)
                all.u[k] = first + k < s.atoms ? add(sizes[first + k], load(args.forces + (first + k) * pitch + column), zero) : zero;
            UNROLL_BY(4)
            for (int before = 0; before < moved; before++)
                take(before, load(args.moves + before * pitch + column));
            UNROLL
            for (int k = 0; k < TOGETHER; k++)
                if (first + k < s.atoms)
                    all.set(k, column, all.u[k]);
        });
    };
    first = set * TOGETHER;
    begin(0);
    for (int group = 0; group < s.atoms; group += TOGETHER) {
        const bool turn = first == group, later = Atoms::ONCE && first > group && first < s.atoms && 4 * thread < pitch;
        const int count = s.atoms - group;
        float4 atoms[2]; // in turn, and the next one
        UNROLL
        for (int k = 0; k < TOGETHER; k++) {
            const int atom = group + k;
            if (k >= count)
                return;
            float* part = parts + k % 2 * PARTS; // the other atom's may still be read, and so may the other move
            float* move_here = latest + k % 2 * pitch;
            float norm = 0;
            if (turn) {
                norm = norms[atom];
                float squares = 0;
                each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
                    if (Atoms::ONCE && k == 0)
                        atoms[0] = load(args.atoms + atom * pitch + column);
                    const float4 u = all.get(k, column);
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
                inverse *= fmaf(-0.5f * squares * inverse, inverse, 1.5f); // a step of Newton's; not above 0 if squares are 0 or no number
                float length = squares * inverse;
                length = fmaf(fmaf(-length, length, squares), 0.5f * inverse, length);
                each_column<Atoms::ONCE>(thread, threads, pitch, [&](int column) {
                    const int at = atom * pitch + column;
                    const float4 d = Atoms::ONCE ? atoms[k % 2] : load(args.atoms + at);
                    float4 move = make_float4(0, 0, 0, 0);
                    if (norm > 0 && inverse > 0) { // u/‖u‖ is rounded well: u of one number makes atoms of just the norm
                        const float4 u = all.get(k, column), whole = add(inverse, u, move);
                        const float4 rest = make_float4(fmaf(-whole.x, length, u.x), fmaf(-whole.y, length, u.y),
                                                        fmaf(-whole.z, length, u.z), fmaf(-whole.w, length, u.w));
                        move = add(norm, add(inverse, rest, whole), make_float4(-d.x, -d.y, -d.z, -d.w));
                    }
                    UNROLL
                    for (int j = k + 1; j < TOGETHER; j++)
                        if (Atoms::ONCE || group + j < s.atoms) // else they have no place
                            all.set(j, column, add(weights[atom * BLOCK_ATOMS + group + j], move, all.get(j, column)));
                    store(args.moves + at, move);
                    store(args.atoms + at, add(1, move, d));
                    if (sets > 1)
                        store(move_here + column, move);
                });
            } else if (later && k > 0) {
                take(atom - 1, load(latest + (k - 1) % 2 * pitch + 4 * thread));
            }
        }
        __syncthreads();
        if (later)
            take(group + TOGETHER - 1, load(latest + (TOGETHER - 1) % 2 * pitch + 4 * thread));
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

// move_wide_atoms is move_atoms where a thread has more than four columns.
extern "C" __global__ void __launch_bounds__(MOVE_THREADS, 1) move_wide_atoms(MoveAtoms args)
{
    SHARED_MEMORY(float, shared_wide_weights);
    move_in_turn<InMemory>(args, shared_wide_weights);
}

// power finds the largest eigenvalue of a symmetric matrix[dim × dim] without negative ones, by
// power iteration: from the unit vector on that it finds in vector, where it leaves the last
// one, rounded, until the eigenvalue grows by no more than tolerance, relative, or `most` times. It
// has one block.
//
// Floor, in bytes: 4·dim². What it takes depends on the iterations, each of which reads the
// matrix: 300 × 300 are 360 KB, at an SM's 64 bytes a clock from L2 3 µs.
extern "C" __global__ void __launch_bounds__(POWER_THREADS, 1) power(Power args)
{
    SHARED_MEMORY(double, warps);
    constexpr int TOGETHER = 5, WARPS = POWER_THREADS / WARP; // rows that a warp waits for at once
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    double *vector = args.work, *next = vector + args.dim;
    UNROLL_BY(1)
    for (int i = threadIdx.x; i < args.dim; i += POWER_THREADS)
        vector[i] = args.vector[i];
    __syncthreads();
    double value = 0, scale = 1; // scale·vector has norm 1
    for (int n = 0; n < args.most; n++) {
        double product = 0, squares = 0; // of vector and what the matrix makes of it
        for (int first = warp; first < args.dim; first += TOGETHER * WARPS) {
            double parts[TOGETHER] = {}, dots[TOGETHER], own[TOGETHER]; // parts that the lane has of rows' products
            const float* rows[TOGETHER];
            UNROLL
            for (int r = 0; r < TOGETHER; r++) // the last one several times
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
        if (!(value - before > args.tolerance * value)) // nor if it is no number
            break;
    }
    UNROLL_BY(1)
    for (int i = threadIdx.x; i < args.dim; i += POWER_THREADS)
        args.vector[i] = float(scale * vector[i]);
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
