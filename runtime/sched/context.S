/* SPDX-License-Identifier: MIT
 *
 * Switch between contexts.
 *
 * Vector state. XGETBV(1) shows which components are in use, i.e. not in their initial state.
 * Usually these are SSE, AVX, AVX-512 and PKRU only: the switch saves them with moves, which take
 * 10 ns or less. XSAVEC and XRSTOR of them take 55 and 154 ns on a Zen 3 (43 and 74 with an empty
 * mask). On a Sapphire Rapids they take 37 and 57 ns. If any other component is in use (x87, AMX
 * tiles), or the CPU has no XGETBV(1), XSAVEC saves everything and XRSTOR loads it.
 *
 * If a kernel thread loads AMX tiles for the first time, XRSTOR faults, and the kernel allocates
 * room for them and restarts it.
 *
 * Loading a context resets the components that are in use now but were not in use in that context.
 * MXCSR belongs to SSE, the x87 control word to x87.
 *
 * T_XSAVE points to an area for XSAVEC. If the state was saved with moves, the area has the layout
 * V_*.
 */
#include "sched/registers.h"

        .text

/* Bit BY_MOVES_BIT and the components in use; 0: saved with XSAVEC, which never writes here. */
#define V_SAVED 464
#define V_PKRU 468
#define V_MXCSR 472
#define V_XMM 192 /* if neither AVX nor HIGH_256 is in use */
#define V_YMM 576 /* if AVX is in use and HIGH_256 is not */
#define V_ZMM 576 /* if HIGH_256 is in use */
#define V_HIGH_16 1600
#define V_OPMASK 2624
#define BY_MOVES_BIT 31
#define X87 1
#define AVX 4
#define OPMASK (1 << 5)
#define HIGH_256 (1 << 6) /* the upper halves of the first 16 registers */
#define HIGH_16 (1 << 7)  /* the registers that only AVX-512 has */
#define AVX512 (OPMASK | HIGH_256 | HIGH_16)
#define PKRU_BIT 9

/* Offset in an area for XSAVEC. */
#define XSTATE_BV 512
/* The relevant bits of the first 8 bytes of x87 state: the control word, the status word but for
 * the condition codes, and the tags. */
#define X87_MATTERS 0xffb8ffffff
#define INITIAL_CONTROL_WORD 0x37f

.macro SAVE_VECTORS op, register, at, bytes
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        \op     %\register\i, \at+\i*\bytes(%rcx)
        .endr
.endm

.macro LOAD_VECTORS op, register, at, bytes
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        \op     \at+\i*\bytes(%r10), %\register\i
        .endr
.endm

/* Save HIGH_16 and OPMASK, if they are among the components in eax. */
.macro SAVE_AVX512
        test    $HIGH_16, %eax
        jz      8f
        .irp i, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        vmovaps %zmm\i, V_HIGH_16+(\i-16)*64(%rcx)
        .endr
8:      test    $OPMASK, %eax
        jz      9f
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7
        kmovq   %k\i, V_OPMASK+\i*8(%rcx)
        .endr
9:
.endm

/* Load HIGH_16 and OPMASK, if they are among the components of the context, r11d. Otherwise clear
 * them, if they are among those in use, r8d. */
.macro LOAD_AVX512
        test    $HIGH_16, %r11d
        jz      7f
        .irp i, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        vmovaps V_HIGH_16+(\i-16)*64(%r10), %zmm\i
        .endr
        jmp     8f
7:      test    $HIGH_16, %r8d
        jz      8f
        .irp i, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        vpxord  %zmm\i, %zmm\i, %zmm\i
        .endr
8:      test    $OPMASK, %r11d
        jz      7f
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7
        kmovq   V_OPMASK+\i*8(%r10), %k\i
        .endr
        jmp     8f
7:      test    $OPMASK, %r8d
        jz      8f
        .irp i, 0, 1, 2, 3, 4, 5, 6, 7
        kxorq   %k\i, %k\i, %k\i
        .endr
8:
.endm

/* Out: r8d = the components in use, all if unknown; r9d = PKRU (0: there is none). Clobbers rax,
 * rcx, rdx. */
.macro VECTOR_IN_USE
        mov     $-1, %r8d
        xor     %r9d, %r9d
        cmpl    $-1, lissom_vector_slow(%rip)
        je      2f
        mov     $1, %ecx
        xgetbv
        mov     %eax, %r8d
        bt      $PKRU_BIT, %eax
        jnc     2f
        xor     %ecx, %ecx
        rdpkru
        mov     %eax, %r9d
2:
.endm

/* Mark x87 as not in use in the area in rcx, if its state holds nothing that a program could miss:
 * initial control word, empty registers, no exception flagged. The kernel marks x87 as in use in
 * every signal frame, so it stays in use after a signal, and after the first x87 instruction. Lost
 * are the condition codes, which compilers do not keep across a system call, the address of the
 * last instruction, and old register contents. Clobbers rax, rdx. */
.macro FORGET_EMPTY_X87
        movabs  $X87_MATTERS, %rax
        and     (%rcx), %rax
        cmp     $INITIAL_CONTROL_WORD, %rax
        jne     4f
        andl    $~X87, XSTATE_BV(%rcx)
4:
.endm

/* Save the context of the thread in rdi. Out: r8d, r9d as of VECTOR_IN_USE. Clobbers rax, rcx, rdx.
 * A debugger may stop a thread at any instruction here, so each one describes its frame. */
.macro SAVE_CONTEXT
        .irp r, rbp, rbx, r12, r13, r14, r15
        push    %\r
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset \r, 0
        .endr
        rdgsbase %rax
        mov     %rax, T_GSBASE(%rdi)
        VECTOR_IN_USE
        mov     T_XSAVE(%rdi), %rcx
        test    %r8d, lissom_vector_slow(%rip)
        jz      3f
        mov     lissom_xsave_mask(%rip), %eax
        mov     lissom_xsave_mask+4(%rip), %edx
        xsavec64 (%rcx)
        movl    $0, V_SAVED(%rcx)
        FORGET_EMPTY_X87
        jmp     7f
3:      mov     %r8d, %eax
        bts     $BY_MOVES_BIT, %eax
        mov     %eax, V_SAVED(%rcx)
        mov     %r9d, V_PKRU(%rcx)
        stmxcsr V_MXCSR(%rcx)
        test    $HIGH_256, %eax
        jnz     5f
        test    $AVX, %eax
        jnz     4f
        SAVE_VECTORS movaps, xmm, V_XMM, 16
        jmp     6f
4:      SAVE_VECTORS vmovaps, ymm, V_YMM, 32
        jmp     6f
5:      SAVE_VECTORS vmovaps, zmm, V_ZMM, 64
6:      SAVE_AVX512
7:      mov     %rsp, T_CONTEXT_RSP(%rdi)
.endm

/* Load the context of the thread in rsi, and return rdi. Its stack is as SAVE_CONTEXT left it. In:
 * r8d, r9d as of VECTOR_IN_USE. */
.macro LOAD_CONTEXT_AND_RETURN
        mov     T_CONTEXT_RSP(%rsi), %rsp
        .cfi_def_cfa rsp, 56
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
        mov     T_FSBASE(%rsi), %rax
        wrfsbase %rax
        rdgsbase %rax                            /* rarely used; reading is cheaper than writing */
        cmp     T_GSBASE(%rsi), %rax
        je      1f
        mov     T_GSBASE(%rsi), %rax
        wrgsbase %rax
1:
        mov     T_XSAVE(%rsi), %r10
        mov     V_SAVED(%r10), %r11d
        bt      $BY_MOVES_BIT, %r11d
        jc      2f
        mov     lissom_xsave_mask(%rip), %eax
        mov     lissom_xsave_mask+4(%rip), %edx
        xrstor64 (%r10)
        jmp     6f
2:      mov     %r8d, %eax
        and     lissom_vector_slow(%rip), %eax
        jz      3f
        xor     %edx, %edx
        xrstor64 lissom_vector_initial(%rip)
        xor     %eax, %r8d
3:      test    $HIGH_256, %r11d
        jnz     2f
        test    $AVX, %r11d
        jnz     1f
        test    $(AVX | HIGH_256), %r8d
        jz      4f
        vzeroupper
4:      LOAD_VECTORS movaps, xmm, V_XMM, 16
        jmp     5f
1:      LOAD_VECTORS vmovaps, ymm, V_YMM, 32     /* clears the upper halves of zmm */
        jmp     5f
2:      LOAD_VECTORS vmovaps, zmm, V_ZMM, 64
5:      mov     %r11d, %eax
        or      %r8d, %eax
        test    $AVX512, %eax
        jz      9f
        LOAD_AVX512
9:      ldmxcsr V_MXCSR(%r10)
        cmp     %r9d, V_PKRU(%r10)
        je      6f
        mov     V_PKRU(%r10), %eax
        xor     %ecx, %ecx
        xor     %edx, %edx
        wrpkru
6:
        .irp r, r15, r14, r13, r12, rbx, rbp
        pop     %\r
        .cfi_adjust_cfa_offset -8
        .cfi_restore \r
        .endr
        mov     %rdi, %rax
        ret
.endm

/* struct thread *lissom_switch(struct thread *from, struct thread *to)
 *
 * Returns as `from`, perhaps much later and on another carrier; the result is the thread that was
 * left then. Pre: the caller owns `to`, which is DETACHED and marked ATTACHED by the caller; from
 * != to. */
        .globl  lissom_switch
        .hidden lissom_switch
        .type   lissom_switch, @function
        .balign 64
lissom_switch:
        .cfi_startproc
        SAVE_CONTEXT
        LOAD_CONTEXT_AND_RETURN
        .cfi_endproc
        .size   lissom_switch, . - lissom_switch

/* void lissom_leave(struct thread *from, void *stack, void (*f)(struct carrier *, struct thread *),
 * struct carrier *k)
 *
 * Saves `from` and runs f(k, from), which never returns, on k's own stack. "Returns" when `from` is
 * mounted again: the result is the thread that was left then. */
        .globl  lissom_leave
        .hidden lissom_leave
        .type   lissom_leave, @function
lissom_leave:
        .cfi_startproc
        mov     %rdx, %r10
        mov     %rcx, %r11
        SAVE_CONTEXT
        mov     %rsi, %rsp
        .cfi_def_cfa rsp, 0
        .cfi_undefined rip                       /* nobody has called f */
        mov     %rdi, %rsi
        mov     %r11, %rdi
        xor     %ebp, %ebp
        call    *%r10
        ud2
        .cfi_endproc
        .size   lissom_leave, . - lissom_leave

/* void lissom_enter(struct thread *to, struct thread *prev)
 *
 * Mounts `to` from a carrier's own stack. */
        .globl  lissom_enter
        .hidden lissom_enter
        .type   lissom_enter, @function
lissom_enter:
        .cfi_startproc
        xchg    %rdi, %rsi
        VECTOR_IN_USE
        LOAD_CONTEXT_AND_RETURN
        .cfi_endproc
        .size   lissom_enter, . - lissom_enter

        .section .note.GNU-stack, "", @progbits
