// This header precedes CUDA's own cuda.h in the include path, and includes it. In CUDA 13
// some names refer to new versions of their functions, with other parameters. It restores
// the older versions, which gorgonia.org/cu calls and the driver still exports. Older CUDA
// headers are included unchanged.
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
