/* SPDX-License-Identifier: MIT
 *
 * Prove from one sample of its registers that a thread waits in a spin loop.
 *
 * The code is interpreted forward from the sample. Loads read memory as it is; stores go into a
 * private buffer. A machine that returns to an earlier state will do so forever, unless another
 * thread changes a word that it loads: the thread waits.
 *
 * The interpreter changes nothing outside, allocates nothing and touches memory only through its
 * callbacks. The number of interpreted instructions is bounded. So it may run in a signal handler.
 */
#ifndef LISSOM_SPIN_INTERPRET_H
#define LISSOM_SPIN_INTERPRET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPIN_MAX_LOADS = 32, /* words of a predicate that are reported */
    SPIN_MAX_EARLIER = 8,
    SPIN_DEFAULT_BUDGET = 4000, /* instructions */
    SPIN_SEARCH = 4,     /* budget multiplier of a loop that may search the same words repeatedly */
    SPIN_MIN_PAUSES = 4, /* fewer pauses are not worth a switch */
    SPIN_TRAIL = 48,
    /* Cache lines written in one scan by a thread that certainly works. A search for work writes
     * fewer, repeatedly. */
    SPIN_WORK_LINES = 8,
};
/* bits of spin_result.inputs above those of the registers */
#define SPIN_INPUT_CARRY (1u << 16)
#define SPIN_INPUT_FLAGS (1u << 17) /* the other flags */
#define SPIN_INPUTS 0x3ffffu        /* all of them */
#define SPIN_TURNS_UNKNOWN 0ull     /* the counter decides, but when is unknown */
/* no branch depends on the counter: it is a statistic, or counts work */
#define SPIN_TURNS_UNBOUNDED (~0ull)

enum spin_verdict {
    SPIN_NO_WAIT, /* the thread makes progress; `reason` says how that was seen */
    /* the thread stays in the loop until a word of the predicate changes or a time limit ends;
     * without such a word, until a signal */
    SPIN_ENDLESS,
    SPIN_COUNTED, /* as SPIN_ENDLESS, but a counter may also end the loop */
    /* at least SPIN_MIN_PAUSES pauses are ahead, but no word to wait for is proven */
    SPIN_PAUSE_ONLY,
    SPIN_UNKNOWN, /* `reason` says why */
};

enum spin_reason {
    SPIN_R_NONE,
    /* SPIN_NO_WAIT: */
    SPIN_R_STORE,  /* a store changes memory outside the stack and is not undone */
    SPIN_R_LOCKED, /* a locked instruction stores outside the stack: it takes a lock */
    SPIN_R_SYSCALL,
    SPIN_R_DELAY, /* a counting loop longer than the budget that no load can end */
    /* SPIN_UNKNOWN: */
    SPIN_R_UNSUPPORTED, /* the instruction at `rip` is not supported */
    SPIN_R_UNREADABLE,  /* data or code cannot be read, or the address is not the program's */
    SPIN_R_BUDGET,      /* neither an end nor a repetition within the budget */
    SPIN_R_STORES,      /* the stack writes do not fit into the store buffer */
    SPIN_R_LOADS,       /* more than SPIN_MAX_LOADS loads in a loop that a limit also ends */
    /* SPIN_NO_WAIT: only the time ends the loop. SPIN_UNKNOWN: config.time is 0, and the code
     * computes with the time stamp counter. */
    SPIN_R_TIME,
    SPIN_R_OPAQUE, /* the code computes with a vector register whose contents are unknown */
    SPIN_R_FAULT,  /* a division would trap */
    SPIN_REASONS
};

struct spin_registers {
    /* rax rcx rdx rbx rsp rbp rsi rdi r8..r15, in the order of their encoding */
    uint64_t r[16];
    uint64_t rip, flags;
    uint64_t fs_base, gs_base;
    const void *xmm; /* xmm0..15, 16 bytes each; NULL: unknown */
};

struct spin_config {
    /* Copy `bytes` (1 to 15) from an address of the program. Returns 0, or a negative number on
     * failure. Must be async-signal-safe and survive any address below 2^47. */
    long (*load)(uintptr_t address, void *to, unsigned bytes);
    /* Copy code from an address of the program, with the original bytes where it is patched.
     * Arguments, result and requirements as for `load`. NULL: use `load`. */
    long (*fetch)(uintptr_t address, void *to, unsigned bytes);
    /* Code that has not changed since the last interpretation with the same scratch, which was
     * zeroed before its first use. Its decoded instructions are reused; the result has no trail and
     * no pause. 0, 0: none. */
    uintptr_t same_lo, same_hi;
    /* More unchanged code, if same_hi is set: libc, which loops call, also after they end. */
    uintptr_t libc_lo, libc_hi;
    /* head of a loop that was proven to wait before: record from its first visit; 0: unknown */
    uintptr_t head;
    bool yields;      /* treat sched_yield(2) as an instruction without effect */
    bool find_pauses; /* without a proof, search for pauses whatever is stored (SPIN_PAUSE_ONLY) */
    uint64_t time;    /* result of RDTSC throughout the interpretation; 0: unknown */
    uintptr_t clock_lo, clock_hi; /* the kernel's clock pages (vvar); 0, 0: unknown */
    /* maximum number of instructions; 0: SPIN_DEFAULT_BUDGET. Searches and explorations may take up
     * to 2 * SPIN_SEARCH times as many. */
    uint32_t budget;
    /* No other thread of the process runs. Words outside the stack that the thread only counts up
     * are then no progress, since no other thread reads them. */
    bool alone;
    /* the thread's stack; 0, 0: unknown, the memory around rsp is taken for it */
    uintptr_t stack_lo, stack_hi;
};

struct spin_load {
    uintptr_t address;
    uint64_t value; /* zero-extended */
    uint8_t bytes;  /* 1, 2, 4 or 8 */
    bool stack;     /* on the thread's own stack: probably a local variable */
};

struct spin_result {
    uint8_t verdict; /* enum spin_verdict */
    uint8_t reason;  /* enum spin_reason */
    uint8_t loads;
    uint32_t steps;  /* instructions interpreted */
    uint32_t pauses; /* all pauses met; for ENDLESS and COUNTED: in the iterations of one proof */
    uintptr_t rip;   /* where the interpretation ended */

    /* For ENDLESS: what the verdict depends on, besides rip and the segment bases. A state with the
     * same values in these registers, and in the words of `load` and `earlier`, has the same
     * verdict. */
    uint32_t inputs; /* a bit for each of spin_registers.r, and SPIN_INPUT_*; no vectors */
    bool repeatable; /* the verdict depends on nothing else */
    uint8_t earlier_loads;
    struct spin_load earlier[SPIN_MAX_EARLIER]; /* before the first iteration, not in `load` */

    /* it stores outside the stack, and undoes that within an iteration */
    bool transient;
    bool more_loads; /* it waits for more words than `load` can hold */
    /* Unless ENDLESS or COUNTED: cache lines written outside the stack. */
    uint8_t lines;

    /* For ENDLESS and COUNTED: the loop head where the proof began, and the backward jump to it.
     * For PAUSE_ONLY with config.find_pauses: head, pause and loop are the address of a `pause`. */
    uintptr_t head, back;
    /* Lowest address of the loop in its own function, without the functions that it calls. The same
     * for every sample. */
    uintptr_t loop;
    uintptr_t pause;                       /* a `pause` in the loop, or 0 */
    uint32_t turn;                         /* instructions of one iteration */
    struct spin_load load[SPIN_MAX_LOADS]; /* in execution order */
    /* The first instructions of one iteration that are in the loop's own function, in execution
     * order. */
    uint8_t trail_length;
    uintptr_t trail[SPIN_TRAIL];

    /* For COUNTED: the counter that decides, or one of them. */
    bool counter_in_memory;
    uint8_t counter_register;  /* index in spin_registers.r, if not in memory */
    uintptr_t counter_address; /* of its aligned 32-bit word, if in memory */
    int64_t stride;            /* change per iteration */
    /* iterations until a branch on the counter goes the other way, or SPIN_TURNS_* */
    uint64_t remaining;
};

/* Private. Provided by the caller, which need not initialise it unless it sets same_hi. For one
 * interpretation at a time. */
struct spin_scratch {
    _Alignas(64) unsigned char bytes[60 * 1024];
};

/* Interpret the code at from->rip. Fills in r and returns r->verdict. Async-signal-safe. */
enum spin_verdict spin_interpret(const struct spin_config *c, const struct spin_registers *from,
                                 struct spin_scratch *scratch, struct spin_result *r);

#endif
