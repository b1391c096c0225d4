/* SPDX-License-Identifier: MIT
 *
 * The state of a thread of this process: /proc/self/task/TID/stat, schedstat and status.
 */
#ifndef LISSOM_TASK_H
#define LISSOM_TASK_H

#include <stdbool.h>
#include <stdint.h>

struct task_stat {
    char state; /* proc(5): 'R' runs or waits for a CPU, 'S' and 'D' are blocked */
    long cpu;   /* on which it runs, or ran last */
};

/* Read the state of a thread. Returns false, and leaves *s unchanged, if it cannot be read. Takes 6
 * us. Opens a file. */
bool task_stat(int32_t tid, struct task_stat *s);
/* Read the CPU time of a thread (*ran), and for how long it has waited for its CPU while others ran
 * there (*delay). Both are totals in ns. The delay does not count the host of a virtual machine.
 * Returns false if they are unknown. Opens a file. */
bool task_times(int32_t tid, uint64_t *ran, uint64_t *delay);
/* Return whether a debugger, or strace, is attached to the thread; false if that is unknown. Takes
 * 20 us. Opens a file. */
bool task_is_traced(int32_t tid);

#endif
