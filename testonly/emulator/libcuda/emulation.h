// The environment of a kernel that is compiled as host C++: the part of CUDA's language and
// library that our .cu files use. Every thread of a block is a fiber. The threads of a warp
// run in turn from one meeting point to the next, and so do the warps of a block.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "fibers.h"
#include "results.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define SHARED_MEMORY(type, name) type* const name = static_cast<type*>(emulation::current->block->shared)

struct uint3 {
    unsigned x, y, z;
};
using dim3 = uint3;
struct Half; // see abi.cuh
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

// See abi.cuh.
#define LAYOUT(type, bytes, count) \
    static_assert(sizeof(type) == bytes, #type); \
    template <> \
    constexpr size_t emulation::pointers<type> = count;

namespace emulation {

// The number of pointers at the beginning of a kernel's parameter.
template <typename T>
constexpr size_t pointers = std::is_pointer<T>::value;

// A place where threads wait for each other.
enum class Wait { none, exit, syncthreads, syncwarp, shuffle, ballot, mma, matrices };
struct Site {
    Wait wait = Wait::none;
    int line = 0;
    const char* file = "";
};

// A barrier of the lanes of a warp, or of the warps of a block: none continues before all
// have arrived at the same site. They arrive in the order of a ring, which is drawn for each
// block, and the last to arrive continues first.
struct Meeting {
    unsigned size = 0;
    unsigned arrived = 0;
    Site site;
};

struct Block {
    uint3 index;
    dim3 size, grid;
    void* shared;
    bool eager; // asynchronous copies run at once
    Meeting warps;
};

struct alignas(64) Warp {
    Meeting lanes;
    struct Thread* next; // the lane that continues
    Warp* following; // in the ring of the block
    unsigned round = 0; // number of exchanges
        // The lanes' values in an exchange. There are two rounds, because the lane that continues
        // first may store its value for the next exchange before the others have read this one's.
    uint64_t values[2][32];
    // Factors and sum of a matrix product of depth up to 32; a and the sum are transposed.
    alignas(64) float a[32][16], b[32][8], sum[8][16];
};

// A pending asynchronous copy of 16 bytes.
struct Copy {
    void* to;
    const void* from; // null: zeros
    int group;
};

struct alignas(64) Thread {
    Fiber fiber;
    Thread* following; // in the ring of the warp
    Warp* warp;
    Block* block;
    unsigned lane;
    uint3 index;
    std::vector<Copy> copies;
    size_t copied; // number of copies that are done
        int groups; // number of committed groups
};

extern __thread Thread* current __attribute__((tls_model("initial-exec")));

// Waits for the threads of the block.
void meet_threads(const char* file, int line);
// Waits until a count, to which other blocks add, is at least n. Ends the block if another one fails.
void await_count(const int* count, int n);
// Ends the launch with a message on stderr.
[[noreturn]] void fault(CUresult result, const char* format, ...) __attribute__((format(printf, 2, 3)));
// Reports that lanes or warps wait at different sites.
[[noreturn]] void diverged(const Site& some, const Site& others, const char* those);
// sum += a · b.
void multiply(Warp& warp, int depth);

// Arrives at the meeting. Returns true if all have arrived.
inline bool arrive(Meeting& meeting, const Site& site, const char* those)
{
    if (meeting.arrived == 0) {
        meeting.site = site;
    } else if (meeting.site.wait != site.wait || meeting.site.line != site.line) {
        diverged(meeting.site, site, those);
    }
    if (++meeting.arrived < meeting.size) return false;
    meeting.arrived = 0;
    return true;
}

inline __attribute__((always_inline)) void go_on(Thread& thread)
{
    Thread& self = *current;
    current = &thread;
    switch_fiber(self.fiber, thread.fiber);
}

// Waits for the lanes of the warp. Returns true in the last lane to arrive, which continues first.
inline __attribute__((always_inline)) bool meet_lanes(Wait wait, const char* file, int line)
{
    Warp& warp = *current->warp;
    if (arrive(warp.lanes, {wait, line, file}, "lanes")) {
        warp.round++;
        return true;
    }
    go_on(*current->following);
    return false;
}

inline void perform(const Copy& copy)
{
    if (copy.from) {
        memcpy(copy.to, copy.from, 16);
    } else {
        memset(copy.to, 0, 16);
    }
}

inline uint32_t bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, 4);
    return b;
}

inline float from_bits(uint32_t b)
{
    float x;
    memcpy(&x, &b, 4);
    return x;
}

void check_mask(unsigned mask, const char* file, int line);

// The value of the lane that `source` gives for one's own lane.
template <typename T, typename Source>
T shuffle(unsigned mask, T value, Source source, const char* file, int line)
{
    static_assert(sizeof(T) <= 8);
    check_mask(mask, file, line);
    const Thread& self = *current;
    uint64_t* values = self.warp->values[self.warp->round & 1];
    memcpy(&values[self.lane], &value, sizeof value);
    meet_lanes(Wait::shuffle, file, line);
    memcpy(&value, &values[source(self.lane)], sizeof value);
    return value;
}

} // namespace emulation

#define threadIdx (emulation::current->index)
#define blockIdx (emulation::current->block->index)
#define blockDim (emulation::current->block->size)
#define gridDim (emulation::current->block->grid)

#define EMULATION_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATION_HERE) { emulation::meet_threads(file, line); }

inline void __syncwarp(unsigned mask = 0xffffffff, EMULATION_HERE)
{
    emulation::check_mask(mask, file, line);
    emulation::meet_lanes(emulation::Wait::syncwarp, file, line);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMULATION_HERE)
{
    return emulation::shuffle(
        mask, value, [=](int self) { return (self & -width) | (lane & (width - 1)); }, file, line);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, EMULATION_HERE)
{
    return emulation::shuffle(
        mask, value,
        [=](int self) {
            int source = self ^ lanes;
            return source < (self & -width) + width ? source : self;
        },
        file, line);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE)
{
    return emulation::shuffle(
        mask, value,
        [=](int self) { return (self & (width - 1)) + int(delta) < width ? self + int(delta) : self; }, file, line);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_HERE)
{
    return emulation::shuffle(
        mask, value, [=](int self) { return (self & (width - 1)) >= int(delta) ? self - int(delta) : self; }, file,
        line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATION_HERE)
{
    emulation::check_mask(mask, file, line);
    const emulation::Thread& self = *emulation::current;
    const uint64_t* values = self.warp->values[self.warp->round & 1];
    self.warp->values[self.warp->round & 1][self.lane] = predicate != 0;
    emulation::meet_lanes(emulation::Wait::ballot, file, line);
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane++) ballot |= unsigned(values[lane]) << lane;
    return ballot;
}

inline void post(int* count) { __atomic_fetch_add(count, 1, __ATOMIC_RELEASE); }
inline void await(const int* count, int n) { emulation::await_count(count, n); }

// Copies run as late as possible, in the copy_wait that covers their group. A kernel that reads
// without waiting therefore reads poison. With the schedule eager, they run as early as possible,
// which reveals memory that is overwritten too early.
inline void copy_async(void* shared, const void* global, bool valid)
{
    emulation::Thread& self = *emulation::current;
    if (reinterpret_cast<uintptr_t>(shared) % 16 || (valid && reinterpret_cast<uintptr_t>(global) % 16)) {
        emulation::fault(CUDA_ERROR_MISALIGNED_ADDRESS, "copy_async from %p to %p: not aligned to 16 bytes",
            global, shared);
    }
    const emulation::Copy copy = {shared, valid ? global : nullptr, self.groups};
    if (self.block->eager) {
        perform(copy);
    } else {
        self.copies.push_back(copy);
    }
}

inline void copy_commit() { emulation::current->groups++; }

template <int N>
void copy_wait()
{
    emulation::Thread& self = *emulation::current;
    auto& copies = self.copies;
    while (self.copied < copies.size() && copies[self.copied].group < self.groups - N) perform(copies[self.copied++]);
    if (self.copied == copies.size()) {
        copies.clear();
        self.copied = 0;
    }
}

// Rounds to nearest, ties away from zero.
inline unsigned tf32(float x)
{
    return x != x ? 0x7fffffffu : (emulation::bits(x) + 0x1000u) & ~0x1fffu;
}

namespace emulation {

inline float from_half(unsigned x)
{
    const unsigned exponent = x >> 10 & 31, fraction = x & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
        : exponent == 0               ? fraction * 0x1p-24f
                                      : from_bits((exponent + 112) << 23 | fraction << 13);
    return x & 0x8000 ? -size : size;
}

// Rounds to nearest, ties to even.
inline unsigned to_half(float x)
{
    const unsigned sign = bits(x) >> 16 & 0x8000;
    const float size = fabsf(x);
    if (x != x) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 0x1p-14f) return sign | unsigned(rintf(size * 0x1p24f));
    unsigned b = bits(size);
    b += 0xfff + (b >> 13 & 1);
    return sign | (b - (112u << 23)) >> 13;
}

inline unsigned to_bfloat(float x) { return x != x ? 0x7fff : (bits(x) + 0x7fff + (bits(x) >> 16 & 1)) >> 16; }

// Adds a product to c, the lane's part of the sums: columns 2·place and 2·place + 1 of row group,
// then of row group + 8.
template <typename Factors>
__forceinline__ void add_product(float (&c)[4], int depth, Factors factors, const char* file, int line)
{
    const Thread& self = *current;
    Warp& warp = *self.warp;
    const unsigned group = self.lane / 4, place = self.lane % 4;
    factors(warp, group, place);
    float* sum[] = {warp.sum[2 * place], warp.sum[2 * place + 1]};
    sum[0][group] = c[0];
    sum[1][group] = c[1];
    sum[0][group + 8] = c[2];
    sum[1][group + 8] = c[3];
    if (meet_lanes(Wait::mma, file, line)) multiply(warp, depth);
    c[0] = sum[0][group];
    c[1] = sum[1][group];
    c[2] = sum[0][group + 8];
    c[3] = sum[1][group + 8];
}

// Adds a product of 16-bit factors, two in a register. a holds rows group and group + 8 of columns
// 2·place and 2·place + 1, then of columns 2·place + 8 and 2·place + 9. b holds these rows of column
// group.
template <typename Number>
__forceinline__ void add_product_16(
    float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], Number number, const char* file, int line)
{
    add_product(
        c, 16,
        [&](Warp& warp, unsigned group, unsigned place) {
            for (unsigned i = 0; i < 4; i++) {
                const unsigned row = group + i % 2 * 8, column = 2 * place + i / 2 * 8;
                warp.a[column][row] = number(a[i] & 0xffff);
                warp.a[column + 1][row] = number(a[i] >> 16);
            }
            for (unsigned i = 0; i < 2; i++) {
                warp.b[2 * place + i * 8][group] = number(b[i] & 0xffff);
                warp.b[2 * place + i * 8 + 1][group] = number(b[i] >> 16);
            }
        },
        file, line);
}

} // namespace emulation

// The fragments have the layout of PTX's mma.m16n8k8 for .tf32. With group = lane / 4 and
// place = lane % 4, a holds rows group and group + 8 of column place, then of column
// place + 4. b holds rows place and place + 4 of column group.
__forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMULATION_HERE)
{
    // The hardware ignores the low 13 bits.
    auto number = [](unsigned x) { return emulation::from_bits(x & ~0x1fffu); };
    emulation::add_product(
        c, 8,
        [&](emulation::Warp& warp, unsigned group, unsigned place) {
            warp.a[place][group] = number(a[0]);
            warp.a[place][group + 8] = number(a[1]);
            warp.a[place + 4][group] = number(a[2]);
            warp.a[place + 4][group + 8] = number(a[3]);
            warp.b[place][group] = number(b[0]);
            warp.b[place + 4][group] = number(b[1]);
        },
        file, line);
}

__forceinline__ void mma_halves(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMULATION_HERE)
{
    emulation::add_product_16(c, a, b, emulation::from_half, file, line);
}

__forceinline__ void mma_bfloats(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMULATION_HERE)
{
    emulation::add_product_16(c, a, b, [](unsigned x) { return emulation::from_bits(x << 16); }, file, line);
}

// Multiplies 8-bit integers, four in a register. The sums of a product are exact in float.
__forceinline__ void mma_bytes(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], EMULATION_HERE)
{
    float product[4] = {};
    emulation::add_product(
        product, 32,
        [&](emulation::Warp& warp, unsigned group, unsigned place) {
            for (unsigned k = 0; k < 4; k++) {
                for (unsigned i = 0; i < 4; i++)
                    warp.a[4 * place + k + i / 2 * 16][group + i % 2 * 8] = static_cast<signed char>(a[i] >> 8 * k);
                for (unsigned i = 0; i < 2; i++) warp.b[4 * place + k + i * 16][group] = static_cast<signed char>(b[i] >> 8 * k);
            }
        },
        file, line);
    for (unsigned i = 0; i < 4; i++) c[i] += int(product[i]);
}

template <bool transposed>
void load_matrices(unsigned (&x)[4], const Half* row, EMULATION_HERE)
{
    const emulation::Thread& self = *emulation::current;
    uint64_t* rows = self.warp->values[self.warp->round & 1];
    if (reinterpret_cast<uintptr_t>(row) % 16) {
        emulation::fault(CUDA_ERROR_MISALIGNED_ADDRESS, "load_matrices from %p: not aligned to 16 bytes", static_cast<const void*>(row));
    }
    rows[self.lane] = reinterpret_cast<uintptr_t>(row);
    emulation::meet_lanes(emulation::Wait::matrices, file, line);
    const unsigned group = self.lane / 4, place = self.lane % 4;
    for (unsigned j = 0; j < 4; j++) {
        auto element = [&](unsigned row, unsigned column) {
            return unsigned(reinterpret_cast<const uint16_t*>(rows[8 * j + row])[column]);
        };
        x[j] = transposed ? element(2 * place, group) | element(2 * place + 1, group) << 16
                          : element(group, 2 * place) | element(group, 2 * place + 1) << 16;
    }
}

inline unsigned halves(float x, float y) { return emulation::to_half(x) | emulation::to_half(y) << 16; }
inline unsigned bfloats(float x, float y) { return emulation::to_bfloat(x) | emulation::to_bfloat(y) << 16; }
inline unsigned short half_bits(float x) { return static_cast<unsigned short>(emulation::to_half(x)); }
inline float first_half(unsigned x) { return emulation::from_half(x & 0xffff); }
inline float second_half(unsigned x) { return emulation::from_half(x >> 16); }

#undef EMULATION_HERE

using std::max;
using std::min;

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
inline unsigned __float_as_uint(float x) { return emulation::bits(x); }
inline float __uint_as_float(unsigned x) { return emulation::from_bits(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t bytes = uint64_t(y) << 32 | x;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++) result |= unsigned(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}
inline double __longlong_as_double(long long x)
{
    double y;
    memcpy(&y, &x, sizeof y);
    return y;
}
inline long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
