// build: -Wno-unused-but-set-variable
// Loops that spin for a number of iterations and then block. The thread may be suspended anywhere
// in such a loop. The loop must end by the flag, or after the last iteration with all counters as
// natively.
#include "spin_test.h"

#define O0 __attribute__((noinline, optimize("O0")))
#define O2 __attribute__((noinline, optimize("O2")))
#define relax() __builtin_ia32_pause()
#define SIDE(...) CHECK(__VA_ARGS__)
typedef volatile uint32_t flag_t;
// Loops return 1 if the flag ended them, and 0 after the last iteration. Each checks its counters.

#define UP(name, how, type, from, step) \
    how static int name(flag_t *f, uint32_t n) { \
        type i, end = (type)(from) + (type)(n) * (step); \
        int seen = 0; \
        for (i = (type)(from); i < end; i += (step)) { \
            if (*f) { \
                seen = 1; \
                break; \
            } \
            relax(); \
        } \
        if (!seen) \
            CHECK(i == end, "i is %llx, expected %llx", (unsigned long long)i, \
                  (unsigned long long)end); \
        return seen; \
    }
#define DOWN(name, how, type, to) \
    how static int name(flag_t *f, uint32_t n) { \
        type i; \
        int seen = 0; \
        for (i = (type)(to) + n; i != (type)(to); i--) { \
            if (*f) { \
                seen = 1; \
                break; \
            } \
            relax(); \
        } \
        if (!seen) \
            CHECK(i == (type)(to), "i is %llx, expected %llx", (unsigned long long)i, \
                  (unsigned long long)(type)(to)); \
        return seen; \
    }
UP(up32_o2, O2, uint32_t, 0, 1)
UP(up32_o0, O0, uint32_t, 0, 1)
UP(ups_o2, O2, int, -500, 1)
UP(ups_o0, O0, int, -500, 1)
UP(up64_o2, O2, uint64_t, 0, 2)
UP(up64_o0, O0, uint64_t, 0, 2)
UP(up3_o2, O2, uint32_t, 0, 3)
UP(up3_o0, O0, uint32_t, 0, 3)
UP(cross_o2, O2, uint64_t, 0x1ffffff80ull, 1)
UP(cross_o0, O0, uint64_t, 0x1ffffff80ull, 1)
UP(crosss_o2, O2, int64_t, -128, 1)
UP(crosss_o0, O0, int64_t, -128, 1)
DOWN(down32_o2, O2, uint32_t, 0)
DOWN(down32_o0, O0, uint32_t, 0)
DOWN(down64_o2, O2, uint64_t, 0)
DOWN(down64_o0, O0, uint64_t, 0)
DOWN(dcross_o2, O2, uint64_t, 0x2ffffff00ull)
DOWN(dcross_o0, O0, uint64_t, 0x2ffffff00ull)
DOWN(dwrap_o2, O2, uint32_t, 0xffffff00u)
DOWN(dwrap_o0, O0, uint32_t, 0xffffff00u)
DOWN(dneg_o2, O2, int64_t, -300)
DOWN(dneg_o0, O0, int64_t, -300)

// A typical loop with the flag in its condition.
#define WHILE(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i; \
        for (i = 0; i < n && !*f; i++) relax(); \
        CHECK(i <= n, "i is %u of %u", i, n); \
        if (i < n) CHECK(*f, "%u of %u turns, and no flag", i, n); \
        return i < n; \
    }
WHILE(while_o2, O2)
WHILE(while_o0, O0)
#define DOWHILE(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        int tries = (int)n; \
        do { \
            if (*f == 1) return 1; \
            relax(); \
        } while (--tries); \
        CHECK(tries == 0, "tries is %d", tries); \
        return 0; \
    }
DOWHILE(dowhile_o2, O2)
DOWHILE(dowhile_o0, O0)

// Several counters: one of the second order, one that is not linear.
#define SEVERAL(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i = 0, j = n; \
        uint64_t k = 7, l = 1ull << 33; \
        while (i < n) { \
            if (*f) break; \
            i++; \
            j--; \
            k += 3; \
            l -= 5; \
            relax(); \
        } \
        CHECK(i + j == n, "i %u, j %u, n %u", i, j, n); \
        CHECK(k == 7 + 3ull * i, "i %u, k %lu", i, k); \
        CHECK(l == (1ull << 33) - 5ull * i, "i %u, l %lu", i, l); \
        if (i < n) CHECK(*f, "%u of %u turns", i, n); \
        return i < n; \
    }
SEVERAL(several_o2, O2)
SEVERAL(several_o0, O0)
#define SUM(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i; \
        uint64_t sum = 0, x = 1; \
        for (i = 0; i < n && !*f; i++) { \
            sum += i; \
            x = x * 6364136223846793005u + 1442695040888963407u; \
            relax(); \
            __asm__ volatile("" : "+r"(sum), "+r"(x)); \
        } \
        CHECK(sum == (uint64_t)i * (i - 1) / 2, "i %u, sum %lu", i, sum); \
        uint64_t y = 1; \
        for (uint32_t m = 0; m < i; m++) y = y * 6364136223846793005u + 1442695040888963407u; \
        CHECK(x == y, "i %u, x %lx, expected %lx", i, x, y); \
        return i < n; \
    }
SUM(sum_o2, O2)
SUM(sum_o0, O0)
// Occasional work in such a loop.
static __thread uint32_t total;
#define NOWANDTHEN(name, how, what, period) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i, polls = 0, before = total; \
        for (i = 0; i < n && !*f; i++) { \
            if ((i & ((period) - 1)) == (period) - 1) { \
                polls++; \
                what; \
            } \
            relax(); \
        } \
        if (i < n) CHECK(*f, "%u of %u turns", i, n); \
        CHECK(polls == i / (period), "%u of %u turns, %u times", i, n, polls); \
        if (total != before) \
            CHECK(total - before == polls, "%u of %u turns, %u times, total %u", i, n, polls, \
                  total - before); \
        return i < n; \
    }
NOWANDTHEN(then_o2, O2, (void)0, 1024)
NOWANDTHEN(then_o0, O0, (void)0, 1024)
NOWANDTHEN(global_o2, O2, total++, 1024)
NOWANDTHEN(global_o0, O0, total++, 1024)
NOWANDTHEN(yield_o2, O2, sched_yield(); total++, 2048)
NOWANDTHEN(then16_o2, O2, total++, 16)
NOWANDTHEN(then16_o0, O0, total++, 16)
#define MOD(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i, polls = 0; \
        for (i = 0; i < n && !*f; i++) { \
            if (i % 1000 == 999) polls++; \
            relax(); \
        } \
        CHECK(polls == i / 1000, "%u of %u turns, %u times", i, n, polls); \
        return i < n; \
    }
MOD(mod_o2, O2)
MOD(mod_o0, O0)
// A second, nearer bound.
#define TWO(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t i, late = 0, half = n / 2; \
        for (i = 0; i < n && !*f; i++) { \
            if (i == half) late = i + 1; \
            relax(); \
        } \
        CHECK(late == (i > half ? half + 1 : 0), "%u of %u turns, late %u", i, n, late); \
        return i < n; \
    }
TWO(two_o2, O2)
TWO(two_o0, O0)
// Exponential backoff: pauses are counted across loops.
#define BACKOFF(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t delay, pauses = 0; \
        for (delay = 1; delay <= n && !*f; delay *= 2) \
            for (uint32_t i = 0; i < delay; i++) { \
                relax(); \
                pauses++; \
            } \
        CHECK(pauses == delay - 1, "delay %u, pauses %u", delay, pauses); \
        return delay <= n; \
    }
BACKOFF(backoff_o2, O2)
BACKOFF(backoff_o0, O0)
#define NESTED(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        uint32_t round, turns = 0, i; \
        for (round = 0; round < 4; round++) { \
            for (i = 0; i < n / 4; i++) { \
                if (*f) { \
                    CHECK(turns == round * (n / 4) + i, "turns %u", turns); \
                    return 1; \
                } \
                relax(); \
                turns++; \
            } \
        } \
        CHECK(turns == n / 4 * 4, "turns %u", turns); \
        return 0; \
    }
NESTED(nested_o2, O2)
NESTED(nested_o0, O0)
// Small counters beside others, which they must not overwrite.
#define SMALL(name, how, type, mask) \
    how static int name(flag_t *f, uint32_t n) { \
        volatile struct { \
            type before, i, j, after; \
        } c = {(type)0x5a5a, (type)200, (type)100, (type)0xa5a5}; \
        type end = (type)(200 + n); \
        int seen = 0; \
        if (end == c.i) end++; \
        while (c.i != end) { \
            if (*f) { \
                seen = 1; \
                break; \
            } \
            c.i++; \
            c.j--; \
            relax(); \
        } \
        CHECK(c.before == (type)0x5a5a && c.after == (type)0xa5a5 && \
                  (type)(c.i + c.j) == (type)300, \
              "before %x after %x i %u j %u end %u", c.before, c.after, c.i, c.j, end); \
        if (!seen) CHECK(c.i == end, "i %u end %u", c.i, end); \
        return seen; \
    }
SMALL(byte_o2, O2, uint8_t, 0xff)
SMALL(byte_o0, O0, uint8_t, 0xff)
SMALL(short_o2, O2, uint16_t, 0xffff)
SMALL(short_o0, O0, uint16_t, 0xffff)
// The counter is a pointer that is never dereferenced.
#define POINTER(name, how) \
    how static int name(flag_t *f, uint32_t n) { \
        const char *p = (const char *)0x100000000 - 400, *end = p + 12 * (size_t)n; \
        for (; p != end && !*f; p += 12) relax(); \
        CHECK(p <= end && (uintptr_t)(end - p) % 12 == 0, "%ld left", end - p); \
        if (p != end) CHECK(*f, "%ld left", end - p); \
        return p != end; \
    }
POINTER(pointer_o2, O2)
POINTER(pointer_o0, O0)
// The flag is checked only sometimes, so the thread must advance to that point.
O2 static int rarely(flag_t *f, uint32_t n) {
    uint32_t i;
    for (i = 0; i < n; i++) {
        if (!(i & 63) && *f) break;
        relax();
    }
    if (i < n) CHECK(*f && !(i & 63), "%u of %u turns", i, n);
    return i < n;
}
// The bound is for emergencies: natively it takes minutes to reach it.
O2 static int emergency(flag_t *f, uint32_t n) {
    uint64_t i;
    for (i = 0; i < 1ull << 34 && !*f; i++) relax();
    CHECK(i < 1ull << 34, "gave up");
    return 1;
}
O0 static int emergency_o0(flag_t *f, uint32_t n) {
    for (uint32_t i = 0; !*f; i++) {
        if (i == 4000000000u) FAIL("gave up");
        relax();
    }
    return 1;
}

// In assembly. The counter's register holds another value in the middle of the iteration, where a
// site may be.
O2 static int reused(flag_t *f, uint32_t n) {
    uint32_t i = 0, a = 0, seen = 0;
    __asm__ volatile("1: mov (%[f]), %[a]\n pause\n test %[a], %[a]\n jnz 2f\n inc %[i]\n mov "
                     "%[i], %[a]\n cmp %[n], %[a]\n jb 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [a] "+&r"(a), [i] "+&r"(i), [seen] "+&r"(seen)
                     : [f] "r"(f), [n] "r"(n)
                     : "memory", "cc");
    if (seen)
        CHECK(*f && i < n, "seen, but flag %u, %u of %u turns", *f, i, n);
    else
        CHECK(i == n && a == n, "%u of %u turns, a %u", i, n, a);
    return (int)seen;
}
// The counter is in the register at the site, but not at the head of the loop.
O2 static int reused2(flag_t *f, uint32_t n) {
    uint32_t i = 0, a = 0, seen = 0;
    __asm__ volatile(
        "1: lea 5(%[i]), %[a]\n pause\n sub %[i], %[a]\n cmp $5, %[a]\n jne 4f\n mov (%[f]), "
        "%[a]\n test %[a], %[a]\n jnz 2f\n inc %[i]\n cmp %[n], %[i]\n jb 1b\n jmp 3f\n"
        "4: mov $2, %[seen]\n jmp 3f\n2: mov $1, %[seen]\n3:"
        : [a] "+&r"(a), [i] "+&r"(i), [seen] "+&r"(seen)
        : [f] "r"(f), [n] "r"(n)
        : "memory", "cc");
    CHECK(seen != 2, "a is not i + 5: %u after %u turns", a, i);
    if (seen)
        CHECK(*f && i < n, "seen, but flag %u, %u of %u turns", *f, i, n);
    else
        CHECK(i == n, "%u of %u turns", i, n);
    return (int)seen;
}
// A stack slot holds the counter at the head and the flag at the site.
O2 static int reused3(flag_t *f, uint32_t n) {
    uint32_t i = 0, a = 0, seen = 0;
    volatile uint32_t slot = 0;
    __asm__ volatile("1: mov (%[f]), %[a]\n mov %[a], %[slot]\n xor %[a], %[a]\n pause\n mov "
                     "%[slot], %[a]\n test %[a], %[a]\n jnz 2f\n inc %[i]\n mov %[i], %[slot]\n "
                     "cmp %[n], %[slot]\n jb 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [a] "+&r"(a), [i] "+&r"(i), [seen] "+&r"(seen), [slot] "+m"(slot)
                     : [f] "r"(f), [n] "r"(n)
                     : "memory", "cc");
    if (seen)
        CHECK(*f && i < n, "seen, but flag %u, %u of %u turns", *f, i, n);
    else
        CHECK(i == n && slot == n, "%u of %u turns, slot %u", i, n, slot);
    return (int)seen;
}
// An 8-bit counter in a register; the other bits belong to something else.
O2 static int low8(flag_t *f, uint32_t n) {
    uint64_t i = 0x1122334455667780, seen = 0, before = i;
    uint8_t end = (uint8_t)(0x80 + n);
    if (end == 0x80) end++;
    __asm__ volatile("1: cmpl $0, (%[f])\n jne 2f\n pause\n inc %b[i]\n cmp %b[e], %b[i]\n jne "
                     "1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [i] "+&q"(i), [seen] "+&r"(seen)
                     : [f] "r"(f), [e] "q"(end)
                     : "memory", "cc");
    CHECK(i >> 8 == before >> 8, "the rest of the register is %lx", i >> 8);
    if (!seen) CHECK((uint8_t)i == end, "%x, expected %x", (uint8_t)i, end);
    return (int)seen;
}
O2 static int high8(flag_t *f, uint32_t n) {
    uint64_t i = 0x112233445566ff77, seen = 0, before = i;
    uint32_t end = (uint8_t)(0xff + n);
    if (end == 0xff) end = 5;
    __asm__ volatile("mov %[e], %%edx\n1: cmpl $0, (%[f])\n jne 2f\n pause\n inc %%ah\n cmp %%dl, "
                     "%%ah\n jne 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : "+a"(i), [seen] "+&r"(seen)
                     : [f] "r"(f), [e] "r"(end)
                     : "memory", "cc", "rdx");
    CHECK((i & ~0xff00ul) == (before & ~0xff00ul), "the rest of the register is %lx", i);
    if (!seen) CHECK((uint8_t)(i >> 8) == end, "%lx, expected %x", i, end);
    return (int)seen;
}
O2 static int low16(flag_t *f, uint32_t n) {
    uint64_t i = 0x112233445566ffe0, seen = 0, before = i, j = 0x11220000ffffffe0;
    uint16_t end = (uint16_t)(0xffe0 + n);
    if (end == 0xffe0) end++;
    __asm__ volatile("1: cmpl $0, (%[f])\n jne 2f\n pause\n inc %k[j]\n inc %w[i]\n cmp %w[e], "
                     "%w[i]\n jne 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [i] "+&r"(i), [seen] "+&r"(seen), [j] "+&r"(j)
                     : [f] "r"(f), [e] "r"(end)
                     : "memory", "cc");
    CHECK(i >> 16 == before >> 16, "the rest of the register is %lx", i >> 16);
    CHECK(i == before || j >> 32 == 0, "j is %lx", j);
    CHECK((uint16_t)i == (uint16_t)j, "i %lx, j %lx", i, j);
    if (!seen) CHECK((uint16_t)i == end, "%lx, expected %x", i, end);
    return (int)seen;
}
// A 128-bit counter with carry, and a counting vector register.
O2 static int carry(flag_t *f, uint32_t n) {
    uint64_t lo = -100ull, hi = 41, i = 0, seen = 0;
    __asm__ volatile("1: cmpl $0, (%[f])\n jne 2f\n pause\n add $1, %[lo]\n adc $0, %[hi]\n inc "
                     "%[i]\n cmp %[n], %[i]\n jb 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [i] "+&r"(i), [seen] "+&r"(seen), [lo] "+&r"(lo), [hi] "+&r"(hi)
                     : [f] "r"(f), [n] "r"((uint64_t)n)
                     : "memory", "cc");
    CHECK(lo == i - 100 && hi == 41 + (i >= 100), "i %lu, lo %lx, hi %lu", i, lo, hi);
    if (!seen) CHECK(i == n, "%lu of %u turns", i, n);
    return (int)seen;
}
O2 static int vector(flag_t *f, uint32_t n) {
    uint64_t i = 0, seen = 0, x = 0;
    __asm__ volatile("pxor %%xmm0, %%xmm0\n mov $1, %%eax\n movd %%eax, %%xmm1\n1: cmpl $0, "
                     "(%[f])\n jne 2f\n pause\n paddd %%xmm1, %%xmm0\n inc %[i]\n cmp %[n], %[i]\n "
                     "jb 1b\n jmp 3f\n2: mov $1, %[seen]\n3: movq %%xmm0, %[x]"
                     : [i] "+&r"(i), [seen] "+&r"(seen), [x] "+&r"(x)
                     : [f] "r"(f), [n] "r"((uint64_t)n)
                     : "memory", "cc", "rax", "xmm0", "xmm1");
    CHECK(x == i, "i %lu, xmm0 %lu", i, x);
    if (!seen) CHECK(i == n, "%lu of %u turns", i, n);
    return (int)seen;
}
// The loop instruction and its counter.
O2 static int loops(flag_t *f, uint32_t n) {
    uint64_t c = n, seen = 0;
    __asm__ volatile(
        "1: cmpl $0, (%[f])\n jne 2f\n pause\n loop 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
        : "+c"(c), [seen] "+&r"(seen)
        : [f] "r"(f)
        : "memory", "cc");
    if (!seen) CHECK(c == 0, "%lu left of %u", c, n);
    return (int)seen;
}
// A shift, and a rotation.
O2 static int shifts(flag_t *f, uint32_t n) {
    uint64_t i = 0, x = 1, y = 0x8000000000000001, seen = 0;
    __asm__ volatile("1: cmpl $0, (%[f])\n jne 2f\n pause\n rol $1, %[x]\n add %[y], %[y]\n adc "
                     "$0, %[y]\n inc %[i]\n cmp %[n], %[i]\n jb 1b\n jmp 3f\n2: mov $1, %[seen]\n3:"
                     : [i] "+&r"(i), [seen] "+&r"(seen), [x] "+&r"(x), [y] "+&r"(y)
                     : [f] "r"(f), [n] "r"((uint64_t)n)
                     : "memory", "cc");
    CHECK(x == 1ull << i % 64, "i %lu, x %lx", i, x);
    CHECK(y == (i % 64 ? 0x8000000000000001 << i % 64 | 0x8000000000000001 >> (64 - i % 64)
                       : 0x8000000000000001),
          "i %lu, y %lx", i, y);
    if (!seen) CHECK(i == n, "%lu of %u turns", i, n);
    return (int)seen;
}

#define K(f) {#f, f}
static const struct kind {
    const char *name;
    int (*f)(flag_t *, uint32_t);
} kinds[] = {
    K(up32_o2),    K(up32_o0),    K(ups_o2),     K(ups_o0),     K(up64_o2),   K(up64_o0),
    K(up3_o2),     K(up3_o0),     K(cross_o2),   K(cross_o0),   K(crosss_o2), K(crosss_o0),
    K(down32_o2),  K(down32_o0),  K(down64_o2),  K(down64_o0),  K(dcross_o2), K(dcross_o0),
    K(dwrap_o2),   K(dwrap_o0),   K(dneg_o2),    K(dneg_o0),    K(while_o2),  K(while_o0),
    K(dowhile_o2), K(dowhile_o0), K(several_o2), K(several_o0), K(sum_o2),    K(sum_o0),
    K(then_o2),    K(then_o0),    K(global_o2),  K(global_o0),  K(yield_o2),  K(then16_o2),
    K(then16_o0),  K(mod_o2),     K(mod_o0),     K(two_o2),     K(two_o0),    K(backoff_o2),
    K(backoff_o0), K(nested_o2),  K(nested_o0),  K(byte_o2),    K(byte_o0),   K(short_o2),
    K(short_o0),   K(pointer_o2), K(pointer_o0), K(rarely),     K(emergency), K(emergency_o0),
    K(reused),     K(reused2),    K(reused3),    K(low8),       K(high8),     K(low16),
    K(carry),      K(vector),     K(loops),      K(shifts),
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static int of_kind = -1;
static uint32_t spun_out[KINDS], seen_flag[KINDS];

// Threads in pairs: one side has the turn, the other waits for it.
static uint32_t turns[512][32];
static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    uint32_t *turn = turns[me / 2], parity = (uint32_t)me & 1;
    uint64_t seed = (uint64_t)t_env("SEED", 1) * 1000 + (uint64_t)me;
    static struct spin_cell flags[1024];
    volatile uint32_t *mine = &flags[me].word, *other = &flags[me ^ 1].word;
    uint32_t turns_done = 0;
    for (uint32_t r = 0;; r++) {
        while ((__atomic_load_n(turn, __ATOMIC_ACQUIRE) & 1) != parity) {
            unsigned k = of_kind >= 0
                             ? (unsigned)of_kind
                             : (r / 4 + (unsigned)me / 2 + (unsigned)t_env("SEED", 1)) % KINDS;
            uint32_t n = 1 + t_rand(&seed) % (t_rand(&seed) & 1 ? 300 : 60000);
            int seen = kinds[k].f(mine, n);
            __atomic_add_fetch(seen ? &seen_flag[k] : &spun_out[k], 1, __ATOMIC_RELAXED);
            uint32_t no = 0;
            while (!__atomic_load_n(mine, __ATOMIC_ACQUIRE)) {
                long e = futex(me, (void *)mine, FUTEX_WAIT_PRIVATE, no, NULL, NULL, 0);
                CHECK(e == 0 || e == -EAGAIN, "futex wait: %ld", e);
            }
            __atomic_store_n(mine, 0, __ATOMIC_SEQ_CST);
        }
        turns_done++;
        for (unsigned n = t_rand(&seed) % 3000; n; n--) __asm__ volatile("");
        int over = me < 2 && spin_time_over();
        if (over) __atomic_store_n(&spin_last, 0, __ATOMIC_SEQ_CST);
        // the even thread goes first, so it has already ended
        int last = !__atomic_load_n(&spin_last, __ATOMIC_SEQ_CST) && parity;
        static uint32_t ended[512];
        if (last) ended[me / 2] = 1;
        __atomic_add_fetch(turn, 1, __ATOMIC_ACQ_REL);
        __atomic_store_n(other, 1, __ATOMIC_SEQ_CST);
        futex(me + 1, (void *)other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        if (last || ended[me / 2]) return NULL;
    }
}

int main(int argc, char **argv) {
    t_watchdog();
    if (argc > 1) of_kind = atoi(argv[1]);
    int threads = t_threads() & ~1;
    if (threads > 64) threads = 64;
    spin_begin(800);
    PHASE("pairs");
    t_run(threads, work);
    if (getenv("SHOW"))
        for (int k = 0; k < KINDS; k++)
            printf("%2d %-12s seen %6u spun out %6u\n", k, kinds[k].name, seen_flag[k],
                   spun_out[k]);
    return t_ok("spin_counted");
}
