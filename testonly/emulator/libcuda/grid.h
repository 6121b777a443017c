// Launches: a grid of blocks run over the machine's cores.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "emulation.h"

namespace emulation {

struct Parameter {
    size_t size; // bytes
    size_t pointers; // that it begins with
};

// A kernel that was compiled into the emulator.
struct Kernel {
    std::string name;
    std::vector<Parameter> parameters;
    void (*call)(void* const* arguments); // pointers to the arguments, as in cuLaunchKernel
};

template <auto function>
struct Describe;

template <typename... T, void (*function)(T...)>
struct Describe<function> {
    template <size_t... i>
    static void unpack(void* const* arguments, std::index_sequence<i...>)
    {
        (void)arguments; // of a kernel without parameters
        function(*static_cast<T*>(arguments[i])...);
    }
    static void call(void* const* arguments) { unpack(arguments, std::index_sequence_for<T...>()); }
    static Kernel as(const char* name) { return {name, {{sizeof(T), pointers<T>}...}, call}; }
};

#define EMULATION_KERNEL(function) emulation::Describe<function>::as(#function)

// All there are: kernels.cpp, or a test, defines it.
const std::vector<Kernel>& kernels();

struct Launch {
    const Kernel* kernel;
    void* const* arguments;
    dim3 grid, block;
    size_t shared; // bytes of dynamic shared memory
    bool eager;
    uint64_t seed; // of the order in which threads run
};

constexpr size_t max_threads = 1024; // of a block
constexpr size_t max_shared = 227 << 10; // bytes of a block, for kernels that opt in, on any device

// Runs a launch to its end. A fault is described on stderr. Not to be called by several
// OS threads at a time.
CUresult run(const Launch& launch);

// Makes accesses to memory that is not there, by kernels, faults of the launch.
void catch_bad_addresses();

} // namespace emulation
