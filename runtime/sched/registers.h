/* SPDX-License-Identifier: MIT
 *
 * Macros for the assembler: the program's registers onto the runtime stack and back, for both ways into the runtime
 * (switch.S, spin/enter.S). All of it keeps the flags (switch.S says why) but for `cld`, when the program's have been
 * saved, and `popfq`, which brings them back.
 */
#ifndef LISSOM_REGISTERS_H
#define LISSOM_REGISTERS_H

#include "sched/offsets.h"

#define RED_ZONE 128

/* In: rcx = T, rsp as T_USER_RSP is to be. Out: rsp = rbx = the registers, rbp = T, the others as they were. The program's rcx
 * and r11 have no place among them; R_RSP and R_RIP are for the caller to fill in. */
.macro STORE_REGISTERS
        mov     %rsp, T_USER_RSP(%rcx)
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
        mov     %rbp, R_RBP(%rsp)
        mov     %r12, R_R12(%rsp)
        mov     %r13, R_R13(%rsp)
        mov     %r14, R_R14(%rsp)
        mov     %r15, R_R15(%rsp)
        pushfq
        popq    R_FLAGS(%rsp)
        cld
        mov     %rsp, %rbx
        mov     %rcx, %rbp
.endm

/* In: rsp = the registers, rbp = T; r12 to r15 the program's: the C code in between has kept them. Out: rcx = T, rsp =
 * T_USER_RSP, everything else but r11 the program's, the flags too; in_runtime still set. */
.macro LOAD_REGISTERS
        pushq   R_FLAGS(%rsp)
        popfq
        mov     %rbp, %rcx
        mov     R_RAX(%rsp), %rax
        mov     R_RDI(%rsp), %rdi
        mov     R_RSI(%rsp), %rsi
        mov     R_RDX(%rsp), %rdx
        mov     R_R10(%rsp), %r10
        mov     R_R8(%rsp), %r8
        mov     R_R9(%rsp), %r9
        mov     R_RBX(%rsp), %rbx
        mov     R_RBP(%rsp), %rbp
        mov     T_USER_RSP(%rcx), %rsp
.endm

/* For the unwinder, from STORE_REGISTERS on: where the program's registers are. */
.macro CFI_STORED_REGISTERS
        .cfi_escape 0x0f, 4, 0x73, 0xf0, 0x00, 0x06      /* CFA = *(rbx + R_RSP) */
        .cfi_escape 0x10, 16, 3, 0x73, 0xf8, 0x00        /* rip at rbx + R_RIP */
        .cfi_escape 0x10, 6, 3, 0x73, 0xc0, 0x00         /* rbp at rbx + R_RBP */
        .cfi_escape 0x10, 3, 2, 0x73, 0x38               /* rbx at rbx + R_RBX; we do not change r12 to r15 */
.endm

/* And from LOAD_REGISTERS on. */
.macro CFI_LOADED_REGISTERS
        .cfi_same_value rbx
        .cfi_same_value rbp
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
