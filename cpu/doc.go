// Package cpu trains and encodes on the processor's cores. A [Device] makes the
// trainers of package train and the encoders of package encode. The loops that take the
// time are those of package internal/simd.
//
// # Training
//
// A trainer runs the programs of package graph. Each value of a program lives where
// that is cheapest:
//
//   - Codes are compressed rows, kept in tiles of consecutive words. A code pass
//     rewrites a tile whole. The first epoch's codes are dense and random: they are
//     drawn when a step needs them, and never stored.
//   - S and Q are the only arrays of V×K numbers: float32, or S and √Q as float16.
//   - Other results of a step are matrices of a batch's words or of the atoms.
//
// The code program treats every word on its own. Each worker runs all of it on one
// tile after another, so that what it computes for a tile stays in its cache. The
// dictionary program runs step by step, on all workers, which share out the words or
// the atoms.
//
// A product with D takes D in blocks of atoms that stay in cache while all words in
// hand use them. Three steps leave nothing of their products in memory:
//
//   - In a code pass, the products of a few words' residuals with a few atoms become
//     S, Q and codes while they are in level 1.
//   - In a dictionary pass, the products that move an atom become its rows of H, P and
//     D while they are in registers.
//   - If the batch is small, D is moved in parts, and the two products that come next,
//     of P for the line search and of D for the next batch's residuals, are made with
//     each part while it is still in cache.
//
// # Encoding
//
// An encoder runs no program. A step of FISTA is the same product of residuals with
// D, of which a kernel makes codes while the sums are in level 1, and the same
// product of sparse codes with D.
//
// # Same results for any number of workers
//
// A row or an atom is summed by one worker, in a fixed order. Where work is cut into
// parts that are added up later, it is cut by size and not by the number of workers.
// Totals over rows are added in the order of rows, in float64. So results are the
// same bits for any number of workers. Levels of instructions (see package internal/simd)
// round differently, and agree within what float32 allows.
package cpu
