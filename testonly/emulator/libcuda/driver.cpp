// The driver's functions, over host memory. They have the names, types and binary interface of
// cuda.h 11.8 to 12, but don't include it.
//
// Every stream is a queue. An operation runs only when a synchronisation requires it (unless
// EMULATED_SCHEDULE differs), after the operations that it must follow and no others. A program
// that doesn't wait therefore sees memory before the work.
//
// Every call holds one lock, also while it runs operations.
#include <ctype.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "grid.h"

namespace {

using namespace emulation;

constexpr size_t default_shared = 48 << 10; // bytes per block for kernels that don't opt in
constexpr int driver_version = 11080, ptx_version = 708; // 11.8 knows PTX 7.8
constexpr size_t threads_a_multiprocessor = 1536, blocks_a_multiprocessor = 16, registers_a_multiprocessor = 65536;
constexpr size_t reserved_shared = 1024; // bytes per block
constexpr int registers = 64; // reported per thread
constexpr unsigned char poison = 0xFF;
constexpr size_t guard_size = 1 << 20; // protected bytes before and after an allocation

std::mutex driver;

std::string text(const char* name)
{
    const char* value = getenv(name);
    return value ? value : "";
}

// The number in an environment variable. An invalid number ends the process, so that a test
// with a wrong setting doesn't pass.
unsigned long long setting(const char* name, unsigned long long otherwise)
{
    const char* text = getenv(name);
    if (!text || !*text) return otherwise;
    char* end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit(static_cast<unsigned char>(*text)) || *end) {
        fprintf(stderr, "emulated device: %s is %s, which is no number\n", name, text);
        abort();
    }
    return value;
}

// Memory that ends at protected pages, except for alignment to 16 bytes; other protected pages
// precede it. Its pages are filled with poison. The destructor detects writes to the parts of
// these pages outside the memory.
class Allocation {
public:
    // Throws std::bad_alloc.
    explicit Allocation(size_t size) : size(size)
    {
        const size_t page = sysconf(_SC_PAGESIZE);
        inside = (size + page - 1) / page * page;
        mapped = inside + 2 * guard_size;
        void* memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        map = static_cast<unsigned char*>(memory);
        first = map + guard_size;
        if (mprotect(first, inside, PROT_READ | PROT_WRITE)) throw std::bad_alloc();
        memset(first, poison, inside);
        data = first + inside - (size + 15) / 16 * 16;
    }
    // The addresses stay reserved and protected, so that a later use is a fault.
    ~Allocation()
    {
        for (const unsigned char* p = first; p < first + inside; p++) {
            if (p == data) p += size;
            if (p < first + inside && *p != poison) {
                fprintf(stderr, "emulated device: byte %td of an allocation of %zu bytes was written\n", p - data, size);
                abort();
            }
        }
        mmap(map, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    Allocation(const Allocation&) = delete;

    unsigned char* data;
    const size_t size;

private:
    unsigned char *map, *first;
    size_t inside, mapped;
};

// Allocations by address.
class Memory {
public:
    void* add(size_t size)
    {
        auto allocation = std::make_unique<Allocation>(size);
        auto address = reinterpret_cast<uintptr_t>(allocation->data);
        return (allocations[address] = std::move(allocation))->data;
    }
    // The allocation that starts at the address; null if there is none.
    const Allocation* find(uintptr_t address) const
    {
        auto at = allocations.find(address);
        return at == allocations.end() ? nullptr : at->second.get();
    }
    void remove(uintptr_t address) { allocations.erase(address); }
    size_t size() const
    {
        size_t sum = 0;
        for (auto& [_, allocation] : allocations) sum += allocation->size;
        return sum;
    }
    // Whether one allocation contains all of these bytes.
    bool has(uintptr_t address, size_t size) const
    {
        auto after = allocations.upper_bound(address);
        if (after == allocations.begin()) return false;
        const Allocation& a = *std::prev(after)->second;
        const size_t offset = address - reinterpret_cast<uintptr_t>(a.data);
        return offset <= a.size && size <= a.size - offset;
    }

private:
    std::map<uintptr_t, std::unique_ptr<Allocation>> allocations;
};

struct Stream;

// A point in a stream, directly after an operation.
struct Point {
    std::shared_ptr<Stream> stream;
    unsigned long long operation = 0;
};

struct Operation {
    std::function<CUresult()> run; // may be empty
    std::vector<Point> after;
    bool kernel;
};

struct Stream {
    bool blocking; // ordered with the null stream
    bool destroyed = false; // its pending operations still run
    std::deque<Operation> queue{};
    unsigned long long issued = 0, done = 0; // numbers of operations
};

// Issues the operations of a call to a stream. It runs in the call or, if the stream is being
// captured, in each launch of the graph.
using Work = std::function<CUresult(const std::shared_ptr<Stream>&)>;

struct Graph {
    std::vector<Work> work; // captured from one stream, in order
};

// A graph that can be launched.
struct Executable {
    Graph graph;
    Point launched{}; // the end of the last launch, which the next launch follows even in another stream
};

struct Event {
    bool timed;
    Point point{}; // of the last record; without a stream if there is none
    std::chrono::steady_clock::time_point time{};
};

struct Function {
    const Kernel* kernel;
    unsigned max_threads; // per block
    size_t max_shared = default_shared;
    bool loaded = false; // its first launch loads it
};

// An entry of a PTX text.
struct Entry {
    std::vector<size_t> parameters; // bytes
    unsigned max_threads = emulation::max_threads; // per block
};

struct Module {
    std::map<std::string, Entry> entries;
    std::map<std::string, std::unique_ptr<Function>> functions{};
};

struct Device {
    int number;
    int capability; // major * 10 + minor
    size_t used = 0; // bytes
    bool lost = false;

    // Bytes of shared memory that a block may have.
    size_t opt_in_shared() const
    {
        if (capability == 80 || capability == 87) return 163 << 10;
        if (capability >= 90 && capability < 120) return max_shared;
        return 99 << 10;
    }
};

// When operations run.
enum class Schedule {
    lazy, // when a synchronisation, or an operation that must follow them, requires it
    eager, // at once
    copies, // kernels lazily, others as soon as the operations before them are done
    kernels, // kernels at once, others lazily
};

Schedule schedule()
{
    static const std::map<std::string, Schedule> all = {{"", Schedule::lazy}, {"lazy", Schedule::lazy},
        {"eager", Schedule::eager}, {"copies", Schedule::copies}, {"kernels", Schedule::kernels}};
    const std::string name = text("EMULATED_SCHEDULE");
    const auto at = all.find(name);
    if (at != all.end()) return at->second;
    fprintf(stderr, "emulated device: EMULATED_SCHEDULE is %s, not lazy, eager, copies or kernels\n", name.c_str());
    abort();
}

// The result of a kernel's fault. All later calls in the process return it, in every context.
CUresult broken = CUDA_SUCCESS;

// Destroyed contexts stay in memory, because they may be current in other OS threads.
struct Context {
    Device& device;
    const size_t memory_size = setting("EMULATED_MEMORY", 1 << 30);
    const unsigned long long fail_launch = setting("EMULATED_FAIL_LAUNCH", 0);
    const unsigned long long lose_device = setting("EMULATED_LOSE_DEVICE", 0);
    const unsigned long long fail_allocation = setting("EMULATED_FAIL_ALLOCATION", 0);
    const Schedule schedule = ::schedule();
    const unsigned long long seed = setting("EMULATED_SEED", 1);
    const std::string log_file = text("EMULATED_LOG");
    bool destroyed = false;
    bool launching_graph = false;
    unsigned long long launches = 0, allocations = 0;
    Memory memory{}, host{};
    std::shared_ptr<Stream> null_stream = std::make_shared<Stream>(Stream{true});
    std::map<Stream*, std::shared_ptr<Stream>> streams{}; // other streams
    std::map<Event*, std::shared_ptr<Event>> events{};
    std::map<Module*, std::unique_ptr<Module>> modules{};
    std::map<Graph*, std::unique_ptr<Graph>> graphs{};
    std::map<Executable*, std::shared_ptr<Executable>> executables{};

    // Runs the next operation of a stream.
    void perform(Stream& stream)
    {
        Operation operation = std::move(stream.queue.front());
        stream.queue.pop_front();
        // After an error no operation runs, but the queues are still emptied.
        if (operation.run && state() == CUDA_SUCCESS) broken = operation.run();
        stream.done++;
    }

    // Runs the operations that the next operation of a stream must follow, and then this operation.
    void step(Stream& stream)
    {
        const auto done = stream.done;
        for (const Point& point : std::vector<Point>(stream.queue.front().after)) reach(point);
        if (stream.done == done) perform(stream); // false if hurry_copies has run it
        if (schedule == Schedule::copies) hurry_copies();
    }

    static bool ready(const Stream& stream)
    {
        if (stream.queue.empty()) return false;
        for (const Point& point : stream.queue.front().after) {
            if (point.stream->done < point.operation) return false;
        }
        return true;
    }

    // Runs all operations that are not kernels and need not wait for kernels.
    void hurry_copies()
    {
        for (bool some = true; some;) {
            some = false;
            auto hurry = [&](Stream& stream) {
                for (; ready(stream) && !stream.queue.front().kernel; some = true) perform(stream);
            };
            hurry(*null_stream);
            for (auto& [_, stream] : streams) hurry(*stream);
        }
    }

    // Runs a stream up to a point. This ends, because an operation follows only earlier operations.
    void reach(const Point& point)
    {
        while (point.stream && point.stream->done < point.operation) step(*point.stream);
    }

    void reach_all()
    {
        reach({null_stream, null_stream->issued});
        for (auto& [_, stream] : streams) reach({stream, stream->issued});
    }

    Point issue(const std::shared_ptr<Stream>& stream, std::function<CUresult()> run, Point after = {}, bool kernel = false)
    {
        Operation operation{std::move(run), {}, kernel};
        auto follow = [&](const std::shared_ptr<Stream>& other) {
            if (other->done < other->issued) operation.after.push_back({other, other->issued});
        };
        if (after.stream) operation.after.push_back(after);
        if (stream == null_stream) {
            for (auto& [_, other] : streams) {
                if (other->blocking) follow(other);
            }
        } else if (stream->blocking) {
            follow(null_stream);
        }
        stream->queue.push_back(std::move(operation));
        const Point point{stream, ++stream->issued};
        if (schedule == Schedule::eager || (schedule == Schedule::kernels && kernel)) reach(point);
        if (schedule == Schedule::copies) hurry_copies();
        return point;
    }

    // Counts an allocation of device or page-locked memory. Returns false if it must fail.
    bool may_allocate() { return ++allocations != fail_allocation; }

    void log(const Kernel& kernel) const
    {
        if (log_file.empty()) return;
        FILE* file = fopen(log_file.c_str(), "a");
        if (!file || fprintf(file, "%s%s\n", launching_graph ? "graph:" : "", kernel.name.c_str()) < 0 || fclose(file)) {
            fprintf(stderr, "emulated device: EMULATED_LOG is %s, which can't be written\n", log_file.c_str());
            abort();
        }
    }

    CUresult state() const { return device.lost ? CUDA_ERROR_UNKNOWN : broken; }
};

bool initialised;
std::vector<Device> devices;
std::vector<std::unique_ptr<Context>> contexts;
thread_local std::vector<Context*> stack; // the last context is current

enum CaptureMode { global, thread_local_mode, relaxed };

// A stream that is being captured.
struct Capture {
    Context* context;
    std::shared_ptr<Stream> stream;
    CaptureMode mode;
    std::thread::id thread = std::this_thread::get_id();
    bool invalid = false; // it won't return a graph
    Graph graph{};
};

std::vector<std::unique_ptr<Capture>> captures;

// The capture of the stream; null if there is none.
Capture* capture_of(const std::shared_ptr<Stream>& stream)
{
    for (auto& capture : captures) {
        if (capture->stream == stream) return capture.get();
    }
    return nullptr;
}

// The result of a call that is invalid during captures that meet a condition. It makes these
// captures invalid.
template <typename Condition>
CUresult conflict(CUresult error, Condition condition)
{
    CUresult result = CUDA_SUCCESS;
    for (auto& capture : captures) {
        if (!condition(*capture)) continue;
        result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : error;
        capture->invalid = true;
    }
    return result;
}

Context* to_context(void* handle)
{
    for (auto& context : contexts) {
        if (context.get() == handle) return context.get();
    }
    return nullptr;
}

// The beginning of most functions: takes the lock and finds the current context.
struct Call {
    std::lock_guard<std::mutex> lock{driver};
    Context* context = nullptr;
    CUresult result;

    Call()
    {
        if (!initialised) {
            result = CUDA_ERROR_NOT_INITIALIZED;
        } else if (stack.empty()) {
            result = CUDA_ERROR_INVALID_CONTEXT;
        } else if (stack.back()->destroyed) {
            result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        } else {
            context = stack.back();
            result = context->state();
        }
    }
    explicit operator bool() const { return result == CUDA_SUCCESS; }

    // The stream of the handle; null if there is none.
    std::shared_ptr<Stream> stream(void* handle) const
    {
        if (!handle || handle == reinterpret_cast<void*>(1)) return context->null_stream; // 1: CU_STREAM_LEGACY
        auto at = context->streams.find(static_cast<Stream*>(handle));
        return at == context->streams.end() || at->second->destroyed ? nullptr : at->second;
    }
    std::shared_ptr<Event> event(void* handle) const
    {
        auto at = context->events.find(static_cast<Event*>(handle));
        return at == context->events.end() ? nullptr : at->second;
    }
    Function* function(void* handle) const
    {
        for (auto& [_, module] : context->modules) {
            for (auto& [_, function] : module->functions) {
                if (function.get() == handle) return function.get();
            }
        }
        return nullptr;
    }
    CUresult wait(const Point& point) const
    {
        context->reach(point);
        return context->state();
    }

    // The result of a call without a stream, which a graph can't contain. During captures only the
    // relaxed mode permits it.
    CUresult unsafe() const
    {
        return conflict(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [](const Capture& c) {
            return c.mode == global || (c.mode == thread_local_mode && c.thread == std::this_thread::get_id());
        });
    }
    // The result of work in the null stream, which would follow blocking streams that are captured.
    CUresult implicit(const std::shared_ptr<Stream>& stream) const
    {
        return conflict(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&](const Capture& c) {
            return stream == context->null_stream && c.context == context && c.stream->blocking;
        });
    }
    // The result of a call that is invalid for a stream that is being captured.
    CUresult unsupported(const std::shared_ptr<Stream>& stream, CUresult error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) const
    {
        const CUresult result = implicit(stream);
        return result != CUDA_SUCCESS ? result : conflict(error, [&](const Capture& c) { return c.stream == stream; });
    }
    // Runs the work, or captures it.
    CUresult give(const std::shared_ptr<Stream>& stream, const Work& work) const
    {
        Capture* capture = capture_of(stream);
        if (!capture) {
            const CUresult result = implicit(stream);
            return result != CUDA_SUCCESS ? result : work(stream);
        }
        if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        capture->graph.work.push_back(work);
        return CUDA_SUCCESS;
    }
    // Issues the operation, or captures it.
    CUresult give(const std::shared_ptr<Stream>& stream, const std::function<void()>& operation) const
    {
        Context& context = *this->context;
        return give(stream, [=, &context](const std::shared_ptr<Stream>& stream) {
            context.issue(stream, [=] { return operation(), CUDA_SUCCESS; });
            return CUDA_SUCCESS;
        });
    }
    // Whether a graph would contain a copy of host memory that isn't page-locked and may move before the
    // launch. CUDA permits it.
    bool loose_copy(const std::shared_ptr<Stream>& stream, const void* host, size_t size) const
    {
        const bool loose = capture_of(stream) && !context->host.has(reinterpret_cast<uintptr_t>(host), size);
        if (loose) fprintf(stderr, "emulated device: a graph is to copy memory of the host that is not page-locked\n");
        return loose;
    }
};

CUresult query(const Call& call, const Point& point)
{
    if (!point.stream || point.stream->done >= point.operation) return CUDA_SUCCESS;
    call.context->step(*point.stream); // so that polling ends
    return call.context->state() != CUDA_SUCCESS ? call.context->state() : CUDA_ERROR_NOT_READY;
}

// Reads an integer at *at, or 0 if there is none, and moves *at behind it.
unsigned long integer(const std::string& text, size_t* at)
{
    unsigned long value = 0;
    while (*at < text.size() && isspace(static_cast<unsigned char>(text[*at]))) ++*at;
    while (*at < text.size() && isdigit(static_cast<unsigned char>(text[*at]))) value = value * 10 + (text[(*at)++] - '0');
    return value;
}

// The integers that follow a directive; none if the text lacks it.
std::vector<unsigned long> directive(const std::string& text, const char* name, const char* separators)
{
    std::vector<unsigned long> values;
    size_t at = text.find(name);
    if (at == std::string::npos) return values;
    at += strlen(name);
    do {
        values.push_back(integer(text, &at));
        while (at < text.size() && text[at] == ' ') at++;
    } while (at < text.size() && strchr(separators, text[at++]));
    return values;
}

// Size in bytes of a parameter's declaration, such as ".param .align 8 .b8 name[16]".
size_t parameter_size(const std::string& declaration)
{
    size_t size = 0;
    for (size_t at = 0; (at = declaration.find('.', at)) != std::string::npos;) {
        at++;
        if (at + 1 < declaration.size() && strchr("bsuf", declaration[at]) &&
            isdigit(static_cast<unsigned char>(declaration[at + 1]))) {
            at++;
            size = integer(declaration, &at) / 8;
        }
    }
    size_t bracket = declaration.find('[');
    if (bracket != std::string::npos) size *= integer(declaration, &++bracket);
    return size;
}

CUresult parse(const std::string& text, int capability, Module* module)
{
    const auto version = directive(text, ".version", ".");
    const auto target = directive(text, ".target sm_", "");
    if (version.size() != 2 || target.empty()) return CUDA_ERROR_INVALID_PTX;
    if (version[0] * 100 + version[1] > ptx_version) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (target[0] > unsigned(capability)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    for (size_t at = 0; (at = text.find(".visible .entry ", at)) != std::string::npos;) {
        const size_t name = at + strlen(".visible .entry "), open = text.find('(', name);
        const size_t close = text.find(')', name), body = text.find('{', name);
        if (body == std::string::npos || !(open < close && close < body)) return CUDA_ERROR_INVALID_PTX;
        Entry entry;
        for (size_t from = open + 1; from < close;) {
            const size_t to = std::min(text.find(',', from), close);
            const std::string declaration = text.substr(from, to - from);
            if (declaration.find(".param") != std::string::npos) entry.parameters.push_back(parameter_size(declaration));
            from = to + 1;
        }
        for (const char* limit : {".maxntid", ".reqntid"}) {
            const auto sizes = directive(text.substr(close, body - close), limit, ",");
            if (sizes.empty()) continue;
            entry.max_threads = 1;
            for (unsigned long size : sizes) entry.max_threads *= size;
        }
        module->entries[text.substr(name, text.find_first_of(" \t\n(", name) - name)] = entry;
        at = body;
    }
    return CUDA_SUCCESS;
}

// Finds the kernel of an entry, and checks that both have the same parameters.
CUresult match(const std::string& name, const Entry& entry, const Kernel** kernel)
{
    *kernel = nullptr;
    for (const Kernel& k : kernels()) {
        if (k.name == name) *kernel = &k;
    }
    if (!*kernel) {
        fprintf(stderr, "emulated device: PTX has the kernel %s, the emulator has not\n", name.c_str());
        return CUDA_ERROR_NOT_FOUND;
    }
    std::vector<size_t> sizes;
    for (const Parameter& p : (*kernel)->parameters) sizes.push_back(p.size);
    if (sizes != entry.parameters) {
        auto list = [](const std::vector<size_t>& sizes) {
            std::string text;
            for (size_t size : sizes) text += " " + std::to_string(size);
            return text;
        };
        fprintf(stderr,
            "emulated device: the parameters of kernel %s have sizes%s in PTX, but%s in its source: build the PTX again\n",
            name.c_str(), list(entry.parameters).c_str(), list(sizes).c_str());
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

CUresult load_module(void** out, const void* image)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    auto module = std::make_unique<Module>();
    auto result = static_cast<CUresult>(setting("EMULATED_FAIL_MODULE", 0));
    if (result == CUDA_SUCCESS) result = parse(static_cast<const char*>(image), call.context->device.capability, module.get());
    if (result != CUDA_SUCCESS) return result;
    *out = module.get();
    call.context->modules[module.get()] = std::move(module);
    return CUDA_SUCCESS;
}

CUresult run_launch(const Context& context, unsigned long long number, const Function& function, dim3 grid, dim3 block, size_t shared,
    const std::vector<std::string>& values)
{
    const Kernel& kernel = *function.kernel;
    std::vector<void*> arguments;
    for (size_t i = 0; i < values.size(); i++) {
        arguments.push_back(const_cast<char*>(values[i].data()));
        for (size_t j = 0; j < kernel.parameters[i].pointers; j++) {
            uintptr_t address;
            memcpy(&address, &values[i][j * sizeof address], sizeof address);
            if (!address || context.memory.has(address, 0) || context.host.has(address, 0)) continue;
            fprintf(stderr, "emulated device: pointer %zu of parameter %zu of kernel %s, %#zx, points to no memory of the device\n",
                j, i, kernel.name.c_str(), size_t(address));
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    return run({&kernel, arguments.data(), grid, block, shared, context.schedule == Schedule::eager, context.seed << 32 | number});
}

CUresult allocate_host(void** out, size_t size)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
    if (!call.context->may_allocate()) return CUDA_ERROR_OUT_OF_MEMORY;
    try {
        *out = call.context->host.add(size);
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult copy_in(const Call& call, const std::shared_ptr<Stream>& stream, uintptr_t to, const void* from, size_t size)
{
    if (!size) return CUDA_SUCCESS;
    if (!from || !call.context->memory.has(to, size)) return CUDA_ERROR_INVALID_VALUE;
    if (call.loose_copy(stream, from, size)) return call.unsupported(stream);
    void* target = reinterpret_cast<void*>(to);
    return call.give(stream, [=] { memcpy(target, from, size); });
}

CUresult copy_out(const Call& call, const std::shared_ptr<Stream>& stream, void* to, uintptr_t from, size_t size)
{
    if (!size) return CUDA_SUCCESS;
    if (!to || !call.context->memory.has(from, size)) return CUDA_ERROR_INVALID_VALUE;
    if (call.loose_copy(stream, to, size)) return call.unsupported(stream);
    const void* source = reinterpret_cast<const void*>(from);
    return call.give(stream, [=] { memcpy(to, source, size); });
}

template <typename T>
CUresult fill(uintptr_t to, T value, size_t count, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!count) return CUDA_SUCCESS;
    if (to % sizeof(T) || count > SIZE_MAX / sizeof(T) || !call.context->memory.has(to, count * sizeof(T))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return call.give(stream, [=] { std::fill_n(reinterpret_cast<T*>(to), count, value); });
}

Device* to_device(int number)
{
    return number >= 0 && size_t(number) < devices.size() ? &devices[number] : nullptr;
}

CUresult check_device(int number)
{
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    return to_device(number) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

} // namespace

#define API extern "C" __attribute__((visibility("default"))) CUresult

API cuInit(unsigned flags)
{
    std::lock_guard<std::mutex> lock(driver);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (initialised) return CUDA_SUCCESS;
    if (const auto result = setting("EMULATED_FAIL_INIT", 0)) return static_cast<CUresult>(result);
    const std::string capabilities = text("EMULATED_CAPABILITY");
    const char* next = capabilities.c_str();
    int major = 8, minor = 0;
    const auto count = setting("EMULATED_DEVICES", 1);
    if (count == 0) return CUDA_ERROR_NO_DEVICE;
    for (unsigned long long i = 0; i < count; i++) {
        int length = 0;
        if (*next && (sscanf(next, "%d.%d%n", &major, &minor, &length) != 2 || major < 1 || minor < 0 || minor > 9)) {
            fprintf(stderr, "emulated device: EMULATED_CAPABILITY is %s, not such as 8.0 or 8.0,9.0\n", capabilities.c_str());
            abort();
        }
        next += length;
        if (*next == ',') next++;
        devices.push_back({int(i), major * 10 + minor});
    }
    catch_bad_addresses();
    initialised = true;
    return CUDA_SUCCESS;
}

API cuDriverGetVersion(int* version)
{
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = driver_version;
    return CUDA_SUCCESS;
}

API cuGetErrorName(CUresult result, const char** name)
{
    switch (result) {
#define EMULATION_NAME(value, number, text) \
    case value: *name = #value; return CUDA_SUCCESS;
        EMULATION_RESULTS(EMULATION_NAME)
    }
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

API cuGetErrorString(CUresult result, const char** string)
{
    switch (result) {
#define EMULATION_STRING(value, number, text) \
    case value: *string = text; return CUDA_SUCCESS;
        EMULATION_RESULTS(EMULATION_STRING)
    }
    *string = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

API cuDeviceGetCount(int* count)
{
    std::lock_guard<std::mutex> lock(driver);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *count = devices.size();
    return CUDA_SUCCESS;
}

API cuDeviceGet(int* device, int number)
{
    std::lock_guard<std::mutex> lock(driver);
    *device = number;
    return check_device(number);
}

API cuDeviceGetName(char* name, int size, int device)
{
    std::lock_guard<std::mutex> lock(driver);
    if (size > 0) snprintf(name, size, "Emulated GPU");
    return check_device(device);
}

API cuDeviceTotalMem_v2(size_t* bytes, int device)
{
    std::lock_guard<std::mutex> lock(driver);
    *bytes = setting("EMULATED_MEMORY", 1 << 30);
    return check_device(device);
}

API cuDeviceGetUuid_v2(char (*uuid)[16], int device)
{
    std::lock_guard<std::mutex> lock(driver);
    memcpy(*uuid, "emulated GPU \0\0\0", 16);
    (*uuid)[15] = char(device);
    return check_device(device);
}

API cuDeviceGetAttribute(int* value, int attribute, int device)
{
    std::lock_guard<std::mutex> lock(driver);
    static const std::map<int, int> values = {
        {1, max_threads}, // MAX_THREADS_PER_BLOCK
        {2, 1024}, {3, 1024}, {4, 64}, // MAX_BLOCK_DIM_X, Y, Z
        {5, 0x7fffffff}, {6, 65535}, {7, 65535}, // MAX_GRID_DIM_X, Y, Z
        {8, default_shared}, // MAX_SHARED_MEMORY_PER_BLOCK
        {9, 65536}, // TOTAL_CONSTANT_MEMORY
        {10, 32}, // WARP_SIZE
        {12, 65536}, // MAX_REGISTERS_PER_BLOCK
        {13, 1000000}, // CLOCK_RATE, kHz
        {16, multiprocessors}, // MULTIPROCESSOR_COUNT
        {18, 0}, // INTEGRATED
        {19, 1}, // CAN_MAP_HOST_MEMORY
        {20, 0}, // COMPUTE_MODE
        {31, 1}, // CONCURRENT_KERNELS
        {33, 0}, {34, 0}, {50, 0}, // PCI_BUS_ID, PCI_DEVICE_ID, PCI_DOMAIN_ID
        {36, 1000000}, // MEMORY_CLOCK_RATE, kHz
        {37, 256}, // GLOBAL_MEMORY_BUS_WIDTH, bits
        {38, 4 << 20}, // L2_CACHE_SIZE
        {39, threads_a_multiprocessor}, // MAX_THREADS_PER_MULTIPROCESSOR
        {40, 2}, // ASYNC_ENGINE_COUNT
        {41, 1}, // UNIFIED_ADDRESSING
        {82, registers_a_multiprocessor}, // MAX_REGISTERS_PER_MULTIPROCESSOR
        {106, blocks_a_multiprocessor}, // MAX_BLOCKS_PER_MULTIPROCESSOR
        {111, reserved_shared}, // RESERVED_SHARED_MEMORY_PER_BLOCK
    };
    const auto at = values.find(attribute);
    const CUresult result = check_device(device);
    if (result != CUDA_SUCCESS) return result;
    const Device& of = *to_device(device);
    switch (attribute) {
    case 75: *value = of.capability / 10; return result; // COMPUTE_CAPABILITY_MAJOR
    case 76: *value = of.capability % 10; return result; // COMPUTE_CAPABILITY_MINOR
    case 81: *value = of.opt_in_shared() + reserved_shared; return result; // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    case 97: *value = of.opt_in_shared(); return result; // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    }
    if (at == values.end()) return CUDA_ERROR_INVALID_VALUE;
    *value = at->second;
    return result;
}

API cuCtxCreate_v2(void** out, unsigned, int number)
{
    std::lock_guard<std::mutex> lock(driver);
    CUresult result = check_device(number);
    if (result == CUDA_SUCCESS && number == 0) result = static_cast<CUresult>(setting("EMULATED_FAIL_CONTEXT", 0));
    if (result == CUDA_SUCCESS) result = broken;
    if (result != CUDA_SUCCESS) return result;
    auto context = std::unique_ptr<Context>(new Context{devices[number]});
    // A lost device stays lost while EMULATED_LOSE_DEVICE is set.
    if (context->device.lost && context->lose_device) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    context->device.lost = false;
    stack.push_back(context.get());
    *out = context.get();
    contexts.push_back(std::move(context));
    return CUDA_SUCCESS;
}

API cuCtxDestroy_v2(void* handle)
{
    std::lock_guard<std::mutex> lock(driver);
    Context* context = to_context(handle);
    if (!context || context->destroyed) return CUDA_ERROR_INVALID_CONTEXT;
    context->reach_all();
    context->destroyed = true;
    context->device.used -= context->memory.size();
    context->memory = Memory();
    context->host = Memory();
    context->streams.clear();
    context->events.clear();
    context->modules.clear();
    if (context->state() == CUDA_SUCCESS && context->graphs.size() + context->executables.size()) {
        fprintf(stderr, "emulated device: a context is destroyed and its graphs are not, which then nobody can do\n");
        abort();
    }
    captures.erase(std::remove_if(captures.begin(), captures.end(), [=](auto& c) { return c->context == context; }), captures.end());
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return broken;
}

API cuCtxSetCurrent(void* handle)
{
    std::lock_guard<std::mutex> lock(driver);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    Context* context = to_context(handle);
    if (handle && (!context || context->destroyed)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack.empty()) stack.pop_back();
    if (context) stack.push_back(context);
    return CUDA_SUCCESS;
}

API cuCtxGetCurrent(void** out)
{
    std::lock_guard<std::mutex> lock(driver);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *out = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
}

API cuCtxPushCurrent_v2(void* handle)
{
    std::lock_guard<std::mutex> lock(driver);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    Context* context = to_context(handle);
    if (!context || context->destroyed) return CUDA_ERROR_INVALID_CONTEXT;
    stack.push_back(context);
    return CUDA_SUCCESS;
}

API cuCtxPopCurrent_v2(void** out)
{
    std::lock_guard<std::mutex> lock(driver);
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
}

API cuCtxSynchronize()
{
    Call call;
    if (!call) return call.result;
    const CUresult result =
        conflict(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&](const Capture& c) { return c.context == call.context; });
    if (result != CUDA_SUCCESS) return result;
    call.context->reach_all();
    return call.context->state();
}

API cuMemGetInfo_v2(size_t* free, size_t* total)
{
    Call call;
    if (!call) return call.result;
    const Context& context = *call.context;
    *total = context.memory_size;
    *free = context.memory_size - std::min(context.memory_size, context.device.used);
    return CUDA_SUCCESS;
}

API cuMemAlloc_v2(uintptr_t* out, size_t size)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
    Context& context = *call.context;
    if (!context.may_allocate() || context.device.used > context.memory_size ||
        size > context.memory_size - context.device.used) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    try {
        *out = reinterpret_cast<uintptr_t>(context.memory.add(size));
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context.device.used += size;
    return CUDA_SUCCESS;
}

// Waits for all work, as the real driver does.
API cuMemFree_v2(uintptr_t address)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    if (!address) return CUDA_SUCCESS;
    Context& context = *call.context;
    const Allocation* allocation = context.memory.find(address);
    if (!allocation) return CUDA_ERROR_INVALID_VALUE;
    context.reach_all();
    context.device.used -= allocation->size;
    context.memory.remove(address);
    return context.state();
}

API cuMemAllocHost_v2(void** out, size_t size) { return allocate_host(out, size); }
API cuMemHostAlloc(void** out, size_t size, unsigned) { return allocate_host(out, size); }

API cuMemFreeHost(void* pointer)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (!call.context->host.find(address)) return CUDA_ERROR_INVALID_VALUE;
    call.context->reach_all();
    call.context->host.remove(address);
    return call.context->state();
}

// For page-locked memory, it waits for the copy. Other memory it copies to a buffer, and doesn't
// wait.
API cuMemcpyHtoD_v2(uintptr_t to, const void* from, size_t size)
{
    Call call;
    if (!call) return call.result;
    Context& context = *call.context;
    if (from && size && context.memory.has(to, size) && !context.host.has(reinterpret_cast<uintptr_t>(from), size)) {
        auto bytes = static_cast<const unsigned char*>(from);
        auto buffer = std::make_shared<std::vector<unsigned char>>(bytes, bytes + size);
        void* target = reinterpret_cast<void*>(to);
        return call.give(context.null_stream, [=] { memcpy(target, buffer->data(), size); });
    }
    const CUresult result = copy_in(call, context.null_stream, to, from, size);
    return result == CUDA_SUCCESS && size ? call.wait({context.null_stream, context.null_stream->issued}) : result;
}

// CUDA doesn't specify whether memory that isn't page-locked is read or written before the call
// returns. Here it isn't.
API cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t size, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(stream_handle);
    return stream ? copy_in(call, stream, to, from, size) : CUDA_ERROR_INVALID_HANDLE;
}

API cuMemcpyDtoH_v2(void* to, uintptr_t from, size_t size)
{
    Call call;
    if (!call) return call.result;
    const auto& stream = call.context->null_stream;
    const CUresult result = copy_out(call, stream, to, from, size);
    return result == CUDA_SUCCESS && size ? call.wait({stream, stream->issued}) : result;
}

API cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t size, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(stream_handle);
    return stream ? copy_out(call, stream, to, from, size) : CUDA_ERROR_INVALID_HANDLE;
}

API cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t size, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!size) return CUDA_SUCCESS;
    if (!call.context->memory.has(to, size) || !call.context->memory.has(from, size)) return CUDA_ERROR_INVALID_VALUE;
    return call.give(stream, [=] { memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size); });
}

// These functions don't wait either, as in the real driver.
API cuMemsetD8_v2(uintptr_t to, unsigned char value, size_t count) { return fill(to, value, count, nullptr); }
API cuMemsetD8Async(uintptr_t to, unsigned char value, size_t count, void* stream) { return fill(to, value, count, stream); }
API cuMemsetD32_v2(uintptr_t to, unsigned value, size_t count) { return fill(to, value, count, nullptr); }
API cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, void* stream) { return fill(to, value, count, stream); }

API cuModuleLoadData(void** module, const void* image) { return load_module(module, image); }

// Reads two options: the buffer for the compiler's errors, and its size in bytes.
API cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values)
{
    const CUresult result = load_module(module, image);
    char* log = nullptr;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == 5) log = static_cast<char*>(values[i]); // ERROR_LOG_BUFFER
    }
    for (unsigned i = 0; i < count; i++) {
        if (options[i] != 6 || !log) continue; // ERROR_LOG_BUFFER_SIZE_BYTES
        const int length = snprintf(log, reinterpret_cast<size_t>(values[i]), "%s",
            result == CUDA_SUCCESS ? "" : "ptxas application ptx input, line 1; fatal   :\nthe emulated compiler refuses\n");
        values[i] = reinterpret_cast<void*>(std::min(reinterpret_cast<size_t>(values[i]), size_t(length)));
    }
    return result;
}

API cuModuleUnload(void* handle)
{
    Call call;
    if (!call) return call.result;
    const CUresult unsafe = call.unsafe();
    if (unsafe != CUDA_SUCCESS) return unsafe;
    auto at = call.context->modules.find(static_cast<Module*>(handle));
    if (at == call.context->modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    call.context->reach_all(); // launches of its functions may be pending
    call.context->modules.erase(at);
    return call.context->state();
}

API cuModuleGetFunction(void** out, void* handle, const char* name)
{
    Call call;
    if (!call) return call.result;
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    auto at = call.context->modules.find(static_cast<Module*>(handle));
    if (at == call.context->modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    Module& module = *at->second;
    const auto entry = module.entries.find(name);
    if (entry == module.entries.end()) return CUDA_ERROR_NOT_FOUND;
    auto& function = module.functions[name];
    if (!function) {
        const Kernel* kernel;
        const CUresult result = match(name, entry->second, &kernel);
        if (result != CUDA_SUCCESS) {
            module.functions.erase(name);
            return result;
        }
        function.reset(new Function{kernel, entry->second.max_threads});
    }
    *out = function.get();
    return CUDA_SUCCESS;
}

API cuFuncSetAttribute(void* handle, int attribute, int value)
{
    Call call;
    if (!call) return call.result;
    Function* function = call.function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case 8: // MAX_DYNAMIC_SHARED_SIZE_BYTES
        if (value < 0 || size_t(value) > call.context->device.opt_in_shared()) return CUDA_ERROR_INVALID_VALUE;
        function->max_shared = value;
        return CUDA_SUCCESS;
    case 9: // PREFERRED_SHARED_MEMORY_CARVEOUT, a hint in percent
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

API cuFuncGetAttribute(int* value, int attribute, void* handle)
{
    Call call;
    if (!call) return call.result;
    const Function* function = call.function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case 0: *value = function->max_threads; break; // MAX_THREADS_PER_BLOCK
    case 1: case 2: case 3: *value = 0; break; // SHARED, CONST, LOCAL_SIZE_BYTES
    case 4: *value = registers; break; // NUM_REGS
    case 5: case 6: *value = call.context->device.capability; break; // PTX_VERSION, BINARY_VERSION
    case 8: *value = function->max_shared; break; // MAX_DYNAMIC_SHARED_SIZE_BYTES
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int threads, size_t shared)
{
    Call call;
    if (!call) return call.result;
    const Function* function = call.function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || threads < 1 || size_t(threads) > function->max_threads) return CUDA_ERROR_INVALID_VALUE;
    const size_t rounded = (threads + 31) / 32 * 32;
    *blocks = shared > function->max_shared ? 0
        : std::min({threads_a_multiprocessor / rounded, registers_a_multiprocessor / (registers * rounded),
              (call.context->device.opt_in_shared() + reserved_shared) / (shared + reserved_shared), blocks_a_multiprocessor});
    return CUDA_SUCCESS;
}

API cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void* stream_handle, void** arguments, void** extra)
{
    Call call;
    if (!call) return call.result;
    Context& context = *call.context;
    Function* function = call.function(handle);
    const auto stream = call.stream(stream_handle);
    if (!function || !stream) return CUDA_ERROR_INVALID_HANDLE;
    const dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    const bool grid_fits = grid.x && grid.y && grid.z && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535;
    const bool block_fits = block.x && block.y && block.z && block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
        block.x * block.y * block.z <= function->max_threads;
    const auto& parameters = function->kernel->parameters;
    if (!grid_fits || !block_fits || shared > function->max_shared || extra || (!parameters.empty() && !arguments)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<std::string> values; // the bytes of each parameter
    for (size_t i = 0; i < parameters.size(); i++) {
        values.emplace_back(static_cast<const char*>(arguments[i]), parameters[i].size);
    }

    // A graph can't contain the loading of a kernel either.
    const Capture* capture = capture_of(stream);
    if (capture && capture->mode != relaxed && !function->loaded) return call.unsupported(stream);
    function->loaded = true;
    const Function f = *function;
    return call.give(stream, [=, &context](const std::shared_ptr<Stream>& stream) {
        const auto launch = ++context.launches;
        context.log(*f.kernel);
        if (context.lose_device && launch >= context.lose_device) {
            context.device.lost = true;
            return context.state();
        }
        const bool fails = launch == context.fail_launch;
        context.issue(stream, [=, &context] {
            return fails ? CUDA_ERROR_LAUNCH_FAILED : run_launch(context, launch, f, grid, block, shared, values);
        }, {}, true);
        return CUDA_SUCCESS;
    });
}

// A cooperative launch, whose blocks wait for each other, may have one block per multiprocessor.
API cuLaunchCooperativeKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void* stream, void** arguments)
{
    if (uint64_t(grid_x) * grid_y * grid_z > multiprocessors) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return cuLaunchKernel(handle, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments, nullptr);
}

API cuStreamCreate(void** out, unsigned flags)
{
    Call call;
    if (!call) return call.result;
    if (!out || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>(Stream{flags == 0}); // 1: CU_STREAM_NON_BLOCKING
    *out = stream.get();
    call.context->streams[stream.get()] = stream;
    return CUDA_SUCCESS;
}

API cuStreamDestroy_v2(void* handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = handle ? call.stream(handle) : nullptr;
    if (!stream || stream == call.context->null_stream) return CUDA_ERROR_INVALID_HANDLE;
    stream->destroyed = true;
    return CUDA_SUCCESS;
}

API cuStreamSynchronize(void* handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = call.unsupported(stream);
    if (result != CUDA_SUCCESS) return result;
    // The null stream ends after the streams that it is ordered with.
    if (stream == call.context->null_stream) call.context->issue(stream, {});
    return call.wait({stream, stream->issued});
}

API cuStreamQuery(void* handle)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = call.unsupported(stream);
    return result == CUDA_SUCCESS ? query(call, {stream, stream->issued}) : result;
}

API cuStreamWaitEvent(void* stream_handle, void* event_handle, unsigned)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(stream_handle);
    const auto event = call.event(event_handle);
    if (!stream || !event) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = call.unsupported(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (result == CUDA_SUCCESS && event->point.stream) call.context->issue(stream, {}, event->point);
    return result;
}

API cuEventCreate(void** out, unsigned flags)
{
    Call call;
    if (!call) return call.result;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>(Event{!(flags & 2)}); // 2: CU_EVENT_DISABLE_TIMING
    *out = event.get();
    call.context->events[event.get()] = event;
    return CUDA_SUCCESS;
}

API cuEventDestroy_v2(void* handle)
{
    Call call;
    if (!call) return call.result;
    return call.context->events.erase(static_cast<Event*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventRecord(void* event_handle, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    const auto event = call.event(event_handle);
    const auto stream = call.stream(stream_handle);
    if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (capture_of(stream)) fprintf(stderr, "emulated device: graphs of more than one stream, and so events in them, are not emulated\n");
    const CUresult result = call.unsupported(stream);
    if (result != CUDA_SUCCESS) return result;
    event->point = call.context->issue(stream, [event] {
        event->time = std::chrono::steady_clock::now();
        return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
}

API cuEventSynchronize(void* handle)
{
    Call call;
    if (!call) return call.result;
    const auto event = call.event(handle);
    return event ? call.wait(event->point) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventQuery(void* handle)
{
    Call call;
    if (!call) return call.result;
    const auto event = call.event(handle);
    return event ? query(call, event->point) : CUDA_ERROR_INVALID_HANDLE;
}

API cuEventElapsedTime(float* milliseconds, void* start_handle, void* end_handle)
{
    Call call;
    if (!call) return call.result;
    const auto start = call.event(start_handle), end = call.event(end_handle);
    if (!start || !end) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& event : {start, end}) {
        if (!event->timed || !event->point.stream) return CUDA_ERROR_INVALID_HANDLE;
        if (event->point.stream->done < event->point.operation) return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return CUDA_SUCCESS;
}

// A graph contains the work of one stream.

API cuStreamBeginCapture_v2(void* handle, int mode)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (mode < global || mode > relaxed) return CUDA_ERROR_INVALID_VALUE;
    if (stream == call.context->null_stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (capture_of(stream)) return CUDA_ERROR_ILLEGAL_STATE;
    captures.emplace_back(new Capture{call.context, stream, static_cast<CaptureMode>(mode)});
    return CUDA_SUCCESS;
}

API cuStreamEndCapture(void* handle, void** out)
{
    Call call;
    if (!call) return call.result;
    const auto stream = call.stream(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = nullptr;
    const auto at = std::find_if(captures.begin(), captures.end(), [&](auto& c) { return c->stream == stream; });
    if (at == captures.end()) return CUDA_ERROR_ILLEGAL_STATE;
    if ((*at)->mode != relaxed && (*at)->thread != std::this_thread::get_id()) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const auto capture = std::move(*at);
    captures.erase(at);
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto graph = std::make_unique<Graph>(std::move(capture->graph));
    *out = graph.get();
    call.context->graphs[graph.get()] = std::move(graph);
    return CUDA_SUCCESS;
}

API cuGraphInstantiateWithFlags(void** out, void* handle, unsigned long long flags)
{
    Call call;
    if (!call) return call.result;
    const auto at = call.context->graphs.find(static_cast<Graph*>(handle));
    if (!out || at == call.context->graphs.end() || flags) return CUDA_ERROR_INVALID_VALUE;
    const auto executable = std::make_shared<Executable>(Executable{*at->second});
    *out = executable.get();
    call.context->executables[executable.get()] = executable;
    return CUDA_SUCCESS;
}

API cuGraphLaunch(void* handle, void* stream_handle)
{
    Call call;
    if (!call) return call.result;
    Context& context = *call.context;
    const auto stream = call.stream(stream_handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const auto at = context.executables.find(static_cast<Executable*>(handle));
    if (at == context.executables.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto executable = at->second;
    // If this launch is captured, it becomes part of the other graph.
    return call.give(stream, [=, &context](const std::shared_ptr<Stream>& stream) {
        if (executable->launched.stream) context.issue(stream, {}, executable->launched);
        CUresult result = CUDA_SUCCESS;
        context.launching_graph = true;
        for (size_t i = 0; i < executable->graph.work.size() && result == CUDA_SUCCESS; i++) {
            result = executable->graph.work[i](stream);
        }
        context.launching_graph = false;
        executable->launched = {stream, stream->issued};
        return result;
    });
}

API cuGraphDestroy(void* handle)
{
    Call call;
    if (!call) return call.result;
    return call.context->graphs.erase(static_cast<Graph*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Pending launches still run.
API cuGraphExecDestroy(void* handle)
{
    Call call;
    if (!call) return call.result;
    return call.context->executables.erase(static_cast<Executable*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
