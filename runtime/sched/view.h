/* SPDX-License-Identifier: MIT
 *
 * What a handler of the program sees of the state that it interrupted: as it would be without
 * lissom.
 */
#ifndef LISSOM_VIEW_H
#define LISSOM_VIEW_H

#include <stdbool.h>
#include <ucontext.h>

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
