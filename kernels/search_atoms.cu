// Kernels that compute D8 and its scales for the search. Package encode defines the symbols.
#include "search.cuh"

// round_atoms computes tops = t_k, norms = ‖D8_k‖, D8 and, unless it is null, its transpose. It doesn't write their
// padding, which is zero in memory. A warp processes one atom at a time.
//
// Lower bound: 6·atoms·dim bytes.
extern "C" __global__ void __launch_bounds__(ROW_THREADS) round_atoms(RoundAtoms args)
{
    const int across_pitch = round_up(args.shape.atoms, SEARCH_DEPTH);
    const int lane = threadIdx.x % WARP;
    for (long long row = first_row(); row < args.shape.atoms; row += row_step()) {
        const float* atom = args.atoms + row * args.shape.dim_pitch;
        signed char* bytes = args.bytes + static_cast<long long>(row_place(row)) * args.pitch;
        unsigned top = 0;
        UNROLL_BY(1)
        for (int i = lane; i < args.shape.dim; i += WARP)
            top = max(top, bits_of(atom[i]));
        top = warp_max(top);
        const float factor = top >= LEAST_TOP ? 63 / __uint_as_float(top) : 0;
        int squares = 0;
        UNROLL_BY(1)
        for (int i = lane; i < args.shape.dim; i += WARP) {
            const int x = nearest(__fmul_rn(factor, atom[i]));
            bytes[i] = x;
            if (args.across)
                args.across[static_cast<long long>(row_place(i)) * across_pitch + row] = x;
            squares += x * x;
        }
        squares = warp_sum(squares);
        if (lane == 0) {
            args.tops[row] = __uint_as_float(top);
            args.norms[row] = static_cast<float>(sqrt(static_cast<double>(squares)));
        }
    }
}

// scale_atoms computes unit = w, shares = v_k, scales = c_k, and reach = max_k c_k·v_k·‖D8_k‖ from
// the results of round_atoms. Unless D8 is null, its padding receives c_k and v_k. It uses one block.
extern "C" __global__ void __launch_bounds__(SCALE_THREADS) scale_atoms(ScaleAtoms args)
{
    SHARED_MEMORY(unsigned, warps);
    unsigned top = 0, reach = 0;
    UNROLL_BY(1)
    for (int k = threadIdx.x; k < args.atoms; k += SCALE_THREADS)
        top = max(top, bits_of(args.tops[k]));
    top = block_max(warps, top);
    const double unit = static_cast<double>(__uint_as_float(top)) / 63, factor = 2 * *args.step * unit * unit;
    UNROLL_BY(1)
    for (int k = threadIdx.x; k < args.atoms; k += SCALE_THREADS) {
        const float share = bits_of(args.tops[k]) >= LEAST_TOP ? args.tops[k] / __uint_as_float(top) : 0;
        const float scale = static_cast<float>(factor * share);
        args.shares[k] = share;
        args.scales[k] = scale;
        if (args.bytes)
            *reinterpret_cast<float2*>(args.bytes + static_cast<long long>(row_place(k) + 1) * args.pitch - 16) = make_float2(scale, share);
        reach = max(reach, bits_of(__fmul_rn(__fmul_rn(scale, share), args.norms[k])));
    }
    reach = block_max(warps + SCALE_THREADS / WARP, reach);
    if (threadIdx.x == 0) {
        *args.unit = unit;
        *args.reach = __uint_as_float(reach);
    }
}
