// Package simd has the loops that training and encoding on a CPU spend their time
// in, and knows nothing of either: products of matrices, products of sparse codes with
// matrices, and what becomes of their sums.
//
// # Levels
//
// [Kernels] are the loops for one level of instructions. Generic is plain Go, which
// runs everywhere and says what each loop computes (generic.go). AVX2 and AVX-512
// are generated: "go generate" runs _generate, which writes kernels_amd64.s. NEON is
// written by hand (kernels_arm64.s), and has plain Go for loops that take little of
// the time. Assembly takes its declarations and their doc comments from generic.go.
//
// [Choose] returns the processor's best level, or that which the environment variable
// OVERCOMPLETE_CPU names. With -tags noasm there is only generic.
//
// # Products
//
// A kernel makes a tile of a product, some rows by some columns, in registers. How
// large a tile is depends on the level, and only product.go knows. [Kernels.Multiply]
// adds a product to a matrix. [Kernels.Correlate] keeps no product: it hands finished
// sums to a function while they are in the nearest cache. Its right factor is packed
// once, into [Panels]. Tiles may reach beyond the edges of matrices, for which
// [Matrix] leaves room; rows are padded, so that loops over them have no remainder.
package simd
