//go:build !noasm

#include "textflag.h"

// NEON has registers of four floats. The declarations describe the kernels. The assembler
// lacks these instructions on four floats, d = n op m:
#define FMUL4(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FADD4(m, n, d) WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB4(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d))
#define FDIV4(m, n, d) WORD $(0x6E20FC00 | (m)<<16 | (n)<<5 | (d))
#define FMAX4(m, n, d) WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d))
#define FABS4(n, d) WORD $(0x4EA0F800 | (n)<<5 | (d))
#define FSQRT4(n, d) WORD $(0x6EA1F800 | (n)<<5 | (d))
#define FCMGT4(n, d) WORD $(0x4EA0C800 | (n)<<5 | (d)) // ones where n > 0
#define BIC16(m, n, d) WORD $(0x4E601C00 | (m)<<16 | (n)<<5 | (d)) // n &^ m
#define FMAXV4(n, d) WORD $(0x6E30F800 | (n)<<5 | (d)) // the largest element

// A row of product: one element of a times eight of b.
#define ROW(a, low, high) \
	VLD1R.P (a)(R8), [V2.S4]      \
	VFMLA   V0.S4, V2.S4, low.S4  \
	VFMLA   V1.S4, V2.S4, high.S4

#define STEP \
	VLD1.P (R9)(R10), [V0.S4, V1.S4] \
	ROW(R0, V16, V17)                \
	ROW(R1, V18, V19)                \
	ROW(R2, V20, V21)                \
	ROW(R3, V22, V23)                \
	ROW(R4, V24, V25)                \
	ROW(R5, V26, V27)                \
	ROW(R6, V28, V29)                \
	ROW(R7, V30, V31)

// func productNEON(dst *float32, dstRow int, a *float32, aRow, aColumn int, b *float32, bRow, n int, s, q *byte, sRow, sRows, every int)
TEXT ·productNEON(SB), NOSPLIT, $0-104
	// Sums of 8 × 8 in V16 to V31, starting from dst.
	MOVD   dst+0(FP), R16
	MOVD   dstRow+8(FP), R17
	LSL    $2, R17
	VLD1.P (R16)(R17), [V16.S4, V17.S4]
	VLD1.P (R16)(R17), [V18.S4, V19.S4]
	VLD1.P (R16)(R17), [V20.S4, V21.S4]
	VLD1.P (R16)(R17), [V22.S4, V23.S4]
	VLD1.P (R16)(R17), [V24.S4, V25.S4]
	VLD1.P (R16)(R17), [V26.S4, V27.S4]
	VLD1.P (R16)(R17), [V28.S4, V29.S4]
	VLD1   (R16), [V30.S4, V31.S4]

	MOVD a+16(FP), R0
	MOVD aRow+24(FP), R8
	LSL  $2, R8
	ADD  R8, R0, R1
	ADD  R8, R1, R2
	ADD  R8, R2, R3
	ADD  R8, R3, R4
	ADD  R8, R4, R5
	ADD  R8, R5, R6
	ADD  R8, R6, R7
	MOVD aColumn+32(FP), R8
	LSL  $2, R8
	MOVD b+40(FP), R9
	MOVD bRow+48(FP), R10
	LSL  $2, R10
	MOVD n+56(FP), R11
	MOVD s+64(FP), R12
	MOVD q+72(FP), R13
	MOVD sRow+80(FP), R14
	MOVD sRows+88(FP), R15
	CBZ  R15, loop

prefetch:
	PRFM (R12), PLDL2KEEP
	PRFM (R13), PLDL2KEEP
	ADD  R14, R12
	ADD  R14, R13
	MOVD every+96(FP), R16

steps:
	STEP
	SUB  $1, R11
	CBZ  R11, done
	SUB  $1, R16
	CBNZ R16, steps
	SUB  $1, R15
	CBNZ R15, prefetch

loop:
	STEP
	SUB  $1, R11
	CBNZ R11, loop

done:
	MOVD   dst+0(FP), R16
	VST1.P [V16.S4, V17.S4], (R16)(R17)
	VST1.P [V18.S4, V19.S4], (R16)(R17)
	VST1.P [V20.S4, V21.S4], (R16)(R17)
	VST1.P [V22.S4, V23.S4], (R16)(R17)
	VST1.P [V24.S4, V25.S4], (R16)(R17)
	VST1.P [V26.S4, V27.S4], (R16)(R17)
	VST1.P [V28.S4, V29.S4], (R16)(R17)
	VST1   [V30.S4, V31.S4], (R16)
	RET

// func peakNEON(n int)
TEXT ·peakNEON(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
	VEOR V0.B16, V0.B16, V0.B16

loop:
	VFMLA V0.S4, V0.S4, V16.S4
	VFMLA V0.S4, V0.S4, V17.S4
	VFMLA V0.S4, V0.S4, V18.S4
	VFMLA V0.S4, V0.S4, V19.S4
	VFMLA V0.S4, V0.S4, V20.S4
	VFMLA V0.S4, V0.S4, V21.S4
	VFMLA V0.S4, V0.S4, V22.S4
	VFMLA V0.S4, V0.S4, V23.S4
	VFMLA V0.S4, V0.S4, V24.S4
	VFMLA V0.S4, V0.S4, V25.S4
	VFMLA V0.S4, V0.S4, V26.S4
	VFMLA V0.S4, V0.S4, V27.S4
	VFMLA V0.S4, V0.S4, V28.S4
	VFMLA V0.S4, V0.S4, V29.S4
	VFMLA V0.S4, V0.S4, V30.S4
	VFMLA V0.S4, V0.S4, V31.S4
	SUB   $1, R0
	CBNZ  R0, loop
	RET

// Appends code i of the four in V5, of columns from R6 on, if it isn't 0.
#define CODE(i) \
	VMOV  V5.S[i], R7        \
	MOVW  R7, (R1)(R10<<2)   \
	ADD   $i, R6, R8         \
	MOVW  R8, (R0)(R10<<2)   \
	LSLW  $1, R7             \
	CMPW  $0, R7             \
	CSINC EQ, R10, R10, R10

// Parameters are in V16 to V20, ε = 1e-30 in V21, signs in V22. If four codes are zero,
// everything after S and Q is skipped.
//
// func averageNEON(index []int32, value, p, s, q []float32, column int32, gradient, square, threshold, rate, floor float32) (n int)
TEXT ·averageNEON(SB), NOSPLIT, $0-152
	MOVD index_base+0(FP), R0
	MOVD value_base+24(FP), R1
	MOVD p_base+48(FP), R2
	MOVD p_len+56(FP), R5
	MOVD s_base+72(FP), R3
	MOVD q_base+96(FP), R4
	MOVW column+120(FP), R6
	MOVWU gradient+124(FP), R7
	VDUP  R7, V16.S4
	MOVWU square+128(FP), R7
	VDUP  R7, V17.S4
	MOVWU threshold+132(FP), R7
	VDUP  R7, V18.S4
	MOVWU rate+136(FP), R7
	VDUP  R7, V19.S4
	MOVWU floor+140(FP), R7
	VDUP  R7, V20.S4
	MOVD  $0x0DA24260, R7
	VDUP  R7, V21.S4
	MOVD  $0x80000000, R7
	VDUP  R7, V22.S4
	MOVD  ZR, R10 // number of appended elements
	CBZ   R5, done

loop:
	VLD1.P 16(R2), [V0.S4]
	VLD1   (R3), [V1.S4]
	VLD1   (R4), [V2.S4]
	VFMLA  V16.S4, V0.S4, V1.S4
	FMUL4(0, 0, 0)
	VFMLA  V17.S4, V0.S4, V2.S4
	VST1.P [V1.S4], 16(R3)
	VST1.P [V2.S4], 16(R4)
	FABS4(1, 3)
	FSUB4(18, 3, 3)          // u
	FMAXV4(3, 4)
	FCMPS  $(0.0), F4
	BLS    next              // not if it is a NaN: others may be positive
	FADD4(21, 2, 2)
	FSQRT4(2, 2)
	FMUL4(19, 3, 5)
	FDIV4(2, 5, 5)
	FCMGT4(3, 6)
	VAND V6.B16, V5.B16, V5.B16
	BIC16(1, 22, 6)          // signs opposite to S
	VORR V6.B16, V5.B16, V5.B16
	FMAX4(20, 5, 5)
	CODE(0)
	CODE(1)
	CODE(2)
	CODE(3)

next:
	ADD  $4, R6
	SUB  $4, R5
	CBNZ R5, loop

done:
	MOVD R10, n+144(FP)
	RET

// Sets R9 to the next nonzero's row of the matrix at R3, and V0 to its value. R1 is the list
// of rows, R2 the values, R6 the end of the list, R5 the width of a row, and R13 the end of
// the previous part of the row.
#define NONZERO(done) \
	CMP    R6, R8           \
	BEQ    done             \
	MOVW   (R8), R9         \
	CMP    R7, R9           \
	BGE    done             \
	MADD   R5, R3, R9, R9   \
	ADD    $4, R8           \
	VLD1R.P 4(R10), [V0.S4]

// dst stays in registers, 64 or 16 elements at a time.
//
// func decodeNEON(dst []float32, index []int32, value, d []float32, dim int, end int32) (n int)
TEXT ·decodeNEON(SB), NOSPLIT, $0-120
	MOVD dst_base+0(FP), R0
	MOVD dst_len+8(FP), R4
	MOVD index_base+24(FP), R1
	MOVD index_len+32(FP), R6
	ADD  R6<<2, R1, R6
	MOVD value_base+48(FP), R2
	MOVD d_base+72(FP), R3
	MOVD dim+96(FP), R5
	LSL  $2, R5
	MOVW end+104(FP), R7
	LSL  $2, R4

row:
	MOVD R1, R8
	MOVD R2, R10
	CMP  $256, R4
	BLT  few
	MOVD   R0, R11
	VLD1.P 64(R11), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R11), [V20.S4, V21.S4, V22.S4, V23.S4]
	VLD1.P 64(R11), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1   (R11), [V28.S4, V29.S4, V30.S4, V31.S4]

many64:
	NONZERO(done64)
	VLD1.P 64(R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA  V0.S4, V4.S4, V16.S4
	VFMLA  V0.S4, V5.S4, V17.S4
	VFMLA  V0.S4, V6.S4, V18.S4
	VFMLA  V0.S4, V7.S4, V19.S4
	VLD1.P 64(R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA  V0.S4, V4.S4, V20.S4
	VFMLA  V0.S4, V5.S4, V21.S4
	VFMLA  V0.S4, V6.S4, V22.S4
	VFMLA  V0.S4, V7.S4, V23.S4
	VLD1.P 64(R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA  V0.S4, V4.S4, V24.S4
	VFMLA  V0.S4, V5.S4, V25.S4
	VFMLA  V0.S4, V6.S4, V26.S4
	VFMLA  V0.S4, V7.S4, V27.S4
	VLD1   (R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA  V0.S4, V4.S4, V28.S4
	VFMLA  V0.S4, V5.S4, V29.S4
	VFMLA  V0.S4, V6.S4, V30.S4
	VFMLA  V0.S4, V7.S4, V31.S4
	B      many64

done64:
	MOVD   R8, R13
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R0)
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R0)
	VST1.P [V28.S4, V29.S4, V30.S4, V31.S4], 64(R0)
	ADD  $256, R3
	SUB  $256, R4
	B    row

few:
	CBZ  R4, end
	VLD1 (R0), [V16.S4, V17.S4, V18.S4, V19.S4]

many16:
	NONZERO(done16)
	VLD1  (R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	VFMLA V0.S4, V4.S4, V16.S4
	VFMLA V0.S4, V5.S4, V17.S4
	VFMLA V0.S4, V6.S4, V18.S4
	VFMLA V0.S4, V7.S4, V19.S4
	B     many16

done16:
	MOVD   R8, R13
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	ADD  $64, R3
	SUB  $64, R4
	CMP  $0, R4
	BNE  row

end:
	SUB  R1, R13
	LSR  $2, R13
	MOVD R13, n+112(FP)
	RET

// Four elements of an atom, with M in m and N in n.
#define MOVE(m, n, M, N) \
	VLD1  (R12), [V1.S4]        \
	VLD1  (R0), [V2.S4]         \
	FMUL4(26, 1, 3)             \
	VFMLA V25.S4, M.S4, V3.S4   \
	FMUL4(24, n, n)             \
	VFMLA V1.S4, V3.S4, N.S4    \
	FMAX4(31, n, n)             \
	FADD4(2, n, n)              \
	VST1.P [N.S4], 16(R0)       \
	FMUL4(28, m, m)             \
	VFMLA V27.S4, V1.S4, M.S4   \
	FADD4(29, n, n)             \
	FSQRT4(n, n)                \
	FDIV4(n, m, m)              \
	VST1.P [M.S4], 16(R11)      \
	VFMLA V30.S4, M.S4, V1.S4   \
	VST1.P [V1.S4], 16(R12)

// M and N stay in registers, 16 elements at a time.
//
// func moveAtomNEON(h, p, d, m, n []float32, index []int32, value, r []float32, dim int, c0, c1, c2, c3, c4, epsilon, step float32)
TEXT ·moveAtomNEON(SB), NOSPLIT, $0-228
	MOVD  h_base+0(FP), R0
	MOVD  h_len+8(FP), R4
	MOVD  p_base+24(FP), R11
	MOVD  d_base+48(FP), R12
	MOVD  m_base+72(FP), R13
	MOVD  n_base+96(FP), R14
	MOVD  index_base+120(FP), R1
	MOVD  index_len+128(FP), R6
	ADD   R6<<2, R1, R6
	MOVD  value_base+144(FP), R2
	MOVD  r_base+168(FP), R3
	MOVD  dim+192(FP), R5
	LSL   $2, R5
	MOVWU c0+200(FP), R7
	VDUP  R7, V24.S4
	MOVWU c1+204(FP), R7
	VDUP  R7, V25.S4
	MOVWU c2+208(FP), R7
	VDUP  R7, V26.S4
	MOVWU c3+212(FP), R7
	VDUP  R7, V27.S4
	MOVWU c4+216(FP), R7
	VDUP  R7, V28.S4
	MOVWU epsilon+220(FP), R7
	VDUP  R7, V29.S4
	MOVWU step+224(FP), R7
	VDUP  R7, V30.S4
	VEOR  V31.B16, V31.B16, V31.B16
	MOVD  $0x7fffffff, R7                             // only the list ends the loop

row:
	CBZ    R4, end
	ADD    R5, R0, R15
	PRFM   (R15), PLDL1KEEP
	ADD    R5, R11, R15
	PRFM   (R15), PLDL1KEEP
	ADD    R5, R12, R15
	PRFM   (R15), PLDL1KEEP
	MOVD   R1, R8
	MOVD   R2, R10
	VLD1.P 64(R13), [V16.S4, V17.S4, V18.S4, V19.S4]
	VLD1.P 64(R14), [V20.S4, V21.S4, V22.S4, V23.S4]

many:
	NONZERO(done)
	VLD1  (R9), [V4.S4, V5.S4, V6.S4, V7.S4]
	FMUL4(0, 4, 4)
	FMUL4(0, 5, 5)
	FMUL4(0, 6, 6)
	FMUL4(0, 7, 7)
	FADD4(4, 16, 16)
	FADD4(5, 17, 17)
	FADD4(6, 18, 18)
	FADD4(7, 19, 19)
	VFMLA V4.S4, V4.S4, V20.S4
	VFMLA V5.S4, V5.S4, V21.S4
	VFMLA V6.S4, V6.S4, V22.S4
	VFMLA V7.S4, V7.S4, V23.S4
	B     many

done:
	MOVE(16, 20, V16, V20)
	MOVE(17, 21, V17, V21)
	MOVE(18, 22, V18, V22)
	MOVE(19, 23, V19, V23)
	ADD $64, R3
	SUB $16, R4
	B   row

end:
	RET

// func combineNEON(dst []float32, c float32, a []float32, d float32, b []float32)
TEXT ·combineNEON(SB), NOSPLIT, $0-88
	MOVD  dst_base+0(FP), R0
	MOVD  dst_len+8(FP), R4
	MOVWU c+24(FP), R1
	VDUP  R1, V16.S4
	MOVD  a_base+32(FP), R2
	MOVWU d+56(FP), R1
	VDUP  R1, V17.S4
	MOVD  b_base+64(FP), R3
	CBZ   R4, done

loop:
	VLD1.P 16(R2), [V0.S4]
	VLD1.P 16(R3), [V1.S4]
	FMUL4(17, 1, 1)
	VFMLA  V16.S4, V0.S4, V1.S4
	VST1.P [V1.S4], 16(R0)
	SUB    $4, R4
	CBNZ   R4, loop

done:
	RET
