/* SPDX-License-Identifier: MIT
 *
 * Take over the state of a process that has run with one thread and without the runtime
 * (docs/design/lifecycle.md).
 */
#ifndef LISSOM_TAKEOVER_H
#define LISSOM_TAKEOVER_H

/* Adopt what the program has set up so far. Sets sched.first_is_tied if the kernel keeps state for
 * the program's kernel thread. Returns the reason why the process cannot be managed, or NULL. Pre:
 * the process has one thread; the signal actions are known (actions_init). */
const char *takeover(void);

#endif
