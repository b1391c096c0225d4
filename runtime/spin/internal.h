/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the interpreter:
 *
 *     decode.c    decode an instruction of the program with Zydis into a struct op
 *     machine.c   registers, flags, memory and the store buffer
 *     execute.c   execute one instruction
 *     bits.c      shifts, bit tests, bit counts
 *     vector.c    moves of vector registers
 *     prove.c     loop heads, repetition, verdicts
 *     depends.c   the inputs of a proof
 *     counter.c   when a counter ends a loop
 *     delay.c     inner loops that only count
 *     explore.c   whether a branch leaves a loop
 *
 * Every value carries taint bits, which say as much of its origin as a proof needs.
 */
#ifndef LISSOM_SPIN_INTERNAL_H
#define LISSOM_SPIN_INTERNAL_H

#include "spin/interpret.h"

#include <Zydis/Decoder.h>
#include <stddef.h>

enum {
    OPS = 256,
    STORES = 96,
    HEADS = 7,
    DIFFERENCES = 6,
    COMPARES = 4,
    TIMED = 6,
    OUTSIDE_STORES = 32, /* maximum in one interpretation that change memory outside the stack */
};

enum taint {
    /* While an iteration is recorded: */
    T_LOAD = 1,  /* loaded from memory that others may write */
    T_TABLE = 2, /* loaded from a T_LOAD address: a jump to it is a switch over a loaded value */
    T_COUNTER = 4,
    T_DEAD = 8, /* differs between iterations: reading it ends the proof */
    /* Always: the value is not the true one. It may be moved, but not computed with. */
    T_TIME = 16,
    T_VECTOR = 32, /* from unknown vector registers, or flags after a fence */
    T_CLOCK = 64,  /* derived from the time, which is constant during an interpretation */
};
#define T_RECORDED (T_LOAD | T_TABLE | T_COUNTER | T_DEAD)
#define T_OPAQUE (T_TIME | T_VECTOR)

enum {
    F_CF = 1,
    F_PF = 4,
    F_ZF = 0x40,
    F_SF = 0x80,
    F_DF = 0x400,
    F_OF = 0x800,
    F_OTHERS = F_PF | F_ZF | F_SF | F_OF,
    F_ALL = F_CF | F_OTHERS
};
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R11 = 11, NO_REGISTER = 255 };

struct value {
    uint64_t v;
    uint8_t t;
};

enum operand_kind { O_NONE, O_REG, O_HIGH, O_XMM, O_MEM, O_IMM };

struct operand {
    uint8_t kind;
    uint8_t size; /* bytes */
    uint8_t reg;  /* number; for O_HIGH that of the whole register */
};

/* A decoded instruction. No supported instruction has two memory operands or two constants. */
struct op {
    uint64_t address; /* 0: the entry is empty */
    uint64_t imm;     /* relative branch: its target */
    int64_t disp;     /* includes rip, if relative to it */
    uint16_t mnemonic;
    uint8_t length;
    uint8_t operands;
    uint8_t condition; /* condition code of jcc, setcc, cmovcc */
    uint8_t kind;      /* enum op_kind */
    uint8_t segment;   /* 1: fs, 2: gs */
    uint8_t base, index, scale;
    bool address32, lock;
    uint32_t run; /* number of the interpretation that decoded it */
    struct operand o[4];
};
enum op_kind { OP_OTHER, OP_JCC, OP_SETCC, OP_CMOV, OP_REPEATED };

/* Four stored bytes as the program will see them: of the stack, or of other memory that the
 * iteration may restore. */
struct granule {
    uint64_t address;
    uint32_t value;
    uint8_t mask; /* bytes that were stored, a bit each */
    uint8_t taint;
    bool fresh; /* stored since the recording began */
};

struct state {
    uint64_t r[16], rip;
    uint32_t flags;
    uint8_t cf_taint, flags_taint;
    uint16_t stores;
    bool transient;            /* some stores are outside the stack */
    uint8_t low[16], high[16]; /* taint of the lowest byte, and of the others */
    /* Vector registers that were written, a bit each. The others have their initial contents; they
     * are neither copied with a state nor compared. */
    uint16_t xmm_written;
    uint8_t xmm_taint[16];
    uint64_t xmm[16][2];
    struct granule store[STORES]; /* last: only entries in use are copied */
};

/* Operation and operands that set the flags last; ALU_NONE: cannot be repeated with others. */
enum alu { ALU_NONE, ALU_ADD, ALU_SUB, ALU_AND };
struct flag_source {
    uint8_t alu, size;
    uint64_t l, r;
};

/* A register or granule that differs between two visits of a head. */
struct difference {
    uint8_t granule; /* 0: register */
    uint8_t index;
    bool varies; /* by a different amount each time */
    int64_t by;
};

/* A branch that depends on a counter, with its operands in two iterations. */
struct compare {
    uint64_t rip;
    uint32_t seen;
    uint8_t condition;
    bool taken;
    struct flag_source at[2];
};

/* A branch that depends on the time. */
struct timed_branch {
    uint64_t rip;
    struct flag_source at;
};

/* An inner loop that only counts (delay.c). */
struct delay {
    struct compare branch; /* the branch that ends it, in its last two iterations */
    uint64_t back;         /* address of the jump back to its head */
    uint32_t pauses, turn; /* of one iteration */
    uint8_t counters;
    struct difference counter[DIFFERENCES];
};

struct head {
    uint64_t address;
    uint32_t visits, anchor_visit;
    uint8_t attempts;
    uint8_t streak; /* visits since the set of differences changed */
    uint8_t differences;
    bool is_delay;
    struct difference difference[DIFFERENCES];
    struct delay delay;
    struct state anchor, last;
};

enum explore { EXPLORE_NO, EXPLORE_BEFORE, EXPLORE_AFTER, EXPLORE_CAME_BACK, EXPLORE_LEFT };

struct recording {
    bool on;
    bool at_once;  /* since the first visit of config.head */
    bool failed;   /* the assumed kind of wait is disproven */
    bool walks;    /* a counter feeds an address or a store: the loop walks an array */
    bool too_many; /* more loads than SPIN_MAX_LOADS */
    bool counted;
    bool table; /* a jump table indexed by a loaded value decides */
    bool counter_branch;
    /* Counted or timed, and proven except that a deciding branch leaves the loop. */
    bool explore;
    struct head *head;
    uint64_t back;
    uint32_t period, left; /* visits of the head: to record, and left */
    uint32_t others;       /* visits of other heads */
    uint32_t first_step;
    uint32_t deciding;       /* branches that depend on a load and on no counter */
    uint32_t deciding_first; /* deciding branches of the first iteration */
    uint32_t pauses, loads, compares, timed;
    uint32_t came_back; /* exploring a timed loop: visits of the head since the inverted branch */
    uint64_t pause;
    struct compare compare[COMPARES];
    struct timed_branch timed_branch[TIMED];
    uint64_t outermost; /* highest stack pointer in the iteration: that of the loop's function */
    uint64_t loop;      /* lowest instruction in that function */
    uint32_t trail_length;
    uint64_t trail[SPIN_TRAIL]; /* instructions in that function */
};

struct spin {
    const struct spin_config *config;
    struct spin_result *result;
    uint64_t fs_base, gs_base;
    const char *xmm_first; /* spin_registers.xmm */
    uintptr_t stack_lo, stack_hi;
    uint32_t budget, steps, pauses;
    uint32_t outside_stores;
    /* Unlocked stores outside the stack that wrote the value already there. */
    uint32_t rewrites;
    bool stop;
    bool only_pauses; /* proves nothing, finds pauses (hint.c) */
    bool goes_round;  /* a walk may repeat itself, and has the budget of a search */
    uint64_t hint;    /* with only_pauses: address of the first `pause` */
    /* The restartable sequence (rseq(2)) entered last. No site is made there: the kernel restarts a
     * thread only between these addresses. */
    uint64_t critical, critical_bytes;
    bool has_delays;   /* some heads are delays */
    uint8_t exploring; /* enum explore */
    uint32_t invert;   /* while exploring: the deciding branch to invert */
    struct flag_source source;
    struct recording rec;
    /* Registers and flags read before they were written, and those written: bits as in
     * spin_result.inputs. */
    uint32_t inputs, written;
    bool asked_time;       /* read the time or skipped a delay: all registers are inputs */
    bool too_many_earlier; /* too many loads before the recording */
    uint32_t heads, next_head;
    uint32_t run; /* number of this interpretation with this scratch */
    ZydisDecoder decoder;
    struct state now;
    struct op op[OPS];
    struct head head[HEADS];
};
_Static_assert(sizeof(struct spin) <= sizeof(struct spin_scratch), "scratch");

static inline bool spin_in_critical(const struct spin *s, uint64_t address)
{
    return address - s->critical < s->critical_bytes;
}
static inline uint64_t low_bytes(uint64_t v, unsigned bytes)
{
    return bytes >= 8 ? v : v & ((1ull << 8 * bytes) - 1);
}
static inline int64_t sign_extended(uint64_t v, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(v << shift) >> shift;
}

/* --- decode.c --------------------------------------------------------------------------------- */
const struct op *spin_decode(struct spin *s, uint64_t address); /* NULL: stopped */

/* --- counter.c -------------------------------------------------------------------------------- */
/* Store the counter and the remaining iterations in s->result. */
void spin_describe_counter(struct spin *s);
/* Returns the iterations until the branch goes the other way, or SPIN_TURNS_UNKNOWN. Stores in *dl
 * and *dr the change of the compared values per iteration. */
uint64_t spin_turns_left(const struct compare *c, uint64_t *dl, uint64_t *dr);

/* --- delay.c ---------------------------------------------------------------------------------- */
/* Check whether the recorded loop, whose counter is described, is a short delay. If so, remember
 * it, advance to its last iteration and return true. from: address of the jump back. */
bool spin_delay_learn(struct spin *s, uint64_t from);
struct head *spin_delay_at(struct spin *s, uint64_t address); /* head of a delay; NULL: none */
bool spin_in_delay(const struct spin *s, uint64_t address);   /* part of a delay */
/* Note the execution of a conditional branch. */
void spin_delay_branch(struct spin *s, uint64_t address, bool taken);
void spin_delay_turn(struct spin *s, struct head *h); /* visit of a delay's head */

/* --- hint.c ----------------------------------------------------------------------------------- */
/* Called after an interpretation that began at `from` has stopped without a proof. If at least
 * SPIN_MIN_PAUSES pauses are ahead, whatever is stored, sets s->result to SPIN_PAUSE_ONLY with the
 * address of a pause. */
void spin_find_pauses(struct spin *s, const struct spin_config *c,
                      const struct spin_registers *from);

/* --- prove.c ---------------------------------------------------------------------------------- */
/* Interpret step by step: spin_begin(), then spin_advance() until s->stop. spin_interpret() also
 * takes pauses into account. */
void spin_begin(struct spin *s, const struct spin_config *c, const struct spin_registers *from,
                struct spin_result *r);
void spin_advance(struct spin *s);
/* Returns whether all stores outside the stack have been undone: memory is as it was. */
bool spin_restored(const struct spin *s);
/* Returns whether the instruction at `address`, the next one, may become a spin site. A proof has
 * to hold there, outside delays and restartable sequences. Always false in an interpretation at a
 * site (config.same_hi). */
bool spin_may_be_site(const struct spin *s, uint64_t address);
void spin_step(struct spin *s); /* one instruction */
/* Store the differences from `a` to `b` in d (DIFFERENCES entries). Returns their number, or -1 if
 * there are too many or other ones. Flags are ignored. */
int spin_state_compare(const struct spin *s, const struct state *a, const struct state *b,
                       struct difference *d);

/* --- explore.c -------------------------------------------------------------------------------- */
/* Returns whether the loop has no counter: values that differ between iterations are not read. */
bool spin_only_dead(const struct head *h);
/* Called while exploring, when the head is reached again. Returns the new s->exploring. */
enum explore spin_came_back(struct spin *s);
/* Take the other side of the deciding branches, up to a limit. Returns whether one leaves the loop.
 * Resets the state to the beginning of the recording. */
bool spin_some_way_leaves(struct spin *s);

/* --- machine.c -------------------------------------------------------------------------------- */
void spin_stop(struct spin *s, enum spin_verdict verdict, enum spin_reason reason);
void spin_state_copy(struct state *to, const struct state *from);
/* Return to an earlier state of this interpretation. */
void spin_state_restore(struct spin *s, const struct state *from);
bool spin_on_stack(const struct spin *s, uint64_t address);
/* A read of a T_DEAD register or word fails the proof. The caller checks for T_OPAQUE (see
 * spin_known()). */
struct value spin_reg_get(struct spin *s, unsigned reg, unsigned size);
struct value spin_reg_get_high(struct spin *s, unsigned reg);
void spin_reg_put(struct spin *s, unsigned reg, unsigned size, struct value v);
void spin_reg_put_high(struct spin *s, unsigned reg, struct value v);
/* Reset a vector register to its contents when the interpretation began. */
void spin_xmm_begin(struct spin *s, unsigned reg);
void spin_xmm_put(struct spin *s, unsigned reg, uint64_t lo, uint64_t hi, uint8_t taint);
struct value spin_mem_get(struct spin *s, struct value address, unsigned size); /* size <= 8 */
void spin_mem_put(struct spin *s, struct value address, unsigned size, struct value v, bool locked);
struct value spin_address_of(struct spin *s, const struct op *op);
struct value spin_operand_get(struct spin *s, const struct op *op, unsigned i);
void spin_operand_put(struct spin *s, const struct op *op, unsigned i, struct value v);
/* Returns true if v is the true value; otherwise stops the interpretation. */
bool spin_known(struct spin *s, struct value v);
/* Note that these flags are about to be read. */
void spin_flags_read(struct spin *s, uint32_t which);
void spin_flags_put(struct spin *s, uint32_t which, uint32_t flags, uint8_t taint);
/* Returns l op r, and stores all flags of it. `carry` is an operand of ALU_ADD and ALU_SUB. */
uint64_t spin_alu(enum alu op, uint64_t l, uint64_t r, unsigned carry, unsigned size,
                  uint32_t *flags);
bool spin_condition_holds(unsigned condition, uint32_t flags);

/* --- execute.c -------------------------------------------------------------------------------- */
void spin_execute(struct spin *s, const struct op *op);

/* --- vector.c --------------------------------------------------------------------------------- */
/* Execute a move of vector registers. Returns false if the instruction is none, or unsupported. */
bool spin_vector(struct spin *s, const struct op *op, unsigned mnemonic);

/* --- bits.c ----------------------------------------------------------------------------------- */
void spin_shift(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_shift_x(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_bit(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_count_bits(struct spin *s, const struct op *op, unsigned mnemonic);

/* --- prove.c ---------------------------------------------------------------------------------- */
/* Handle a backward jump from `from`. Pre: s->now.rip is its target. */
void spin_at_head(struct spin *s, uint64_t from);

/* --- depends.c -------------------------------------------------------------------------------- */
/* Handle a conditional jump. Returns whether to take it: `taken`, unless exploring inverts it. */
bool spin_at_branch(struct spin *s, const struct op *op, bool taken, uint8_t taint);
/* Note a load from memory that others may write. */
void spin_note_load(struct spin *s, uint64_t address, unsigned size, uint64_t value);
/* Turn the loads of the last recording into earlier loads, before another one begins. */
void spin_loads_are_earlier(struct spin *s);
/* Store the inputs of the recorded iterations in s->result, and whether they depend on nothing
 * else. */
void spin_describe_inputs(struct spin *s);

#endif
