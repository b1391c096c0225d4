/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_PRIM_KERNEL_THREAD_H
#define LISSOM_PRIM_KERNEL_THREAD_H

#include "prim/prim.h"

#include <linux/sched.h>
#include <stdint.h>
#include <time.h>

/* Create a kernel thread that runs f. It has no TLS, is unknown to libc, and inherits the caller's
 * signal mask, affinity and other attributes. Returns its tid, or a negated errno. When the thread
 * no longer exists or uses its stack, the kernel clears *alive and wakes waiters there (FUTEX_WAIT,
 * not private).
 *
 * Pre: f does not return, and calls nothing of libc; stack_top: the end of its stack, 16-byte
 * aligned; *alive is not 0. */
static inline long prim_kernel_thread(void (*f)(void), char *stack_top, uint32_t *alive)
{
    register long flags __asm__("rdi") = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                         CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    register char *top __asm__("rsi") = stack_top;
    register uint32_t *clear __asm__("r10") = alive;
    register void (*begin)(void) __asm__("r9") = f; /* not in rbp, which is cleared */
    long ret;
    __asm__ volatile("xor %%edx, %%edx\n\txor %%r8d, %%r8d\n\tsyscall\n\t"
                     "test %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tcall *%[f]\n\tud2\n1:"
                     : "=a"(ret)
                     : "a"(SYS_clone), "r"(flags), "r"(top), "r"(clear), [f] "r"(begin)
                     : "rcx", "r11", "rdx", "r8", "memory");
    return ret;
}

/* Wait until the thread has ended. Its stack is then free, and /proc/PID/task no longer lists it
 * with its credentials. The kernel clears *alive some time before that. The second wait ends after
 * 2,000 checks, in case another thread got the tid. tid: returned by prim_kernel_thread. Pre: the
 * thread has been asked to end. */
static inline void prim_kernel_thread_join(uint32_t *alive, long tid)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000};
    uint32_t there;
    while ((there = __atomic_load_n(alive, __ATOMIC_SEQ_CST)) != 0)
        prim_syscall4(SYS_futex, alive, 0 /* FUTEX_WAIT, not private as the kernel's wake */, there,
                      0);
    long pid = prim_pid();
    for (int looks = 0; looks < 2000 && prim_syscall3(SYS_tgkill, pid, tid, 0) == 0; looks++)
        prim_syscall3(SYS_nanosleep, (long)&pause, 0, 0);
}

#endif
