// Found before CUDA's own cuda.h, this header includes that one and gives back the
// functions that CUDA 13 changed. There, plain names stand for newer versions of these
// functions, with other parameters; gorgonia.org/cu was written for the older ones, which
// the driver still has. Older CUDA headers pass through as they are.
#pragma once
#include_next <cuda.h>

#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);

#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);

#undef cuGraphAddDependencies
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t edges);

#undef cuGraphGetEdges
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *edges);

#undef cuMemAdvise
CUresult cuMemAdvise(CUdeviceptr start, size_t bytes, CUmem_advise advice, CUdevice device);

#undef cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(CUdeviceptr start, size_t bytes, CUdevice device, CUstream stream);
#endif
