/* SPDX-License-Identifier: MIT
 *
 * Loops that wait and loops that work. Compiled with every compiler at every level; nothing of it
 * is called but by table.
 */
#include "loops.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define LOOP(name) static __attribute__((noinline)) unsigned long name(void)
#define pause() __builtin_ia32_pause()
#define MANY 2000000000

static _Alignas(64) volatile int held = 1; /* a lock that is taken, for ever */
static _Alignas(64) volatile int flag;     /* a flag that nobody sets */
static _Alignas(64) volatile int flag2;
static _Alignas(64) volatile int own; /* a waiter's, which others look at */
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

static unsigned long limit_tsc = 1ul << 50; /* 100 hours */
static unsigned long seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec;
}
static volatile unsigned long later = 1ul << 40;

/* --- waits ------------------------------------------------------------------------------------ */
LOOP(flag_plain) {
    while (!flag) {}
    return 1;
}
LOOP(flag_pause) {
    while (!flag) pause();
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
/* as it was at the end of each turn, not within it */
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

/* --- waits that a counter ends ---------------------------------------------------------------- */
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
/* As a structure of four pointers is moved. */
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

/* --- work ------------------------------------------------------------------------------------- */
static unsigned char data[4096], copy[4096];
static long numbers[512];
static struct item {
    struct item *next;
    long v;
} items[256];
static volatile int mode = 3, few = 12;
static char text[] = "the quick brown fox jumps over the lazy dog, and then it does so again, as "
                     "foxes do, until evening";

LOOP(delay_tsc) {
    unsigned long t = __rdtsc();
    while (__rdtsc() - t < limit_tsc) {}
    return 1;
}
LOOP(delay_clock) {
    while (seconds() < later) {}
    return 1;
}
LOOP(timed_reduction) {
    unsigned long n = 0, t = __rdtsc();
    do {
        n = 0;
        for (int i = 0; i < 64; i++)
            if (numbers[i] > 50000) n++;
    } while (__rdtsc() - t < limit_tsc);
    return n;
}
LOOP(timed_conditional) {
    unsigned long n = 0, t = __rdtsc();
    do {
        n = (unsigned long)data[7];
        if (mode == 9) n *= 3;
    } while (__rdtsc() - t < limit_tsc);
    return n;
}
LOOP(delay_plain) {
    for (volatile int i = 0; i < 1000; i++) {}
    return 1;
}
LOOP(delay_long) {
    for (volatile int i = 0; i < MANY; i++) {}
    return 1;
}
LOOP(delay_register) {
    for (int i = 0; i < MANY; i++) __asm__ volatile("");
    return 1;
}
LOOP(delay_sum) {
    static volatile unsigned long sum;
    for (unsigned k = 0; k < 100000; k++) {
        for (unsigned i = 0; i < 1000; i++) __asm__ volatile("");
        sum += k;
    }
    return sum;
}
LOOP(delay_numbers) {
    unsigned x = (unsigned)mode;
    for (unsigned k = 0; k < 100000; k++) {
        for (unsigned i = 0; i < 700; i++) __asm__ volatile("");
        x = x * 1664525 + 1013904223;
        if (mode == 9) break;
    }
    return x;
}
LOOP(delay_loaded) {
    int n = many;
    for (volatile int i = 0; i < n; i++) {}
    return 1;
}
LOOP(reduction) {
    long sum = 0;
    for (int i = 0; i < 512; i++) sum += numbers[i];
    return (unsigned long)sum;
}
LOOP(reduction_same) {
    const volatile long *p = numbers;
    long sum = 0;
    for (int i = 0; i < MANY; i++) sum += *p;
    return (unsigned long)sum;
}
LOOP(reduction_few) {
    long sum = 0;
    for (int i = 0; i < MANY; i++) {
        long part = 0;
        int n = few;
        for (int j = 0; j < n; j++) {
            part += numbers[j];
            __asm__ volatile("" : "+r"(part));
        }
        sum += part;
    }
    return (unsigned long)sum;
}
LOOP(conditional_sum) {
    long sum = 0;
    for (int i = 0; i < MANY; i++) {
        if (mode == 3) sum += 5;
        __asm__ volatile("" : "+r"(sum));
    }
    return (unsigned long)sum;
}
LOOP(conditional_work) {
    long sum = 0;
    for (volatile int i = 0; i < MANY; i++)
        if (mode == 3)
            sum += i * 7;
        else
            sum -= i;
    return (unsigned long)sum;
}
LOOP(conditional_count) {
    volatile long sum = 0;
    for (volatile int i = 0; i < MANY; i++)
        if (mode == 2) sum += 2;
    return (unsigned long)sum;
}
LOOP(minimum) {
    long m = 1000000;
    for (int i = 0; i < 512; i++)
        if (numbers[i] < m) m = numbers[i];
    return (unsigned long)m;
}
LOOP(copy_bytes) {
    for (unsigned i = 0; i < sizeof data; i++) {
        copy[i] = data[i];
        __asm__ volatile("" ::: "memory");
    }
    data[3]++;
    return copy[9];
}
LOOP(libc_copy) {
    memmove(copy, data, sizeof data);
    data[5]++;
    return copy[9];
}
LOOP(length) {
    const char *p = text;
    while (*p) {
        p++;
        __asm__ volatile("" : "+r"(p));
    }
    return (unsigned long)(p - text);
}
LOOP(libc_length) {
    const char *volatile p = text;
    return strlen(p);
}
LOOP(find_byte) {
    for (unsigned i = 0; i < sizeof data; i++)
        if (data[i] == 255) return i;
    return 0;
}
LOOP(sort) {
    long a[64];
    for (int i = 0; i < 64; i++) a[i] = numbers[i];
    for (int i = 1; i < 64; i++)
        for (int j = i; j > 0 && a[j] < a[j - 1]; j--) {
            long t = a[j];
            a[j] = a[j - 1];
            a[j - 1] = t;
        }
    return (unsigned long)a[31];
}
LOOP(hash) {
    unsigned long h = 14695981039346656037ul;
    for (unsigned i = 0; i < sizeof data; i++) h = (h ^ data[i]) * 1099511628211ul;
    return h;
}
LOOP(hash_string) {
    unsigned h = 0;
    for (const char *p = text; *p; p++) h = h * 31 + (unsigned char)*p;
    return h;
}
LOOP(random_numbers) {
    static unsigned long seed = 88172645463325252ul;
    unsigned long x = seed;
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return seed = x;
}
LOOP(congruential) {
    unsigned x = (unsigned)mode;
    for (int i = 0; i < 100000; i++) {
        x = x * 1664525 + 1013904223;
        if (mode == 9) break;
    }
    return x;
}
LOOP(list_walk) {
    long sum = 0;
    for (struct item *p = items; p; p = p->next) sum += p->v;
    return (unsigned long)sum;
}
LOOP(list_straight) {
    static struct item *volatile first = items + 128;
    unsigned long n = 0;
    for (struct item *p = first; p; p = p->next) n++;
    return n;
}
LOOP(popcount) {
    unsigned long n = 0;
    for (int i = 0; i < 512; i++)
        for (unsigned long x = (unsigned long)numbers[i] * 0x9e3779b97f4a7c15ul; x; x &= x - 1) n++;
    return n;
}
LOOP(shift_bits) {
    unsigned long n = 0;
    for (int k = 0; k < 1000; k++)
        for (unsigned long x = ~0ul >> (k & 31); x; x >>= 1) n += x & 1;
    return n;
}
LOOP(divide_slow) {
    unsigned long a = 4000000000ul, b = (unsigned long)mode, q = 0;
    while (a >= b) {
        a -= b;
        q++;
        __asm__ volatile("" : "+r"(a));
    }
    return q;
}
LOOP(divide) {
    unsigned long sum = 0;
    for (unsigned long i = 1; i < 100000; i++) sum += 1000000007ul / i;
    return sum;
}
LOOP(gcd) {
    unsigned long s = 0;
    for (unsigned long i = 1; i < 3000; i++) {
        unsigned long a = i, b = 1836311903ul;
        while (b) {
            unsigned long t = a % b;
            a = b;
            b = t;
        }
        s += a;
    }
    return s;
}
LOOP(collatz) {
    unsigned long n = 0;
    for (unsigned long i = 1; i < 5000; i++)
        for (unsigned long x = i; x != 1; x = x & 1 ? 3 * x + 1 : x / 2) n++;
    return n;
}
LOOP(count_up) {
    static volatile long total;
    for (int i = 0; i < 1000; i++) total++;
    return (unsigned long)total;
}
LOOP(locked_count) {
    static atomic_long total;
    for (int i = 0; i < 1000; i++) atomic_fetch_add(&total, 1);
    return 1;
}
LOOP(heartbeat) {
    while (!flag) own++;
    return 1;
} /* others see it beat */
LOOP(toggle_locked) {
    while (!flag) {
        __atomic_fetch_xor(&own, 1, __ATOMIC_ACQ_REL);
        __atomic_fetch_xor(&own, 1, __ATOMIC_RELEASE);
    }
    return 1;
}
LOOP(matrix) {
    static double m[32][32];
    double x = 0;
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) {
            m[i][j] += 0.5;
            x += m[i][j] * m[j][i];
        }
    return (unsigned long)x;
}
LOOP(binary_search) {
    unsigned long found = 0;
    for (unsigned long k = 0; k < 4000; k++) {
        unsigned lo = 0, hi = 512;
        while (lo < hi) {
            unsigned mid = (lo + hi) / 2;
            if ((unsigned long)mid * 8 < k)
                lo = mid + 1;
            else
                hi = mid;
        }
        found += lo;
    }
    return found;
}
LOOP(allocate) {
    void *volatile p = malloc(100);
    free(p);
    return 1;
}

__attribute__((constructor)) static void fill(void) {
    unsigned x = 12345;
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)((x = x * 1103515245 + 12345) >> 16) % 255;
    for (unsigned i = 0; i < 512; i++)
        numbers[i] = (long)((x = x * 1103515245 + 12345) >> 8) % 100000;
    for (unsigned i = 0; i < 256; i++) {
        items[i].v = (long)i;
        items[i].next = i < 128 ? &items[(i * 37 + 1) % 128] : i < 255 ? &items[i + 1] : 0;
    }
    items[100].next = 0;
    text[0] = 'T'; /* not a constant that a compiler could fold */
}

#define WAIT(f, e, word) {#f, e, f, (const volatile void *)&(word)}
#define WORK(f) {#f, N, f, 0}
#define PAUSES(f) {#f, P, f, 0}
const struct loop loops[] = {
    WAIT(flag_plain, E, flag),
    WAIT(flag_pause, E, flag),
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
    WORK(delay_tsc),
    WORK(delay_clock),
    WORK(timed_reduction),
    WORK(timed_conditional),
    WORK(delay_plain),
    WORK(delay_long),
    WORK(delay_register),
    WORK(delay_loaded),
    WORK(delay_sum),
    WORK(delay_numbers),
    WORK(reduction),
    WORK(reduction_same),
    WORK(reduction_few),
    WORK(conditional_sum),
    WORK(conditional_work),
    WORK(conditional_count),
    WORK(minimum),
    WORK(copy_bytes),
    WORK(libc_copy),
    WORK(length),
    WORK(libc_length),
    WORK(find_byte),
    WORK(sort),
    WORK(hash),
    WORK(hash_string),
    WORK(random_numbers),
    WORK(congruential),
    WORK(list_walk),
    WORK(list_straight),
    WORK(popcount),
    WORK(shift_bits),
    WORK(divide_slow),
    WORK(divide),
    WORK(gcd),
    WORK(collatz),
    WORK(count_up),
    WORK(locked_count),
    WORK(heartbeat),
    WORK(toggle_locked),
    WORK(matrix),
    WORK(binary_search),
    WORK(allocate),
};
const unsigned loop_count = sizeof loops / sizeof *loops;
