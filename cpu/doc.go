// Package cpu trains and encodes on the processor's cores, with the kernels of package internal/simd:
//
//	m, err := train.Fit(ctx, x, train.Best(), cpu.Device{}, train.Options{})
//
// # Training
//
// A trainer runs the programs of package internal/program. A tile stores the codes of consecutive words as
// compressed rows, and a code pass rewrites it. The codes of the first epoch are dense and random; steps draw
// them when they need them. S and Q are the only V×K arrays.
//
// The code program treats each word independently: a worker runs the whole program on one tile after another.
// The dictionary program runs step by step, with the words or the atoms split between workers.
//
// A product with D reads D in blocks of atoms that stay in cache for all words of a worker. Three steps
// consume their products before they reach memory:
//
//   - A code pass turns the products of a few residuals and atoms into S, Q and codes in the level-1 cache.
//   - A dictionary pass turns the products of an atom into its rows of H, P and D in registers.
//   - For a small batch, D is updated in parts. While a part is in cache, it is multiplied for the line search
//     (by P) and for the residuals of the next batch (by D).
//
// # Results independent of the number of workers
//
// One worker sums a row or an atom, in a fixed order. The size of partial sums doesn't depend on the number of
// workers. Totals over rows are added in the order of rows, in float64. Results therefore have the same bits
// for any number of workers. Different instruction sets round differently.
package cpu
