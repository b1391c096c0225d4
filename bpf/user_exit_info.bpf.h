/* SPDX-License-Identifier: GPL-2.0 */
/* How a sched_ext scheduler ended, for the tool that loaded it. The names are those of the scx
 * project's user_exit_info.bpf.h. The kernel's dump of its state is not passed on. */
#pragma once

#include "scx.h"

/* The tool reads this from the map ".data.NAME": struct Exit in crates/scx/src/layout.rs. The
 * values are those of the kernel's struct scx_exit_info. */
struct user_exit_info {
    int kind; /* enum scx_exit_kind; 0: the scheduler runs. Written last */
    s64 exit_code;
    char reason[128];
    char msg[1024];
};

#define UEI_DEFINE(name) struct user_exit_info name SEC(".data." #name)

/* Record the argument of ops.exit(). The exchange orders `kind` after the other fields. */
#define UEI_RECORD(uei, info) \
    ({ \
        bpf_probe_read_kernel_str((uei).reason, sizeof((uei).reason), (info)->reason); \
        bpf_probe_read_kernel_str((uei).msg, sizeof((uei).msg), (info)->msg); \
        (uei).exit_code = (info)->exit_code; \
        __sync_lock_test_and_set(&(uei).kind, (int)(info)->kind); \
    })
