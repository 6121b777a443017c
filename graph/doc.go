// Package graph states the steps of training and encoding once, as Gorgonia expression
// graphs, and lowers them to the short programs that the executors run.
//
// These graphs make up the paper's trainers in the package train:
//
//   - [Dictionary]: one step of the dictionary on a micro-batch of words. The
//     residual, its loss, the loss's gradients, AdaGrad and a line search.
//   - [Code]: new codes for a batch of words with the dictionary fixed. The
//     residual, the gradient, regularised dual averaging and the damping.
//   - [Authors]: both for a single word, in the order of the paper's own program.
//   - [Evaluate]: the loss and the error alone.
//
// These are the steps of early-stopped codes (package encode), and of a dictionary that
// is learned online with them:
//
//   - [Encode]: a step of FISTA for a batch of words with the dictionary fixed.
//   - [Learn]: where each atom goes, given the sums of products of all codes so far.
//
// The gradients of the loss are not written by hand. A loss is an expression of
// the residual (see [Loss]); [gorgonia.Grad] differentiates it, so that another
// loss is a choice made in one place. What is written by hand, because it is no
// expression's gradient: the sum of the words' squared gradients in [Dictionary],
// which follows from the gradient with respect to X, and the gradient of a code in
// [Authors], where the residual of the old dictionary meets the new one.
//
// Gorgonia's [Tape] evaluates such a graph node by node, densely, in float32 or
// float64: slow, independent, the oracle of every test. For speed [Compile]
// lowers the graph to a [Program] in three stages:
//
//  1. It simplifies (simplify.go). Broadcasts vanish (Gorgonia's gradient of a sum
//     is a chain of Repeat nodes over the constant 1), constants are folded and
//     pulled out of products, equal expressions are shared and dead ones dropped.
//  2. It drafts steps (schedule.go): each a matrix product or two, and the
//     elementwise work that can be done while their result is still in a register or
//     in cache.
//  3. It gives each draft a type, of the few that executors have kernels for, and
//     everything that it works on a place (place.go, fuse.go, whole.go). See [Step]
//     for the list; what is not in it is refused here.
//
// An executor runs the typed steps. It knows nothing about losses or gradients and
// need recognise nothing: one that has kernels for the list runs every program.
//
// Symbols: n words in the batch, K atoms, L dimensions of a dense vector. X is
// n×L (dense vectors), A n×K (codes), D K×L (dictionary), S and Q n×K (sum and
// sum of squares of a code's gradients), H K×L (sum of squares of the
// dictionary's), t the epoch; Z n×K the point beyond the codes, s the size of a step
// and m its momentum; G K×K and B K×L sums of products of codes with codes and words.
package graph
