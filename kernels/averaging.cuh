// Regularised dual averaging (Xiao, 2010) of the codes, for correlate and update_codes.

#pragma once

#include "device.cuh"

// DualAveraging holds the constants of regularised dual averaging in one epoch:
//
//     S += gradient·p,  Q += square·p²,  u = |S| − threshold
//     code = 0 if u ≤ 0, else −sgn(S)·rate·u/√(Q + 1e-30); max(code, 0) if nonnegative
struct DualAveraging {
    float gradient, square, threshold, rate;
    float lowest; // codes below become 0: 0 if nonnegative, else −∞

    template <typename Args>
    __device__ __forceinline__ explicit DualAveraging(const Args& args)
        : gradient(float_once(args.gradient)), square(float_once(args.square)), threshold(float_once(args.threshold)),
          rate(float_once(args.rate)), lowest(args.nonnegative ? 0 : __uint_as_float(0xff800000))
    {
    }

    // code adds an element of p to its sums S and Q and returns the new code. A NaN
    // stays a NaN.
    __device__ __forceinline__ float code(float p, float& sum_g, float& sum_q) const
    {
        constexpr float EPSILON = 1e-30f;
        sum_g = fmaf(gradient, p, sum_g);
        sum_q = fmaf(square * p, p, sum_q);
        float inverse = inverse_sqrt(sum_q + EPSILON);
        float u = fabsf(sum_g) - threshold;
        float a = copysignf(rate * u * inverse, -sum_g);
        return u <= 0 || a < lowest ? 0 : a;
    }

    // codes does the same for four adjacent elements.
    __device__ __forceinline__ float4 codes(float4 p, float4& sum_g, float4& sum_q) const
    {
        return make_float4(code(p.x, sum_g.x, sum_q.x), code(p.y, sum_g.y, sum_q.y), code(p.z, sum_g.z, sum_q.z),
                           code(p.w, sum_g.w, sum_q.w));
    }
};
