/* SPDX-License-Identifier: MIT
 *
 * What a handler of the program sees of the state that it interrupted: as it would be without
 * lissom.
 */
#ifndef LISSOM_VIEW_H
#define LISSOM_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Whether ip is in the code from one label of ours to another. */
static inline bool code_within(uintptr_t ip, const char *from, const char *to)
{
    return ip >= (uintptr_t)from && ip < (uintptr_t)to;
}

struct view {
    greg_t rip, rsp, rax;
};

/* Pre: outside of the runtime (in_runtime == 0). */
struct view view_native(const ucontext_t *uc);
/* In the runtime, of a thread that is to look up: if it is about to sleep for events, it does
 * not. */
void view_no_event_sleep(ucontext_t *uc);
/* Whether it is a guarded load, and then: makes it fail instead of fault. */
bool view_guarded_fault(ucontext_t *uc);

#endif
