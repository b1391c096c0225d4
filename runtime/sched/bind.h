/* SPDX-License-Identifier: MIT
 *
 * Bind pinned threads to the CPU of their slot, and confine the process to as many CPUs as it has
 * slots: bind.c says why.
 */
#ifndef LISSOM_BIND_H
#define LISSOM_BIND_H

#include "cpus/cpus.h"
#include "sched/thread.h"

/* Set the mask of the process, which unbound threads get. is_all: it is all that cpusets allow, and
 * follows them. Ends confinement. */
void cpus_mask_is(const struct cpu_mask *m, bool is_all);
bool cpus_is_mask(const struct cpu_mask *m);
void cpus_own_mask(struct cpu_mask *m); /* mask of the calling thread; bytes 0: unreadable */
/* By the monitor: read its own mask or, while the process is confined, the mask it would have
 * otherwise. */
void cpus_mask_now(struct cpu_mask *m);
/* Give the calling thread of the runtime the mask of unbound threads: it may have inherited
 * another. */
void cpus_unbind_self(void);
/* Assign each slot a CPU of the process: there are as many slots as CPUs. */
void cpus_each_slot_its_own(void);
/* Confine all threads, and the calling monitor, to n CPUs of `among`, one for each slot: there are
 * fewer slots than CPUs. Pre: `among` has n or more CPUs, all of the process. */
void cpus_confine(uint32_t n, const struct cpu_mask *among);
/* By the monitor: end confinement, so that no slot has a CPU. */
void cpus_free(void);
/* By the monitor, before it sleeps for long: end confinement and unbind all threads. */
void cpus_leave(void);
/* By the monitor: unbind the threads that are bound to the CPU of their slot. */
void cpus_unbind_all(void);
/* The process gives up: unbind all threads for good. */
void cpus_give_up(void);
/* Note that a thread being created gets its mask from the program, or inherits such a mask. */
void cpu_will_be_own(uint64_t tid_or_tls);
/* Find out whether t, which has just registered, has a mask of its own. Returns true if the program
 * has set it. Pre: the caller is t, and its tid and fsbase are set. */
bool cpu_look_at_affinity(struct thread *t);
/* Bind t to the CPU of s if it should be bound, otherwise unbind it. Returns whether it is bound to
 * that CPU. Pre: the caller is t, or about to grant s to t, which sleeps. */
bool cpu_bind(struct thread *t, const struct slot *s);
/* Return whether t, which runs, is bound to another CPU than that of s. */
bool cpu_is_bound_elsewhere(const struct thread *t, const struct slot *s);
/* Unbind t. Pre: the caller is t, or the only one that may wake it. */
void cpu_unbind(struct thread *t);
/* Give t a mask that its children, or the program that it executes, may inherit: not a confined
 * one. Pre: t->clone_state is not CLONE_NONE, and stays so until then. */
void cpu_set_free(struct thread *t);
/* Return whether the program is to see cpus_of_process() instead of t's mask. */
bool cpu_is_hidden(const struct thread *t);
/* Make sched_setaffinity(2) on t for the program, and return its result. If the mask lacks CPUs of
 * the process, t is not bound again. */
long cpu_set_by_program(struct thread *t, uint64_t bytes, const void *mask);
/* t, whose mask the program has set, is a *team thread*: OpenMP has bound it to a place
 * (OMP_PROC_BIND). With more threads than slots, such threads would wait for each other beside an
 * idle CPU. So their masks are noted, and are in force only while there is a slot for each thread.
 * Ignores places beyond CPU 1023. */
void cpu_is_of_team(struct thread *t);
/* Set *m to the mask that the program has set for t. Returns false if t is no team thread. */
bool cpu_place(const struct thread *t, struct cpu_mask *m);
/* Put the masks of all team threads in force, or out of force. */
void cpus_team_places(bool in_force);

void cpus_after_fork(void);
const struct cpu_mask *cpus_of_process(void);

/* choose.c */
/* Choose a CPU of `from` for each of n slots: the one where its thread runs, if there is one. Pre:
 * `from` has at least n CPUs. */
void cpus_choose(const struct cpu_mask *from, uint32_t n, uint16_t *cpu);

#endif
