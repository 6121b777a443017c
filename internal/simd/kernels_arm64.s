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

#define FMIN4(m, n, d) WORD $(0x4EA0F400 | (m)<<16 | (n)<<5 | (d))
#define FCMGT(m, n, d) WORD $(0x6EA0E400 | (m)<<16 | (n)<<5 | (d)) // ones where n > m
#define FCMEQ0(n, d) WORD $(0x4EA0D800 | (n)<<5 | (d)) // ones where n = 0
#define SCVTF4(n, d) WORD $(0x4E21D800 | (n)<<5 | (d))
#define FCVTNS4(n, d) WORD $(0x4E21A800 | (n)<<5 | (d))

// Products in 16 bits of the bytes in the low or high halves of n and m, and sums of 16-bit numbers in 32 bits.
#define SMULL(m, n, d) WORD $(0x0E20C000 | (m)<<16 | (n)<<5 | (d))
#define SMULL2(m, n, d) WORD $(0x4E20C000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL(m, n, d) WORD $(0x0E208000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL2(m, n, d) WORD $(0x4E208000 | (m)<<16 | (n)<<5 | (d))
#define ADDP8(m, n, d) WORD $(0x4E60BC00 | (m)<<16 | (n)<<5 | (d))
#define SADALP(n, d) WORD $(0x4E606800 | (n)<<5 | (d))
#define SADDW(m, n, d) WORD $(0x0E601000 | (m)<<16 | (n)<<5 | (d))
#define SADDW2(m, n, d) WORD $(0x4E601000 | (m)<<16 | (n)<<5 | (d))

// Sums of four products of bytes, of n and m or of n and group i of m.
#define SDOT(m, n, d) WORD $(0x4E809400 | (m)<<16 | (n)<<5 | (d))
#define SDOTI(i, m, n, d) WORD $(0x4F80E000 | (i)<<21 | (m)<<16 | (n)<<5 | (d))

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
	BLS    next              // a NaN doesn't branch: other elements may be positive
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
	MOVD  $0x7fffffff, R7                             // no limit of columns: the loop ends with the list

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

// A row of productBytes: two groups of 4 terms times eight columns, in V0 and V1, V2 and V3.
#define ROW_SDOT(a, low, high) \
	VLD1.P 8(a), [V4.B8]  \
	SDOTI(0, 4, 0, low)   \
	SDOTI(0, 4, 1, high)  \
	SDOTI(1, 4, 2, low)   \
	SDOTI(1, 4, 3, high)

#define ROW_SMULL(a, low, high) \
	VLD1R.P 4(a), [V4.S4] \
	VLD1R.P 4(a), [V5.S4] \
	COLUMNS(0, 2, low)    \
	COLUMNS(1, 3, high)

// Four columns of both groups. Four products fit in 16 bits.
#define COLUMNS(b, next, sum) \
	SMULL(4, b, 6)     \
	SMLAL(5, next, 6)  \
	SMULL2(4, b, 7)    \
	SMLAL2(5, next, 7) \
	ADDP8(7, 6, 6)     \
	SADALP(6, sum)

#define EIGHT_ROWS(ROW) \
	ROW(R0, 16, 17) \
	ROW(R1, 18, 19) \
	ROW(R2, 20, 21) \
	ROW(R3, 22, 23) \
	ROW(R4, 24, 25) \
	ROW(R5, 26, 27) \
	ROW(R6, 28, 29) \
	ROW(R7, 30, 31)

// Sums of 8 × 8 in V16 to V31. R10 is dst, R11 dstRow, R0 a, R8 aRow, R9 b, R12 start, R13 n.
#define PRODUCT_BYTES(ROW) \
	ADD    R8, R0, R1              \
	ADD    R8, R1, R2              \
	ADD    R8, R2, R3              \
	ADD    R8, R3, R4              \
	ADD    R8, R4, R5              \
	ADD    R8, R5, R6              \
	ADD    R8, R6, R7              \
	LSL    $2, R11                 \
	VLD1   (R12), [V16.S4, V17.S4] \
	VLD1   (R12), [V18.S4, V19.S4] \
	VLD1   (R12), [V20.S4, V21.S4] \
	VLD1   (R12), [V22.S4, V23.S4] \
	VLD1   (R12), [V24.S4, V25.S4] \
	VLD1   (R12), [V26.S4, V27.S4] \
	VLD1   (R12), [V28.S4, V29.S4] \
	VLD1   (R12), [V30.S4, V31.S4] \
loop: \
	VLD1.P 64(R9), [V0.B16, V1.B16, V2.B16, V3.B16] \
	EIGHT_ROWS(ROW)                  \
	SUB    $2, R13                   \
	CBNZ   R13, loop                 \
	VST1.P [V16.S4, V17.S4], (R10)(R11) \
	VST1.P [V18.S4, V19.S4], (R10)(R11) \
	VST1.P [V20.S4, V21.S4], (R10)(R11) \
	VST1.P [V22.S4, V23.S4], (R10)(R11) \
	VST1.P [V24.S4, V25.S4], (R10)(R11) \
	VST1.P [V26.S4, V27.S4], (R10)(R11) \
	VST1.P [V28.S4, V29.S4], (R10)(R11) \
	VST1   [V30.S4, V31.S4], (R10)

// 32 SDOT with 12 loads of registers: SDOT bounds the loop.
//
// func productBytesSDOT(dst *int32, dstRow int, a *int8, aRow int, b *int8, start *int32, n int)
TEXT ·productBytesSDOT(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R10
	MOVD dstRow+8(FP), R11
	MOVD a+16(FP), R0
	MOVD aRow+24(FP), R8
	MOVD b+32(FP), R9
	MOVD start+40(FP), R12
	MOVD n+48(FP), R13
	PRODUCT_BYTES(ROW_SDOT)
	RET

// 96 instructions for the products of 32 SDOT, with 20 loads. Multiplications bound the loop.
//
// func productBytesNEON(dst *int32, dstRow int, a *int8, aRow int, b *int8, start *int32, n int)
TEXT ·productBytesNEON(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R10
	MOVD dstRow+8(FP), R11
	MOVD a+16(FP), R0
	MOVD aRow+24(FP), R8
	MOVD b+32(FP), R9
	MOVD start+40(FP), R12
	MOVD n+48(FP), R13
	PRODUCT_BYTES(ROW_SMULL)
	RET

#define PEAK_SDOT(a, low, high) \
	SDOT(0, 0, low)  \
	SDOT(0, 0, high) \
	SDOT(0, 0, low)  \
	SDOT(0, 0, high)

#define PEAK_SMULL(a, low, high) \
	COLUMNS(0, 0, low)  \
	COLUMNS(0, 0, high)

// func peakBytesSDOT(n int)
TEXT ·peakBytesSDOT(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0

loop:
	EIGHT_ROWS(PEAK_SDOT)
	SUB  $2, R0
	CBNZ R0, loop
	RET

// func peakBytesNEON(n int)
TEXT ·peakBytesNEON(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0

loop:
	EIGHT_ROWS(PEAK_SMULL)
	SUB  $2, R0
	CBNZ R0, loop
	RET

// 64 products of a residual in V0 to V3 with an atom. Four atoms take 20 loads of registers, which bound the loop with
// SDOT. Multiplications bound it with SMULL, 32 for four atoms.
#define DOT_SDOT(row, sum, more) \
	VLD1.P 64(row), [V4.B16, V5.B16, V6.B16, V7.B16] \
	SDOT(0, 4, sum)  \
	SDOT(1, 5, more) \
	SDOT(2, 6, sum)  \
	SDOT(3, 7, more)

// Sums of eight products, up to 8·64·63, fit in 16 bits.
#define DOT_SMULL(row, sum, more) \
	VLD1.P 64(row), [V4.B16, V5.B16, V6.B16, V7.B16] \
	SMULL(0, 4, 8)  \
	SMLAL2(0, 4, 8) \
	SMLAL(1, 5, 8)  \
	SMLAL2(1, 5, 8) \
	SMLAL(2, 6, 8)  \
	SMLAL2(2, 6, 8) \
	SMLAL(3, 7, 8)  \
	SMLAL2(3, 7, 8) \
	SADALP(8, sum)

// Sets row to atom i of the next four, and element i of V10 and V11 to its start and scale.
#define ATOM(i, row) \
	MOVW (4*i)(R1), row    \
	ADD  row<<2, R6, R14   \
	VLD1 (R14), V10.S[i]   \
	ADD  row<<2, R7, R14   \
	VLD1 (R14), V11.S[i]   \
	MADD R5, R4, row, row

// R0 is p, R1 index, R2 its length, R3 r, R5 the length of r, R4 d, R6 start, R7 scale. Each atom has two sums.
#define DOTS_BYTES(DOT) \
	CBZ R2, done \
four: \
	ATOM(0, R8)  \
	ATOM(1, R9)  \
	ATOM(2, R10) \
	ATOM(3, R11) \
	VEOR V16.B16, V16.B16, V16.B16 \
	VEOR V17.B16, V17.B16, V17.B16 \
	VEOR V18.B16, V18.B16, V18.B16 \
	VEOR V19.B16, V19.B16, V19.B16 \
	VEOR V20.B16, V20.B16, V20.B16 \
	VEOR V21.B16, V21.B16, V21.B16 \
	VEOR V22.B16, V22.B16, V22.B16 \
	VEOR V23.B16, V23.B16, V23.B16 \
	MOVD R3, R12 \
	MOVD R5, R13 \
bytes: \
	VLD1.P 64(R12), [V0.B16, V1.B16, V2.B16, V3.B16] \
	DOT(R8, 16, 17)  \
	DOT(R9, 18, 19)  \
	DOT(R10, 20, 21) \
	DOT(R11, 22, 23) \
	SUB  $64, R13 \
	CBNZ R13, bytes \
	VADD V17.S4, V16.S4, V16.S4 \
	VADD V19.S4, V18.S4, V18.S4 \
	VADD V21.S4, V20.S4, V20.S4 \
	VADD V23.S4, V22.S4, V22.S4 \
	VADDP V18.S4, V16.S4, V16.S4 \
	VADDP V22.S4, V20.S4, V20.S4 \
	VADDP V20.S4, V16.S4, V16.S4 \
	VADD V10.S4, V16.S4, V16.S4 \
	SCVTF4(16, 16) \
	FMUL4(11, 16, 16) \
	VST1.P [V16.S4], 16(R0) \
	ADD  $16, R1 \
	SUB  $4, R2 \
	CBNZ R2, four \
done:

// func dotsBytesSDOT(p []float32, index []int32, r, d []int8, start []int32, scale []float32)
TEXT ·dotsBytesSDOT(SB), NOSPLIT, $0-144
	MOVD p_base+0(FP), R0
	MOVD index_base+24(FP), R1
	MOVD index_len+32(FP), R2
	MOVD r_base+48(FP), R3
	MOVD r_len+56(FP), R5
	MOVD d_base+72(FP), R4
	MOVD start_base+96(FP), R6
	MOVD scale_base+120(FP), R7
	DOTS_BYTES(DOT_SDOT)
	RET

// func dotsBytesNEON(p []float32, index []int32, r, d []int8, start []int32, scale []float32)
TEXT ·dotsBytesNEON(SB), NOSPLIT, $0-144
	MOVD p_base+0(FP), R0
	MOVD index_base+24(FP), R1
	MOVD index_len+32(FP), R2
	MOVD r_base+48(FP), R3
	MOVD r_len+56(FP), R5
	MOVD d_base+72(FP), R4
	MOVD start_base+96(FP), R6
	MOVD scale_base+120(FP), R7
	DOTS_BYTES(DOT_SMULL)
	RET

// Multiplies 64 columns of the next atom, or adds the products. Sums of four fit in 16 bits: 4·127·63 < 2¹⁵.
#define DECODE(MUL, MUL2) \
	MOVW.P  4(R8), R9                                \
	MADD    R5, R3, R9, R9                           \
	VLD1R.P 1(R10), [V0.B16]                         \
	VLD1    (R9), [V4.B16, V5.B16, V6.B16, V7.B16]   \
	MUL(0, 4, 8)   \
	MUL2(0, 4, 9)  \
	MUL(0, 5, 10)  \
	MUL2(0, 5, 11) \
	MUL(0, 6, 12)  \
	MUL2(0, 6, 13) \
	MUL(0, 7, 14)  \
	MUL2(0, 7, 15)

// 64 columns of four atoms take 16 loads of registers, 32 multiplications and 16 additions. SDOT would replace them by
// 32 shuffles and 16 SDOT.
//
// func decodeBytesNEON(out []int32, index []int32, z, d []int8)
TEXT ·decodeBytesNEON(SB), NOSPLIT, $0-96
	MOVD out_base+0(FP), R0
	MOVD out_len+8(FP), R4
	MOVD R4, R5
	MOVD index_base+24(FP), R1
	MOVD index_len+32(FP), R6
	MOVD z_base+48(FP), R2
	MOVD d_base+72(FP), R3

columns:
	VEOR V16.B16, V16.B16, V16.B16
	VMOV V16.B16, V17.B16
	VMOV V16.B16, V18.B16
	VMOV V16.B16, V19.B16
	VMOV V16.B16, V20.B16
	VMOV V16.B16, V21.B16
	VMOV V16.B16, V22.B16
	VMOV V16.B16, V23.B16
	VMOV V16.B16, V24.B16
	VMOV V16.B16, V25.B16
	VMOV V16.B16, V26.B16
	VMOV V16.B16, V27.B16
	VMOV V16.B16, V28.B16
	VMOV V16.B16, V29.B16
	VMOV V16.B16, V30.B16
	VMOV V16.B16, V31.B16
	MOVD R1, R8
	MOVD R2, R10
	MOVD R6, R7
	CBZ  R7, store

four:
	DECODE(SMULL, SMULL2)
	DECODE(SMLAL, SMLAL2)
	DECODE(SMLAL, SMLAL2)
	DECODE(SMLAL, SMLAL2)
	SADDW(8, 16, 16)
	SADDW2(8, 17, 17)
	SADDW(9, 18, 18)
	SADDW2(9, 19, 19)
	SADDW(10, 20, 20)
	SADDW2(10, 21, 21)
	SADDW(11, 22, 22)
	SADDW2(11, 23, 23)
	SADDW(12, 24, 24)
	SADDW2(12, 25, 25)
	SADDW(13, 26, 26)
	SADDW2(13, 27, 27)
	SADDW(14, 28, 28)
	SADDW2(14, 29, 29)
	SADDW(15, 30, 30)
	SADDW2(15, 31, 31)
	SUB  $4, R7
	CBNZ R7, four

store:
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R0)
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R0)
	VST1.P [V28.S4, V29.S4, V30.S4, V31.S4], 64(R0)
	ADD    $64, R3
	SUB    $64, R4
	CBNZ   R4, columns
	RET

// func residualNEON(r, y []float32, o []int32, unit float32) (largest float32)
TEXT ·residualNEON(SB), NOSPLIT, $0-84
	MOVD  r_base+0(FP), R0
	MOVD  r_len+8(FP), R4
	MOVD  y_base+24(FP), R1
	MOVD  o_base+48(FP), R2
	MOVWU unit+72(FP), R3
	VDUP  R3, V16.S4
	VEOR  V17.B16, V17.B16, V17.B16 // the largest
	CBZ   R4, done

loop:
	VLD1.P 16(R2), [V0.S4]
	VLD1.P 16(R1), [V1.S4]
	SCVTF4(0, 0)
	FMUL4(16, 0, 0)
	FSUB4(0, 1, 1)
	VST1.P [V1.S4], 16(R0)
	FABS4(1, 1)
	FMAX4(1, 17, 17)
	SUB  $4, R4
	CBNZ R4, loop

done:
	FMAXV4(17, 17)
	FMOVS F17, largest+80(FP)
	RET

#define ROUND(x) \
	FMUL4(16, x, x) \
	FCVTNS4(x, x)

// func quantiseNEON(dst []int8, x []float32, scale float32, offset int8)
TEXT ·quantiseNEON(SB), NOSPLIT, $0-53
	MOVD  dst_base+0(FP), R0
	MOVD  x_base+24(FP), R1
	MOVD  x_len+32(FP), R4
	MOVWU scale+48(FP), R2
	VDUP  R2, V16.S4
	MOVB  offset+52(FP), R2
	VDUP  R2, V17.B16
	CBZ   R4, done

loop:
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	ROUND(0)
	ROUND(1)
	ROUND(2)
	ROUND(3)
	VUZP1 V1.H8, V0.H8, V0.H8
	VUZP1 V3.H8, V2.H8, V2.H8
	VUZP1 V2.B16, V0.B16, V0.B16
	VADD  V17.B16, V0.B16, V0.B16
	VST1.P [V0.B16], 16(R0)
	SUB  $16, R4
	CBNZ R4, loop

done:
	RET

// Sets d to ones where the sums in n times the scales in d exceed the limit in V16.
#define EXCEEDS(n, d) \
	SCVTF4(n, n)   \
	FMUL4(d, n, n) \
	FMAX4(17, n, d) \
	FABS4(d, d)    \
	FCMGT(16, d, d)

// 16 atoms at a time become bits of R7, in 40 instructions; scalar code appends those that enter.
//
// func candidatesNEON(index []int32, p []float32, sums []int32, scale []float32, members []byte, column int32, limit, floor float32) (n int)
TEXT ·candidatesNEON(SB), NOSPLIT, $0-144
	MOVD  index_base+0(FP), R0
	MOVD  p_base+24(FP), R1
	MOVD  sums_base+48(FP), R2
	MOVD  sums_len+56(FP), R5
	MOVD  scale_base+72(FP), R3
	MOVD  members_base+96(FP), R4
	MOVW  column+120(FP), R6
	MOVWU limit+124(FP), R7
	VDUP  R7, V16.S4
	MOVWU floor+128(FP), R7
	VDUP  R7, V17.S4
	MOVD  $0x8040201008040201, R7
	VDUP  R7, V18.D2
	MOVD  ZR, R10 // number of appended elements
	CBZ   R5, done

loop:
	VLD1 (R2), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R3), [V4.S4, V5.S4, V6.S4, V7.S4]
	EXCEEDS(0, 4)
	EXCEEDS(1, 5)
	EXCEEDS(2, 6)
	EXCEEDS(3, 7)
	VUZP1 V5.H8, V4.H8, V4.H8
	VUZP1 V7.H8, V6.H8, V6.H8
	VUZP1 V6.B16, V4.B16, V4.B16
	VAND  V18.B16, V4.B16, V4.B16
	VADDP V4.B16, V4.B16, V4.B16
	VADDP V4.B16, V4.B16, V4.B16
	VADDP V4.B16, V4.B16, V4.B16
	VMOV  V4.H[0], R7
	MOVHU.P 2(R4), R8
	BIC   R8, R7
	CBZ   R7, next

found:
	RBIT    R7, R8
	CLZ     R8, R8
	MOVW    (R2)(R8<<2), R9
	SCVTFWS R9, F0
	FMOVS   (R3)(R8<<2), F1
	FMULS   F1, F0
	FMOVS   F0, (R1)(R10<<2)
	ADDW    R6, R8
	MOVW    R8, (R0)(R10<<2)
	ADD     $1, R10
	SUB     $1, R7, R8
	AND     R8, R7
	CBNZ    R7, found

next:
	ADD  $64, R2
	ADD  $64, R3
	ADD  $16, R6
	SUB  $16, R5
	CBNZ R5, loop

done:
	MOVD R10, n+136(FP)
	RET

// Appends byte i of the four in V0, and its atom, if it isn't 0.
#define ACTIVE(i) \
	VMOV   V0.S[i], R8      \
	MOVW.P 4(R2), R9        \
	MOVB   R8, (R1)(R10)    \
	MOVW   R9, (R0)(R10<<2) \
	CMPW   $0, R8           \
	CSINC  EQ, R10, R10, R10

// 24 of 50 instructions append elements.
//
// func advanceNEON(active []int32, bytes []int8, index []int32, p, z, b, v []float32, step, threshold, floor, momentum, scale float32, enter uint32) (n int, largest float32)
TEXT ·advanceNEON(SB), NOSPLIT, $0-204
	MOVD  active_base+0(FP), R0
	MOVD  bytes_base+24(FP), R1
	MOVD  index_base+48(FP), R2
	MOVD  p_base+72(FP), R3
	MOVD  p_len+80(FP), R7
	MOVD  z_base+96(FP), R4
	MOVD  b_base+120(FP), R5
	MOVD  v_base+144(FP), R6
	MOVWU step+168(FP), R8
	VDUP  R8, V16.S4
	MOVWU threshold+172(FP), R8
	VDUP  R8, V17.S4
	MOVWU floor+176(FP), R8
	VDUP  R8, V18.S4
	MOVWU momentum+180(FP), R8
	VDUP  R8, V19.S4
	MOVWU scale+184(FP), R8
	VDUP  R8, V20.S4
	MOVWU enter+188(FP), R8
	VDUP  R8, V21.S4
	MOVD  $0x80000000, R8
	VDUP  R8, V22.S4
	MOVD  $0xC2FE0000, R8
	VDUP  R8, V23.S4              // −127
	MOVD  $0x42FE0000, R8
	VDUP  R8, V24.S4
	VEOR  V25.B16, V25.B16, V25.B16
	VEOR  V26.B16, V26.B16, V26.B16 // the largest
	MOVD  ZR, R10                   // number of appended elements
	CBZ   R7, done

loop:
	VLD1.P 16(R3), [V0.S4]
	VLD1   (R4), [V1.S4]
	VLD1   (R5), [V2.S4]
	VLD1.P 16(R6), [V3.S4]
	FMUL4(16, 0, 0)
	FADD4(0, 1, 0)          // u
	FABS4(0, 4)
	FSUB4(17, 4, 4)
	FMAX4(25, 4, 4)
	VAND V22.B16, V0.B16, V0.B16
	VORR V0.B16, V4.B16, V4.B16
	FMAX4(18, 4, 4)
	FCMEQ0(2, 5)
	BIC16(21, 5, 5)
	BIC16(5, 4, 4)          // x
	VST1.P [V4.S4], 16(R5)
	FSUB4(2, 4, 2)
	FMUL4(19, 2, 2)
	FADD4(2, 4, 4)
	VST1.P [V4.S4], 16(R4)
	FMUL4(3, 4, 0)
	FABS4(0, 1)
	FMAX4(1, 26, 26)
	FMUL4(20, 0, 0)
	FMAX4(23, 0, 0)
	FMIN4(24, 0, 0)
	FCVTNS4(0, 0)
	ACTIVE(0)
	ACTIVE(1)
	ACTIVE(2)
	ACTIVE(3)
	SUB  $4, R7
	CBNZ R7, loop

done:
	FMAXV4(26, 26)
	MOVD  R10, n+192(FP)
	FMOVS F26, largest+200(FP)
	RET
