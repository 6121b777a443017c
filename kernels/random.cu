// random_codes draws the codes that training starts from, the same numbers to
// the last bit as train.InitialCode.
//
// Philox 4×32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// SC 2011) makes four numbers from where they go, and a lane stores them as 16
// bytes. Nothing is drawn in an order, so that any warp can draw any row.
//
// The only numbers that round are the product with most, in double, and its
// conversion to float: what is before them is exact, so that it does not matter
// whether the compiler fuses 2·unit − 1.
//
// Floor: 4·words·atoms bytes written; for 400,000 × 3000 on an H200 at 4.3 TB/s
// 4.8 GB, 1.1 ms. Philox's 20 wide multiplications for four numbers cost about
// as much again. It happens once in a training.

#include "device.cuh"

// The stream of the codes' numbers, as in package train.
constexpr unsigned CODE_STREAM = 1;

struct Block {
    unsigned x[4];
};

// philox is Philox 4×32-10.
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

// random_codes sets row r of codes to the numbers of word r, uniform in (−most, most),
// times scale, and its padding columns to zeros.
template <typename T>
__device__ __forceinline__ void draw(const RandomCodes& args)
{
    int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        T* code = static_cast<T*>(args.codes) + row * args.shape.code_pitch;
        for (int column = 4 * lane; column < args.shape.code_pitch; column += 4 * WARP) {
            Block block = {{column / 4u, CODE_STREAM, static_cast<unsigned>(row), 0}};
            block = philox(block, args.seed);
            float a[4];
            UNROLL
            for (int i = 0; i < 4; i++) {
                double unit = ((block.x[i] >> 8) + 0.5) / (1 << 24);
                a[i] = column + i < args.shape.atoms ? float(float((2 * unit - 1) * args.most) * args.scale) : 0;
            }
            store_random(code + column, a);
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS) random_codes(RandomCodes args) { draw<float>(args); }
extern "C" __global__ void __launch_bounds__(ROW_THREADS) random_codes_fp16(RandomCodes args) { draw<Half>(args); }
