//go:build gpu

// The CUDA driver is a shared library that comes with the GPU's kernel module,
// so that a program linked to it does not start where there is none. Instead,
// each function of it that is called is defined here, as a jump to where a
// pointer says: to a function that fails until the library is loaded, from then
// on to the library's own.

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

// Hidden: the library must not find these in place of its own.
#define HIDDEN __attribute__((visibility("hidden")))

static CUresult not_loaded(void) { return CUDA_ERROR_NOT_INITIALIZED; }
static CUresult not_there(void) { return CUDA_ERROR_NOT_SUPPORTED; }

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

// cu calls cuInit when a program starts, and exits when it fails. Many programs
// that could use a GPU do not, and starting the driver takes long: wait for
// start_driver.
HIDDEN CUresult cuInit(unsigned int flags) { return CUDA_SUCCESS; }

static void *library_cuInit;

char *open_driver(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    library_cuInit = handle != NULL ? dlsym(handle, "cuInit") : NULL;
    if (library_cuInit == NULL)
        return strdup(dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *f = dlsym(handle, functions[i].name);
        *functions[i].pointer = f != NULL ? f : not_there;
    }
    return NULL;
}

CUresult start_driver(void) { return ((CUresult (*)(unsigned int))library_cuInit)(0); }

CUresult launch_kernel(CUfunction f, unsigned x, unsigned y, unsigned threads, unsigned shared, CUstream stream, void *argument) {
    return cuLaunchKernel(f, x, y, 1, threads, 1, 1, shared, stream, &argument, NULL);
}

CUresult end_capture(CUstream stream, CUgraphExec *executable) {
    CUgraph graph = NULL;
    CUresult result = cuStreamEndCapture(stream, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    // The one name that has had these parameters in all versions since 11.4.
    result = cuGraphInstantiateWithFlags(executable, graph, 0);
    cuGraphDestroy(graph);
    return result;
}
