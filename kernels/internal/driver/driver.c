//go:build gpu

// The CUDA driver, libcuda.so, is installed with the GPU's kernel module. A
// program that is linked to it doesn't start on machines without one. This file
// therefore defines every function of the driver that the program calls, as a jump
// through a pointer. The pointer is the address of not_loaded, until open_driver
// replaces it by the address in the library.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "driver.h"

#if defined(__linux__) && defined(__x86_64__)
#define JUMP(pointer) "jmp *" pointer "(%rip)\n"
#elif defined(__linux__) && defined(__aarch64__)
#define JUMP(pointer) \
    "adrp x16, " pointer "\n" \
    "ldr x16, [x16, :lo12:" pointer "]\n" \
    "br x16\n"
#else
#error "GPU support is for Linux on amd64 and arm64"
#endif

// Hidden, so that the library does not resolve its own symbols to these.
#define HIDDEN __attribute__((visibility("hidden")))

static CUresult not_loaded(void) { return CUDA_ERROR_NOT_INITIALIZED; }
static CUresult not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define FUNCTION(name) \
    HIDDEN void *name##_pointer = not_loaded; \
    __asm__(".pushsection .text\n" \
        ".globl " #name "\n" \
        ".hidden " #name "\n" \
        ".type " #name ", %function\n" \
        #name ":\n" \
        JUMP(#name "_pointer") \
        ".size " #name ", . - " #name "\n" \
        ".popsection\n");
#include "functions.h"
#undef FUNCTION

static const struct {
    const char *name;
    void **pointer;
} functions[] = {
#define FUNCTION(name) {#name, &name##_pointer},
#include "functions.h"
#undef FUNCTION
};

// cu calls cuInit when a program starts, and exits if it fails. Initialising the
// driver is slow and most runs do not use a GPU, so start_driver does it later.
HIDDEN CUresult cuInit(unsigned int flags) { return CUDA_SUCCESS; }

static void *library_cuInit;

char *open_driver(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    library_cuInit = handle != NULL ? dlsym(handle, "cuInit") : NULL;
    if (library_cuInit == NULL)
        return strdup(dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *f = dlsym(handle, functions[i].name);
        *functions[i].pointer = f != NULL ? f : not_supported;
    }
    return NULL;
}

CUresult start_driver(void) { return ((CUresult (*)(unsigned int))library_cuInit)(0); }

CUresult launch_kernel(CUfunction f, unsigned x, unsigned y, unsigned threads, unsigned shared, bool cooperative, CUstream stream, void *argument) {
    if (cooperative)
        return cuLaunchCooperativeKernel(f, x, y, 1, threads, 1, 1, shared, stream, &argument);
    return cuLaunchKernel(f, x, y, 1, threads, 1, 1, shared, stream, &argument, NULL);
}

CUresult end_capture(CUstream stream, CUgraphExec *executable) {
    CUgraph graph = NULL;
    CUresult result = cuStreamEndCapture(stream, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    // The only variant with the same parameters in all versions since 11.4.
    result = cuGraphInstantiateWithFlags(executable, graph, 0);
    cuGraphDestroy(graph);
    return result;
}
