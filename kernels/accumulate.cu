// accumulate: product[atoms × dim] = codesᵀ · residuals
//             squares[atoms × dim] = (codes∘codes)ᵀ · (residuals∘residuals)
//
// with codes[rows × atoms] and residuals[rows × dim]: the gradient of the
// dictionary and the sum of squared gradients of the rows. Both need the same
// elements, so a warp squares them in registers, in float32, and calls mma twice,
// with two sets of sums. The squares cause no memory traffic.
//
// The reduction runs along the columns of both factors (see product.cuh).
//
// Lower bounds. Bytes: 4·(rows·atoms + rows·dim + 2·atoms·dim). Flops:
// 4·rows·atoms·dim, three times as many for fp32. For 400,000 × 300 → 3000 on an
// H200, all 128 batches of an epoch: 6.2 GB, 1.4 ms at 4.3 TB/s, and 1.44 Tflop,
// 4.8 ms if mma.sync does 300 TFLOP/s in TF32.
//
// Tile: the result is small and the reduction long. 3000 × 300 is 24 × 5 = 120
// tiles of 128 × 64, one for most of 132 SMs, and each block reduces over all rows.
// Split-K would need a second sum, and would only help small dictionaries. A step
// moves 24 KB from L2 for 1.05 Mflop; update_fp16 moves half of that.
//
// fp32 runs one block per SM, so that a thread may use more than 128 registers: it
// holds 64 sums and the split parts of four factors.
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
    p.run(shared, {args.codes, s.rows, s.code_pitch}, {args.residuals, s.rows, s.dim_pitch}, s.rows);
    p.store(args.product, s.atoms, s.dim_pitch, p.sums);
    p.store(args.squares, s.atoms, s.dim_pitch, p.squares);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) accumulate_tf32(Accumulate args) { accumulate<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 1) accumulate_fp32(Accumulate args) { accumulate<true>(args); }

using ProductOfHalves = Product<Half, HALF_ACCUMULATE_ROWS, HALF_ACCUMULATE_COLUMNS, HALF_ACCUMULATE_DEPTH, HALF_ACCUMULATE_STAGES,
                                ALONG_COLUMNS, ALONG_COLUMNS, false, true>;
static_assert(ProductOfHalves::SHARED == HALF_ACCUMULATE_SHARED, "the host asks for this much");

// AdaGrad holds the constants of AdaGrad for the dictionary.
struct AdaGrad {
    float c0, c1, c2, c3, c4, epsilon;

    // step updates h and returns the step P of an element d, from the products m and n. A NaN stays a NaN.
    __device__ __forceinline__ float step(float m, float n, float d, float& h) const
    {
        float added = fmaf(c0, n, d * fmaf(c1, m, c2 * d));
        h += added <= 0 ? 0 : added;
        return fmaf(c3, d, c4 * m) * inverse_sqrt(h + epsilon);
    }
};

// update_fp16 computes m and n, the product and the squares of accumulate, and in the epilogue
//
//     H += max(c0·n + D∘(c1·m + c2·D), 0),  P = (c3·D + c4·m)/√(H + ε)
//
// It writes H, and P as float and as float16. m and n stay in registers.
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) update_fp16(UpdateHalf args)
{
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    ProductOfHalves p;
    p.run(shared_halves, {args.codes, s.rows, s.code_pitch}, {args.residuals, s.rows, s.dim_pitch}, s.rows);
    const AdaGrad adagrad = {float_once(args.c0), float_once(args.c1), float_once(args.c2),
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
                step.x = adagrad.step(p.sums[i][j][2 * half], p.squares[i][j][2 * half], d[j].x, h[j].x);
                step.y = adagrad.step(p.sums[i][j][2 * half + 1], p.squares[i][j][2 * half + 1], d[j].y, h[j].y);
                *reinterpret_cast<float2*>(args.squares + at + 8 * j) = h[j];
                *reinterpret_cast<float2*>(args.steps + at + 8 * j) = step;
                *reinterpret_cast<unsigned*>(args.step_halves + at + 8 * j) =
                    halves(within_halves(scale * step.x), within_halves(scale * step.y));
            }
    });
}
