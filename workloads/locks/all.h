/* SPDX-License-Identifier: MIT */
// The table of locks. Each source is compiled twice: once with `pause` in its wait loops, once
// without. So the two loops are different code, and neither tests at run time whether to pause.
// IN(f) is the name of f in this instance; SPIN_PAUSE() is the pause of its wait loops. Types, and
// functions that do not wait, are compiled once.
#ifndef LISSOM_WORKLOADS_LOCKS_ALL_H
#define LISSOM_WORKLOADS_LOCKS_ALL_H

#include "lock.h"

#define IN(name) name##_pausing
#define SPIN_PAUSE() CPU_PAUSE()
#define SPIN_PAUSES 1
#include "instance.h"
#undef IN
#undef SPIN_PAUSE
#undef SPIN_PAUSES

#define IN(name) name##_bare
#define SPIN_PAUSE() ((void)0)
#define SPIN_PAUSES 0
#include "instance.h"
#undef IN
#undef SPIN_PAUSE
#undef SPIN_PAUSES

#define ONE(text, name, per_thread, pauses, suffix) \
    {text, \
     pauses, \
     sizeof(struct name##_lock), \
     per_thread, \
     name##_init, \
     name##_acquire_##suffix, \
     name##_release_##suffix}
#define KIND(text, name, per_thread) \
    ONE(text, name, per_thread, 1, pausing), ONE(text, name, per_thread, 0, bare)

static const struct lock_kind lock_kinds[] = {
    KIND("array", array, sizeof(struct array_slot)),
    KIND("clh", clh, 0),
    KIND("mcs", mcs, 0),
    KIND("malthusian", malthusian, 0),
    KIND("partitioned", partitioned, 0),
    KIND("pthread", pthread, 0),
    KIND("ticket", ticket, 0),
    KIND("ttas", ttas, 0),
    KIND("cna", cna, 0),
    KIND("queued", queued, sizeof(struct queued_node)),
    KIND("aqs", aqs, 0),
    KIND("backoff", backoff, 0),
    KIND("call", call, 0),
    KIND("counted", counted, 0),
};
enum { LOCK_KINDS = sizeof lock_kinds / sizeof *lock_kinds };

#undef KIND
#undef ONE

#endif
