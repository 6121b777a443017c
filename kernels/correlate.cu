// correlate: p[rows × atoms] = residuals[rows × dim] · atoms[atoms × dim]ᵀ
// and, in the epilogue, dual averaging of the codes (averaging.cuh). p stays in registers.
// S and Q are read and written once and codes are written once, which is most of the memory
// traffic.
//
// Lower bounds. Bytes: 20·rows·atoms + 4·(rows + atoms)·dim. Flops:
// 2·rows·atoms·dim, three times as many for fp32. For 400,000 × 300 → 3000 on an
// H200: 24.5 GB, 5.7 ms at 4.3 TB/s, and 0.72 Tflop, 2.4 ms if mma.sync does 300
// TFLOP/s in TF32. Memory is the bottleneck, so arithmetic must overlap it: with two
// blocks per SM, one streams S and Q while the other multiplies.
//
// The reduction runs along the rows of both factors (see product.cuh).
//
// Tile: 128 × 128 does 32 flops per byte from L2 (128 × 64: 21). The tiles of
// residuals and atoms are 23 GB of L2 traffic, as much as S, Q and codes. Two stages
// of depth 32 allow two blocks per SM. The wide tile wastes little, because there are
// many atoms. A lane holds four adjacent columns of the result, 16 bytes.
#include "averaging.cuh"
#include "product.cuh"

// dual_average updates the sums and the codes with the product p.
template <typename P>
__device__ __forceinline__ void dual_average(const P& p, const Correlate& args)
{
    const Shape& s = args.shape;
    const DualAveraging averaging(args);
    p.each_row([&](int row, int column, int i, int half) {
        // All reads of a row precede its first write, so that they overlap.
        constexpr int QUADS = P::ACROSS / 2;
        float4 g[QUADS], q[QUADS];
        size_t at = static_cast<size_t>(row) * s.code_pitch + column;
        UNROLL
        for (int j = 0; j < QUADS; j++)
            if (row < s.rows && column + 16 * j < s.code_pitch) {
                g[j] = load(args.sum_g + at + 16 * j);
                q[j] = load(args.sum_q + at + 16 * j);
            }
        UNROLL
        for (int j = 0; j < QUADS; j++)
            if (row < s.rows && column + 16 * j < s.code_pitch) {
                store(args.codes + at + 16 * j, averaging.codes(p.quad(i, j, half), g[j], q[j]));
                store(args.sum_g + at + 16 * j, g[j]);
                store(args.sum_q + at + 16 * j, q[j]);
            }
    });
}

template <bool SPLIT>
__device__ __forceinline__ void correlate(const Correlate& args)
{
    using P = Product<float, CORRELATE_ROWS, CORRELATE_COLUMNS, CORRELATE_DEPTH, CORRELATE_STAGES, ALONG_ROWS, ALONG_ROWS, SPLIT,
                      false, 32, true>;
    static_assert(P::SHARED == CORRELATE_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    p.run(shared, {args.residuals, s.rows, s.dim_pitch}, {args.atoms, s.atoms, s.dim_pitch}, s.dim_pitch);
    dual_average(p, args);
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) correlate_tf32(Correlate args) { correlate<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) correlate_fp32(Correlate args) { correlate<true>(args); }
