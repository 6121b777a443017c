// Launches: the blocks of a grid run on the machine's cores.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "emulation.h"

namespace emulation {

struct Parameter {
    size_t size; // bytes
    size_t pointers; // number of pointers at its beginning
};

// A kernel that is compiled into the emulator.
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
        (void)arguments; // not used if the kernel has no parameters
        function(*static_cast<T*>(arguments[i])...);
    }
    static void call(void* const* arguments) { unpack(arguments, std::index_sequence_for<T...>()); }
    static Kernel as(const char* name) { return {name, {{sizeof(T), pointers<T>}...}, call}; }
};

#define EMULATION_KERNEL(function) emulation::Describe<function>::as(#function)

// Returns all kernels. kernels.cpp, or a test, defines it.
const std::vector<Kernel>& kernels();

struct Launch {
    const Kernel* kernel;
    void* const* arguments;
    dim3 grid, block;
    size_t shared; // bytes of dynamic shared memory
    bool eager;
    uint64_t seed; // determines the order in which threads run
};

constexpr int multiprocessors = 4; // at least this number of blocks runs at once
constexpr size_t max_threads = 1024; // per block
constexpr size_t max_shared = 227 << 10; // bytes per block, for kernels that opt in, on any device

// Runs a launch to its end. A message on stderr describes a fault. Only one OS thread may
// call it at a time.
CUresult run(const Launch& launch);

// Turns a kernel's accesses to unmapped memory into faults of the launch.
void catch_bad_addresses();

} // namespace emulation
