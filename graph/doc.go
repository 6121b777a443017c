// Package graph states the training step once, as a Gorgonia expression graph,
// and lowers it to the short program that the executors run.
//
// These graphs make up the two algorithms of the package train:
//
//   - [Dictionary]: one step of the dictionary on a micro-batch of words. The
//     residual, its loss, the loss's gradients, AdaGrad and a line search.
//   - [Code]: new codes for a batch of words with the dictionary fixed. The
//     residual, the gradient, regularised dual averaging and the damping.
//   - [Authors]: both for a single word, in the order of the paper's own program.
//   - [Evaluate]: the loss alone.
//
// No gradient is written by hand. A loss is an expression of the residual (see
// [Loss]); [gorgonia.Grad] differentiates it, so that another loss is a choice
// made in one place.
//
// Gorgonia's [Tape] evaluates such a graph node by node, densely, in float32 or
// float64: slow, independent, the oracle of every test. For speed [Compile]
// lowers the graph to a [Program] in two stages. The first simplifies:
// broadcasts (Gorgonia's gradient of a sum is a chain of Repeat nodes over the
// constant 1) vanish, constants are folded and pulled out of products, equal
// expressions are shared and dead ones dropped. The second fuses what is left
// into a few steps, each of them a matrix product or two and the elementwise
// work that can be done while their result is still in a register or in cache.
// A backend compiles these steps and knows nothing about losses or gradients.
//
// Symbols: n words in the batch, K atoms, L dimensions of a dense vector. X is
// n×L (dense vectors), A n×K (codes), D K×L (dictionary), S and Q n×K (sum and
// sum of squares of a code's gradients), H K×L (sum of squares of the
// dictionary's), t the epoch.
package graph
