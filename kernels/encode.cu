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
// 4·words·(4·dim + parts); in flops: fista 2·words·atoms·dim, three times that for
// fp32. With decode's, a step of a word of 300 → 3000 on an H200 is 56 KB, 13 ns at 4.3
// TB/s, and 3.6 Mflop, 12 ns if mma.sync does 300 TFLOP/s in TF32.
#include "product.cuh"

// fista_residuals takes a number a row m = 0 if the sum of the row's parts in
// against is positive, else momentum, and leaves it in momenta. Then
//
//     residuals = y − (decoded + m·(decoded − last)),  losses = Σ residuals²
//
// with decoded = bD, last = aD. A row has `parts` parts. A warp takes a row at a time.
//
// Squares are float: rows whose squares float cannot hold have infinite losses.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) fista_residuals(FistaResiduals args)
{
    int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        double sum = 0;
        for (int i = lane; i < args.parts; i += WARP)
            sum += args.against[row * args.parts + i];
        float m = warp_sum(sum) > 0 ? 0 : float(args.momentum);
        double loss = 0;
        for (int i = lane; i < args.shape.dim; i += WARP) {
            size_t at = row * args.shape.dim_pitch + i;
            float r = args.y[at] - fmaf(m, args.decoded[at] - args.last[at], args.decoded[at]);
            args.residuals[at] = r;
            loss += r * r;
        }
        loss = warp_sum(loss);
        if (lane == 0) {
            args.momenta[row] = m;
            args.losses[row] = loss;
        }
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
extern "C" __global__ void __launch_bounds__(ROW_THREADS) keep_largest(KeepLargest args)
{
    const int atom_count = args.shape.atoms, most = args.most;
    constexpr int BITS = 3, DIGITS = 1 << BITS;
    constexpr int HIGHEST = 30; // bit of a magnitude
    static_assert(HIGHEST % BITS == 0, "the last digit is of bit 0");
    int lane = threadIdx.x % WARP;
    unsigned lanes_before = (1u << lane) - 1;
    for (long long row = first_row(); row < args.shape.words; row += row_step()) {
        float* code = args.codes + row * args.shape.code_pitch;
        unsigned least = 0; // `most` magnitudes or more are at least this
        int larger = 0;     // and so many are larger, if `least` is known to its last digit
        for (int shift = HIGHEST, found = atom_count; shift >= 0 && found != most; shift -= BITS) {
            int counts[DIGITS] = {}; // counts[d]: at least least + (d << shift)
            for (int column = lane; column < atom_count; column += WARP) {
                unsigned magnitude = __float_as_uint(fabsf(code[column])) >> shift;
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
            float a = column < atom_count ? code[column] : 0;
            unsigned magnitude = __float_as_uint(fabsf(a));
            unsigned ties = __ballot_sync(ALL_LANES, column < atom_count && magnitude == least);
            if (magnitude < least || (magnitude == least && __popc(ties & lanes_before) >= equal))
                a = 0;
            equal -= __popc(ties);
            if (column < atom_count)
                code[column] = a == 0 ? -0.0f : a;
        }
    }
}
