// polish: the last part of encoding (package encode), after search.cu. It keeps the largest codes
// of a row, runs iterations without shrinkage on their support in float, and packs the result:
//
//     choose       the max_nonzeros largest |b|, the first of equal ones, as a list
//     iterations   r = y − zD, a' = z + step_size·rDᵀ, z = a' + m·(a' − a)
//     pack         r = y − aD, ‖r‖², then the nonzeros of the list
//
// A block processes a row. If `gathered` is set, it copies the chosen atoms to shared memory, so
// that L2 is read once; else L1 and L2 hold them. Lists are in global memory, which L1 holds, so
// that their length has no limit. The order of sums depends neither on this nor on the GPU.
//
// Lower bounds for a row of 300 with 90 of 3000 codes: 120 KB from L2, 2,000 clocks at 64 bytes
// per clock and SM, and 11 · 90 · 300 multiplications, which read 1.2 MB from shared memory in
// 9,300 clocks.
#include "search.cuh"

// Polishing is the state of a block for its row. The list is in global memory.
struct Polishing {
    static constexpr int WARPS = POLISH_THREADS / WARP, DIGITS = 8;
    static_assert(POLISH_SHARED == POLISH_THREADS * sizeof(float4) + WARPS * DIGITS * sizeof(int), "the host asks for this much");

    const Polish& args;
    int warp, lane, quads; // quads: groups of four elements of a vector
    float4* partial;       // shared: one per thread
    int* counts;           // shared: DIGITS per warp
    float* gathered;       // shared: the chosen atoms, or null
    int* index;            // of the list
    float *value, *z;      // of the list: a and z
    float* residual;       // r
    const float* y;
    int n;                 // length of the list

    __device__ __forceinline__ Polishing(const Polish& args, char* shared)
        : args(args), warp(threadIdx.x / WARP), lane(threadIdx.x % WARP), quads(args.shape.dim_pitch / 4), n(0)
    {
        partial = reinterpret_cast<float4*>(shared);
        counts = reinterpret_cast<int*>(partial + POLISH_THREADS);
        gathered = args.gathered ? reinterpret_cast<float*>(shared + POLISH_SHARED) : nullptr;
        const long long list = static_cast<long long>(blockIdx.x) * args.max_nonzeros, vector = static_cast<long long>(blockIdx.x) * args.shape.dim_pitch;
        index = args.index + list;
        value = args.value + list;
        z = args.momentum_codes + list;
        residual = args.residuals + vector;
        y = args.y + vector;
    }

    // atom returns the atom of element i of the list.
    __device__ __forceinline__ const float* atom(int i) const
    {
        return gathered ? gathered + i * args.shape.dim_pitch : args.atoms + static_cast<long long>(index[i]) * args.shape.dim_pitch;
    }

    // set_counts stores counts of the warp, and is a barrier.
    template <int N>
    __device__ __forceinline__ void set_counts(const int (&count)[N])
    {
        __syncthreads(); // all threads have read the previous counts
        UNROLL
        for (int i = 0; i < N; i++) {
            const int sum = warp_sum(count[i]);
            if (lane == 0)
                counts[warp * DIGITS + i] = sum;
        }
        __syncthreads();
    }

    // choose fills the list from the codes of the row. A radix select finds the smallest magnitude to
    // keep: three bits at a time, from the top, it counts the magnitudes that are at least as large
    // as each of 7 candidates. Then each warp stores its part of the row.
    __device__ __forceinline__ void choose(const float* codes, double factor)
    {
        const int atoms = args.shape.atoms, most = args.max_nonzeros;
        auto magnitude_of = [&](int k) { return bits_of(codes[code_place(0, k, 0)]); };
        unsigned least = 0; // at least `most` magnitudes are ≥ least
        int larger = 0;     // number of magnitudes > least, once its last digit is known
        for (int shift = 30, found = atoms; shift >= 0 && found != most; shift -= 3) {
            int count[DIGITS] = {}; // count[d]: at least least + (d << shift)
            for (int k = threadIdx.x; k < atoms; k += POLISH_THREADS) {
                const unsigned magnitude = magnitude_of(k) >> shift;
                UNROLL
                for (int d = 1; d < DIGITS; d++)
                    count[d] += magnitude >= (least >> shift) + d;
            }
            set_counts(count);
            unsigned digit = 0;
            UNROLL
            for (int d = DIGITS - 1; d > 0; d--) {
                int sum = 0;
                UNROLL
                for (int w = 0; w < WARPS; w++)
                    sum += counts[w * DIGITS + d];
                if (digit == 0 && sum >= most) {
                    digit = d;
                    found = sum;
                }
                if (digit == 0)
                    larger = sum;
            }
            least += digit << shift;
        }
        const int part = (atoms + POLISH_THREADS - 1) / POLISH_THREADS * WARP, first = warp * part, end = min(first + part, atoms);
        auto is_equal = [&](unsigned magnitude) { return magnitude == least && magnitude != 0; };
        int count[2] = {}; // of the warp's part: magnitudes above least, and equal ones
        UNROLL_BY(1)
        for (int k = first + lane; k < end; k += WARP) {
            count[0] += magnitude_of(k) > least;
            count[1] += is_equal(magnitude_of(k));
        }
        set_counts(count);
        int left = most - larger, equal = 0, to = 0; // equal and to: how many equal ones the warp keeps, and the place of its first code
        UNROLL_BY(1)
        for (int w = 0; w < WARPS; w++) {
            const int keeps = min(left, counts[w * DIGITS + 1]);
            if (w == warp) {
                equal = keeps;
                to = n;
            }
            n += counts[w * DIGITS] + keeps;
            left -= keeps;
        }
        const unsigned lanes_before = (1u << lane) - 1;
        UNROLL_BY(1)
        for (int from = first; from < end; from += WARP) {
            const int k = from + lane;
            const unsigned magnitude = k < end ? magnitude_of(k) : 0;
            const unsigned ties = __ballot_sync(ALL_LANES, is_equal(magnitude));
            const bool keeps = magnitude > least || (is_equal(magnitude) && __popc(ties & lanes_before) < equal);
            const unsigned kept = __ballot_sync(ALL_LANES, keeps);
            if (keeps) {
                const int i = to + __popc(kept & lanes_before);
                index[i] = k;
                value[i] = z[i] = static_cast<float>(codes[code_place(0, k, 0)] * factor);
            }
            equal -= __popc(ties);
            to += __popc(kept);
        }
        __syncthreads();
    }

    // gather copies the chosen atoms to shared memory.
    __device__ __forceinline__ void gather()
    {
        const int pitch = args.shape.dim_pitch;
        UNROLL_BY(1)
        for (int i = warp; i < n; i += WARPS) {
            UNROLL_BY(1)
            for (int column = 4 * lane; column < pitch; column += 4 * WARP)
                copy_async(gathered + i * pitch + column, args.atoms + static_cast<long long>(index[i]) * pitch + column, true);
        }
        copy_commit();
        copy_wait<0>();
        __syncthreads();
    }

    // subtract computes r = y − codes·D. If vectors are short, several groups of threads share the list.
    __device__ __forceinline__ void subtract(const float* codes)
    {
        const unsigned span = min(POLISH_THREADS, (quads + WARP - 1) / WARP * WARP), groups = POLISH_THREADS / span;
        const unsigned group = threadIdx.x / span, of = threadIdx.x % span;
        for (int first = 0; first < quads; first += span) {
            const int quad = first + of;
            float4 sum = make_float4(0, 0, 0, 0);
            if (quad < quads && group < groups)
                for (int i = group; i < n; i += groups)
                    sum = add(codes[i], load(atom(i) + 4 * quad), sum);
            partial[threadIdx.x] = sum;
            __syncthreads();
            if (quad < quads && group == 0) {
                float4 r = load(y + 4 * quad);
                UNROLL_BY(1)
                for (unsigned g = 0; g < groups; g++)
                    r = add(-1, partial[g * span + of], r);
                store(residual + 4 * quad, r);
            }
            __syncthreads();
        }
    }

    // step updates a and z from r. A warp processes an element of the list at a time.
    __device__ __forceinline__ void step(float size, float momentum)
    {
        for (int i = warp; i < n; i += WARPS) {
            const float* d = atom(i);
            float dot = 0;
            for (int quad = lane; quad < quads; quad += WARP) {
                const float4 x = load(d + 4 * quad), r = load(residual + 4 * quad);
                dot = fmaf(x.x, r.x, fmaf(x.y, r.y, fmaf(x.z, r.z, fmaf(x.w, r.w, dot))));
            }
            dot = warp_sum(dot);
            if (lane == 0) {
                float a = fmaf(size, dot, z[i]);
                if (args.nonnegative && a < 0)
                    a = 0;
                z[i] = fmaf(momentum, a - value[i], a);
                value[i] = a;
            }
        }
        __syncthreads();
    }

    // pack removes zeros from the list, and stores the results of the row.
    __device__ __forceinline__ void pack()
    {
        double loss = 0; // squares are float: a row whose squares overflow has an infinite loss
        UNROLL_BY(1)
        for (int quad = threadIdx.x; quad < quads; quad += POLISH_THREADS) {
            const float4 r = load(residual + 4 * quad);
            loss += r.x * r.x;
            loss += r.y * r.y;
            loss += r.z * r.z;
            loss += r.w * r.w;
        }
        loss = block_sum(reinterpret_cast<double*>(partial), loss);
        float* dense = args.dense ? args.dense + static_cast<long long>(blockIdx.x) * args.shape.code_pitch : nullptr;
        if (dense) {
            UNROLL_BY(1)
            for (int column = 4 * threadIdx.x; column < args.shape.code_pitch; column += 4 * POLISH_THREADS)
                store(dense + column, make_float4(0, 0, 0, 0));
        }
        __syncthreads();
        if (warp > 0)
            return;
        int count = 0;
        double sum = 0;
        UNROLL_BY(1)
        for (int from = 0; from < n; from += WARP) {
            const int i = from + lane, k = i < n ? index[i] : 0;
            const float a = i < n ? value[i] : 0;
            const unsigned kept = __ballot_sync(ALL_LANES, a != 0);
            __syncwarp(); // all lanes have read the list
            if (a != 0) {
                const int to = count + __popc(kept & ((1u << lane) - 1));
                index[to] = k;
                value[to] = a;
                if (dense) {
                    dense[k] = a;
                    if (args.used[k] == 0) // most rows set the same few flags
                        args.used[k] = 1;
                }
            }
            count += __popc(kept);
            sum += fabsf(a);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            args.losses[blockIdx.x] = loss;
            args.nonzeros[blockIdx.x] = count;
            args.l1[blockIdx.x] = sum;
        }
    }
};

extern "C" __global__ void __launch_bounds__(POLISH_THREADS) polish(Polish args)
{
    SHARED_MEMORY(char, shared_bytes);
    Polishing p(args, shared_bytes);
    const int pitch = (args.shape.atoms + SEARCH_COLUMNS - 1) / SEARCH_COLUMNS * SEARCH_COLUMNS;
    p.choose(args.codes + code_place(blockIdx.x, 0, pitch), args.factors[blockIdx.x]);
    if (p.gathered)
        p.gather();
    const float size = float_once(args.step_size);
    for (int t = 0; t < args.count; t++) {
        p.subtract(p.z);
        p.step(size, args.iterations[t].momentum);
    }
    p.subtract(p.value);
    p.pack();
}
