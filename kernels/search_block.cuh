// The search of package encode for codes of rows × atoms. One launch runs all iterations and
// computes the same bits as a CPU. Package encode defines the symbols.
//
// An iteration consists of two products of 8-bit integers, both on tensor cores:
//
//     S = R8·D8ᵀ    then u, x, z, Z8 of each code, and h
//     O = Z8·D8     then r of each residual, and R8
//
// Both use the same tile of atoms in shared memory, and O transposes its rows while it reads them.
// R8 stays in shared memory, O in registers. Each kernel is therefore for rows up to a certain
// length. Longer rows, and GPUs with less shared memory, use search_any.cu.
//
// z and b stay in L2 or memory. Most are zero. A thread has a bit for its four adjacent codes of a
// row, which are a sector of 32 bytes. It neither reads nor writes them while all are zero.
//
// Lower bounds for an iteration of 64 rows of 300 → 3000, two blocks of an SM of an H100. Tensor
// cores: 2 · 64 · 3072 · 320 multiplications, 61,000 clocks at 2,048 per clock. Issue: 260,000
// instructions, 65,000 clocks. L2: D8 twice, and half of the states read and written, 3.7 MB, 150,000
// clocks at 24 bytes per clock and SM. Measured on an H200: 201,000 clocks. In 37 % of the samples a
// warp waits for results of instructions, in 17 % for L2 and memory, in 9 % at a barrier; in 19 % it
// issues.

#pragma once

#include "search.cuh"

// BlockSearch searches the codes of SEARCH_ROWS rows of at most LENGTH elements, in a block of WARPS warps.
template <int LENGTH, int WARPS>
struct BlockSearch {
    static constexpr int PITCH = LENGTH + 16, CODE_PITCH = SEARCH_ATOMS + 16; // in shared memory: eight rows are in different banks
    static constexpr int THREADS = WARPS * WARP, TILE = SEARCH_ATOMS * PITCH;
    // In S, four warps share SEARCH_ROWS/GROUPS rows, and each computes 16 atoms of a tile. In O, each warp
    // computes LENGTH/WARPS columns of all rows. The rows of a thread are 8 apart. In S it has four atoms of a
    // tile, in O four of every 16 columns.
    static constexpr int GROUPS = WARPS / 4, S_ROWS = SEARCH_ROWS / GROUPS / 8, O_ROWS = SEARCH_ROWS / 8, ACROSS = LENGTH / WARPS / 16;
    static_assert(LENGTH % 32 == 0 && ACROSS * 16 * WARPS == LENGTH && S_ROWS % 2 == 0 && S_ROWS <= 4, "products of mma, and bits of flags");

    const Search& args;
    signed char *residual_bytes, *atoms, *code_bytes; // shared: R8 of all rows, 2 tiles, Z8 of all rows
    unsigned *parts, *code_parts, *counts;            // shared: WARPS × SEARCH_ROWS, and twice 4 × SEARCH_ROWS
    float *steps, *reaches;                           // shared, per row: σ and h
    int* exponents;                                   // shared, per row
    int warp, lane, t, s_row, o_row, o_column;
    long long first; // first row of the block

    __device__ __forceinline__ BlockSearch(const Search& args, signed char* shared)
        : args(args), warp(threadIdx.x / WARP), lane(threadIdx.x % WARP), t(threadIdx.x % 4)
    {
        residual_bytes = shared;
        atoms = residual_bytes + SEARCH_ROWS * PITCH;
        code_bytes = atoms + 2 * TILE;
        parts = reinterpret_cast<unsigned*>(code_bytes + SEARCH_ROWS * CODE_PITCH);
        code_parts = parts + WARPS * SEARCH_ROWS;
        counts = code_parts + 4 * SEARCH_ROWS;
        steps = reinterpret_cast<float*>(counts + 4 * SEARCH_ROWS);
        reaches = steps + SEARCH_ROWS;
        exponents = reinterpret_cast<int*>(reaches + SEARCH_ROWS);
        s_row = warp / 4 * (SEARCH_ROWS / GROUPS) + lane / 4;
        o_row = lane / 4;
        o_column = warp * (LENGTH / WARPS) + 4 * t;
        first = static_cast<long long>(blockIdx.x) * SEARCH_ROWS;
    }

    // over_rows reduces x[e] over the threads of the thread's row e in a warp, and is a barrier. of_row then returns
    // the maximum of a row over its warps, or with SUM the sum.
    template <bool SUM, int N>
    __device__ __forceinline__ void over_rows(unsigned* parts, int row, int slot, unsigned (&x)[N])
    {
        UNROLL
        for (int e = 0; e < N; e++) {
            x[e] = over_quad<SUM>(x[e]);
            if (t == 0)
                parts[slot * SEARCH_ROWS + row + 8 * e] = x[e];
        }
        __syncthreads();
    }

    template <bool SUM>
    __device__ __forceinline__ unsigned of_row(const unsigned* parts, int row, int slots)
    {
        unsigned x = 0;
        UNROLL
        for (int slot = 0; slot < slots; slot++) {
            const unsigned part = parts[slot * SEARCH_ROWS + row];
            x = SUM ? x + part : max(x, part);
        }
        return x;
    }

    // each_vector calls f(e, c, column) for each group of four columns of the thread's rows e of O.
    template <typename F>
    __device__ __forceinline__ void each_vector(F f) const
    {
        UNROLL
        for (int e = 0; e < O_ROWS; e++) {
            UNROLL
            for (int c = 0; c < ACROSS; c++)
                f(e, c, o_column + 16 * c);
        }
    }

    // set_step stores and returns σ of a row. top contains the bits of the row's largest magnitude.
    __device__ __forceinline__ float set_step(int e, unsigned top)
    {
        const float step = unit_of(top);
        if (warp == 0 && t == 0)
            steps[o_row + 8 * e] = step;
        return step;
    }

    // set_bytes stores R8 of four residuals and returns the sum of its squares.
    __device__ __forceinline__ int set_bytes(int e, int column, float4 r, float step)
    {
        const float scale = inverse(step);
        const int a = nearest(r.x * scale), b = nearest(r.y * scale), c = nearest(r.z * scale), d = nearest(r.w * scale);
        *reinterpret_cast<unsigned*>(residual_bytes + (o_row + 8 * e) * PITCH + column) = pack_bytes(a, b, c, d);
        return a * a + b * b + c * c + d * d;
    }

    // start_copy starts copying the thread's part of a tile of D8 to shared memory.
    __device__ __forceinline__ void start_copy(const signed char* from, int stage)
    {
        signed char* to = atoms + stage * TILE + 16 * threadIdx.x;
        UNROLL
        for (int i = 0; i < TILE; i += 16 * THREADS)
            if (i + 16 * THREADS <= TILE || threadIdx.x < (TILE - i) / 16)
                copy_async(to + i, from + i, true);
        copy_commit();
    }

    // begin scales the rows and rounds them.
    __device__ __forceinline__ void begin(int scaled_pitch)
    {
        unsigned top[O_ROWS] = {}, squares[O_ROWS] = {};
        auto row_of = [&](int e, int column) {
            const long long row = first + o_row + 8 * e;
            return row < args.shape.rows && column < args.shape.dim_pitch ? load(args.y + row * args.shape.dim_pitch + column)
                                                                           : make_float4(0, 0, 0, 0);
        };
        each_vector([&](int e, int, int column) {
            const float4 y = row_of(e, column);
            top[e] = max(max(top[e], max(bits_of(y.x), bits_of(y.y))), max(bits_of(y.z), bits_of(y.w)));
        });
        over_rows<false>(parts, o_row, warp, top);
        int exponent[O_ROWS];
        float step[O_ROWS];
        UNROLL
        for (int e = 0; e < O_ROWS; e++) {
            top[e] = of_row<false>(parts, o_row + 8 * e, WARPS);
            if (top[e] >= INFINITE)
                top[e] = 0;
            const double y = __uint_as_float(top[e]);
            exponent[e] = top[e] == 0 ? 0 : static_cast<int>(static_cast<unsigned long long>(__double_as_longlong(y)) >> 52) - 1023;
            step[e] = set_step(e, __float_as_uint(float(y * power_of_two(-exponent[e]))));
            if (warp == 0 && t == 0) {
                exponents[o_row + 8 * e] = exponent[e];
                if (first + o_row + 8 * e < args.shape.rows)
                    args.factors[first + o_row + 8 * e] = 1 / *args.unit * power_of_two(exponent[e]);
            }
        }
        __syncthreads(); // all threads have read the maxima
        each_vector([&](int e, int, int column) {
            const float4 y = row_of(e, column);
            const double scale = power_of_two(-exponent[e]);
            const bool skipped = top[e] == 0;
            const float4 scaled = skipped ? make_float4(0, 0, 0, 0) : make_float4(float(y.x * scale), float(y.y * scale), float(y.z * scale), float(y.w * scale));
            if (column < scaled_pitch)
                store(args.scaled + (first + o_row + 8 * e) * scaled_pitch + column, scaled);
            squares[e] += set_bytes(e, column, scaled, step[e]);
        });
        for (int i = threadIdx.x; i < 4 * SEARCH_ROWS; i += THREADS)
            counts[i] = 0;
        over_rows<true>(parts, o_row, warp, squares);
        if (threadIdx.x < SEARCH_ROWS) {
            const unsigned sum = of_row<true>(parts, threadIdx.x, WARPS);
            reaches[threadIdx.x] = __fmul_rn(__fmul_rn(*args.reach / 2, steps[threadIdx.x]), sqrtf(static_cast<float>(sum)));
        }
    }

    // multiply_s computes the thread's part of S for a tile.
    __device__ __forceinline__ void multiply_s(int (&sums)[S_ROWS / 2][2][4], const signed char* tile) const
    {
        const signed char* left = residual_bytes + (warp / 4 * (SEARCH_ROWS / GROUPS) + lane % 16) * PITCH + lane / 16 * 16;
        const signed char* right = tile + (warp % 4 * 16 + lane % 8) * PITCH + lane / 8 * 16;
        UNROLL_BY(LENGTH <= 384 ? LENGTH / 64 : 2)
        for (int k = 0; k < LENGTH; k += 64) {
            unsigned b[2][4];
            UNROLL
            for (int j = 0; j < 2; j++)
                load_matrices<false>(b[j], reinterpret_cast<const Half*>(right + j * 8 * PITCH + k));
            UNROLL
            for (int h = 0; h < 2; h++) {
                UNROLL
                for (int i = 0; i < S_ROWS / 2; i++) {
                    unsigned a[4];
                    load_matrices<false>(a, reinterpret_cast<const Half*>(left + i * 16 * PITCH + k + 32 * h));
                    UNROLL
                    for (int j = 0; j < 2; j++) {
                        const unsigned pair[2] = {b[j][2 * h], b[j][2 * h + 1]};
                        mma_bytes(sums[i][j], a, pair);
                    }
                }
            }
        }
    }

    // multiply_o adds the products of the codes of a tile to O. load_matrices transposes matrices of pairs of
    // bytes, so a thread receives two columns of two atoms. sums[…][f][2h + e] is column 4t + 2e + f of 16.
    __device__ __forceinline__ void multiply_o(int (&sums)[O_ROWS / 2][ACROSS][2][4], const signed char* tile) const
    {
        const signed char* left = code_bytes + lane % 16 * CODE_PITCH + lane / 16 * 16;
        const signed char* right = tile + lane * PITCH + warp * (LENGTH / WARPS);
        UNROLL
        for (int k = 0; k < SEARCH_ATOMS; k += 32) {
            unsigned a[O_ROWS / 2][4];
            UNROLL
            for (int i = 0; i < O_ROWS / 2; i++)
                load_matrices<false>(a[i], reinterpret_cast<const Half*>(left + i * 16 * CODE_PITCH + k));
            UNROLL
            for (int c = 0; c < ACROSS; c++) {
                unsigned x[4];
                load_matrices<true>(x, reinterpret_cast<const Half*>(right + k * PITCH + 16 * c));
                UNROLL
                for (int f = 0; f < 2; f++) {
                    const unsigned b[2] = {__byte_perm(x[0], x[1], f ? 0x7531 : 0x6420), __byte_perm(x[2], x[3], f ? 0x7531 : 0x6420)};
                    UNROLL
                    for (int i = 0; i < O_ROWS / 2; i++)
                        mma_bytes(sums[i][c][f], a[i], b);
                }
            }
        }
    }

    // subtract computes r = ŷ − τO and rounds it to R8. largest is the largest |z·v| of each row of S, and count the
    // number of its nonzeros, which counts receives by warp.
    __device__ __forceinline__ void subtract(const int (&sums)[O_ROWS / 2][ACROSS][2][4], const float (&largest)[S_ROWS], const unsigned (&count)[S_ROWS], int scaled_pitch)
    {
        unsigned of_codes[S_ROWS];
        UNROLL
        for (int e = 0; e < S_ROWS; e++) {
            of_codes[e] = __float_as_uint(largest[e]);
            const unsigned n = over_quad<true>(count[e]);
            if (t == 0)
                counts[warp % 4 * SEARCH_ROWS + s_row + 8 * e] = n;
        }
        over_rows<false>(code_parts, s_row, warp % 4, of_codes);
        const unsigned most = threadIdx.x < SEARCH_ROWS ? of_row<false>(code_parts, threadIdx.x, 4) : 0;
        float unit[O_ROWS];
        UNROLL
        for (int e = 0; e < O_ROWS; e++)
            unit[e] = unit_of(__float_as_uint(reaches[o_row + 8 * e]));
        float4 r[O_ROWS][ACROSS];
        unsigned tops[O_ROWS] = {};
        each_vector([&](int e, int c, int column) {
            const float4 y = column < scaled_pitch ? load(args.scaled + (first + o_row + 8 * e) * scaled_pitch + column) : make_float4(0, 0, 0, 0);
            auto residual = [&](float y, int i) { return __fadd_rn(y, -__fmul_rn(unit[e], static_cast<float>(sums[e / 2][c][i % 2][e % 2 * 2 + i / 2]))); };
            r[e][c] = make_float4(residual(y.x, 0), residual(y.y, 1), residual(y.z, 2), residual(y.w, 3));
            tops[e] = max(max(tops[e], max(bits_of(r[e][c].x), bits_of(r[e][c].y))), max(bits_of(r[e][c].z), bits_of(r[e][c].w)));
        });
        over_rows<false>(parts, o_row, warp, tops);
        if (most >= SMALLEST)
            reaches[threadIdx.x] = __uint_as_float(most);
        float step[O_ROWS];
        UNROLL
        for (int e = 0; e < O_ROWS; e++)
            step[e] = set_step(e, of_row<false>(parts, o_row + 8 * e, WARPS));
        each_vector([&](int e, int c, int column) { set_bytes(e, column, r[e][c], step[e]); });
    }

    __device__ __forceinline__ void run()
    {
        const int tiles = max(2, (args.shape.atoms + SEARCH_ATOMS - 1) / SEARCH_ATOMS), pitch = round_up(args.shape.atoms, SEARCH_COLUMNS);
        const int scaled_pitch = round_up(args.shape.dim, SEARCH_DEPTH);
        const signed char* next_atoms = args.bytes + 16 * threadIdx.x;
        start_copy(next_atoms, 0);
        begin(scaled_pitch);
        unsigned char* flags = reinterpret_cast<unsigned char*>(args.flags) + static_cast<long long>(blockIdx.x) * tiles * THREADS + threadIdx.x;
        UNROLL_BY(1)
        for (int n = 0; n < tiles; n++)
            flags[n * THREADS] = 0;
        constexpr int STATES = 2 * SEARCH_ROWS * SEARCH_ATOMS; // numbers of z and b per tile
        const int s_column = warp % 4 * 16 + 4 * t, place = s_row * SEARCH_ATOMS + s_column;
        float* states = args.codes + code_place(first, 0, pitch); // z and b of the tile
        int stage = 0;
        float4 z[S_ROWS], b[S_ROWS];
        UNROLL
        for (int e = 0; e < S_ROWS; e++)
            z[e] = b[e] = make_float4(0, 0, 0, 0);
        for (int it = 0; it < args.count; it++) {
            const Iteration now = args.iterations[it];
            const bool last = it + 1 == args.count;
            const CodeStep code = {now.momentum, args.nonnegative};
            const bool enter_next = !last && args.iterations[it + 1].enters; // otherwise a code with b = 0 becomes 0, whatever its z
            const int b_place = last ? place : 2 * place + 4, b_apart = (last ? 8 : 16) * SEARCH_ATOMS;
            __syncthreads(); // all threads see steps, reaches and R8
            float step[S_ROWS], threshold[S_ROWS], scale_x[S_ROWS], most[S_ROWS];
            unsigned count[S_ROWS] = {}; // nonzeros, before an iteration in which atoms enter
            bool enter[S_ROWS];
            const unsigned capacity = now.enters ? args.capacity : 0;
            UNROLL
            for (int e = 0; e < S_ROWS; e++) {
                step[e] = steps[s_row + 8 * e];
                threshold[e] = static_cast<float>(now.lambda * *args.step * *args.unit * power_of_two(-exponents[s_row + 8 * e]));
                scale_x[e] = inverse(unit_of(__float_as_uint(reaches[s_row + 8 * e])));
                most[e] = 0;
                enter[e] = of_row<true>(counts, s_row + 8 * e, 4) < capacity;
            }
            int sums[O_ROWS / 2][ACROSS][2][4] = {};
            for (int n = 0; n < tiles; n++) {
                const bool wraps = n + 1 == tiles;
                copy_wait<0>();
                __syncthreads(); // all threads see the tile, and have read the previous tile and Z8
                next_atoms += wraps ? static_cast<long long>(1 - tiles) * TILE : TILE;
                start_copy(next_atoms, stage ^ 1);
                const int flags_then = flags[(wraps ? 0 : n + 1) * THREADS];
                int products[S_ROWS / 2][2][4] = {};
                const signed char* tile = atoms + stage * TILE;
                multiply_s(products, tile);
                float2 factors[4]; // c and v of the thread's atoms
                UNROLL
                for (int i = 0; i < 4; i++)
                    factors[i] = *reinterpret_cast<const float2*>(tile + (warp % 4 * 16 + i / 2 * 8 + 2 * t + i % 2) * PITCH + LENGTH);
                int nonzero = 0;
                UNROLL
                for (int e = 0; e < S_ROWS; e++) {
                    auto advance = [&](int i, float& z, float& b) {
                        return code.advance(products[e / 2][i / 2][e % 2 * 2 + i % 2], factors[i].x, factors[i].y, step[e], threshold[e], enter[e], z, b);
                    };
                    const float4 x = make_float4(advance(0, z[e].x, b[e].x), advance(1, z[e].y, b[e].y), advance(2, z[e].z, b[e].z), advance(3, z[e].w, b[e].w));
                    const bool kept = !last & (any(b[e]) | (enter_next & any(z[e])));
                    if (enter_next)
                        count[e] += nonzeros(b[e]);
                    nonzero |= kept ? 1 << e : 0;
                    if (kept)
                        store(states + 2 * (place + 8 * e * SEARCH_ATOMS), z[e]);
                    if (kept | last) // in the last iteration, all threads have read the states of this tile
                        store(states + b_place + e * b_apart, b[e]);
                    most[e] = fmaxf(most[e], fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
                    auto rounded = [&](float x) { return nearest_bits(fminf(fmaxf(x * scale_x[e], -127), 127)); };
                    *reinterpret_cast<unsigned*>(code_bytes + (s_row + 8 * e) * CODE_PITCH + s_column) = pack_bytes(rounded(x.x), rounded(x.y), rounded(x.z), rounded(x.w));
                }
                flags[n * THREADS] = nonzero;
                // The next tile's states arrive during two products.
                states += wraps ? static_cast<long long>(1 - tiles) * STATES : STATES;
                UNROLL
                for (int e = 0; e < S_ROWS; e++) {
                    z[e] = b[e] = make_float4(0, 0, 0, 0);
                    if (flags_then & 1 << e) {
                        z[e] = load(states + 2 * (place + 8 * e * SEARCH_ATOMS));
                        b[e] = load(states + 2 * (place + 8 * e * SEARCH_ATOMS) + 4);
                    }
                }
                if (!last) {
                    __syncthreads(); // all threads see Z8
                    multiply_o(sums, tile);
                }
                stage ^= 1;
            }
            if (!last)
                subtract(sums, most, count, scaled_pitch);
        }
        copy_wait<0>();
    }
};

// SEARCH defines the kernel for rows of at most LENGTH elements. BLOCKS blocks share an SM. Each kernel has a file of
// its own, because the driver compiles whole files.
#define SEARCH(LENGTH, WARPS, BLOCKS)                                                             \
    extern "C" __global__ void __launch_bounds__(WARPS * WARP, BLOCKS) search_##LENGTH(Search args) \
    {                                                                                               \
        SHARED_MEMORY(signed char, shared);                                                         \
        BlockSearch<LENGTH, WARPS>(args, shared).run();                                             \
    }
