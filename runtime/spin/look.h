/* SPDX-License-Identifier: MIT
 *
 * Looking at a thread: the interpreter (spin/interpret.h) on the memory of this process.
 */
#ifndef LISSOM_SPIN_LOOK_H
#define LISSOM_SPIN_LOOK_H

#include "spin/interpret.h"

struct thread;

/* What is known from earlier looks at the same place. */
struct spin_known {
    uintptr_t lo, hi;       /* code that does not change: [lo, hi) */
    uintptr_t counted_head; /* as in struct spin_config */
};

/* Post: r, of the calling thread t, which holds a slot; from->fs_base need not be set. false: somebody else is looking in t's slot. 8 KiB of stack. */
bool spin_look(const struct thread *t, const struct spin_registers *from, struct spin_known known, struct spin_result *r);
/* What t waits for into t->wait_word; of an endless wait. Post: t->wait_words == 0: it does not fit. */
void spin_remember(struct thread *t, const struct spin_result *r);
/* Whether r is a wait for which giving way is right. */
bool spin_is_wait(const struct spin_result *r);
/* What was decoded of code may not be true any more. */
void spin_code_changed(void);

#endif
