// Package graph states the steps of training and encoding as Gorgonia expression graphs, which run.
//
// The paper's trainer:
//
//   - [Dictionary]: one step of the dictionary on a micro-batch of words.
//   - [Code]: new codes for a batch of words with the dictionary fixed.
//   - [Authors]: both for a single word, in the order of the paper's own program.
//   - [Evaluate]: the loss and the error alone.
//
// Encoding, and learning a dictionary online:
//
//   - [Encode]: a step of FISTA for a batch of words with the dictionary fixed.
//   - [Learn]: the destination of each atom, given the sums of products of all codes so far.
//
// The gradients of the loss are not written by hand. A loss is an expression of the residual (see [Loss]);
// [gorgonia.Grad] differentiates it. What is written by hand is no expression's gradient: the sum of the
// words' squared gradients in [Dictionary], which follows from the gradient with respect to X, and the
// gradient of a code in [Authors], where the residual of the old dictionary meets the new one.
//
// [Expression.Run] evaluates such a graph node by node: slow, independent, the oracle of every test.
// Devices run package internal/program, whose loss and gradient are lowered from [LossGradient].
package graph
