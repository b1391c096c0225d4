/* SPDX-License-Identifier: MIT
 *
 * Proves that a thread waits in a spin loop, from one sample of its registers.
 *
 * The code is interpreted forward from the sample: loads come from memory as it is, stores go into
 * a private buffer. A machine that comes back to a state in which it was before will do so for
 * ever, unless somebody else's store changes a word that it loads: it waits. Nothing outside is
 * changed, nothing is allocated, memory is touched by the callback only, and the number of
 * interpreted instructions is bounded, so it may run in a signal handler.
 */
#ifndef LISSOM_SPIN_INTERPRET_H
#define LISSOM_SPIN_INTERPRET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPIN_MAX_LOADS = 32, /* of a predicate so many words are told */
    SPIN_MAX_EARLIER = 8,
    SPIN_DEFAULT_BUDGET = 4000, /* instructions */
    SPIN_SEARCH = 4,     /* times as many if the loop may search the same words round and round */
    SPIN_MIN_PAUSES = 4, /* fewer are not worth giving way for */
    SPIN_TRAIL = 48,
    /* cache lines that are written in a look at a thread that certainly works: a search for work
     * writes a few, again and again */
    SPIN_WORK_LINES = 8,
};
/* bits of spin_result.inputs, behind those of the registers */
#define SPIN_INPUT_CARRY (1u << 16)
#define SPIN_INPUT_FLAGS (1u << 17) /* the other flags */
#define SPIN_INPUTS 0x3ffffu        /* all of them */
#define SPIN_TURNS_UNKNOWN 0ull     /* the counter decides, but it cannot be told when */
/* no branch depends on the counter: statistics, or work that is counted */
#define SPIN_TURNS_UNBOUNDED (~0ull)

enum spin_verdict {
    SPIN_NO_WAIT, /* it makes progress; `reason` says how that was seen */
    /* it stays in the loop until a word of the predicate differs (no word: until a signal), or a
     * time limit ends */
    SPIN_ENDLESS,
    SPIN_COUNTED, /* the same, but a counter ends the loop as well */
    /* at least SPIN_MIN_PAUSES pauses are ahead, and nothing was proven that could be waited for */
    SPIN_PAUSE_ONLY,
    SPIN_UNKNOWN, /* `reason` says why */
};

enum spin_reason {
    SPIN_R_NONE,
    /* of SPIN_NO_WAIT */
    SPIN_R_STORE,  /* a store changes memory outside the stack, and is not taken back */
    SPIN_R_LOCKED, /* so does a locked instruction: a lock is being taken */
    SPIN_R_SYSCALL,
    SPIN_R_DELAY, /* a counting loop that no load can end, longer than the budget */
    /* of SPIN_UNKNOWN */
    SPIN_R_UNSUPPORTED, /* an instruction that is not interpreted; `rip` is its address */
    SPIN_R_UNREADABLE,  /* data, or code, or an address that is not the program's */
    SPIN_R_BUDGET,      /* neither an end nor a repetition within the budget */
    SPIN_R_STORES,      /* more stack written than the store buffer holds */
    SPIN_R_LOADS,       /* more loads than SPIN_MAX_LOADS in a loop that also ends by a limit */
    /* only the time ends the loop; or config.time is 0, and the time stamp counter is computed
     * with */
    SPIN_R_TIME,
    SPIN_R_OPAQUE, /* a vector register whose contents were not given is computed with */
    SPIN_R_FAULT,  /* a division that would trap */
    SPIN_REASONS
};

struct spin_registers {
    /* rax rcx rdx rbx rsp rbp rsi rdi r8..r15: the order of the encoding */
    uint64_t r[16];
    uint64_t rip, flags;
    uint64_t fs_base, gs_base;
    const void *xmm; /* xmm0..15, 16 bytes each, or NULL: not known */
};

struct spin_config {
    /* Copies `bytes` (1..15) from a program's address. Must be async-signal-safe and survive any
     * address below 2^47. Post: 0, or a negative number. */
    long (*load)(uintptr_t address, void *to, unsigned bytes);
    /* The same for code, of which it should deliver the original bytes where it is patched. NULL:
     * load. */
    long (*fetch)(uintptr_t address, void *to, unsigned bytes);
    /* Code that has not changed since the last interpretation with the same scratch, which was
     * zeroed before its first: what was decoded is used again; no trail and no pause are told then.
     * 0, 0: none. */
    uintptr_t same_lo, same_hi;
    /* More of it, if same_hi: loops call libc, and go on there when they end. */
    uintptr_t libc_lo, libc_hi;
    /* of a loop that was proven to wait before, to be proven from its first visit on; 0: not
     * known */
    uintptr_t head;
    bool yields;      /* the loop may call sched_yield(2), as if it did nothing */
    bool find_pauses; /* whatever it stores, does it pause? (SPIN_PAUSE_ONLY) */
    uint64_t time;    /* what RDTSC returns throughout the interpretation; 0: not known */
    uintptr_t clock_lo, clock_hi; /* where the kernel publishes the time (vvar); 0, 0: not known */
    /* instructions; 0: SPIN_DEFAULT_BUDGET. At most 2 * SPIN_SEARCH times as many are
     * interpreted */
    uint32_t budget;
    /* Only this thread of its process runs. Then words outside of its stack that it counts up are
     * no progress, as nobody sees them. */
    bool alone;
    /* the thread's stack; 0, 0: not known, what lies around rsp is taken for it */
    uintptr_t stack_lo, stack_hi;
};

struct spin_load {
    uintptr_t address;
    uint64_t value; /* zero-extended */
    uint8_t bytes;  /* 1, 2, 4 or 8 */
    bool stack;     /* on the thread's own stack: most likely a local variable */
};

struct spin_result {
    uint8_t verdict; /* enum spin_verdict */
    uint8_t reason;  /* enum spin_reason */
    uint8_t loads;
    uint32_t steps;  /* instructions interpreted */
    uint32_t pauses; /* all that were met; of ENDLESS and COUNTED: in one proof's turns */
    uintptr_t rip;   /* where the interpretation ended */

    /* Of ENDLESS: what the verdict depends on, beside rip and the bases. From a state in which
     * these registers are the same, and so are the words of `load` and `earlier`, it is the same
     * again. */
    uint32_t inputs; /* a bit for each of spin_registers.r, and SPIN_INPUT_*; no vectors */
    bool repeatable; /* it depends on these only */
    uint8_t earlier_loads;
    struct spin_load earlier[SPIN_MAX_EARLIER]; /* before the first turn, and not in `load` */

    /* it stores outside of the stack, and takes that back within a turn */
    bool transient;
    bool more_loads; /* it waits for more words than `load` has room for */
    /* Unless ENDLESS or COUNTED: cache lines outside of the stack that were written. */
    uint8_t lines;

    /* Of ENDLESS and COUNTED: where the proof began, and the backward jump to it. Of PAUSE_ONLY, if
     * config.find_pauses: head, pause and loop are the address of a `pause`. */
    uintptr_t head, back;
    /* Lowest address of the loop in its own function, not in those that it calls: the same for
     * every sample. */
    uintptr_t loop;
    uintptr_t pause;                       /* a `pause` in the loop, or 0 */
    uint32_t turn;                         /* instructions of one turn */
    struct spin_load load[SPIN_MAX_LOADS]; /* in the order of the loop */
    /* Instructions of one turn in the loop's own function, in the order of execution: the first so
     * many of them. */
    uint8_t trail_length;
    uintptr_t trail[SPIN_TRAIL];

    /* Of COUNTED: the counter that decides, or one of them. */
    bool counter_in_memory;
    uint8_t counter_register;  /* as in spin_registers.r, if not in memory */
    uintptr_t counter_address; /* of a 32-bit half, if in memory */
    int64_t stride;            /* a turn */
    /* turns until a branch that depends on it goes the other way, or SPIN_TURNS_* */
    uint64_t remaining;
};

/* Private. 60 KiB, which the caller provides and need not initialise; one interpretation at a
 * time. */
struct spin_scratch {
    _Alignas(64) unsigned char bytes[60 * 1024];
};

/* Post: r is filled in; the result is r->verdict. */
enum spin_verdict spin_interpret(const struct spin_config *c, const struct spin_registers *from,
                                 struct spin_scratch *scratch, struct spin_result *r);

#endif
