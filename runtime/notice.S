/* SPDX-License-Identifier: MIT
 *
 * Targets of the jumps in libc's clone and __clone3 while the process has one thread (notice.h).
 * Each replaces the first instruction of
 *
 *     mov $number,%eax ; syscall
 *
 * libc tests rax afterwards. So this code keeps neither flags nor the registers that the call
 * itself destroys (rax, rcx, r11).
 */
#define CLONE_VM     0x100
#define CLONE_VFORK  0x4000
#define CLONE_THREAD 0x10000
#define RED_ZONE     128
#define SIG_BLOCK    0
#define SIG_SETMASK  2
#define RT_SIGPROCMASK 14

        .text

/* In: rax = flags of the call. Jump if it creates a thread, or a process that shares memory for
 * longer than a vfork. */
.macro JUMP_IF_BESIDE_US to
        test    $CLONE_THREAD, %eax
        jnz     \to
        test    $CLONE_VM, %eax
        jz      1f
        test    $CLONE_VFORK, %eax
        jz      \to
1:
.endm

/* Define the jump target for call `number`, whose flags are `flags`. */
.macro TARGET name, number, flags
        .globl  notice_at_\name, notice_make_\name
        .hidden notice_at_\name, notice_make_\name
        .type   notice_at_\name, @function
notice_at_\name:
        mov     \flags, %rax
        JUMP_IF_BESIDE_US 2f
notice_make_\name:
        mov     $\number, %eax
        syscall
        jmp     *notice_\name\()_behind(%rip)
2:      lea     -RED_ZONE(%rsp), %rsp
        call    notice_begins
        lea     RED_ZONE(%rsp), %rsp
        jmp     *notice_\name\()_again(%rip)
        .size   notice_at_\name, . - notice_at_\name
.endm

        TARGET  clone, 56, %rdi
        TARGET  clone3, 435, (%rdi)              /* struct clone_args begins with the flags */

/* Block all signals, and call notice_call(sp) once, on a separate stack: the caller's may have
 * little room. Signals are blocked before notice_begun is set. Otherwise a handler in between that
 * creates a thread would wait for ever. Keeps all registers but rax, rcx, r11 and flags. */
        .globl  notice_begins
        .hidden notice_begins
        .type   notice_begins, @function
notice_begins:
        .cfi_startproc
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
        push    $0                               /* signal mask */
        mov     $RT_SIGPROCMASK, %eax
        mov     $SIG_BLOCK, %edi
        lea     notice_all_signals(%rip), %rsi
        mov     %rsp, %rdx
        mov     $8, %r10d
        syscall
        mov     $1, %eax
        xchg    %eax, notice_begun(%rip)
        test    %eax, %eax
        jnz     1f                               /* another thread has begun */
        mov     %rsp, %rdi
        lea     notice_stack_end(%rip), %rsp
        push    %rdi
        push    %rdi                             /* twice: alignment */
        call    notice_call
        pop     %rsp
1:      mov     $RT_SIGPROCMASK, %eax
        mov     $SIG_SETMASK, %edi
        mov     %rsp, %rsi
        xor     %edx, %edx
        mov     $8, %r10d
        syscall
        pop     %r10                             /* signal mask */
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
