/* SPDX-License-Identifier: MIT
 *
 * `lissom manager`, if there is one, says how many threads the process is to run at a time:
 * docs/manager.md. All by the monitor, but for manager_paths and manager_after_fork.
 */
#ifndef LISSOM_MANAGER_H
#define LISSOM_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_mask;

/* Where to look for it: LISSOM_MANAGER, and XDG_RUNTIME_DIR; NULL: not set. In the constructor. */
void manager_paths(const char *socket, const char *runtime_dir);
void manager_after_fork(void);
/* The calling thread is the monitor now. own_descriptors: what it opens is not seen by the program;
 * if false, it does not look for a manager. */
void manager_begin(bool own_descriptors);
/* What is known of the process is told; limit, mask: how many slots it would have alone, and its
 * CPUs. Post: the target, at least 1; 0: there is none, or it is too old. 0.3 us; looks for a
 * manager once a second. */
uint32_t manager_target(uint32_t limit, const struct cpu_mask *mask);
/* Those CPUs of the mask on which n threads, at most as many as the target, are to run. NULL:
 * any. */
const struct cpu_mask *manager_cpus(const struct cpu_mask *mask, uint32_t n);
/* Whether there is one. */
bool manager_is_there(void);
/* Whether it has set a target that still holds. */
bool manager_decides(void);

#endif
