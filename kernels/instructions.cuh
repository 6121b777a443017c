// The row machine's instructions. instructions.go has the same names in the
// same order. Vectors a and b are indices of places, numbers a and b of
// numbers.

#pragma once

#include "device.cuh"

enum {
    OP_ADD_VV, // vector dst[i] = a[i] + b[i], and so on
    OP_SUB_VV,
    OP_MUL_VV,
    OP_DIV_VV,

    OP_ADD_VN, // vector dst[i] = a[i] + b, b a number
    OP_SUB_VN,
    OP_SUB_NV, // b − a[i]
    OP_MUL_VN,
    OP_DIV_VN,
    OP_DIV_NV, // b / a[i]

    OP_SQRT, // vector dst[i] = √a[i]
    OP_ABS,
    OP_SIGN,         // −1, 0 or 1
    OP_NOT_NEGATIVE, // 1 where a[i] ≥ 0, else 0
    OP_RELU,         // max(a[i], 0)

    OP_ROW_SUM, // number dst = Σ a[i] of a vector a

    OP_ADD, // number dst = a + b, and so on
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_RATIO, // a / b within [0, 1]; 1 where b is 0

    OP_STORE,          // row_numbers[dst][row] = number a
    OP_TOTAL,          // number dst = Σ row_numbers[a][row] over the rows
    OP_ACCUMULATE,     // number dst += number a
    OP_COUNT_BELOW_ONE // number dst += 1 if number a < 1
};

struct Instruction {
    int op, dst, a, b;
};

// Place is where a vector operand lives: row r starts at data + r·pitch.
// Without data it is the temporary row with the number pitch.
struct Place {
    float* data;
    long long pitch;
};

// arithmetic does OP_ADD to OP_RATIO. A NaN stays one.
__device__ __forceinline__ double arithmetic(int op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    default: // OP_RATIO
        if (b == 0)
            return 1;
        a /= b;
        return a < 0 ? 0 : a > 1 ? 1 : a;
    }
}
