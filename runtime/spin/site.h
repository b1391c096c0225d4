/* SPDX-License-Identifier: MIT
 *
 * Spin sites: places in a proven loop where a waiting thread enters the runtime by itself. So its
 * next wait is noticed in the first iteration, not at the next scan.
 *
 * A site changes one byte of the program's code: the first of an instruction of the loop becomes
 * E9. That is a jump whose displacement is whatever the next four bytes are (instruction punning:
 * Duck, Gao, Roychoudhury, "Binary rewriting without control flow recovery", PLDI 2020). A stub is
 * mapped at the jump's target:
 *
 *     lea  -128(%rsp),%rsp          the red zone
 *     call *lissom_spin_entry       (spin/enter.S); returns with `ret $128`
 *     the instruction itself, relocated, and a jump to the next one
 *
 * For a conditional jump, the stub enters the runtime only if the jump is taken.
 *
 * A single byte is written atomically, whatever other CPUs execute. Jumps to the following bytes
 * find them unchanged. A site costs tens of ns, where int3 costs 2 us and a signal, which the
 * program may use or block. If the stub's address is taken, the next instruction of the loop is
 * tried.
 *
 * Only code in private mappings of files is changed. Pages of stubs stay mapped. A stub is
 * overwritten only after its object was unmapped, so no thread returns to it.
 */
#ifndef LISSOM_SPIN_SITE_H
#define LISSOM_SPIN_SITE_H

#include "spin/interpret.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPIN_SITE_WORD = 24, /* offset from `go_on` in a stub: pointer to its struct spin_site */
    /* An iteration of a loop that counts without a pause takes at most 1 ns. Entering the runtime
     * takes 30 ns. If only one iteration in SPIN_SELDOM enters, an iteration takes 3 ns more, and
     * the count still ends soon. */
    SPIN_SELDOM = 32,
};

enum spin_site_state {
    SITE_UNUSED,
    SITE_OFF, /* the program's byte is in place */
    SITE_ON,
    SITE_GONE,     /* its object was unmapped */
    SITE_RETIRING, /* on until the monitor switches it off */
    SITE_RETIRED,  /* off for good: few hits were waits */
};

struct spin_site {
    /* the instruction; its stub; the address in the stub behind the call */
    uintptr_t address, stub, go_on;
    uintptr_t lo, hi;  /* mapping of the code */
    uintptr_t head;    /* head of the loop where a proof began */
    uintptr_t of_loop; /* lowest address of the loop */
    uint8_t original, length, state;
    bool branch;  /* the instruction is a jump */
    bool pause;   /* the instruction is a `pause`; the stub begins with it */
    bool pauses;  /* its loop executes `pause` */
    bool hint;    /* its loop pauses, but is rarely proven to wait */
    bool counts;  /* a counter may end the wait */
    bool yields;  /* not a site: stands for a call of sched_yield(2) (yield.c) */
    bool foreign; /* found by another process (exchange.h) */
    bool many;    /* its loop waits for more words than a parked thread may have */
    bool seldom;  /* one iteration in SPIN_SELDOM enters the runtime */
    /* Rarely written: threads on all CPUs read these at each hit. */
    uint32_t failed; /* interpretations that showed no wait; each wait reduces it */
    /* waits longer than the spin threshold; each shorter one reduces it */
    uint32_t long_waits;
    struct lissom_loop *loop; /* its statistics; NULL: none */
};

struct lissom_loop;

/* Ask the monitor to count a wait that a scan has proven (spin/loops.h) and, if `site`, to make a
 * site in its loop. Ignored while another request is pending. Async-signal-safe.
 *
 * Both tasks open files. The monitor has a file descriptor table of its own, so the program's next
 * descriptor is always the lowest that is free. */
void spin_site_ask(const struct spin_result *r, bool site);
void spin_sites_serve(void); /* monitor only, at each tick */
/* Restore the program's code at all sites. A later proof switches a site on again. */
void spin_sites_off(void);
void spin_site_retire(struct spin_site *site); /* at the monitor's next tick */
/* munmap(2). Forgets the sites in the range. Returns 0 or -errno. */
long spin_sites_munmap(uintptr_t base, size_t bytes);
void spin_sites_after_fork(void);

struct spin_range;
/* Describes a site to another process that runs the same code. Fields as in spin_site; `often` is
 * the opposite of `seldom`. */
struct spin_site_note {
    uintptr_t address, head, of_loop;
    bool pauses, hint, counts, often;
};
/* Store in `note` the first live site from *index on that this process found, and advance *index
 * behind it. Returns false if there is none. Monitor only. */
bool spin_site_made(uint32_t *index, struct spin_site_note *note);
/* Make the site that find(argument, note, place) stores, or switch it on. `find` returns false if
 * there is none. No code is unmapped meanwhile (spin_sites_munmap). Monitor only. */
void spin_site_take(bool (*find)(const void *argument, struct spin_site_note *note,
                                 struct spin_range *place),
                    const void *argument);
/* From now on spin_sites_munmap() waits while a site is being taken. */
void spin_sites_exchanged(void);
/* Returns how often all sites have been switched off. */
uint32_t spin_sites_offs(void);

/* Returns the site whose stub contains ip, or NULL. Async-signal-safe. */
struct spin_site *spin_site_at(uintptr_t ip);
/* Returns the instruction pointer in the program that corresponds to ip in the stub. Stores in
 * *rsp_off what to add to the stack pointer. */
uintptr_t spin_site_view(const struct spin_site *site, uintptr_t ip, long *rsp_off);
/* Restore the program's bytes in `copy`, a copy of [address, address + bytes). */
void spin_sites_original(uintptr_t address, void *copy, size_t bytes);

/* --- range.c ---------------------------------------------------------------------------------- */

struct spin_range {
    uintptr_t lo, hi;       /* mapping that contains the code */
    uint64_t inode, offset; /* its file, and the offset of `lo` in it */
};
/* Store in `place` the mapping that contains the code at `address`. Returns false if that is not a
 * private, read-only executable mapping of a file, or is the runtime's. */
bool spin_find_code(uintptr_t address, struct spin_range *place);
/* Returns the address of the code at `offset` of the file `inode`, or 0. */
uintptr_t spin_find_in_file(uint64_t inode, uint64_t offset);
/* Returns whether [stub, stub + bytes) is free, and not where the heap or a stack grows. */
bool spin_stub_fits(uintptr_t stub, size_t bytes);

#endif
