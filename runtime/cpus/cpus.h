/* SPDX-License-Identifier: MIT */
#ifndef LISSOM_CPUS_H
#define LISSOM_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;
struct slot;

enum { CPU_MASK_WORDS = 128 }; /* 8192 CPUs, the largest that a kernel can be built for */
struct cpu_mask {
    uint64_t word[CPU_MASK_WORDS];
    uint32_t bytes; /* as many as the kernel has */
};

/* --- limit.c -------------------------------------------------------------------------------------------- */

/* How many slots there are to be: 1..LISSOM_MAX_SLOTS. option: --cpus, or 0. To be called while there is one thread. */
uint32_t cpus_init(uint32_t option);
/* The same as of now. Post: *changed: the calling thread's affinity mask is another than before; bound threads have been released. One
 * caller at a time. */
uint32_t cpus_limit(bool *changed);

/* --- bind.c --------------------------------------------------------------------------------------------- */

/* The mask of the process, to which threads go back when they are not bound. is_all: it is all that cpusets allow, and follows them. */
void cpus_mask_is(const struct cpu_mask *m, bool is_all);
bool cpus_is_mask(const struct cpu_mask *m);
void cpus_own_mask(struct cpu_mask *m); /* of the calling thread; bytes 0: it cannot be read */
/* The calling thread, which is none of the program's, may run wherever the process may. */
void cpus_unbind_self(void);
/* How pinned threads are bound to the CPUs of their slots. */
enum binding { BIND_NOT, BIND_TO_ITS_OWN /* each slot has a CPU */, BIND_WHERE_IT_IS /* there are fewer slots than CPUs */ };
void cpus_may_bind(enum binding how);
/* The caller is t. */
void cpu_look_at_affinity(struct thread *t);
/* Pre: the caller is t, or about to grant s to t, which sleeps. Post: true: t is bound to the CPU of s. */
bool cpu_bind(struct thread *t, const struct slot *s);
/* t, which runs, is bound to another CPU than that of s. */
bool cpu_is_bound_elsewhere(const struct thread *t, const struct slot *s);
/* Pre: the caller is t, or the only one who may wake it. */
void cpu_unbind(struct thread *t);
/* sched_setaffinity by the program, on itself or another: t is not bound again. */
long cpu_set_by_program(struct thread *t, uint64_t bytes, const void *mask);
void cpus_after_fork(void);
/* What sched_getaffinity is to say of a bound thread. */
const struct cpu_mask *cpus_of_process(void);

#endif
