// Package kernels trains, encodes and learns online on NVIDIA GPUs, through the CUDA driver:
//
//	device := kernels.Device{Index: 0, Precision: "tf32"}
//	encoder, err := device.Encoder(dictionary, options)
//	if errors.Is(err, kernels.ErrUnavailable) {
//		encoder, err = cpu.Device{}.Encoder(dictionary, options)
//	}
//
// GPU support is built with -tags gpu. Without the tag, [GPUs], [Find] and the methods of [Device] return an
// error that wraps [ErrUnavailable]. A program built with the tag also starts on machines without a CUDA
// driver (see package driver).
//
// # Device memory
//
// The paper's training holds four dense matrices in device memory: the vectors X, the codes A, their sums of
// gradients S, and their sums of squared gradients Q. They require 4·(L+3K) bytes a row, or 4L+10K with fp16.
// Codes are dense because tensor cores need dense factors. If a training doesn't fit, the error of
// [Device.Trainer] states how many rows would fit.
//
// # Kernels
//
// Each pass of the paper's training runs a small program (package program). A step of the program launches a
// matrix product, then elementwise work on rows, then work on sums over rows:
//
//	decode, accumulate   products, stored in scratch matrices
//	correlate            product; its epilogue is dual averaging of S, Q and A
//	body                 elementwise work, as instructions of a row machine; a new loss needs new
//	                     instructions, but no new kernel
//	totals               sums over rows, and arithmetic on them
//
// With float16 factors, two kernels do more. The kernel update runs accumulate, with AdaGrad of the dictionary in the
// epilogue. The kernel update_codes runs the whole code step: decode, correlate, and decode of the new codes.
//
// compile.go translates programs to launches. A pass queues all its launches before the host waits. The
// launches of a dictionary pass are the same in every epoch with the same batch size. They become a CUDA graph
// if there are at most 1,024 batches. Encoders and learners run without programs, and have kernels of their
// own (search_*.cu, polish.cu, learner.cu), on blocks of some thousands of rows.
//
// Read product.cuh first: it explains the tiled matrix product that most kernels share. abi.cuh declares the
// arguments of the kernels, for C++ and, through "go generate", for Go. launch.go computes the grids.
//
// # Reproducibility
//
// Products have float32 sums. Their factors are TF32, pairs of TF32, or float16; scales.go explains the scales of
// float16. Sums over rows are float64. No sum uses atomic operations, and no order of addition depends
// on the device or on free memory. A training therefore gives the same bits in every run on GPUs of one
// generation. The search for codes multiplies 8-bit integers, and the polish of codes uses no tensor cores. So all
// GPUs compute the same codes for a dictionary, and a row has the same code whatever other rows are encoded with it.
//
// # Tests
//
// Without -tags gpu, tests run the PTX of each kernel in an interpreter (package interpreter), which also
// detects races, accesses out of bounds and reads of uninitialised memory. With -tags gpu, they run the host
// code on an emulated CUDA driver (package emulator), which runs the .cu files as C++ and can make launches and
// allocations fail. With OVERCOMPLETE_TEST_GPU=1 the same tests run on a GPU.
package kernels

//go:generate go run ./_generate
