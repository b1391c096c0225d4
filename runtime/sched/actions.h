/* SPDX-License-Identifier: MIT
 *
 * The signal actions of the program. The kernel has ours in their place (signals_handler); queries
 * of the program are answered from here.
 */
#ifndef LISSOM_ACTIONS_H
#define LISSOM_ACTIONS_H

#include "sched/thread.h"

#include <signal.h>

struct kernel_sigaction { /* as rt_sigaction(2) has it */
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* The preemption signal; the value that is sent with it identifies it. SIGURG, because programs
 * hardly need it: it is ignored by default, rarely sent, and debuggers pass it on silently. But the
 * kernel keeps only one SIGURG pending, so one of the program's could be lost behind ours. If a
 * program has a handler for SIGURG, the preemption signal becomes a counted signal; a debugger then
 * stops at each. */
enum { SIGNALS = 64, PREEMPT_QUIET = SIGURG, PREEMPT_COUNTED = SIGNALS };

/* Return the number that is sent now. The other one may still be pending. */
int preempt_signal(void);
/* Switch to the counted preemption signal: the program reads SIGURG in a way that does not show our
 * value, or would lose one. */
void preempt_leave_quiet(void);

static inline uint64_t signal_bit(int sig) { return 1ull << (sig - 1); }
#define PREEMPT_SIGNALS (signal_bit(PREEMPT_QUIET) | signal_bit(PREEMPT_COUNTED))
/* Signals that the faulting instruction itself raises: if they were blocked, a guarded load's fault
 * would kill the process. */
#define SYNCHRONOUS \
    (signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) | signal_bit(SIGFPE) | \
     signal_bit(SIGTRAP) | signal_bit(SIGSYS))

/* Install our handler where it is needed from the start. */
void actions_init(void);
/* In a child with a copy of the memory. cleared: the kernel has reset all handlers, but has kept
 * what is ignored. */
void actions_after_fork(bool cleared);
/* In a child that shares the memory, and whose handlers the kernel has reset: ignore what the
 * program ignores. */
void actions_after_clearing(void);
/* Perform rt_sigaction(2). Returns an ACTION_*. */
long actions_call(struct user_registers *r);
/* By the monitor, from time to time: take over actions that the program has set by system calls
 * that are not redirected. */
void actions_look(void);
/* Before execve(2): give the kernel SIG_IGN for signals that the program ignores, which the new
 * program inherits. */
void actions_before_exec(void);
/* Undo actions_before_exec: execve(2) has failed. */
void actions_after_exec(void);
/* Perform rt_sigaction(2) of a child of vfork(2), which has the kernel's actions: it reads the
 * program's action where the kernel has ours. Returns an ACTION_*. */
long actions_of_child(struct user_registers *r);
/* Give the kernel the program's own actions: no thread is registered any more. */
void actions_end(void);
/* Return the program's action. Takes no lock. */
struct kernel_sigaction action_of(int sig);
bool action_has_handler(const struct kernel_sigaction *a);
/* Reset the program's and the kernel's action, for SA_RESETHAND. From handlers. */
void action_reset(int sig);
/* Reset the kernel's action only: the signal is to have its default effect. */
void action_default(int sig);

/* The handler in place of each of the program's (signals.c). All signals are blocked but
 * SYNCHRONOUS. */
void signals_handler(int sig, siginfo_t *info, void *context);

#endif
