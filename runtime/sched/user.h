/* SPDX-License-Identifier: MIT
 *
 * The program's memory, of which any address may be bad. A fault of these accesses is turned into
 * -EFAULT by our handler for SIGSEGV and SIGBUS (view_guarded_fault). A thread that blocks these
 * would die instead, so for it the kernel copies.
 *
 * The memory may be missing for long (userfaultfd(2)): touch it before a lock of ours is taken, not
 * under it.
 *
 * Not from our signal handler, where nothing is blocked: there lissom_guarded_copy does.
 * Async-signal-safe.
 */
#ifndef LISSOM_USER_H
#define LISSOM_USER_H

#include "sched/thread.h"

long user_copy_unblocked(void *to, const void *from, size_t bytes);
long user_exchange_unblocked(uint32_t *word, uint32_t *expected, uint32_t new);

/* 0, or -EFAULT. `t` is the caller; NULL: not known. */
static inline long user_copy(const struct thread *t, void *to, const void *from, size_t bytes)
{
    return !t || t->faults_blocked ? user_copy_unblocked(to, from, bytes)
                                   : lissom_guarded_copy(to, from, bytes);
}

static inline long user_load(const struct thread *t, const uint32_t *word, uint32_t *value)
{
    return t->faults_blocked ? user_copy_unblocked(value, word, sizeof *value)
                             : lissom_guarded_load(word, value);
}

/* Compare and swap, sequentially consistent. 0: done; 1: the word was another, which *expected is
 * now; or -EFAULT. */
static inline long user_exchange(const struct thread *t, uint32_t *word, uint32_t *expected,
                                 uint32_t new)
{
    return t->faults_blocked ? user_exchange_unblocked(word, expected, new)
                             : lissom_guarded_exchange(word, expected, new);
}

#endif
