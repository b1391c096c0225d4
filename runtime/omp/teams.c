/* SPDX-License-Identifier: MIT
 *
 * Teams no larger than there are slots when their region begins (--omp-team=slots, docs/omp.md):
 * the number of threads that a region asks for is made smaller on its way into the OpenMP runtime.
 *
 * libgomp's functions have it as their third argument: 0 for as many as the calling thread's
 * default says. In LLVM's library it is told beforehand (__kmpc_push_num_threads), or not at all.
 * The default is what omp_get_max_threads of the same library says, which the program may call
 * where its regions begin, and so may we.
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

/* Post: 0: the default will do. */
static uint32_t in_place_of_default(const struct patch_redirect *f)
{
    max_threads_function *max_threads = (max_threads_function *)f->beside[MAX_THREADS];
    int n = max_threads ? max_threads() : 0;
    return n > 0 && at_most((uint32_t)n) < (uint32_t)n ? at_most((uint32_t)n) : 0;
}

/* A region of LLVM's for which nothing has been asked. */
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

/* omp_set_num_threads(n) with a ceiling: n threads are active, and the team has all. */
static void set_active(struct team_call *call)
{
    int32_t n = (int32_t)call->first;
    loops_set_initial(n > 1 ? (uint32_t)n : 1);
    call->first = ceiling;
}

static void shrink(const struct patch_redirect *f, struct team_call *call)
{
    /* LLVM's library: the calling thread has set the size of its next team. Not of struct thread:
     * a thread may not have come by the runtime yet. */
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
