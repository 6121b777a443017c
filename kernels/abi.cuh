// What the kernels and Go must agree on: constants, the row machine's instructions, and
// the arguments of kernels. "go generate" translates this file line by line to abi.go, so
// each declaration has a line of its own.
//
// LAYOUT(type, bytes, pointers) has both compilers check a struct's size. Padding is
// written out, so that a struct of the right size has each field where Go has it.
// Pointers come first: the emulated driver checks that so many of them are addresses of
// the device's memory.

#pragma once

// The row machine's instructions. Vectors a and b are indices of places, numbers a
// and b of numbers.
enum Op : int {
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
    OP_ROW_DOT, // number dst = Σ a[i]·b[i], of products that are rounded

    OP_ADD, // number dst = a + b, and so on
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_RATIO, // a / b within [0, 1]; 1 where b is 0

    OP_HALVES, // matrix of halves dst[i] = b·a[i] of a vector a and a number b, within their range

    OP_STORE,          // row_numbers[dst][row] = number a
    OP_TOTAL,          // number dst = Σ row_numbers[a][row] over the rows
    OP_ACCUMULATE,     // number dst += number a
    OP_COUNT_BELOW_ONE // number dst += 1 if number a < 1
};

struct Instruction {
    Op op;
    int dst;
    int a;
    int b;
};
LAYOUT(Instruction, 16, 0)

// Half is a number of IEEE's binary16, with 11 bits.
struct Half {
    unsigned short bits;
};
LAYOUT(Half, 2, 0)

// Where a vector operand lives: row r starts at data + r·pitch. Without data it is
// the temporary row with the number pitch. A matrix of halves has them there, and its
// pitch counts them.
struct Place {
    float* data;
    long long pitch;
};
LAYOUT(Place, 16, 1)

// Threads of a warp.
constexpr int WARP = 32;

// Most threads a block of the kernels in which a warp takes one row after the other.
// Any number of blocks will do.
constexpr int ROW_THREADS = 256;

// A block of totals; SHARED is its dynamic shared memory in bytes, a double a warp.
constexpr int TOTALS_THREADS = 1024;
constexpr int TOTALS_SHARED = 256;

// A block of decode, accumulate and correlate computes a tile of the result, ROWS ×
// COLUMNS; fista has correlate's. SHARED is dynamic shared memory in bytes: below the
// 99 KB of the smaller chips (sm_86, sm_89), and little enough for two blocks on an SM
// of the larger (sm_80, sm_90), but for what is ahead. product.cuh says what DEPTH and STAGES are.
constexpr int PRODUCT_THREADS = 256;

// Most blocks that share a tile of decode.
constexpr int MOST_SHARES = 8;

constexpr int DECODE_ROWS = 128;
constexpr int DECODE_COLUMNS = 64;
constexpr int DECODE_DEPTH = 32;
constexpr int DECODE_STAGES = 3;
constexpr int DECODE_SHARED = 82944;

constexpr int ACCUMULATE_ROWS = 128;
constexpr int ACCUMULATE_COLUMNS = 64;
constexpr int ACCUMULATE_DEPTH = 32;
constexpr int ACCUMULATE_STAGES = 3;
constexpr int ACCUMULATE_SHARED = 79872;

constexpr int CORRELATE_ROWS = 128;
constexpr int CORRELATE_COLUMNS = 128;
constexpr int CORRELATE_DEPTH = 32;
constexpr int CORRELATE_STAGES = 2; // three would need 108 KB
constexpr int CORRELATE_SHARED = 73728;

// The same of their kernels for halves.
constexpr int HALF_DECODE_ROWS = 128;
constexpr int HALF_DECODE_COLUMNS = 160;
constexpr int HALF_DECODE_DEPTH = 64;
constexpr int HALF_DECODE_STAGES = 2;
constexpr int HALF_DECODE_SHARED = 79872;
constexpr int AHEAD_HALF_DECODE_STAGES = 3; // where a block may have that much
constexpr int AHEAD_HALF_DECODE_SHARED = 119808;

constexpr int HALF_ACCUMULATE_ROWS = 128;
constexpr int HALF_ACCUMULATE_COLUMNS = 64;
constexpr int HALF_ACCUMULATE_DEPTH = 64;
constexpr int HALF_ACCUMULATE_STAGES = 3;
constexpr int HALF_ACCUMULATE_SHARED = 79872;

constexpr int HALF_CORRELATE_ROWS = 128;
constexpr int HALF_CORRELATE_COLUMNS = 128;
constexpr int HALF_CORRELATE_DEPTH = 64;
constexpr int HALF_CORRELATE_STAGES = 2; // three would need 108 KB
constexpr int HALF_CORRELATE_SHARED = 73728;

constexpr int REMEMBER_ROWS = 128;
constexpr int REMEMBER_COLUMNS = 128;
constexpr int REMEMBER_DEPTH = 32;
constexpr int REMEMBER_STAGES = 2;
constexpr int REMEMBER_SHARED = 69632;

// Most atoms that a launch of move_atoms moves: a multiple of REMEMBER_DEPTH, and of
// MOVE_TOGETHER, a multiple of 4, which a set of its threads has. A block of it has at most
// MOVE_THREADS. SHARED is its dynamic shared memory in bytes, and if there are several sets two
// rows more.
constexpr int BLOCK_ATOMS = 64;
constexpr int MOVE_TOGETHER = 8;
constexpr int MOVE_THREADS = 768;
constexpr int MOVE_SHARED = 17664;

// A block of power; its dynamic shared memory is a double a warp.
constexpr int POWER_THREADS = 1024;
constexpr int POWER_SHARED = 256;

// Columns of the result of fista that a warp has; a row's sum has a part for each.
constexpr int FISTA_COLUMNS = 32;

// The sizes of matrices, which are row-major: codes are words × atoms, a dictionary is
// atoms × dim, vectors are words × dim. A row begins code_pitch floats after the one
// before it in codes, and dim_pitch floats in the others, to be aligned to 16 bytes. The
// floats between the end of a row and the next row are zeros.
struct Shape {
    int words;
    int atoms;
    int dim;
    int code_pitch;
    int dim_pitch;
};
LAYOUT(Shape, 20, 0)

// The arguments of the kernels, a struct each. What a kernel does with them is said where
// it is defined.

// Blocks may share the depth of a tile. Then what they leave is `shares` products of words × dim,
// each share_pitch floats after the one before it, and their sum is meant.

struct Decode {
    float* product; // words × dim
    const float* codes;
    const float* atoms;
    long long share_pitch;
    Shape shape;
    int shares;
};
LAYOUT(Decode, 56, 3)

struct Accumulate {
    float* product; // atoms × dim
    float* squares; // atoms × dim
    const float* codes;
    const float* residuals; // words × dim
    Shape shape;
    char padding[4];
};
LAYOUT(Accumulate, 56, 4)

struct Correlate {
    float* codes;
    float* sum_g;           // S, words × atoms
    float* sum_q;           // Q, words × atoms
    const float* residuals; // words × dim
    const float* atoms;
    double gradient;
    double square;
    double threshold;
    double rate;
    Shape shape;
    bool nonnegative;
    char padding[3];
};
LAYOUT(Correlate, 96, 5)

// The kernels for halves, *_fp16, have factors that are `scale` times as large as what
// they stand for: a power of two, so that it can be taken back without rounding. A
// product's scale is that of the left times that of the right.

struct DecodeHalf {
    float* product; // words × dim
    const Half* codes;
    const Half* atoms;
    double scale;
    long long share_pitch;
    Shape shape;
    int shares;
};
LAYOUT(DecodeHalf, 64, 3)

struct AccumulateHalf {
    float* product; // atoms × dim
    float* squares; // atoms × dim
    const Half* codes;
    const Half* residuals; // words × dim
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(AccumulateHalf, 64, 4)

struct UpdateHalf {
    float* squares;        // H, atoms × dim
    float* steps;          // P, atoms × dim
    Half* step_halves;     // the same, step_scale times as large
    const float* atoms;    // D
    const Half* codes;
    const Half* residuals; // words × dim
    double c0; // over the product's scale, squared
    double c1; // over the product's scale
    double c2;
    double c3;
    double c4; // over the product's scale
    double epsilon;
    double step_scale;
    Shape shape;
    char padding[4];
};
LAYOUT(UpdateHalf, 128, 6)

struct CorrelateHalf {
    Half* codes;
    float* sum_g;          // S, words × atoms
    float* sum_q;          // Q, words × atoms
    const Half* residuals; // words × dim
    const Half* atoms;
    double gradient; // over the product's scale
    double square;   // over the product's scale, squared
    double threshold;
    double rate;
    double scale; // of the codes that are written
    Shape shape;
    bool nonnegative;
    char padding[3];
};
LAYOUT(CorrelateHalf, 104, 5)

// Codes are floats, scale 1, or halves.

struct FinishCodes {
    void* codes;
    const double* factors; // of words, or null
    double* nonzeros;      // of words
    double* l1;            // of words
    int* used;             // of atoms
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(FinishCodes, 72, 5)

struct PackCodes {
    const void* codes;
    const long long* starts; // of words
    int* index;
    float* value;
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(PackCodes, 64, 4)

struct RandomCodes {
    void* codes;
    unsigned long long seed;
    double most; // magnitude
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(RandomCodes, 56, 1)

struct Fista {
    const float* codes;     // b
    float* before;          // a, then b'
    float* against;         // words × parts: ⟨z − b', b' − b⟩
    const float* residuals; // words × dim
    const float* atoms;
    const float* momenta; // of words
    double size;
    double threshold;
    Shape shape;
    int parts;
    bool nonnegative;
    bool support; // whether what is −0 in b stays so
    char padding[6];
};
LAYOUT(Fista, 96, 6)

struct FistaHalf {
    const Half* codes;     // b
    Half* before;          // a, then b'
    float* against;        // words × parts: ⟨z − b', b' − b⟩
    const Half* residuals; // words × dim
    const Half* atoms;
    const float* momenta; // of words
    const float* scales;  // of words
    double size;          // times the scale of codes, over those of residuals and atoms
    double threshold;     // times the scale of codes
    Shape shape;
    int parts;
    bool nonnegative;
    char padding[7];
};
LAYOUT(FistaHalf, 104, 7)

struct FistaResiduals {
    void* residuals;      // words × dim
    float* momenta;       // of words
    double* losses;       // of words
    const float* y;       // words × dim
    const float* decoded; // words × dim: bD
    const float* last;    // words × dim: aD
    const float* against; // words × parts
    const float* scales;  // of words, with halves
    double momentum;
    double scale;          // of residuals that are halves
    long long share_pitch; // of decoded and of last
    Shape shape;
    int parts;
    int shares;
    char padding[4];
};
LAYOUT(FistaResiduals, 120, 8)

struct RowScales {
    float* scales;  // of words
    const float* y; // words × dim
    Shape shape;
    char padding[4];
};
LAYOUT(RowScales, 40, 2)

struct ToHalves {
    Half* halves;      // words × dim
    const float* rows; // words × dim
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(ToHalves, 48, 2)

// Codes that are halves are scale⁻¹·scales[row] times what they stand for.
struct KeepLargest {
    float* codes;
    const Half* halves;  // what there are instead, or null
    const float* scales; // of words, with halves
    double scale;
    Shape shape;
    int most;
};
LAYOUT(KeepLargest, 56, 3)

struct Remember {
    float* sums; // atoms × dim
    const float* codes;
    const float* rows; // words × dim
    double keep;
    Shape shape;
    bool symmetric; // rows are codes
    char padding[3];
};
LAYOUT(Remember, 56, 3)

struct Forces {
    float* forces;         // atoms × dim: P, then what is made of it
    const float* atoms;    // D, atoms × dim
    const float* products; // B, atoms × dim
    const float* anchors;  // W, atoms × dim
    const float* gram;     // G, atoms × atoms
    double pull;
    Shape shape;
    char padding[4];
};
LAYOUT(Forces, 72, 5)

struct MoveAtoms {
    float* atoms;        // of the block
    float* moves;        // atoms × dim
    const float* forces; // atoms × dim
    const float* gram;   // G, from the block's first element of the diagonal on
    double norm;
    double unused;
    double pull;
    Shape shape; // of the block, but for the pitches
    char padding[4];
};
LAYOUT(MoveAtoms, 80, 4)

struct Power {
    float* vector; // of dim, and of norm 1
    double* work;  // 2·dim, for the kernel's use
    double* value;
    const float* matrix; // dim × dim
    double tolerance;
    int most;
    int dim;
    int dim_pitch;
    char padding[4];
};
LAYOUT(Power, 56, 4)

struct Gather {
    float* batch;      // words × dim
    const float* rows; // any number × dim
    const int* index;  // of words: which rows
    Shape shape;
    char padding[4];
};
LAYOUT(Gather, 48, 3)

struct Body {
    const Instruction* program;
    const Place* places;
    float* input; // where vector 0 is, whatever its place says
    const double* numbers;
    double* row_numbers;
    long long row_pitch; // from one number's rows to the next one's
    int instructions;
    int number_count;
    int temps; // temporary rows
    int rows;
    int width; // of vectors
    char padding[4];
};
LAYOUT(Body, 72, 5)

struct Totals {
    const Instruction* program;
    double* numbers;
    const double* row_numbers;
    long long row_pitch;
    int instructions;
    int rows;
};
LAYOUT(Totals, 40, 3)
