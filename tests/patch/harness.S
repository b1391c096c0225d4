/* SPDX-License-Identifier: MIT
 *
 * void run_site(void *function, const struct state *in, struct state *out)
 *
 * Loads every register from `in`, jumps to `function` on a stack of its own, and stores the
 * resulting registers in `out`. struct state (shapes.c): 16 words rax rbx rcx rdx rsi rdi rbp rsp
 * r8..r15, flags at 128, mask registers at 136, vector registers at 256 (64 bytes each).
 *
 */
    .text
    .globl run_site
    .type run_site, @function
run_site:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, own_stack(%rip)
    mov %rdx, result(%rip)
    mov %rdi, function(%rip)
    mov 56(%rsi), %rax
    lea .Lback(%rip), %rcx
    mov %rcx, (%rax)

    cmpl $0, have_avx512(%rip)
    je 1f
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 256+64*\n(%rsi), %zmm\n
    .endr
    .irp n, 0,1,2,3,4,5,6,7
    kmovq 136+8*\n(%rsi), %k\n
    .endr
    jmp 2f
1:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu 256+64*\n(%rsi), %xmm\n
    .endr
2:
    pushq 128(%rsi)
    popfq
    mov (%rsi), %rax
    mov 8(%rsi), %rbx
    mov 16(%rsi), %rcx
    mov 24(%rsi), %rdx
    mov 40(%rsi), %rdi
    mov 48(%rsi), %rbp
    mov 56(%rsi), %rsp
    mov 64(%rsi), %r8
    mov 72(%rsi), %r9
    mov 80(%rsi), %r10
    mov 88(%rsi), %r11
    mov 96(%rsi), %r12
    mov 104(%rsi), %r13
    mov 112(%rsi), %r14
    mov 120(%rsi), %r15
    mov 32(%rsi), %rsi
    jmp *function(%rip)

.Lback:                         /* only moves until the flags are safe */
    mov %rax, their_rax(%rip)
    mov %rsp, their_rsp(%rip)
    mov own_stack(%rip), %rsp
    mov result(%rip), %rax
    mov %rbx, 8(%rax)
    mov %rcx, 16(%rax)
    mov %rdx, 24(%rax)
    mov %rsi, 32(%rax)
    mov %rdi, 40(%rax)
    mov %rbp, 48(%rax)
    mov %r8, 64(%rax)
    mov %r9, 72(%rax)
    mov %r10, 80(%rax)
    mov %r11, 88(%rax)
    mov %r12, 96(%rax)
    mov %r13, 104(%rax)
    mov %r14, 112(%rax)
    mov %r15, 120(%rax)
    pushfq
    popq 128(%rax)
    cld
    pushq $0x202
    popfq
    mov their_rax(%rip), %rcx
    mov %rcx, (%rax)
    mov their_rsp(%rip), %rcx
    mov %rcx, 56(%rax)
    cmpl $0, have_avx512(%rip)
    je 1f
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 %zmm\n, 256+64*\n(%rax)
    .endr
    .irp n, 0,1,2,3,4,5,6,7
    kmovq %k\n, 136+8*\n(%rax)
    .endr
    vzeroupper
    jmp 2f
1:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    movdqu %xmm\n, 256+64*\n(%rax)
    .endr
2:
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .size run_site, .-run_site

    .bss
    .balign 8
own_stack: .skip 8
result: .skip 8
function: .skip 8
their_rax: .skip 8
their_rsp: .skip 8
    .globl have_avx512
have_avx512: .skip 4
    .section .note.GNU-stack,"",@progbits
