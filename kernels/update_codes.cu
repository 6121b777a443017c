// update_codes: the code step of the paper's training with the squared loss, for float16
// codes and atoms, in one kernel:
//
//     r = x − aD;  p = rDᵀ;  S, Q and a from p by dual averaging (averaging.cuh)
//     β = ⟨x, aD⟩/⟨aD, aD⟩ clamped to [0, 1];  loss = ‖x − βaD‖²
//
// A block owns UPDATE_CODES_ROWS rows and passes twice over the dictionary, in tiles of
// UPDATE_CODES_ATOMS atoms. The first pass computes aD from the old codes. The second
// updates the codes of each tile and multiplies them at once with the same tile of D in
// shared memory, so that aD of the new codes is complete at its end. S and Q are read and
// written once, codes are read and written once, and x is read three times. No other matrix
// of rows × atoms or rows × dim exists in memory. finish_codes multiplies the codes by β.
//
// aD stays in registers: a warp holds 32 rows × 80 columns. Residuals stay in shared memory
// as float16. cp.async copies the next tile of D during the products of a tile. It copies a
// thread's elements of S and Q of the next tile as soon as the thread has read the present
// elements. No other thread reads them: here shared memory extends the thread's registers.
//
// Lower bounds for 400,000 × 300 → 3000 on an H100: S, Q and codes 24 GB, 7.2 ms at 3.35
// TB/s; tiles of D 24 GB, 4.4 ms from L2 at 5.5 TB/s; 2.4 Tflop of 320 columns, 3.9 ms if
// mma.sync does 600 TFLOP/s in float16. One block per SM must overlap them, so memory is the
// bottleneck.
#include "averaging.cuh"

struct CodeUpdate {
    static constexpr int ROWS = UPDATE_CODES_ROWS, ATOMS = UPDATE_CODES_ATOMS, DIM = UPDATE_CODES_DIM;
    static constexpr int THREADS = UPDATE_CODES_THREADS;
    static constexpr int PITCH = DIM + 8; // pitch of residuals and atoms in shared memory: eight rows are in different banks
    static constexpr int TILE = ATOMS * PITCH;
    static constexpr int WARPS_ACROSS = 4;
    static constexpr int DOWN = ROWS * WARPS_ACROSS / (THREADS / WARP) / 16; // results of mma in a warp's part of aD
    static constexpr int ACROSS = DIM / WARPS_ACROSS / 8;
    static constexpr int COPIED = THREADS / 8; // rows that the threads copy at a time, with 8 threads per row
    static constexpr int QUADS = 2 * DOWN;     // a thread's groups of four adjacent codes in a tile, one per row
    static_assert(ATOMS == 16 * WARPS_ACROSS && ATOMS == 64, "a thread has one group per row; a row of codes has eight pieces");
    static_assert(DIM % 64 == 0 && DIM % (16 * WARPS_ACROSS) == 0 && ATOMS % COPIED == 0 && ROWS % COPIED == 0, "threads copy equally much");
    static_assert(UPDATE_CODES_SHARED == 2 * (ROWS * PITCH + 2 * TILE + ROWS * ATOMS) + 32 * QUADS * THREADS, "the host asks for this much");

    const UpdateCodes& args;
    Half *residuals, *atoms, *codes; // in shared memory: rows × dim, two tiles, rows × atoms of a tile
    float4* sums;                    // in shared memory: S and Q of each of the thread's groups
    long long first;                 // row of the block
    int lane, g, t, across;          // g and t as in mma; across: the warp's place in a row of warps
    int row;                         // the thread's first row within the block; the others follow 8 apart
    const Half* next_atoms;          // the thread's first piece of the next tile
    float decoded[DOWN][ACROSS][4];

    __device__ __forceinline__ CodeUpdate(const UpdateCodes& args, Half* shared)
        : args(args), residuals(shared), atoms(residuals + ROWS * PITCH), codes(atoms + 2 * TILE),
          sums(reinterpret_cast<float4*>(codes + ROWS * ATOMS)), first(static_cast<long long>(blockIdx.x) * ROWS), lane(threadIdx.x % WARP),
          g(lane / 4), t(lane % 4), across(threadIdx.x / WARP % WARPS_ACROSS)
    {
        row = threadIdx.x / WARP / WARPS_ACROSS * 16 * DOWN + g;
    }

    __device__ __forceinline__ bool inside(int row) const { return first + row < args.shape.rows; }

    // place returns the index of a code of a tile in shared memory. Pieces of 8 codes are in an
    // order that puts the same piece of eight rows into different banks.
    __device__ static __forceinline__ int place(int row, int column) { return row * ATOMS + (column ^ row % 8 * 8); }

    // rewind continues with the first tile of atoms.
    __device__ __forceinline__ void rewind()
    {
        next_atoms = args.atoms + static_cast<size_t>(threadIdx.x / 8) * args.shape.dim_pitch + threadIdx.x % 8 * 8;
    }

    // load_atoms starts copying the next tile of atoms, number n.
    __device__ __forceinline__ void load_atoms(int n)
    {
        const int atom = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
        Half* to = atoms + n % 2 * TILE + atom * PITCH + column;
        UNROLL
        for (int i = 0; i < ATOMS; i += COPIED) {
            UNROLL
            for (int j = 0; j < DIM; j += 64)
                copy_async(to + i * PITCH + j, next_atoms + j, n * ATOMS + atom + i < args.shape.atoms && column + j < args.shape.dim_pitch);
            next_atoms += static_cast<size_t>(COPIED) * args.shape.dim_pitch;
        }
    }

    // old_codes returns the shared memory of tile n of the old codes. The sums later use the memory of odd tiles.
    __device__ __forceinline__ Half* old_codes(int n) const { return n % 2 ? reinterpret_cast<Half*>(sums) : codes; }

    // load_codes starts copying tile n of the old codes.
    __device__ __forceinline__ void load_codes(int n)
    {
        const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
        UNROLL
        for (int i = 0; i < ROWS; i += COPIED)
            copy_async(old_codes(n) + place(row + i, column),
                       args.codes + (first + row + i) * args.shape.code_pitch + n * ATOMS + column,
                       inside(row + i) && n * ATOMS + column < args.shape.code_pitch);
    }

    // quad returns the index of the thread's group number i of tile n in S, Q and codes.
    __device__ __forceinline__ long long quad(int n, int i) const
    {
        return (first + row + 8 * i) * args.shape.code_pitch + n * ATOMS + 16 * across + 4 * t;
    }

    __device__ __forceinline__ bool quad_inside(int n, int i) const
    {
        return inside(row + 8 * i) && n * ATOMS + 16 * across + 4 * t < args.shape.code_pitch;
    }

    // load_sums starts copying the thread's elements of S and Q of tile n.
    __device__ __forceinline__ void load_sums(int n)
    {
        UNROLL
        for (int i = 0; i < QUADS; i++) {
            copy_async(sums + 2 * i * THREADS + threadIdx.x, args.sum_g + quad(n, i), quad_inside(n, i));
            copy_async(sums + (2 * i + 1) * THREADS + threadIdx.x, args.sum_q + quad(n, i), quad_inside(n, i));
        }
    }

    __device__ __forceinline__ void clear()
    {
        UNROLL
        for (int i = 0; i < DOWN; i++) {
            UNROLL
            for (int j = 0; j < ACROSS; j++) {
                UNROLL
                for (int n = 0; n < 4; n++)
                    decoded[i][j][n] = 0;
            }
        }
    }

    // decode adds the product of a tile of codes and tile n of atoms.
    __device__ __forceinline__ void decode(const Half* codes, int n)
    {
        const int code = place(row - g + lane % 16, lane / 16 * 8);
        const Half* atom = atoms + n % 2 * TILE + lane % 16 * PITCH + across * 8 * ACROSS + lane / 16 * 8;
        UNROLL
        for (int k = 0; k < ATOMS; k += 16) {
            unsigned a[DOWN][4];
            UNROLL
            for (int i = 0; i < DOWN; i++)
                load_matrices<false>(a[i], codes + (code ^ k) + 16 * i * ATOMS);
            UNROLL
            for (int j = 0; j < ACROSS; j += 2) {
                unsigned x[4];
                load_matrices<true>(x, atom + k * PITCH + 8 * j);
                const unsigned b[2][2] = {{x[0], x[1]}, {x[2], x[3]}};
                UNROLL
                for (int i = 0; i < DOWN; i++) {
                    mma_halves(decoded[i][j], a[i], b[0]);
                    mma_halves(decoded[i][j + 1], a[i], b[1]);
                }
            }
        }
    }

    // correlate computes the products of residuals and tile n of atoms. A thread with t < 2 has
    // columns 4t and 4t+1 of its 16 in p[i][0] and the next two in p[i][1]. For t ≥ 2 it is the
    // other way round, which avoids bank conflicts.
    __device__ __forceinline__ void correlate(float (&p)[DOWN][2][4], int n)
    {
        const int second = lane / 16, of = lane % 8;
        const Half* residual = residuals + (row - g + lane % 16) * PITCH + second * 8;
        const Half* atom = atoms + n % 2 * TILE + (16 * across + of / 2 * 4 + (second ^ of / 4) * 2 + of % 2) * PITCH + lane / 8 % 2 * 8;
        UNROLL_BY(4)
        for (int k = 0; k < DIM; k += 16) {
            unsigned a[DOWN][4], x[4];
            UNROLL
            for (int i = 0; i < DOWN; i++)
                load_matrices<false>(a[i], residual + 16 * i * PITCH + k);
            load_matrices<false>(x, atom + k);
            const unsigned b[2][2] = {{x[0], x[1]}, {x[2], x[3]}};
            UNROLL
            for (int i = 0; i < DOWN; i++) {
                mma_halves(p[i][0], a[i], b[0]);
                mma_halves(p[i][1], a[i], b[1]);
            }
        }
    }

    // each_pair calls f(x, column, part) for the thread's pairs of adjacent elements of its row
    // number i: the pair of x, its first column, and the pair of aD, scaled. It reads all pairs of
    // x before the first call, so that the reads overlap.
    template <typename F>
    __device__ __forceinline__ void each_pair(int i, F f)
    {
        const int column = across * 8 * ACROSS + 2 * t;
        const float* row_of_x = args.x + (inside(row + 8 * i) ? first + row + 8 * i : 0) * args.shape.dim_pitch;
        float2 x[ACROSS];
        UNROLL
        for (int j = 0; j < ACROSS; j++) {
            const bool valid = inside(row + 8 * i) && column + 8 * j < args.shape.dim_pitch;
            x[j] = *reinterpret_cast<const float2*>(row_of_x + (valid ? column + 8 * j : 0));
            if (!valid)
                x[j] = make_float2(0, 0);
        }
        UNROLL
        for (int j = 0; j < ACROSS; j++)
            f(x[j], column + 8 * j, make_float2(decoded[i / 2][j][i % 2 * 2], decoded[i / 2][j][i % 2 * 2 + 1]));
    }

    // part_sum returns the sum of x over the four threads of a row in a warp.
    __device__ __forceinline__ double part_sum(double x) const
    {
        x += __shfl_xor_sync(ALL_LANES, x, 1);
        return x + __shfl_xor_sync(ALL_LANES, x, 2);
    }

    // of_row returns the sum of a row over its warps.
    __device__ static __forceinline__ double of_row(const double* parts, int row)
    {
        double sum = 0;
        UNROLL
        for (int i = 0; i < WARPS_ACROSS; i++)
            sum += parts[row * WARPS_ACROSS + i];
        return sum;
    }
};

extern "C" __global__ void __launch_bounds__(UPDATE_CODES_THREADS, 1) update_codes(UpdateCodes args)
{
    using C = CodeUpdate;
    SHARED_MEMORY(Half, shared_halves);
    C c(args, shared_halves);
    const int tiles = (args.shape.atoms + C::ATOMS - 1) / C::ATOMS;

    // First pass: aD of the old codes.
    c.clear();
    c.rewind();
    c.load_atoms(0);
    c.load_codes(0);
    copy_commit();
    for (int n = 0; n < tiles; n++) {
        copy_wait<0>();
        __syncthreads(); // the tiles are there; all threads have finished the previous ones
        if (n + 1 < tiles) {
            c.load_atoms(n + 1);
            c.load_codes(n + 1);
        }
        copy_commit();
        c.decode(c.old_codes(n), n);
    }
    __syncthreads();
    c.rewind();
    c.load_atoms(0);
    copy_commit();
    c.load_sums(0);
    copy_commit();

    const float factor = float_once(1 / (args.code_scale * args.atom_scale)), residual_scale = float_once(args.residual_scale);
    UNROLL
    for (int i = 0; i < C::QUADS; i++)
        c.each_pair(i, [&](float2 x, int column, float2 part) {
            *reinterpret_cast<unsigned*>(c.residuals + (c.row + 8 * i) * C::PITCH + column) =
                halves(within_halves(residual_scale * (x.x - factor * part.x)), within_halves(residual_scale * (x.y - factor * part.y)));
        });

    // Second pass: the new codes, and their aD.
    const DualAveraging averaging(args);
    const float code_scale = float_once(args.code_scale);
    c.clear();
    for (int n = 0; n < tiles; n++) {
        copy_wait<1>();
        __syncthreads(); // the atoms are there; all threads have finished the previous tiles, and the residuals
        if (n + 1 < tiles)
            c.load_atoms(n + 1);
        copy_commit();
        float p[C::DOWN][2][4] = {};
        c.correlate(p, n);
        copy_wait<1>(); // the sums are there
        UNROLL
        for (int i = 0; i < C::QUADS; i++) {
            const float *even = p[i / 2][0] + i % 2 * 2, *odd = p[i / 2][1] + i % 2 * 2;
            const bool swapped = c.t >= 2;
            const float4 x = make_float4(swapped ? odd[0] : even[0], swapped ? odd[1] : even[1],
                                         swapped ? even[0] : odd[0], swapped ? even[1] : odd[1]);
            float4 sum_g = c.sums[2 * i * C::THREADS + threadIdx.x], sum_q = c.sums[(2 * i + 1) * C::THREADS + threadIdx.x];
            const float4 a = averaging.codes(x, sum_g, sum_q);
            const uint2 code = make_uint2(halves(within_halves(code_scale * a.x), within_halves(code_scale * a.y)),
                                          halves(within_halves(code_scale * a.z), within_halves(code_scale * a.w)));
            *reinterpret_cast<uint2*>(c.codes + C::place(c.row + 8 * i, 16 * c.across + 4 * c.t)) = code;
            if (c.quad_inside(n, i)) {
                const long long at = c.quad(n, i);
                store(args.sum_g + at, sum_g);
                store(args.sum_q + at, sum_q);
                *reinterpret_cast<uint2*>(args.codes + at) = code;
            }
        }
        if (n + 1 < tiles)
            c.load_sums(n + 1);
        copy_commit();
        __syncthreads(); // the tile of new codes is complete
        c.decode(c.codes, n);
    }

    // Damping and the loss, by sums of the warps that share a row.
    double* products = reinterpret_cast<double*>(c.sums); // rows × warps: ⟨x, aD⟩
    double* squares = products + C::ROWS * C::WARPS_ACROSS;
    double* losses = squares + C::ROWS * C::WARPS_ACROSS;
    UNROLL
    for (int i = 0; i < C::QUADS; i++) {
        double product = 0, square = 0;
        c.each_pair(i, [&](float2 x, int, float2 part) {
            const float2 y = make_float2(factor * part.x, factor * part.y);
            product += x.x * y.x;
            product += x.y * y.y;
            square += y.x * y.x;
            square += y.y * y.y;
        });
        product = c.part_sum(product);
        square = c.part_sum(square);
        if (c.t == 0) {
            products[(c.row + 8 * i) * C::WARPS_ACROSS + c.across] = product;
            squares[(c.row + 8 * i) * C::WARPS_ACROSS + c.across] = square;
        }
    }
    __syncthreads();
    UNROLL
    for (int i = 0; i < C::QUADS; i++) {
        const int row = c.row + 8 * i;
        const double product = c.of_row(products, row), square = c.of_row(squares, row);
        const double damping = square == 0 ? 1 : product < 0 ? 0 : product > square ? 1 : product / square;
        double loss = 0;
        c.each_pair(i, [&](float2 x, int, float2 part) {
            const float u = x.x - float(damping) * (factor * part.x), v = x.y - float(damping) * (factor * part.y);
            loss += u * u;
            loss += v * v;
        });
        loss = c.part_sum(loss);
        if (c.t == 0)
            losses[row * C::WARPS_ACROSS + c.across] = loss;
        if (c.t == 0 && c.across == 0 && c.inside(row))
            args.factors[c.first + row] = damping;
    }
    __syncthreads();
    if (threadIdx.x < C::ROWS && c.inside(threadIdx.x))
        args.losses[c.first + threadIdx.x] = c.of_row(losses, threadIdx.x);
}
