// Package cpu trains and encodes on the processor's cores. Its inner loops are those of package
// internal/simd.
//
// # Training
//
// A trainer runs the programs of package internal/program. Codes are compressed rows in tiles of consecutive
// words, which a code pass rewrites. The first epoch's codes are dense and random: they are drawn when a step
// needs them. S and Q are the only arrays of V×K numbers: float32, or S and √Q as float16.
//
// The code program treats every word on its own: each worker runs all of it on one tile after another. The
// dictionary program runs step by step, on all workers, which share the words or the atoms.
//
// A product with D takes D in blocks of atoms that stay in cache for all words of a worker. Three steps leave
// nothing of their products in memory:
//
//   - In a code pass, the products of a few words' residuals with a few atoms become S, Q and codes while they
//     are in level 1.
//   - In a dictionary pass, the products that move an atom become its rows of H, P and D while they are in
//     registers.
//   - If the batch is small, D is moved in parts, and the next two products, of P for the line search and of D
//     for the next batch's residuals, are computed with each part while it is in cache.
//
// # Same results for any number of workers
//
// A row or an atom is summed by one worker, in a fixed order. Parts that are added up later are cut by size
// and not by the number of workers. Totals over rows are added in the order of rows, in float64. Results
// have the same bits for any number of workers. Levels of instructions round differently.
package cpu
