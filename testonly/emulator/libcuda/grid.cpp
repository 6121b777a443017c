#include "grid.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace emulation {

__thread Thread* current;

namespace {

// The current launch.
struct Running {
    const Launch* launch;
    unsigned long long blocks;
    std::atomic<unsigned long long> next_block;
    std::mutex mutex; // protects result
    CUresult result;
};
Running running;

constexpr unsigned warp_size = 32;
constexpr unsigned char poison = 0xFF; // as a float, NaN
constexpr size_t zone = 1024; // bytes of poison on either side of shared memory, which kernels must not write

// The state of an OS thread that runs blocks, one at a time.
class Executor {
public:
    void run_blocks();
    Fiber main; // the OS thread's own stack

private:
    void lay_out();
    void run_block(unsigned long long number);
    Thread* shuffle(unsigned long long number);
    void check_zones();

    Block block;
    Stacks stacks;
    std::vector<Thread> threads;
    std::vector<Warp> warps;
    alignas(64) unsigned char memory[zone + max_shared + zone];
};

__thread Executor* executor; // of this OS thread

[[noreturn]] void leave_block()
{
    switch_fiber(current->fiber, executor->main);
    abort(); // nothing switches back
}

const char* describe(Wait wait)
{
    switch (wait) {
    case Wait::exit: return "the end of the kernel";
    case Wait::syncthreads: return "__syncthreads";
    case Wait::syncwarp: return "__syncwarp";
    case Wait::shuffle: return "a shuffle";
    case Wait::ballot: return "__ballot_sync";
    case Wait::mma: return "mma";
    case Wait::matrices: return "load_matrices";
    case Wait::none: break;
    }
    return "?";
}

// Waits for the other warps of the block. All lanes of the thread's own warp are waiting.
void meet_warps(const Site& site)
{
    Warp& warp = *current->warp;
    warp.next = current;
    if (!arrive(current->block->warps, site, "warps")) {
        go_on(*warp.following->next);
    } else if (site.wait == Wait::exit) {
        leave_block();
    }
}

void thread_main()
{
    fiber_started(current->fiber);
    running.launch->kernel->call(running.launch->arguments);
    if (meet_lanes(Wait::exit, running.launch->kernel->name.c_str(), 0)) meet_warps(current->warp->lanes.site);
    abort(); // nothing switches back
}

// Prepares the state for the blocks of a launch.
void Executor::lay_out()
{
    const Launch& launch = *running.launch;
    const dim3 size = launch.block;
    block = Block();
    block.size = size;
    block.grid = launch.grid;
    block.shared = memory + zone;
    block.eager = launch.eager;
    memset(memory, poison, zone);
    memset(memory + zone + launch.shared, poison, zone);

    threads.resize(size_t(size.x) * size.y * size.z);
    warps.resize((threads.size() + warp_size - 1) / warp_size);
    block.warps.size = warps.size();
    for (size_t i = 0; i < threads.size(); i++) {
        Thread& thread = threads[i];
        thread.index = {unsigned(i % size.x), unsigned(i / size.x % size.y), unsigned(i / size.x / size.y)};
        thread.lane = i % warp_size;
        thread.warp = &warps[i / warp_size];
        thread.block = &block;
        thread.warp->lanes.size = std::min<size_t>(warp_size, threads.size() - (i - thread.lane));
    }
}

// Links all elements to a ring in a random order. Returns the first element.
template <typename T>
T* ring(std::vector<T*> all, std::minstd_rand& random)
{
    std::shuffle(all.begin(), all.end(), random);
    for (size_t i = 0; i < all.size(); i++) all[i]->following = all[(i + 1) % all.size()];
    return all[0];
}

// Draws the order in which the warps of a block run, and the order of the lanes in each warp.
// Returns the first thread.
Thread* Executor::shuffle(unsigned long long number)
{
    std::seed_seq seed{running.launch->seed, running.launch->seed >> 32, uint64_t(number)};
    std::minstd_rand random(seed);
    std::vector<Warp*> some;
    for (Warp& warp : warps) {
        std::vector<Thread*> lanes;
        for (size_t i = 0; i < warp.lanes.size; i++) lanes.push_back(&threads[(&warp - warps.data()) * warp_size + i]);
        warp.next = ring(lanes, random);
        some.push_back(&warp);
    }
    return ring(some, random)->next;
}

void Executor::run_block(unsigned long long number)
{
    const dim3 grid = block.grid;
    block.index = {unsigned(number % grid.x), unsigned(number / grid.x % grid.y), unsigned(number / grid.x / grid.y)};
    memset(block.shared, poison, running.launch->shared);
    block.warps.arrived = 0;
    for (size_t i = 0; i < threads.size(); i++) {
        Thread& thread = threads[i];
        thread.copies.clear();
        thread.copied = thread.groups = 0;
        stacks.prepare(thread.fiber, i, thread_main);
        thread.warp->lanes.arrived = 0;
    }
    current = shuffle(number);
    switch_fiber(main, current->fiber);
    check_zones();
    current = nullptr;
}

void report(CUresult result, const char* what)
{
    std::lock_guard<std::mutex> lock(running.mutex);
    if (running.result != CUDA_SUCCESS) return; // only the first fault is reported
    running.result = result;
    running.next_block = running.blocks;
    const Thread& self = *current;
    const uint3 b = self.block->index, t = self.index;
    fprintf(stderr, "emulated device: kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s\n",
        running.launch->kernel->name.c_str(), b.x, b.y, b.z, t.x, t.y, t.z, what);
}

void Executor::check_zones()
{
    const unsigned char* ends[] = {memory, memory + zone + running.launch->shared};
    for (const unsigned char* end : ends) {
        for (size_t i = 0; i < zone; i++) {
            if (end[i] == poison) continue;
            char what[100];
            snprintf(what, sizeof what, "or another one, wrote byte %td of %zu bytes of shared memory",
                end + i - (memory + zone), running.launch->shared);
            report(CUDA_ERROR_ILLEGAL_ADDRESS, what);
            return;
        }
    }
}

void Executor::run_blocks()
{
    executor = this;
    lay_out();
    for (;;) {
        const unsigned long long number = running.next_block++;
        if (number >= running.blocks) return;
        run_block(number);
    }
}

// The calling thread and further threads, which live as long as the process. There is one
// pool, which is never destroyed.
class Pool {
public:
    Pool()
    {
        // Only the program's own threads handle signals.
        sigset_t all, before;
        sigfillset(&all);
        sigdelset(&all, SIGSEGV);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        // At most 16 threads: each has up to 1024 stacks, and a process may have 65530 mappings.
        const unsigned n = std::min(std::max(std::thread::hardware_concurrency(), unsigned(multiprocessors)), 16u);
        for (unsigned i = 0; i < n; i++) executors.push_back(std::make_unique<Executor>());
        for (unsigned i = 1; i < n; i++) std::thread([this, i] { work(*executors[i]); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    // Runs the launch in `running`.
    void run()
    {
        if (running.blocks > 1) {
            std::lock_guard<std::mutex> lock(mutex);
            launches++;
            working = executors.size() - 1;
            start.notify_all();
        }
        executors[0]->run_blocks();
        std::unique_lock<std::mutex> lock(mutex);
        end.wait(lock, [this] { return working == 0; });
    }

private:
    void work(Executor& executor)
    {
        for (unsigned long long seen = 0;;) {
            {
                std::unique_lock<std::mutex> lock(mutex);
                start.wait(lock, [&] { return launches != seen; });
                seen = launches;
            }
            executor.run_blocks();
            std::lock_guard<std::mutex> lock(mutex);
            if (--working == 0) end.notify_one();
        }
    }

    std::vector<std::unique_ptr<Executor>> executors;
    std::mutex mutex;
    std::condition_variable start, end;
    unsigned long long launches = 0;
    size_t working = 0;
};

__thread void* bad_address;

[[noreturn]] void report_bad_address()
{
    fault(CUDA_ERROR_ILLEGAL_ADDRESS, "an access to %p, which is no memory of the device, or is not aligned", bad_address);
}

struct sigaction before;

// Makes the thread of the access continue in report_bad_address.
void on_bad_address(int signal, siginfo_t* info, void* context)
{
    if (!current) { // no kernel made the access
        if (before.sa_flags & SA_SIGINFO) {
            before.sa_sigaction(signal, info, context);
        } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
            sigaction(SIGSEGV, &before, nullptr); // the repeated access ends the process
        } else {
            before.sa_handler(signal);
        }
        return;
    }
    bad_address = info->si_addr;
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
    // Below the stack of the interrupted function and its red zone, aligned as for a call.
#if defined(__x86_64__)
    registers.gregs[REG_RSP] = ((registers.gregs[REG_RSP] - 256) & ~15LL) - 8;
    registers.gregs[REG_RIP] = reinterpret_cast<greg_t>(report_bad_address);
#else
    registers.sp = (registers.sp - 256) & ~15ULL;
    registers.pc = reinterpret_cast<uintptr_t>(report_bad_address);
#endif
}

} // namespace

void fault(CUresult result, const char* format, ...)
{
    char what[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    report(result, what);
    leave_block();
}

void check_mask(unsigned mask, const char* file, int line)
{
    const unsigned lanes = current->warp->lanes.size;
    if (mask != 0xffffffff || lanes != warp_size) {
        fault(CUDA_ERROR_LAUNCH_FAILED, "%s:%d: a call for the lanes %#x in a warp of %u; the emulator has whole warps only",
            file, line, mask, lanes);
    }
}

void diverged(const Site& some, const Site& others, const char* those)
{
    fault(CUDA_ERROR_LAUNCH_FAILED, "divergence: %s before it wait at %s (%s:%d), it came to %s (%s:%d)", those,
        describe(some.wait), some.file, some.line, describe(others.wait), others.file, others.line);
}

void meet_threads(const char* file, int line)
{
    if (meet_lanes(Wait::syncthreads, file, line)) meet_warps({Wait::syncthreads, line, file});
}

void await_count(const int* count, int n)
{
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < n) {
        std::this_thread::yield();
        std::unique_lock<std::mutex> lock(running.mutex);
        const bool failed = running.result != CUDA_SUCCESS;
        lock.unlock();
        if (failed) leave_block();
    }
}

void multiply(Warp& warp, int depth)
{
    typedef float Column __attribute__((vector_size(64)));
    for (int j = 0; j < 8; j++) {
        Column& sum = *reinterpret_cast<Column*>(warp.sum[j]);
        Column s = sum;
        for (int k = 0; k < depth; k++) s += *reinterpret_cast<const Column*>(warp.a[k]) * warp.b[k][j];
        sum = s;
    }
}

CUresult run(const Launch& launch)
{
    static Pool& pool = *new Pool;
    running.launch = &launch;
    running.blocks = static_cast<unsigned long long>(launch.grid.x) * launch.grid.y * launch.grid.z;
    running.next_block = 0;
    running.result = CUDA_SUCCESS;
    pool.run();
    return running.result;
}

void catch_bad_addresses()
{
    struct sigaction action = {};
    action.sa_sigaction = on_bad_address;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
}

} // namespace emulation
