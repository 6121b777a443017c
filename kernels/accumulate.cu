// accumulate: product[atoms × dim] = codesᵀ · residuals
//             squares[atoms × dim] = (codes∘codes)ᵀ · (residuals∘residuals)
//
// with codes[words × atoms] and residuals[words × dim]. Both are sums over the
// words of outer products, and both need the same numbers. So a warp squares
// what it has just read, in registers and in float32, and feeds the tensor
// cores twice, into two sets of sums. The squares cost no memory traffic at
// all.
//
// The reduction runs along the columns of both factors; see product.cuh.
//
// Floor, in bytes: 4·(words·atoms + words·dim + 2·atoms·dim); in flops:
// 4·words·atoms·dim, three times that for fp32. For 400,000 × 300 → 3000 on an
// H200, the 128 batches of an epoch together: 6.2 GB, 1.4 ms at 4.3 TB/s, and
// 1.44 Tflop, 4.8 ms if mma.sync does 300 TFLOP/s in TF32.
//
// Shape: the result is small and the reduction long. 3000 × 300 is 24 × 5 = 120
// tiles of 128 × 64, one for nearly every SM of 132, and each block walks over
// all words. Giving several blocks parts of the words would need a second sum
// over them; it would pay on smaller dictionaries. Between L2 and the SMs a
// step moves 24 KB for 1.05 Mflop.
//
// accumulate_fp16 moves half as much.
//
// With one block an SM, fp32 may use more than 128 registers a thread: it holds
// 64 sums and the parts of four factors.
#include "product.cuh"

template <bool SPLIT>
__device__ __forceinline__ void accumulate(const Accumulate& args)
{
    using P = Product<float, ACCUMULATE_ROWS, ACCUMULATE_COLUMNS, ACCUMULATE_DEPTH, ACCUMULATE_STAGES, ALONG_COLUMNS, ALONG_COLUMNS,
                      SPLIT, true>;
    static_assert(P::SHARED == ACCUMULATE_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    p.run(shared, {args.codes, s.words, s.code_pitch}, {args.residuals, s.words, s.dim_pitch}, s.words);
    p.store(args.product, s.atoms, s.dim_pitch, p.sums);
    p.store(args.squares, s.atoms, s.dim_pitch, p.squares);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) accumulate_tf32(Accumulate args) { accumulate<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 1) accumulate_fp32(Accumulate args) { accumulate<true>(args); }

using ProductOfHalves = Product<Half, HALF_ACCUMULATE_ROWS, HALF_ACCUMULATE_COLUMNS, HALF_ACCUMULATE_DEPTH, HALF_ACCUMULATE_STAGES,
                                ALONG_COLUMNS, ALONG_COLUMNS, false, true>;
static_assert(ProductOfHalves::SHARED == HALF_ACCUMULATE_SHARED, "the host asks for this much");

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) accumulate_fp16(AccumulateHalf args)
{
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    ProductOfHalves p;
    p.run(shared_halves, {args.codes, s.words, s.code_pitch}, {args.residuals, s.words, s.dim_pitch}, s.words);
    p.store(args.product, s.atoms, s.dim_pitch, p.sums, float_once(1 / args.scale));
    p.store(args.squares, s.atoms, s.dim_pitch, p.squares, float_once(1 / (args.scale * args.scale)));
}

// Gradient is the constants of AdaGrad for the dictionary.
struct Gradient {
    float c0, c1, c2, c3, c4, epsilon;

    // step returns P of an element, from m and n of the products, and adds to h. A NaN stays one.
    __device__ __forceinline__ float step(float m, float n, float d, float& h) const
    {
        float added = fmaf(c0, n, d * fmaf(c1, m, c2 * d));
        h += added <= 0 ? 0 : added;
        return fmaf(c3, d, c4 * m) * inverse_sqrt(h + epsilon);
    }
};

// update_fp16: m and n are accumulate's product and squares and, while they are in registers,
//
//     H += max(c0·n + D∘(c1·m + c2·D), 0),  P = (c3·D + c4·m)/√(H + ε)
//
// of which P is written as floats and as halves. Neither m nor n is ever in memory.
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) update_fp16(UpdateHalf args)
{
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    ProductOfHalves p;
    p.run(shared_halves, {args.codes, s.words, s.code_pitch}, {args.residuals, s.words, s.dim_pitch}, s.words);
    const Gradient gradient = {float_once(args.c0), float_once(args.c1), float_once(args.c2),
                               float_once(args.c3), float_once(args.c4), float_once(args.epsilon)};
    const float scale = float_once(args.step_scale);
    p.each_row([&](int row, int column, int i, int half) {
        size_t at = static_cast<size_t>(row) * s.dim_pitch + column;
        float2 d[ProductOfHalves::ACROSS], h[ProductOfHalves::ACROSS];
        UNROLL
        for (int j = 0; j < ProductOfHalves::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < s.dim_pitch) {
                d[j] = *reinterpret_cast<const float2*>(args.atoms + at + 8 * j);
                h[j] = *reinterpret_cast<float2*>(args.squares + at + 8 * j);
            }
        UNROLL
        for (int j = 0; j < ProductOfHalves::ACROSS; j++)
            if (row < s.atoms && column + 8 * j < s.dim_pitch) {
                float2 step;
                step.x = gradient.step(p.sums[i][j][2 * half], p.squares[i][j][2 * half], d[j].x, h[j].x);
                step.y = gradient.step(p.sums[i][j][2 * half + 1], p.squares[i][j][2 * half + 1], d[j].y, h[j].y);
                *reinterpret_cast<float2*>(args.squares + at + 8 * j) = h[j];
                *reinterpret_cast<float2*>(args.steps + at + 8 * j) = step;
                *reinterpret_cast<unsigned*>(args.step_halves + at + 8 * j) =
                    halves(within_halves(scale * step.x), within_halves(scale * step.y));
            }
    });
}
