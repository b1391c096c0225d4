// SPDX-License-Identifier: GPL-2.0
/* The state of a task, whose field has two names. */
#pragma once

#include "kernel.h"
#include <bpf/bpf_core_read.h>

static __u32 state_of(struct task_struct *task)
{
    struct task_struct___state *old = (void *)task;
    if (bpf_core_field_exists(old->state))
        return old->state;
    return task->__state;
}
