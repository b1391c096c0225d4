/* SPDX-License-Identifier: MIT
 *
 * The ways into and out of the runtime.
 *
 * In: a patched system call site (patch/patch.h) jumps to lissom_syscall_entry. rcx = its struct
 * patch_site; every other register but r11 is the program's. The program's stack is not touched:
 * its red zone is live, and there may be little room. The registers go to the thread's own *runtime
 * stack*.
 *
 * Vector state: the runtime is compiled without vector registers, so they are unchanged unless
 * another context runs in between (context.S).
 *
 * Signals: from `movl $1, T_IN_RUNTIME` to `movl $0, T_IN_RUNTIME` no handler of the program runs
 * (sched/signals.c defers the signal). Elsewhere in this file, a handler sees the instruction
 * pointer of the site: the labels named lissom_at_* are for that translation. So the code between
 * those labels has the stack pointer in one of two known places. All of it keeps the flags: it uses
 * only mov, lea, xchg, push, pop and jrcxz.
 */
#include "sched/registers.h"

        .text

/* Move the program's registers to the runtime stack. In: rcx = T, r11 = site. Out: rbx = the saved
 * registers, rbp = T. */
.macro SAVE_REGISTERS
        mov     %r11, T_SITE(%rcx)
        STORE_REGISTERS 0
        mov     T_USER_RSP(%rcx), %rdx
        mov     %rdx, R_RSP(%rsp)
        mov     SITE_SYSCALL(%r11), %rdx
        add     $2, %rdx
        mov     %rdx, R_RIP(%rsp)
        CFI_STORED_REGISTERS
.endm

.macro CFI_RIP_BY_SITE_IN_R11
        /* rip = *(r11 + SITE_SYSCALL) + 2 */
        .cfi_escape 0x16, 16, 5, 0x7b, SITE_SYSCALL, 0x06, 0x23, 2
.endm
.macro LOAD_SITE
        mov     T_SITE(%rcx), %r11
        CFI_RIP_BY_SITE_IN_R11
.endm

/* Restore the program's registers. In: rsp = the saved registers, rbp = T. Out: rcx = T, r11 =
 * site, all others the program's; in_runtime is still set. */
.macro RESTORE_REGISTERS
        LOAD_REGISTERS 0, LOAD_SITE
.endm

/* For unwinders, that is debuggers. (Handlers see the state at the site: view.c.) The frame is the
 * program's, right after the site's system call. The site is in r11, in rcx, or on the stack,
 * `depth` below the program's stack pointer. */
.macro CFI_SITE_IN_R11
        .cfi_def_cfa rsp, 0
        CFI_RIP_BY_SITE_IN_R11
.endm
.macro CFI_SITE_IN_RCX
        .cfi_def_cfa rsp, 0
        .cfi_escape 0x16, 16, 5, 0x72, SITE_SYSCALL, 0x06, 0x23, 2
.endm
.macro CFI_SITE_ON_STACK depth
        .cfi_def_cfa rsp, \depth
        .cfi_escape 0x16, 16, 8, 0x77, 0, 0x06, 0x23, SITE_SYSCALL, 0x06, 0x23, 2
.endm

        .globl  lissom_syscall_entry
        .hidden lissom_syscall_entry
        .type   lissom_syscall_entry, @function
        .balign 64
.Lto_unregistered:                               /* jrcxz reaches 127 bytes only */
        jmp     .Lunregistered
        .balign 16
lissom_syscall_entry:
        .cfi_startproc
        .cfi_signal_frame
        CFI_SITE_IN_RCX
        mov     lissom_self@gottpoff(%rip), %r11
        mov     %fs:(%r11), %r11
        xchg    %rcx, %r11
        CFI_SITE_IN_R11
        .globl  lissom_at_entry_swapped
        .hidden lissom_at_entry_swapped
lissom_at_entry_swapped:
        jrcxz   .Lto_unregistered
        movl    $1, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_entry_committed
        .hidden lissom_at_entry_committed
lissom_at_entry_committed:
        SAVE_REGISTERS
        mov     %rsp, %rdi
        mov     %rcx, %rsi
        call    lissom_syscall
.Laction:
        cmp     $ACTION_RETURN, %eax
        je      .Lreturn
        cmp     $ACTION_DIRECT, %eax
        je      .Ldirect
        cmp     $ACTION_CALL, %eax
        je      .Lcall
        cmp     $ACTION_RAISE, %eax
        je      .Lraise
        cmp     $ACTION_RESTART, %eax
        je      .Lrestart
        lea     .Lcall_from_raise(%rip), %rax
        jmp     .Lraise_then
.Lrestart:
        lea     lissom_syscall_entry(%rip), %rax
        jmp     .Lraise_then
.Lraise:
        lea     .Lgo_after(%rip), %rax
        jmp     .Lraise_then

.Lreturn:
        RESTORE_REGISTERS
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_exit
        .hidden lissom_at_exit
lissom_at_exit:                                  /* r11 = site */
        mov     T_PENDING_WORK(%rcx), %ecx
        jrcxz   1f
        jmp     .Lpending_work
1:      jmp     *SITE_AFTER(%r11)

.Lgo_after:                                      /* rcx = site */
        mov     %rcx, %r11
        jmp     *SITE_AFTER(%r11)

/* a signal came before in_runtime was cleared: handle it now */
.Lpending_work:
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        movl    $1, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_exit_end
        .hidden lissom_at_exit_end
lissom_at_exit_end:
        SAVE_REGISTERS
        mov     %rsp, %rdi
        mov     %rcx, %rsi
        call    lissom_attend
        jmp     .Laction

        /* Make the call as if lissom were not there: for calls that return twice, elsewhere or
         * never. */
.Ldirect:
        RESTORE_REGISTERS
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_direct
        .hidden lissom_at_direct
lissom_at_direct:                                /* r11 = site; before the call */
        mov     T_PENDING_WORK(%rcx), %ecx
        jrcxz   1f
        mov     %r11, %rcx
        jmp     lissom_syscall_entry
1:      jmp     *SITE_DIRECT(%r11)
        .globl  lissom_at_direct_end
        .hidden lissom_at_direct_end
lissom_at_direct_end:

        /* Make the call on the program's stack, where its handlers may run, unwind or jump away.
         * Then call lissom_syscall_done. */
.Lcall:
        CFI_STORED_REGISTERS
        RESTORE_REGISTERS
        lea     -RED_ZONE(%rsp), %rsp
        push    %r11
        CFI_SITE_ON_STACK 8 + RED_ZONE
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_call
        .hidden lissom_at_call
/* site at (rsp), the program's stack 8 + RED_ZONE above */
lissom_at_call:
        mov     T_PENDING_WORK(%rcx), %ecx
        jrcxz   1f
        /* start again at the entry, which handles the signal first */
        mov     (%rsp), %rcx
        lea     8+RED_ZONE(%rsp), %rsp
        jmp     lissom_syscall_entry
1:      syscall
        .globl  lissom_at_call_made
        .hidden lissom_at_call_made
lissom_at_call_made:
        mov     (%rsp), %r11
        lea     8+RED_ZONE(%rsp), %rsp
        .globl  lissom_at_call_end
        .hidden lissom_at_call_end
lissom_at_call_end:                              /* r11 = site */
        CFI_SITE_IN_R11
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        jrcxz   1f
        jmp     2f
        /* the thread has left the runtime in a handler that interrupted the call */
1:      jmp     *SITE_AFTER(%r11)
2:      movl    $1, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_done_committed
        .hidden lissom_at_done_committed
lissom_at_done_committed:
        SAVE_REGISTERS
        mov     %rsp, %rdi
        mov     %rcx, %rsi
        call    lissom_syscall_done
        jmp     .Laction

.Lcall_from_raise:                               /* rcx = site */
        CFI_SITE_IN_RCX
        lea     -RED_ZONE(%rsp), %rsp
        push    %rcx
        CFI_SITE_ON_STACK 8 + RED_ZONE
        mov     lissom_self@gottpoff(%rip), %rcx
        mov     %fs:(%rcx), %rcx
        jrcxz   1f
        mov     (%rsp), %r11
        jmp     lissom_at_call
1:      mov     (%rsp), %r11                     /* it has left the runtime since */
        lea     8+RED_ZONE(%rsp), %rsp
        CFI_SITE_IN_R11
        jmp     *SITE_DIRECT(%r11)

        /* All signals are blocked, and at least one is pending. Restore the program's mask with the
         * program's stack and registers, so that the handler runs as if the system call had just
         * ended. In: rax = where to go then, with rcx = site. */
.Lraise_then:
        CFI_STORED_REGISTERS
        /* the program's r12 is in the saved registers; it is loaded below */
        mov     %rax, %r12
        .cfi_escape 0x10, 12, 3, 0x73, R_R12 | 0x80, 0
        RESTORE_REGISTERS
        .cfi_undefined r12
        lea     -RED_ZONE-64(%rsp), %rsp
        mov     %r11, 0(%rsp)
        CFI_SITE_ON_STACK 64 + RED_ZONE
        mov     %r12, 8(%rsp)
        mov     %rax, 16(%rsp)
        mov     %rdi, 24(%rsp)
        mov     %rsi, 32(%rsp)
        mov     %rdx, 40(%rsp)
        mov     %r10, 48(%rsp)
        mov     T_RUNTIME_STACK(%rcx), %rdx
        mov     -R_SIZE+R_R12(%rdx), %r12
        .cfi_same_value r12
        RAISE_MASK_ARGUMENTS
        movl    $0, T_IN_RUNTIME(%rcx)
        .globl  lissom_at_raise
        .hidden lissom_at_raise
/* site at (rsp), the program's stack 64 + RED_ZONE above */
lissom_at_raise:
        syscall
        mov     16(%rsp), %rax
        mov     24(%rsp), %rdi
        mov     32(%rsp), %rsi
        mov     40(%rsp), %rdx
        mov     48(%rsp), %r10
        mov     8(%rsp), %r11
        mov     0(%rsp), %rcx
        lea     RED_ZONE+64(%rsp), %rsp
        .globl  lissom_at_raise_end
        .hidden lissom_at_raise_end
lissom_at_raise_end:                             /* rcx = site, r11 = target */
        CFI_SITE_IN_RCX
        jmp     *%r11
        .globl  lissom_at_raise_gone
        .hidden lissom_at_raise_gone
lissom_at_raise_gone:

        /* First call of a thread: register it, on its own stack. In: r11 = site. */
.Lunregistered:
        CFI_SITE_IN_R11
        lea     -RED_ZONE(%rsp), %rsp
        pushfq
        push    %r11
        push    %rax
        push    %rdi
        push    %rsi
        push    %rdx
        push    %r10
        push    %r8
        push    %r9
        push    %rbp
        mov     %rsp, %rbp
        .cfi_def_cfa rbp, 80 + RED_ZONE
        .cfi_offset rbp, -(80 + RED_ZONE)
        /* the site is at 64(rbp) */
        .cfi_escape 0x16, 16, 9, 0x76, 0xc0, 0, 0x06, 0x23, SITE_SYSCALL, 0x06, 0x23, 2
        mov     %rsp, %rdi
        and     $-64, %rsp
        cld
        call    lissom_first_call
        mov     %rbp, %rsp
        /* T; 0: make the call natively; 1: rax is the result */
        mov     %rax, %rcx
        pop     %rbp
        pop     %r9
        pop     %r8
        pop     %r10
        pop     %rdx
        pop     %rsi
        pop     %rdi
        pop     %rax
        pop     %r11
        popfq
        lea     RED_ZONE(%rsp), %rsp
        jrcxz   1f
        lea     -1(%rcx), %rcx
        jrcxz   2f
        mov     %r11, %rcx
        jmp     lissom_syscall_entry
1:      jmp     *SITE_DIRECT(%r11)
2:      jmp     *SITE_AFTER(%r11)
        .cfi_endproc
        .size   lissom_syscall_entry, . - lissom_syscall_entry

/* For unwinders: all registers are in a ucontext_t. `base`: the DWARF number of the register that
 * points to it (opcode 0x70 + base). */
#define UC_R8 40
#define UC_R9 48
#define UC_R10 56
#define UC_R11 64
#define UC_R12 72
#define UC_R13 80
#define UC_R14 88
#define UC_R15 96
#define UC_RDI 104
#define UC_RSI 112
#define UC_RBP 120
#define UC_RBX 128
#define UC_RDX 136
#define UC_RAX 144
#define UC_RCX 152
#define UC_RSP 160
#define UC_RIP 168
.macro CFI_UC_REGISTER base, register, at
        .cfi_escape 0x10, \register, 3, 0x70 + \base, ((\at) & 0x7f) | 0x80, (\at) >> 7
.endm
.macro CFI_UC base
        .cfi_escape 0x0f, 4, 0x70 + \base, (UC_RSP & 0x7f) | 0x80, UC_RSP >> 7, 0x06
        CFI_UC_REGISTER \base, 0, UC_RAX
        CFI_UC_REGISTER \base, 1, UC_RDX
        CFI_UC_REGISTER \base, 2, UC_RCX
        CFI_UC_REGISTER \base, 3, UC_RBX
        CFI_UC_REGISTER \base, 4, UC_RSI
        CFI_UC_REGISTER \base, 5, UC_RDI
        CFI_UC_REGISTER \base, 6, UC_RBP
        CFI_UC_REGISTER \base, 8, UC_R8
        CFI_UC_REGISTER \base, 9, UC_R9
        CFI_UC_REGISTER \base, 10, UC_R10
        CFI_UC_REGISTER \base, 11, UC_R11
        CFI_UC_REGISTER \base, 12, UC_R12
        CFI_UC_REGISTER \base, 13, UC_R13
        CFI_UC_REGISTER \base, 14, UC_R14
        CFI_UC_REGISTER \base, 15, UC_R15
        CFI_UC_REGISTER \base, 16, UC_RIP
.endm

/* Continuation of a thread that our handler has diverted (signals.c). In: rdi = T, rsi = f, rbx =
 * the interrupted ucontext_t, rsp = the runtime stack of T. */
        .globl  lissom_diverted
        .hidden lissom_diverted
        .type   lissom_diverted, @function
        .balign 16
        .cfi_startproc
        .cfi_signal_frame
        CFI_UC  3
        nop
lissom_diverted:
        call    lissom_divert
        ud2
        .cfi_endproc
        .size   lissom_diverted, . - lissom_diverted

/* void lissom_resume(const ucontext_t *uc) */
        .globl  lissom_resume
        .hidden lissom_resume
        .type   lissom_resume, @function
        .balign 16
lissom_resume:
        .cfi_startproc
        .cfi_signal_frame
        CFI_UC  5
        mov     %rdi, %rsp
        mov     $15, %eax
        syscall
        ud2
        .cfi_endproc
        .size   lissom_resume, . - lissom_resume

/* The program's handlers return here, with rsp = the ucontext_t of the frame that frame_push has
 * made. This is a system call site that is redirected from the start. gdb recognizes a frame by
 * this name, other unwinders by the rules. The nop is for unwinders that look up the return address
 * minus one. */
        .globl  __restore_rt
        .hidden __restore_rt
        .type   __restore_rt, @function
        .balign 16
        .cfi_startproc
        .cfi_signal_frame
        CFI_UC  7
        nop
__restore_rt:
        lea     lissom_return_site(%rip), %rcx
        mov     $15, %eax
        jmp     lissom_syscall_entry
.Lreturn_direct:
        mov     $15, %eax
.Lreturn_syscall:
        syscall
.Lreturn_after:
        ud2
        .cfi_endproc
        .size   __restore_rt, . - __restore_rt

/* The kernel returns from our own handler through this. gdb and the unwinder recognize it by its
 * bytes; gdb also requires such a name. */
        .globl  lissom_sigaction_restorer
        .hidden lissom_sigaction_restorer
        .type   lissom_sigaction_restorer, @function
        .balign 16
        nop
lissom_sigaction_restorer:
        mov     $15, %rax
        syscall
        .size   lissom_sigaction_restorer, . - lissom_sigaction_restorer

        .section .data.rel.ro, "aw", @progbits
        .globl  lissom_return_site
        .hidden lissom_return_site
        .type   lissom_return_site, @object
        .balign 64
lissom_return_site:                              /* struct patch_site */
        .quad   .Lreturn_syscall
        .quad   .Lreturn_direct
        .quad   .Lreturn_after
        .zero   SITE_SIZE - 24
        .size   lissom_return_site, SITE_SIZE

        .section .note.GNU-stack, "", @progbits
