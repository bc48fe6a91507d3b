#include "textflag.h"

// func stackUsed() uintptr
// The field stack.hi of g follows stack.lo, which is its first.
TEXT ·stackUsed(SB), NOSPLIT, $0-8
	MOVD 8(g), R0
	MOVD $ret+0(FP), R1
	SUB  R1, R0, R0
	MOVD R0, ret+0(FP)
	RET
