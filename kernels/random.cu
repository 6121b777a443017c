// random_codes draws the initial codes of a training, with the same bits as the CPU
// (backend.InitialCode).
//
// Philox 4×32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// SC 2011) is a counter-based generator: it computes four numbers from the seed and
// their position, row and column. Any warp can therefore draw any row, in any order.
// A lane stores four numbers, 16 bytes, at a time.
//
// Only two operations round: the product with max_magnitude, in double, and its
// conversion to float. Everything before is exact, so it doesn't matter whether the
// compiler fuses 2·unit − 1.
//
// Lower bound: 4·rows·atoms bytes written; for 400,000 × 3000 on an H200 at 4.3 TB/s
// 4.8 GB, 1.1 ms. Philox's 20 wide multiplications per four numbers take about as long.
// The kernel runs once per training.

#include "device.cuh"

// CODE_STREAM is the random stream of the codes, as in package backend.
constexpr unsigned CODE_STREAM = 1;

struct Block {
    unsigned x[4];
};

// philox returns four random numbers of 32 bits for counter c.
__device__ __forceinline__ Block philox(Block c, unsigned long long key)
{
    unsigned k0 = static_cast<unsigned>(key), k1 = static_cast<unsigned>(key >> 32);
    UNROLL
    for (int round = 0; round < 10; round++) {
        unsigned hi0 = __umulhi(0xD2511F53u, c.x[0]), lo0 = 0xD2511F53u * c.x[0];
        unsigned hi1 = __umulhi(0xCD9E8D57u, c.x[2]), lo1 = 0xCD9E8D57u * c.x[2];
        c = {{hi1 ^ c.x[1] ^ k0, lo1, hi0 ^ c.x[3] ^ k1, lo0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

__device__ __forceinline__ void store_random(float* to, const float (&a)[4])
{
    *reinterpret_cast<float4*>(to) = make_float4(a[0], a[1], a[2], a[3]);
}

__device__ __forceinline__ void store_random(Half* to, const float (&a)[4])
{
    *reinterpret_cast<uint2*>(to) = make_uint2(halves(a[0], a[1]), halves(a[2], a[3]));
}

// random_codes sets row r of codes to the numbers of row r, uniform in
// (−max_magnitude, max_magnitude), times scale. It sets padding columns to zero.
template <typename T>
__device__ __forceinline__ void draw(const RandomCodes& args)
{
    int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.rows; row += row_step()) {
        T* code = static_cast<T*>(args.codes) + row * args.shape.code_pitch;
        for (int column = 4 * lane; column < args.shape.code_pitch; column += 4 * WARP) {
            Block block = {{column / 4u, CODE_STREAM, static_cast<unsigned>(row), 0}};
            block = philox(block, args.seed);
            float a[4];
            UNROLL
            for (int i = 0; i < 4; i++) {
                double unit = ((block.x[i] >> 8) + 0.5) / (1 << 24);
                a[i] = column + i < args.shape.atoms ? float(float((2 * unit - 1) * args.max_magnitude) * args.scale) : 0;
            }
            store_random(code + column, a);
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS) random_codes(RandomCodes args) { draw<float>(args); }
extern "C" __global__ void __launch_bounds__(ROW_THREADS) random_codes_fp16(RandomCodes args) { draw<Half>(args); }
