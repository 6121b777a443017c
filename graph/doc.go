// Package graph specifies the steps of training and encoding as executable Gorgonia expression graphs.
//
// The paper's trainer has these steps:
//
//   - [Dictionary]: a dictionary update on a micro-batch of rows.
//   - [Code]: a code update for a batch of rows with the dictionary fixed.
//   - [Authors]: both updates for a single row, in the order of the authors' program.
//   - [Evaluate]: the loss and the error alone.
//
// Encoding and online dictionary learning have these:
//
//   - [Encode]: a FISTA iteration for a batch of rows with the dictionary fixed.
//   - [Learn]: the update of a block of atoms, given the sums of products of all codes so far.
//
// A loss is an expression of the residual (see [Loss]), which [gorgonia.Grad] differentiates. Two formulas
// are written by hand, because they are not the gradient of an expression. One is the sum of the rows'
// squared gradients in [Dictionary], which follows from the gradient by X. The other is the gradient of a code
// in [Authors], which combines the residual of the old dictionary with the new dictionary.
//
// [Expression.Run] evaluates a graph node by node. It is slow and independent of all devices, whose tests use
// it as their oracle:
//
//	step, err := graph.Evaluate(graph.Spec{Atoms: 3, Dim: 2}, 1)
//	out, err := step.Run(map[string][]float64{"X": {1, 2}, "A": {1, 0, 0}, "D": {1, 1, 0, 1, 1, 0}})
//	fmt.Println(out["loss"]) // [1]
//
// Devices run the paper's steps as programs of package internal/program, which lowers the loss and its gradient
// from [LossGradient]. For encoding and online learning they have loops of their own.
package graph
