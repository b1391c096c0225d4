/* SPDX-License-Identifier: MIT
 *
 * Recognise the functions of OpenMP runtimes that hand out chunks, and handle calls of them.
 *
 * libgomp: a thread enters a loop with GOMP_loop_*_start, or with its first *_next if the region
 * began with the loop (GOMP_parallel_loop_*). It asks again with *_next. It leaves with
 * GOMP_loop_end*, usually after the library has returned that nothing is left. LLVM's libomp: a
 * thread enters with __kmpc_dispatch_init_*, which has the kind of loop, and asks with
 * __kmpc_dispatch_next_*. It also has libgomp's functions, which call these.
 *
 * - OMP_START: enter a loop, and get its first chunk.
 * - OMP_START_ALONE: enter a doacross loop, whose iterations wait for others. It is left alone.
 * - OMP_NEXT: ask for a chunk.
 * - OMP_NEXT_ORDERED: ask libgomp for a chunk, and pass on the turn of an ordered loop. A thread
 *   that waited before this call would hold up all others.
 * - OMP_END: leave a loop.
 * - OMP_DISPATCH_INIT: enter a loop of libomp.
 * - OMP_DISPATCH: ask libomp for a chunk.
 * - OMP_DOACROSS, OMP_DOACROSS_END: begin and end a doacross loop.
 * - OMP_PARALLEL, OMP_PUSH_THREADS, OMP_FORK, OMP_SET_THREADS: regions (teams.c).
 */
#include "omp/loops.h"

/* Returns the part of s behind the prefix, or NULL. */
static const char *after(const char *s, const char *prefix)
{
    while (*prefix)
        if (*s++ != *prefix++)
            return NULL;
    return s;
}

static bool is(const char *s, const char *other)
{
    const char *rest = after(s, other);
    return rest && !*rest;
}

static bool is_type(const char *s)
{
    return is(s, "4") || is(s, "4u") || is(s, "8") || is(s, "8u");
}

/* Returns the part of s behind a schedule whose chunks are handed out one by one, or NULL. */
static const char *schedule(const char *s)
{
    static const char *const names[] = {"dynamic_",
                                        "guided_",
                                        "runtime_",
                                        "nonmonotonic_dynamic_",
                                        "nonmonotonic_guided_",
                                        "nonmonotonic_runtime_",
                                        "maybe_nonmonotonic_runtime_"};
    const char *rest = NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !rest; i++)
        rest = after(s, names[i]);
    return rest;
}

static struct omp_wanted wanted;

void omp_functions(const struct omp_wanted *w) { wanted = *w; }

uint32_t omp_function_what(const char *name)
{
    const char *s, *rest;
    if (wanted.ceiling && is(name, "omp_set_num_threads"))
        return OMP_SET_THREADS;
    if (wanted.teams && (s = after(name, "GOMP_parallel")) && !is(s, "_end"))
        return OMP_PARALLEL;
    if (wanted.teams && is(name, "__kmpc_push_num_threads"))
        return OMP_PUSH_THREADS;
    if (wanted.teams && is(name, "__kmpc_fork_call"))
        return OMP_FORK;
    if (!wanted.loops)
        return 0;
    if ((s = after(name, "__kmpc_dispatch_next_")))
        return is_type(s) ? OMP_DISPATCH : 0;
    if ((s = after(name, "__kmpc_dispatch_init_")))
        return is_type(s) ? OMP_DISPATCH_INIT : 0;
    if (is(name, "__kmpc_doacross_init"))
        return OMP_DOACROSS;
    if (is(name, "__kmpc_doacross_fini"))
        return OMP_DOACROSS_END;
    s = after(name, "GOMP_loop_");
    if (!s)
        return 0;
    if (is(s, "end") || is(s, "end_nowait") || is(s, "end_cancel"))
        return OMP_END;
    if ((rest = after(s, "ull_")))
        s = rest;
    if ((rest = after(s, "doacross_")))
        return is(rest, "start") || ((rest = schedule(rest)) && is(rest, "start")) ? OMP_START_ALONE
                                                                                   : 0;
    bool ordered = after(s, "ordered_");
    if (ordered)
        s = after(s, "ordered_");
    rest = schedule(s);
    if (!rest)
        return 0;
    return is(rest, "start")   ? OMP_START
           : !is(rest, "next") ? 0
           : ordered           ? OMP_NEXT_ORDERED
                               : OMP_NEXT;
}

/* Returns whether threads may wait in a loop of this kind: the schedule of __kmpc_dispatch_init_*,
 * enum sched_type of kmp.h. They may not in ordered loops: each thread may have a part of its own,
 * and the library may spin until a waiting thread has had its turn. */
static bool may_wait(uint32_t kind)
{
    enum { MODIFIERS = 3u << 29, DYNAMIC = 35, GUIDED = 36, RUNTIME = 37 };
    kind &= ~(uint32_t)MODIFIERS;
    return kind == DYNAMIC || kind == GUIDED || kind == RUNTIME;
}

/* Called by entry.S before and after the call of a redirected function. caller: its return address;
 * third: its third argument; result: al. */
void lissom_omp_before(const struct patch_redirect *function, uintptr_t caller, uint32_t third);
void lissom_omp_after(const struct patch_redirect *function, uint8_t result);

void lissom_omp_before(const struct patch_redirect *function, uintptr_t caller, uint32_t third)
{
    struct thread *t = lissom_self;
    if (!t)
        return;
    switch (function->what) {
    case OMP_NEXT:
        if (t->at_work)
            loop_asks_again(t);
        else if (!t->loop_alone && !sched.native_waits)
            loop_asks(t, caller);
        return;
    case OMP_NEXT_ORDERED: return;
    case OMP_DISPATCH:
        if (t->at_work)
            loop_asks_again(t);
        else if (t->loop_open && !sched.native_waits)
            loop_asks(t, caller);
        return;
    case OMP_DISPATCH_INIT:
        loop_leaves(t);
        t->loop_open = !t->loop_alone && may_wait(third);
        return;
    case OMP_START:
        t->loop_alone = false;
        loop_leaves(t);
        if (!sched.native_waits)
            loop_asks(t, caller);
        return;
    default: /* OMP_START_ALONE, OMP_DOACROSS, OMP_END, OMP_DOACROSS_END */
        t->loop_alone = function->what == OMP_START_ALONE || function->what == OMP_DOACROSS;
        t->loop_open = false;
        loop_leaves(t);
    }
}

/* Note the result of the functions that say whether there is a chunk. */
void lissom_omp_after(const struct patch_redirect *function, uint8_t result)
{
    struct thread *t = lissom_self;
    switch (function->what) {
    case OMP_START:
    case OMP_NEXT:
    case OMP_NEXT_ORDERED:
    case OMP_DISPATCH:
        if (t && t->loop)
            loop_got(t, result);
    }
}

/* Called by entry.S: the loop at which the calling thread worked has no chunk left. */
void lissom_omp_over(void);
void lissom_omp_over(void) { loop_got(lissom_self, false); }
