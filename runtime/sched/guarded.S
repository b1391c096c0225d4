/* SPDX-License-Identifier: MIT
 *
 * Functions in which our handler moves the instruction pointer (sched/view.c): accesses to the
 * program's memory, which may fault, and a sleep that must not miss a signal.
 */
        .text

/* long lissom_event_sleep(int instance, struct epoll_event *events, int n, int ms, const volatile
 * uint32_t *pending_work)
 *
 * A handler may set *pending_work between the check of it and the system call. It then moves the
 * instruction pointer from between lissom_at_event_sleep and lissom_at_event_slept to
 * lissom_at_event_awake (sched/view.c). */
        .globl  lissom_event_sleep
        .hidden lissom_event_sleep
        .type   lissom_event_sleep, @function
        .globl  lissom_at_event_sleep
        .hidden lissom_at_event_sleep
        .globl  lissom_at_event_slept
        .hidden lissom_at_event_slept
        .globl  lissom_at_event_awake
        .hidden lissom_at_event_awake
lissom_event_sleep:
        .cfi_startproc
        mov     %rcx, %r10
        mov     $232, %eax              # epoll_wait
lissom_at_event_sleep:
        cmpl    $0, (%r8)
        jne     lissom_at_event_awake
        syscall
lissom_at_event_slept:
        ret
lissom_at_event_awake:
        mov     $-4, %rax               # -EINTR
        ret
        .cfi_endproc
        .size   lissom_event_sleep, . - lissom_event_sleep

/* long lissom_guarded_load(const uint32_t *address, uint32_t *value);
 *
 * long lissom_guarded_copy(void *to, const void *from, size_t bytes);
 *
 * long lissom_guarded_exchange(uint32_t *word, uint32_t *expected, uint32_t new);
 *
 * Each returns 0 (the last one: or 1 if *word differed), or -EFAULT if an access faults. The
 * handler of the fault moves the instruction pointer from between lissom_at_guarded and
 * lissom_at_guarded_end to lissom_at_guarded_fault (sched/view.c). */
        .globl  lissom_guarded_load
        .hidden lissom_guarded_load
        .type   lissom_guarded_load, @function
        .globl  lissom_guarded_copy
        .hidden lissom_guarded_copy
        .type   lissom_guarded_copy, @function
        .globl  lissom_guarded_exchange
        .hidden lissom_guarded_exchange
        .type   lissom_guarded_exchange, @function
        .globl  lissom_at_guarded
        .hidden lissom_at_guarded
        .globl  lissom_at_guarded_end
        .hidden lissom_at_guarded_end
        .globl  lissom_at_guarded_fault
        .hidden lissom_at_guarded_fault
lissom_at_guarded:
lissom_guarded_load:
        .cfi_startproc
        mov     (%rdi), %eax
        mov     %eax, (%rsi)
        xor     %eax, %eax
        ret
lissom_guarded_copy:
        mov     %rdx, %rcx
        rep movsb
        xor     %eax, %eax
        ret
lissom_guarded_exchange:
        mov     (%rsi), %eax
        lock cmpxchg %edx, (%rdi)
        mov     %eax, (%rsi)
        setne   %al
        movzx   %al, %eax
        ret
lissom_at_guarded_end:
lissom_at_guarded_fault:
        mov     $-14, %rax
        ret
        .cfi_endproc

        .section .note.GNU-stack, "", @progbits
