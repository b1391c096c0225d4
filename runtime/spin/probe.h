/* SPDX-License-Identifier: MIT
 *
 * Looking at a thread: the interpreter (spin/interpret.h) on the memory of this process.
 */
#ifndef LISSOM_SPIN_PROBE_H
#define LISSOM_SPIN_PROBE_H

#include "spin/interpret.h"

struct thread;

/* Code that does not change between two looks: [lo, hi). */
struct spin_code {
    uintptr_t lo, hi;
};

/* Interprets t, the calling thread, which holds a slot, from the registers `from` (without fs_base,
 * which it reads itself), and stores the verdict in r. Returns false if another thread is being
 * interpreted in t's slot. Uses 8 KiB of stack; async-signal-safe. */
bool spin_probe(const struct thread *t, const struct spin_registers *from, struct spin_code same,
                uintptr_t head, struct spin_result *r);
/* Stores the words that t waits for, by r, in t->wait_word. Sets t->wait_words to 0 if they do not
 * fit or are not known. */
void spin_remember(struct thread *t, const struct spin_result *r);
/* Whether a thread with the verdict r should let other threads run. */
bool spin_is_wait(const struct spin_result *r);
/* Code may have changed: forget decoded instructions. */
void spin_code_changed(void);
void spin_probe_after_fork(void);

#endif
