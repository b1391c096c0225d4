/* SPDX-License-Identifier: MIT
 *
 * Assembler macros that move the program's registers to the runtime stack and back, for both ways
 * into the runtime (switch.S, spin/enter.S). They keep the flags (switch.S says why), with two
 * exceptions: `cld` after the program's flags are saved, and LOAD_FLAGS, which restores them.
 */
/* Assembly. */
/* clang-format off */
#ifndef LISSOM_REGISTERS_H
#define LISSOM_REGISTERS_H

#include "sched/offsets.h"

#define RED_ZONE 128

/* For unwinders, that is debuggers, which may stop at any instruction. The frame is the program's.
 * The CFA, its stack pointer, is at one of three places:
 * - `depth` above rsp;
 * - while rsp is not the program's: `depth` above the value of T_USER_RSP;
 * - while the C code runs: in the saved registers. */
.macro CFI_USER_RSP depth
        /* CFA = *(rcx + T_USER_RSP) + depth */
        .cfi_escape 0x0f, 6, 0x72, T_USER_RSP, 0x06, 0x23, ((\depth) & 0x7f) | 0x80, (\depth) >> 7
.endm

/* In: rcx = T; rsp = the future T_USER_RSP, `depth` below the program's. Out: rsp = rbx = the saved
 * registers, rbp = T, the others unchanged. The program's rcx and r11 are not saved; the caller
 * fills in R_RSP and R_RIP. */
.macro STORE_REGISTERS depth
        mov     %rsp, T_USER_RSP(%rcx)
        CFI_USER_RSP \depth
        mov     T_RUNTIME_STACK(%rcx), %rsp
        lea     -R_SIZE(%rsp), %rsp
        mov     %rax, R_RAX(%rsp)
        mov     %rdi, R_RDI(%rsp)
        mov     %rsi, R_RSI(%rsp)
        mov     %rdx, R_RDX(%rsp)
        mov     %r10, R_R10(%rsp)
        mov     %r8, R_R8(%rsp)
        mov     %r9, R_R9(%rsp)
        mov     %rbx, R_RBX(%rsp)
        mov     %rsp, %rbx
        .cfi_escape 0x10, 3, 2, 0x73, R_RBX              /* rbx at rbx + R_RBX */
        mov     %rbp, R_RBP(%rsp)
        /* rbp at rbx + R_RBP; r12 to r15 are never changed here */
        .cfi_escape 0x10, 6, 3, 0x73, R_RBP | 0x80, 0
        mov     %r12, R_R12(%rsp)
        mov     %r13, R_R13(%rsp)
        mov     %r14, R_R14(%rsp)
        mov     %r15, R_R15(%rsp)
        pushfq
        popq    R_FLAGS(%rsp)
        cld
        mov     %rcx, %rbp
.endm

/* From here on R_RSP and R_RIP are filled in, and the C code may change rcx and r11. */
.macro CFI_STORED_REGISTERS
        .cfi_escape 0x0f, 4, 0x73, R_RSP | 0x80, 0, 0x06 /* CFA = *(rbx + R_RSP) */
        .cfi_escape 0x10, 16, 3, 0x73, R_RIP | 0x80, 0   /* rip at rbx + R_RIP */
        .cfi_escape 0x10, 3, 2, 0x73, R_RBX
        .cfi_escape 0x10, 6, 3, 0x73, R_RBP | 0x80, 0
.endm

#define FLAGS_ARITHMETIC 0x8d5 /* CF, PF, AF, ZF, SF, OF */

/* Load the program's flags. In: rsp = the saved registers. Clobbers rax and rdx. Usually only
 * arithmetic flags differ from the current ones: SAHF and an addition that overflows set these
 * faster than POPFQ (docs/design/virtual-blocking.md). */
.macro LOAD_FLAGS
        pushfq
        pop     %rdx
        mov     R_FLAGS(%rsp), %eax
        xor     %eax, %edx
        test    $~FLAGS_ARITHMETIC, %edx
        jz      1f
        pushq   R_FLAGS(%rsp)
        popfq
        jmp     2f
1:      mov     %eax, %edx
        shr     $11, %edx
        and     $1, %edx         /* OF */
        shl     $8, %eax         /* the others, into ah */
        mov     %dl, %al
        add     $0x7f, %al       /* overflows if al was 1 */
        sahf
2:
.endm

/* In: rsp = rbx = the saved registers, rbp = T; r12 to r15 are the program's, since the C code has
 * kept them. Out: rcx = T, rsp = T_USER_RSP, all other registers but r11 and the flags are the
 * program's; in_runtime is still set. `find_rip`: a macro that shows the unwinder where rip is,
 * without rbx; its code may use r11. */
.macro LOAD_REGISTERS depth, find_rip
        LOAD_FLAGS
        mov     %rbp, %rcx
        \find_rip
        mov     R_RAX(%rsp), %rax
        mov     R_RDI(%rsp), %rdi
        mov     R_RSI(%rsp), %rsi
        mov     R_RDX(%rsp), %rdx
        mov     R_R10(%rsp), %r10
        mov     R_R8(%rsp), %r8
        mov     R_R9(%rsp), %r9
        CFI_USER_RSP \depth
        .cfi_escape 0x10, 6, 3, 0x77, R_RBP | 0x80, 0    /* rbp at rsp + R_RBP */
        mov     R_RBX(%rsp), %rbx
        .cfi_same_value rbx
        mov     R_RBP(%rsp), %rbp
        .cfi_same_value rbp
        mov     T_USER_RSP(%rcx), %rsp
        .cfi_def_cfa rsp, \depth
.endm

/* In: rcx = T. Out: the registers for rt_sigprocmask(SIG_SETMASK, &T->raise_mask, NULL, 8). */
.macro RAISE_MASK_ARGUMENTS
        mov     $14, %eax
        mov     $2, %edi
        lea     T_RAISE_MASK(%rcx), %rsi
        mov     $0, %edx
        mov     $8, %r10d
.endm

#endif
