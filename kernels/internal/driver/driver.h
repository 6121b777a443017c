#include <cuda.h>

// open_driver loads the library, so that the functions of functions.h are its
// own. It returns NULL, or what dlerror says, to be freed.
char *open_driver(const char *library);

// launch_kernel starts a kernel with one argument. cu copies arguments of 8 bytes only.
CUresult launch_kernel(CUfunction f, unsigned x, unsigned y, unsigned threads, unsigned shared, CUstream stream, void *argument);

// end_capture makes what a stream was given since cuStreamBeginCapture a graph to launch.
CUresult end_capture(CUstream stream, CUgraphExec *executable);

// start_driver is cuInit of the library.
CUresult start_driver(void);
