/* SPDX-License-Identifier: MIT
 *
 * `lissom manager`, if there is one, sets how many threads the process runs at a time:
 * docs/design/manager.md. Monitor only, except manager_paths and manager_after_fork.
 */
#ifndef LISSOM_MANAGER_H
#define LISSOM_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_mask;

/* Set where the manager is to be found, by the values of LISSOM_MANAGER and XDG_RUNTIME_DIR; NULL:
 * not set. Called by the constructor. */
void manager_paths(const char *socket, const char *runtime_dir);
void manager_after_fork(void);
/* Begin anew: the calling thread is the monitor now. own_descriptors: the program does not see what
 * the monitor opens. If false, no manager is used. */
void manager_begin(bool own_descriptors);
/* Publish the state of the process. Returns its target, at least 1; 0: there is none, or it has
 * expired. limit, mask: slots that the process would have alone, and its CPUs. Takes 0.3 us;
 * searches for a manager once a second. */
uint32_t manager_target(uint32_t limit, const struct cpu_mask *mask);
/* Returns the CPUs of `mask` on which n threads should run; n is at most the target. NULL: any. */
const struct cpu_mask *manager_cpus(const struct cpu_mask *mask, uint32_t n);
/* Returns whether there is a manager. */
bool manager_is_there(void);
/* Returns whether the manager has set a target that still holds. */
bool manager_decides(void);

#endif
