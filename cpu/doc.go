// Package cpu trains and encodes on the processor's cores, with the kernels of package internal/simd:
//
//	m, err := train.Fit(ctx, x, train.Best(), cpu.Device{}, train.Options{})
//
// X is V×L, the vectors. A is V×K, the codes. D is K×L, the dictionary.
//
// # Online learning
//
// A learner trains by the recipe "best". For each mini-batch it encodes the rows with D, adds AᵀA to G and AᵀX to B,
// and updates the atoms in blocks. One product gives GD − B for a panel of six blocks. After each block, a small
// product adds the effect of the block's moves on the later blocks of the panel.
//
// # Encoding
//
// The search of package encode keeps a list of atoms for each row of a worker's tile. One product of all rows with all
// atoms finds the atoms that enter. The steps without such a product, and the polish, run row by row on the listed atoms.
//
// # The paper's training
//
// A trainer runs the programs of package internal/program for the recipe "paper". S and Q are the sums of gradients
// and of squared gradients of the codes, H is the sum of squared gradients of D, and P the step of D. A tile stores
// the codes of consecutive rows as compressed rows, and a code pass rewrites it. The initial codes, which the first
// dictionary pass uses, are dense and random; each step draws the codes that it needs. S and Q are the only V×K
// arrays. The first pass of an epoch is the dictionary pass, and the second the code pass. In the authors' order, the
// first pass updates D and the codes, row by row, and the second measures the codes.
//
// The code program treats each row independently: a worker runs the whole program on one tile after another.
// The dictionary program runs step by step, with the rows or the atoms split between workers.
//
// A product with D reads D in blocks of atoms that stay in cache for all rows of a worker. Three steps
// consume their products before the products reach memory:
//
//   - A code pass turns the products of a few residuals and atoms into S, Q and codes in the level-1 cache.
//   - A dictionary pass turns the products of an atom into its rows of H, P and D in registers.
//   - For a small batch, P and D are computed in parts. While a part is in cache, codes are multiplied by the part
//     of P for the line search, and by the part of D for the residuals of the next batch.
//
// # Results independent of the number of workers
//
// Each sum over a row or an atom is computed by one worker, in a fixed order. The size of partial sums doesn't depend
// on the number of workers. Totals over rows are added in the order of rows, in float64. Results therefore have the
// same bits for any number of workers. Different instruction sets round differently, except in the search.
package cpu
