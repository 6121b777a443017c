// Fibers: many stacks on one OS thread, switched without system calls. (swapcontext makes
// two system calls per switch; a product kernel switches some hundred million times.)
#pragma once

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

// A suspended computation. A default-constructed Fiber stands for the OS thread's own
// stack; the first switch away from it sets the fields.
struct Fiber {
    void* stack_pointer = nullptr;
    // Bounds of the stack, which only AddressSanitizer needs.
    const void* bottom = nullptr;
    size_t size = 0;
    void* fake_stack = nullptr;
};

// Stacks, each with a guard below it.
class Stacks {
public:
    ~Stacks();
    // Makes a fiber on the index-th stack, which starts in entry and replaces the stack's
    // previous fiber. entry must first call fiber_started, and must never return. The
    // first calls must use the stacks in order.
    void prepare(Fiber& fiber, size_t index, void (*entry)());

private:
    void* memory = nullptr; // all stacks, reserved at the first use
    size_t usable = 0; // number of accessible stacks
};

#ifdef __SANITIZE_ADDRESS__
extern __thread Fiber* previous_fiber; // the fiber before the last switch

inline void fiber_started(Fiber& self)
{
    __sanitizer_finish_switch_fiber(self.fake_stack, &previous_fiber->bottom, &previous_fiber->size);
}
#else
inline void fiber_started(Fiber&) {}
#endif

// Continues `to` where it stopped; returns when another fiber switches back to `from`.
//
// It stores the return address and the frame pointer on the stack, and the stack pointer in
// `from`. All other registers are declared as clobbered. It is inlined, and it jumps: a return
// would defeat the processor's prediction of returns, because the lanes of a warp stop one
// after the other at one place and continue at another.
inline __attribute__((always_inline)) void switch_fiber(Fiber& from, Fiber& to)
{
#ifdef __SANITIZE_ADDRESS__
    previous_fiber = &from;
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
    void** save = &from.stack_pointer;
    void* load = to.stack_pointer;
#if defined(__x86_64__)
    asm volatile(
        "leaq -128(%%rsp), %%rsp\n\t" // skips the caller's red zone
        "pushq %%rbp\n\t"
        "leaq 1f(%%rip), %%rax\n\t"
        "pushq %%rax\n\t"
        "movq %%rsp, (%0)\n\t"
        "movq %1, %%rsp\n\t"
        "popq %%rax\n\t"
        "popq %%rbp\n\t"
        "jmpq *%%rax\n"
        "1:\n\t"
        "leaq 128(%%rsp), %%rsp"
        : "+D"(save), "+S"(load)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
          "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
          "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
          "cc", "memory");
#elif defined(__aarch64__)
    asm volatile(
        "adr x9, 1f\n\t"
        "stp x29, x9, [sp, #-16]!\n\t"
        "mov x9, sp\n\t"
        "str x9, [%0]\n\t"
        "mov sp, %1\n\t"
        "ldp x29, x9, [sp], #16\n\t"
        "br x9\n"
        "1:"
        : "+r"(save), "+r"(load)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
          "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3",
          "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19",
          "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",
#ifdef __ARM_FEATURE_SVE
          "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15",
#endif
          "cc", "memory");
#else
#error "fibers are written for x86-64 and arm64 only"
#endif
    fiber_started(from);
}

} // namespace emulation
