/* SPDX-License-Identifier: MIT
 *
 * What the cgroups of the process say of CPUs, as it sees them: version 1, 2 or both, through
 * whatever is mounted where, in containers the part that is mounted there.
 */
#ifndef LISSOM_CGROUP_H
#define LISSOM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* ceil(quota / period), the least of all ancestors' that can be seen. Post: 0: no limit, or the
 * last answer if /proc cannot be read. 5 us, and 3 for each level. One caller at a time. */
uint32_t cgroup_quota_cpus(void);

/* Identifies the group that has the least quota, to all who see the same files; 0: none. Of the
 * last call of cgroup_quota_cpus. */
uint64_t cgroup_quota_group(void);

struct cpu_mask;
/* The CPUs that cpusets leave to the process, in the groups that cgroup_quota_cpus has found last,
 * or else those that are online. Post: false: neither can be read. One caller at a time. */
bool cgroup_cpuset(struct cpu_mask *m);

/* In front of all paths; "" unless for tests. */
extern const char *cgroup_root;

#endif
