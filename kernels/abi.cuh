// The interface between the kernels and Go: constants, instructions of the row machine,
// and the arguments of kernels. "go generate" translates this file line by line to
// abi.go, so each declaration needs a line of its own.
//
// LAYOUT(type, bytes, pointers) makes both compilers check the size of a struct. Padding
// is explicit, so that equal sizes mean equal offsets of all fields. Pointers precede
// other fields; the emulated driver checks that they are addresses in device memory.

#pragma once

// Instructions of the row machine (body.cu). The operands dst, a and b are indices: a
// vector is the index of its place, a number its index among the numbers.
enum Op : int {
    OP_ADD_VV, // vector dst[i] = a[i] + b[i]; the next three likewise
    OP_SUB_VV,
    OP_MUL_VV,
    OP_DIV_VV,

    OP_ADD_VN, // vector dst[i] = a[i] + number b
    OP_SUB_VN,
    OP_MUL_VN,

    OP_SQRT, // vector dst[i] = √a[i]
    OP_ABS,
    OP_SIGN, // −1, 0 or 1
    OP_RELU, // max(a[i], 0)

    OP_ROW_SUM, // number dst = Σ a[i] of a vector a
    OP_ROW_DOT, // number dst = Σ a[i]·b[i]; each product is rounded to float32

    OP_MUL,   // number dst = a · b
    OP_RATIO, // number dst = a / b clamped to [0, 1]; 1 if b is 0

    OP_HALVES, // float16 vector dst[i] = number b · a[i], clamped to the range of float16

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

// Half is a float16 number (IEEE binary16): 11 significant bits, at most 65504.
struct Half {
    unsigned short bits;
};
LAYOUT(Half, 2, 0)

// Place is the location of a vector operand. Row r begins at data + r·pitch; the pitch
// counts elements, which are float16 for OP_HALVES. If data is null, the operand is the
// temporary row number `pitch` in shared memory.
struct Place {
    float* data;
    long long pitch;
};
LAYOUT(Place, 16, 1)

// Threads of a warp.
constexpr int WARP = 32;

// Maximum threads per block of the kernels that process one row per warp. They work with
// any number of blocks.
constexpr int ROW_THREADS = 256;

// Threads of the block of totals, and its dynamic shared memory in bytes: a double per warp.
constexpr int TOTALS_THREADS = 1024;
constexpr int TOTALS_SHARED = 256;

// A block of decode, accumulate and correlate computes a tile of ROWS × COLUMNS of the
// result, in steps of DEPTH, with STAGES steps in shared memory (see product.cuh). SHARED is
// the dynamic shared memory in bytes, below the 99 KB of the smaller GPUs (sm_86, sm_89) and
// small enough for two blocks per SM of the larger ones (sm_80, sm_90).
constexpr int PRODUCT_THREADS = 256;

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
constexpr int CORRELATE_STAGES = 2; // three would need 108 KB of shared memory
constexpr int CORRELATE_SHARED = 73728;

// The same constants for the kernels with float16 factors.
constexpr int HALF_DECODE_ROWS = 64;
constexpr int HALF_DECODE_COLUMNS = 320;
constexpr int HALF_DECODE_DEPTH = 32;
constexpr int HALF_DECODE_STAGES = 3;
constexpr int HALF_DECODE_SHARED = 78336;
constexpr int HALF_DECODE_SHARES = 5; // blocks that share a tile in a dictionary update

constexpr int HALF_ACCUMULATE_ROWS = 128;
constexpr int HALF_ACCUMULATE_COLUMNS = 64;
constexpr int HALF_ACCUMULATE_DEPTH = 64;
constexpr int HALF_ACCUMULATE_STAGES = 3;
constexpr int HALF_ACCUMULATE_SHARED = 79872;

constexpr int REMEMBER_SIZE = 128; // rows and columns, because G is symmetric
constexpr int REMEMBER_DEPTH = 32;
constexpr int REMEMBER_STAGES = 2;
constexpr int REMEMBER_SHARED = 69632;
constexpr int SQUARE_SIZE = 64;
constexpr int SQUARE_STAGES = 4;
constexpr int SQUARE_SHARED = 73728;

// A block of update_codes updates the codes of UPDATE_CODES_ROWS rows of at most UPDATE_CODES_DIM
// elements, in tiles of UPDATE_CODES_ATOMS atoms.
constexpr int UPDATE_CODES_THREADS = 512;
constexpr int UPDATE_CODES_ROWS = 64;
constexpr int UPDATE_CODES_ATOMS = 32;
constexpr int UPDATE_CODES_DIM = 320;
constexpr int UPDATE_CODES_STAGES = 3;
constexpr int UPDATE_CODES_SUMS = 3;
constexpr int UPDATE_CODES_SHARED = 162304; // below the 163 KB of sm_80

// jacobi updates blocks of BLOCK_ATOMS atoms. Its thread blocks have at most JACOBI_THREADS threads, and JACOBI_SHARED bytes
// of dynamic shared memory: a float per warp and row. At most half of the threads process the same JACOBI_ROWS rows.
constexpr int BLOCK_ATOMS = 32;
constexpr int JACOBI_ROWS = 2;
constexpr int JACOBI_THREADS = 512;
constexpr int JACOBI_SHARED = 128;

// Threads of the block of power, and its dynamic shared memory in bytes: a double per warp.
constexpr int POWER_THREADS = 1024;
constexpr int POWER_SHARED = 256;

// A block of a search has SEARCH_ROWS rows. In search_block.cuh a tile has SEARCH_ATOMS atoms. In search_any.cu it has
// SEARCH_COLUMNS products of bytes, in steps of SEARCH_DEPTH bytes, with SEARCH_STAGES steps in shared memory.
constexpr int SEARCH_ATOMS = 64;
constexpr int SEARCH_THREADS = 256;
constexpr int SEARCH_ROWS = 32;
constexpr int SEARCH_COLUMNS = 256;
constexpr int SEARCH_DEPTH = 64;
constexpr int SEARCH_STAGES = 3;
constexpr int SEARCH_SHARED = 70144;

// Threads of the block of scale_atoms, and its dynamic shared memory in bytes.
constexpr int SCALE_THREADS = 1024;
constexpr int SCALE_SHARED = 256;

// Threads per row of polish, atoms that a warp processes at a time, and the dynamic shared memory in
// bytes without the state of a row and without atoms.
constexpr int POLISH_THREADS = 128;
constexpr int POLISH_BATCH = 8;
constexpr int POLISH_SHARED = 4864;

// Shape is the size of row-major matrices: codes are rows × atoms, a dictionary is
// atoms × dim, vectors are rows × dim. Rows begin every
// code_pitch elements in codes, and every dim_pitch elements in the others, so that they
// are aligned to 16 bytes. The padding between rows is zero.
struct Shape {
    int rows;
    int atoms;
    int dim;
    int code_pitch;
    int dim_pitch;
};
LAYOUT(Shape, 20, 0)

// The arguments of the kernels. The .cu files document the kernels.

struct Decode {
    float* product; // rows × dim
    const float* codes;
    const float* atoms;
    Shape shape;
    char padding[4];
};
LAYOUT(Decode, 48, 3)

struct Accumulate {
    float* product; // atoms × dim
    float* squares; // atoms × dim
    const float* codes;
    const float* residuals; // rows × dim
    Shape shape;
    char padding[4];
};
LAYOUT(Accumulate, 56, 4)

struct Correlate {
    float* codes;
    float* sum_g;           // S, rows × atoms
    float* sum_q;           // Q, rows × atoms
    const float* residuals; // rows × dim
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

// The kernels *_fp16 have float16 factors, which are scaled by powers of two. Dividing by
// such a scale is exact. The scale of a product is the product of its factors' scales.

// Several blocks may share a tile of decode, each with a part of the reduction (split-K). The
// result is then the sum of `shares` matrices of rows × dim, share_pitch floats apart.

struct DecodeHalf {
    float* product; // rows × dim
    const Half* codes;
    const Half* atoms;
    double scale;
    long long share_pitch;
    Shape shape;
    int shares;
};
LAYOUT(DecodeHalf, 64, 3)

struct UpdateHalf {
    float* squares;        // H, atoms × dim
    float* steps;          // P, atoms × dim
    Half* step_halves;     // step_scale·P
    const float* atoms;    // D
    const Half* codes;
    const Half* residuals; // rows × dim
    double c0; // divided by the product's scale squared
    double c1; // divided by the product's scale
    double c2;
    double c3;
    double c4; // divided by the product's scale
    double epsilon;
    double step_scale;
    Shape shape;
    char padding[4];
};
LAYOUT(UpdateHalf, 128, 6)

struct UpdateCodes {
    Half* codes;
    float* sum_g;    // S, rows × atoms
    float* sum_q;    // Q, rows × atoms
    double* factors; // per row: β
    double* losses;  // per row
    const float* x;  // rows × dim
    const Half* atoms;
    double gradient; // divided by the scale of residuals · atoms
    double square;   // divided by the square of this scale
    double threshold;
    double rate;
    double code_scale;
    double atom_scale;
    double residual_scale;
    Shape shape;
    bool nonnegative;
    char padding[3];
};
LAYOUT(UpdateCodes, 136, 7)

// The codes of these kernels are float32 with scale 1, or scaled float16.

struct FinishCodes {
    void* codes;
    const double* factors; // per row, or null
    double* nonzeros;      // per row
    double* l1;            // per row
    int* used;             // per atom
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(FinishCodes, 72, 5)

struct PackCodes {
    const void* codes;
    const long long* starts; // per row
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
    double max_magnitude;
    double scale;
    Shape shape;
    char padding[4];
};
LAYOUT(RandomCodes, 56, 1)

// An Iteration of FISTA: λ', the momentum after it, and whether atoms enter.
struct Iteration {
    double lambda;
    float momentum;
    int enters;
};
LAYOUT(Iteration, 16, 0)

// The arguments of the search have the symbols of package encode. Rows of dim bytes or floats begin
// every ⌈dim/SEARCH_DEPTH⌉·SEARCH_DEPTH elements, and rows of the transposed D8 every
// ⌈atoms/SEARCH_DEPTH⌉·SEARCH_DEPTH bytes. Rows of codes begin every ⌈atoms/SEARCH_COLUMNS⌉·SEARCH_COLUMNS
// elements. There are a multiple of SEARCH_ROWS rows of codes, and of 16 rows of D8 and of its transpose.

struct RoundAtoms {
    signed char* bytes;  // D8, atoms × dim
    signed char* across; // its transpose, dim × atoms
    float* tops;         // per atom: t_k
    float* norms;        // per atom: ‖D8_k‖
    const float* atoms;
    Shape shape;
    int pitch; // of D8
};
LAYOUT(RoundAtoms, 64, 5)

struct ScaleAtoms {
    float* shares; // per atom: v_k
    float* scales; // per atom: c_k
    double* unit;  // w
    float* reach;  // max_k c_k·v_k·‖D8_k‖
    signed char* bytes; // D8, or null
    const float* tops;
    const float* norms;
    const double* step; // s
    int atoms;
    int pitch; // of D8
};
LAYOUT(ScaleAtoms, 72, 8)

struct Search {
    float* codes;                // b, rows × atoms, in tiles (code_place)
    signed char* code_bytes;     // Z8, rows × atoms; zero beyond atoms
    int* flags;                  // per block of rows, tile of atoms and thread: bits of the stored z and b
    float* scaled;               // ŷ, rows × dim
    float* residuals;            // r, rows × dim
    signed char* residual_bytes; // R8, rows × dim; zero beyond dim
    double* factors;             // per row: e/w
    const float* y;              // rows × dim, with the pitch of the shape
    const signed char* bytes;
    const signed char* across;
    const float* shares; // zero beyond atoms
    const float* scales; // zero beyond atoms
    const double* unit;
    const float* reach;
    const Iteration* iterations;
    const double* step; // s
    int count;          // number of iterations
    int capacity;       // number of nonzeros from which on no atoms enter a code
    Shape shape;
    bool nonnegative;
    char padding[3];
};
LAYOUT(Search, 160, 16)

struct Polish {
    int* index;            // rows × max_nonzeros
    float* value;          // rows × max_nonzeros
    float* momentum_codes; // z, rows × max_nonzeros rounded up to a multiple of POLISH_BATCH
    float* residuals;      // rows × dim
    double* losses;        // per row
    double* nonzeros;      // per row
    double* l1;            // per row: Σ|a|
    float* dense;          // rows × atoms, or null
    int* used;             // per atom, if dense isn't null
    const float* codes;    // codes of the search
    const double* factors; // factors of the search
    const float* y;        // rows × dim
    const float* atoms;
    const Iteration* iterations;
    const double* step; // s
    int count; // number of iterations
    int max_nonzeros;
    int gathered; // number of atoms that fit into shared memory: all, or a multiple of POLISH_BATCH
    Shape shape;
    bool nonnegative;
    bool staged; // shared memory has room for the list and residual of a row
    char padding[6];
};
LAYOUT(Polish, 160, 15)

struct Remember {
    float* gram;     // G, atoms × atoms, with the pitch of codes
    float* products; // B, atoms × dim, or null
    const float* codes;
    const float* rows; // rows × dim, or null
    double decay;
    Shape shape;
    char padding[4];
};
LAYOUT(Remember, 64, 4)

struct Jacobi {
    float* atoms;          // D, atoms × dim
    float* decoded;        // GD, atoms × dim, then the moves
    const float* products; // B, atoms × dim
    const float* anchors;  // W, atoms × dim
    const float* gram;     // G
    int* updated;          // number of updated chunks of rows, 0 at first
    const double* loss;    // loss of the previous mini-batch
    double norm;
    double min_usage;
    double inverse_relaxation;
    double anchor_weight; // divided by loss
    Shape shape;
    int row_threads; // a multiple of WARP that divides the threads of a block
};
LAYOUT(Jacobi, 112, 7)

struct Power {
    float* vector; // dim: a unit vector
    double* work;  // 2·dim: scratch
    double* value; // the eigenvalue
    double* step;  // 1 / (margin · value)
    const float* matrix; // dim × dim
    double margin;
    double tolerance;
    int max_iterations;
    int dim;
    int dim_pitch;
    char padding[4];
};
LAYOUT(Power, 72, 5)

struct Gather {
    float* batch;      // rows × dim
    const float* rows; // any number of rows × dim
    const int* index;  // per row of batch: its index in rows
    Shape shape;
    char padding[4];
};
LAYOUT(Gather, 48, 3)

struct Body {
    const Instruction* program;
    const Place* places;
    float* input; // location of vector 0, instead of its place
    const double* numbers;
    double* row_numbers;
    long long row_pitch; // distance of the row numbers dst and dst + 1, in elements
    int instructions;
    int number_count;
    int temps; // temporary rows
    int rows;
    int width; // width of vectors
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
