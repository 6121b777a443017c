// update_codes: the code step of the paper's training with the squared loss, for float16
// codes and atoms, in one kernel:
//
//     r = x − aD;  p = rDᵀ;  S, Q and a from p by dual averaging (averaging.cuh)
//     β = ⟨x, aD⟩/⟨aD, aD⟩ clamped to [0, 1];  loss = ‖x − βaD‖²
//
// A block owns UPDATE_CODES_ROWS rows and passes twice over the dictionary, in tiles of
// UPDATE_CODES_ATOMS atoms. The first pass computes aD from the old codes. The second
// updates the codes of each tile and multiplies them with the same tile of D in shared
// memory, so that aD of the new codes is complete at its end. S and Q are read and
// written once, codes are read and written once, and x is read three times. No other matrix
// of rows × atoms or rows × dim exists in memory. finish_codes multiplies the codes by β.
//
// The warps of a block have two roles. Decoders copy the atoms and multiply codes by them:
// aD stays in their registers, 32 rows × 80 columns a warp. Averagers copy codes and sums,
// multiply residuals by atoms and update the codes. In the second pass averagers work on a
// tile while decoders multiply the codes of the one before, so that tensor cores, memory and
// arithmetic are busy at once. One barrier per tile separates them. Residuals stay in shared
// memory as float16. cp.async copies the next tiles of D, and an averager's elements of S
// and Q of the next tiles. No other thread reads these: here shared memory extends the
// thread's registers. Averagers keep the residuals of their rows in registers.
//
// Lower bounds for 400,000 × 300 → 3000 on an H200: S, Q and codes 24 GB, 5.6 ms at 4.3
// TB/s; tiles of D 23 GB, 4.1 ms from L2 at 5.5 TB/s; 2.4 Tflop of 320 columns, 3.9 ms if
// mma.sync does 600 TFLOP/s in float16. It takes 13.2 ms: with one block per SM, nothing hides
// the latency of a tile's chain from the barrier to the new codes.
#include "averaging.cuh"

// CodeUpdate holds the places of a block's rows and tiles, for both roles.
struct CodeUpdate {
    static constexpr int ROWS = UPDATE_CODES_ROWS, ATOMS = UPDATE_CODES_ATOMS, DIM = UPDATE_CODES_DIM;
    static constexpr int STAGES = UPDATE_CODES_STAGES; // tiles of atoms in shared memory, and of old codes
    static constexpr int SUMS = UPDATE_CODES_SUMS;     // tiles of S and Q
    static constexpr int THREADS = UPDATE_CODES_THREADS / 2; // of a role
    static constexpr int PITCH = DIM + 8; // pitch of residuals and atoms in shared memory: eight rows are in different banks
    static constexpr int TILE = ATOMS * PITCH;
    static constexpr int CODES = ROWS * ATOMS;
    static constexpr int PIECES = ATOMS / 8; // of a row of a tile of codes
    static_assert(THREADS == 256 && ROWS == 64 && ATOMS == 32 && DIM % 64 == 0, "a role has 8 warps; its threads copy equally much");
    static_assert(STAGES >= 3 && STAGES * CODES <= ROWS * PITCH, "three tiles are in use; old codes fit into the memory of the residuals");
    static_assert(UPDATE_CODES_SHARED == 2 * (ROWS * PITCH + STAGES * TILE + 2 * CODES) + SUMS * 8 * CODES, "the host asks for this much");

    const UpdateCodes& args;
    Half *residuals, *atoms, *codes; // in shared memory: rows × dim, STAGES tiles, two tiles of new codes
    float4* sums;                    // in shared memory: S and Q of each of an averager's groups
    long long first;                 // row of the block
    int thread, warp;                // within the role
    int lane, g, t;                  // g and t as in mma
    int tiles;

    __device__ __forceinline__ CodeUpdate(const UpdateCodes& args, Half* shared)
        : args(args), residuals(shared), atoms(residuals + ROWS * PITCH), codes(atoms + STAGES * TILE),
          sums(reinterpret_cast<float4*>(codes + 2 * CODES)), first(static_cast<long long>(blockIdx.x) * ROWS), thread(threadIdx.x % THREADS),
          warp(thread / WARP), lane(threadIdx.x % WARP), g(lane / 4), t(lane % 4), tiles((args.shape.atoms + ATOMS - 1) / ATOMS)
    {
    }

    __device__ __forceinline__ bool inside(int row) const { return first + row < args.shape.rows; }

    // place returns the index of a code of a tile in shared memory. Pieces of 8 codes are in an
    // order that puts the same piece of eight rows into different banks.
    __device__ static __forceinline__ int place(int row, int column) { return row * ATOMS + (column ^ row / 2 % PIECES * 8); }

    // meet_roles waits for all threads of the block. Each role calls it as often as the other.
    __device__ static __forceinline__ void meet_roles() { meet<UPDATE_CODES_THREADS>(); }

    // old_codes and atoms_of return the shared memory of tile n of the old codes and of the atoms. Tiles of
    // atoms in the second pass have numbers from `tiles` on.
    __device__ __forceinline__ Half* old_codes(int n) const { return residuals + unsigned(n) % STAGES * CODES; }
    __device__ __forceinline__ Half* atoms_of(int n) const { return atoms + unsigned(n) % STAGES * TILE; }
};

struct Decoder : CodeUpdate {
    static constexpr int WARPS_ACROSS = 4;
    static constexpr int DOWN = ROWS * WARPS_ACROSS / (THREADS / WARP) / 16; // results of mma in a warp's part of aD
    static constexpr int ACROSS = DIM / WARPS_ACROSS / 8;
    static_assert(DIM % (16 * WARPS_ACROSS) == 0 && ATOMS == THREADS / 8, "a thread copies pieces of one atom");

    int across; // the warp's place in a row of warps
    int row;    // the thread's first row within the block; the others follow 8 apart
    int loaded = 0; // tiles of atoms
    float decoded[DOWN][ACROSS][4];

    __device__ __forceinline__ Decoder(const UpdateCodes& args, Half* shared)
        : CodeUpdate(args, shared), across(warp % WARPS_ACROSS), row(warp / WARPS_ACROSS * 16 * DOWN + g)
    {
    }

    // load starts copying the next tile of atoms.
    __device__ __forceinline__ void load()
    {
        if (loaded < 2 * tiles) {
            const int atom = (loaded < tiles ? loaded : loaded - tiles) * ATOMS + thread / 8, column = thread % 8 * 8;
            Half* to = atoms_of(loaded) + thread / 8 * PITCH + column;
            const Half* from = args.atoms + static_cast<size_t>(atom) * args.shape.dim_pitch + column;
            UNROLL
            for (int j = 0; j < DIM; j += 64)
                copy_async(to + j, from + j, atom < args.shape.atoms && column + j < args.shape.dim_pitch);
        }
        loaded++;
        copy_commit(); // past the end, an empty group keeps the count
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

    // decode adds the product of a tile of codes and a tile of atoms.
    __device__ __forceinline__ void decode(const Half* codes, const Half* atoms)
    {
        const int code = place(row - g + lane % 16, lane / 16 * 8);
        const Half* atom = atoms + lane % 16 * PITCH + across * 8 * ACROSS + lane / 16 * 8;
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

    __device__ __forceinline__ void run()
    {
        // First pass: aD of the old codes.
        clear();
        UNROLL
        for (int i = 0; i < STAGES - 1; i++)
            load();
        for (int n = 0; n < tiles; n++) {
            copy_wait<STAGES - 2>();
            meet_roles(); // tile n is there; all threads have finished the previous one
            load();
            decode(old_codes(n), atoms_of(n));
        }
        const float factor = float_once(1 / (args.code_scale * args.atom_scale)), residual_scale = float_once(args.residual_scale);
        meet_roles(); // nobody reads old codes any more
        UNROLL
        for (int i = 0; i < 2 * DOWN; i++)
            each_pair(i, [&](float2 x, int column, float2 part) {
                *reinterpret_cast<unsigned*>(residuals + (row + 8 * i) * PITCH + column) =
                    halves(within_halves(residual_scale * (x.x - factor * part.x)), within_halves(residual_scale * (x.y - factor * part.y)));
            });

        // Second pass, a tile behind the averagers: aD of the new codes.
        clear();
        for (int n = 0; n <= tiles; n++) {
            copy_wait<STAGES - 3>();
            meet_roles(); // atoms of tile n, codes of tile n − 1 and residuals are there; all threads have finished the previous tiles
            if (n > 0) {
                load();
                decode(codes + (n - 1) % 2 * CODES, atoms_of(tiles + n - 1));
            }
        }

        // Damping and the loss, by sums of the warps that share a row.
        double* products = reinterpret_cast<double*>(sums); // rows × warps: ⟨x, aD⟩
        double* squares = products + ROWS * WARPS_ACROSS;
        double* losses = squares + ROWS * WARPS_ACROSS;
        UNROLL
        for (int i = 0; i < 2 * DOWN; i++) {
            double product = 0, square = 0;
            each_pair(i, [&](float2 x, int, float2 part) {
                const float2 y = make_float2(factor * part.x, factor * part.y);
                product += x.x * y.x;
                product += x.y * y.y;
                square += y.x * y.x;
                square += y.y * y.y;
            });
            product = part_sum(product);
            square = part_sum(square);
            if (t == 0) {
                products[(row + 8 * i) * WARPS_ACROSS + across] = product;
                squares[(row + 8 * i) * WARPS_ACROSS + across] = square;
            }
        }
        meet_roles();
        UNROLL
        for (int i = 0; i < 2 * DOWN; i++) {
            const int r = row + 8 * i;
            const double product = of_row(products, r), square = of_row(squares, r);
            const double damping = square == 0 ? 1 : product < 0 ? 0 : product > square ? 1 : product / square;
            double loss = 0;
            each_pair(i, [&](float2 x, int, float2 part) {
                const float u = x.x - float(damping) * (factor * part.x), v = x.y - float(damping) * (factor * part.y);
                loss += u * u;
                loss += v * v;
            });
            loss = part_sum(loss);
            if (t == 0)
                losses[r * WARPS_ACROSS + across] = loss;
            if (t == 0 && across == 0 && inside(r))
                args.factors[first + r] = damping;
        }
        meet_roles();
        if (thread < ROWS && inside(thread))
            args.losses[first + thread] = of_row(losses, thread);
    }
};

struct Averager : CodeUpdate {
    static constexpr int WARPS_ACROSS = ATOMS / 16;
    static constexpr int QUADS = 2; // a thread's groups of four adjacent codes in a tile, one per row
    static_assert(ROWS * WARPS_ACROSS == THREADS / WARP * 16 && CODES == 4 * QUADS * THREADS, "a warp has 16 rows × 16 codes");
    static_assert(THREADS == ROWS * PIECES, "a thread copies a piece of codes");

    int across, row; // as in Decoder
    int column;      // the thread's first column in a tile

    __device__ __forceinline__ Averager(const UpdateCodes& args, Half* shared)
        : CodeUpdate(args, shared), across(warp % WARPS_ACROSS), row(warp / WARPS_ACROSS * 16 + g), column(16 * across + 4 * t)
    {
    }

    // load_codes starts copying tile n of the old codes.
    __device__ __forceinline__ void load_codes(int n)
    {
        const int row = thread / PIECES, column = thread % PIECES * 8;
        if (n < tiles)
            copy_async(old_codes(n) + place(row, column), args.codes + (first + row) * args.shape.code_pitch + n * ATOMS + column,
                       inside(row) && n * ATOMS + column < args.shape.code_pitch);
        copy_commit();
    }

    // quad returns the index of the thread's group number i of tile n in S, Q and codes.
    __device__ __forceinline__ long long quad(int n, int i) const
    {
        return (first + row + 8 * i) * args.shape.code_pitch + n * ATOMS + column;
    }

    __device__ __forceinline__ bool quad_inside(int n, int i) const
    {
        return inside(row + 8 * i) && n * ATOMS + column < args.shape.code_pitch;
    }

    // sum_of returns the shared memory of S (0) or Q (1) of the thread's group number i of tile n.
    __device__ __forceinline__ float4& sum_of(int n, int i, int which) const
    {
        return sums[((unsigned(n) % SUMS * QUADS + i) * 2 + which) * THREADS + thread];
    }

    // load_sums starts copying the thread's elements of S and Q of tile n.
    __device__ __forceinline__ void load_sums(int n)
    {
        if (n < tiles) {
            UNROLL
            for (int i = 0; i < QUADS; i++) {
                copy_async(&sum_of(n, i, 0), args.sum_g + quad(n, i), quad_inside(n, i));
                copy_async(&sum_of(n, i, 1), args.sum_q + quad(n, i), quad_inside(n, i));
            }
        }
        copy_commit();
    }

    // load_residuals reads the residuals of the warp's rows.
    __device__ __forceinline__ void load_residuals(unsigned (&residual)[DIM / 16][4])
    {
        const Half* from = residuals + (row - g + lane % 16) * PITCH + lane / 16 * 8;
        UNROLL
        for (int k = 0; k < DIM; k += 16)
            load_matrices<false>(residual[k / 16], from + k);
    }

    // correlate computes the products of residuals and a tile of atoms. A thread with t < 2 has
    // columns 4t and 4t+1 of its 16 in p[0] and the next two in p[1]. For t ≥ 2 it is the other
    // way round, which avoids bank conflicts.
    __device__ __forceinline__ void correlate(float (&p)[2][4], const unsigned (&residual)[DIM / 16][4], const Half* atoms)
    {
        const int of = lane % 8;
        const Half* atom = atoms + (16 * across + of / 2 * 4 + (lane / 16 ^ of / 4) * 2 + of % 2) * PITCH + lane / 8 % 2 * 8;
        UNROLL
        for (int k = 0; k < DIM; k += 16) {
            unsigned x[4];
            load_matrices<false>(x, atom + k);
            const unsigned b[2][2] = {{x[0], x[1]}, {x[2], x[3]}};
            mma_halves(p[0], residual[k / 16], b[0]);
            mma_halves(p[1], residual[k / 16], b[1]);
        }
    }

    __device__ __forceinline__ void run()
    {
        UNROLL
        for (int n = 0; n < SUMS; n++)
            load_sums(n);
        UNROLL
        for (int n = 0; n < STAGES - 1; n++)
            load_codes(n);
        for (int n = 0; n < tiles; n++) {
            copy_wait<STAGES - 2>();
            meet_roles();
            load_codes(n + STAGES - 1);
        }
        meet_roles();
        const DualAveraging averaging(args);
        const float code_scale = float_once(args.code_scale);
        meet_roles();
        unsigned residual[DIM / 16][4];
        load_residuals(residual);
        for (int n = 0; n < tiles; n++) {
            float p[2][4] = {};
            correlate(p, residual, atoms_of(tiles + n));
            copy_wait<SUMS - 1>(); // the thread's sums are there
            UNROLL
            for (int i = 0; i < QUADS; i++) {
                const float *even = p[0] + 2 * i, *odd = p[1] + 2 * i;
                const bool swapped = t >= 2;
                const float4 x = make_float4(swapped ? odd[0] : even[0], swapped ? odd[1] : even[1],
                                             swapped ? even[0] : odd[0], swapped ? even[1] : odd[1]);
                float4 sum_g = sum_of(n, i, 0), sum_q = sum_of(n, i, 1);
                const float4 a = averaging.codes(x, sum_g, sum_q);
                const uint2 code = make_uint2(halves(within_halves(code_scale * a.x), within_halves(code_scale * a.y)),
                                              halves(within_halves(code_scale * a.z), within_halves(code_scale * a.w)));
                *reinterpret_cast<uint2*>(codes + n % 2 * CODES + place(row + 8 * i, column)) = code;
                if (quad_inside(n, i)) {
                    const long long at = quad(n, i);
                    store(args.sum_g + at, sum_g);
                    store(args.sum_q + at, sum_q);
                    *reinterpret_cast<uint2*>(args.codes + at) = code;
                }
            }
            load_sums(n + SUMS);
            meet_roles();
        }
        // The decoders' barriers for the sums of rows.
        meet_roles();
        meet_roles();
    }
};

extern "C" __global__ void __launch_bounds__(UPDATE_CODES_THREADS, 1) update_codes(UpdateCodes args)
{
    SHARED_MEMORY(Half, shared_halves);
    if (threadIdx.x < CodeUpdate::THREADS)
        Decoder(args, shared_halves).run();
    else
        Averager(args, shared_halves).run();
}
