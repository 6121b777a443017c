// The tiled matrix product of decode, accumulate, correlate and remember.
//
// A block computes a tile of the result, ROWS × COLUMNS. It loops over the
// reduction in steps of DEPTH. While the tensor cores multiply the tiles of one
// step, cp.async copies the tiles of the next STAGES − 1 steps to shared memory:
//
//     for each step:
//         wait for the tiles of this step; start copying a later one
//         sums += left tile · right tile
//
// Each warp keeps its part of the result in registers through all steps. An
// element, or a share of it (decode.cu), is therefore summed by one warp, in an
// order that doesn't depend on the grid: equal inputs give equal bits.
//
// A tile has the same layout in shared as in global memory, so that it is copied
// 16 bytes at a time and never transposed. Only the reads depend on the direction of
// the reduction. Lane (g, t) of 8 × 4 reads the element with outer index g at depth t:
//
//     reduction along rows:    element g·pitch + t    no bank conflicts if pitch ≡ 4 mod 32
//     reduction along columns: element t·pitch + g    no bank conflicts if pitch ≡ 8 mod 32
//
// Rows therefore have 4 or 8 floats of padding.
//
// TF32 keeps 11 of the 24 bits of a float. With SPLIT a factor is written as
// x = hi + lo, two TF32 numbers that keep at least 21 bits, and x·y as
// lo·hi + hi·lo + hi·hi, which is three times the work. (lo·lo is smaller than the
// rounding error.) Tensor cores truncate when they add to an accumulator, and over
// hundreds of steps this error would exceed the others. So each step starts a new
// accumulator at zero, and float additions, which round, sum the steps.
//
// Factors can also be float16: half the bytes and the 11 bits of TF32, but a
// smaller range, so that they are scaled by a power of two (see abi.cuh). ldmatrix
// loads them in the layout of mma for either direction of the reduction. It reads 8
// rows of 16 bytes at a time, without bank conflicts if rows have 16 bytes of padding.
// Squares would need twice the range. They are computed in float and rounded to
// bfloat16, whose 8 bits suffice because squares only determine step sizes.
//
// Sizes need not be multiples of the tile. Elements outside a matrix are copied as
// zeros, which change no sum. Padding columns, up to the pitch, are zeros in memory.
// They are copied like other columns, and their zero results are stored too.
//
// The grid is ⌈rows / ROWS⌉ × ⌈columns / COLUMNS⌉ of the result. abi.cuh defines ROWS,
// COLUMNS, DEPTH and STAGES of each product.

#pragma once

#include "device.cuh"

// Matrix is a factor in global memory.
template <typename T>
struct Matrix {
    const T* data;
    int rows, pitch;
};

// Reduction is the direction in which the reduction runs through a factor.
enum Reduction { ALONG_ROWS, ALONG_COLUMNS };

// Tile is a tile of OUTER × DEPTH elements of a factor. The threads of the block copy it together.
template <typename T, Reduction REDUCTION, int OUTER, int DEPTH>
struct Tile {
    static constexpr bool HALVES = sizeof(T) == 2;
    static constexpr int ROWS = REDUCTION == ALONG_ROWS ? OUTER : DEPTH;
    static constexpr int WIDTH = REDUCTION == ALONG_ROWS ? DEPTH : OUTER;
    static constexpr int PITCH = WIDTH + (HALVES || REDUCTION == ALONG_COLUMNS ? 8 : 4);
    static constexpr int SIZE = ROWS * PITCH;
    static constexpr int PIECE = 16 / sizeof(T);       // elements per copy
    static constexpr int COPIED = WIDTH & -WIDTH;      // elements of a row that threads copy at a time
    static constexpr int PIECES = COPIED / PIECE;
    static constexpr int APART = PRODUCT_THREADS / PIECES; // rows between a thread's pieces
    static_assert(PRODUCT_THREADS % PIECES == 0, "threads copy whole rows of pieces");

    Matrix<T> matrix;
    int row, column; // place of the thread's first piece of the next tile
    const T* from;

    // Tile begins with the tile at the given outer index and depth.
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
                if (ROWS % APART == 0 || y + threadIdx.x / PIECES < ROWS) // only some threads copy the last rows
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

    // offset returns the index of an element in the tile.
    __device__ static constexpr int offset(int outer, int depth)
    {
        return REDUCTION == ALONG_ROWS ? outer * PITCH + depth : depth * PITCH + outer;
    }
};

// Fragment is a lane's N elements of a factor for mma: rounded to TF32, or split into hi + lo.
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

// squares_of returns the squares of two float16 numbers as bfloat16.
__device__ __forceinline__ unsigned squares_of(unsigned x)
{
    float first = first_half(x), second = second_half(x);
    return bfloats(first * first, second * second);
}

// Product computes a block's tile of left · right. With SQUARES it also computes
// (left∘left) · (right∘right) from the same reads. Each warp computes a part of
// HEIGHT × WIDTH: DOWN × ACROSS results of mma. With QUADS a lane holds four adjacent
// columns; this needs a right factor with the reduction along rows.
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
    int row, column;           // first row and column of the block's tile
    int warp_row, warp_column; // first row and column of the warp's part, within the tile
    int g, t;                  // position of the lane, as in mma

    // Product assigns tiles to blocks along rows of the result. Blocks start in the
    // order of x, then y; concurrent blocks then share a few rows of the left factor
    // and all of the right factor, which fits into L2, so that the left factor is
    // read from memory once.
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

    // run computes the tile. The reduction is over the elements from `first`, a multiple of
    // DEPTH, to depth − 1.
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
            copy_commit(); // past the end, an empty group keeps the count
        };
        for (int step = 0; step < STAGES - 1; step++)
            load(step);
        for (int step = 0; step < steps; step++) {
            copy_wait<STAGES - 2>();
            // All threads now see this step's tiles, and have finished reading the
            // previous step's, which the next copy overwrites.
            __syncthreads();
            load(step + STAGES - 1);
            const T* stage = shared + step % STAGES * STAGE;
            multiply_add(stage, stage + Left::SIZE);
        }
    }

    // multiply_add adds the product of the tiles of one step.
    __device__ __forceinline__ void multiply_add(const float* left, const float* right)
    {
        const float* left_lane = left + Left::offset(warp_row + g, t);
        const float* right_lane = right + Right::offset(warp_column + across(0, g), t);
        UNROLL_BY(SPLIT ? 1 : DEPTH / 8) // limited by registers
        for (int k = 0; k < DEPTH; k += 8)
            multiply_add_8(left_lane + Left::offset(0, k), right_lane + Right::offset(0, k));
    }

    __device__ __forceinline__ void multiply_add(const Half* left, const Half* right)
    {
        // load_matrices reads four 8×8 matrices. In the left factor they are two down, then two
        // along the depth; in the right factor two along the depth, then two across.
        const int lane = threadIdx.x % WARP, matrix = lane / 8, of = lane % 8;
        const Half* left_lane = left + Left::offset(warp_row + matrix % 2 * 8 + (LEFT == ALONG_ROWS ? of : 0),
                                                    matrix / 2 * 8 + (LEFT == ALONG_ROWS ? 0 : of));
        const Half* right_lane = right + Right::offset(warp_column + (RIGHT == ALONG_ROWS ? across(matrix / 2, of) : matrix / 2 * 8),
                                                       matrix % 2 * 8 + (RIGHT == ALONG_ROWS ? 0 : of));
        UNROLL
        for (int k = 0; k < DEPTH; k += 16)
            multiply_add_16(left_lane + Left::offset(0, k), right_lane + Right::offset(0, k));
    }

    // multiply_add_16 adds the product over 16 elements of depth, of float16 factors. left and
    // right are the lane's row addresses for load_matrices.
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

    // multiply_add_8 adds the product over 8 elements of depth, of float factors. left and
    // right point to the lane's first elements.
    __device__ __forceinline__ void multiply_add_8(const float* left, const float* right)
    {
        Fragment<2, SPLIT> b[ACROSS], bb[SQUARES ? ACROSS : 1];
        const int odd = Right::offset(across(1, g) - across(0, g) - 8, 0); // extra distance of odd mma
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

    // across returns the column of the warp's part that is column n of mma number j. With
    // QUADS, a lane with t < 2 holds columns 4t and 4t+1 of 16 in even mma, and 4t+2 and
    // 4t+3 in odd ones. For t ≥ 2 it is the other way round, which avoids bank conflicts
    // between the eight rows that are read together.
    __device__ static __forceinline__ int across(int j, int n)
    {
        return QUADS ? j / 2 * 16 + n / 2 * 4 + (j % 2 ^ n / 4) * 2 + n % 2 : j * 8 + n;
    }

    // quad returns columns 16j + 4t to 16j + 4t + 3 of the warp's part, in the lane's row i,
    // half. It needs QUADS.
    __device__ __forceinline__ float4 quad(int i, int j, int half) const
    {
        const float (&even)[4] = sums[i][2 * j], (&odd)[4] = sums[i][2 * j + 1];
        const bool swapped = t >= 2;
        return make_float4(swapped ? odd[2 * half] : even[2 * half], swapped ? odd[2 * half + 1] : even[2 * half + 1],
                           swapped ? even[2 * half] : odd[2 * half], swapped ? even[2 * half + 1] : odd[2 * half + 1]);
    }

    // each_row calls f(row, column, i, half) for each row of the result that has
    // elements in this lane: elements 2·half and 2·half+1 of sums[i][j] are columns
    // column + 8j and the next. With QUADS, quad(i, j, half) returns column + 16j and
    // the next three.
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

    // store writes c, which is sums or squares, times a factor to a matrix.
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
