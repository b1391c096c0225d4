/* SPDX-License-Identifier: MIT
 *
 * Takes over the state of a process that has run with one thread and without the runtime
 * (docs/start.md).
 */
#ifndef LISSOM_TAKEOVER_H
#define LISSOM_TAKEOVER_H

/* Takes up what the program has done since. Sets sched.first_is_tied if its thread has something
 * that the kernel keeps for kernel threads. Returns why the process cannot be managed, or NULL.
 * Pre: one thread; the signal actions are known. */
const char *takeover(void);

#endif
