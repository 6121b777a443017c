// Encoding with a fixed dictionary: FISTA with adaptive restart (Beck and Teboulle,
// 2009; O'Donoghue and Candès, 2015) for dense codes of words × atoms. An iteration is
// three launches:
//
//     decode (decode.cu)    b·D
//     fista_residuals       m, r = y − zD
//     fista                 b' = shrink(z + step_size·rDᵀ), partial sums of ⟨z − b', b' − b⟩
//
// b are the current codes, a the previous ones, and z = b + m·(b − a) the codes with
// momentum. z is never stored: zD = bD + m·(bD − aD), so that decoding b is enough. A
// row's m is 0, a restart, if the last iteration moved against the momentum, that is if
// ⟨z − b', b' − b⟩ > 0. This sum over the whole row is complete only after fista, so
// the next fista_residuals computes m.
//
// Codes are dense because tensor cores need dense factors. This holds even after
// keep_largest, when most codes are zero. With 8 % nonzeros of 3000, products on the
// support alone would need a twelfth of the flops, but would gather 300 KB of atoms per
// row. keep_largest marks the zeros outside the support by −0. An iteration on a fixed
// support leaves −0 alone, and never produces another −0.
//
// Lower bounds. Bytes: fista 12·words·atoms + 4·(words + atoms)·dim, fista_residuals
// 4·words·((2 + 2·shares)·dim + parts). Flops: fista 2·words·atoms·dim, three times as many
// for fp32. An iteration with decode, for one word of 300 → 3000 on an H200: 56 KB, 13 ns at
// 4.3 TB/s, and 3.6 Mflop, 12 ns if mma.sync does 300 TFLOP/s in TF32.
#include "product.cuh"

// fista_residuals sets momenta[row] = m, which is 0 if the sum of the row's `parts` partial
// sums in restarts is positive, otherwise momentum. It computes
//
//     residuals = y − (decoded + m·(decoded − previous_decoded)),  losses = Σ residuals²
//
// with decoded = bD and previous_decoded = aD, each the sum of its shares.
// previous_decoded isn't read if m is 0. A warp processes one row at a time.
//
// Squares are float, so a row whose squares overflow float has an infinite loss.
//
// fista_residuals_fp16 uses scales[row]·y instead of y, because decoded and
// previous_decoded are scaled alike. It stores scaled float16 residuals, and no losses.
__device__ __forceinline__ float row_momentum(const FistaResiduals& args, long long row)
{
    double sum = 0;
    UNROLL_BY(1)
    for (int i = threadIdx.x % WARP; i < args.parts; i += WARP)
        sum += args.restarts[row * args.parts + i];
    return warp_sum(sum) > 0 ? 0 : float(args.momentum);
}

// sum_shares returns the sum over the shares of four adjacent numbers. All loads overlap.
__device__ __forceinline__ float4 sum_shares(const FistaResiduals& args, const float* first)
{
    float4 shares[MOST_SHARES];
    UNROLL
    for (int i = 0; i < MOST_SHARES; i++)
        shares[i] = i < args.shares ? load(first + i * args.share_pitch) : make_float4(0, 0, 0, 0);
    UNROLL
    for (int i = 1; i < MOST_SHARES; i++)
        shares[0] = add(1, shares[i], shares[0]);
    return shares[0];
}

// residual returns four adjacent elements of scale_y·y − zD.
__device__ __forceinline__ float4 residual(const FistaResiduals& args, float scale_y, float m, size_t at)
{
    const float4 y = load(args.y + at);
    float4 z = sum_shares(args, args.decoded + at);
    if (m != 0)
        z = add(m, add(-1, sum_shares(args, args.previous_decoded + at), z), z);
    return add(scale_y, y, make_float4(-z.x, -z.y, -z.z, -z.w));
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS, 2) fista_residuals(FistaResiduals args)
{
    int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        float m = row_momentum(args, row);
        double loss = 0;
        UNROLL_BY(1)
        for (int i = 4 * lane; i < args.shape.dim_pitch; i += 4 * WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            const float4 r = residual(args, 1, m, at);
            store(static_cast<float*>(args.residuals) + at, r);
            loss += r.x * r.x;
            loss += r.y * r.y;
            loss += r.z * r.z;
            loss += r.w * r.w;
        }
        loss = warp_sum(loss);
        if (lane == 0) {
            args.momenta[row] = m;
            args.losses[row] = loss;
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS, 2) fista_residuals_fp16(FistaResiduals args)
{
    int lane = threadIdx.x % WARP;
    const float scale = float_once(args.scale);
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        float m = row_momentum(args, row), scale_y = args.scales[row];
        UNROLL_BY(1)
        for (int i = 4 * lane; i < args.shape.dim_pitch; i += 4 * WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            const float4 r = residual(args, scale_y, m, at);
            *reinterpret_cast<uint2*>(static_cast<Half*>(args.residuals) + at) = make_uint2(halves(scale * r.x, scale * r.y), halves(scale * r.z, scale * r.w));
        }
        if (lane == 0)
            args.momenta[row] = m;
    }
}

// row_scales sets scales[row] to the power of two that scales ‖y‖ to [1, 2), or the
// nearest one that is a normal float; 1 for a row of zeros. A warp processes one row at a
// time.
//
// Lower bound: 4·words·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) row_scales(RowScales args)
{
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        double squares = 0;
        for (int i = threadIdx.x % WARP; i < args.shape.dim; i += WARP) {
            double y = args.y[row * args.shape.dim_pitch + i];
            squares += y * y;
        }
        // 2ⁿ ≤ ‖y‖² < 2ⁿ⁺¹ implies 2^⌊n/2⌋ ≤ ‖y‖ < 2^⌊n/2⌋⁺¹. In double n is never out of range.
        squares = warp_sum(squares);
        const int n = static_cast<int>(static_cast<unsigned long long>(__double_as_longlong(squares)) >> 52) - 1023;
        if (threadIdx.x % WARP == 0)
            args.scales[row] = squares == 0 ? 1 : __uint_as_float(max(1, min(127 - (n >> 1), 254)) << 23);
    }
}

// to_halves sets halves = scale·rows, words × dim. A warp processes one row at a time.
//
// Lower bound: 6·words·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) to_halves(ToHalves args)
{
    const float scale = float_once(args.scale);
    for (long long row = first_row(); row < args.shape.words; row += row_step())
        for (int i = threadIdx.x % WARP; i < args.shape.dim; i += WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            args.halves[at].bits = half_bits(scale * args.rows[at]);
        }
}

// FistaStep holds the constants of an iteration of FISTA.
struct FistaStep {
    float size, threshold;
    float lowest; // codes below become 0: 0 if nonnegative, else −∞
    unsigned dropped; // an element with these bits stays as it is: −0, or a NaN that no code has

    // code returns b' for an element p of rDᵀ, and adds (z − b')·(b' − b) to restart. A NaN
    // stays a NaN.
    __device__ __forceinline__ float code(float p, float b, float a, float momentum, float& restart) const
    {
        float z = fmaf(momentum, b - a, b);
        float x = fmaf(size, p, z);
        float u = fabsf(x) - threshold;
        x = copysignf(u, x);
        if (u <= 0 || x < lowest)
            x = 0;
        if (__float_as_uint(b) == dropped)
            x = b;
        restart += (z - x) * (x - b);
        return x;
    }
};

// fista: p[words × atoms] = residuals[words × dim] · atoms[atoms × dim]ᵀ and, in the
// epilogue, an iteration of each code. It reads b from codes and a from previous, and
// overwrites a by b'.
//
// Reduction and tile are the same as in correlate.cu, for the same reasons.
template <bool SPLIT>
__device__ __forceinline__ void fista(const Fista& args)
{
    using P = Product<float, CORRELATE_ROWS, CORRELATE_COLUMNS, CORRELATE_DEPTH, CORRELATE_STAGES, ALONG_ROWS, ALONG_ROWS, SPLIT>;
    static_assert(P::SHARED == CORRELATE_SHARED, "the host asks for this much");
    static_assert(8 * P::ACROSS == FISTA_COLUMNS, "a warp has a part of a sum");
    SHARED_MEMORY(float, shared);
    const Shape& s = args.shape;
    P p;
    p.run(shared, {args.residuals, s.words, s.dim_pitch}, {args.atoms, s.atoms, s.dim_pitch}, s.dim_pitch);
    const FistaStep step = {float_once(args.step_size), float_once(args.threshold),
                       args.nonnegative ? 0 : __uint_as_float(0xff800000), // −∞
                       args.fixed_support ? 0x80000000 : 0xffffffff};
    const int part = (p.column + p.warp_column) / FISTA_COLUMNS;
    p.each_row([&](int row, int column, int i, int half) {
        float2 b[P::ACROSS], a[P::ACROSS];
        size_t at = static_cast<size_t>(row) * s.code_pitch + column;
        float momentum = row < s.words ? args.momenta[row] : 0, sum = 0;
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.words && column + 8 * j < s.code_pitch) {
                b[j] = *reinterpret_cast<const float2*>(args.codes + at + 8 * j);
                a[j] = *reinterpret_cast<float2*>(args.previous + at + 8 * j);
            }
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.words && column + 8 * j < s.code_pitch) {
                float2 next;
                next.x = step.code(p.sums[i][j][2 * half], b[j].x, a[j].x, momentum, sum);
                next.y = step.code(p.sums[i][j][2 * half + 1], b[j].y, a[j].y, momentum, sum);
                *reinterpret_cast<float2*>(args.previous + at + 8 * j) = next;
            }
        // Sum over the four lanes of a row.
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (row < s.words && p.t == 0)
            args.restarts[static_cast<size_t>(row) * args.parts + part] = sum;
    });
}

// fista_fp16 reads b, a, residuals and atoms as float16. Codes are scaled by scales[row] and
// a constant, for which step_size and threshold are adjusted. A code that exceeds the range
// of float16 becomes infinite, and the loss of its row infinite or NaN, so that the host
// detects it.
//
// A lane holds four adjacent codes of a row, as in correlate.
__device__ __forceinline__ float4 load_four(const Half* from)
{
    uint2 x = *reinterpret_cast<const uint2*>(from);
    return make_float4(first_half(x.x), second_half(x.x), first_half(x.y), second_half(x.y));
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) fista_fp16(FistaHalf args)
{
    using P = Product<Half, HALF_CORRELATE_ROWS, HALF_CORRELATE_COLUMNS, HALF_CORRELATE_DEPTH, HALF_CORRELATE_STAGES,
                      ALONG_ROWS, ALONG_ROWS, false, false, 32, true>;
    static_assert(P::SHARED == HALF_CORRELATE_SHARED, "the host asks for this much");
    static_assert(8 * P::ACROSS == FISTA_COLUMNS, "a warp has a part of a sum");
    SHARED_MEMORY(Half, shared_halves);
    const Shape& s = args.shape;
    P p;
    p.run(shared_halves, {args.residuals, s.words, s.dim_pitch}, {args.atoms, s.atoms, s.dim_pitch}, s.dim_pitch);
    const float threshold = float_once(args.threshold);
    FistaStep step = {float_once(args.step_size), 0, args.nonnegative ? 0 : __uint_as_float(0xff800000), 0xffffffff}; // −∞; nothing is dropped
    const int part = (p.column + p.warp_column) / FISTA_COLUMNS;
    p.each_row([&](int row, int column, int i, int half) {
        constexpr int QUADS = P::ACROSS / 2;
        float4 b[QUADS], a[QUADS];
        size_t at = static_cast<size_t>(row) * s.code_pitch + column;
        float momentum = 0, sum = 0;
        if (row < s.words) {
            momentum = args.momenta[row];
            step.threshold = threshold * args.scales[row];
        }
        UNROLL
        for (int j = 0; j < QUADS; j++)
            if (row < s.words && column + 16 * j < s.code_pitch) {
                b[j] = load_four(args.codes + at + 16 * j);
                a[j] = load_four(args.previous + at + 16 * j);
            }
        UNROLL
        for (int j = 0; j < QUADS; j++)
            if (row < s.words && column + 16 * j < s.code_pitch) {
                const float4 x = p.quad(i, j, half);
                const unsigned first = halves(step.code(x.x, b[j].x, a[j].x, momentum, sum), step.code(x.y, b[j].y, a[j].y, momentum, sum));
                const unsigned second = halves(step.code(x.z, b[j].z, a[j].z, momentum, sum), step.code(x.w, b[j].w, a[j].w, momentum, sum));
                *reinterpret_cast<uint2*>(args.previous + at + 16 * j) = make_uint2(first, second);
            }
        // Sum over the four lanes of a row.
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (row < s.words && p.t == 0)
            args.restarts[static_cast<size_t>(row) * args.parts + part] = sum;
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) fista_tf32(Fista args) { fista<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) fista_fp32(Fista args) { fista<true>(args); }

// keep_largest keeps the max_nonzeros codes of largest magnitude in each row, the first of
// equal ones. Dropped codes and zeros become −0. A warp processes one row at a time.
//
// The threshold is found by a radix select. Magnitudes are ordered like their bits. Three bits
// at a time, from the top, it counts the magnitudes that are at least as large as each of 7
// candidates. This takes up to 11 passes over the row, which L2 holds, and ends early when
// exactly max_nonzeros remain. It needs no histogram in shared memory: trained codes have few
// different exponents, so the lanes would contend for the same counters.
//
// Lower bound: 8·words·atoms bytes.
//
// keep_largest_fp16 reads the scaled float16 codes of fista_fp16 and writes unscaled floats:
// 6·words·atoms bytes, and 5 passes.
__device__ __forceinline__ unsigned magnitude_bits(const float* x) { return __float_as_uint(fabsf(*x)); }
__device__ __forceinline__ unsigned magnitude_bits(const Half* x) { return x->bits & 0x7fff; }
__device__ __forceinline__ float scaled_value(const float* x, float) { return *x; }
__device__ __forceinline__ float scaled_value(const Half* x, float factor) { return factor * first_half(x->bits); }

template <typename T>
__device__ __forceinline__ void keep_rows(const KeepLargest& args, const T* codes)
{
    const int atom_count = args.shape.atoms, most = args.max_nonzeros;
    constexpr int BITS = 3, DIGITS = 1 << BITS;
    constexpr int HIGHEST = sizeof(T) == 2 ? 12 : 30; // bit of a magnitude, or of its highest digit
    static_assert(HIGHEST % BITS == 0, "the last digit is of bit 0");
    int lane = threadIdx.x % WARP;
    unsigned lanes_before = (1u << lane) - 1;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        const T* code = codes + row * args.shape.code_pitch;
        float* kept = args.codes + row * args.shape.code_pitch;
        const float factor = sizeof(T) == sizeof(Half) ? float(args.scale) / args.scales[row] : 1;
        unsigned least = 0; // at least `most` magnitudes are ≥ least
        int larger = 0;     // number of magnitudes > least, once its last digit is known
        for (int shift = HIGHEST, found = atom_count; shift >= 0 && found != most; shift -= BITS) {
            int counts[DIGITS] = {}; // counts[d]: at least least + (d << shift)
            for (int column = lane; column < atom_count; column += WARP) {
                unsigned magnitude = magnitude_bits(code + column) >> shift;
                UNROLL
                for (int d = 1; d < DIGITS; d++)
                    counts[d] += magnitude >= (least >> shift) + d;
            }
            unsigned digit = 0;
            UNROLL
            for (int d = DIGITS - 1; d > 0; d--) {
                int count = warp_sum(counts[d]);
                if (digit == 0 && count >= most) {
                    digit = d;
                    found = count;
                }
                if (digit == 0)
                    larger = count;
            }
            least += digit << shift;
        }
        int equal = most - larger; // number of magnitudes equal to least to keep, or more than exist
        for (int first = 0; first < atom_count; first += WARP) {
            int column = first + lane;
            float a = column < atom_count ? scaled_value(code + column, factor) : 0;
            unsigned magnitude = column < atom_count ? magnitude_bits(code + column) : 0;
            unsigned ties = __ballot_sync(ALL_LANES, column < atom_count && magnitude == least);
            if (magnitude < least || (magnitude == least && __popc(ties & lanes_before) >= equal))
                a = 0;
            equal -= __popc(ties);
            if (column < atom_count)
                kept[column] = a == 0 ? -0.0f : a;
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS) keep_largest(KeepLargest args) { keep_rows<float>(args, args.codes); }
extern "C" __global__ void __launch_bounds__(ROW_THREADS) keep_largest_fp16(KeepLargest args) { keep_rows<Half>(args, args.halves); }
