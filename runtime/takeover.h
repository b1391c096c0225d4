/* SPDX-License-Identifier: MIT
 *
 * What the process did while it had one thread, and the runtime did not see (docs/start.md).
 */
#ifndef LISSOM_TAKEOVER_H
#define LISSOM_TAKEOVER_H

/* Notes what was there when the program was executed. */
void takeover_at_start(void);

/* Takes up what the program has done since. Sets sched.first_is_tied if its thread has something
 * that the kernel keeps for kernel threads. Returns why the process cannot be managed, or NULL.
 * Pre: one thread; the signal actions are known. */
const char *takeover(void);

#endif
