/* SPDX-License-Identifier: MIT
 *
 * Loops that work, and delays.
 */
#include "loop.h"

static unsigned char data[4096], copy[4096];
static long numbers[512];
static struct item {
    struct item *next;
    long v;
} items[256];
static volatile int mode = 3, few = 12, many = MANY;
static _Alignas(64) volatile int flag; /* never set */
static _Alignas(64) volatile int own;
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
} /* other threads may observe the heartbeat */
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
    text[0] = 'T'; /* no constant that the compiler could fold */
}

static unsigned long table[65536];
LOOP(scatter) {
    unsigned long x = 88172645463325252ul;
    for (int i = 0; i < 100000; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        table[x >> 48] += x;
    }
    return table[1];
}

/* --- the table -------------------------------------------------------------------------------- */
#define WORK(f) {#f, N, f, 0}
#define CERTAIN(f) {#f, N | W, f, 0}
const struct loop loops_work[] = {
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
    CERTAIN(scatter),
};
const unsigned loops_work_count = sizeof loops_work / sizeof *loops_work;
