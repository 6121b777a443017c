package kernels

// op is what an instruction of the row machine does; body.cu says how. The
// names and their order are those of instructions.cuh.
type op int32

const (
	opAddVV op = iota // vectors a and b
	opSubVV
	opMulVV
	opDivVV

	opAddVN // a vector a and a number b
	opSubVN
	opSubNV // b − a
	opMulVN
	opDivVN
	opDivNV // b / a

	opSqrt // vector a
	opAbs
	opSign
	opNotNegative
	opRelu

	opRowSum // a number, from vector a

	opAdd // numbers a and b
	opSub
	opMul
	opDiv
	opRatio

	opStore // a row's number, for all to read
	opTotal // a number, from those of all rows
	opAccumulate
	opCountBelowOne
)

// instruction is as the kernels read it. Operands are indices of the step's
// vectors, of the program's numbers, or of the rows' numbers.
type instruction struct {
	op        op
	dst, a, b int32
}
