// Package kernels runs the lowered training programs of package graph, the encoding of
// package encode, and learning online, on NVIDIA GPUs, through the CUDA driver.
//
// Support for GPUs is built with -tags gpu. Without the tag, the methods of [Device], and
// [GPUs], [Find] and [Count], return an error that wraps [ErrUnavailable]. With it, a program
// still starts on machines that have no driver (see package driver).
//
// # On the device
//
// X, S, Q and the codes A are dense matrices in device memory: 4·(L+3K) bytes a
// word; with the state float16, S and √Q are halves, 4K bytes less. Tensor cores
// want A dense. Words that don't fit all at once stay in page-locked host memory
// and stream through two slots, one being copied while kernels work on the other.
//
// Each typed step of a program, or each of the three that an update is made of, is a
// product, then what is done to each row, then what is done once:
//
//	decode, accumulate   the products, into scratch matrices
//	update               the latter's products of float16, and AdaGrad of the dictionary in
//	                     its epilogue
//	correlate            the product, and dual averaging of S, Q and A in its epilogue
//	body                 a step's elementwise work, as instructions for a row machine:
//	                     another loss is other instructions, not another kernel
//	totals               sums over rows, and arithmetic on them
//
// compile.go makes launches of a program: it translates instructions, some into one with
// the next, and recognises no steps. A pass only queues launches; the host waits at its
// end. Those of a dictionary pass have the same arguments in every epoch, if all words are
// on the device: they become a CUDA graph. The .cu files tell how the kernels work and what
// bounds them, abi.cuh declares their arguments for C++ and, through "go generate", for Go,
// and launch.go gives them their grids.
//
// An [Encoder] has another few kernels, for some thousands of rows at a time, and no
// program:
//
//	fista             a step of all codes, in the epilogue of the product
//	fista_residuals   what the rows' decoded codes leave, with their momentum
//	keep_largest      of each row's codes
//	row_scales        what rows are scaled by where codes are halves; to_halves makes halves of atoms
//
// A [Learner] has an encoder's, whose dictionary it moves where it is, on the device:
//
//	remember          sums of products of codes, with codes and with rows
//	forces            on each atom, of the others, the rows and its anchor
//	move_atoms        of a block of atoms, one after the other
//	move_wide_atoms   the same of long ones
//	power             ‖D‖₂², which the size of the next codes' steps comes from
//	gather            a batch of the rows, which are on the device if they fit
//
// # Sums
//
// Products are of TF32 factors, of factors in two TF32 parts, or of float16
// factors, added in float32. Float16 factors are in memory what they are: codes as such, D and
// the row machine's vectors as copies that it makes; scales.go says how they are scaled, and of
// encoders encoder_halves.go. Sums over rows are float64. Nothing is added atomically and no order
// depends on the device or on how words are split: a training gives the same
// bits on every run, an encoder's row the same code among whatever rows, and a batch of rows moves
// the dictionary to the same bits.
//
// # Tests
//
// Each kernel is compared with plain loops, in an interpreter of its PTX (package
// interpreter), which also finds races, accesses out of bounds and reads of what nobody
// wrote. That the tests would see a mistake is tested with mutants of the PTX.
//
// With -tags gpu tests run on a CUDA driver that package emulator makes of the host, and
// that runs the .cu files as C++. They are of the host's side: on it training, encoders and
// learners pass the suites that the CPU's pass, streams do their work in several orders,
// and launches and allocations are made to fail in turn. Each kernel is compared with the
// same loops, which takes seconds and tells whether the others' failures are a kernel's. The
// same tests run on a GPU with OVERCOMPLETE_LIBCUDA=libcuda.so.1.
//
// With -asan, too, the emulated driver has the address sanitizer, for what the interpreter
// can't see: that host and driver keep to the memory that they were given, for as long as
// they have it. The comparisons of single kernels are left out, of which the interpreter
// sees more, and so are launches that fail in turn, which do nothing else with memory.
//
// The further tag full has all launches fail instead of a sample, more mutants tried, and
// tests that take long.
package kernels

//go:generate go run ./_generate
