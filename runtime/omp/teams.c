/* SPDX-License-Identifier: MIT
 *
 * Limit teams to the number of slots when their region begins (--omp-team=slots,
 * docs/design/malleable-openmp.md). The requested number of threads is reduced on its way into the
 * OpenMP runtime.
 *
 * libgomp's functions have that number as their third argument; 0 is the calling thread's default.
 * LLVM's library receives it beforehand (__kmpc_push_num_threads), or not at all. The default is
 * what omp_get_max_threads of the same library returns. The program may call that function where
 * its regions begin, so it is safe to call it there.
 */
#include "omp/teams.h"
#include "omp/loops.h"

enum { MAX_THREADS, PUSH_NUM_THREADS, THREAD_NUM };
_Static_assert(THREAD_NUM + 1 == PATCH_BESIDE, "");
const char *const omp_functions_beside[PATCH_BESIDE] = {
    "omp_get_max_threads", "__kmpc_push_num_threads", "__kmpc_global_thread_num"};

typedef int max_threads_function(void);
typedef void push_function(void *location, int32_t thread, int32_t n);
typedef int32_t thread_num_function(void *location);

static uint32_t at_most(uint32_t n)
{
    uint32_t slots = slots_open();
    return n < slots ? n : slots;
}

/* Returns the number to use in place of the default; 0: use the default. */
static uint32_t in_place_of_default(const struct patch_redirect *f)
{
    max_threads_function *max_threads = (max_threads_function *)f->beside[MAX_THREADS];
    int n = max_threads ? max_threads() : 0;
    return n > 0 && at_most((uint32_t)n) < (uint32_t)n ? at_most((uint32_t)n) : 0;
}

/* Limit a region of LLVM's library for which no number was requested. */
static void push(const struct patch_redirect *f, void *location)
{
    push_function *push_threads = (push_function *)f->beside[PUSH_NUM_THREADS];
    thread_num_function *thread_num = (thread_num_function *)f->beside[THREAD_NUM];
    uint32_t n = in_place_of_default(f);
    if (n && push_threads && thread_num)
        push_threads(location, thread_num(location), (int32_t)n);
}

static uint32_t ceiling;

void teams_init(uint32_t n) { ceiling = n; }

/* Handle omp_set_num_threads(n) with a ceiling: n threads become active, and teams have
 * `ceiling`. */
static void set_active(struct team_call *call)
{
    int32_t n = (int32_t)call->first;
    loops_set_initial(n > 1 ? (uint32_t)n : 1);
    call->first = ceiling;
}

static void shrink(const struct patch_redirect *f, struct team_call *call)
{
    /* LLVM's library: the calling thread has set the size of its next team. Not in struct thread,
     * since the thread may not be registered with the runtime yet. */
    static __thread bool team_asked;
    uint32_t asked = (uint32_t)call->third;
    switch (f->what) {
    case OMP_PARALLEL: call->third = asked ? at_most(asked) : in_place_of_default(f); return;
    case OMP_PUSH_THREADS:
        team_asked = true;
        call->third = at_most(asked);
        return;
    default: /* OMP_FORK */
        if (!team_asked)
            push(f, (void *)call->first);
        team_asked = false;
    }
}

void lissom_omp_team(const struct patch_redirect *f, struct team_call *call)
{
    if (sched.native_waits)
        return;
    if (f->what == OMP_SET_THREADS)
        set_active(call);
    else
        shrink(f, call);
}
