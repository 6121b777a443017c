package kernels

//go:generate go run ./_generate

// op is what an instruction of the row machine does. Vectors are rows of elements,
// numbers are doubles.
type op int32

const (
	opAddVV op = iota // vector dst[i] = a[i] + b[i], and so on
	opSubVV
	opMulVV
	opDivVV

	opAddVN // vector dst[i] = a[i] + b, b a number
	opSubVN
	opSubNV // b − a[i]
	opMulVN
	opDivVN
	opDivNV // b / a[i]

	opSqrt // vector dst[i] = √a[i]
	opAbs
	opSign        // −1, 0 or 1
	opNotNegative // 1 where a[i] ≥ 0, else 0
	opRelu        // max(a[i], 0)

	opRowSum // number dst = Σ a[i] of a vector a

	opAdd // number dst = a + b, and so on
	opSub
	opMul
	opDiv
	opRatio // a / b within [0, 1]; 1 where b is 0

	opStore         // row number dst = number a, for all to read
	opTotal         // number dst = Σ row number a over the rows
	opAccumulate    // number dst += number a
	opCountBelowOne // number dst += 1 if number a < 1
)

// instruction is as the kernels read it. Operands are indices of the body's vectors,
// of the program's numbers, or of the rows' numbers.
type instruction struct {
	op        op
	dst, a, b int32
}
