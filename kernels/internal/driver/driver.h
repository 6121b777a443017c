#include <cuda.h>
#include <stdbool.h>

// open_driver loads the library and points the functions of functions.h to it. It
// returns NULL, or the message of dlerror, which the caller frees.
char *open_driver(const char *library);

// launch_kernel launches a kernel with one argument of any size. cu supports only 8 bytes.
CUresult launch_kernel(CUfunction f, unsigned x, unsigned y, unsigned threads, unsigned shared, bool cooperative, CUstream stream, void *argument);

// end_capture ends a capture and makes an executable graph of the work that was queued since
// cuStreamBeginCapture.
CUresult end_capture(CUstream stream, CUgraphExec *executable);

// start_driver calls the library's cuInit.
CUresult start_driver(void);
