// decode: product[rows × dim] = codes[rows × atoms] · atoms[atoms × dim]
//
// The reduction runs along the rows of codes and along the columns of atoms (see
// product.cuh).
//
// Lower bounds. Bytes: 4·(rows·atoms + atoms·dim + rows·dim). Flops:
// 2·rows·atoms·dim, three times as many for fp32. For 400,000 × 3000 → 300 on an
// H200: 5.3 GB, 1.2 ms at 4.3 TB/s, and 0.72 Tflop, 2.4 ms if mma.sync does 300
// TFLOP/s in TF32. (The 495 of the data sheet need wgmma, which only Hopper has.)
//
// Sparsity does not help. mma multiplies 16 × 8 codes at a time, and with 8 %
// nonzeros only one such block in 40,000 is all zeros.
//
// Tile: dim is small, and 64 columns waste little of it (300 is 4.7 tiles). The
// 3125 rows of a dictionary step make 25 × 5 = 125 blocks, which fill a GPU of 132
// SMs. The cost is traffic between L2 and the SMs: a step of DEPTH moves 24 KB for
// 0.52 Mflop, 21 flops per byte, so 300 TFLOP/s would need 14 TB/s from L2. With many
// rows L2 is the bottleneck, not the tensor cores.
//
// decode_fp16 moves half the bytes. Its tiles contain all columns of rows up to 320, 32 × 80 per
// warp, so that codes are read once: 53 flops per byte from L2. A dictionary step has only 49
// such tiles. So five blocks share a tile (split-K): each reduces over some of the atoms and
// writes a partial product. 245 blocks fill an H100, two per SM. The kernel that reads the
// product adds the parts, at a cost proportional to the rows.
#include "product.cuh"

template <bool SPLIT>
__device__ __forceinline__ void decode(const Decode& args)
{
    using P = Product<float, DECODE_ROWS, DECODE_COLUMNS, DECODE_DEPTH, DECODE_STAGES, ALONG_ROWS, ALONG_COLUMNS, SPLIT>;
    static_assert(P::SHARED == DECODE_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    p.run(shared, {args.codes, s.rows, s.code_pitch}, {args.atoms, s.atoms, s.dim_pitch}, s.atoms);
    p.store(args.product, s.rows, s.dim_pitch, p.sums);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) decode_tf32(Decode args) { decode<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) decode_fp32(Decode args) { decode<true>(args); }

// Share is a block's part of the reduction, atoms first to last − 1, and its result.
struct Share {
    int first, last;
    float* product;
};

// share_of returns the share of a block and sets p.row to the row of its tile. The grid has
// all tiles of the first share, then all tiles of the second, and so on.
template <typename P>
__device__ __forceinline__ Share share_of(P& p, const DecodeHalf& args)
{
    constexpr unsigned ROWS = HALF_DECODE_ROWS, DEPTH = HALF_DECODE_DEPTH;
    const unsigned rows = (args.shape.rows + ROWS - 1) / ROWS * ROWS, shares = args.shares;
    const unsigned number = p.row / rows, depth = (args.shape.atoms + shares * DEPTH - 1) / (shares * DEPTH) * DEPTH;
    p.row -= number * rows;
    return {int(number * depth), min(args.shape.atoms, int((number + 1) * depth)), args.product + number * args.share_pitch};
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) decode_fp16(DecodeHalf args)
{
    using P = Product<Half, HALF_DECODE_ROWS, HALF_DECODE_COLUMNS, HALF_DECODE_DEPTH, HALF_DECODE_STAGES, ALONG_ROWS, ALONG_COLUMNS,
                      false, false, HALF_DECODE_COLUMNS / 4>;
    static_assert(P::SHARED == HALF_DECODE_SHARED, "the host asks for this much");
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    P p;
    const Share share = share_of(p, args);
    p.run(shared_halves, {args.codes, s.rows, s.code_pitch}, {args.atoms, s.atoms, s.dim_pitch}, share.last, share.first);
    p.store(share.product, s.rows, s.dim_pitch, p.sums, float_once(1 / args.scale));
}
