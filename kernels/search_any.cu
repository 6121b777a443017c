// The search of search_block.cuh for rows of any length, on GPUs with any shared memory.
//
// D8 is stored twice, as atoms × dim and as dim × atoms, so that both reductions run along
// rows and one function computes both. Factors pass through shared memory in pieces of
// SEARCH_DEPTH bytes. Neither shared memory nor registers depend on the number of atoms or
// on the length of rows.
//
// Lower bounds for an iteration of a block of 32 rows of 300 → 3000. Tensor cores: 2 · 32 · 3072
// · 320 multiplications, 31,000 clocks at 2,048 a clock and SM. L2: D8 twice and a third of
// the states, 3 MB, 70 clocks a KB at 5.5 TB/s for 132 SMs. With 128 blocks, 16 iterations of
// 4096 rows read 6 GB: 1.1 ms on an H100, 1.3 on an A100 (4.5 TB/s), 1.2 on an RTX 4090 (5 TB/s).
// More rows a block would read less, and occupy fewer SMs.
#include "search.cuh"

constexpr int PIECE_PITCH = SEARCH_DEPTH + 16; // pitch of rows in shared memory: eight rows are in different banks
constexpr int STAGE = (SEARCH_ROWS + SEARCH_COLUMNS) * PIECE_PITCH;
constexpr int WARPS = SEARCH_THREADS / WARP, WARP_COLUMNS = SEARCH_COLUMNS / WARPS;
constexpr int DOWN = SEARCH_ROWS / 16, ACROSS = WARP_COLUMNS / 8; // results of mma in a warp's part of a tile
constexpr int ROWS = 2 * DOWN, QUADS = ACROSS / 2;                // a thread's rows, and its groups of four columns
static_assert(SEARCH_SHARED == SEARCH_STAGES * STAGE + 4 * WARPS * SEARCH_ROWS, "the host asks for this much");

// ByteProduct multiplies a block's rows of bytes with the rows of D8 or of its transpose.
struct ByteProduct {
    signed char* shared;
    int warp, lane, row, t; // row: the thread's first row; the others follow 8 apart

    __device__ __forceinline__ ByteProduct(signed char* shared)
        : shared(shared), warp(threadIdx.x / WARP), lane(threadIdx.x % WARP), row(threadIdx.x % WARP / 4), t(threadIdx.x % 4)
    {
    }

    // run multiplies left, SEARCH_ROWS × depth, with right, rows × depth. depth is a multiple of
    // SEARCH_DEPTH. It calls done(tile, column, sums) for each tile of the result. Elements 4·q to 4·q + 3 of
    // sums[i] are columns column + 16·q and the next three of the thread's row i. A barrier must precede run,
    // after all threads have written left and have finished the last run.
    template <typename F>
    __device__ __forceinline__ void run(const signed char* left, int left_pitch, const signed char* right, int rows, int depth, F done)
    {
        const int pieces = depth / SEARCH_DEPTH, steps = (rows + SEARCH_COLUMNS - 1) / SEARCH_COLUMNS * pieces;
        int loaded_tile = 0, loaded_piece = 0;
        auto load = [&](int step) {
            if (step < steps) {
                signed char* stage = shared + step % SEARCH_STAGES * STAGE;
                constexpr int COPIES = SEARCH_DEPTH / 16, APART = SEARCH_THREADS / COPIES; // rows between a thread's copies
                const int first = threadIdx.x / COPIES, byte = threadIdx.x % COPIES * 16, from = loaded_piece * SEARCH_DEPTH + byte;
                if (first < SEARCH_ROWS)
                    copy_async(stage + first * PIECE_PITCH + byte, left + static_cast<long long>(first) * left_pitch + from, true);
                stage += SEARCH_ROWS * PIECE_PITCH;
                UNROLL
                for (int i = 0; i < SEARCH_COLUMNS; i += APART) {
                    const int of = loaded_tile * SEARCH_COLUMNS + first + i;
                    copy_async(stage + (first + i) * PIECE_PITCH + byte, right + static_cast<long long>(of) * depth + from, of < rows);
                }
                if (++loaded_piece == pieces)
                    loaded_piece = 0, loaded_tile++;
            }
            copy_commit(); // past the end, an empty group keeps the count
        };
        for (int step = 0; step < SEARCH_STAGES - 1; step++)
            load(step);
        int sums[DOWN][ACROSS][4] = {};
        int tile = 0, piece = 0;
        for (int step = 0; step < steps; step++) {
            copy_wait<SEARCH_STAGES - 2>();
            __syncthreads(); // all threads see this step's pieces, and have read those that the next copy overwrites
            load(step + SEARCH_STAGES - 1);
            const int column = tile * SEARCH_COLUMNS + warp * WARP_COLUMNS;
            const bool inside = column < rows; // for the whole warp
            if (inside)
                multiply_add(sums, shared + step % SEARCH_STAGES * STAGE);
            if (++piece == pieces) {
                if (inside) {
                    done(tile, column + 4 * t, sums);
                    UNROLL
                    for (int i = 0; i < DOWN * ACROSS * 4; i++)
                        sums[i / 4 / ACROSS][i / 4 % ACROSS][i % 4] = 0;
                }
                piece = 0, tile++;
            }
        }
    }

    // multiply_add adds the products of a step.
    __device__ __forceinline__ void multiply_add(int (&sums)[DOWN][ACROSS][4], const signed char* stage)
    {
        const signed char* left = stage + lane % 16 * PIECE_PITCH + lane / 16 * 16;
        const signed char* right = stage + (SEARCH_ROWS + warp * WARP_COLUMNS + lane % 8) * PIECE_PITCH + lane / 8 * 16;
        unsigned b[ACROSS][4];
        UNROLL
        for (int j = 0; j < ACROSS; j++)
            load_matrices<false>(b[j], reinterpret_cast<const Half*>(right + j * 8 * PIECE_PITCH));
        UNROLL
        for (int k = 0; k < SEARCH_DEPTH / 32; k++) {
            unsigned a[DOWN][4];
            UNROLL
            for (int i = 0; i < DOWN; i++)
                load_matrices<false>(a[i], reinterpret_cast<const Half*>(left + i * 16 * PIECE_PITCH + k * 32));
            UNROLL
            for (int j = 0; j < ACROSS; j++) {
                const unsigned pair[2] = {b[j][2 * k], b[j][2 * k + 1]};
                UNROLL
                for (int i = 0; i < DOWN; i++)
                    mma_bytes(sums[i][j], a[i], pair);
            }
        }
    }

    // each_four calls f(e, column) for each four columns of the thread's rows e of a result of the given number
    // of columns.
    template <typename F>
    __device__ __forceinline__ void each_four(int columns, F f) const
    {
        for (int column = warp * WARP_COLUMNS + 4 * t; column < columns; column += SEARCH_COLUMNS) {
            UNROLL
            for (int q = 0; q < QUADS; q++) {
                UNROLL
                for (int e = 0; e < ROWS; e++)
                    f(e, column + 16 * q);
            }
        }
    }

    // sum returns element n of group q of the thread's row e.
    static __device__ __forceinline__ int sum(const int (&sums)[DOWN][ACROSS][4], int e, int q, int n)
    {
        return sums[e / 2][2 * q + n / 2][e % 2 * 2 + n % 2];
    }
};

// over_rows replaces x[e] by the maximum, or with SUM the sum, over the threads of the thread's row
// e. `parts` is shared memory. over_rows is a barrier, and another barrier must separate two calls.
template <bool SUM>
__device__ __forceinline__ void over_rows(const ByteProduct& p, unsigned* parts, unsigned (&x)[ROWS])
{
    UNROLL
    for (int e = 0; e < ROWS; e++) {
        x[e] = over_quad<SUM>(x[e]);
        if (p.t == 0)
            parts[p.warp * SEARCH_ROWS + p.row + 8 * e] = x[e];
    }
    __syncthreads();
    UNROLL
    for (int e = 0; e < ROWS; e++) {
        x[e] = 0;
        UNROLL
        for (int w = 0; w < WARPS; w++) {
            const unsigned part = parts[w * SEARCH_ROWS + p.row + 8 * e];
            x[e] = SUM ? x[e] + part : max(x[e], part);
        }
    }
}

extern "C" __global__ void __launch_bounds__(SEARCH_THREADS, 1) search_any(Search args)
{
    SHARED_MEMORY(signed char, shared);
    unsigned* parts = reinterpret_cast<unsigned*>(shared + SEARCH_STAGES * STAGE);
    ByteProduct p(shared);
    const int dim = round_up(args.shape.dim, 16), atoms = round_up(args.shape.atoms, 16);
    const int dim_bytes = round_up(args.shape.dim, SEARCH_DEPTH), atom_bytes = round_up(args.shape.atoms, SEARCH_DEPTH);
    const int pitch = round_up(args.shape.atoms, SEARCH_COLUMNS);
    const long long first = static_cast<long long>(blockIdx.x) * SEARCH_ROWS;

    auto vector_at = [&](int e, int column) { return (first + p.row + 8 * e) * dim_bytes + column; };
    // round_residuals computes σ = step and R8 from r and the bits of its largest magnitudes.
    float step[ROWS];
    auto round_residuals = [&](const float* r, const unsigned (&top)[ROWS], unsigned (&squares)[ROWS]) {
        UNROLL
        for (int e = 0; e < ROWS; e++)
            step[e] = unit_of(top[e]);
        p.each_four(dim, [&](int e, int column) {
            const long long at = vector_at(e, column);
            const float4 x = load(r + at);
            const float scale = inverse(step[e]);
            const int a = nearest(x.x * scale), b = nearest(x.y * scale), c = nearest(x.z * scale), d = nearest(x.w * scale);
            squares[e] += a * a + b * b + c * c + d * d;
            *reinterpret_cast<unsigned*>(args.residual_bytes + at) = pack_bytes(a, b, c, d);
        });
    };
    // Scale the rows.
    unsigned top[ROWS] = {}, squares[ROWS] = {};
    auto row_of = [&](int e, int column) {
        const long long row = first + p.row + 8 * e;
        return row < args.shape.rows && column < args.shape.dim_pitch ? load(args.y + row * args.shape.dim_pitch + column)
                                                                       : make_float4(0, 0, 0, 0);
    };
    p.each_four(dim, [&](int e, int column) {
        const float4 y = row_of(e, column);
        top[e] = max(max(top[e], max(bits_of(y.x), bits_of(y.y))), max(bits_of(y.z), bits_of(y.w)));
    });
    over_rows<false>(p, parts, top);
    int exponent[ROWS];
    UNROLL
    for (int e = 0; e < ROWS; e++) {
        if (top[e] >= INFINITE)
            top[e] = 0;
        const double y = __uint_as_float(top[e]);
        exponent[e] = top[e] == 0 ? 0 : static_cast<int>(static_cast<unsigned long long>(__double_as_longlong(y)) >> 52) - 1023;
        if (p.warp == 0 && p.t == 0 && first + p.row + 8 * e < args.shape.rows)
            args.factors[first + p.row + 8 * e] = 1 / *args.unit * power_of_two(exponent[e]);
    }
    p.each_four(dim, [&](int e, int column) {
        const float4 y = row_of(e, column);
        const double scale = power_of_two(-exponent[e]);
        const bool skipped = top[e] == 0;
        store(args.scaled + vector_at(e, column), skipped ? make_float4(0, 0, 0, 0) : make_float4(float(y.x * scale), float(y.y * scale), float(y.z * scale), float(y.w * scale)));
    });
    UNROLL
    for (int e = 0; e < ROWS; e++)
        top[e] = __float_as_uint(float(__uint_as_float(top[e]) * power_of_two(-exponent[e])));
    round_residuals(args.scaled, top, squares);
    __syncthreads();
    over_rows<true>(p, parts, squares);
    float reach[ROWS]; // h
    UNROLL
    for (int e = 0; e < ROWS; e++)
        reach[e] = __fmul_rn(__fmul_rn(*args.reach / 2, step[e]), sqrtf(static_cast<float>(squares[e])));

    unsigned count[ROWS] = {}; // nonzeros
    for (int t = 0; t < args.count; t++) {
        const Iteration now = args.iterations[t];
        const bool last = t + 1 == args.count;
        const CodeStep code = {now.momentum, args.nonnegative};
        float threshold[ROWS], unit[ROWS]; // unit: τ
        unsigned most[ROWS] = {};
        bool enter[ROWS];
        const unsigned capacity = now.enters ? args.capacity : 0;
        UNROLL
        for (int e = 0; e < ROWS; e++) {
            threshold[e] = static_cast<float>(now.lambda * *args.step * *args.unit * power_of_two(-exponent[e]));
            unit[e] = unit_of(__float_as_uint(reach[e]));
            enter[e] = count[e] < capacity;
            count[e] = 0;
        }
        __syncthreads(); // all threads see R8
        int* flags = args.flags + static_cast<long long>(blockIdx.x) * (pitch / SEARCH_COLUMNS * SEARCH_THREADS) + threadIdx.x;
        p.run(args.residual_bytes + first * dim_bytes, dim_bytes, args.bytes, atoms, dim_bytes, [&](int tile, int column, const int (&sums)[DOWN][ACROSS][4]) {
            const int before = t == 0 ? 0 : flags[tile * SEARCH_THREADS];
            int after = 0;
            UNROLL
            for (int q = 0; q < QUADS; q++) {
                const float4 scale = load(args.scales + column + 16 * q), share = load(args.shares + column + 16 * q);
                UNROLL
                for (int e = 0; e < ROWS; e++) {
                    const int flag = 1 << (q * ROWS + e);
                    const long long at = code_place(first + p.row + 8 * e, column + 16 * q, pitch);
                    float4 z = make_float4(0, 0, 0, 0), b = z, x;
                    if (before & flag) {
                        z = load(args.codes + at + SEARCH_ROWS * SEARCH_ATOMS);
                        b = load(args.codes + at);
                    }
                    x.x = code.advance(p.sum(sums, e, q, 0), scale.x, share.x, step[e], threshold[e], enter[e], z.x, b.x);
                    x.y = code.advance(p.sum(sums, e, q, 1), scale.y, share.y, step[e], threshold[e], enter[e], z.y, b.y);
                    x.z = code.advance(p.sum(sums, e, q, 2), scale.z, share.z, step[e], threshold[e], enter[e], z.z, b.z);
                    x.w = code.advance(p.sum(sums, e, q, 3), scale.w, share.w, step[e], threshold[e], enter[e], z.w, b.w);
                    const bool nonzero = z.x != 0 || z.y != 0 || z.z != 0 || z.w != 0 || b.x != 0 || b.y != 0 || b.z != 0 || b.w != 0;
                    if (nonzero)
                        after |= flag;
                    count[e] += nonzeros(b);
                    if (nonzero || last)
                        store(args.codes + at, b);
                    if (nonzero && !last)
                        store(args.codes + at + SEARCH_ROWS * SEARCH_ATOMS, z);
                    most[e] = max(max(most[e], max(bits_of(x.x), bits_of(x.y))), max(bits_of(x.z), bits_of(x.w)));
                    const float scale_x = inverse(unit[e]);
                    auto rounded = [&](float x) { return nearest(fminf(fmaxf(x * scale_x, -127), 127)); };
                    *reinterpret_cast<unsigned*>(args.code_bytes + (first + p.row + 8 * e) * pitch + column + 16 * q) = pack_bytes(rounded(x.x), rounded(x.y), rounded(x.z), rounded(x.w));
                }
            }
            flags[tile * SEARCH_THREADS] = after;
        });
        if (last)
            break;
        over_rows<false>(p, parts, most);
        __syncthreads();
        over_rows<true>(p, parts, count);
        unsigned tops[ROWS] = {}, unused[ROWS] = {};
        p.run(args.code_bytes + first * pitch, pitch, args.across, dim, atom_bytes, [&](int, int column, const int (&sums)[DOWN][ACROSS][4]) {
            UNROLL
            for (int q = 0; q < QUADS; q++) {
                UNROLL
                for (int e = 0; e < ROWS; e++) {
                    const long long at = vector_at(e, column + 16 * q);
                    const float4 y = load(args.scaled + at);
                    auto residual = [&](float y, int n) { return __fadd_rn(y, -__fmul_rn(unit[e], static_cast<float>(p.sum(sums, e, q, n)))); };
                    const float4 r = make_float4(residual(y.x, 0), residual(y.y, 1), residual(y.z, 2), residual(y.w, 3));
                    store(args.residuals + at, r);
                    tops[e] = max(max(tops[e], max(bits_of(r.x), bits_of(r.y))), max(bits_of(r.z), bits_of(r.w)));
                }
            }
        });
        over_rows<false>(p, parts, tops);
        round_residuals(args.residuals, tops, unused);
        UNROLL
        for (int e = 0; e < ROWS; e++)
            if (most[e] >= SMALLEST)
                reach[e] = __uint_as_float(most[e]);
    }
}
