/* SPDX-License-Identifier: MIT */
/* Functions for the tests of branches.rs that call the rule in bpf/scx_branches.h. In the kernel,
 * no test can make up branch records. */
#include <linux/types.h>
#include <stdbool.h>

#include "../../../bpf/scx_branches.h"

int branches_interval(const struct branch_scan *before, const struct branch_scan *now)
{
    return (int)branch_interval(before, now);
}

int branches_paper_interval(const struct branch_scan *before, const struct branch_scan *now)
{
    return (int)paper_interval(before, now);
}

__u64 branches_paper_loop(int interval, const struct branch *branches, __u32 count, __u64 ip)
{
    return paper_loop((enum branch_interval)interval, branches, count, ip);
}

__u64 branches_loop(const struct branch *branches, __u32 count, __u64 ip)
{
    return branch_loop(branches, count, ip);
}
