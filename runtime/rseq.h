/* SPDX-License-Identifier: MIT
 *
 * Restartable sequences, rseq(2): for an area that a kernel thread has registered, the kernel keeps
 * the number of its CPU there, and restarts what the area says is not to be interrupted. A thread
 * that another's kernel thread carries would read a number that is not its own, and would not be
 * restarted.
 *
 * glibc (2.35 and newer) registers an area for each thread, of which it needs only the CPU for
 * sched_getcpu(3), and asks the kernel where there is none. So it is made to have none, as with
 * glibc.pthread.rseq=0, unless the program uses glibc's areas itself; then its threads are pinned.
 * An area that a program registers pins the thread (attributes.c).
 */
#ifndef LISSOM_RSEQ_H
#define LISSOM_RSEQ_H

#include <stdbool.h>

/* Ends glibc's use. Post: false: its areas stay, and threads have to keep their kernel threads.
 * Pre: the constructor; no other has run. Takes the loader's lock. */
bool rseq_end_of_libc(void);

/* Whether the calling kernel thread has an area. */
bool rseq_is_registered(void);

#endif
