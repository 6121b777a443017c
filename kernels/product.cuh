// The matrix product behind decode, accumulate and correlate.
//
// A block computes a tile of the result. It walks along the reduction in steps
// of DEPTH: cp.async brings the next steps' tiles of both factors into shared
// memory while the tensor cores work on this one's, STAGES tiles deep. A warp
// holds its part of the result in registers from the first step to the last, so
// that an element, or a share of it (decode.cu), is summed by one warp, in one
// order, whatever the grid: the same numbers give the same bits.
//
// A factor's tile lies in shared memory as it lies in global memory, so that 16
// bytes stay 16 bytes and nothing has to be transposed. What differs is how a
// warp reads it. Lanes (g, t) of 8 × 4 want outer index g at depth t:
//
//     reduction along rows:    word g·pitch + t    no two in one bank if pitch ≡ 4 mod 32
//     reduction along columns: word t·pitch + g    no two in one bank if pitch ≡ 8 mod 32
//
// hence the 4 or 8 floats of padding a row.
//
// TF32 keeps 11 bits of a factor. For nearly all of float32's 24 (SPLIT) a
// factor is taken apart, x = hi + lo, two TF32 numbers that hold at least 21 of
// them, and x·y is lo·hi + hi·lo + hi·hi: three times the work. (lo·lo is no
// more than what is lost anyway.) Tensor cores truncate when they add to an
// accumulator, and over hundreds of steps that would show at this precision. So
// these three start from zero, and the sum over the steps is made of float
// additions, which round.
//
// Factors can also be halves, which are half the bytes and have TF32's 11 bits, though not
// its range: whoever writes them scales them, by a power of two (see abi.cuh). ldmatrix gets
// them into registers as mma wants them, whichever way the reduction runs. It reads 8 rows of
// 16 bytes at a time, no two in one bank if a row has 16 bytes of padding. Squares, which
// would need twice the range, are of float and then bfloat16: 8 bits are enough for what
// only says how long a step is.
//
// Sizes need not divide into tiles. What lies outside a matrix is filled with
// zeros as it is copied, which adds nothing to any sum. Padding columns, up to
// the pitch, are zeros in memory: they are copied like any other, and the zeros
// that come of them are stored like any other.
//
// The grid is x = ⌈rows / ROWS⌉ by y = ⌈columns / COLUMNS⌉ of the result. What ROWS,
// COLUMNS, DEPTH and STAGES are for each product, abi.cuh says.

#pragma once

#include "device.cuh"

// Matrix is a factor as it lies in memory.
template <typename T>
struct Matrix {
    const T* data;
    int rows, pitch;
};

// Which way the reduction runs through a factor.
enum Reduction { ALONG_ROWS, ALONG_COLUMNS };

// Tile is OUTER × DEPTH elements of a factor, of which a thread copies some.
template <typename T, Reduction REDUCTION, int OUTER, int DEPTH>
struct Tile {
    static constexpr bool HALVES = sizeof(T) == 2;
    static constexpr int ROWS = REDUCTION == ALONG_ROWS ? OUTER : DEPTH;
    static constexpr int WIDTH = REDUCTION == ALONG_ROWS ? DEPTH : OUTER;
    static constexpr int PITCH = WIDTH + (HALVES || REDUCTION == ALONG_COLUMNS ? 8 : 4);
    static constexpr int SIZE = ROWS * PITCH;
    static constexpr int PIECE = 16 / sizeof(T);       // elements that are copied at a time
    static constexpr int COPIED = WIDTH & -WIDTH;      // elements of a row that threads copy together
    static constexpr int PIECES = COPIED / PIECE;
    static constexpr int APART = PRODUCT_THREADS / PIECES; // rows between a thread's pieces
    static_assert(PRODUCT_THREADS % PIECES == 0 && ROWS % APART == 0, "all threads copy equally much");

    Matrix<T> matrix;
    int row, column; // of the thread's first piece of the next tile
    const T* from;

    // The first tile is that from the given outer index and depth on.
    __device__ __forceinline__ Tile(const Matrix<T>& m, int outer, int depth)
    {
        matrix = m;
        row = threadIdx.x / PIECES + (REDUCTION == ALONG_ROWS ? outer : depth);
        column = threadIdx.x % PIECES * PIECE + (REDUCTION == ALONG_ROWS ? depth : outer);
        from = m.data + static_cast<long long>(row) * m.pitch + column;
    }

    // load starts copying the next tile.
    __device__ __forceinline__ void load(T* tile)
    {
        tile += threadIdx.x / PIECES * PITCH + threadIdx.x % PIECES * PIECE;
        const T* piece = from;
        UNROLL
        for (int y = 0; y < ROWS; y += APART) {
            UNROLL
            for (int x = 0; x < WIDTH; x += COPIED)
                copy_async(tile + y * PITCH + x, piece + x, row + y < matrix.rows && column + x < matrix.pitch);
            piece += static_cast<long long>(APART) * matrix.pitch;
        }
        if (REDUCTION == ALONG_ROWS) {
            column += DEPTH;
            from += DEPTH;
        } else {
            row += DEPTH;
            from = piece;
        }
    }

    // offset is where an element lies in the tile.
    __device__ static constexpr int offset(int outer, int depth)
    {
        return REDUCTION == ALONG_ROWS ? outer * PITCH + depth : depth * PITCH + outer;
    }
};

// Fragment is a lane's N numbers of a factor, rounded for mma, or split.
template <int N, bool SPLIT>
struct Fragment {
    unsigned hi[N], lo[SPLIT ? N : 1];

    __device__ __forceinline__ void set(int i, float x)
    {
        hi[i] = tf32(x);
        if (SPLIT)
            lo[i] = tf32(x - __uint_as_float(hi[i]));
    }

    __device__ __forceinline__ void set(const float (&x)[N])
    {
        UNROLL
        for (int i = 0; i < N; i++)
            set(i, x[i]);
    }

    __device__ __forceinline__ void set_squares(const float (&x)[N])
    {
        UNROLL
        for (int i = 0; i < N; i++)
            set(i, x[i] * x[i]);
    }
};

__device__ __forceinline__ void multiply(float (&c)[4], const Fragment<4, false>& a, const Fragment<2, false>& b)
{
    mma(c, a.hi, b.hi);
}

__device__ __forceinline__ void multiply(float (&c)[4], const Fragment<4, true>& a, const Fragment<2, true>& b)
{
    float part[4] = {};
    mma(part, a.lo, b.hi);
    mma(part, a.hi, b.lo);
    mma(part, a.hi, b.hi);
    UNROLL
    for (int i = 0; i < 4; i++)
        c[i] += part[i];
}

// squares_of are the squares of two halves, as bfloat16s.
__device__ __forceinline__ unsigned squares_of(unsigned x)
{
    float first = first_half(x), second = second_half(x);
    return bfloats(first * first, second * second);
}

// Product is a block's tile of left · right, and with SQUARES of (left∘left) ·
// (right∘right) from the same reads. Warps divide the tile among them into
// parts of HEIGHT × WIDTH, which are DOWN × ACROSS results of mma. With QUADS, of a right
// factor with the reduction along rows, a lane has four columns that follow each other.
template <typename T, int ROWS, int COLUMNS, int DEPTH, int STAGES, Reduction LEFT, Reduction RIGHT, bool SPLIT = false,
          bool SQUARES = false, int WIDTH = 32, bool QUADS = false>
struct Product {
    using Left = Tile<T, LEFT, ROWS, DEPTH>;
    using Right = Tile<T, RIGHT, COLUMNS, DEPTH>;
    static constexpr int STAGE = Left::SIZE + Right::SIZE;
    static constexpr int SHARED = STAGES * STAGE * sizeof(T);
    static constexpr int WARPS_ACROSS = COLUMNS / WIDTH;
    static constexpr int HEIGHT = ROWS * WARPS_ACROSS / (PRODUCT_THREADS / WARP);
    static constexpr int DOWN = HEIGHT / 16, ACROSS = WIDTH / 8;
    static_assert(!QUADS || RIGHT == ALONG_ROWS && ACROSS % 2 == 0, "columns can be read in another order, in pairs of mma");

    float sums[DOWN][ACROSS][4] = {};
    float squares[SQUARES ? DOWN : 1][SQUARES ? ACROSS : 1][4] = {};
    int row, column;           // where the block's tile begins
    int warp_row, warp_column; // where the warp's part begins in it
    int g, t;                  // of the lane, as in mma

    // Blocks start in the order of x, then y. Tiles are dealt out to them along
    // rows instead: the blocks that run together then share the left factor's
    // few rows and all of the right one, which L2 holds, and the left factor
    // comes from memory once.
    __device__ __forceinline__ Product()
    {
        unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
        row = block / gridDim.y * ROWS;
        column = block % gridDim.y * COLUMNS;
        int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
        warp_row = warp / WARPS_ACROSS * HEIGHT;
        warp_column = warp % WARPS_ACROSS * WIDTH;
        g = lane / 4;
        t = lane % 4;
    }

    // run computes the tile. The reduction is over depth elements, from the first on, which is
    // a multiple of DEPTH.
    __device__ __forceinline__ void run(T* shared, const Matrix<T>& left, const Matrix<T>& right, int depth, int first = 0)
    {
        int steps = (depth - first + DEPTH - 1) / DEPTH;
        Left left_tile(left, row, first);
        Right right_tile(right, column, first);
        auto load = [&](int step) {
            if (step < steps) {
                T* stage = shared + step % STAGES * STAGE;
                left_tile.load(stage);
                right_tile.load(stage + Left::SIZE);
            }
            copy_commit(); // an empty group, past the end, keeps the count
        };
        for (int step = 0; step < STAGES - 1; step++)
            load(step);
        for (int step = 0; step < steps; step++) {
            copy_wait<STAGES - 2>();
            // This step's tiles are there for all to see, and all have left
            // those of the step before, which the next copy overwrites.
            __syncthreads();
            load(step + STAGES - 1);
            const T* stage = shared + step % STAGES * STAGE;
            multiply_add(stage, stage + Left::SIZE);
        }
    }

    // multiply_add adds the products of a step.
    __device__ __forceinline__ void multiply_add(const float* left, const float* right)
    {
        const float* left_lane = left + Left::offset(warp_row + g, t);
        const float* right_lane = right + Right::offset(warp_column + across(0, g), t);
        UNROLL_BY(SPLIT ? 1 : DEPTH / 8) // more would not fit into registers
        for (int k = 0; k < DEPTH; k += 8)
            multiply_add_8(left_lane + Left::offset(0, k), right_lane + Right::offset(0, k));
    }

    __device__ __forceinline__ void multiply_add(const Half* left, const Half* right)
    {
        // Of the four 8×8 matrices that a lane's quarter of a warp gives a row of, the left
        // factor's lie two down and two along the depth, in this order, the right one's two
        // along the depth and two across.
        const int lane = threadIdx.x % WARP, matrix = lane / 8, of = lane % 8;
        const Half* left_lane = left + Left::offset(warp_row + matrix % 2 * 8 + (LEFT == ALONG_ROWS ? of : 0),
                                                    matrix / 2 * 8 + (LEFT == ALONG_ROWS ? 0 : of));
        const Half* right_lane = right + Right::offset(warp_column + (RIGHT == ALONG_ROWS ? across(matrix / 2, of) : matrix / 2 * 8),
                                                       matrix % 2 * 8 + (RIGHT == ALONG_ROWS ? 0 : of));
        UNROLL
        for (int k = 0; k < DEPTH; k += 16)
            multiply_add_16(left_lane + Left::offset(0, k), right_lane + Right::offset(0, k));
    }

    // multiply_add_16 adds the products of 16 steps of depth. The pointers are to the lane's
    // first rows.
    __device__ __forceinline__ void multiply_add_16(const Half* left, const Half* right)
    {
        unsigned a[DOWN][4];
        UNROLL
        for (int i = 0; i < DOWN; i++)
            load_matrices<LEFT == ALONG_COLUMNS>(a[i], left + Left::offset(16 * i, 0));
        unsigned b[ACROSS][2];
        UNROLL
        for (int j = 0; j < ACROSS; j += 2) {
            unsigned x[4];
            load_matrices<RIGHT == ALONG_COLUMNS>(x, right + Right::offset(8 * j, 0));
            UNROLL
            for (int i = 0; i < 4; i++)
                b[j + i / 2][i % 2] = x[i];
            UNROLL
            for (int i = 0; i < DOWN; i++) {
                mma_halves(sums[i][j], a[i], b[j]);
                mma_halves(sums[i][j + 1], a[i], b[j + 1]);
            }
        }
        if (SQUARES) {
            UNROLL
            for (int j = 0; j < ACROSS; j++) {
                UNROLL
                for (int i = 0; i < 2; i++)
                    b[j][i] = squares_of(b[j][i]);
            }
            UNROLL
            for (int i = 0; i < DOWN; i++) {
                UNROLL
                for (int n = 0; n < 4; n++)
                    a[i][n] = squares_of(a[i][n]);
                UNROLL
                for (int j = 0; j < ACROSS; j++)
                    mma_bfloats(squares[i][j], a[i], b[j]);
            }
        }
    }

    // multiply_add_8 adds the products of 8 steps of depth. The pointers are to
    // the lane's first elements.
    __device__ __forceinline__ void multiply_add_8(const float* left, const float* right)
    {
        Fragment<2, SPLIT> b[ACROSS], bb[SQUARES ? ACROSS : 1];
        const int odd = Right::offset(across(1, g) - across(0, g) - 8, 0); // how much further mma with odd numbers read
        UNROLL
        for (int j = 0; j < ACROSS; j++) {
            const float* from = right + j % 2 * odd;
            float x[2] = {from[Right::offset(8 * j, 0)], from[Right::offset(8 * j, 4)]};
            b[j].set(x);
            if (SQUARES)
                bb[j].set_squares(x);
        }
        UNROLL
        for (int i = 0; i < DOWN; i++) {
            float x[4] = {left[Left::offset(16 * i, 0)], left[Left::offset(16 * i + 8, 0)],
                          left[Left::offset(16 * i, 4)], left[Left::offset(16 * i + 8, 4)]};
            Fragment<4, SPLIT> a;
            a.set(x);
            UNROLL
            for (int j = 0; j < ACROSS; j++)
                multiply(sums[i][j], a, b[j]);
            if (SQUARES) {
                a.set_squares(x);
                UNROLL
                for (int j = 0; j < ACROSS; j++)
                    multiply(squares[i][j], a, bb[j]);
            }
        }
    }

    // across is which column of the warp's part is column n of mma number j. With QUADS,
    // those of a lane with t < 2 are columns 4t and 4t+1 of 16 in even mma, 4t+2 and 4t+3
    // in odd ones, and with other t the other way round, so that no two of the eight rows that
    // are read together are in one bank.
    __device__ static __forceinline__ int across(int j, int n)
    {
        return QUADS ? j / 2 * 16 + n / 2 * 4 + (j % 2 ^ n / 4) * 2 + n % 2 : j * 8 + n;
    }

    // quad is columns 16j + 4t to 16j + 4t+3 of the warp's part in one of the lane's rows, with
    // QUADS.
    __device__ __forceinline__ float4 quad(int i, int j, int half) const
    {
        const float (&even)[4] = sums[i][2 * j], (&odd)[4] = sums[i][2 * j + 1];
        const bool swapped = t >= 2;
        return make_float4(swapped ? odd[2 * half] : even[2 * half], swapped ? odd[2 * half + 1] : even[2 * half + 1],
                           swapped ? even[2 * half] : odd[2 * half], swapped ? even[2 * half + 1] : odd[2 * half + 1]);
    }

    // each_row calls f(row, column, i, half) for each row of the result that
    // the lane has a part in: elements 2·half and 2·half+1 of sums[i][j] are
    // columns column + 8j and the next. With QUADS, quad(i, j, half) is columns
    // column + 16j and the next three.
    template <typename F>
    __device__ __forceinline__ void each_row(F f) const
    {
        UNROLL
        for (int i = 0; i < DOWN; i++) {
            UNROLL
            for (int half = 0; half < 2; half++)
                f(row + warp_row + i * 16 + half * 8 + g, column + warp_column + (QUADS ? 4 : 2) * t, i, half);
        }
    }

    // store writes sums, or squares, times a factor, to a matrix.
    template <int I, int J>
    __device__ __forceinline__ void store(float* to, int rows, int pitch, const float (&c)[I][J][4], float factor = 1) const
    {
        each_row([&](int row, int column, int i, int half) {
            UNROLL
            for (int j = 0; j < ACROSS; j++)
                if (row < rows && column + 8 * j < pitch)
                    *reinterpret_cast<float2*>(to + static_cast<size_t>(row) * pitch + column + 8 * j) =
                        make_float2(factor * c[i][j][2 * half], factor * c[i][j][2 * half + 1]);
        });
    }
};
