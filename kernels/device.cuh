// Wrappers of PTX instructions that CUDA C++ lacks, and functions that all kernels
// share. For a host compiler, emulation.h defines functions of the same names, so
// that tests run the source of the kernels.

#pragma once

#ifdef __CUDACC__

#define LAYOUT(type, bytes, pointers) static_assert(sizeof(type) == bytes, #type);

// SHARED_MEMORY names the block's dynamic shared memory.
#define SHARED_MEMORY(type, name) extern __shared__ __align__(16) type name[]

// UNROLL and UNROLL_BY unroll the next loop, completely or n times. A thread's
// array stays in registers only if all its indices are constants.
#define UNROLL _Pragma("unroll")
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(n) PRAGMA(unroll(n))

#include "abi.cuh"

// copy_async starts copying 16 bytes to shared memory, bypassing registers and
// L1. If valid is false, it writes zeros and reads nothing.
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid)
{
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes) : "memory");
}

// copy_commit makes a group of the copies since the last call.
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// copy_wait waits until at most the latest N groups of this thread are pending.
template <int N>
__device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// meet is a barrier of the THREADS threads of a block, which warps may reach at different places of
// the program. __syncthreads must be at one place.
template <int THREADS>
__device__ __forceinline__ void meet()
{
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

// post adds 1 to a count in global memory. A thread that awaits the count then sees all writes before it, of this thread
// and of threads that a barrier has ordered before. await waits until the count is at least n.
__device__ __forceinline__ void post(int* count) { asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(count), "r"(1) : "memory"); }
__device__ __forceinline__ void await(const int* count, int n)
{
    int present;
    do
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(present) : "l"(count) : "memory");
    while (present < n);
}

// tf32 rounds x to TF32, which has 10 bits of fraction, ties away from zero. It
// returns the bits of a float.
__device__ __forceinline__ unsigned tf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// float_once converts x to float. Without volatile, the compiler repeats the slow
// conversion wherever the result is used, to save a register.
__device__ __forceinline__ float float_once(double x)
{
    float y;
    asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(y) : "d"(x));
    return y;
}

// inverse_sqrt returns 1/√x with a relative error of at most 2⁻²². x must not be
// subnormal.
__device__ __forceinline__ float inverse_sqrt(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// mma adds the product of a (16×8) and b (8×8) to c (16×8). A warp holds the three
// matrices in registers. With g = lane / 4 and t = lane % 4, a lane holds
//
//     a: rows g, g+8, g, g+8 of columns t, t, t+4, t+4
//     b: rows t, t+4 of column g
//     c: columns 2t and 2t+1 of row g, then of row g+8
//
// It is volatile so that the compiler doesn't move it into a branch that some lanes
// skip.
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// load_matrices reads four 8×8 matrices of float16 from shared memory. Lanes 8j to 8j+7 pass
// the addresses of the rows of matrix j. With g and t as in mma, a lane receives columns 2t
// and 2t+1 of row g of each matrix; if TRANSPOSED, rows 2t and 2t+1 of column g.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&x)[4], const Half* row)
{
    unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(from)
                     : "memory");
}

// mma_halves adds the product of a (16×16) and b (16×8) of float16 to c (16×8). A register
// holds two elements, the first one in its low bits:
//
//     a: rows g, g+8, g, g+8 of columns 2t and 2t+1, 2t and 2t+1, 2t+8 and 2t+9, 2t+8 and 2t+9
//     b: rows 2t and 2t+1, 2t+8 and 2t+9 of column g
//
// c is as in mma. mma_bfloats does the same for bfloat16.
__device__ __forceinline__ void mma_halves(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_bfloats(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma_bytes adds the product of a (16×32) and b (32×8) of 8-bit integers to c (16×8). A register
// holds four elements, the first one in its low bits:
//
//     a: rows g, g+8, g, g+8 of columns 4t to 4t+3, 4t to 4t+3, 4t+16 to 4t+19, 4t+16 to 4t+19
//     b: rows 4t to 4t+3, 4t+16 to 4t+19 of column g
//
// c is as in mma. load_matrices reads such factors as rows of 16 bytes.
__device__ __forceinline__ void mma_bytes(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// halves rounds two numbers to float16 and packs them, x in the low bits.
__device__ __forceinline__ unsigned halves(float x, float y)
{
    unsigned bits;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    return bits;
}

// bfloats rounds two numbers to bfloat16, which has 8 bits and the range of float,
// and packs them, x in the low bits.
__device__ __forceinline__ unsigned bfloats(float x, float y)
{
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    return bits;
}

// half_bits rounds x to float16. first_half and second_half unpack the low and the
// high float16 of a register.
__device__ __forceinline__ unsigned short half_bits(float x)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

__device__ __forceinline__ float first_half(unsigned x)
{
    float y;
    asm("{.reg .b16 first, second; mov.b32 {first, second}, %1; cvt.f32.f16 %0, first;}" : "=f"(y) : "r"(x));
    return y;
}

__device__ __forceinline__ float second_half(unsigned x)
{
    float y;
    asm("{.reg .b16 first, second; mov.b32 {first, second}, %1; cvt.f32.f16 %0, second;}" : "=f"(y) : "r"(x));
    return y;
}

#else

#include "emulation.h"

#define UNROLL
#define UNROLL_BY(n)

template <int THREADS>
inline void meet()
{
    emulation::meet_threads("meet", 0);
}
inline float float_once(double x) { return float(x); }
inline float inverse_sqrt(float x) { return 1 / sqrtf(x); }

#endif

#include "abi.cuh"

// within_halves clamps x to the range of float16. A NaN stays a NaN.
__device__ __forceinline__ float within_halves(float x)
{
    constexpr float MOST = 65504;
    return x > MOST ? MOST : x < -MOST ? -MOST : x;
}

// load and store read and write four adjacent numbers, 16 bytes in one access. add returns
// c + a·b elementwise.
__device__ __forceinline__ float4 load(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ __forceinline__ void store(float* to, float4 x) { *reinterpret_cast<float4*>(to) = x; }
__device__ __forceinline__ float4 add(float a, float4 b, float4 c)
{
    return make_float4(fmaf(a, b.x, c.x), fmaf(a, b.y, c.y), fmaf(a, b.z, c.z), fmaf(a, b.w, c.w));
}

constexpr unsigned ALL_LANES = 0xffffffff;

// first_row returns the first row of a warp, and row_step the distance to its next row, in
// kernels that process one row per warp at a time.
__device__ __forceinline__ long long first_row()
{
    return static_cast<long long>(blockIdx.x) * (blockDim.x / WARP) + threadIdx.x / WARP;
}

__device__ __forceinline__ long long row_step()
{
    return static_cast<long long>(gridDim.x) * (blockDim.x / WARP);
}

// warp_sum returns the sum of x over the lanes of the warp. All lanes get the same bits,
// because the exchange is symmetric.
template <typename T>
__device__ __forceinline__ T warp_sum(T x)
{
    UNROLL
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, apart);
    return x;
}

// block_sum returns the sum of x over the threads of the block. All threads get the same
// bits. `warps` is shared memory of one element per warp. It is also a barrier: afterwards
// all threads see all earlier writes.
template <typename T>
__device__ __forceinline__ T block_sum(T* warps, T x)
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    x = warp_sum(x);
    __syncthreads(); // all threads have read the previous sum
    if (lane == 0)
        warps[warp] = x;
    __syncthreads();
    return warp_sum(lane < blockDim.x / WARP ? warps[lane] : 0);
}
