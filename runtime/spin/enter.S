/* SPDX-License-Identifier: MIT
 *
 * From a spin site's stub into the runtime and back. All registers, the flags and the red zone are
 * live, so rcx and r11 are pushed on the program's stack, below the red zone. Otherwise as in
 * sched/switch.S, whose rules for signals and labels apply here too, and context.S. Signal handlers
 * see the site's instruction (sched/view.c).
 *
 * The stub has subtracted the red zone from rsp and made a call. `ret $128` restores rsp and
 * returns to the stub.
 *
 * Comments at labels name the words from (rsp) upwards, and the depth: how far the program's rsp is
 * above rsp.
 */
#include "sched/registers.h"

.macro CFI_RIP_ON_STACK
        .cfi_offset rip, -(8 + RED_ZONE)
.endm

        .text
        .globl  lissom_spin_entry
        .hidden lissom_spin_entry
        .type   lissom_spin_entry, @function
        .balign 64
        .globl  lissom_at_spin_unknown
        .hidden lissom_at_spin_unknown
lissom_at_spin_unknown:                          /* unregistered thread; jrcxz reaches 127 bytes */
        pop     %rcx
        .globl  lissom_at_spin_unknown_popped
        .hidden lissom_at_spin_unknown_popped
lissom_at_spin_unknown_popped:
        ret     $RED_ZONE
        .globl  lissom_spin_entry_seldom
        .hidden lissom_spin_entry_seldom
lissom_spin_entry_seldom:                        /* entry at seldom sites */
        push    %rcx
        .globl  lissom_at_spin_seldom
        .hidden lissom_at_spin_seldom
lissom_at_spin_seldom:                           /* as at lissom_at_spin_pushed */
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        jrcxz   lissom_at_spin_unknown
        push    %r11
        .globl  lissom_at_spin_counting
        .hidden lissom_at_spin_counting
lissom_at_spin_counting:                         /* r11, rcx, return address; depth 152 */
        movzbl  T_SELDOM_TURNS(%rcx), %r11d
        lea     -1(%r11), %r11d
        mov     %r11b, T_SELDOM_TURNS(%rcx)
        movzbl  %r11b, %ecx
        pop     %r11
        .globl  lissom_at_spin_counted
        .hidden lissom_at_spin_counted
lissom_at_spin_counted:                          /* as at lissom_at_spin_pushed */
        jrcxz   lissom_at_spin_pushed
        pop     %rcx
        .globl  lissom_at_spin_passed
        .hidden lissom_at_spin_passed
lissom_at_spin_passed:                           /* as at lissom_spin_entry */
        ret     $RED_ZONE
        .balign 16
lissom_spin_entry:                               /* return address; depth 136 */
        .cfi_startproc
        .cfi_signal_frame
        .cfi_def_cfa rsp, 8 + RED_ZONE
        .cfi_offset rip, -(8 + RED_ZONE)
        push    %rcx
        .cfi_adjust_cfa_offset 8
        .globl  lissom_at_spin_pushed
        .hidden lissom_at_spin_pushed
lissom_at_spin_pushed:                           /* rcx, return address; depth 144 */
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        jrcxz   lissom_at_spin_unknown
        movl    $1, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_committed
        .hidden lissom_at_spin_committed
lissom_at_spin_committed:
        push    %r11
        .cfi_adjust_cfa_offset 8
        STORE_REGISTERS 24 + RED_ZONE
        mov     T_USER_RSP(%rcx), %r11           /* points to r11, rcx, return address */
        lea     24+RED_ZONE(%r11), %rdx
        mov     %rdx, R_RSP(%rsp)
        mov     16(%r11), %rdx
        mov     %rdx, R_RIP(%rsp)
        CFI_STORED_REGISTERS
        mov     %rsp, %rdi
        mov     %rcx, %rsi
        call    lissom_spin_hit
        cmp     $ACTION_RAISE, %eax
        je      .Lspin_raise
        LOAD_REGISTERS 24 + RED_ZONE, CFI_RIP_ON_STACK
        mov     (%rsp), %r11
        lea     8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_exit
        .hidden lissom_at_spin_exit
lissom_at_spin_exit:                             /* as at lissom_at_spin_pushed */
        mov     T_PENDING_WORK(%rcx), %ecx
        jrcxz   .Lto_go
        jmp     lissom_at_spin_pushed            /* a signal came before the clearing */
.Lto_go:
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        .globl  lissom_at_spin_popped
        .hidden lissom_at_spin_popped
lissom_at_spin_popped:                           /* as at lissom_spin_entry */
        ret     $RED_ZONE

        /* All signals are blocked and at least one is pending: as .Lraise_then of switch.S. */
.Lspin_raise:
        CFI_STORED_REGISTERS
        LOAD_REGISTERS 24 + RED_ZONE, CFI_RIP_ON_STACK
        mov     (%rsp), %r11
        lea     8-48(%rsp), %rsp
        .cfi_adjust_cfa_offset 48 - 8
        mov     %r11, 40(%rsp)
        mov     %rax, 32(%rsp)
        mov     %rdi, 24(%rsp)
        mov     %rsi, 16(%rsp)
        mov     %rdx, 8(%rsp)
        mov     %r10, 0(%rsp)
        RAISE_MASK_ARGUMENTS
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_spin_raise
        .hidden lissom_at_spin_raise
lissom_at_spin_raise:                            /* 6 registers, rcx, return address; depth 192 */
        syscall
        mov     40(%rsp), %r11
        mov     32(%rsp), %rax
        mov     24(%rsp), %rdi
        mov     16(%rsp), %rsi
        mov     8(%rsp), %rdx
        mov     0(%rsp), %r10
        lea     48(%rsp), %rsp
        .cfi_adjust_cfa_offset -48
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
