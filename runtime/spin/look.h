/* SPDX-License-Identifier: MIT
 *
 * Looking at a thread: the interpreter (spin/interpret.h) on the memory of this process.
 */
#ifndef LISSOM_SPIN_LOOK_H
#define LISSOM_SPIN_LOOK_H

#include "spin/interpret.h"

struct thread;

/* Code that does not change between two looks: [lo, hi). */
struct spin_code {
    uintptr_t lo, hi;
};

/* Post: r, of the calling thread t, which holds a slot; from->fs_base need not be set. false:
 * somebody else is looking in t's slot. 8 KiB of stack. */
bool spin_look(const struct thread *t, const struct spin_registers *from, struct spin_code same,
               uintptr_t head, struct spin_result *r);
/* What t waits for into t->wait_word. Post: t->wait_words == 0: it does not fit, or is not
 * known. */
void spin_remember(struct thread *t, const struct spin_result *r);
/* Whether r is a wait for which giving way is right. */
bool spin_is_wait(const struct spin_result *r);
/* What was decoded of code may not be true any more. */
void spin_code_changed(void);
void spin_look_after_fork(void);

#endif
