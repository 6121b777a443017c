// Checks of the emulated driver, with kernels of their own. `selftest NAME` runs one
// check and exits with 1, and says where, if it fails. `selftest` lists the names.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

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
CUresult cuCtxCreate_v2(void**, unsigned, int);
CUresult cuCtxDestroy_v2(void*);
CUresult cuCtxSetCurrent(void*);
CUresult cuCtxSynchronize();
CUresult cuMemGetInfo_v2(size_t*, size_t*);
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void**, size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, void*);
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, void*);
CUresult cuModuleLoadData(void**, const void*);
CUresult cuModuleGetFunction(void**, void*, const char*);
CUresult cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
CUresult cuStreamCreate(void**, unsigned);
CUresult cuStreamSynchronize(void*);
CUresult cuStreamBeginCapture_v2(void*, int);
CUresult cuStreamEndCapture(void*, void**);
CUresult cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
CUresult cuGraphLaunch(void*, void*);
CUresult cuGraphDestroy(void*);
}

constexpr unsigned ALL = 0xffffffff;
enum { GLOBAL, THREAD_LOCAL, RELAXED }; // CU_STREAM_CAPTURE_MODE

// ---- Kernels

extern "C" __global__ void nothing() {}

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

extern "C" __global__ void barriers(int n)
{
    for (int i = 0; i < n; i++) __syncthreads();
}

const std::vector<emulation::Kernel>& emulation::kernels()
{
    static const std::vector<Kernel> all = {
        EMULATION_KERNEL(nothing), EMULATION_KERNEL(write_shared), EMULATION_KERNEL(diverge), EMULATION_KERNEL(touch), EMULATION_KERNEL(touch_struct), EMULATION_KERNEL(barriers),
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
    return header + entry("nothing", "") + entry("write_shared", "i") + entry("diverge", "i") + entry("touch", "pli") + entry("touch_struct", "s") + entry("barriers", "i");
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

int main(int argc, char** argv)
{
    const std::map<std::string, void (*)()> checks = {
        {"divergence", check_divergence}, {"beyond_shared", check_beyond_shared}, {"graph_faults", check_graph_faults},
        {"faults", check_faults}, {"memory", check_memory},
    };
    if (argc == 2 && checks.count(argv[1])) {
        checks.at(argv[1])();
    } else {
        for (auto& [name, _] : checks) puts(name.c_str());
    }
    return 0;
}
