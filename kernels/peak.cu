// peak: how fast the tensor cores are, and L2, when nothing else is in the way. Training
// does not need it; measurements of the other kernels are compared with it.
//
// A warp of peak_tf32 and peak_fp16 repeats mma, as product.cuh uses it, on registers alone.
// PEAK_CHAINS sums that don't wait for each other, and several warps a tensor core, keep it busy
// from one result to the next. The factors are not zeros, which would draw less
// power and so allow a higher clock than real work.
//
// Floor: PEAK_CHAINS·2048 flops a step and warp, twice that with halves; no memory but 4 bytes a
// thread at the end, which keep the compiler from dropping it all. Without steps it is a
// kernel that does nothing, to measure how soon the next one can begin.
#include "device.cuh"

// peak leaves in out[thread of the grid] the sum of what the thread's registers hold of the
// sums after a number of steps.
template <typename F>
__device__ __forceinline__ void peak(const Peak& args, F multiply_add)
{
    float sums[PEAK_CHAINS][4] = {};
    for (int step = 0; step < args.steps; step++) {
        UNROLL
        for (int i = 0; i < PEAK_CHAINS; i++)
            multiply_add(sums[i]);
    }
    float sum = 0;
    UNROLL
    for (int i = 0; i < PEAK_CHAINS; i++) {
        UNROLL
        for (int j = 0; j < 4; j++)
            sum += sums[i][j];
    }
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(PEAK_THREADS) peak_tf32(Peak args)
{
    int lane = threadIdx.x % WARP;
    unsigned a[4], b[2];
    UNROLL
    for (int i = 0; i < 4; i++)
        a[i] = tf32(1 + (4 * lane + i) % 7);
    UNROLL
    for (int i = 0; i < 2; i++)
        b[i] = tf32(1 + (2 * lane + i) % 5);
    peak(args, [&](float (&sums)[4]) { mma(sums, a, b); });
}

extern "C" __global__ void __launch_bounds__(PEAK_THREADS) peak_fp16(Peak args)
{
    int lane = threadIdx.x % WARP;
    unsigned a[4], b[2];
    UNROLL
    for (int i = 0; i < 4; i++)
        a[i] = halves(1 + (8 * lane + 2 * i) % 7, 1 + (8 * lane + 2 * i + 1) % 7);
    UNROLL
    for (int i = 0; i < 2; i++)
        b[i] = halves(1 + (4 * lane + 2 * i) % 5, 1 + (4 * lane + 2 * i + 1) % 5);
    peak(args, [&](float (&sums)[4]) { mma_halves(sums, a, b); });
}

// peak_l2 copies tiles to shared memory, a block one after the other, as product.cuh does:
// past L1, two under way. All blocks together, of which there are no more than tiles, read all of
// the data, which should be less than L2 holds. It leaves in out[thread of the grid] the sum of what the thread copied last.
//
// Floor: 4·PEAK_TILE bytes of L2 a step and block.
extern "C" __global__ void __launch_bounds__(PEAK_THREADS) peak_l2(PeakL2 args)
{
    constexpr int EACH = 4, APART = EACH * PEAK_THREADS; // floats that a thread copies at a time
    static_assert(2 * PEAK_TILE * sizeof(float) == PEAK_SHARED, "the host asks for this much");
    SHARED_MEMORY(float, shared);
    const int own = EACH * threadIdx.x;
    for (int step = 0, tile = blockIdx.x; step < args.steps; step++) {
        const float* from = args.data + static_cast<size_t>(tile) * PEAK_TILE;
        UNROLL
        for (int i = own; i < own + PEAK_TILE; i += APART)
            copy_async(shared + step % 2 * PEAK_TILE + i, from + i, true);
        copy_commit();
        copy_wait<1>(); // what is overwritten next is there
        tile += gridDim.x;
        if (tile >= args.tiles)
            tile -= args.tiles;
    }
    copy_wait<0>();
    float sum = 0;
    for (int i = own; i < own + PEAK_TILE; i += APART)
        for (int j = 0; j < EACH; j++)
            sum += args.steps > 0 ? shared[(args.steps - 1) % 2 * PEAK_TILE + i + j] : 0;
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
