/* SPDX-License-Identifier: MIT
 *
 * Begin the runtime in a process of one thread that waits for another process in a loop
 * (docs/design/sharing.md, Processes of one thread).
 *
 * Such a process has mapped shared writable memory, and uses a CPU all the time. So the first such
 * mapping sets a timer that counts the process's CPU time: a process that sleeps pays nothing. The
 * runtime begins if the timer finds the process contended, as defined in monitor/lone.h. The
 * process must also have hardly slept since the timer last expired.
 *
 * The signal is one that libc keeps for itself. Programs cannot block it, and libc's own handler
 * ignores it if libc has not sent it. From Linux 5.10 the timer sends it when the thread returns
 * from the kernel, so no system call is interrupted.
 */
#ifndef LISSOM_ALONE_H
#define LISSOM_ALONE_H

#include <stdbool.h>
#include <stdint.h>

/* find: returns libc's function of that name; 0 if there is none. Call once. */
void alone_init(uintptr_t (*find)(const char *));
/* Allow the runtime to begin from now on, by a call of `begin`. The caller is a signal handler on
 * the main thread's first stack. It has interrupted code of the program, not of libc or the loader.
 * Call once. */
void alone_look(void (*begin)(void));
/* Set no timer from now on. Async-signal-safe. Does nothing in the child of a vfork. */
void alone_end(void);

#endif
