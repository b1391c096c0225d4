/* SPDX-License-Identifier: MIT
 *
 * What the kernel says of a thread of this process: /proc/self/task/TID/stat, schedstat and status.
 */
#ifndef LISSOM_TASK_H
#define LISSOM_TASK_H

#include <stdbool.h>
#include <stdint.h>

struct task_stat {
    char state; /* proc(5): 'R' runs or waits for a CPU, 'S' and 'D' are blocked */
    long cpu;   /* where it runs, or ran last */
};

/* Post: false: it cannot be read, *s is as it was. 6 us. Opens a file. */
bool task_stat(int32_t tid, struct task_stat *s);
/* In ns. Post: *ran: the CPU time of the thread; *delay: for how long it has waited, all in all,
 * while others ran on its CPU (not: the host of a virtual machine). false: it is not known. Opens a
 * file. */
bool task_times(int32_t tid, uint64_t *ran, uint64_t *delay);
/* Post: whether a debugger, or strace, is attached to it. false, too, if it is not known. 20 us.
 * Opens a file. */
bool task_is_traced(int32_t tid);

#endif
