// The row machine: elementwise work on each row after the product of a step (body),
// and arithmetic on sums over rows (totals).
//
// A step needs a handful of vector operations on rows of dim elements, which depend
// on the loss. They are therefore data: body interprets a short list of instructions
// for each row. For example, the residual and its squared norm are
//
//     SUB_VV   R = X − P
//     ROW_DOT  number = Σ R·R
//     STORE    row number 0 = number
//
// A warp processes one row at a time. A lane handles elements lane, lane + 32, … of
// every vector, so vector instructions need no synchronisation, and the next
// instruction reads the results from L1 or shared memory. Numbers are double. Each
// warp has its own copy of all numbers, which a row may overwrite.
//
// Sums over rows have two stages, so that their order depends on the number of rows
// alone: body stores a number per row, and totals adds them in one block.
//
// Lower bound: 4·rows·width bytes for each matrix read and for each matrix written.
// R = X − P with its row sums, for 400,000 × 300 on an H200 at 4.3 TB/s: three
// matrices, 1.44 GB, 0.33 ms. totals reads 8 bytes per row with one SM.
#include "device.cuh"

// arithmetic computes OP_MUL and OP_RATIO. A NaN stays a NaN.
__device__ __forceinline__ double arithmetic(Op op, double a, double b)
{
    if (op == OP_MUL)
        return a * b;
    if (b == 0)
        return 1;
    a /= b;
    return a < 0 ? 0 : a > 1 ? 1 : a;
}

// Row is the current row of a warp.
struct Row {
    const Place* places;
    float* input;     // location of vector 0, which differs between batches
    double* numbers;  // the warp's copy
    float* temporary; // the warp's temporary rows
    size_t stride;    // elements between temporary rows
    long long row;
    int width, lane;

    __device__ __forceinline__ float* vector(int v) const
    {
        Place place = places[v];
        if (v == 0)
            place.data = input;
        return place.data ? place.data + row * place.pitch : temporary + place.pitch * stride;
    }

    // assign sets element i of vector v to f(i). It calls f BATCH times before the
    // first write, so that the reads overlap: the compiler can't reorder them, as f
    // might read v. Waiting for reads is most of the time of a row.
    static constexpr int BATCH = 10;

    template <typename F>
    __device__ __forceinline__ void assign(int v, F f) const
    {
        float* dst = vector(v);
        for (int first = lane; first < width; first += BATCH * WARP) {
            float x[BATCH];
            UNROLL
            for (int i = 0; i < BATCH; i++)
                if (first + i * WARP < width)
                    x[i] = f(first + i * WARP);
            UNROLL
            for (int i = 0; i < BATCH; i++)
                if (first + i * WARP < width)
                    dst[first + i * WARP] = x[i];
        }
    }

    // each computes vector dst = f(vector a) elementwise.
    template <typename F>
    __device__ __forceinline__ void each(const Instruction& in, F f) const
    {
        const float* a = vector(in.a);
        assign(in.dst, [=](int i) { return f(a[i]); });
    }

    // each_vv computes vector dst = f(vector a, vector b) elementwise.
    template <typename F>
    __device__ __forceinline__ void each_vv(const Instruction& in, F f) const
    {
        const float* a = vector(in.a);
        const float* b = vector(in.b);
        assign(in.dst, [=](int i) { return f(a[i], b[i]); });
    }

    // each_vn computes vector dst = f(vector a, number b) elementwise.
    template <typename F>
    __device__ __forceinline__ void each_vn(const Instruction& in, F f) const
    {
        const float* a = vector(in.a);
        const float b = static_cast<float>(numbers[in.b]);
        assign(in.dst, [=](int i) { return f(a[i], b); });
    }

    // halves computes float16 vector dst = number b · vector a, clamped.
    __device__ __forceinline__ void halves(const Instruction& in) const
    {
        const float* a = vector(in.a);
        const float b = static_cast<float>(numbers[in.b]);
        Place place = places[in.dst];
        Half* dst = reinterpret_cast<Half*>(place.data) + row * place.pitch;
        UNROLL_BY(4)
        for (int i = lane; i < width; i += WARP)
            dst[i].bits = half_bits(within_halves(b * a[i]));
    }

    // set writes a number and makes it visible to all lanes.
    __device__ __forceinline__ void set(int dst, double x) const
    {
        __syncwarp(ALL_LANES); // all lanes have read the old value
        if (lane == 0)
            numbers[dst] = x;
        __syncwarp(ALL_LANES);
    }

    // sum returns the sum of f(i) over all elements.
    template <typename F>
    __device__ __forceinline__ double sum(F f) const
    {
        double sum = 0;
        for (int first = lane; first < width; first += BATCH * WARP) {
            float x[BATCH];
            UNROLL
            for (int i = 0; i < BATCH; i++)
                x[i] = first + i * WARP < width ? f(first + i * WARP) : 0;
            UNROLL
            for (int i = 0; i < BATCH; i++)
                sum += x[i];
        }
        return warp_sum(sum);
    }

    __device__ __forceinline__ double sum(int v) const
    {
        const float* a = vector(v);
        return sum([=](int i) { return a[i]; });
    }

    __device__ __forceinline__ double dot(int v, int w) const
    {
        const float *a = vector(v), *b = vector(w);
        return sum([=](int i) { return a[i] * b[i]; });
    }
};

// body runs a program of instructions (see abi.cuh) on each row. Vectors have width
// elements. Every row starts with a copy of numbers; OP_STORE writes its results to
// row_numbers.
//
// Dynamic shared memory per warp: 8 bytes per number, rounded up to 16, then the
// temporary rows of width floats, rounded up to 4 floats.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) body(Body args)
{
    SHARED_MEMORY(char, memory);
    size_t number_bytes = (args.number_count * sizeof(double) + 15) / 16 * 16;
    size_t stride = (args.width + 3) / 4 * 4;
    char* own = memory + threadIdx.x / WARP * (number_bytes + args.temps * stride * sizeof(float));
    Row r;
    r.places = args.places;
    r.input = args.input;
    r.numbers = reinterpret_cast<double*>(own);
    r.temporary = reinterpret_cast<float*>(own + number_bytes);
    r.stride = stride;
    r.width = args.width;
    r.lane = threadIdx.x % WARP;
    for (r.row = first_row(); r.row < args.rows; r.row += row_step()) {
        __syncwarp(ALL_LANES); // all lanes have finished the previous row
        for (int i = r.lane; i < args.number_count; i += WARP)
            r.numbers[i] = args.numbers[i];
        __syncwarp(ALL_LANES);
        for (int pc = 0; pc < args.instructions; pc++) {
            Instruction in = args.program[pc];
            switch (in.op) {
            case OP_ADD_VV:
                r.each_vv(in, [](float a, float b) { return a + b; });
                break;
            case OP_SUB_VV:
                r.each_vv(in, [](float a, float b) { return a - b; });
                break;
            case OP_MUL_VV:
                r.each_vv(in, [](float a, float b) { return a * b; });
                break;
            case OP_DIV_VV:
                r.each_vv(in, [](float a, float b) { return a / b; });
                break;
            case OP_ADD_VN:
                r.each_vn(in, [](float a, float b) { return a + b; });
                break;
            case OP_SUB_VN:
                r.each_vn(in, [](float a, float b) { return a - b; });
                break;
            case OP_MUL_VN:
                r.each_vn(in, [](float a, float b) { return a * b; });
                break;
            case OP_SQRT:
                r.each(in, [](float a) { return sqrtf(a); });
                break;
            case OP_ABS:
                r.each(in, [](float a) { return fabsf(a); });
                break;
            case OP_SIGN:
                r.each(in, [](float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f; });
                break;
            case OP_RELU:
                r.each(in, [](float a) { return a <= 0 ? 0.0f : a; }); // a NaN stays a NaN
                break;
            case OP_HALVES:
                r.halves(in);
                break;
            case OP_ROW_SUM:
                r.set(in.dst, r.sum(in.a));
                break;
            case OP_ROW_DOT:
                r.set(in.dst, r.dot(in.a, in.b));
                break;
            case OP_STORE:
                if (r.lane == 0)
                    args.row_numbers[in.dst * args.row_pitch + r.row] = r.numbers[in.a];
                break;
            default:
                r.set(in.dst, arithmetic(in.op, r.numbers[in.a], r.numbers[in.b]));
            }
        }
    }
}

// total returns the sum of a row number over the rows, to all threads.
__device__ __forceinline__ double total(double* warps, const double* row_numbers, int rows)
{
    double sum = 0;
    UNROLL_BY(16) // reads in flight: a single block reads the numbers of all rows
    for (int row = threadIdx.x; row < rows; row += TOTALS_THREADS)
        sum += row_numbers[row];
    return block_sum(warps, sum);
}

// totals runs a program on numbers, in one block. Each instruction sees the results of
// the previous ones.
extern "C" __global__ void __launch_bounds__(TOTALS_THREADS) totals(Totals args)
{
    SHARED_MEMORY(double, warps);
    for (int pc = 0; pc < args.instructions; pc++) {
        Instruction in = args.program[pc];
        double x = 0;
        if (in.op == OP_TOTAL)
            x = total(warps, args.row_numbers + in.a * args.row_pitch, args.rows);
        if (threadIdx.x > 0)
            continue;
        switch (in.op) {
        case OP_TOTAL:
            args.numbers[in.dst] = x;
            break;
        case OP_ACCUMULATE:
            args.numbers[in.dst] += args.numbers[in.a];
            break;
        case OP_COUNT_BELOW_ONE:
            args.numbers[in.dst] += args.numbers[in.a] < 1;
            break;
        default:
            args.numbers[in.dst] = arithmetic(in.op, args.numbers[in.a], args.numbers[in.b]);
        }
    }
}
