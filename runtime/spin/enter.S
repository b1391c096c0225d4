/* SPDX-License-Identifier: MIT
 *
 * From a spin site's stub into the runtime and back. Here nothing is free: all registers, the flags and the red zone are live,
 * so rcx and r11 go on the program's stack, below the red zone. The rest is as in sched/switch.S, whose comments on
 * vector state, signals and labels hold here too; handlers see the site's instruction (sched/view.c).
 *
 * The stub has moved rsp by the red zone and called, so that `ret $128` puts it right and goes on in the stub.
 */
#include "sched/offsets.h"

#define RED_ZONE 128

        .text
        .globl  lissom_spin_entry
        .hidden lissom_spin_entry
        .type   lissom_spin_entry, @function
        .balign 64
        .globl  lissom_at_spin_unknown
        .hidden lissom_at_spin_unknown
lissom_at_spin_unknown:                          /* a thread that is not known; jrcxz reaches 127 bytes only */
        pop     %rcx
        .globl  lissom_at_spin_unknown_popped
        .hidden lissom_at_spin_unknown_popped
lissom_at_spin_unknown_popped:
        ret     $RED_ZONE
        .balign 16
lissom_spin_entry:                               /* (rsp): return address; the program's rsp is 136 above */
        .cfi_startproc
        .cfi_signal_frame
        .cfi_def_cfa rsp, 8 + RED_ZONE
        .cfi_offset rip, -(8 + RED_ZONE)
        push    %rcx
        .cfi_adjust_cfa_offset 8
        .globl  lissom_at_spin_pushed
        .hidden lissom_at_spin_pushed
lissom_at_spin_pushed:                           /* (rsp): rcx, return address; 144 above */
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        jrcxz   lissom_at_spin_unknown
        movl    $1, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_committed
        .hidden lissom_at_spin_committed
lissom_at_spin_committed:
        push    %r11
        mov     %rsp, T_USER_RSP(%rcx)           /* r11, rcx, return address */
        mov     %rsp, %r11
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
        lea     24+RED_ZONE(%r11), %rdx
        mov     %rdx, R_RSP(%rsp)
        mov     16(%r11), %rdx
        mov     %rdx, R_RIP(%rsp)
        mov     %rsp, %rbx
        mov     %rcx, %rbp
        .cfi_escape 0x0f, 4, 0x73, 0xf0, 0x00, 0x06      /* CFA = *(rbx + R_RSP) */
        .cfi_escape 0x10, 16, 3, 0x73, 0xf8, 0x00        /* rip at rbx + R_RIP */
        .cfi_escape 0x10, 6, 3, 0x73, 0xc0, 0x00         /* rbp at rbx + R_RBP */
        .cfi_escape 0x10, 3, 2, 0x73, 0x38               /* rbx at rbx + R_RBX */
        mov     %rsp, %rdi
        mov     %rcx, %rsi
        call    lissom_spin_arrived
        pushq   R_FLAGS(%rsp)
        mov     %rax, %r12                       /* the program's is in the registers on the stack */
        mov     %rbp, %rcx
        cmp     $ACTION_RAISE, %r12d
        je      .Lspin_raise
        popfq
        mov     R_RAX(%rsp), %rax
        mov     R_RDI(%rsp), %rdi
        mov     R_RSI(%rsp), %rsi
        mov     R_RDX(%rsp), %rdx
        mov     R_R10(%rsp), %r10
        mov     R_R8(%rsp), %r8
        mov     R_R9(%rsp), %r9
        mov     R_RBX(%rsp), %rbx
        mov     R_RBP(%rsp), %rbp
        mov     R_R12(%rsp), %r12
        mov     R_R13(%rsp), %r13
        mov     R_R14(%rsp), %r14
        mov     R_R15(%rsp), %r15
        mov     T_USER_RSP(%rcx), %rsp
        .cfi_def_cfa rsp, 24 + RED_ZONE
        .cfi_offset rip, -(8 + RED_ZONE)
        .cfi_same_value rbx
        .cfi_same_value rbp
        mov     (%rsp), %r11
        lea     8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_exit
        .hidden lissom_at_spin_exit
lissom_at_spin_exit:                             /* as at lissom_at_spin_pushed */
        mov     T_ATTENTION(%rcx), %ecx
        jrcxz   .Lto_go
        jmp     lissom_at_spin_pushed            /* a signal came before in_runtime was cleared: arrive again */
.Lto_go:
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        .globl  lissom_at_spin_popped
        .hidden lissom_at_spin_popped
lissom_at_spin_popped:                           /* as at lissom_spin_entry */
        ret     $RED_ZONE

        /* All signals are blocked and at least one is pending: as .Lraise_then in sched/switch.S. rcx = T. */
.Lspin_raise:
        popfq
        mov     R_RBX(%rsp), %rbx
        mov     R_RBP(%rsp), %rbp
        mov     R_R12(%rsp), %r12
        mov     R_R8(%rsp), %r8
        mov     R_R9(%rsp), %r9
        mov     R_R10(%rsp), %r10
        mov     R_RDX(%rsp), %rdx
        mov     R_RSI(%rsp), %rsi
        mov     R_RDI(%rsp), %rdi
        mov     R_RAX(%rsp), %rax
        mov     T_USER_RSP(%rcx), %rsp
        mov     (%rsp), %r11
        lea     8-48(%rsp), %rsp
        mov     %r11, 40(%rsp)
        mov     %rax, 32(%rsp)
        mov     %rdi, 24(%rsp)
        mov     %rsi, 16(%rsp)
        mov     %rdx, 8(%rsp)
        mov     %r10, 0(%rsp)
        mov     $14, %eax                        /* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
        mov     $2, %edi
        lea     T_RAISE_MASK(%rcx), %rsi
        mov     $0, %edx
        mov     $8, %r10d
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_raise
        .hidden lissom_at_spin_raise
lissom_at_spin_raise:                            /* six registers, rcx, return address: 192 above */
        syscall
        mov     40(%rsp), %r11
        mov     32(%rsp), %rax
        mov     24(%rsp), %rdi
        mov     16(%rsp), %rsi
        mov     8(%rsp), %rdx
        mov     0(%rsp), %r10
        lea     48(%rsp), %rsp
        .globl  lissom_at_spin_raised
        .hidden lissom_at_spin_raised
lissom_at_spin_raised:                           /* as at lissom_at_spin_pushed */
        jmp     .Lto_go
        .globl  lissom_at_spin_end
        .hidden lissom_at_spin_end
lissom_at_spin_end:
        .cfi_endproc
        .size   lissom_spin_entry, . - lissom_spin_entry

        .section .note.GNU-stack, "", @progbits
