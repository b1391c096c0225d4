/* SPDX-License-Identifier: MIT
 *
 * Bind pinned threads to the CPU of their slot, and confine the process to as many CPUs as it has
 * slots: bind.c says why.
 */
#ifndef LISSOM_BIND_H
#define LISSOM_BIND_H

#include "cpus/cpus.h"
#include "sched/thread.h"

/* The mask of the process, to which threads go back when they are not bound. is_all: it is all that
 * cpusets allow, and follows them. Post: it is not confined. */
void cpus_mask_is(const struct cpu_mask *m, bool is_all);
bool cpus_is_mask(const struct cpu_mask *m);
void cpus_own_mask(struct cpu_mask *m); /* of the calling thread; bytes 0: it cannot be read */
/* By the monitor: its own or, while the process is confined, that which it would have otherwise. */
void cpus_mask_now(struct cpu_mask *m);
/* The calling thread, which is none of the program's, has inherited another mask than that of
 * unbound threads. */
void cpus_unbind_self(void);
/* There is a slot for each CPU of the process: they are its. */
void cpus_each_slot_its_own(void);
/* There are fewer: all threads, and the monitor, which calls it, keep to n CPUs, one for each slot.
 * Pre: `among`: n or more of the process's. */
void cpus_confine(uint32_t n, const struct cpu_mask *among);
/* There are fewer, but not now: no slot has a CPU. By the monitor. */
void cpus_free(void);
/* By the monitor, before it sleeps for long: threads are neither confined nor bound. */
void cpus_leave(void);
/* Releases the threads that are bound to the CPU of their slot. By the monitor. */
void cpus_unbind_all(void);
/* The process gives up: no thread is bound any more. */
void cpus_give_up(void);
/* A thread that is being made gets a mask from the program, or inherits one. */
void cpu_will_be_own(uint64_t tid_or_tls);
/* The caller is t, whose tid and fsbase are set. Post: true: its mask is the program's. */
bool cpu_look_at_affinity(struct thread *t);
/* Pre: the caller is t, or about to grant s to t, which sleeps. Post: true: t is bound to the CPU
 * of s. */
bool cpu_bind(struct thread *t, const struct slot *s);
/* t, which runs, is bound to another CPU than that of s. */
bool cpu_is_bound_elsewhere(const struct thread *t, const struct slot *s);
/* Pre: the caller is t, or the only one who may wake it. */
void cpu_unbind(struct thread *t);
/* The same if children of t, or what it executes, are to inherit its mask: not a confined one. Pre:
 * t->clone_state is not CLONE_NONE, for as long. */
void cpu_set_free(struct thread *t);
/* Whether the program is to be told of cpus_of_process instead of t's mask. */
bool cpu_is_hidden(const struct thread *t);
/* sched_setaffinity by the program, on itself or another: t is not bound again. */
long cpu_set_by_program(struct thread *t, uint64_t bytes, const void *mask);
/* OpenMP has bound its threads to places (OMP_PROC_BIND): with more threads than slots that would
 * have some of them wait for each other beside an idle CPU. So the masks of *team threads* are
 * noted, and are in force only while there is a slot for each thread. */
/* t, whose mask the program has set, has turned out to be one. Not if its place is beyond CPU
 * 1023. */
void cpu_is_of_team(struct thread *t);
/* Post: false: t is none; true: *m is what the program has set for it. */
bool cpu_place(const struct thread *t, struct cpu_mask *m);
/* Whether the places are to be in force. */
void cpus_team_places(bool in_force);

void cpus_after_fork(void);
const struct cpu_mask *cpus_of_process(void);

/* choose.c */
/* One of the mask's CPUs for each of n slots: where its thread is, if it has one. Pre: n is at most
 * their number. */
void cpus_choose(const struct cpu_mask *from, uint32_t n, uint16_t *cpu);

#endif
