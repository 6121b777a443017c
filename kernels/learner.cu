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

// load and store read and write four numbers of a row; add returns c + a·b of such.
__device__ __forceinline__ float4 load(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ __forceinline__ void store(float* to, float4 x) { *reinterpret_cast<float4*>(to) = x; }
__device__ __forceinline__ float4 add(float a, float4 b, float4 c)
{
    return make_float4(fmaf(a, b.x, c.x), fmaf(a, b.y, c.y), fmaf(a, b.z, c.z), fmaf(a, b.w, c.w));
}

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

// A thread of move_atoms has some atoms d at a time, and what is known of their u: of four
// columns in registers, or of more in memory, where the atoms' moves will be.
struct InRegisters {
    static constexpr int TOGETHER = MOVE_TOGETHER;
    static constexpr bool ONCE = true; // there are no further columns
    float4 d[TOGETHER], u[TOGETHER];

    __device__ __forceinline__ InRegisters(float*, float*, int)
    {
        UNROLL
        for (int k = 0; k < TOGETHER; k++)
            d[k] = u[k] = make_float4(0, 0, 0, 0);
    }
    __device__ __forceinline__ float4 atom(int k, int) const { return d[k]; }
    __device__ __forceinline__ float4 get(int k, int) const { return u[k]; }
    __device__ __forceinline__ void set(int k, int, float4 x) { u[k] = x; }
    __device__ __forceinline__ void set_atom(int k, float4 x) { d[k] = x; }
};

struct InMemory {
    static constexpr int TOGETHER = 4; // less code, for what is rare
    static constexpr bool ONCE = false;
    float *atoms, *moves;
    int pitch;

    __device__ __forceinline__ InMemory(float* d, float* u, int p) : atoms(d), moves(u), pitch(p) {}
    __device__ __forceinline__ float4 atom(int k, int column) const { return load(atoms + static_cast<size_t>(k) * pitch + column); }
    __device__ __forceinline__ float4 get(int k, int column) const { return load(moves + static_cast<size_t>(k) * pitch + column); }
    __device__ __forceinline__ void set(int k, int column, float4 x) { store(moves + static_cast<size_t>(k) * pitch + column, x); }
    __device__ __forceinline__ void set_atom(int, float4) {}
};

// each_column calls f for each four columns that the thread has, or once if there are no more.
template <bool ONCE, typename F>
__device__ __forceinline__ void each_column(int pitch, F f)
{
    for (int column = 4 * threadIdx.x; column < pitch; column += 4 * blockDim.x) {
        f(column);
        if (ONCE)
            break;
    }
}

// move_atoms moves each of the block's atoms d, in turn, to where tr(DᵀGD) − 2tr(DᵀB) +
// pull·‖D − W‖² is least with the others fixed, and gives it its norm again:
//
//     u = (b − p − Σ g_j·move_j + g·d + pull·w)/(g + pull),  move = norm·u/‖u‖ − d,  d += move
//
// where p, b and w are its rows of P, B and W, g is its element of G's diagonal, and g_j are
// those of G with the block's atoms that have moved. Its move is zero if g is not above
// `unused`, or if u is zero or no number.
//
// A thread has columns, four at a time, of all atoms: it reads nothing that another one
// writes. What they have to tell each other is ‖u‖: one barrier an atom. Some
// atoms at a time have the moves before them taken off their u at once, each read once, and
// then those of each other, as they are made.
//
// Floor, in bytes: 4·(7·atoms·dim + atoms²). What bounds it is one SM, and waiting. Of 64 atoms
// of 300 a warp has 304 instructions each, by sm_90's machine code, 130 of them for the atoms
// before, and waits some 330 clocks: for the sum of its lanes, for the other warps, for
// memory. That makes 23 µs at 1.755 GHz, and 1.1 ms for 3000 atoms.
template <typename Atoms>
__device__ __forceinline__ void move_in_turn(const MoveAtoms& args, float* shared)
{
    const Shape& s = args.shape;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, pitch = s.dim_pitch;
    // u is in units of the norm: its square is within float's range.
    float* weights = shared; // −g_j/((g + pull)·norm): a row for each j, of all atoms
    float *sizes = weights + BLOCK_ATOMS * BLOCK_ATOMS, *staying = sizes + BLOCK_ATOMS, *pulled = staying + BLOCK_ATOMS;
    float* norms = pulled + BLOCK_ATOMS;                    // 0 for an atom that is not used
    float* parts = norms + BLOCK_ATOMS;                     // of two atoms' ‖u‖², of each warp
    constexpr int TOGETHER = Atoms::TOGETHER, PARTS = MOVE_THREADS / WARP;
    static_assert(4 * (BLOCK_ATOMS * (BLOCK_ATOMS + 4) + 2 * PARTS) == MOVE_SHARED, "the host asks for this much");
    for (int i = lane; i < BLOCK_ATOMS; i += WARP) {
        const bool is = i < s.atoms;
        const float g = is ? args.gram[static_cast<size_t>(i) * s.code_pitch + i] : 1, pull = float_once(args.pull), norm = float_once(args.norm);
        const float size = 1 / ((g + pull) * norm);
        for (int j = warp; j < BLOCK_ATOMS; j += blockDim.x / WARP)
            weights[j * BLOCK_ATOMS + i] = is && j < i ? -size * args.gram[static_cast<size_t>(j) * s.code_pitch + i] : 0;
        if (warp == 0) {
            sizes[i] = size;
            staying[i] = size * g;
            pulled[i] = size * pull;
            norms[i] = g > args.unused ? norm : 0;
        }
    }
    if (threadIdx.x < 2 * PARTS)
        parts[threadIdx.x] = 0;
    __syncthreads();
    for (int first = 0; first < s.atoms; first += TOGETHER) {
        const int count = min(TOGETHER, s.atoms - first);
        const size_t row = static_cast<size_t>(first) * pitch;
        Atoms all(args.atoms + row, args.moves + row, pitch);
        each_column<Atoms::ONCE>(pitch, [&](int column) {
            float4 u[TOGETHER];
            UNROLL
            for (int k = 0; k < TOGETHER; k++) {
                u[k] = make_float4(0, 0, 0, 0);
                if (k < count) {
                    const size_t at = row + static_cast<size_t>(k) * pitch + column;
                    const float4 d = load(args.atoms + at);
                    all.set_atom(k, d);
                    u[k] = add(staying[first + k], d, u[k]);
                    u[k] = add(pulled[first + k], load(args.anchors + at), u[k]);
                    u[k] = add(sizes[first + k], add(-1, load(args.predicted + at), load(args.products + at)), u[k]);
                }
            }
            for (int before = 0; before < first; before += TOGETHER) {
                float4 move[TOGETHER];
                UNROLL
                for (int j = 0; j < TOGETHER; j++)
                    move[j] = load(args.moves + static_cast<size_t>(before + j) * pitch + column);
                UNROLL
                for (int j = 0; j < TOGETHER; j++) {
                    UNROLL
                    for (int k = 0; k < TOGETHER; k += 4) {
                        const float4 weight = load(weights + (before + j) * BLOCK_ATOMS + first + k);
                        u[k] = add(weight.x, move[j], u[k]);
                        u[k + 1] = add(weight.y, move[j], u[k + 1]);
                        u[k + 2] = add(weight.z, move[j], u[k + 2]);
                        u[k + 3] = add(weight.w, move[j], u[k + 3]);
                    }
                }
            }
            UNROLL
            for (int k = 0; k < TOGETHER; k++)
                if (k < count)
                    all.set(k, column, u[k]);
        });
        UNROLL
        for (int k = 0; k < TOGETHER; k++)
            if (k < count) {
                float squares = 0;
                each_column<Atoms::ONCE>(pitch, [&](int column) {
                    const float4 u = all.get(k, column);
                    squares += u.x * u.x + u.y * u.y + u.z * u.z + u.w * u.w;
                });
                squares = warp_sum(squares);
                float* part = parts + k % 2 * PARTS; // the other atom's may still be read
                if (lane == 0)
                    part[warp] = squares;
                __syncthreads();
                float4 sum = load(part);
                UNROLL
                for (int i = 4; i < PARTS; i += 4)
                    sum = add(1, load(part + i), sum);
                squares = sum.x + sum.y + (sum.z + sum.w);
                float inverse = inverse_sqrt(squares);
                inverse *= fmaf(-0.5f * squares * inverse, inverse, 1.5f); // a step of Newton's; not above 0 if squares are 0 or no number
                float length = squares * inverse;
                length = fmaf(fmaf(-length, length, squares), 0.5f * inverse, length);
                const float norm = inverse > 0 ? norms[first + k] : 0;
                each_column<Atoms::ONCE>(pitch, [&](int column) {
                    const float4 d = all.atom(k, column);
                    float4 move = make_float4(0, 0, 0, 0);
                    if (norm > 0) { // u/‖u‖ is rounded well: u of one number makes atoms of just the norm
                        const float4 u = all.get(k, column), whole = add(inverse, u, move);
                        const float4 rest = make_float4(fmaf(-whole.x, length, u.x), fmaf(-whole.y, length, u.y),
                                                        fmaf(-whole.z, length, u.z), fmaf(-whole.w, length, u.w));
                        move = add(norm, add(inverse, rest, whole), make_float4(-d.x, -d.y, -d.z, -d.w));
                    }
                    UNROLL
                    for (int j = k + 1; j < TOGETHER; j++)
                        if (j < count)
                            all.set(j, column, add(weights[(first + k) * BLOCK_ATOMS + first + j], move, all.get(j, column)));
                    const size_t at = row + static_cast<size_t>(k) * pitch + column;
                    store(args.moves + at, move);
                    store(args.atoms + at, add(1, move, d));
                });
            }
    }
}

extern "C" __global__ void __launch_bounds__(MOVE_THREADS, 1) move_atoms(MoveAtoms args)
{
    SHARED_MEMORY(float, shared_weights);
    if (args.shape.dim_pitch <= 4 * MOVE_THREADS)
        move_in_turn<InRegisters>(args, shared_weights);
    else
        move_in_turn<InMemory>(args, shared_weights);
}

// power finds the largest eigenvalue of a symmetric matrix[dim × dim] without negative ones, by
// power iteration: from the unit vector on that it finds in vector, where it leaves the last
// one, rounded, until the eigenvalue grows by no more than tolerance, relative, or `most` times. It
// has one block.
//
// Floor, in bytes: 4·dim². What it takes depends on the iterations, each of which reads the
// matrix: 300 × 300 from one SM's L1 and L2 some µs.
extern "C" __global__ void __launch_bounds__(POWER_THREADS, 1) power(Power args)
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
