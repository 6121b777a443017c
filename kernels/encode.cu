// Encoding with a fixed dictionary: words × atoms of codes, dense in memory. A step
// of FISTA is three launches:
//
//     decode (decode.cu)    b·D
//     fista_residuals       m, r = y − zD
//     fista                 b' = shrink(z + step·rDᵀ), with ⟨z − b', b' − b⟩ in parts
//
// z = b + m·(b − a), the codes with momentum, is never in memory: it is linear in b
// and a, and so is what it decodes to. m is a number a row, 0 where the step went
// against the momentum, which is known only when all of the row is computed: hence
// by the next launch.
//
// Codes are dense, as tensor cores want them, also when all but a few of a row
// have been dropped: of 3000 codes with 8 % nonzeros the products on their support
// alone would be a twelfth of the flops, but would gather 300 KB of atoms a row.
// What has been dropped is −0: a step on the support of a code leaves it alone, and
// writes no other −0.
//
// Floor, in bytes: fista 12·words·atoms + 4·(words + atoms)·dim, fista_residuals
// 4·words·((2 + 2·shares)·dim + parts); in flops: fista 2·words·atoms·dim, three times that for
// fp32. With decode's, a step of a word of 300 → 3000 on an H200 is 56 KB, 13 ns at 4.3
// TB/s, and 3.6 Mflop, 12 ns if mma.sync does 300 TFLOP/s in TF32.
#include "product.cuh"

// fista_residuals takes a number a row m = 0 if the sum of the row's parts in
// against is positive, else momentum, and leaves it in momenta. Then
//
//     residuals = y − (decoded + m·(decoded − last)),  losses = Σ residuals²
//
// with decoded = bD, last = aD, which are in shares; last is not read where m is 0. A row has
// `parts` parts. A warp takes a row at a time.
//
// Squares are float: rows whose squares float cannot hold have infinite losses.
//
// fista_residuals_fp16 takes scales[row]·y for y, as decoded and last are scaled alike, and
// leaves residuals as halves, scaled once more, and no losses.
__device__ __forceinline__ float momentum_of(const FistaResiduals& args, long long row)
{
    double sum = 0;
    UNROLL_BY(1)
    for (int i = threadIdx.x % WARP; i < args.parts; i += WARP)
        sum += args.against[row * args.parts + i];
    return warp_sum(sum) > 0 ? 0 : float(args.momentum);
}

// of_shares returns the sum of the shares of four numbers. All of them are on their way at once.
__device__ __forceinline__ float4 of_shares(const FistaResiduals& args, const float* first)
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

// residual returns of·y − zD of four numbers.
__device__ __forceinline__ float4 residual(const FistaResiduals& args, float of, float m, size_t at)
{
    const float4 y = load(args.y + at);
    float4 z = of_shares(args, args.decoded + at);
    if (m != 0)
        z = add(m, add(-1, of_shares(args, args.last + at), z), z);
    return add(of, y, make_float4(-z.x, -z.y, -z.z, -z.w));
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS, 2) fista_residuals(FistaResiduals args)
{
    int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        float m = momentum_of(args, row);
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
        float m = momentum_of(args, row), of = args.scales[row];
        UNROLL_BY(1)
        for (int i = 4 * lane; i < args.shape.dim_pitch; i += 4 * WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            const float4 r = residual(args, of, m, at);
            *reinterpret_cast<uint2*>(static_cast<Half*>(args.residuals) + at) = make_uint2(halves(scale * r.x, scale * r.y), halves(scale * r.z, scale * r.w));
        }
        if (lane == 0)
            args.momenta[row] = m;
    }
}

// row_scales: scales[row] is the power of two that makes ‖y‖ 1 to 2, or the nearest that is a
// normal float. For a row of zeros it is 1.
// A warp takes a row at a time.
//
// Floor, in bytes: 4·words·dim.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) row_scales(RowScales args)
{
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        double squares = 0;
        for (int i = threadIdx.x % WARP; i < args.shape.dim; i += WARP) {
            double y = args.y[row * args.shape.dim_pitch + i];
            squares += y * y;
        }
        // 2ⁿ ≤ ‖y‖² < 2ⁿ⁺¹, and so 2^⌊n/2⌋ ≤ ‖y‖ < 2^⌊n/2⌋⁺¹. In double no row's n is out of range.
        squares = warp_sum(squares);
        const int n = static_cast<int>(static_cast<unsigned long long>(__double_as_longlong(squares)) >> 52) - 1023;
        if (threadIdx.x % WARP == 0)
            args.scales[row] = squares == 0 ? 1 : __uint_as_float(max(1, min(127 - (n >> 1), 254)) << 23);
    }
}

// to_halves: halves = scale·rows, words × dim. A warp takes a row at a time.
//
// Floor, in bytes: 6·words·dim.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) to_halves(ToHalves args)
{
    const float scale = float_once(args.scale);
    for (long long row = first_row(); row < args.shape.words; row += row_step())
        for (int i = threadIdx.x % WARP; i < args.shape.dim; i += WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            args.halves[at].bits = half_bits(scale * args.rows[at]);
        }
}

// Step is the constants of a step of FISTA.
struct Step {
    float size, threshold;
    float lowest; // codes below it become 0
    unsigned dropped; // bits of b that stay: those of −0, or else of what no code is

    // code returns b' for an element p of rDᵀ, and adds to against. A NaN stays one.
    __device__ __forceinline__ float code(float p, float b, float a, float momentum, float& against) const
    {
        float z = fmaf(momentum, b - a, b);
        float x = fmaf(size, p, z);
        float u = fabsf(x) - threshold;
        x = copysignf(u, x);
        if (u <= 0 || x < lowest)
            x = 0;
        if (__float_as_uint(b) == dropped)
            x = b;
        against += (z - x) * (x - b);
        return x;
    }
};

// fista: p[words × atoms] = residuals[words × dim] · atoms[atoms × dim]ᵀ and, while p is in
// registers, a step of each code. b is read from codes, a from before, where b' takes its
// place.
//
// Reduction and shape are those of correlate, and so are the reasons: see there.
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
    const Step step = {float_once(args.size), float_once(args.threshold),
                       args.nonnegative ? 0 : __uint_as_float(0xff800000), // −∞
                       args.support ? 0x80000000 : 0xffffffff};
    const int part = (p.column + p.warp_column) / FISTA_COLUMNS;
    p.each_row([&](int row, int column, int i, int half) {
        float2 b[P::ACROSS], a[P::ACROSS];
        size_t at = static_cast<size_t>(row) * s.code_pitch + column;
        float momentum = row < s.words ? args.momenta[row] : 0, sum = 0;
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.words && column + 8 * j < s.code_pitch) {
                b[j] = *reinterpret_cast<const float2*>(args.codes + at + 8 * j);
                a[j] = *reinterpret_cast<float2*>(args.before + at + 8 * j);
            }
        UNROLL
        for (int j = 0; j < P::ACROSS; j++)
            if (row < s.words && column + 8 * j < s.code_pitch) {
                float2 next;
                next.x = step.code(p.sums[i][j][2 * half], b[j].x, a[j].x, momentum, sum);
                next.y = step.code(p.sums[i][j][2 * half + 1], b[j].y, a[j].y, momentum, sum);
                *reinterpret_cast<float2*>(args.before + at + 8 * j) = next;
            }
        // The four lanes of a row.
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (row < s.words && p.t == 0)
            args.against[static_cast<size_t>(row) * args.parts + part] = sum;
    });
}

// fista_fp16 has b, a, residuals and atoms as halves. A code is `scale` times the row's scale
// times as large as what it stands for, and size and threshold have what that takes. Beyond the
// range of halves it is infinite, and so will the row's loss be, or no number: nothing is cut
// off unseen.
//
// A lane has four codes of a row that follow each other, as in correlate.
__device__ __forceinline__ float4 four_codes(const Half* from)
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
    Step step = {float_once(args.size), 0, args.nonnegative ? 0 : __uint_as_float(0xff800000), 0xffffffff}; // −∞; none are dropped
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
                b[j] = four_codes(args.codes + at + 16 * j);
                a[j] = four_codes(args.before + at + 16 * j);
            }
        UNROLL
        for (int j = 0; j < QUADS; j++)
            if (row < s.words && column + 16 * j < s.code_pitch) {
                const float4 x = p.quad(i, j, half);
                const unsigned first = halves(step.code(x.x, b[j].x, a[j].x, momentum, sum), step.code(x.y, b[j].y, a[j].y, momentum, sum));
                const unsigned second = halves(step.code(x.z, b[j].z, a[j].z, momentum, sum), step.code(x.w, b[j].w, a[j].w, momentum, sum));
                *reinterpret_cast<uint2*>(args.before + at + 16 * j) = make_uint2(first, second);
            }
        // The four lanes of a row.
        sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        if (row < s.words && p.t == 0)
            args.against[static_cast<size_t>(row) * args.parts + part] = sum;
    });
}

extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) fista_tf32(Fista args) { fista<false>(args); }
extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS, 2) fista_fp32(Fista args) { fista<true>(args); }

// keep_largest drops all but the `most` largest magnitudes of each row of codes; of equal
// ones the first stay. What is dropped, and what is zero, becomes −0. A warp takes a row at
// a time.
//
// Magnitudes are in the order of their bits. The most-th largest is found three bits at a
// time, from the top, by counting what is at least as large as each of the 7 candidates: up to
// 11 sweeps of the row, which L2 holds, fewer as soon as just `most` are as large. No counts
// in shared memory, which trained codes, of few different exponents, would queue for.
//
// Floor in bytes: 8·words·atoms.
//
// keep_largest_fp16 reads codes that are halves, as fista_fp16 has them, and writes what they
// stand for: 6·words·atoms bytes, and 5 sweeps.
__device__ __forceinline__ unsigned magnitude_of(const float* x) { return __float_as_uint(fabsf(*x)); }
__device__ __forceinline__ unsigned magnitude_of(const Half* x) { return x->bits & 0x7fff; }
__device__ __forceinline__ float value_of(const float* x, float) { return *x; }
__device__ __forceinline__ float value_of(const Half* x, float factor) { return factor * first_half(x->bits); }

template <typename T>
__device__ __forceinline__ void keep(const KeepLargest& args, const T* codes)
{
    const int atom_count = args.shape.atoms, most = args.most;
    constexpr int BITS = 3, DIGITS = 1 << BITS;
    constexpr int HIGHEST = sizeof(T) == 2 ? 12 : 30; // bit of a magnitude, or of its highest digit
    static_assert(HIGHEST % BITS == 0, "the last digit is of bit 0");
    int lane = threadIdx.x % WARP;
    unsigned lanes_before = (1u << lane) - 1;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        const T* code = codes + row * args.shape.code_pitch;
        float* kept = args.codes + row * args.shape.code_pitch;
        const float factor = sizeof(T) == sizeof(Half) ? float(args.scale) / args.scales[row] : 1;
        unsigned least = 0; // `most` magnitudes or more are at least this
        int larger = 0;     // and so many are larger, if `least` is known to its last digit
        for (int shift = HIGHEST, found = atom_count; shift >= 0 && found != most; shift -= BITS) {
            int counts[DIGITS] = {}; // counts[d]: at least least + (d << shift)
            for (int column = lane; column < atom_count; column += WARP) {
                unsigned magnitude = magnitude_of(code + column) >> shift;
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
        int equal = most - larger; // of those that are just `least` so many stay, or more than there are
        for (int first = 0; first < atom_count; first += WARP) {
            int column = first + lane;
            float a = column < atom_count ? value_of(code + column, factor) : 0;
            unsigned magnitude = column < atom_count ? magnitude_of(code + column) : 0;
            unsigned ties = __ballot_sync(ALL_LANES, column < atom_count && magnitude == least);
            if (magnitude < least || (magnitude == least && __popc(ties & lanes_before) >= equal))
                a = 0;
            equal -= __popc(ties);
            if (column < atom_count)
                kept[column] = a == 0 ? -0.0f : a;
        }
    }
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS) keep_largest(KeepLargest args) { keep<float>(args, args.codes); }
extern "C" __global__ void __launch_bounds__(ROW_THREADS) keep_largest_fp16(KeepLargest args) { keep<Half>(args, args.halves); }
