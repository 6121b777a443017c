// Package cpu runs the lowered training programs of package graph on the
// processor's cores.
//
// A program's values live where they are cheapest. Codes are compressed rows,
// kept in tiles of words that a worker rewrites whole; S and Q are the only V×K
// arrays; the first epoch's dense random codes are drawn when they are needed.
// A program that treats every word on its own (graph.Code) runs on as many
// tiles at a time as there are workers, and what it computes for a tile stays
// in that worker's cache. The others (graph.Dictionary) run step by step, each
// step split between the workers by words or by atoms.
//
// Products with D go through it in blocks of atoms that stay in cache while all
// words that a worker has in hand use them. A step's elementwise body is a list of simple loops
// over a row, or a row's part, that is still in cache from the product.
//
// No sum depends on how work is split: a row or an atom is summed by one worker
// in a fixed order, and totals over rows are added up in row order, in float64.
// Results are the same bits for any number of workers.
package cpu
