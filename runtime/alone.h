/* SPDX-License-Identifier: MIT
 *
 * Begins the runtime in a process of one thread that waits for another process in a loop
 * (docs/sharing.md, Processes of one thread).
 *
 * Such a process has mapped memory that is shared and can be written, and uses a CPU all the time.
 * So a timer is set with the first such mapping. It counts the process's CPU time: a process that
 * sleeps pays nothing. The runtime begins when the timer finds the process contended, as
 * monitor/lone.h does, and the process has hardly slept since it last expired.
 *
 * The signal is one that libc keeps for itself. Programs cannot block it, and libc's own handler
 * ignores what it has not sent. From Linux 5.10 the timer sends it when the thread returns from the
 * kernel, so no system call is interrupted.
 */
#ifndef LISSOM_ALONE_H
#define LISSOM_ALONE_H

#include <stdbool.h>
#include <stdint.h>

/* find: returns libc's function of that name; 0: there is none. Once. */
void alone_init(uintptr_t (*find)(const char *));
/* From now on the runtime may begin, by `begin`: called in a signal handler on the main thread's
 * first stack, which has interrupted code of the program, not of libc or the loader. Once. */
void alone_look(void (*begin)(void));
/* No timer from now on. Async-signal-safe. Does nothing in the child of a vfork. */
void alone_end(void);

#endif
