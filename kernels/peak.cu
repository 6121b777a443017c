// peak: how fast the tensor cores are when nothing else is in the way. Training
// does not need it; measurements of the other kernels are compared with it.
//
// A warp repeats mma, as product.cuh uses it, on registers alone. PEAK_CHAINS sums
// that don't wait for each other, and several warps a tensor core, keep it busy
// from one result to the next. The factors are not zeros, which would draw less
// power and so allow a higher clock than real work.
//
// Floor: PEAK_CHAINS·2048 flops a step and warp; no memory but 4 bytes a thread at the
// end, which keep the compiler from dropping it all.

#include "device.cuh"

// peak_tf32 leaves in out[thread of the grid] the sum of what the thread's
// registers hold of the sums after a number of steps.
extern "C" __global__ void __launch_bounds__(PEAK_THREADS) peak_tf32(PeakTF32 args)
{
    int lane = threadIdx.x % WARP;
    unsigned a[4], b[2];
    UNROLL
    for (int i = 0; i < 4; i++)
        a[i] = tf32(1 + (4 * lane + i) % 7);
    UNROLL
    for (int i = 0; i < 2; i++)
        b[i] = tf32(1 + (2 * lane + i) % 5);
    float sums[PEAK_CHAINS][4] = {};
    for (int step = 0; step < args.steps; step++) {
        UNROLL
        for (int i = 0; i < PEAK_CHAINS; i++)
            mma(sums[i], a, b);
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
