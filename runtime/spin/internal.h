/* SPDX-License-Identifier: MIT
 *
 * What the files of the interpreter share:
 *
 *     decode.c    an instruction of the program, by way of Zydis, into a struct op
 *     machine.c   registers, flags, memory and the store buffer
 *     execute.c   what each instruction does
 *     bits.c      shifts, bit tests, counting
 *     vector.c    moves of vector registers
 *     prove.c     loop heads, repetition, verdicts
 *     depends.c   what a proof depends on
 *     counter.c   when a counter ends a loop
 *     delay.c     inner loops that only count
 *     explore.c   whether a branch leaves a loop
 *
 * Every value carries a few bits of taint: where it comes from, as far as a proof has to know.
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
    OUTSIDE_STORES = 32, /* that change memory outside of the stack, in an interpretation */
};

enum taint {
    /* While a turn is recorded: */
    T_LOAD = 1,  /* from memory that others may write */
    T_TABLE = 2, /* from an address that was T_LOAD: of a jump, a switch over what was loaded */
    T_COUNTER = 4,
    T_DEAD = 8, /* differs from turn to turn: reading it ends the proof */
    /* At all times: the number in our hands is not the true one. It may be moved, and not be
     * computed with. */
    T_TIME = 16,
    T_VECTOR = 32, /* of unknown vector registers, and of flags that a fence leaves */
    T_CLOCK = 64,  /* derived from the time, which stands still during an interpretation */
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
    uint8_t reg;  /* number; of O_HIGH that of the whole register */
};

/* An instruction as it is kept. No instruction that is interpreted has two memory operands or two
 * constants. */
struct op {
    uint64_t address; /* 0: the entry is empty */
    uint64_t imm;     /* of a relative branch: its target */
    int64_t disp;     /* rip-relative ones are resolved */
    uint16_t mnemonic;
    uint8_t length;
    uint8_t operands;
    uint8_t condition; /* of jcc, setcc, cmovcc */
    uint8_t kind;      /* enum op_kind */
    uint8_t segment;   /* 1: fs, 2: gs */
    uint8_t base, index, scale;
    bool address32, lock;
    uint32_t run; /* the interpretation that decoded it */
    struct operand o[4];
};
enum op_kind { OP_OTHER, OP_JCC, OP_SETCC, OP_CMOV, OP_REPEATED };

/* Four bytes as the program will see them: of the stack, and of what else is stored and may be
 * restored within a turn. */
struct granule {
    uint64_t address;
    uint32_t value;
    uint8_t mask; /* which bytes were stored */
    uint8_t taint;
    bool fresh; /* stored since the recording began */
};

struct state {
    uint64_t r[16], rip;
    uint32_t flags;
    uint8_t cf_taint, flags_taint;
    uint16_t stores;
    bool transient;            /* some of them are outside of the stack */
    uint8_t low[16], high[16]; /* taint of the lowest byte, and of the rest */
    /* Vector registers: those that were written, a bit each. Others are as at first, and are not
     * copied with a state, nor compared. */
    uint16_t xmm_written;
    uint8_t xmm_taint[16];
    uint64_t xmm[16][2];
    struct granule store[STORES]; /* last: only those in use are copied */
};

/* What set the flags last, if it can be done again with other numbers. */
enum alu { ALU_NONE, ALU_ADD, ALU_SUB, ALU_AND };
struct flag_source {
    uint8_t alu, size;
    uint64_t l, r;
};

/* Something that is not the same at two visits of a head. */
struct difference {
    uint8_t granule; /* 0: register */
    uint8_t index;
    bool varies; /* by another amount each time */
    int64_t by;
};

/* A branch that depends on a counter, in two turns. */
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
    struct compare branch; /* that ends it; its last two turns */
    uint64_t back;         /* the jump back to its head */
    uint32_t pauses, turn; /* of one turn */
    uint8_t counters;
    struct difference counter[DIFFERENCES];
};

struct head {
    uint64_t address;
    uint32_t visits, anchor_visit;
    uint8_t attempts;
    uint8_t streak; /* visits since the same things differ */
    uint8_t differences;
    bool is_delay;
    struct difference difference[DIFFERENCES];
    struct delay delay;
    struct state anchor, last;
};

enum explore { EXPLORE_NO, EXPLORE_BEFORE, EXPLORE_AFTER, EXPLORE_CAME_BACK, EXPLORE_LEFT };

struct recording {
    bool on;
    bool at_once;  /* from the first visit of a head that is known to be one */
    bool failed;   /* not a wait of the kind that was looked for */
    bool walks;    /* a counter feeds an address or a store: an array is walked */
    bool too_many; /* loads */
    bool counted;
    bool table; /* a jump table over what was loaded decides */
    bool counter_branch;
    /* counted or timed, and all is proven but that a deciding branch leaves the loop */
    bool explore;
    struct head *head;
    uint64_t back;
    uint32_t period, left; /* visits of the head */
    uint32_t others;       /* and of others */
    uint32_t first_step;
    uint32_t deciding;       /* branches that depend on a load and on no counter ... */
    uint32_t deciding_first; /* ... in the first turn */
    uint32_t pauses, loads, compares, timed;
    uint32_t came_back; /* while exploring a timed loop: visits of the head since the other way */
    uint64_t pause;
    struct compare compare[COMPARES];
    struct timed_branch timed_branch[TIMED];
    uint64_t outermost; /* highest stack pointer of the turn: that of the loop's own function */
    uint64_t loop;      /* lowest instruction there */
    uint32_t trail_length;
    uint64_t trail[SPIN_TRAIL]; /* instructions there */
};

struct spin {
    const struct spin_config *config;
    struct spin_result *result;
    uint64_t fs_base, gs_base;
    const char *xmm_first; /* spin_registers.xmm */
    uintptr_t stack_lo, stack_hi;
    uint32_t budget, steps, pauses;
    uint32_t outside_stores;
    /* stores outside of the stack, by unlocked instructions, of what was there already */
    uint32_t rewrites;
    bool stop;
    bool only_pauses; /* nothing is proven: hint.c */
    bool goes_round;  /* a walk may have no end, and has the budget of a search */
    uint64_t hint;    /* then: the first `pause` */
    /* The restartable sequence (rseq(2)) that was entered last: no place for a site, since the
     * kernel restarts a thread only between these addresses. */
    uint64_t critical, critical_bytes;
    bool has_delays;   /* some of the heads are */
    uint8_t exploring; /* enum explore */
    uint32_t invert;   /* while exploring: which deciding branch goes the other way */
    struct flag_source source;
    struct recording rec;
    /* Registers, a bit each, as spin_result.inputs: that were read when they were not written yet,
     * and that were written. */
    uint32_t inputs, written;
    bool asked_time;       /* or was delayed: then numbers count that are read in no instruction */
    bool too_many_earlier; /* loads before the recording */
    uint32_t heads, next_head;
    uint32_t run; /* counts the interpretations with this scratch */
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
const struct op *spin_decode(struct spin *s, uint64_t address); /* NULL: s is stopped */

/* --- counter.c -------------------------------------------------------------------------------- */
/* the counter and the remaining turns, into the result */
void spin_describe_counter(struct spin *s);
/* Until the branch goes the other way, and by what the compared values move each turn. Post:
 * SPIN_TURNS_UNKNOWN: that cannot be told. */
uint64_t spin_turns_left(const struct compare *c, uint64_t *dl, uint64_t *dr);

/* --- delay.c ---------------------------------------------------------------------------------- */
/* The recorded loop, of which the counter is described, is a short delay, and has been brought
 * forward to its last turn. from: the jump back. Post: false: it is none. */
bool spin_delay_learn(struct spin *s, uint64_t from);
struct head *spin_delay_at(struct spin *s, uint64_t address); /* the head of one; NULL: of none */
bool spin_in_delay(const struct spin *s, uint64_t address);   /* an instruction of one */
/* a conditional branch is executed */
void spin_delay_branch(struct spin *s, uint64_t address, bool taken);
void spin_delay_turn(struct spin *s, struct head *h); /* its head is visited */

/* --- hint.c ----------------------------------------------------------------------------------- */
/* The interpretation, which was begun with `from`, has stopped without a proof. If at least
 * SPIN_MIN_PAUSES pauses are ahead, whatever is stored: s->result is SPIN_PAUSE_ONLY, with the
 * place of a pause. */
void spin_find_pauses(struct spin *s, const struct spin_config *c,
                      const struct spin_registers *from);

/* --- prove.c ---------------------------------------------------------------------------------- */
/* An interpretation, instruction by instruction: spin_advance() until s->stop. What
 * spin_interpret() does of it beyond that is to take pauses into account. */
void spin_begin(struct spin *s, const struct spin_config *c, const struct spin_registers *from,
                struct spin_result *r);
void spin_advance(struct spin *s);
/* What has been stored outside of the stack has been taken back: memory is as it was. */
bool spin_restored(const struct spin *s);
/* Whether the instruction that is about to be interpreted is a place for a spin site: where a proof
 * holds, and not in a delay. At a site, where the code is known, nobody asks. */
bool spin_may_be_site(const struct spin *s, uint64_t address);
void spin_step(struct spin *s); /* interprets one instruction */
/* What differs from `a` to `b`. Post: the number, or -1: too much. Flags are not looked at. */
int spin_state_compare(const struct spin *s, const struct state *a, const struct state *b,
                       struct difference *d);

/* --- explore.c -------------------------------------------------------------------------------- */
/* Nothing counts in this loop: what differs from turn to turn is not read. */
bool spin_only_dead(const struct head *h);
/* While exploring: another way than in the recorded turns has led to the head again. */
enum explore spin_came_back(struct spin *s);
/* Takes the other side of each deciding branch. Returns whether one leaves the loop. Post: the
 * state is the recording's first. */
bool spin_some_way_leaves(struct spin *s);

/* --- machine.c -------------------------------------------------------------------------------- */
void spin_stop(struct spin *s, enum spin_verdict verdict, enum spin_reason reason);
void spin_state_copy(struct state *to, const struct state *from);
/* Goes back to a state of this interpretation. */
void spin_state_restore(struct spin *s, const struct state *from);
bool spin_on_stack(const struct spin *s, uint64_t address);
/* Reading a register or memory notices T_DEAD; it is for the caller to look for T_OPAQUE (see
 * spin_known()). */
struct value spin_reg_get(struct spin *s, unsigned reg, unsigned size);
struct value spin_reg_get_high(struct spin *s, unsigned reg);
void spin_reg_put(struct spin *s, unsigned reg, unsigned size, struct value v);
void spin_reg_put_high(struct spin *s, unsigned reg, struct value v);
/* As it is when the interpretation begins. */
void spin_xmm_begin(struct spin *s, unsigned reg);
void spin_xmm_put(struct spin *s, unsigned reg, uint64_t lo, uint64_t hi, uint8_t taint);
struct value spin_mem_get(struct spin *s, struct value address, unsigned size); /* size <= 8 */
void spin_mem_put(struct spin *s, struct value address, unsigned size, struct value v, bool locked);
struct value spin_address_of(struct spin *s, const struct op *op);
struct value spin_operand_get(struct spin *s, const struct op *op, unsigned i);
void spin_operand_put(struct spin *s, const struct op *op, unsigned i, struct value v);
/* Stops if the number in our hands is not the true one. */
bool spin_known(struct spin *s, struct value v);
/* These flags are about to be read. */
void spin_flags_read(struct spin *s, uint32_t which);
void spin_flags_put(struct spin *s, uint32_t which, uint32_t flags, uint8_t taint);
/* The result and all flags of l op r. `carry` goes in with ADD and SUB. */
uint64_t spin_alu(enum alu op, uint64_t l, uint64_t r, unsigned carry, unsigned size,
                  uint32_t *flags);
bool spin_condition_holds(unsigned condition, uint32_t flags);

/* --- execute.c -------------------------------------------------------------------------------- */
void spin_execute(struct spin *s, const struct op *op);

/* --- vector.c --------------------------------------------------------------------------------- */
/* Returns false if it is none of the moves that are interpreted. */
bool spin_vector(struct spin *s, const struct op *op, unsigned mnemonic);

/* --- bits.c ----------------------------------------------------------------------------------- */
void spin_shift(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_shift_x(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_bit(struct spin *s, const struct op *op, unsigned mnemonic);
void spin_count_bits(struct spin *s, const struct op *op, unsigned mnemonic);

/* --- prove.c ---------------------------------------------------------------------------------- */
/* A jump backwards is about to be done. Pre: s->now.rip is its target. */
void spin_at_head(struct spin *s, uint64_t from);

/* --- depends.c -------------------------------------------------------------------------------- */
/* A conditional jump: true if it is to be taken. */
bool spin_at_branch(struct spin *s, const struct op *op, bool taken, uint8_t taint);
/* The program reads memory that others may write. */
void spin_note_load(struct spin *s, uint64_t address, unsigned size, uint64_t value);
/* Another recording begins: the loads of the one before are those before it. */
void spin_loads_are_earlier(struct spin *s);
/* A turn has been recorded: stores its inputs in s->result, and whether it depends on nothing else.
 */
void spin_describe_inputs(struct spin *s);

#endif
