/* SPDX-License-Identifier: GPL-2.0 */
/* Constants that decide how the scheduler behaves. The tool sets those with an option of `lissom
 * sched start`, by name, before it loads the programs (crates/scx/src/load.rs). The kernel then
 * treats all of them as constants. */
#pragma once

#include "scx.h"

/* Options. */

/* Time that a thread runs while others want its CPU: `--slice` [ns; default: 3 ms].
 * Higher: threads wait longer for their turn. Lower: threads are switched more often, and find
 * colder caches. */
const volatile u64 slice_ns = 3 * NSEC_PER_MSEC;

/* Longest time that a thread stays parked before it sleeps: `--park-for` [ns; default: 20 ms].
 * Higher: a signal reaches a parked thread later. Lower: more threads pay for a sleep and a wake-up
 * in the kernel. */
const volatile u64 park_ns = 20 * NSEC_PER_MSEC;

/* Schedule only threads that chose SCHED_EXT: `--only` [default: false, all threads].
 * true: the kernel's own scheduler runs all other threads first. false: CPU limits (cpu.max) have
 * no effect in any cgroup. */
const volatile bool is_partial;

/* Keep running when a cgroup gets a cpu.max: `--ignore-cpu-max` [default: false].
 * true: limits are not enforced. false: any new limit ends the scheduler. */
const volatile bool ignore_limits;

/* For tests: dispatch no thread until the watchdog ends the scheduler [default: false]. */
const volatile bool stall;

/* For tests: invent branch records that show a loop for every thread, and ignore registers
 * [default: false]. */
const volatile bool made_up;

/* Fairness. */

/* Lead in virtual time that a thread keeps after a sleep [slices; default: 1].
 * Higher: a thread that slept for long delays the others for longer. Lower: threads that seldom run
 * start later. */
const volatile u64 lead_slices = 1;

/* Wait after which a thread runs next, whatever its share [ns; default: 1 s]. The kernel's watchdog
 * ignores shares: it ends the scheduler if a thread waits for `--timeout` (5 s).
 * Higher: the watchdog may come first. Lower: shares lose their effect on a crowded CPU. */
const volatile u64 starvation_ns = NSEC_PER_SEC;

/* Interval of the search for such threads, on each CPU [ns; default: 100 ms].
 * Higher: they run later. Lower: more dispatches walk through the whole queues. */
const volatile u64 starvation_check_ns = 100 * NSEC_PER_MSEC;

/* Time for which a cgroup's share is not computed again [ns; default: 1 ms].
 * Higher: threads are charged by an old share for longer. Lower: more charges walk up the
 * hierarchy. */
const volatile u64 share_ns = NSEC_PER_MSEC;

/* Migration. */

/* Time after a migration in which no other CPU takes the thread [ns; default: 500 us].
 * Higher: CPUs idle although threads wait. Lower: threads move on before their caches are warm. */
const volatile u64 settle_ns = 500 * NSEC_PER_USEC;

/* Interval at which a busy CPU compares its queue with that of another CPU [ns; default: 10 ms].
 * Higher: uneven queues stay uneven for longer. Lower: more threads lose their caches. */
const volatile u64 balance_ns = 10 * NSEC_PER_MSEC;

/* Longest time between two wake-ups of one bulk [ns; default: 100 us].
 * Higher: separate wake-ups count as a bulk, so threads queue although CPUs are idle. Lower: slow
 * bulks are not recognized, and their threads migrate. */
const volatile u64 bulk_gap_ns = 100 * NSEC_PER_USEC;

/* Parking. */

/* Least rest of a slice with which a woken thread takes over the CPU [ns; default: 50 us].
 * Higher: more woken threads wait in RUN. Lower: some are preempted just after they start. */
const volatile u64 handoff_ns = 50 * NSEC_PER_USEC;

/* Detection of busy-waiting. */

/* Scans in a row that have to show a loop before the tool examines its code [scans; default: 3].
 * Higher: busy-waiting is found later. Lower: the tool examines more loops that compute. */
const volatile u32 suspect_scans = 3;

/* Longest backoff between two reads of a thread's branch records [scans; default: 31].
 * Higher: a thread that starts to wait in a loop is found later. Lower: threads that compute pay
 * more microseconds for scans. */
const volatile u32 backoff_scans = 31;
