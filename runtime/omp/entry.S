/* SPDX-License-Identifier: MIT
 *
 * Entry of redirected functions (patch/patch.h, patch_redirect), and of their threads into the
 * runtime.
 *
 * The functions are called like any C function: registers that a callee may change are free, and
 * the stack may be used.
 */
#include "sched/offsets.h"

        .text
        .globl  lissom_omp_entry
        .hidden lissom_omp_entry
        .type   lissom_omp_entry, @function
        .balign 32
lissom_omp_entry:                                /* r11 = struct patch_redirect *, else as called */
        .cfi_startproc
        /* Fast path, taken for each chunk: the thread asks again in the same loop, and as many
         * threads work as should. */
        mov     lissom_self@gottpoff(%rip), %rax
        mov     %fs:(%rax), %rax
        test    %rax, %rax
        jz      .Lunknown
        cmpl    $0, T_AT_WORK(%rax)
        je      .Llook
        mov     REDIRECT_WHAT(%r11), %r10d
        cmp     $OMP_NEXT, %r10d
        je      .Lsame
        cmp     $OMP_DISPATCH, %r10d
        jne     .Llook
.Lsame: mov     T_LOOP(%rax), %r10
        mov     LOOP_WORKING(%r10), %r10d
        cmp     lissom_omp_target(%rip), %r10d
        jne     .Llook
        incl    T_CHUNKS(%rax)
        lea     -8(%rsp), %rsp
        .cfi_adjust_cfa_offset 8
        call    *REDIRECT_REAL(%r11)
        test    %al, %al
        jz      1f
        lea     8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_adjust_cfa_offset 8
1:      mov     %rax, (%rsp)
        call    lissom_omp_over
        mov     (%rsp), %rax
        lea     8(%rsp), %rsp
        .cfi_adjust_cfa_offset -8
        ret
.Lunknown:                                       /* thread not registered with the runtime yet */
        testl   $OMP_TEAM, REDIRECT_WHAT(%r11)
        jnz     .Lteam
        jmp     *REDIRECT_REAL(%r11)

.Llook: testl   $OMP_TEAM, REDIRECT_WHAT(%r11)
        jnz     .Lteam
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register rbp
        push    %rbx
        .cfi_offset rbx, -24
        mov     %r11, %rbx
        push    %rdi
        push    %rsi
        push    %rdx
        push    %rcx
        push    %r8
        push    %r9
        lea     -8(%rsp), %rsp
        mov     %r11, %rdi
        mov     8(%rbp), %rsi                    /* return address; rdx as called */
        call    lissom_omp_before
        lea     8(%rsp), %rsp
        pop     %r9
        pop     %r8
        pop     %rcx
        pop     %rdx
        pop     %rsi
        pop     %rdi
        lea     -8(%rsp), %rsp                   /* aligns the stack for the call */
        /* Arguments 7 and 8. Only doacross loops with task reductions have the latter; none has
         * more. */
        push    24(%rbp)
        push    16(%rbp)
        call    *REDIRECT_REAL(%rbx)
        mov     %rax, (%rsp)
        mov     %rbx, %rdi
        movzbl  %al, %esi
        call    lissom_omp_after
        mov     (%rsp), %rax
        mov     -8(%rbp), %rbx
        .cfi_same_value rbx
        leave
        .cfi_def_cfa rsp, 8
        .cfi_same_value rbp
        ret

        /* The function may have any number of arguments on the stack. So it is not called, but
         * jumped to with the stack as it was. */
.Lteam: push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register rbp
        push    %rsi
        push    %rcx
        push    %r8
        push    %r9
        push    %r11
        lea     -8(%rsp), %rsp                   /* aligns the stack for the call */
        push    %rdx                             /* struct team_call: rdi, rdx */
        push    %rdi
        mov     %r11, %rdi
        mov     %rsp, %rsi
        call    lissom_omp_team
        pop     %rdi
        pop     %rdx
        lea     8(%rsp), %rsp
        pop     %r11
        pop     %r9
        pop     %r8
        pop     %rcx
        pop     %rsi
        pop     %rbp
        .cfi_def_cfa rsp, 8
        .cfi_same_value rbp
        jmp     *REDIRECT_REAL(%r11)
        .cfi_endproc
        .size   lissom_omp_entry, . - lissom_omp_entry

/* void lissom_omp_call(struct loop *l, long what, long n): call loops_call() inside the runtime.
 * The system call of this site is never made. A thread that shares its memory with another process
 * makes it "directly", which here has no effect. */
        .globl  lissom_omp_call
        .hidden lissom_omp_call
        .type   lissom_omp_call, @function
        .balign 32
lissom_omp_call:
        .cfi_startproc
        mov     $202, %eax                       # futex, to who asks which call it is
        lea     lissom_omp_site(%rip), %rcx
        jmp     lissom_syscall_entry
.Lsyscall:
        nop
        nop
.Lafter:
        ret
        .cfi_endproc
        .size   lissom_omp_call, . - lissom_omp_call

        .section .data.rel.ro, "aw", @progbits
        .globl  lissom_omp_site
        .hidden lissom_omp_site
        .type   lissom_omp_site, @object
        .balign 8
lissom_omp_site:                                 /* struct patch_site */
        .quad   .Lsyscall
        .quad   .Lafter
        .quad   .Lafter
        .zero   SITE_SIZE - 24
        .size   lissom_omp_site, . - lissom_omp_site

        .section .note.GNU-stack, "", @progbits
