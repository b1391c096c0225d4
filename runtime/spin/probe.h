/* SPDX-License-Identifier: MIT
 *
 * Interpret a thread (spin/interpret.h) on the memory of this process.
 */
#ifndef LISSOM_SPIN_PROBE_H
#define LISSOM_SPIN_PROBE_H

#include "spin/interpret.h"

struct spin_site;
struct thread;
struct user_registers;

/* Returns the registers r, with rax, rcx, r11 and rip replaced: r does not hold the program's. */
struct spin_registers spin_registers_at(const struct user_registers *r, uint64_t rax, uint64_t rcx,
                                        uint64_t r11, uintptr_t rip);
/* Interpret t, the calling thread, from the registers `from`, and store the verdict in r. t holds a
 * slot. from->fs_base is ignored and read from the CPU. site: where t is, or NULL. Returns false if
 * another thread of t's slot is being interpreted, or memory is short. Uses 8 KiB of stack;
 * async-signal-safe. */
bool spin_probe(const struct thread *t, const struct spin_registers *from,
                const struct spin_site *site, struct spin_result *r);
/* Returns whether t may be parked now. It must hold a slot, the kernel must not hold its signal
 * mask, and it must not be in a clone. */
bool spin_may_give_way(const struct thread *t);
/* Store in t->wait_word the words that t waits for according to r. Returns whether all are there.
 * Sets t->wait_words to 0 if they are unknown, or those outside the stack do not fit. */
bool spin_remember(struct thread *t, const struct spin_result *r);
/* Store the words that t waits for, as spin_remember does, and keep the proof if it is repeatable.
 * from: the registers at `site`, where the proof began. */
void spin_note_proof(struct thread *t, const struct spin_site *site,
                     const struct spin_registers *from, const struct spin_result *r);
/* Result of a search for a kept proof. A proof applies at its site while the registers and flags
 * that it depends on (spin_result.inputs) have the same values. */
enum spin_kept {
    SPIN_KEPT_NONE,
    SPIN_KEPT_FOR_OTHER_WORDS, /* one applies, but a word has changed: the wait is probably over */
    SPIN_KEPT_HOLDS,           /* one applies, and no word has changed */
};
/* Search the kept proofs of t, which is at `site` with the registers `now`. If one holds, stores
 * its words in t->wait_word. */
enum spin_kept spin_kept_proof(struct thread *t, const struct spin_site *site,
                               const struct spin_registers *now);
/* Returns whether a thread with the verdict r should let other threads run. */
bool spin_is_wait(const struct spin_result *r);
/* Discard decoded instructions and kept proofs: code may have changed. */
void spin_code_changed(void);
void spin_probe_after_fork(void);

#endif
