/* SPDX-License-Identifier: MIT
 *
 * Loops that wait: endless, limited by a counter or a time, or with pauses only.
 *
 */
#include "loop.h"

static _Alignas(64) volatile int held = 1; /* a lock that is never released */
static _Alignas(64) volatile int flag;     /* a flag that is never set */
static _Alignas(64) volatile int flag2;
static _Alignas(64) volatile int own; /* a word of one waiter that others read */
static _Alignas(64) atomic_int aflag;
static _Alignas(64) atomic_flag taken = ATOMIC_FLAG_INIT;
static _Alignas(64) volatile char byte_flag;
static _Alignas(64) volatile long long_flag;
static _Alignas(64) struct {
    volatile unsigned next, serving;
} ticket = {7, 3};
static _Alignas(64) volatile unsigned long word_bits = 4;
struct node {
    struct node *volatile next;
    volatile int locked;
};
static _Alignas(64) struct node mcs = {0, 1}, clh = {0, 1};
static _Alignas(64) struct node *volatile clh_tail = &clh;
static _Alignas(64) struct {
    volatile int go;
    char pad[60];
} slots[8] = {{.go = 1}};
static volatile int my_slot = 5;
static _Alignas(64) struct inner {
    int a, b;
    volatile int ready;
} inner;
static struct {
    struct inner *volatile p;
} outer = {&inner};
static _Alignas(64) volatile int state;
static __thread volatile int tls_word = 3;
static volatile int many = MANY;

/* --- endless waits ---------------------------------------------------------------------------- */
LOOP(flag_plain) {
    while (!flag) {}
    return 1;
}
LOOP(flag_pause) {
    while (!flag) pause();
    return 1;
}
LOOP(flag_yield) {
    while (!flag) sched_yield();
    return 1;
}
LOOP(two_flags_yield) {
    while (!flag && !byte_flag) {
        pause();
        sched_yield();
    }
    return 1;
}
LOOP(pause_then_yield) {
    for (unsigned i = 0; !flag; i++)
        if (i < 100)
            pause();
        else
            sched_yield();
    return 1;
}
LOOP(flag_byte) {
    while (!byte_flag) pause();
    return 1;
}
LOOP(flag_long) {
    while (long_flag != 77) {}
    return 1;
}
LOOP(ttas) {
    do {
        while (held) pause();
    } while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE));
    return 1;
}
LOOP(tas) {
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) {}
    return 1;
}
LOOP(tas_pause) {
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) pause();
    return 1;
}
LOOP(tas_flag) {
    atomic_flag_test_and_set(&taken);
    while (atomic_flag_test_and_set(&taken)) {}
    return 1;
}
LOOP(cas) {
    int e;
    do e = 0;
    while (!__atomic_compare_exchange_n(&held, &e, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    return 1;
}
LOOP(cas_pause) {
    int e = 0;
    while (!__atomic_compare_exchange_n(&held, &e, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        e = 0;
        pause();
    }
    return 1;
}
LOOP(ticket_lock) {
    unsigned my = ticket.next;
    while (ticket.serving != my) pause();
    return 1;
}
LOOP(ticket_proportional) {
    unsigned my = ticket.next;
    for (;;) {
        unsigned d = my - ticket.serving;
        if (!d) return 1;
        for (volatile unsigned i = 0; i < d * 4; i++) pause();
    }
}
LOOP(bit_lock) {
    while (__atomic_fetch_or(&word_bits, 4, __ATOMIC_ACQUIRE) & 4) pause();
    return 1;
}
LOOP(mcs_lock) {
    struct node *n = &mcs;
    while (n->locked) pause();
    return 1;
}
LOOP(mcs_next) {
    struct node *n = &mcs;
    while (!n->next) {}
    return 1;
}
LOOP(clh_lock) {
    struct node *p = clh_tail;
    while (p->locked) {}
    return 1;
}
LOOP(array_lock) {
    int i = my_slot;
    while (!slots[i].go) {}
    return 1;
}
LOOP(array_lock_reload) {
    while (!slots[my_slot].go) pause();
    return 1;
}
LOOP(two_flags) {
    while (!flag && !flag2) {}
    return 1;
}
LOOP(two_flags_pause) {
    while (!flag || !flag2) pause();
    return 1;
}
LOOP(struct_flag) {
    while (!outer.p->ready) {}
    return 1;
}
LOOP(struct_flag_pause) {
    struct inner *p = outer.p;
    while (!p->ready) pause();
    return 1;
}
static __attribute__((noinline)) int load_it(const atomic_int *p) {
    return atomic_load_explicit(p, memory_order_acquire);
}
LOOP(atomic_call) {
    while (!load_it(&aflag)) {}
    return 1;
}
LOOP(atomic_seq) {
    while (!atomic_load(&aflag)) pause();
    return 1;
}
LOOP(plt_wait) {
    while (!plt_load(&flag)) {}
    return 1;
}
LOOP(plt_pause_wait) {
    while (!flag) plt_pause();
    return 1;
}
LOOP(spin_lock_like) {
    for (;;) {
        if (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE) == 0) return 1;
        while (held != 0) pause();
    }
}
LOOP(round_robin) {
    for (unsigned i = 0;; i = (i + 1) % 4)
        if (slots[4 + i].go) return 1;
}
// Scan queues for work until one has some or all work is done, as work-stealing threads do.
static volatile long queues[64][16], all_done, queue_count = 16;
static unsigned long search(long number) {
    queue_count = number;
    for (long from = 0; !all_done;) {
        do from = (from + 1) % queue_count;
        while (queues[from][0] >= queues[from][1] && !all_done);
        if (queues[from][0] < queues[from][1]) return 2;
    }
    return 1;
}
LOOP(search_16) { return search(16); }
LOOP(search_64) { return search(64); }
LOOP(scan_flags) {
    for (;;) {
        int sum = 0;
        for (int i = 4; i < 8; i++) sum += slots[i].go;
        if (sum) return 1;
    }
}
LOOP(switch_state) {
    for (;;) switch (state) {
        case 0: pause(); break;
        case 1: return 1;
        case 2: return 7;
        case 3: return 3;
        case 4: return 99;
        default: abort();
        }
}
LOOP(backoff_capped) {
    unsigned d = 1;
    while (held) {
        for (volatile unsigned i = 0; i < d; i++) pause();
        if (d < 8) d *= 2;
    }
    return 1;
}
LOOP(delay_in_wait) {
    while (held)
        for (volatile int i = 0; i < 5; i++) {}
    return 1;
}
LOOP(backoff_plain) {
    unsigned d = 1;
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) {
        do {
            for (unsigned i = 0; i < d; i++) __asm__ volatile("");
            if (d < 1024) d *= 2;
        } while (held);
    }
    return 1;
}
LOOP(backoff_pause) {
    unsigned d = 1;
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) {
        do {
            for (unsigned i = 0; i < d; i++) pause();
            if (d < 1024) d *= 2;
        } while (held);
    }
    return 1;
}
LOOP(backoff_volatile) {
    while (held)
        for (volatile int i = 0; i < 1000; i++) {}
    return 1;
}
LOOP(backoff_down) {
    while (held)
        for (int i = many >> 20; i > 0; i--) __asm__ volatile("");
    return 1;
}
LOOP(fence_wait) {
    while (!flag) __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return 1;
}
LOOP(tls_compare) {
    while (flag != tls_word) pause();
    return 1;
}
LOOP(keep_setting) {
    do flag2 = 0;
    while (!flag);
    return 1;
}
/* the state is the same at the end of each iteration, but not within it */
LOOP(toggle) {
    while (!flag) {
        own = 1;
        own = 0;
    }
    return 1;
}
LOOP(toggle_pause) {
    while (!flag) {
        own = 1;
        pause();
        own = 0;
    }
    return 1;
}
LOOP(function_pointer) {
    int (*volatile f)(const atomic_int *) = load_it;
    while (!f(&aflag)) pause();
    return 1;
}
LOOP(flag_masked) {
    while (!((unsigned)state >> 3 & 5)) pause();
    return 1;
}

/* --- waits limited by a counter --------------------------------------------------------------- */
LOOP(counted_pause) {
    for (int i = 0; i < MANY; i++) {
        if (flag) return 1;
        pause();
    }
    return 2;
}
LOOP(counted_plain) {
    for (int i = 0; i < MANY; i++)
        if (flag) return 1;
    return 2;
}
LOOP(counted_down) {
    int n = many;
    while (n-- > 0)
        if (flag) return 1;
    return 2;
}
LOOP(counted_stack) {
    volatile int i;
    for (i = 0; i < MANY; i++)
        if (flag) return 1;
    return 2;
}
LOOP(counted_long) {
    for (unsigned long long i = 0, n = 30000000000ull; i < n; i++) {
        if (atomic_load_explicit(&aflag, memory_order_relaxed) != 0) return 1;
        pause();
    }
    return 2;
}
LOOP(counted_cas) {
    for (int i = 0; i < MANY; i++) {
        int e = 0;
        if (__atomic_compare_exchange_n(&held, &e, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
        pause();
    }
    return 2;
}
/* The vector instructions that move a structure of four pointers. */
LOOP(vector_moves) {
    static _Alignas(16) unsigned long from[4] = {1, 2, 3, 4};
    unsigned long to[6];
    while (!flag)
        __asm__ volatile(
            "movq %1, %%xmm0\n movq 8+%1, %%xmm1\n punpcklqdq %%xmm1, %%xmm0\n movups %%xmm0, %0\n"
            "movhps 16+%1, %%xmm0\n movlps 24+%1, %%xmm1\n unpcklpd 16+%1, %%xmm1\n punpckhqdq "
            "%%xmm1, %%xmm0\n"
            "movlhps %%xmm1, %%xmm0\n movhlps %%xmm0, %%xmm1\n movsd %1, %%xmm2\n movsd %%xmm1, "
            "%%xmm2\n movss 4+%1, %%xmm3\n"
            "movhps %%xmm0, 16+%0\n movlps %%xmm2, 24+%0\n movsd %%xmm1, 32+%0\n movss %%xmm3, "
            "40+%0\n movhpd %%xmm2, 8+%0\n unpckhpd %1, %%xmm0\n"
            : "=o"(to)
            : "o"(from)
            : "xmm0", "xmm1", "xmm2", "xmm3");
    return to[0];
}
LOOP(timed_plain) {
    unsigned long t = __rdtsc();
    while (!flag)
        if (__rdtsc() - t > limit_tsc) return 2;
    return 1;
}
LOOP(timed_pause) {
    unsigned long t = __rdtsc();
    while (!flag) {
        pause();
        if (__rdtsc() - t > limit_tsc) return 2;
    }
    return 1;
}
LOOP(timed_narrow) {
    for (;;) {
        unsigned t = (unsigned)__rdtsc();
        while (long_flag < 2) {
            __asm__ volatile("nop;nop");
            if ((unsigned)__rdtsc() - t > 0xf0000000u) break;
        }
        if (long_flag) return 1;
    }
}
LOOP(timed_sum) {
    unsigned long last = __rdtsc(), spent = 0;
    while (!aflag) {
        unsigned long t = __rdtsc();
        spent += t - last;
        last = t;
        if (spent > limit_tsc) return 2;
    }
    return 1;
}
LOOP(timed_clock) {
    while (!flag)
        if (seconds() > later) return 2;
    return 1;
}
LOOP(timed_clock_pause) {
    do {
        if (flag2) return 1;
        pause();
    } while (seconds() < later);
    return 2;
}
LOOP(counted_call) {
    for (int i = 0; i < many; i++) {
        if (load_it(&aflag)) return 1;
        plt_pause();
    }
    return 2;
}

/* --- pauses ----------------------------------------------------------------------------------- */
LOOP(delay_pause) {
    for (int i = 0; i < 500; i++) pause();
    return 1;
}
LOOP(delay_pause_long) {
    for (int i = 0; i < 1000000; i++) pause();
    return 1;
}
LOOP(delay_pause_plt) {
    for (int i = 0; i < 100000; i++) plt_pause();
    return 1;
}
LOOP(delay_exponential) {
    for (unsigned d = 64; d < 4096; d *= 2)
        for (unsigned i = 0; i < d; i++) pause();
    return 1;
}

/* Loops with pauses that cannot be proven to wait. */
static _Atomic unsigned long failures;
static volatile unsigned long own_failures;
static volatile int queued[32];
LOOP(hint_locked_count) {
    while (!flag) {
        failures++;
        pause();
    }
    return 1;
}
LOOP(hint_own_count) {
    while (!flag) {
        own_failures++;
        pause();
    }
    return 1;
}
LOOP(hint_random_search) {
    unsigned long r = 1;
    do {
        r ^= r << 13, r ^= r >> 7, r ^= r << 17;
        failures++;
        pause();
    } while (!queued[r % 32]);
    return r;
}
LOOP(hint_plt) {
    while (!flag) {
        failures++;
        plt_pause();
    }
    return 1;
}

/* --- the table -------------------------------------------------------------------------------- */
#define WAIT(f, e, word) {#f, e, f, (const volatile void *)&(word)}
#define PAUSES(f) {#f, P, f, 0}
#define HINT(f) {#f, P | N | H, f, 0}
const struct loop loops_wait[] = {
    WAIT(flag_plain, E, flag),
    WAIT(flag_pause, E, flag),
    WAIT(flag_yield, E, flag),
    WAIT(two_flags_yield, E, flag),
    WAIT(pause_then_yield, E | C | P, flag),
    WAIT(flag_byte, E, byte_flag),
    WAIT(flag_long, E, long_flag),
    WAIT(ttas, E, held),
    WAIT(tas, E, held),
    WAIT(tas_pause, E, held),
    WAIT(tas_flag, E, taken),
    WAIT(cas, E, held),
    WAIT(cas_pause, E, held),
    WAIT(ticket_lock, E, ticket.serving),
    WAIT(ticket_proportional, E, ticket.serving),
    WAIT(bit_lock, E, word_bits),
    WAIT(mcs_lock, E, mcs.locked),
    WAIT(mcs_next, E, mcs.next),
    WAIT(clh_lock, E, clh.locked),
    WAIT(array_lock, E, slots[5].go),
    WAIT(array_lock_reload, E, slots[5].go),
    WAIT(two_flags, E, flag),
    WAIT(two_flags_pause, E, flag),
    WAIT(struct_flag, E, inner.ready),
    WAIT(struct_flag_pause, E, inner.ready),
    WAIT(atomic_call, E, aflag),
    WAIT(atomic_seq, E, aflag),
    WAIT(plt_wait, E, flag),
    WAIT(plt_pause_wait, E, flag),
    WAIT(spin_lock_like, E, held),
    WAIT(round_robin, E, slots[6].go),
    WAIT(search_16, E, all_done),
    WAIT(search_64, E, all_done),
    WAIT(scan_flags, E, slots[6].go),
    WAIT(switch_state, E, state),
    WAIT(backoff_capped, E, held),
    WAIT(delay_in_wait, E, held),
    WAIT(backoff_plain, E, held),
    WAIT(backoff_pause, E, held),
    WAIT(backoff_volatile, E, held),
    WAIT(backoff_down, E, held),
    WAIT(fence_wait, E, flag),
    WAIT(tls_compare, E, flag),
    WAIT(keep_setting, E, flag),
    WAIT(toggle, E | N, flag),
    WAIT(toggle_pause, E | P | N, flag),
    WAIT(function_pointer, E, aflag),
    WAIT(flag_masked, E, state),
    WAIT(counted_pause, C, flag),
    WAIT(counted_plain, C, flag),
    WAIT(counted_down, C, flag),
    WAIT(counted_stack, C, flag),
    WAIT(counted_long, C, aflag),
    WAIT(counted_cas, C, held),
    WAIT(counted_call, C, aflag),
    WAIT(vector_moves, E, flag),
    HINT(hint_locked_count),
    HINT(hint_own_count),
    HINT(hint_random_search),
    HINT(hint_plt),
    WAIT(timed_plain, E, flag),
    WAIT(timed_pause, E, flag),
    WAIT(timed_narrow, E, long_flag),
    WAIT(timed_sum, E, aflag),
    WAIT(timed_clock, E, flag),
    WAIT(timed_clock_pause, E, flag2),
    PAUSES(delay_pause),
    PAUSES(delay_pause_long),
    PAUSES(delay_pause_plt),
    PAUSES(delay_exponential),
};
const unsigned loops_wait_count = sizeof loops_wait / sizeof *loops_wait;
