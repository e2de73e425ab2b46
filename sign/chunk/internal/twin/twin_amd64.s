// Two SHA-256 states over the same blocks: the rounds of FIPS 180-4 with the SHA extensions (S. Gulley et al., New
// Instructions Supporting the Secure Hash Algorithm on Intel Architecture Processors, 2013), as in Go's crypto/sha256.
// The message schedule is computed once. The rounds of one state wait for each other, so that those of a second one
// fit between them almost for free.

#include "textflag.h"

// Registers: X1 X2 the first state, X11 X12 the second one, X9 X10 and X13 X14 what they were before the block,
// X3 to X6 the message schedule, X0 four words of it plus their constants, X7 scratch, X8 the byte order.

// FOUR does four rounds with the words m on both states; between runs in the middle, where there is room.
#define FOUR(i, m, between) \
	MOVOU 16*i(AX), X0 \
	PADDD m, X0 \
	SHA256RNDS2 X0, X1, X2 \
	SHA256RNDS2 X0, X11, X12 \
	between \
	PSHUFD $0x0e, X0, X0 \
	SHA256RNDS2 X0, X2, X1 \
	SHA256RNDS2 X0, X12, X11

#define LOAD(i, m) \
	MOVOU 16*i(SI), m \
	PSHUFB X8, m

// EXTEND finishes the next four words of the schedule.
#define EXTEND(before, m, next) \
	MOVO m, X7 \
	PALIGNR $4, before, X7 \
	PADDD X7, next \
	SHA256MSG2 m, next

#define NOTHING

// func blocksSHA(first, second *[8]uint32, constants *[64]uint32, p []byte)
TEXT ·blocksSHA(SB), NOSPLIT, $0-48
	MOVQ first+0(FP), DI
	MOVQ second+8(FP), BX
	MOVQ constants+16(FP), AX
	MOVQ p_base+24(FP), SI
	MOVQ p_len+32(FP), DX
	SHRQ $6, DX
	JZ   done

	// The instructions want the words as ABEF and CDGH.
	MOVOU   (DI), X1
	MOVOU   16(DI), X2
	PSHUFD  $0xb1, X1, X1
	PSHUFD  $0x1b, X2, X2
	MOVO    X1, X7
	PALIGNR $8, X2, X1
	PBLENDW $0xf0, X7, X2
	MOVOU   (BX), X11
	MOVOU   16(BX), X12
	PSHUFD  $0xb1, X11, X11
	PSHUFD  $0x1b, X12, X12
	MOVO    X11, X7
	PALIGNR $8, X12, X11
	PBLENDW $0xf0, X7, X12

	MOVQ       $0x0405060700010203, R8
	MOVQ       R8, X8
	MOVQ       $0x0c0d0e0f08090a0b, R8
	MOVQ       R8, X7
	PUNPCKLQDQ X7, X8

block:
	MOVO X1, X9
	MOVO X2, X10
	MOVO X11, X13
	MOVO X12, X14

	LOAD(0, X3)
	FOUR(0, X3, NOTHING)
	LOAD(1, X4)
	FOUR(1, X4, NOTHING)
	SHA256MSG1 X4, X3
	LOAD(2, X5)
	FOUR(2, X5, NOTHING)
	SHA256MSG1 X5, X4
	LOAD(3, X6)
	FOUR(3, X6, EXTEND(X5, X6, X3))
	SHA256MSG1 X6, X5
	FOUR(4, X3, EXTEND(X6, X3, X4))
	SHA256MSG1 X3, X6
	FOUR(5, X4, EXTEND(X3, X4, X5))
	SHA256MSG1 X4, X3
	FOUR(6, X5, EXTEND(X4, X5, X6))
	SHA256MSG1 X5, X4
	FOUR(7, X6, EXTEND(X5, X6, X3))
	SHA256MSG1 X6, X5
	FOUR(8, X3, EXTEND(X6, X3, X4))
	SHA256MSG1 X3, X6
	FOUR(9, X4, EXTEND(X3, X4, X5))
	SHA256MSG1 X4, X3
	FOUR(10, X5, EXTEND(X4, X5, X6))
	SHA256MSG1 X5, X4
	FOUR(11, X6, EXTEND(X5, X6, X3))
	SHA256MSG1 X6, X5
	FOUR(12, X3, EXTEND(X6, X3, X4))
	SHA256MSG1 X3, X6
	FOUR(13, X4, EXTEND(X3, X4, X5))
	FOUR(14, X5, EXTEND(X4, X5, X6))
	FOUR(15, X6, NOTHING)

	PADDD X9, X1
	PADDD X10, X2
	PADDD X13, X11
	PADDD X14, X12
	ADDQ  $64, SI
	DECQ  DX
	JNZ   block

	PSHUFD  $0x1b, X1, X1
	PSHUFD  $0xb1, X2, X2
	MOVO    X1, X7
	PBLENDW $0xf0, X2, X1
	PALIGNR $8, X7, X2
	MOVOU   X1, (DI)
	MOVOU   X2, 16(DI)
	PSHUFD  $0x1b, X11, X11
	PSHUFD  $0xb1, X12, X12
	MOVO    X11, X7
	PBLENDW $0xf0, X12, X11
	PALIGNR $8, X7, X12
	MOVOU   X11, (BX)
	MOVOU   X12, 16(BX)

done:
	RET

// func extendedFeatures() (ebx uint32)
TEXT ·extendedFeatures(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL BX, ebx+0(FP)
	RET
