// The project's kernels. This file compiles every .cu file as host C++ and lists every
// kernel.
#include "grid.h"

#include "accumulate.cu"
#include "body.cu"
#include "codes.cu"
#include "correlate.cu"
#include "decode.cu"
#include "learner.cu"
#include "polish.cu"
#include "random.cu"
#include "search_1024.cu"
#include "search_128.cu"
#include "search_320.cu"
#include "search_384.cu"
#include "search_768.cu"
#include "search_any.cu"
#include "search_atoms.cu"
#include "update_codes.cu"

const std::vector<emulation::Kernel>& emulation::kernels()
{
    static const std::vector<Kernel> all = {
        EMULATION_KERNEL(accumulate_fp32),
        EMULATION_KERNEL(accumulate_tf32),
        EMULATION_KERNEL(body),
        EMULATION_KERNEL(correlate_fp32),
        EMULATION_KERNEL(correlate_tf32),
        EMULATION_KERNEL(decode_fp16),
        EMULATION_KERNEL(decode_fp32),
        EMULATION_KERNEL(decode_tf32),
        EMULATION_KERNEL(finish_codes),
        EMULATION_KERNEL(finish_codes_fp16),
        EMULATION_KERNEL(gather),
        EMULATION_KERNEL(jacobi),
        EMULATION_KERNEL(pack_codes),
        EMULATION_KERNEL(pack_codes_fp16),
        EMULATION_KERNEL(polish),
        EMULATION_KERNEL(power),
        EMULATION_KERNEL(random_codes),
        EMULATION_KERNEL(random_codes_fp16),
        EMULATION_KERNEL(remember),
        EMULATION_KERNEL(round_atoms),
        EMULATION_KERNEL(scale_atoms),
        EMULATION_KERNEL(search_1024),
        EMULATION_KERNEL(search_128),
        EMULATION_KERNEL(search_320),
        EMULATION_KERNEL(search_384),
        EMULATION_KERNEL(search_768),
        EMULATION_KERNEL(search_any),
        EMULATION_KERNEL(square),
        EMULATION_KERNEL(totals),
        EMULATION_KERNEL(update_codes),
        EMULATION_KERNEL(update_fp16),
    };
    return all;
}
