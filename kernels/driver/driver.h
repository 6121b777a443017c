#include <cuda.h>

// open_driver loads the library, so that the functions of functions.h are its
// own. It returns NULL, or what dlerror says, to be freed.
char *open_driver(const char *library);

// start_driver is cuInit of the library.
CUresult start_driver(void);
