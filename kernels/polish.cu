// polish: the last part of encoding (package encode), after the search. It keeps the largest codes
// of a row, runs iterations without shrinkage on their support in float, and packs the result:
//
//     choose       the max_nonzeros largest |b|, the first of equal ones, as a list
//     iterations   r = y − zD, a' = z + step_size·rDᵀ, z = a' + m·(a' − a)
//     pack         r = y − aD, ‖r‖², then the nonzeros of the list
//
// A block processes a row, and a warp a batch of atoms of the list at a time. A lane processes the
// same columns of all atoms: QUADS groups of four adjacent columns. A batch therefore stays in registers
// from its products with r to its part of the next zD. The first pass copies the first `gathered` atoms
// to shared memory, and L2 holds the others. Wider vectors are processed in spans of columns. The order
// of sums depends neither on the amount of shared memory nor on the GPU.
//
// Lower bounds for a row of 300 with 90 of 3000 codes, in clocks of an SM: 120 KB from L2 at 64 bytes
// per clock are 2,000; 108 KB of shared memory, written once and read 5 times at 128 bytes per clock,
// are 5,100; 11 · 90 · 300 multiplications are 2,300. 60 batches of 345 instructions, and the other parts,
// which cost as much as 40 batches, are 8,700 at four instructions per clock.
#include "search.cuh"

// Candidates are the codes that a warp may keep: the nonzeros of its part of the row, or all codes of
// this part if the nonzeros don't fit into shared memory.
struct Candidates {
    static constexpr int CACHED = 4; // candidates per lane

    const int2* list;   // shared: code and index, or null
    const float* codes; // codes of the row
        int first, length;  // range of the warp's part of the row, or of the list
    unsigned cached[CACHED];

    __device__ __forceinline__ Candidates(const int2* list, const float* codes, int first, int length)
        : list(list), codes(codes), first(first), length(length)
    {
        UNROLL
        for (int i = 0; i < CACHED; i++)
            cached[i] = at(i * WARP + threadIdx.x % WARP).x & 0x7fffffff;
    }

    // at returns the code and index of a candidate, or zeros beyond the last candidate.
    __device__ __forceinline__ int2 at(int i) const
    {
        if (i >= length)
            return make_int2(0, 0);
        return list ? list[i] : make_int2(__float_as_uint(codes[code_place(0, first + i, 0)]), first + i);
    }

    // for_each calls f with the magnitudes of all candidates, one per lane at a time.
    template <typename F>
    __device__ __forceinline__ void for_each(F f) const
    {
        UNROLL
        for (int i = 0; i < CACHED; i++) {
            if (i * WARP < length)
                f(cached[i]);
        }
        UNROLL_BY(1)
        for (int from = CACHED * WARP; from < length; from += WARP)
            f(at(from + threadIdx.x % WARP).x & 0x7fffffff);
    }
};

// Polishing is the state of a block for its row.
struct Polishing {
    static constexpr int WARPS = POLISH_THREADS / WARP, BATCH = POLISH_BATCH, DIGITS = 8;
    static constexpr int QUADS = 3, SPAN = QUADS * WARP; // groups of four columns, per lane and per warp
    static constexpr int COUNTS = 2 * WARPS * DIGITS * sizeof(int), PARTIAL = (WARPS - 1) * SPAN * sizeof(float4);
    static_assert(POLISH_SHARED == COUNTS + PARTIAL, "the host asks for this much");

    const Polish& args;
    int warp, lane, quads, pitch; // quads: groups of four elements of a vector
    int* counts;                  // shared: DIGITS per warp, twice
    int2* candidates;             // shared: code and index of the warp's nonzeros; in the memory of the next two, and of r
    int room;                     // for candidates
    float4* partial;              // shared: a span of each warp's part of r, except the first warp's
    float* gathered;              // shared: atoms
    float* residual;              // r
    int* index;                   // indices of the list
    float *value, *z;             // a and z of the list; z is padded with zeros to a multiple of BATCH
    int n;                        // length of the list

    __device__ __forceinline__ Polishing(const Polish& args, char* shared)
        : args(args), warp(threadIdx.x / WARP), lane(threadIdx.x % WARP), quads(args.shape.dim_pitch / 4), pitch(args.shape.dim_pitch), n(0)
    {
        const int length = (args.max_nonzeros + BATCH - 1) / BATCH * BATCH;
        counts = reinterpret_cast<int*>(shared);
        shared += COUNTS;
        if (args.staged) {
            z = reinterpret_cast<float*>(shared);
            value = z + length;
            index = reinterpret_cast<int*>(value + length);
            shared += 3 * length * sizeof(float);
        } else {
            z = args.momentum_codes + blockIdx.x * static_cast<long long>(length);
            value = args.value + blockIdx.x * static_cast<long long>(args.max_nonzeros);
            index = args.index + blockIdx.x * static_cast<long long>(args.max_nonzeros);
        }
        partial = reinterpret_cast<float4*>(shared);
        gathered = reinterpret_cast<float*>(shared + PARTIAL);
        residual = args.residuals + blockIdx.x * static_cast<long long>(pitch);
        if (args.staged) {
            residual = gathered;
            gathered += pitch;
        }
        room = (PARTIAL + (args.staged + args.gathered) * pitch * sizeof(float)) / sizeof(int2) / WARPS;
        candidates = reinterpret_cast<int2*>(shared) + warp * room;
    }

    // set_counts stores counts of the warp, and is a barrier. Calls alternate between two places.
    template <int N>
    __device__ __forceinline__ const int* set_counts(int& turn, const int (&count)[N])
    {
        int* place = counts + turn * WARPS * DIGITS;
        turn ^= 1;
        UNROLL
        for (int i = 0; i < N; i++) {
            if (lane == 0)
                place[warp * DIGITS + i] = count[i];
        }
        __syncthreads();
        return place;
    }

    // compact copies the nonzeros of codes first to end to the warp's candidates, while there is room. It
    // returns the number of nonzeros, which may be larger.
    __device__ __forceinline__ int compact(const float* codes, int first, int end)
    {
        constexpr int LOADS = 8; // loads at once
        const unsigned lanes_before = (1u << lane) - 1;
        int m = 0;
        UNROLL_BY(1)
        for (int from = first; from < end; from += LOADS * 4 * WARP) {
            float4 loaded[LOADS];
            UNROLL
            for (int i = 0; i < LOADS; i++) {
                const int k = from + 4 * (i * WARP + lane);
                loaded[i] = k < end ? load(codes + code_place(0, k, 0)) : make_float4(0, 0, 0, 0);
            }
            UNROLL
            for (int i = 0; i < LOADS; i++) {
                const int k = from + 4 * (i * WARP + lane);
                const float code[4] = {loaded[i].x, loaded[i].y, loaded[i].z, loaded[i].w};
                bool nonzero[4];
                int to = m;
                UNROLL
                for (int j = 0; j < 4; j++) {
                    nonzero[j] = code[j] != 0 && k + j < end;
                    const unsigned lanes = __ballot_sync(ALL_LANES, nonzero[j]);
                    to += __popc(lanes & lanes_before);
                    m += __popc(lanes);
                }
                UNROLL
                for (int j = 0; j < 4; j++) {
                    if (nonzero[j] && to++ < room)
                        candidates[to - 1] = make_int2(__float_as_uint(code[j]), k + j);
                }
            }
        }
        __syncwarp();
        return m;
    }

    // choose fills the list from the codes of the row. A radix select finds the smallest magnitude to
    // keep: three bits at a time, from the top, it counts the magnitudes that are at least as large
    // as each of 7 candidates. Then each warp stores its part of the row.
    __device__ __forceinline__ void choose(const float* codes, double factor)
    {
        const int atoms = args.shape.atoms, most = args.max_nonzeros;
        const int part = (atoms + 4 * POLISH_THREADS - 1) / (4 * POLISH_THREADS) * 4 * WARP, first = min(warp * part, atoms), end = min(first + part, atoms);
        const int nonzeros = compact(codes, first, end);
        const Candidates own(nonzeros <= room ? candidates : nullptr, codes, first, nonzeros <= room ? nonzeros : end - first);
        int turn = 0, total = 0;
        const int here[] = {nonzeros};
        const int* all = set_counts(turn, here);
        UNROLL
        for (int w = 0; w < WARPS; w++)
            total += all[w * DIGITS];
        unsigned least = 0; // at least `most` magnitudes are ≥ least, if there are as many nonzeros
        int shift = total > most ? 30 : -1;
        UNROLL_BY(1)
        while (shift >= 0) {
            int count[DIGITS] = {}; // count[d]: magnitudes ≥ least + (d << shift)
            own.for_each([&](unsigned magnitude) {
                const int digit = static_cast<int>(magnitude >> shift) - static_cast<int>(least >> shift);
                UNROLL
                for (int d = 1; d < DIGITS; d++)
                    count[d] += __popc(__ballot_sync(ALL_LANES, digit >= d));
            });
            all = set_counts(turn, count);
            int sum = 0; // the count of digit lane % DIGITS, over all warps
            UNROLL
            for (int w = 0; w < WARPS; w++)
                sum += all[w * DIGITS + lane % DIGITS];
            const unsigned digits = (1u << DIGITS) - 2;
            const unsigned enough = __ballot_sync(ALL_LANES, sum >= most) & digits, exact = __ballot_sync(ALL_LANES, sum == most);
            const int digit = __popc(enough); // counts decrease with the digit
            least += static_cast<unsigned>(digit) << shift;
            shift = digit > 0 && exact >> digit & 1 ? -1 : shift - 3;
        }

        auto is_equal = [&](unsigned magnitude) { return magnitude == least && magnitude != 0; };
        int count[2] = {}; // magnitudes of the warp's part that are above least, and equal to it
        own.for_each([&](unsigned magnitude) {
            count[0] += __popc(__ballot_sync(ALL_LANES, magnitude > least));
            count[1] += __popc(__ballot_sync(ALL_LANES, is_equal(magnitude)));
        });
        all = set_counts(turn, count);
        int left = most, equal = 0, to = 0; // equal: number of codes equal to least that the warp keeps; to: place of its first code
        UNROLL
        for (int w = 0; w < WARPS; w++)
            left -= all[w * DIGITS];
        UNROLL
        for (int w = 0; w < WARPS; w++) {
            const int keeps = min(left, all[w * DIGITS + 1]);
            if (w == warp) {
                equal = keeps;
                to = n;
            }
            n += all[w * DIGITS] + keeps;
            left -= keeps;
        }
        const unsigned lanes_before = (1u << lane) - 1;
        UNROLL_BY(1)
        for (int from = 0; from < own.length; from += WARP) {
            const int2 code = own.at(from + lane);
            const unsigned magnitude = code.x & 0x7fffffff;
            const unsigned ties = __ballot_sync(ALL_LANES, is_equal(magnitude));
            const bool keeps = magnitude > least || (is_equal(magnitude) && __popc(ties & lanes_before) < equal);
            const unsigned kept = __ballot_sync(ALL_LANES, keeps);
            if (keeps) {
                const int i = to + __popc(kept & lanes_before);
                index[i] = code.y;
                value[i] = z[i] = static_cast<float>(__uint_as_float(code.x) * factor);
            }
            equal -= __popc(ties);
            to += __popc(kept);
        }
        const int end_of_batch = (n + BATCH - 1) / BATCH * BATCH;
        if (n + static_cast<int>(threadIdx.x) < end_of_batch)
            z[n + threadIdx.x] = 0;
        __syncthreads();
    }

    // lane_sums sums each of BATCH numbers over the lanes. A lane receives the sum of number lane / (WARP / BATCH).
    __device__ __forceinline__ float lane_sums(float (&x)[BATCH]) const
    {
        int apart = WARP / 2;
        UNROLL
        for (int half = BATCH / 2; half > 0; half /= 2, apart /= 2) {
            const bool upper = lane & apart;
            UNROLL
            for (int b = 0; b < half; b++) {
                const float mine = upper ? x[b + half] : x[b], others = upper ? x[b] : x[b + half];
                x[b] = mine + __shfl_xor_sync(ALL_LANES, others, apart);
            }
        }
        UNROLL
        for (apart = WARP / BATCH / 2; apart > 0; apart /= 2)
            x[0] += __shfl_xor_sync(ALL_LANES, x[0], apart);
        return x[0];
    }

    // load_batch loads the columns of the lane. Columns beyond the end stay as they are.
    __device__ __forceinline__ static void load_batch(float4 (&d)[BATCH][QUADS], const float* const (&atom)[BATCH], int columns)
    {
        UNROLL
        for (int j = 0; j < QUADS; j++) {
            if (4 * WARP * j < columns) {
                UNROLL
                for (int b = 0; b < BATCH; b++)
                    d[b][j] = load(atom[b] + 4 * WARP * j);
            }
        }
    }

    // pass processes a span of all atoms. With dots, it adds size·rDᵀ to z. With dots and sums, rDᵀ is
    // then complete, and it updates a and z. With sums, it sets the span of r to y − zD. With copies, it
    // copies atoms to shared memory.
    __device__ __forceinline__ void pass(int span, bool copies, bool dots, bool sums, float size, float momentum)
    {
        float4 r[QUADS] = {}, rest[QUADS] = {}, d[BATCH][QUADS] = {}; // rest: the warp's part of the next r
        const int column = 4 * (span + lane), columns = pitch - column; // the lane's first column, and the number of columns from it on
        UNROLL
        for (int j = 0; j < QUADS; j++) {
            if (dots && 4 * WARP * j < columns)
                r[j] = load(residual + column + 4 * WARP * j);
            if (warp == 0 && sums && 4 * WARP * j < columns)
                rest[j] = load(args.y + blockIdx.x * static_cast<long long>(pitch) + column + 4 * WARP * j);
        }
        UNROLL_BY(1)
        for (int first = BATCH * warp; first < n; first += BATCH * WARPS) {
            const bool shared = first < args.gathered; // the whole batch, or none of it
            const float* atom[BATCH];
            if (shared && !copies) {
                UNROLL
                for (int b = 0; b < BATCH; b++)
                    atom[b] = gathered + min(first + b, n - 1) * pitch + column;
                load_batch(d, atom, columns);
            } else {
                UNROLL
                for (int b = 0; b < BATCH; b++)
                    atom[b] = args.atoms + index[min(first + b, n - 1)] * static_cast<long long>(pitch) + column;
                load_batch(d, atom, columns);
                UNROLL
                for (int j = 0; j < QUADS; j++) {
                    UNROLL
                    for (int b = 0; b < BATCH; b++) {
                        if (shared && first + b < n && 4 * WARP * j < columns)
                            store(gathered + (first + b) * pitch + column + 4 * WARP * j, d[b][j]);
                    }
                }
            }
            if (dots) {
                const int own = first + lane / (WARP / BATCH); // the element of the list that the lane updates
                const float before = own < n ? z[own] : 0, old = own < n ? value[own] : 0;
                float products[BATCH] = {};
                UNROLL
                for (int b = 0; b < BATCH; b++) {
                    UNROLL
                    for (int j = 0; j < QUADS; j++)
                        products[b] = fmaf(d[b][j].x, r[j].x, fmaf(d[b][j].y, r[j].y, fmaf(d[b][j].z, r[j].z, fmaf(d[b][j].w, r[j].w, products[b]))));
                }
                float a = fmaf(size, lane_sums(products), before), next = a;
                if (sums) {
                    if (args.nonnegative && a < 0)
                        a = 0;
                    next = fmaf(momentum, a - old, a);
                }
                __syncwarp(); // all lanes have read the list
                if (lane % (WARP / BATCH) == 0 && own < n) {
                    z[own] = next;
                    if (sums)
                        value[own] = a;
                }
                __syncwarp();
            }
            if (sums) {
                UNROLL
                for (int b = 0; b < BATCH; b += 4) {
                    const float4 four = load(z + first + b);
                    const float code[4] = {four.x, four.y, four.z, four.w};
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        UNROLL
                        for (int j = 0; j < QUADS; j++)
                            rest[j] = add(-code[i], d[b + i][j], rest[j]);
                    }
                }
            }
        }
        if (sums)
            set_residual(span, rest);
    }

    // set_residual sets a span of r to the sum over all warps, and is a barrier.
    __device__ __forceinline__ void set_residual(int span, float4 (&rest)[QUADS])
    {
        UNROLL
        for (int j = 0; j < QUADS; j++) {
            if (warp > 0)
                partial[((warp - 1) * QUADS + j) * WARP + lane] = rest[j];
        }
        __syncthreads();
        if (warp == 0) {
            UNROLL
            for (int w = 0; w < WARPS - 1; w++) {
                UNROLL
                for (int j = 0; j < QUADS; j++)
                    rest[j] = add(1, partial[(w * QUADS + j) * WARP + lane], rest[j]);
            }
            UNROLL
            for (int j = 0; j < QUADS; j++) {
                const int quad = span + j * WARP + lane;
                if (quad < quads)
                    store(residual + 4 * quad, rest[j]);
            }
        }
        __syncthreads();
    }

    // iterate runs the iterations. Each passes over all spans for rDᵀ, and then back over them for zD.
    // One pass does both for the last span.
    __device__ __forceinline__ void iterate()
    {
        const float size = float_once(2 * *args.step); // the gradient of ‖r‖² by the code is −2rDᵀ
        const int last = (quads - 1u) / SPAN;
        UNROLL_BY(1)
        for (int t = -1; t < args.count; t++) {
            const float momentum = t >= 0 && t + 1 < args.count ? args.iterations[t].momentum : 0; // 0 at the end: z = a
            UNROLL_BY(1)
            for (int i = t < 0 ? last : 0; i <= 2 * last; i++)
                pass(min(i, 2 * last - i) * SPAN, t < 0, t >= 0 && i <= last, i >= last, size, momentum);
        }
    }

    __device__ __forceinline__ float* dense() const { return args.dense + blockIdx.x * static_cast<long long>(args.shape.code_pitch); }

    // clear_dense zeroes the dense codes of the row.
    __device__ __forceinline__ void clear_dense()
    {
        UNROLL_BY(1)
        for (int column = 4 * threadIdx.x; column < args.shape.code_pitch; column += 4 * POLISH_THREADS)
            store(dense() + column, make_float4(0, 0, 0, 0));
    }

    // pack stores the nonzeros of the list, and the other results of the row. One warp calls it.
    __device__ __forceinline__ void pack()
    {
        double loss = 0; // squares are float: a row whose squares overflow has an infinite loss
        UNROLL_BY(1)
        for (int quad = lane; quad < quads; quad += WARP) {
            const float4 r = load(residual + 4 * quad);
            loss += r.x * r.x;
            loss += r.y * r.y;
            loss += r.z * r.z;
            loss += r.w * r.w;
        }
        loss = warp_sum(loss);
        int* to_index = args.index + blockIdx.x * static_cast<long long>(args.max_nonzeros);
        float* to_value = args.value + blockIdx.x * static_cast<long long>(args.max_nonzeros);
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
                to_index[to] = k;
                to_value[to] = a;
                if (args.dense) {
                    dense()[k] = a;
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

extern "C" __global__ void __launch_bounds__(POLISH_THREADS, 3) polish(Polish args)
{
    SHARED_MEMORY(char, shared_bytes);
    Polishing p(args, shared_bytes);
    if (args.dense)
        p.clear_dense();
    const int pitch = (args.shape.atoms + SEARCH_COLUMNS - 1) / SEARCH_COLUMNS * SEARCH_COLUMNS;
    p.choose(args.codes + code_place(blockIdx.x, 0, pitch), args.factors[blockIdx.x]);
    p.iterate();
    if (p.warp == 0)
        p.pack();
}
