#include "fibers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace emulation {

#ifdef __SANITIZE_ADDRESS__
__thread Fiber* previous_fiber;
#endif

namespace {

constexpr size_t max_stacks = 1024; // the maximum number of threads per block
constexpr size_t guard_size = 64 << 10; // at least a page on any machine
constexpr size_t stack_size = 128 << 10;
constexpr size_t pitch = guard_size + stack_size;

// The data that switch_fiber pops from the stack of a new fiber.
struct Frame {
#if defined(__x86_64__)
    void (*entry)();
    void* frame_pointer;
    void* return_address; // in place of a caller's; aligns the stack as the entry expects
#else
    void* frame_pointer;
    void (*entry)();
#endif
};

// Neighbouring fibers run in turn with similar frames. If all stacks began at the same
// offset in their page, the same variables would compete for the same sets of the cache.
size_t colour(size_t index) { return index % 32 * 128; }

void check(bool ok)
{
    if (ok) return;
    perror("emulated device: stacks for a block's threads");
    abort();
}

} // namespace

Stacks::~Stacks()
{
    if (memory) munmap(memory, max_stacks * pitch);
}

void Stacks::prepare(Fiber& fiber, size_t index, void (*entry)())
{
    if (!memory) {
        memory = mmap(nullptr, max_stacks * pitch, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        check(memory != MAP_FAILED);
    }
    char* bottom = static_cast<char*>(memory) + index * pitch + guard_size;
    if (index == usable) {
        check(mprotect(bottom, stack_size, PROT_READ | PROT_WRITE) == 0);
        usable++;
    }
#ifdef __SANITIZE_ADDRESS__
    // The previous fiber's frames have left red zones.
    __asan_unpoison_memory_region(bottom, stack_size);
#endif
    Frame* frame = reinterpret_cast<Frame*>(bottom + stack_size - colour(index)) - 1;
    *frame = Frame();
    frame->entry = entry;
    fiber = Fiber();
    fiber.stack_pointer = frame;
    fiber.bottom = bottom;
    fiber.size = stack_size;
}

} // namespace emulation
