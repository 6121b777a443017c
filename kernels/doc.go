// Package kernels trains, encodes and learns online on NVIDIA GPUs, through the CUDA driver.
//
// Support for GPUs is built with -tags gpu. Without the tag, the methods of [Device], and [GPUs] and [Find],
// return an error that wraps [ErrUnavailable]. With it, a program still starts on machines without a
// driver (see package driver).
//
// # On the device
//
// X, S, Q and the codes A are dense matrices in device memory: 4·(L+3K) bytes a word; with the state
// float16, S and √Q are halves, 4K bytes less. Tensor cores need A dense. If not all words fit, [Device.Trainer]
// says how many do.
//
// Each step of a program, or each of the three of an update, launches a product, then the elementwise work on
// rows, then the work after all rows:
//
//	decode, accumulate   the products, into scratch matrices
//	update               accumulate with float16 factors, and AdaGrad of the dictionary in its epilogue
//	correlate            the product, and dual averaging of S, Q and A in its epilogue
//	body                 elementwise work, as instructions for a row machine: another loss is other
//	                     instructions, not another kernel
//	totals               sums over rows, and arithmetic on them
//
// compile.go translates programs to launches. A pass only queues launches; the host waits at its end. The
// launches of a dictionary pass have the same arguments in every epoch: they become a CUDA graph. The .cu
// files document the kernels. abi.cuh declares their arguments for C++ and, through "go generate", for Go;
// launch.go computes their grids.
//
// Encoders and learners have kernels of their own (encode.cu, learner.cu), for some thousands of rows at a
// time. A learner moves the dictionary of its encoder in device memory.
//
// # Sums
//
// Products have TF32 factors, factors in two TF32 parts, or float16 factors, added in float32; scales.go and
// encoder_halves.go document the scales of float16. Sums over rows are float64. Nothing is added atomically,
// and no order depends on the device or on how words are split: a training gives the same bits on every run,
// and a row the same code among any other rows.
//
// # Tests
//
// Without -tags gpu, tests run the PTX of each kernel in an interpreter (package interpreter), which also
// finds races, accesses out of bounds and reads of uninitialised memory. With -tags gpu, they run the
// host's side on an emulated CUDA driver (package emulator), which runs the .cu files as C++ and lets
// launches and allocations fail. With OVERCOMPLETE_TEST_GPU=1 the same tests run on a GPU.
package kernels

//go:generate go run ./_generate
