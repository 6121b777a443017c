// Checks of the emulated driver, with kernels of their own. `selftest NAME` runs one
// check and exits with 1, and says where, if it fails. `selftest` lists the names.
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "grid.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)
#define EXPECT(result, call) expect(CUDA_##result, call, #call, __LINE__)
#define OK(call) EXPECT(SUCCESS, call)

static void expect(CUresult want, CUresult got, const char* call, int line)
{
    if (got == want) return;
    fprintf(stderr, "%s:%d: %s gave %d, want %d\n", __FILE__, line, call, got, want);
    exit(1);
}

// As in cuda.h, with handles void*.
typedef uintptr_t CUdeviceptr;
extern "C" {
CUresult cuInit(unsigned);
CUresult cuDeviceGetCount(int*);
CUresult cuDeviceGetAttribute(int*, int, int);
CUresult cuDeviceTotalMem_v2(size_t*, int);
CUresult cuGetErrorName(CUresult, const char**);
CUresult cuCtxCreate_v2(void**, unsigned, int);
CUresult cuCtxDestroy_v2(void*);
CUresult cuCtxSetCurrent(void*);
CUresult cuCtxGetCurrent(void**);
CUresult cuCtxPushCurrent_v2(void*);
CUresult cuCtxPopCurrent_v2(void**);
CUresult cuCtxSynchronize();
CUresult cuMemGetInfo_v2(size_t*, size_t*);
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void**, size_t);
CUresult cuMemFreeHost(void*);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, void*);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, size_t, void*);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, void*);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, void*);
CUresult cuModuleLoadData(void**, const void*);
CUresult cuModuleLoadDataEx(void**, const void*, unsigned, int*, void**);
CUresult cuModuleUnload(void*);
CUresult cuModuleGetFunction(void**, void*, const char*);
CUresult cuFuncSetAttribute(void*, int, int);
CUresult cuFuncGetAttribute(int*, int, void*);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, size_t);
CUresult cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
CUresult cuStreamCreate(void**, unsigned);
CUresult cuStreamDestroy_v2(void*);
CUresult cuStreamSynchronize(void*);
CUresult cuStreamQuery(void*);
CUresult cuStreamWaitEvent(void*, void*, unsigned);
CUresult cuEventCreate(void**, unsigned);
CUresult cuEventDestroy_v2(void*);
CUresult cuEventRecord(void*, void*);
CUresult cuEventSynchronize(void*);
CUresult cuEventQuery(void*);
CUresult cuEventElapsedTime(float*, void*, void*);
CUresult cuStreamBeginCapture_v2(void*, int);
CUresult cuStreamEndCapture(void*, void**);
CUresult cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
CUresult cuGraphLaunch(void*, void*);
CUresult cuGraphDestroy(void*);
CUresult cuGraphExecDestroy(void*);
}

constexpr unsigned ALL = 0xffffffff;
enum { GLOBAL, THREAD_LOCAL, RELAXED }; // CU_STREAM_CAPTURE_MODE

// ---- Kernels

extern "C" __global__ void copy_kernel(float* to, const float* from, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

extern "C" __global__ void nothing() {}

// Each thread of each block marks the place of its indices.
extern "C" __global__ void indices(int* marks)
{
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    marks[block * int(blockDim.x * blockDim.y * blockDim.z) + thread] += 1 + thread + 1000 * block;
}

// out[i] = thread (i + shift) % n's number, through shared memory.
extern "C" __global__ void rotate(float* out, int shift, int wait)
{
    SHARED_MEMORY(float, box);
    const int n = blockDim.x, i = threadIdx.x;
    for (int round = 0; round < 3; round++) {
        box[i] = 10 * i + round + blockIdx.x;
        if (wait) __syncthreads();
        out[(blockIdx.x * 3 + round) * n + i] = box[(i + shift) % n];
        if (wait) __syncthreads();
    }
}

// Each thread notes how many of its block have run before it.
extern "C" __global__ void turns(int* turn, int* run)
{
    turn[blockIdx.x * blockDim.x + threadIdx.x] = run[blockIdx.x]++;
}

// What shared memory is at first, and what is in it afterwards is not zero.
extern "C" __global__ void shared_start(float* out, int n)
{
    SHARED_MEMORY(float, memory);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        out[blockIdx.x * n + i] = memory[i];
        memory[i] = 1;
    }
}

extern "C" __global__ void write_shared(int byte)
{
    SHARED_MEMORY(char, memory);
    memory[byte] = 1;
}

extern "C" __global__ void diverge(int how)
{
    const int lane = threadIdx.x % 32;
    switch (how) {
    case 0: // a thread ends while others wait
        if (threadIdx.x == 40) return;
        __syncthreads();
        break;
    case 1: // a warp ends while others wait
        if (threadIdx.x / 32 == 1) return;
        __syncthreads();
        break;
    case 2: // two barriers
        if (lane < 16) {
            __syncthreads();
        } else {
            __syncthreads();
        }
        break;
    case 3: // a lane misses a shuffle
        if (lane != 5) __shfl_xor_sync(ALL, 1, 1);
        break;
    case 4: // one waits for the warp, others for the block
        if (lane == 31) {
            __syncwarp();
        } else {
            __syncthreads();
        }
        break;
    case 5: // not all lanes
        __shfl_xor_sync(1u, 1, 1);
        break;
    case 6: // one barrier too many in one warp
        for (int i = 0; i < 2 + (threadIdx.x / 32 == 1); i++) __syncthreads();
        break;
    }
}

template <typename T>
__device__ void exchange(T* out)
{
    const int lane = threadIdx.x % 32;
    T* mine = out + threadIdx.x * 6;
    const T value = T(1000) * T(threadIdx.x) + T(1) / T(2);
    // One after the other, so that a lane that goes on first would disturb the others.
    mine[0] = __shfl_xor_sync(ALL, value, 5);
    mine[1] = __shfl_down_sync(ALL, T(value + 1), 3);
    mine[2] = __shfl_sync(ALL, T(value + 2), 7);
    mine[3] = __shfl_up_sync(ALL, T(value + 3), 2);
    __syncwarp();
    mine[4] = T(__ballot_sync(ALL, lane % 3 == 0) % 65536);
    mine[5] = T(__ballot_sync(ALL, threadIdx.x % 5 == 0) / 65536);
}
extern "C" __global__ void exchange_int(int* out) { exchange(out); }
extern "C" __global__ void exchange_unsigned(unsigned* out) { exchange(out); }
extern "C" __global__ void exchange_float(float* out) { exchange(out); }
extern "C" __global__ void exchange_double(double* out) { exchange(out); }

// d = a·b + c for a: 16×8, b: 8×8, c, d: 16×8, row-major; each warp has its own. The
// elements of a lane are those of the PTX manual's figures for mma.m16n8k8 with .tf32:
// row and column as functions of the fragment's index i.
extern "C" __global__ void product(float* d, const float* a, const float* b, const float* c, int rounds)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = lane >> 2, place = lane & 3;
    unsigned fa[4], fb[2];
    float fc[4];
    for (int i = 0; i < 4; i++) {
        const int row = i == 0 || i == 2 ? group : group + 8, column = i <= 1 ? place : place + 4;
        fa[i] = __float_as_uint(a[warp * 128 + row * 8 + column]);
    }
    for (int i = 0; i < 2; i++) fb[i] = __float_as_uint(b[warp * 64 + (i == 0 ? place : place + 4) * 8 + group]);
    for (int i = 0; i < 4; i++) fc[i] = c[warp * 128 + (i < 2 ? group : group + 8) * 8 + place * 2 + (i & 1)];
    for (int round = 0; round < rounds; round++) mma(fc, fa, fb);
    for (int i = 0; i < 4; i++) d[warp * 128 + (i < 2 ? group : group + 8) * 8 + place * 2 + (i & 1)] = fc[i];
}

// Two groups of copies; out has a float of each, before, after waiting for the first, and
// after waiting for both; and one of a copy that isn't valid.
extern "C" __global__ void late_copies(float* out, const float* from)
{
    SHARED_MEMORY(float, memory);
    float *mine = out + 9 * threadIdx.x, *box = memory + 12 * threadIdx.x;
    copy_async(box, from, true);
    copy_commit();
    copy_async(box + 4, from + 4, true);
    copy_async(box + 8, nullptr, false);
    copy_commit();
    auto note = [&] {
        for (int i = 0; i < 3; i++) *mine++ = box[4 * i + 1];
    };
    note();
    copy_wait<1>();
    note();
    copy_wait<0>();
    note();
}

extern "C" __global__ void misaligned_copy(const float* from)
{
    SHARED_MEMORY(float, memory);
    copy_async(memory, from + 1, true);
}

extern "C" __global__ void touch(float* at, long long offset, int write)
{
    if (threadIdx.x != 3) return;
    if (write) {
        at[offset] = 1;
    } else if (at[offset] == 7) {
        at[0] = 8;
    }
}

struct Touch {
    const char* unused;
    float* at;
    long long offset;
    int write;
    int padding;
};
LAYOUT(Touch, 32, 2)

extern "C" __global__ void touch_struct(Touch t) { touch(t.at, t.offset, t.write); }

extern "C" __global__ void __launch_bounds__(64) bounded(double* out, long long value) { *out = value; }

extern "C" __global__ void barriers(int n)
{
    for (int i = 0; i < n; i++) __syncthreads();
}

const std::vector<emulation::Kernel>& emulation::kernels()
{
    static const std::vector<Kernel> all = {
        EMULATION_KERNEL(copy_kernel), EMULATION_KERNEL(nothing), EMULATION_KERNEL(indices), EMULATION_KERNEL(rotate), EMULATION_KERNEL(turns),
        EMULATION_KERNEL(shared_start), EMULATION_KERNEL(write_shared), EMULATION_KERNEL(diverge),
        EMULATION_KERNEL(exchange_int), EMULATION_KERNEL(exchange_unsigned), EMULATION_KERNEL(exchange_float),
        EMULATION_KERNEL(exchange_double), EMULATION_KERNEL(product), EMULATION_KERNEL(late_copies),
        EMULATION_KERNEL(misaligned_copy), EMULATION_KERNEL(touch),
        EMULATION_KERNEL(touch_struct), EMULATION_KERNEL(bounded), EMULATION_KERNEL(barriers),
    };
    return all;
}

// What NVRTC would make of an entry, as far as the driver reads it.
static std::string entry(const std::string& name, const std::string& types, const char* directives = "")
{
    std::string text = ".visible .entry " + name + "(";
    for (size_t i = 0; i < types.size(); i++) {
        const char* type = types[i] == 'i' ? ".u32" : types[i] == 'd' ? ".f64" : types[i] == 's' ? ".align 8 .b8" : ".u64";
        text += std::string(i ? ",\n" : "\n") + "\t.param " + type + " " + name + "_param_" + std::to_string(i);
        if (types[i] == 's') text += "[" + std::to_string(sizeof(Touch)) + "]";
    }
    return text + "\n)\n" + directives + "{\n\t.reg .b64 %rd<2>;\n\tret;\n}\n\n";
}

static const std::string header =
    "//\n// Generated by NVIDIA NVVM Compiler\n//\n\n.version 7.8\n.target sm_80\n.address_size 64\n\n";

static std::string ptx()
{
    return header + entry("copy_kernel", "ppi") + entry("nothing", "") + entry("indices", "p") + entry("rotate", "pii") + entry("turns", "pp") +
        entry("shared_start", "pi") + entry("write_shared", "i") + entry("diverge", "i") + entry("exchange_int", "p") +
        entry("exchange_unsigned", "p") + entry("exchange_float", "p") + entry("exchange_double", "p") +
        entry("product", "ppppi") + entry("late_copies", "pp") + entry("misaligned_copy", "p") + entry("touch", "pli") +
        entry("touch_struct", "s") +        entry("bounded", "pl", ".maxntid 64, 1, 1\n") + entry("barriers", "i");
}

// ---- Help for the checks

static void set(const char* name, const char* value) { setenv(name, value, 1); }

struct Program {
    void* context;
    void* module;

    Program()
    {
        OK(cuInit(0));
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuModuleLoadData(&module, ptx().c_str()));
    }
    void* function(const char* name)
    {
        void* f;
        OK(cuModuleGetFunction(&f, module, name));
        return f;
    }
    template <typename... T>
    CUresult launch(const char* name, dim3 grid, dim3 block, size_t shared, void* stream, T... arguments)
    {
        void* pointers[] = {&arguments..., nullptr};
        return cuLaunchKernel(function(name), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, pointers,
            nullptr);
    }
};

template <typename T>
struct Array {
    CUdeviceptr at;
    size_t size;

    explicit Array(size_t size) : size(size) { OK(cuMemAlloc_v2(&at, size * sizeof(T))); }
    explicit Array(const std::vector<T>& values) : Array(values.size())
    {
        OK(cuMemcpyHtoD_v2(at, values.data(), size * sizeof(T)));
    }
    std::vector<T> get() const
    {
        std::vector<T> values(size);
        OK(cuMemcpyDtoH_v2(values.data(), at, size * sizeof(T)));
        return values;
    }
};

static void* stream(unsigned flags)
{
    void* s;
    OK(cuStreamCreate(&s, flags));
    return s;
}

// The k-th number of a fixed sequence, an integer from -8 to 8.
static float small(unsigned k) { return float((k * 2654435761u >> 16) % 17) - 8; }

// Does something in a child process, whose faults are its own; returns its status. The
// parent must not have run a kernel: its child would lack the threads for that.
static int in_child(const std::function<void()>& something)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        something();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void apart(const std::function<void()>& something) { CHECK(in_child(something) == 0); }

static bool aborts(const std::function<void()>& something)
{
    const int status = in_child(something);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// ---- Checks

static void check_indices()
{
    Program p;
    for (dim3 grid : {dim3{1, 1, 1}, dim3{5, 3, 2}}) {
        for (dim3 block : {dim3{32, 1, 1}, dim3{8, 4, 3}, dim3{1, 1, 1}, dim3{33, 1, 1}, dim3{1024, 1, 1}}) {
            const int threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
            Array<int> marks(std::vector<int>(threads * blocks));
            OK(p.launch("indices", grid, block, 0, nullptr, marks.at));
            const auto got = marks.get();
            for (int i = 0; i < threads * blocks; i++) CHECK(got[i] == 1 + i % threads + 1000 * (i / threads));
        }
    }
}

static void check_barriers()
{
    Program p;
    for (int n : {32, 256, 1024, 50}) {
        for (int shift : {1, 31, 32, n - 1}) {
            const int blocks = 7;
            Array<float> out(blocks * 3 * n);
            OK(p.launch("rotate", {blocks, 1, 1}, {unsigned(n), 1, 1}, n * 4, nullptr, out.at, shift, 1));
            const auto got = out.get();
            for (int i = 0; i < blocks * 3 * n; i++) {
                CHECK(got[i] == float(10 * ((i % n + shift) % n) + i / n % 3 + i / n / 3));
            }
        }
    }
    // Without barriers the first warp, whichever that is, finds nothing of the other.
    Array<float> out(3 * 64);
    OK(p.launch("rotate", {1, 1, 1}, {64, 1, 1}, 64 * 4, nullptr, out.at, 32, 0));
    CHECK(isnan(out.get()[0]) != isnan(out.get()[32]));
}

static void check_divergence()
{
    for (int how = 0; how <= 6; how++) {
        apart([=] {
            Program p;
            OK(p.launch("diverge", {2, 1, 1}, {96, 1, 1}, 0, nullptr, how));
            EXPECT(ERROR_LAUNCH_FAILED, cuCtxSynchronize());
        });
    }
}

static void check_shared()
{
    Program p;
    const int n = 1000, blocks = 20;
    Array<float> out(n * blocks);
    OK(p.launch("shared_start", {blocks, 1, 1}, {64, 1, 1}, n * 4, nullptr, out.at, n));
    for (float x : out.get()) CHECK(isnan(x));
    for (int byte : {0, 76}) OK(p.launch("write_shared", {1, 1, 1}, {32, 1, 1}, 77, nullptr, byte));
    OK(cuCtxSynchronize());
}

static void check_beyond_shared()
{
    for (int byte : {-1, 77}) {
        apart([=] {
            Program p;
            OK(p.launch("write_shared", {1, 1, 1}, {32, 1, 1}, 77, nullptr, byte));
            EXPECT(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
        });
    }
}

// Warps, and the lanes of a warp, run in an order that differs from block to block and
// with the seed, and is the same for the same seed.
static void check_order()
{
    const int blocks = 3, warps = 4, n = 32 * warps;
    auto turns = [&](const char* seed) {
        set("EMULATED_SEED", seed);
        Program p;
        const std::vector<int> none(blocks);
        Array<int> turn(blocks * n), run(none);
        OK(p.launch("turns", {blocks, 1, 1}, {n, 1, 1}, 0, nullptr, turn.at, run.at));
        return turn.get();
    };
    const auto first = turns("1");
    for (int block = 0; block < blocks; block++) {
        std::vector<int> all(&first[block * n], &first[block * n] + n), in_order(n);
        for (int i = 0; i < n; i++) in_order[i] = i;
        CHECK(all != in_order);
        bool cyclic = true, warps_in_order = true; // lanes after lanes, as if they were not drawn
        for (int i = 0; i < n; i++) {
            cyclic = cyclic && (i % 32 == 31 || all[i + 1] == all[i] + 1 || all[i + 1] == all[i] - 31);
            warps_in_order = warps_in_order && all[i] / 32 == i / 32;
            CHECK(all[i] / 32 == all[i / 32 * 32] / 32); // a warp after the other
        }
        CHECK(!cyclic && (block > 0 || !warps_in_order));
        std::sort(all.begin(), all.end());
        CHECK(all == in_order);
    }
    CHECK(!std::equal(&first[0], &first[n], &first[n]));
    CHECK(turns("1") == first);
    CHECK(turns("2") != first);
}

template <typename T>
static void check_exchange(Program& p, const char* kernel)
{
    const int n = 96;
    Array<T> out(n * 6);
    OK(p.launch(kernel, {1, 1, 1}, {n, 1, 1}, 0, nullptr, out.at));
    const auto got = out.get();
    auto value = [](int thread) { return T(1000) * T(thread) + T(1) / T(2); };
    for (int i = 0; i < n; i++) {
        const int warp = i / 32 * 32, lane = i % 32;
        CHECK(got[i * 6] == value(warp + (lane ^ 5)));
        CHECK(got[i * 6 + 1] == T(value(lane + 3 < 32 ? i + 3 : i) + 1));
        CHECK(got[i * 6 + 2] == T(value(warp + 7) + 2));
        CHECK(got[i * 6 + 3] == T(value(lane >= 2 ? i - 2 : i) + 3));
        unsigned thirds = 0, fifths = 0;
        for (int l = 0; l < 32; l++) {
            if (l % 3 == 0) thirds += 1u << l;
            if ((warp + l) % 5 == 0) fifths += 1u << l;
        }
        CHECK(got[i * 6 + 4] == T(thirds & 0xffff));
        CHECK(got[i * 6 + 5] == T(fifths >> 16));
    }
}

static void check_warp()
{
    Program p;
    check_exchange<int>(p, "exchange_int");
    check_exchange<unsigned>(p, "exchange_unsigned");
    check_exchange<float>(p, "exchange_float");
    check_exchange<double>(p, "exchange_double");
}

static void check_mma()
{
    Program p;
    const int warps = 3, rounds = 2;
    std::vector<float> a(warps * 128), b(warps * 64), c(warps * 128);
    unsigned k = 0;
    for (auto* values : {&a, &b, &c}) {
        for (float& x : *values) x = small(k++);
    }
    Array<float> da(a), db(b), dc(c), dd(c.size());
    auto check = [&] {
        OK(p.launch("product", {1, 1, 1}, {32 * warps, 1, 1}, 0, nullptr, dd.at, da.at, db.at, dc.at, rounds));
        const auto d = dd.get();
        for (int w = 0; w < warps; w++) {
            for (int i = 0; i < 16; i++) {
                for (int j = 0; j < 8; j++) {
                    float want = c[w * 128 + i * 8 + j]; // small integers: exact
                    for (int k = 0; k < 8; k++) want += rounds * a[w * 128 + i * 8 + k] * b[w * 64 + k * 8 + j];
                    CHECK(d[w * 128 + i * 8 + j] == want);
                }
            }
        }
    };
    check();
    // The low 13 bits of the factors, not of the sum, are left out.
    auto spoil = [](std::vector<float> values) {
        for (float& x : values) x = __uint_as_float(__float_as_uint(x) | 0x1fff);
        return values;
    };
    da = Array<float>(spoil(a));
    db = Array<float>(spoil(b));
    check();
    c.assign(c.size(), 1 + 1 / 8388608.f);
    dc = Array<float>(c);
    a.assign(a.size(), 0);
    da = Array<float>(a);
    check();
    CHECK(tf32(1 + 1 / 2048.f) == __float_as_uint(1 + 1 / 1024.f)); // a tie
    CHECK(tf32(-1 - 1 / 2048.f) == __float_as_uint(-1 - 1 / 1024.f));
    CHECK(tf32(1 + 1 / 2047.f) == __float_as_uint(1 + 1 / 1024.f));
    CHECK(tf32(1 + 1 / 2049.f) == __float_as_uint(1));
    CHECK(isnan(__uint_as_float(tf32(NAN))) && tf32(INFINITY) == 0x7f800000);
}

static void check_copies()
{
    for (bool eager : {false, true}) {
        set("EMULATED_SCHEDULE", eager ? "eager" : "lazy");
        apart([=] {
            Program p;
            Array<float> from({1, 2, 3, 4, 5, 6, 7, 8}), out(9 * 64);
            OK(p.launch("late_copies", {1, 1, 1}, {64, 1, 1}, 64 * 48, nullptr, out.at, from.at));
            const auto got = out.get();
            for (int i = 0; i < 64; i++) {
                const float* x = &got[9 * i];
                CHECK(eager ? x[0] == 2 && x[1] == 6 && x[2] == 0 : isnan(x[0]) && isnan(x[1]) && isnan(x[2]));
                CHECK(x[3] == 2 && (eager ? x[4] == 6 && x[5] == 0 : isnan(x[4]) && isnan(x[5])));
                CHECK(x[6] == 2 && x[7] == 6 && x[8] == 0);
            }
            OK(p.launch("misaligned_copy", {1, 1, 1}, {32, 1, 1}, 16, nullptr, from.at));
            EXPECT(ERROR_MISALIGNED_ADDRESS, cuCtxSynchronize());
        });
    }
}

// Work on one stream that needs another's: seen only if it was waited for.
static void check_streams()
{
    Program p;
    const unsigned two = __float_as_uint(2);
    auto pinned = [] {
        void* memory;
        OK(cuMemAllocHost_v2(&memory, 4));
        CHECK(isnan(*static_cast<float*>(memory)));
        return static_cast<float*>(memory);
    };
    enum How { not_at_all, event, null_stream, synchronize, both_blocking };
    for (How how : {not_at_all, event, null_stream, synchronize, both_blocking}) {
        Array<float> a(1), b(1);
        float* result = pinned();
        // Blocking streams are ordered with the null stream, and by it only.
        const unsigned flags = how == null_stream || how == both_blocking ? 0 : 1;
        void *first = stream(flags), *second = stream(flags), *e;
        OK(cuMemsetD32Async(a.at, two, 1, first));
        if (how == event) {
            OK(cuEventCreate(&e, 0));
            OK(cuEventRecord(e, first));
            OK(cuStreamWaitEvent(second, e, 0));
            OK(cuEventDestroy_v2(e));
        } else if (how == null_stream) {
            OK(p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, nullptr));
        } else if (how == synchronize) {
            OK(cuStreamSynchronize(first));
        }
        OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, second, b.at, a.at, 1));
        OK(cuMemcpyDtoHAsync_v2(result, b.at, 4, second));
        CHECK(isnan(*result));
        OK(cuStreamSynchronize(second));
        CHECK(how == not_at_all || how == both_blocking ? isnan(*result) : *result == 2);
        OK(cuStreamDestroy_v2(second));
        EXPECT(ERROR_INVALID_HANDLE, cuStreamSynchronize(second));
        // What is left undone is done at last.
        OK(cuCtxSynchronize());
        CHECK(a.get()[0] == 2);
        OK(cuMemFreeHost(result));
    }
    // Non-blocking streams don't wait for the null stream, nor it for them.
    {
        Array<float> a(1), b(1);
        void* other = stream(1);
        OK(cuMemsetD32Async(a.at, two, 1, other));
        CHECK(isnan(a.get()[0]));
        OK(cuStreamSynchronize(nullptr));
        CHECK(isnan(a.get()[0]));
        OK(cuMemsetD32Async(b.at, two, 1, nullptr));
        float* result = pinned();
        OK(cuMemcpyDtoHAsync_v2(result, b.at, 4, other));
        OK(cuStreamSynchronize(other));
        CHECK(isnan(*result));
        CHECK(a.get()[0] == 2 && b.get()[0] == 2);
    }
    // Freeing memory waits for all.
    {
        Array<float> a(1), b(1);
        OK(cuMemsetD32Async(a.at, two, 1, stream(1)));
        OK(cuMemFree_v2(b.at));
        CHECK(a.get()[0] == 2);
    }
    // A stream that is asked comes to its end.
    {
        Array<float> a(1);
        void* s = stream(1);
        OK(cuStreamQuery(s));
        OK(cuMemsetD32Async(a.at, two, 1, s));
        EXPECT(ERROR_NOT_READY, cuStreamQuery(s));
        OK(cuStreamQuery(s));
    }
    set("EMULATED_SCHEDULE", "eager");
    Program q;
    Array<float> a(1);
    float* result = pinned();
    OK(cuMemsetD32Async(a.at, two, 1, stream(1)));
    OK(cuMemcpyDtoHAsync_v2(result, a.at, 4, stream(1)));
    CHECK(*result == 2);
}

static void check_host_copies()
{
    Program p;
    void *memory, *s = stream(1);
    OK(cuMemAllocHost_v2(&memory, 4));
    float *pinned = static_cast<float*>(memory), pageable = 1;
    Array<float> a(1), b(1), c(1);
    *pinned = 1;
    // Asynchronous copies read and write the host's memory when they are done.
    OK(cuMemcpyHtoDAsync_v2(a.at, &pageable, 4, s));
    OK(cuMemcpyHtoDAsync_v2(b.at, pinned, 4, s));
    pageable = *pinned = 2;
    OK(cuMemcpyDtoDAsync_v2(c.at, a.at, 4, s));
    OK(cuStreamSynchronize(s));
    CHECK(c.get()[0] == 2 && b.get()[0] == 2);
    OK(cuMemsetD32Async(c.at, __float_as_uint(1), 1, s));
    OK(cuMemcpyDtoHAsync_v2(&pageable, c.at, 4, s));
    OK(cuMemcpyDtoHAsync_v2(pinned, c.at, 4, s));
    CHECK(pageable == 2 && *pinned == 2);
    OK(cuStreamSynchronize(s));
    CHECK(pageable == 1 && *pinned == 1);
    // A synchronous copy from pageable memory has read it when it returns; who is not
    // ordered with the null stream must not count on more.
    auto get = [&] {
        OK(cuMemcpyDtoHAsync_v2(&pageable, a.at, 4, s));
        OK(cuStreamSynchronize(s));
        return pageable;
    };
    pageable = 3;
    OK(cuMemcpyHtoD_v2(a.at, &pageable, 4));
    CHECK(get() == 2);
    CHECK(a.get()[0] == 3);
    OK(cuMemcpyHtoD_v2(a.at, pinned, 4));
    CHECK(get() == 1);
    pageable = 0;
    OK(cuMemcpyDtoH_v2(&pageable, b.at, 4));
    CHECK(pageable == 2);
}

// Two streams that nothing orders: which of them is first is the schedule's choice.
static void check_schedules()
{
    void* memory;
    enum What { copy_before_kernel, kernel_before_copy, copy_that_waits, kernel_that_waits };
    // The float that the second operation takes from the first, or finds before it.
    auto second_sees = [&](What what) {
        Program p;
        void *first = stream(1), *second = stream(1), *e;
        OK(cuEventCreate(&e, 0));
        OK(cuMemAllocHost_v2(&memory, 12));
        float *host = static_cast<float*>(memory), *got = host + 2;
        host[0] = 1;
        host[1] = 2;
        Array<float> a(1), b(1), c(1);
        OK(cuMemcpyHtoDAsync_v2(a.at, host, 4, first));
        OK(cuMemcpyHtoDAsync_v2(b.at, host + 1, 4, first));
        OK(cuStreamSynchronize(first));
        auto copy = [&](void* s) { OK(cuMemcpyDtoDAsync_v2(b.at, a.at, 4, s)); };
        auto kernel = [&](void* s) { OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, s, b.at, a.at, 1)); };
        auto order = [&] {
            OK(cuEventRecord(e, first));
            OK(cuStreamWaitEvent(second, e, 0));
        };
        switch (what) {
        case copy_before_kernel:
            copy(first);
            OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, second, c.at, b.at, 1));
            break;
        case kernel_before_copy:
            kernel(first);
            OK(cuMemcpyDtoDAsync_v2(c.at, b.at, 4, second));
            break;
        case copy_that_waits:
            kernel(first);
            order();
            OK(cuMemcpyDtoDAsync_v2(c.at, b.at, 4, second));
            break;
        case kernel_that_waits:
            copy(first);
            order();
            OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, second, c.at, b.at, 1));
            break;
        }
        OK(cuMemcpyDtoHAsync_v2(got, c.at, 4, second));
        OK(cuStreamSynchronize(second));
        return *got;
    };
    for (const char* schedule : {"lazy", "eager", "copies", "kernels"}) {
        set("EMULATED_SCHEDULE", schedule);
        const bool eager = schedule == std::string("eager");
        CHECK(second_sees(copy_before_kernel) == (eager || schedule == std::string("copies") ? 1 : 2));
        CHECK(second_sees(kernel_before_copy) == (eager || schedule == std::string("kernels") ? 1 : 2));
        CHECK(second_sees(copy_that_waits) == 1);
        CHECK(second_sees(kernel_that_waits) == 1);
    }
    // Copies follow at once what a synchronisation has done of kernels.
    set("EMULATED_SCHEDULE", "copies");
    Program p;
    void *first = stream(1), *second = stream(1), *e;
    OK(cuEventCreate(&e, 0));
    Array<float> a(1), b(1);
    OK(cuMemAllocHost_v2(&memory, 4));
    float& got = *static_cast<float*>(memory);
    OK(cuMemsetD32Async(a.at, __float_as_uint(1), 1, first));
    OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, first, b.at, a.at, 1));
    OK(cuEventRecord(e, first));
    OK(cuStreamWaitEvent(second, e, 0));
    OK(cuMemcpyDtoHAsync_v2(&got, b.at, 4, second));
    CHECK(isnan(got));
    OK(cuEventSynchronize(e));
    CHECK(got == 1);
}

static void check_events()
{
    Program p;
    void *s = stream(1), *e, *f, *untimed;
    OK(cuEventCreate(&e, 0));
    OK(cuEventCreate(&f, 0));
    OK(cuEventCreate(&untimed, 2));
    OK(cuEventSynchronize(e));
    OK(cuEventQuery(e));
    OK(cuStreamWaitEvent(s, e, 0)); // never recorded: nothing to wait for
    float milliseconds = -1;
    EXPECT(ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, e, f));
    Array<float> a(1), b(1);
    OK(cuEventRecord(e, s));
    OK(cuMemsetD32Async(a.at, 0, 1, s));
    OK(cuEventRecord(f, s));
    OK(cuMemsetD32Async(b.at, 0, 1, s));
    OK(cuEventRecord(untimed, s));
    EXPECT(ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, e, f));
    CHECK(isnan(a.get()[0]));
    OK(cuEventSynchronize(f));
    CHECK(a.get()[0] == 0 && isnan(b.get()[0])); // so far and no further
    OK(cuEventElapsedTime(&milliseconds, e, f));
    CHECK(milliseconds >= 0 && milliseconds < 60000);
    int polls = 0;
    while (cuEventQuery(untimed) == CUDA_ERROR_NOT_READY) CHECK(++polls < 10);
    CHECK(polls > 0 && b.get()[0] == 0);
    EXPECT(ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, e, untimed));
    OK(cuEventDestroy_v2(e));
    EXPECT(ERROR_INVALID_HANDLE, cuEventRecord(e, s));
}

// What the stream is given by something, as a graph that can be launched.
static void* captured(void* stream, const std::function<void()>& something)
{
    void *graph, *executable;
    OK(cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
    something();
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuGraphDestroy(graph)); // which the other does without
    EXPECT(ERROR_INVALID_VALUE, cuGraphDestroy(graph));
    return executable;
}

static void check_graphs()
{
    Program p;
    void *s = stream(1), *other = stream(1), *memory;
    Array<float> a(1), b(1);
    OK(cuMemAllocHost_v2(&memory, 8));
    float *from = static_cast<float*>(memory), *to = from + 1;
    auto copy = [&](CUdeviceptr to, CUdeviceptr from) {
        OK(p.launch("copy_kernel", {1, 1, 1}, {32, 1, 1}, 0, s, to, from, 1));
    };
    *from = 1;
    copy(b.at, a.at); // loads it
    OK(cuStreamSynchronize(s));
    void* graph = captured(s, [&] {
        OK(cuMemcpyHtoDAsync_v2(a.at, from, 4, s));
        copy(b.at, a.at);
        OK(cuMemcpyDtoHAsync_v2(to, b.at, 4, s));
        OK(cuMemsetD32Async(a.at, __float_as_uint(5), 1, s));
    });
    // Nothing of it has been done, now and when all work is.
    OK(cuStreamSynchronize(s));
    OK(cuCtxSynchronize());
    CHECK(isnan(*to) && isnan(a.get()[0]));
    // Launched, all is, with what the host's memory has then, as late as other work.
    for (float value : {2, 3, 4}) {
        *from = value - 10;
        OK(cuGraphLaunch(graph, s));
        *from = value;
        CHECK(*to != value);
        OK(cuStreamSynchronize(s));
        CHECK(*to == value && b.get()[0] == value && a.get()[0] == 5);
    }
    // It comes in its stream's order, and follows its own last launch in another.
    void* count = captured(s, [&] { copy(a.at, b.at); });
    OK(cuMemsetD32Async(b.at, __float_as_uint(6), 1, s));
    OK(cuGraphLaunch(count, s));
    OK(cuMemsetD32Async(b.at, __float_as_uint(7), 1, s));
    OK(cuGraphLaunch(count, other));
    OK(cuStreamSynchronize(other));
    CHECK(a.get()[0] == 6 && b.get()[0] == 6);
    OK(cuStreamSynchronize(s));
    CHECK(b.get()[0] == 7);
    // One of another, which is no longer there when it is launched.
    void* outer = captured(s, [&] {
        OK(cuMemsetD32Async(b.at, __float_as_uint(8), 1, s));
        OK(cuGraphLaunch(count, s));
    });
    OK(cuGraphExecDestroy(count));
    EXPECT(ERROR_INVALID_VALUE, cuGraphLaunch(count, s));
    CHECK(aborts([&] { cuCtxDestroy_v2(p.context); }));
    OK(cuGraphLaunch(outer, s));
    OK(cuGraphExecDestroy(outer));
    OK(cuStreamSynchronize(s));
    CHECK(a.get()[0] == 8);
    EXPECT(ERROR_INVALID_VALUE, cuGraphExecDestroy(outer));
    EXPECT(ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&outer, nullptr, 0));
}

// What must not be done while a stream is captured.
static void check_captures()
{
    Program p;
    void *s = stream(1), *blocking = stream(0), *other = stream(1), *e, *host, *graph, *module, *another;
    Array<float> a(1), b(1), c(1);
    float x;
    CUdeviceptr memory;
    OK(cuEventCreate(&e, 0));
    OK(cuEventRecord(e, other));
    OK(cuMemAllocHost_v2(&host, 4));
    OK(cuModuleLoadData(&another, ptx().c_str()));
    auto usable = [&](void* s) {
        OK(cuMemsetD32Async(a.at, __float_as_uint(3), 1, s));
        OK(cuStreamSynchronize(s));
        CHECK(a.get()[0] == 3);
    };
    struct {
        CUresult result;
        void* stream;
        std::function<CUresult()> call;
    } conflicts[] = {
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuStreamSynchronize(s); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuStreamQuery(s); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuCtxSynchronize(); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuEventRecord(e, s); }},
        {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, s, [&] { return cuStreamWaitEvent(s, e, 0); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemAlloc_v2(&memory, 4); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemFree_v2(b.at); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemAllocHost_v2(&host, 4); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemFreeHost(host); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuModuleLoadData(&module, ptx().c_str()); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuModuleUnload(another); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemcpyHtoDAsync_v2(a.at, &x, 4, s); }},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return cuMemcpyDtoHAsync_v2(&x, a.at, 4, s); }},
        // A kernel that has not been launched before.
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s, [&] { return p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, s); }},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, blocking, [&] { return cuMemsetD8_v2(b.at, 0, 4); }},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, blocking, [&] { return cuMemcpyHtoD_v2(b.at, &x, 4); }},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, blocking, [&] { return cuMemcpyDtoH_v2(&x, b.at, 4); }},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, blocking, [&] { return cuStreamSynchronize(nullptr); }},
        {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, blocking, [&] { return cuEventRecord(e, nullptr); }},
    };
    int number = 0;
    for (auto& conflict : conflicts) {
        fprintf(stderr, "conflict %d\n", number++);
        void* s = conflict.stream;
        OK(cuStreamBeginCapture_v2(s, THREAD_LOCAL));
        OK(cuMemsetD32Async(c.at, __float_as_uint(1), 1, s));
        expect(conflict.result, conflict.call(), "the call", __LINE__);
        EXPECT(ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(c.at, __float_as_uint(1), 1, s));
        EXPECT(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamSynchronize(s));
        graph = s;
        EXPECT(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
        CHECK(!graph);
        usable(s);
    }
    CHECK(isnan(c.get()[0]));
    // What may be: other streams' work, the null stream's beside one that does not block.
    OK(cuStreamBeginCapture_v2(s, GLOBAL));
    usable(other);
    OK(cuMemcpyDtoH_v2(&x, a.at, 4));
    OK(cuStreamSynchronize(nullptr));
    // Others must wait with what is unsafe for one who captures in global mode, and for no other.
    auto elsewhere = [&] {
        CUresult result;
        std::thread([&] {
            OK(cuCtxSetCurrent(p.context));
            result = cuMemAlloc_v2(&memory, 4);
        }).join();
        return result;
    };
    EXPECT(ERROR_STREAM_CAPTURE_UNSUPPORTED, elsewhere());
    EXPECT(ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    OK(cuStreamBeginCapture_v2(s, THREAD_LOCAL));
    OK(elsewhere());
    std::thread([&] {
        OK(cuCtxSetCurrent(p.context));
        EXPECT(ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(s, &graph));
    }).join();
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphDestroy(graph));
    // In relaxed mode all may.
    OK(cuStreamBeginCapture_v2(s, RELAXED));
    OK(elsewhere());
    OK(cuMemAlloc_v2(&memory, 4));
    OK(p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, s));
    std::thread([&] {
        OK(cuCtxSetCurrent(p.context));
        OK(cuStreamEndCapture(s, &graph));
    }).join();
    OK(cuGraphDestroy(graph));

    EXPECT(ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &graph));
    EXPECT(ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(nullptr, RELAXED));
    EXPECT(ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(s, 3));
    OK(cuStreamBeginCapture_v2(s, THREAD_LOCAL));
    EXPECT(ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(s, THREAD_LOCAL));
    OK(cuCtxDestroy_v2(p.context)); // and the capture with it
    Program q;
    OK(cuMemAlloc_v2(&memory, 4));
}

static void check_graph_faults()
{
    // Launches are counted when the graph is launched.
    std::string log = P_tmpdir "/selftest-XXXXXX";
    close(mkstemp(&log[0]));
    auto launched = [](Program& p, void* s) {
        OK(p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, s));
        void* graph = captured(s, [&] {
            for (int i = 0; i < 2; i++) OK(p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, s));
        });
        OK(cuStreamSynchronize(s));
        OK(cuGraphLaunch(graph, s));
        OK(cuStreamSynchronize(s));
        return graph;
    };
    for (const char* fail : {"EMULATED_FAIL_LAUNCH", "EMULATED_LOSE_DEVICE"}) {
        set(fail, "5");
        apart([&] {
            Program p;
            void* s = stream(1);
            void* graph = launched(p, s);
            if (fail == std::string("EMULATED_FAIL_LAUNCH")) {
                OK(cuGraphLaunch(graph, s));
                EXPECT(ERROR_LAUNCH_FAILED, cuStreamSynchronize(s));
                EXPECT(ERROR_LAUNCH_FAILED, cuGraphLaunch(graph, s));
                EXPECT(ERROR_LAUNCH_FAILED, cuStreamBeginCapture_v2(s, RELAXED));
            } else {
                EXPECT(ERROR_UNKNOWN, cuGraphLaunch(graph, s));
                EXPECT(ERROR_UNKNOWN, cuStreamSynchronize(s));
            }
        });
        unsetenv(fail);
    }
    set("EMULATED_LOG", log.c_str());
    Program p;
    launched(p, stream(1));
    char lines[100] = {};
    FILE* file = fopen(log.c_str(), "r");
    CHECK(file && fread(lines, 1, sizeof lines, file));
    CHECK(!strcmp(lines, "nothing\ngraph:nothing\ngraph:nothing\n"));
    unlink(log.c_str());
}

static void check_faults()
{
    set("EMULATED_FAIL_LAUNCH", "2");
    apart([] {
        Program other, p; // which count their own launches
        Array<float> a(1);
        float x;
        for (Program* q : {&other, &p}) {
            OK(cuCtxSetCurrent(q->context));
            OK(q->launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, nullptr));
            OK(cuCtxSynchronize());
        }
        OK(p.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, nullptr));
        OK(cuMemsetD32Async(a.at, 0, 1, nullptr));
        EXPECT(ERROR_LAUNCH_FAILED, cuMemcpyDtoH_v2(&x, a.at, 4));
        // From then on nothing works in the process.
        size_t free, total;
        EXPECT(ERROR_LAUNCH_FAILED, cuCtxSynchronize());
        EXPECT(ERROR_LAUNCH_FAILED, cuMemGetInfo_v2(&free, &total));
        EXPECT(ERROR_LAUNCH_FAILED, cuMemFree_v2(a.at));
        EXPECT(ERROR_LAUNCH_FAILED, cuCtxDestroy_v2(p.context));
        OK(cuCtxSetCurrent(other.context));
        EXPECT(ERROR_LAUNCH_FAILED, cuCtxSynchronize());
        void* another;
        EXPECT(ERROR_LAUNCH_FAILED, cuCtxCreate_v2(&another, 0, 0));
        int count;
        OK(cuDeviceGetCount(&count));
    });
    unsetenv("EMULATED_FAIL_LAUNCH");
    set("EMULATED_LOSE_DEVICE", "3");
    Program p;
    Array<float> a(1);
    void* f = p.function("nothing");
    auto launch = [&] { return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr); };
    OK(launch());
    OK(launch());
    EXPECT(ERROR_UNKNOWN, launch());
    void* another;
    EXPECT(ERROR_UNKNOWN, cuCtxSynchronize());
    EXPECT(ERROR_UNKNOWN, cuMemFree_v2(a.at));
    EXPECT(ERROR_DEVICE_UNAVAILABLE, cuCtxCreate_v2(&another, 0, 0));
    OK(cuCtxDestroy_v2(p.context));
    unsetenv("EMULATED_LOSE_DEVICE");
    Program q;
    OK(cuCtxSynchronize());

    set("EMULATED_FAIL_ALLOCATION", "3");
    Program r;
    CUdeviceptr device;
    void* host;
    OK(cuMemAlloc_v2(&device, 4));
    OK(cuMemAllocHost_v2(&host, 4));
    EXPECT(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&device, 4)); // which does the context no harm
    OK(cuMemAlloc_v2(&device, 4));
    set("EMULATED_FAIL_ALLOCATION", "1");
    Program t;
    EXPECT(ERROR_OUT_OF_MEMORY, cuMemAllocHost_v2(&host, 4));
    set("EMULATED_FAIL_ALLOCATION", "");

    for (auto code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_DEVICE_UNAVAILABLE}) {
        set("EMULATED_FAIL_CONTEXT", std::to_string(code).c_str());
        expect(code, cuCtxCreate_v2(&another, 0, 0), "cuCtxCreate", __LINE__);
    }
    unsetenv("EMULATED_FAIL_CONTEXT");

    std::string log = P_tmpdir "/selftest-XXXXXX"; // of launches
    close(mkstemp(&log[0]));
    set("EMULATED_LOG", log.c_str());
    Program u;
    OK(u.launch("nothing", {1, 1, 1}, {32, 1, 1}, 0, nullptr));
    OK(u.launch("barriers", {1, 1, 1}, {32, 1, 1}, 0, nullptr, 1));
    char lines[100] = {};
    FILE* file = fopen(log.c_str(), "r");
    CHECK(file && fread(lines, 1, sizeof lines, file) == strlen("nothing\nbarriers\n"));
    CHECK(!strcmp(lines, "nothing\nbarriers\n"));
    unlink(log.c_str());
}

static void check_memory()
{
    for (long long offset : {-1, 0, 9, 10}) {
        const bool outside = offset < 0 || offset > 9;
        CHECK(outside == aborts([=] { // 40 bytes: the next ones are not yet those that must not be touched
            Program p;
            Array<float> a(10);
            OK(p.launch("touch", {1, 1, 1}, {32, 1, 1}, 0, nullptr, a.at, offset, 1));
            OK(cuCtxSynchronize());
            cuMemFree_v2(a.at);
        }));
    }
    set("EMULATED_MEMORY", "1000000");
    Program p;
    size_t free, total;
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(free == 1000000 && total == 1000000);
    CUdeviceptr a, b;
    EXPECT(ERROR_INVALID_VALUE, cuMemAlloc_v2(&a, 0));
    OK(cuMemAlloc_v2(&a, 600000));
    CHECK(a % 16 == 0);
    EXPECT(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&b, 400001));
    EXPECT(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&b, size_t(-1)));
    OK(cuMemAlloc_v2(&b, 400000));
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(free == 0);
    std::vector<char> host(600001, 'x');
    OK(cuMemcpyDtoH_v2(host.data(), a, 600000));
    for (int i = 0; i < 600000; i++) CHECK(host[i] == char(0xff));
    OK(cuMemcpyHtoD_v2(a + 599999, host.data(), 1));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, host.data(), 600001));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a - 1, host.data(), 1));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a + 600000, host.data(), 1));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host.data(), a + 599999, 2));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyDtoDAsync_v2(a, b, 400001, nullptr));
    EXPECT(ERROR_INVALID_VALUE, cuMemsetD8_v2(a, 0, 600001));
    EXPECT(ERROR_INVALID_VALUE, cuMemsetD32Async(a + 2, 0, 1, nullptr));
    EXPECT(ERROR_INVALID_VALUE, cuMemsetD32Async(a, 0, SIZE_MAX, nullptr));
    OK(cuMemcpyHtoD_v2(0, nullptr, 0));
    EXPECT(ERROR_INVALID_VALUE, cuMemFree_v2(a + 16));
    OK(cuMemFree_v2(0));
    OK(cuMemFree_v2(a));
    EXPECT(ERROR_INVALID_VALUE, cuMemFree_v2(a));
    EXPECT(ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, host.data(), 1));
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(free == 600000);
    OK(cuCtxDestroy_v2(p.context));

    // Kernels that touch what is not theirs.
    for (int how = 0; how < 10; how++) {
        apart([=] {
            Program p;
            const bool as_struct = how >= 5;
            Array<float> array(1024);
            float on_host[4] = {};
            void* argument = reinterpret_cast<void*>(array.at);
            long long offset = how % 5 == 0 ? 1024 : how % 5 == 1 ? -1 : how % 5 == 2 ? 1 << 30 : 0;
            if (how % 5 == 3) OK(cuMemFree_v2(array.at));
            if (how % 5 == 4) argument = on_host;
            if (as_struct) {
                OK(p.launch("touch_struct", {3, 1, 1}, {32, 1, 1}, 0, nullptr, Touch{nullptr, static_cast<float*>(argument), offset, 1, 0}));
            } else {
                OK(p.launch("touch", {3, 1, 1}, {32, 1, 1}, 0, nullptr, argument, offset, 1));
            }
            EXPECT(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
            EXPECT(ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
            CHECK(on_host[0] == 0);
        });
    }
    // A context gives its memory back.
    Program last;
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(free == total);
}

static void check_launches()
{
    Program p;
    Array<float> a(1);
    void *f = p.function("write_shared"), *bounded = p.function("bounded"), *s = stream(0);
    int byte = 0;
    void* arguments[] = {&byte};
    auto shape = [&](dim3 grid, dim3 block, size_t shared) {
        return cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, s, arguments, nullptr);
    };
    OK(shape({1, 1, 1}, {32, 1, 1}, 48 << 10));
    EXPECT(ERROR_INVALID_VALUE, shape({1, 1, 1}, {32, 1, 1}, (48 << 10) + 1));
    int limit;
    OK(cuDeviceGetAttribute(&limit, 97, 0));
    EXPECT(ERROR_INVALID_VALUE, cuFuncSetAttribute(f, 8, limit + 1));
    OK(cuFuncSetAttribute(f, 8, limit));
    byte = limit - 1;
    OK(shape({1, 1, 1}, {32, 1, 1}, limit));
    EXPECT(ERROR_INVALID_VALUE, shape({1, 1, 1}, {32, 1, 1}, limit + 1));
    byte = 0;
    for (dim3 grid : {dim3{0, 1, 1}, dim3{1, 0, 1}, dim3{1, 1, 0}, dim3{1, 65536, 1}, dim3{1, 1, 65536},
             dim3{1u << 31, 1, 1}}) {
        EXPECT(ERROR_INVALID_VALUE, shape(grid, {32, 1, 1}, 16));
    }
    for (dim3 block : {dim3{0, 1, 1}, dim3{1025, 1, 1}, dim3{512, 3, 1}, dim3{1, 1, 65}, dim3{1u << 16, 1u << 16, 1}}) {
        EXPECT(ERROR_INVALID_VALUE, shape({1, 1, 1}, block, 16));
    }
    OK(shape({1, 2, 3}, {1024, 1, 1}, 16));
    EXPECT(ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 16, s, nullptr, nullptr));
    EXPECT(ERROR_INVALID_HANDLE, cuLaunchKernel(&p, 1, 1, 1, 32, 1, 1, 16, s, arguments, nullptr));
    EXPECT(ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 16, &p, arguments, nullptr));
    OK(cuCtxSynchronize());

    // What has the least room for another block decides: threads, blocks, registers, shared memory.
    using Case = std::array<int, 3>;
    for (auto [threads, bytes, want] : {Case{512, 0, 2}, Case{32, 0, 16}, Case{1024, 0, 1}, Case{32, 80 << 10, 2}, Case{33, limit, 1}, Case{32, limit + 1, 0}}) {
        int blocks;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, bytes));
        CHECK(blocks == want);
    }
    EXPECT(ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&limit, f, 1025, 0));
    EXPECT(ERROR_INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&limit, &p, 32, 0));

    // Arguments are taken at the call, each with its own size.
    Array<double> out(1);
    OK(cuFuncGetAttribute(&limit, 0, bounded));
    CHECK(limit == 64);
    long long value = 1ll << 40;
    void* pair[] = {&out.at, &value};
    OK(cuLaunchKernel(bounded, 1, 1, 1, 64, 1, 1, 0, s, pair, nullptr));
    EXPECT(ERROR_INVALID_VALUE, cuLaunchKernel(bounded, 1, 1, 1, 96, 1, 1, 0, s, pair, nullptr));
    value = 0;
    CHECK(out.get()[0] == double(1ll << 40));
}

static void check_modules()
{
    Program p;
    void *module, *f;
    EXPECT(ERROR_NOT_FOUND, cuModuleGetFunction(&f, p.module, "other"));
    EXPECT(ERROR_INVALID_PTX, cuModuleLoadData(&module, "hello"));
    EXPECT(ERROR_INVALID_PTX, cuModuleLoadData(&module, (header + ".visible .entry broken(\n").c_str()));
    auto replaced = [](const char* from, const char* to) {
        std::string text = ptx();
        return text.replace(text.find(from), strlen(from), to);
    };
    EXPECT(ERROR_UNSUPPORTED_PTX_VERSION, cuModuleLoadData(&module, replaced("7.8", "8.0").c_str()));
    EXPECT(ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, replaced("sm_80", "sm_90").c_str()));
    int options[] = {5, 6}; // ERROR_LOG_BUFFER and its size
    for (size_t size : {1, 10, 1000}) {
        std::vector<char> log(size, 'x');
        void* values[] = {log.data(), reinterpret_cast<void*>(size)};
        EXPECT(ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, "hello", 2, options, values));
        CHECK(!strncmp(log.data(), "ptxas application ptx input", strlen(log.data())) || size == 1000);
        CHECK(strlen(log.data()) < size && (size < 3 || strlen(log.data()) > 3));
    }
    set("EMULATED_FAIL_MODULE", "218");
    EXPECT(ERROR_INVALID_PTX, cuModuleLoadData(&module, ptx().c_str()));
    set("EMULATED_FAIL_MODULE", "");
    const std::string stale =
        header + entry("copy_kernel", "ppp") + entry("nothing", "i") + entry("rotate", "pi") + entry("touch_struct", "p") + entry("absent", "p");
    OK(cuModuleLoadData(&module, stale.c_str()));
    for (const char* name : {"copy_kernel", "nothing", "rotate", "touch_struct"})
        EXPECT(ERROR_INVALID_IMAGE, cuModuleGetFunction(&f, module, name));
    EXPECT(ERROR_NOT_FOUND, cuModuleGetFunction(&f, module, "absent"));
    f = p.function("nothing");
    OK(cuModuleUnload(p.module));
    EXPECT(ERROR_INVALID_HANDLE, cuModuleUnload(p.module));
    EXPECT(ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
}

static void check_contexts()
{
    set("EMULATED_DEVICES", "2");
    set("EMULATED_CAPABILITY", "8.9");
    void *a, *b, *got;
    size_t free, total;
    EXPECT(ERROR_NOT_INITIALIZED, cuCtxCreate_v2(&a, 0, 0));
    EXPECT(ERROR_NOT_INITIALIZED, cuMemGetInfo_v2(&free, &total));
    OK(cuInit(0));
    int n, major, minor;
    OK(cuDeviceGetCount(&n));
    OK(cuDeviceGetAttribute(&major, 75, 1));
    OK(cuDeviceGetAttribute(&minor, 76, 1));
    CHECK(n == 2 && major == 8 && minor == 9);
    EXPECT(ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&major, 75, 2));
    EXPECT(ERROR_INVALID_DEVICE, cuCtxCreate_v2(&a, 0, 2));
    EXPECT(ERROR_INVALID_CONTEXT, cuMemGetInfo_v2(&free, &total));
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 1));
    OK(cuCtxGetCurrent(&got));
    CHECK(got == b);
    OK(cuCtxPopCurrent_v2(&got));
    CHECK(got == b);
    OK(cuCtxGetCurrent(&got));
    CHECK(got == a);
    // Memory and streams are a context's own.
    CUdeviceptr memory;
    OK(cuMemAlloc_v2(&memory, 16));
    void* s = stream(0);
    OK(cuCtxPushCurrent_v2(b));
    EXPECT(ERROR_INVALID_VALUE, cuMemFree_v2(memory));
    EXPECT(ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(free == total);
    OK(cuCtxSetCurrent(a));
    OK(cuMemFree_v2(memory));
    // Another OS thread starts without one.
    std::thread([&] {
        EXPECT(ERROR_INVALID_CONTEXT, cuCtxSynchronize());
        OK(cuCtxSetCurrent(a));
        OK(cuCtxSynchronize());
        OK(cuCtxDestroy_v2(a));
        EXPECT(ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    }).join();
    EXPECT(ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    EXPECT(ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(a));
    EXPECT(ERROR_INVALID_CONTEXT, cuCtxSetCurrent(a));
    OK(cuCtxSetCurrent(b));
    OK(cuCtxSynchronize());
    const char* name;
    OK(cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &name));
    CHECK(!strcmp(name, "CUDA_ERROR_LAUNCH_FAILED"));
}

static void check_threads()
{
    Program shared;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&shared, t] {
            if (t % 2) OK(cuCtxSetCurrent(shared.context)); // some have a context in common
            Program own;
            if (t % 2) own = shared, OK(cuCtxSetCurrent(shared.context));
            for (int i = 0; i < 50; i++) {
                Array<float> from(std::vector<float>(300, t * 1000 + i)), to(300);
                void* s = stream(0);
                OK(own.launch("copy_kernel", {5, 1, 1}, {64, 1, 1}, 0, s, to.at, from.at, 300));
                for (float x : to.get()) CHECK(x == t * 1000 + i);
                OK(cuMemFree_v2(from.at));
                OK(cuMemFree_v2(to.at));
            }
        });
    }
    for (auto& thread : threads) thread.join();
}

// Not a check: how fast a core is here. (Time of all cores together, so that it matters
// little what else runs.)
static void speed()
{
    Program p;
    auto seconds = [](const std::function<void()>& work) {
        const clock_t start = clock();
        work();
        OK(cuCtxSynchronize());
        return double(clock() - start) / CLOCKS_PER_SEC;
    };
    const int warps = 8, blocks = 16, rounds = 20000;
    Array<float> a(std::vector<float>(warps * 128)), b(std::vector<float>(warps * 64)), d(warps * 128);
    OK(cuCtxSynchronize());
    double t = seconds([&] {
        OK(p.launch("product", {blocks, 1, 1}, {warps * 32, 1, 1}, 0, nullptr, d.at, a.at, b.at, a.at, rounds));
    });
    printf("%.2f million mma a second\n", double(warps) * blocks * rounds / t / 1e6);
    t = seconds([&] { OK(p.launch("barriers", {blocks, 1, 1}, {256, 1, 1}, 0, nullptr, rounds)); });
    printf("%.2f million barriers of 256 threads a second\n", double(blocks) * rounds / t / 1e6);
    t = seconds([&] {
        for (int i = 0; i < 10000; i++) OK(p.launch("nothing", {1, 1, 1}, {256, 1, 1}, 0, nullptr));
    });
    printf("%.2f us a launch of one block\n", t / 10000 * 1e6);
    t = seconds([&] {
        for (int i = 0; i < 10000; i++) OK(p.launch("nothing", {8, 1, 1}, {256, 1, 1}, 0, nullptr));
    });
    printf("%.2f us a launch of 8 blocks\n", t / 10000 * 1e6);
}

int main(int argc, char** argv)
{
    const std::map<std::string, void (*)()> checks = {
        {"indices", check_indices}, {"barriers", check_barriers}, {"divergence", check_divergence},
        {"shared", check_shared}, {"beyond_shared", check_beyond_shared}, {"order", check_order},
        {"warp", check_warp}, {"mma", check_mma}, {"copies", check_copies},
        {"streams", check_streams}, {"host_copies", check_host_copies}, {"schedules", check_schedules}, {"events", check_events}, {"graphs", check_graphs}, {"captures", check_captures}, {"graph_faults", check_graph_faults},
        {"faults", check_faults}, {"memory", check_memory}, {"launches", check_launches}, {"modules", check_modules},
        {"contexts", check_contexts}, {"threads", check_threads},
    };
    if (argc == 2 && argv[1] == std::string("speed")) {
        speed();
    } else if (argc == 2 && checks.count(argv[1])) {
        checks.at(argv[1])();
    } else {
        for (auto& [name, _] : checks) puts(name.c_str());
    }
    return 0;
}
