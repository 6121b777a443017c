// Functions that the kernels of the search share.

#pragma once

#include "device.cuh"

// row_place returns the place in memory of a row of D8 or of its transpose. The order within 16 rows is
// 0 1 4 5 8 9 12 13 2 3 6 7 10 11 14 15. With it, a thread has four adjacent columns of a product.
__device__ __forceinline__ int row_place(int row) { return row / 16 * 16 + row / 2 % 2 * 8 + row % 16 / 4 * 2 + row % 2; }

__device__ __forceinline__ int round_up(int n, int unit) { return (n + unit - 1) / unit * unit; }

// code_place returns the place of a code in memory. Tiles of SEARCH_ROWS × SEARCH_ATOMS codes are contiguous. Room
// for as many numbers follows each tile.
__device__ __forceinline__ long long code_place(long long row, int atom, int pitch)
{
    return row / SEARCH_ROWS * SEARCH_ROWS * 2 * pitch + (atom / SEARCH_ATOMS * 2 * SEARCH_ROWS + row % SEARCH_ROWS) * SEARCH_ATOMS + atom % SEARCH_ATOMS;
}

// nearest rounds x to the nearest integer, ties to even, for |x| < 2²². nearest_bits returns a number with the same
// low byte.
__device__ __forceinline__ unsigned nearest_bits(float x) { return __float_as_uint(__fadd_rn(x, 12582912)); }
__device__ __forceinline__ int nearest(float x) { return static_cast<int>(nearest_bits(x) - 0x4b400000); }

// pack_bytes packs the low bytes of four integers.
__device__ __forceinline__ unsigned pack_bytes(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// any reports whether a bit of four numbers is set.
__device__ __forceinline__ bool any(float4 x) { return (__float_as_uint(x.x) | __float_as_uint(x.y) | __float_as_uint(x.z) | __float_as_uint(x.w)) != 0; }

// nonzeros returns how many of four numbers are not zero.
__device__ __forceinline__ unsigned nonzeros(float4 x) { return (x.x != 0) + (x.y != 0) + (x.z != 0) + (x.w != 0); }

// bits_of returns the bits of |x|, which compare like the magnitudes. A NaN is the largest.
__device__ __forceinline__ unsigned bits_of(float x) { return __float_as_uint(x) & 0x7fffffff; }

constexpr unsigned SMALLEST = 27 << 23;      // 2⁻¹⁰⁰
constexpr unsigned LEAST_TOP = 7 << 23;      // 2⁻¹²⁰
constexpr unsigned INFINITE = 0xffu << 23;

// unit_of returns unit(x) for the bits of x, and inverse returns 1/x of a power of two.
__device__ __forceinline__ float unit_of(unsigned bits) { return __uint_as_float((max(bits, SMALLEST) & INFINITE) - (5 << 23)); }
__device__ __forceinline__ float inverse(float x) { return __uint_as_float((254u << 23) - __float_as_uint(x)); }

// power_of_two returns 2ⁿ.
__device__ __forceinline__ double power_of_two(int n) { return __longlong_as_double(static_cast<long long>(1023 + n) << 52); }

// over_quad returns the maximum of x, or with SUM the sum, over the four threads of a row in products of mma.
template <bool SUM>
__device__ __forceinline__ unsigned over_quad(unsigned x)
{
    UNROLL
    for (int apart = 1; apart < 4; apart *= 2) {
        const unsigned other = __shfl_xor_sync(ALL_LANES, x, apart);
        x = SUM ? x + other : max(x, other);
    }
    return x;
}

__device__ __forceinline__ unsigned warp_max(unsigned x)
{
    UNROLL
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        x = max(x, __shfl_xor_sync(ALL_LANES, x, apart));
    return x;
}

// block_max returns the maximum of x over the threads of the block. `warps` is shared memory of one element per
// warp, which only this call uses.
__device__ __forceinline__ unsigned block_max(unsigned* warps, unsigned x)
{
    x = warp_max(x);
    if (threadIdx.x % WARP == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    return warp_max(threadIdx.x % WARP < blockDim.x / WARP ? warps[threadIdx.x % WARP] : 0);
}

// CodeStep holds the constants of an iteration.
struct CodeStep {
    float momentum;
    bool nonnegative;

    // advance updates z and b of an atom from S, and returns z·v. enters reports whether atoms enter the row's code.
    __device__ __forceinline__ float advance(int sum, float scale, float share, float step, float threshold, bool enters, float& z, float& b) const
    {
        const float u = __fadd_rn(z, __fmul_rn(step, __fmul_rn(static_cast<float>(sum), scale)));
        float x = u - fminf(nonnegative ? u : fmaxf(u, -threshold), threshold);
        if (b == 0 && !enters)
            x = 0;
        z = __fadd_rn(x, __fmul_rn(momentum, __fadd_rn(x, -b)));
        b = x;
        return __fmul_rn(z, share);
    }
};
