/* SPDX-License-Identifier: MIT
 *
 * The interrupted state as a handler of the program sees it: as it would be without lissom.
 */
#ifndef LISSOM_VIEW_H
#define LISSOM_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Return whether ip is between two labels of our code. */
static inline bool code_within(uintptr_t ip, const char *from, const char *to)
{
    return ip >= (uintptr_t)from && ip < (uintptr_t)to;
}

struct view {
    greg_t rip, rsp, rax;
};

/* Return the native view of an interrupted state. Pre: outside of the runtime (in_runtime == 0). */
struct view view_native(const ucontext_t *uc);
/* Make a thread that was interrupted in the runtime, just before it sleeps for events, not sleep:
 * it has to check pending_work. */
void view_no_event_sleep(ucontext_t *uc);
/* If `uc` is in a guarded access, make that access return -EFAULT instead of faulting. Returns
 * whether it is in one. */
bool view_guarded_fault(ucontext_t *uc);

#endif
