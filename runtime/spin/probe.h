/* SPDX-License-Identifier: MIT
 *
 * Looking at a thread: the interpreter (spin/interpret.h) on the memory of this process.
 */
#ifndef LISSOM_SPIN_PROBE_H
#define LISSOM_SPIN_PROBE_H

#include "spin/interpret.h"

struct spin_site;
struct thread;
struct user_registers;

/* r, but for the registers that its stub does not keep there, and at another instruction. */
struct spin_registers spin_registers_at(const struct user_registers *r, uint64_t rax, uint64_t rcx,
                                        uint64_t r11, uintptr_t rip);
/* Interprets t, the calling thread, which holds a slot, from the registers `from` (without fs_base,
 * which it reads itself), and stores the verdict in r. site: where it is, or NULL. Returns false if
 * another thread is being interpreted in t's slot. Uses 8 KiB of stack; async-signal-safe. */
bool spin_probe(const struct thread *t, const struct spin_registers *from,
                const struct spin_site *site, struct spin_result *r);
/* t may be parked now: it has its slot, its mask, and is not in the middle of a clone. */
bool spin_may_give_way(const struct thread *t);
/* Stores the words that t waits for, by r, in t->wait_word. Sets t->wait_words to 0 if they do not
 * fit or are not known. Returns false if not all are there. */
bool spin_remember(struct thread *t, const struct spin_result *r);
/* The same, and keeps the proof with the last few of t. `from`: where it began, at this site. */
void spin_note_proof(struct thread *t, const struct spin_site *site,
                     const struct spin_registers *from, const struct spin_result *r);
/* Whether there is such a proof for t, which is at this site: the registers that it depends on
 * (spin_result.inputs) are as they were then, ... */
enum spin_kept {
    SPIN_KEPT_NONE,
    SPIN_KEPT_FOR_OTHER_WORDS, /* ... but a word is not: most likely that ends the wait */
    SPIN_KEPT_HOLDS,           /* ... and so are the words: they are in t->wait_word now */
};
enum spin_kept spin_kept_proof(struct thread *t, const struct spin_site *site,
                               const struct spin_registers *now);
/* Whether a thread with the verdict r should let other threads run. */
bool spin_is_wait(const struct spin_result *r);
/* Code may have changed: forget decoded instructions. */
void spin_code_changed(void);
void spin_probe_after_fork(void);

#endif
