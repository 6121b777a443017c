// decode: product[words × dim] = codes[words × atoms] · atoms[atoms × dim]
//
// The reduction runs along the rows of codes and along the columns of atoms;
// see product.cuh for what follows from that.
//
// Floor, in bytes: 4·(words·atoms + atoms·dim + shares·words·dim); in flops:
// 2·words·atoms·dim, three times that for fp32. For 400,000 × 3000 → 300 on an
// H200: 5.3 GB, 1.2 ms at 4.3 TB/s, and 0.72 Tflop, 2.4 ms if mma.sync does 300
// TFLOP/s in TF32 (the data sheet's 495 are wgmma's, which only Hopper has).
//
// Most codes are zeros, but mma takes 16 × 8 of them at a time, and with 8 %
// nonzeros only one such part in 40,000 has none: there is nothing to skip.
//
// Shape: dim is small. 64 columns a tile waste little of it (300 is 4.7 tiles),
// and a dictionary step's 3125 words make 25 × 5 = 125 blocks, which fill a GPU
// of 132 SMs. The price is traffic between L2 and the SMs: a step of DEPTH
// moves 24 KB for 0.52 Mflop, 21 flops a byte, so that 300 TFLOP/s would take
// 14 TB/s of L2. On many words at once this bound, not the tensor cores', is
// the one to expect.
//
// Where words are fewer, several blocks share a tile, each with some of the atoms, and leave a
// part of the sum each. Whoever reads the product adds them, which costs more the more words there
// are.
//
// decode_fp16 has half the bytes, and 160 columns a tile: codes are read twice instead of
// five times, 71 flops a byte of L2. A warp has 32 × 80 of them. A dictionary step has 50 such
// tiles, too few, and so two shares.
//
// Its 8 warps, of one block an SM, are too few to hide behind each other: with two stages each
// step waits for its copies' latency and then for their bytes. decode_ahead_fp16 has a third, and
// so copies two steps ahead, in 120 KB of shared memory, which sm_80, sm_90 and sm_100 have for a
// block, and sm_86, sm_89 and sm_120 have not.
#include "product.cuh"

// Share is the atoms that a block has of its tile, and where it leaves their product.
struct Share {
    int first, last;
    float* product;
};

// share_of returns the share of the block that has p. Those that share tiles have as many rows of
// tiles each, one after the other.
template <int ROWS, int DEPTH, typename P, typename Args>
__device__ __forceinline__ Share share_of(P& p, const Args& args)
{
    const unsigned rows = (args.shape.words + ROWS - 1) / ROWS * ROWS, shares = args.shares;
    const unsigned number = p.row / rows, depth = (args.shape.atoms + shares * DEPTH - 1) / (shares * DEPTH) * DEPTH;
    p.row -= number * rows;
    return {int(number * depth), min(args.shape.atoms, int((number + 1) * depth)), args.product + number * args.share_pitch};
}

template <bool SPLIT>
__device__ __forceinline__ void decode(const Decode& args)
{
    using P = Product<float, DECODE_ROWS, DECODE_COLUMNS, DECODE_DEPTH, DECODE_STAGES, ALONG_ROWS, ALONG_COLUMNS, SPLIT>;
    static_assert(P::SHARED == DECODE_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    const Share share = share_of<DECODE_ROWS, DECODE_DEPTH>(p, args);
    p.run(shared, {args.codes, s.words, s.code_pitch}, {args.atoms, s.atoms, s.dim_pitch}, share.last, share.first);
    p.store(share.product, s.words, s.dim_pitch, p.sums);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) decode_tf32(Decode args) { decode<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) decode_fp32(Decode args) { decode<true>(args); }

template <int STAGES, int SHARED>
__device__ __forceinline__ void decode(const DecodeHalf& args)
{
    using P = Product<Half, HALF_DECODE_ROWS, HALF_DECODE_COLUMNS, HALF_DECODE_DEPTH, STAGES, ALONG_ROWS, ALONG_COLUMNS, false,
                      false, HALF_DECODE_COLUMNS / 2>;
    static_assert(P::SHARED == SHARED, "the host asks for this much");
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    P p;
    const Share share = share_of<HALF_DECODE_ROWS, HALF_DECODE_DEPTH>(p, args);
    p.run(shared_halves, {args.codes, s.words, s.code_pitch}, {args.atoms, s.atoms, s.dim_pitch}, share.last, share.first);
    p.store(share.product, s.words, s.dim_pitch, p.sums, float_once(1 / args.scale));
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 1) decode_fp16(DecodeHalf args)
{
    decode<HALF_DECODE_STAGES, HALF_DECODE_SHARED>(args);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 1) decode_ahead_fp16(DecodeHalf args)
{
    decode<AHEAD_HALF_DECODE_STAGES, AHEAD_HALF_DECODE_SHARED>(args);
}
