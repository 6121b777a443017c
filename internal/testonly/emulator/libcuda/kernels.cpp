// The project's kernels. Every .cu file is compiled here, as host C++, and every kernel
// named once.
#include "grid.h"

#include "accumulate.cu"
#include "body.cu"
#include "codes.cu"
#include "correlate.cu"
#include "decode.cu"
#include "encode.cu"
#include "learner.cu"
#include "random.cu"

const std::vector<emulation::Kernel>& emulation::kernels()
{
    static const std::vector<Kernel> all = {
        EMULATION_KERNEL(accumulate_fp16),
        EMULATION_KERNEL(accumulate_fp32),
        EMULATION_KERNEL(accumulate_tf32),
        EMULATION_KERNEL(body),
        EMULATION_KERNEL(correlate_fp16),
        EMULATION_KERNEL(correlate_fp32),
        EMULATION_KERNEL(correlate_tf32),
        EMULATION_KERNEL(decode_ahead_fp16),
        EMULATION_KERNEL(decode_fp16),
        EMULATION_KERNEL(decode_fp32),
        EMULATION_KERNEL(decode_tf32),
        EMULATION_KERNEL(finish_codes),
        EMULATION_KERNEL(finish_codes_fp16),
        EMULATION_KERNEL(fista_fp16),
        EMULATION_KERNEL(fista_fp32),
        EMULATION_KERNEL(fista_residuals),
        EMULATION_KERNEL(fista_residuals_fp16),
        EMULATION_KERNEL(fista_tf32),
        EMULATION_KERNEL(gather),
        EMULATION_KERNEL(jacobi),
        EMULATION_KERNEL(keep_largest),
        EMULATION_KERNEL(keep_largest_fp16),
        EMULATION_KERNEL(pack_codes),
        EMULATION_KERNEL(pack_codes_fp16),
        EMULATION_KERNEL(power),
        EMULATION_KERNEL(random_codes),
        EMULATION_KERNEL(random_codes_fp16),
        EMULATION_KERNEL(remember_fp32),
        EMULATION_KERNEL(remember_tf32),
        EMULATION_KERNEL(row_scales),
        EMULATION_KERNEL(to_halves),
        EMULATION_KERNEL(totals),
        EMULATION_KERNEL(update_fp16),
    };
    return all;
}
