#include "textflag.h"

// func stackUsed() uintptr
// The field stack.hi of g follows stack.lo, which is its first.
TEXT ·stackUsed(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ 8(AX), AX
	LEAQ ret+0(FP), BX
	SUBQ BX, AX
	MOVQ AX, ret+0(FP)
	RET
