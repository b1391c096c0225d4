/* SPDX-License-Identifier: MIT
 *
 * Where libc's clone and __clone3 jump to while the process has one thread (notice.h), in the place
 * of
 *
 *     mov $number,%eax ; syscall
 *
 * behind which they test rax: flags need not be kept, nor what the call itself destroys (rax, rcx,
 * r11).
 */
#define CLONE_VM     0x100
#define CLONE_VFORK  0x4000
#define CLONE_THREAD 0x10000
#define RED_ZONE     128
#define SIG_BLOCK    0
#define SIG_SETMASK  2
#define RT_SIGPROCMASK 14

        .text

/* In: rax = flags of the call. Shares memory for longer than a vfork, or is a thread: jumps. */
.macro JUMP_IF_BESIDE_US to
        test    $CLONE_THREAD, %eax
        jnz     \to
        test    $CLONE_VM, %eax
        jz      1f
        test    $CLONE_VFORK, %eax
        jz      \to
1:
.endm

        .globl  notice_at_clone
        .hidden notice_at_clone
        .type   notice_at_clone, @function
notice_at_clone:                                 /* rdi = flags */
        mov     %rdi, %rax
        JUMP_IF_BESIDE_US 2f
        .globl  notice_make_clone
        .hidden notice_make_clone
notice_make_clone:
        mov     $56, %eax
        syscall
        jmp     *notice_clone_behind(%rip)
2:      lea     -RED_ZONE(%rsp), %rsp
        call    notice_begins
        lea     RED_ZONE(%rsp), %rsp
        jmp     *notice_clone_again(%rip)
        .size   notice_at_clone, . - notice_at_clone

        .globl  notice_at_clone3
        .hidden notice_at_clone3
        .type   notice_at_clone3, @function
notice_at_clone3:                                /* rdi = struct clone_args, the flags first */
        mov     (%rdi), %rax
        JUMP_IF_BESIDE_US 2f
        .globl  notice_make_clone3
        .hidden notice_make_clone3
notice_make_clone3:
        mov     $435, %eax
        syscall
        jmp     *notice_clone3_behind(%rip)
2:      lea     -RED_ZONE(%rsp), %rsp
        call    notice_begins
        lea     RED_ZONE(%rsp), %rsp
        jmp     *notice_clone3_again(%rip)
        .size   notice_at_clone3, . - notice_at_clone3

/* Once: blocks all signals, and calls notice_call(sp) on a stack of its own: there may be little
 * room on the caller's. Keeps all registers but rax, rcx, r11 and flags. */
        .globl  notice_begins
        .hidden notice_begins
        .type   notice_begins, @function
notice_begins:
        .cfi_startproc
        mov     $1, %eax
        xchg    %eax, notice_begun(%rip)
        test    %eax, %eax
        jz      1f
        ret                                      /* another thread is at it, or has been */
1:
        push    %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        mov     %rsp, %rbp
        .cfi_def_cfa_register rbp
        push    %rdi
        push    %rsi
        push    %rdx
        push    %r8
        push    %r9
        push    %r10
        push    $0                               /* the mask */
        mov     $RT_SIGPROCMASK, %eax
        mov     $SIG_BLOCK, %edi
        lea     notice_all_signals(%rip), %rsi
        mov     %rsp, %rdx
        mov     $8, %r10d
        syscall
        mov     %rsp, %rdi
        lea     notice_stack_end(%rip), %rsp
        push    %rdi
        push    %rdi                             /* twice: alignment */
        call    notice_call
        pop     %rsp
        mov     $RT_SIGPROCMASK, %eax
        mov     $SIG_SETMASK, %edi
        mov     %rsp, %rsi
        xor     %edx, %edx
        mov     $8, %r10d
        syscall
        pop     %r10                             /* the mask */
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rdx
        pop     %rsi
        pop     %rdi
        pop     %rbp
        .cfi_def_cfa rsp, 8
        ret
        .cfi_endproc
        .size   notice_begins, . - notice_begins

        .section .rodata
        .balign 8
notice_all_signals:
        .quad   -1

        .bss
        .balign 64
notice_begun:
        .long   0
        .balign 64
        .space  65536
notice_stack_end:

        .section .note.GNU-stack, "", @progbits
