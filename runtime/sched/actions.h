/* SPDX-License-Identifier: MIT
 *
 * The signal actions of the program. The kernel has ours in their place (signals_handler); what the
 * program asks is answered from here.
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

/* The preemption signal; the value that is sent with it identifies it. SIGURG because programs do
 * without it well: it is ignored by default, hardly ever sent, and debuggers pass it on in silence.
 * But the kernel keeps one SIGURG pending: one of the program's would be lost behind ours. So a
 * program with a handler for it makes the preemption signal another signal, of those that are
 * counted; a debugger then stops at each. */
enum { SIGNALS = 64, PREEMPT_QUIET = SIGURG, PREEMPT_COUNTED = SIGNALS };

/* The one that is sent now. The other may still be pending. */
int preempt_signal(void);
/* The program reads SIGURG in a way that does not show our value, or would lose one: the
 * preemption signal becomes the other. */
void preempt_leave_quiet(void);

static inline uint64_t signal_bit(int sig) { return 1ull << (sig - 1); }
#define PREEMPT_SIGNALS (signal_bit(PREEMPT_QUIET) | signal_bit(PREEMPT_COUNTED))
/* Sent by the faulting instruction itself; blocking them would turn a guarded load's fault into
 * death. */
#define SYNCHRONOUS \
    (signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) | signal_bit(SIGFPE) | \
     signal_bit(SIGTRAP) | signal_bit(SIGSYS))

/* Installs ours where it is needed from the start. */
void actions_init(void);
void actions_after_fork(void);
/* rt_sigaction(2). Post: an ACTION_*. */
long actions_call(struct user_registers *r);
/* Takes up actions that the program has set by system calls that are not redirected. By the
 * monitor, from time to time. */
void actions_look(void);
/* execve(2) follows: the kernel gets SIG_IGN for what the program ignores, which the new program
 * inherits. */
void actions_before_exec(void);
/* It has failed. */
void actions_after_exec(void);
/* rt_sigaction(2) of a child of vfork(2), which has the kernel's actions: it reads the program's
 * where these are ours. */
long actions_of_child(struct user_registers *r);
/* Nobody is known to the runtime any more: the kernel gets the program's own actions. */
void actions_end(void);
/* The program's. Takes no lock. */
struct kernel_sigaction action_of(int sig);
bool action_has_handler(const struct kernel_sigaction *a);
/* SA_RESETHAND: the program's and the kernel's. From handlers. */
void action_reset(int sig);
/* The kernel's only: for a signal that is to do what it does by default. */
void action_default(int sig);

/* The handler that is installed in place of each of the program's (signals.c), with all blocked but
 * SYNCHRONOUS. */
void signals_handler(int sig, siginfo_t *info, void *context);

#endif
