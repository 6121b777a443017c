// Package simd implements the inner loops of training and encoding on a CPU. The
// loops multiply matrices, multiply sparse codes with matrices, and update atoms and codes.
//
//	k, _, err := simd.Choose()
//	out := simd.NewMatrix(100, 50)
//	k.Multiply(out, 100, codes.View(0, 0), atoms, 3000) // out += codes · atoms
//
// # Levels
//
// A level is a set of instructions; [Kernels] holds the loops of one level. The level
// generic is plain Go, runs on every processor and defines the results (generic.go).
// AVX2 and AVX-512 are generated: "go generate" runs _generate, which writes
// kernels_amd64.s. Some of the loops are written by hand for NEON (kernels_arm64.s); the
// other loops of the level neon are plain Go. The doc comments in generic.go describe the assembly, too.
// The levels avxvnni, avx512vnni and dotprod differ from avx2, avx512 and neon only in products
// of 8-bit integers, for which processors have special instructions. All levels of a processor
// except generic give the same bits in encoding and in online learning.
//
// [Choose] returns the processor's best level, or the level in the environment variable
// OVERCOMPLETE_CPU. With -tags noasm generic is the only level.
//
// # Products
//
// A kernel computes a tile of a product, some rows by some columns, in registers. The
// level determines the size of a tile; only product.go depends on this size.
// [Kernels.Multiply] adds a product to a matrix. [Kernels.Correlate] doesn't store the
// product: it passes sums to a function while they are in the level-1 cache. The right
// factor is packed once, into [Panels]. Tiles may reach beyond the edges of matrices;
// [Matrix] allocates memory for that. Rows are padded, so that loops have no remainder.
//
// # Bytes
//
// The search of package encode multiplies 8-bit integers. [Coarse] is a dictionary in 8-bit
// integers. The kernels of the search compute the same bits at every level.
package simd
