/* SPDX-License-Identifier: MIT
 *
 * Spin sites: places on the waiting path of a proven loop where a thread comes into the runtime by
 * itself, so that its next wait is noticed at its first turn and not at the next sample.
 *
 * One byte of the program's code is changed: the first of an instruction of the loop becomes E9, a
 * jump whose displacement is what the following four bytes happen to be (instruction punning: Duck,
 * Gao, Roychoudhury, "Binary rewriting without control flow recovery", PLDI 2020). Where it leads,
 * a stub is put:
 *
 *     lea  -128(%rsp),%rsp          the red zone
 *     call *lissom_spin_entry       (spin/enter.S); returns with `ret $128`
 *     the instruction itself, fixed up, and a jump to the one behind it
 *
 * (of a conditional jump: only if it is taken). A single byte is written at once, whatever other
 * CPUs are executing, and whoever jumps to the following bytes finds them as they were. Unlike
 * int3, it takes no signal, which the program might use or block, and tens of ns instead of 2 us.
 * If the address is not free the next instruction of the loop is tried.
 *
 * Code is only changed in private mappings of files. Pages of stubs stay mapped. A stub is
 * overwritten only once its object has been unmapped, so no thread comes back to it.
 */
#ifndef LISSOM_SPIN_SITE_H
#define LISSOM_SPIN_SITE_H

#include "spin/interpret.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPIN_SITE_WORD = 24, /* behind `go_on` in a stub: its struct spin_site */
    /* The turns of a loop that counts, and does not pause, take 1 ns or less; this way 3 ns more,
     * in place of 30, and the loop's end is not much later. */
    SPIN_SELDOM = 32,
};

enum spin_site_state {
    SITE_UNUSED,
    SITE_OFF, /* the program's byte is there */
    SITE_ON,
    SITE_GONE,     /* its object has been unmapped */
    SITE_RETIRING, /* on, until the monitor switches it off */
    SITE_RETIRED,  /* waiting was rare there: off for good */
};

struct spin_site {
    /* the instruction; its stub; where that goes on after the call */
    uintptr_t address, stub, go_on;
    uintptr_t lo, hi;  /* the mapping of the code */
    uintptr_t head;    /* of the loop, where a proof began */
    uintptr_t of_loop; /* its lowest address */
    uint8_t original, length, state;
    bool branch;  /* the stub is one of a jump */
    bool pause;   /* it is a `pause`, which the stub begins with */
    bool pauses;  /* its loop does, ... */
    bool hint;    /* ... and mostly is not proven to wait */
    bool counts;  /* the wait may end by a count */
    bool yields;  /* it is none, but sched_yield(2) is called (yield.c) */
    bool foreign; /* another process has found it (exchange.h) */
    bool many;    /* its loop was proven to wait for more words than a parked thread may have */
    bool seldom;  /* a thread comes into the runtime at one of SPIN_SELDOM turns */
    /* Read at each turn by threads on all CPUs, so written seldom. */
    uint32_t failed; /* looks that showed no wait, in excess */
    /* waits that were longer than the time that a thread is given at first, in excess */
    uint32_t long_waits;
    struct lissom_loop *loop; /* its statistics, or NULL */
};

struct lissom_loop;

/* A sample has proven a wait in this loop: asks the monitor for its statistics (spin/loops.h) and,
 * if `site`, to see to it that one of its instructions is a site. Both open files, for which it has
 * a table of descriptors of its own: the program's next one must be the lowest that is free,
 * whatever happens here. */
void spin_site_ask(const struct spin_result *r, bool site);
void spin_sites_serve(void); /* by the monitor, at each tick */
/* Gives all code its bytes back; a later proof switches them on again. */
void spin_sites_off(void);
void spin_site_retire(struct spin_site *site); /* at the monitor's next tick */
/* munmap(2): the sites there are forgotten. Post: 0 or -errno. */
long spin_sites_munmap(uintptr_t base, size_t bytes);
void spin_sites_after_fork(void);

struct spin_range;
/* Describes a site to another process that runs the same code. Names as in spin_site; `often`: not
 * `seldom`. */
struct spin_site_note {
    uintptr_t address, head, of_loop;
    bool pauses, hint, counts, often;
};
/* Stores the first site from *index on that this process has found, and the index after it. Returns
 * false if there is none. By the monitor. */
bool spin_site_made(uint32_t *index, struct spin_site_note *note);
/* Makes the site that find(argument, note, place) stores, or switches it on. `find` returns false
 * if there is none. No code is unmapped meanwhile (spin_sites_munmap). By the monitor. */
void spin_site_take(bool (*find)(const void *argument, struct spin_site_note *note,
                                 struct spin_range *place),
                    const void *argument);
/* From now on code is unmapped only while no site is taken. */
void spin_sites_exchanged(void);
/* How often all sites have been switched off. */
uint32_t spin_sites_offs(void);

/* The site in whose stub ip lies, or NULL. From signal handlers too. */
struct spin_site *spin_site_at(uintptr_t ip);
/* What the program takes for its instruction pointer when it is in a stub, and by how much its
 * stack pointer is off. */
uintptr_t spin_site_view(const struct spin_site *site, uintptr_t ip, long *rsp_off);
/* Puts the program's bytes into a copy of [address, address + bytes). */
void spin_sites_original(uintptr_t address, void *copy, size_t bytes);

/* --- range.c ---------------------------------------------------------------------------------- */

struct spin_range {
    uintptr_t lo, hi;       /* the mapping that contains the code */
    uint64_t inode, offset; /* its file, and where `lo` is in it */
};
/* Whether the code at `address` is that of a file and [stub, stub + bytes) is free, and not where
 * the heap or a stack grows. */
bool spin_find_code(uintptr_t address, struct spin_range *place);
/* Returns the address of the code at this offset of the file, or 0. */
uintptr_t spin_find_in_file(uint64_t inode, uint64_t offset);
bool spin_stub_fits(uintptr_t stub, size_t bytes);

#endif
