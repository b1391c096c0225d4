// build: -fno-builtin
// build@O0: -O0 -fno-builtin
// Loops that wait forever, and loops that work but look alike. sched_loops NAME: run one thread in
// that loop until standard input ends. Prints the thread's id and, in hexadecimal, the range of the
// code that waits. sched_loops list: print the names, as `waits NAME` or `works NAME`.
#define _GNU_SOURCE
#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A section of code in which a thread only ever waits; the linker defines symbols for its ends. */
#define WAIT(name) static __attribute__((noinline, section("waiting"))) void name(void)
#define WORK(name) static __attribute__((noinline)) void name(void)
#define pause() __builtin_ia32_pause()
extern const char __start_waiting[], __stop_waiting[];

static _Alignas(64) volatile int held = 1; /* a lock that is never released */
static _Alignas(64) volatile int flag;     /* a flag that is never set */
static _Alignas(64) volatile int flag2;
static _Alignas(64) volatile atomic_int aflag;
static _Alignas(64) struct {
    volatile unsigned next, serving;
} ticket = {7, 3};
static _Alignas(64) volatile unsigned long bits = 4;
struct node {
    struct node *volatile next;
    volatile int locked;
};
static _Alignas(64) struct node owner;
static _Alignas(64) struct node *volatile tail = &owner;
static _Alignas(64) struct {
    volatile int go;
    char pad[60];
} slots[8];
static struct place {
    int unused;
    volatile int *ready;
} place = {0, &flag};
static pthread_spinlock_t spinlock;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread volatile int tls_word = 3;

/* --- loops that wait -------------------------------------------------------------------------- */
WAIT(flag_plain) {
    while (!flag) {}
}
WAIT(flag_pause) {
    while (!flag) pause();
}
WAIT(ttas) {
    do {
        while (held) pause();
    } while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE));
}
WAIT(ttas_plain) {
    do {
        while (held) {}
    } while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE));
}
WAIT(tas) {
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) {}
}
WAIT(tas_pause) {
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE)) pause();
}
WAIT(cas) {
    int e;
    do e = 0;
    while (!__atomic_compare_exchange_n(&held, &e, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}
WAIT(cas_pause) {
    int e = 0;
    while (!__atomic_compare_exchange_n(&held, &e, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        e = 0;
        pause();
    }
}
WAIT(ticket_lock) {
    unsigned my = ticket.next;
    while (ticket.serving != my) pause();
}
WAIT(bit_lock) {
    while (__atomic_fetch_or(&bits, 4, __ATOMIC_ACQUIRE) & 4) pause();
}
WAIT(mcs) {
    struct node own = {NULL, 1}, *before = __atomic_exchange_n(&tail, &own, __ATOMIC_ACQ_REL);
    before->next = &own;
    while (own.locked) pause();
}
WAIT(clh) {
    struct node *before = tail;
    before->locked = 1;
    while (before->locked) {}
}
WAIT(two_flags) {
    while (!flag && !flag2) {}
}
WAIT(round_robin) {
    for (unsigned i = 0; !slots[i].go; i = (i + 1) % 4) {}
}
WAIT(scan) {
    for (int sum = 0; !sum;)
        for (int i = 0; i < 4; i++) sum += slots[i].go;
}
WAIT(through_pointer) {
    while (!*place.ready) pause();
}
static __attribute__((noinline, section("waiting"))) int load_it(const volatile atomic_int *p) {
    return atomic_load_explicit(p, memory_order_acquire);
}
WAIT(call) {
    while (!load_it(&aflag)) {}
}
WAIT(call_pause) {
    while (!load_it(&aflag)) pause();
}
WAIT(plt) {
    while (!toascii(flag)) {}
}
WAIT(posix_spin) { pthread_spin_lock(&spinlock); }
WAIT(posix_spin_try) {
    while (pthread_spin_trylock(&spinlock)) pause();
}
WAIT(posix_mutex_try) {
    while (pthread_mutex_trylock(&mutex)) {}
}
WAIT(tls) {
    while (flag != tls_word) pause();
}
WAIT(state) {
    for (;;) switch (flag) {
        case 0: pause(); break;
        case 1: return;
        case 2: abort();
        case 3: exit(3);
        case 4: exit(4);
        default: exit(5);
        }
}
WAIT(sequence) {
    unsigned s;
    do
        while ((s = ticket.next) & 1) pause();
    while (s != ticket.serving);
}

/* --- loops that work -------------------------------------------------------------------------- */
enum { RING = 64, CELLS = 4096 };
static volatile long counter;
static long plain_counter;
static atomic_long atomic_counter;
static unsigned char buffer[1 << 16], copy[1 << 16];
static double numbers[1024];
static volatile double total;
static volatile unsigned char cell_a = 1, cell_b = 2;
static struct {
    volatile unsigned head, tail;
    volatile int item[RING];
} ring;
static struct chain {
    struct chain *next;
    long value;
} chain[CELLS];
static uint32_t table[CELLS];
static volatile bool stopped;

WORK(count) {
    for (;;) counter++;
}
WORK(count_until) {
    while (!stopped) counter++;
}
WORK(count_asm) { __asm__ volatile("1: addq $1, %0; jmp 1b" : "+m"(plain_counter)); }
WORK(count_atomic) {
    while (!flag) atomic_fetch_add(&atomic_counter, 1);
}
WORK(count_cas) {
    while (!flag) {
        long o = counter;
        __atomic_compare_exchange_n(&counter, &o, o + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}
WORK(count_register) {
    for (unsigned long n = 0; !flag || n; n++) __asm__ volatile("");
}
WORK(count_waits) {
    for (unsigned long n = 0; !flag; n++) {
        counter = (long)n;
        pause();
    }
}
WORK(fill_rep) {
    for (;;) {
        void *to = buffer;
        size_t n = sizeof buffer;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
    }
}
WORK(fill_same) {
    while (!stopped)
        for (volatile unsigned i = 0; i < 16; i++) ((volatile unsigned char *)buffer)[i] = 0;
}
WORK(fill_bytes) {
    for (;; counter++)
        for (unsigned i = 0; i < 4096; i++)
            ((volatile unsigned char *)buffer)[i] = (unsigned char)counter;
}
WORK(copy_memory) {
    for (;; counter++) {
        buffer[counter % 4096] ^= 1;
        memcpy(copy, buffer, sizeof copy);
    }
}
WORK(ring_alone) {
    for (;;) {
        while (ring.head - ring.tail < RING) {
            ring.item[ring.head % RING] = (int)ring.head;
            ring.head++;
        }
        while (ring.head != ring.tail) {
            counter += ring.item[ring.tail % RING];
            ring.tail++;
        }
    }
}
WORK(swap) {
    for (;;) {
        unsigned char c = cell_a;
        cell_a = cell_b;
        cell_b = c;
    }
}
WORK(toggle) {
    for (;;) {
        cell_a = 0;
        cell_a = 1;
    }
}
WORK(delay) {
    for (;; counter++)
        for (volatile int i = 0; i < 1000; i++) {}
}
WORK(delay_pause) {
    for (;; counter++)
        for (int i = 0; i < 200; i++) pause();
}
WORK(wait_a_while) {
    for (;; counter++)
        for (int i = 0; i < 500 && !flag; i++) pause();
}
WORK(wait_a_while_memory) {
    for (;; plain_counter++)
        for (counter = 0; counter < 100000 && !flag; counter++) {}
}
WORK(backoff) {
    for (;; counter++)
        for (unsigned d = 1; d < 256 && held; d *= 2)
            for (volatile unsigned i = 0; i < d; i++) pause();
}
WORK(deadline) {
    for (;; counter++)
        for (uint64_t end = __builtin_ia32_rdtsc() + 100000; __builtin_ia32_rdtsc() < end && !flag;)
            pause();
}
WORK(deadline_clock) {
    for (;; counter++)
        for (struct timespec a, b = {0, 0}; clock_gettime(CLOCK_MONOTONIC, &a),
                                b = b.tv_sec ? b : a,
                                (a.tv_nsec - b.tv_nsec) / 100000 == 0 && !flag;) {}
}
WORK(yield) {
    while (!flag) sched_yield();
}
WORK(ask) {
    while (!flag) counter += getppid();
}
WORK(random_numbers) {
    for (uint64_t x = 1;;) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        counter = (long)x;
    }
}
WORK(random_memory) {
    static volatile uint32_t x = 1;
    while (!flag) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
}
WORK(walk) {
    for (;; counter++)
        for (struct chain *c = chain; c; c = c->next) total += (double)c->value;
}
WORK(probe) {
    for (uint32_t key = 1;; key = key * 48271 % 0x7fffffff) {
        uint32_t i = key % CELLS;
        while (table[i] && table[i] != key && table[i] % 16) i = (i + 1) % CELLS;
        table[i] = key;
    }
}
WORK(sum) {
    for (;;) {
        double s = 0;
        for (int i = 0; i < 1024; i++) s += numbers[i];
        total += s;
    }
}
WORK(uncontended) {
    for (;;) {
        while (__atomic_exchange_n(&flag2, 1, __ATOMIC_ACQUIRE)) pause();
        plain_counter++;
        __atomic_store_n(&flag2, 0, __ATOMIC_RELEASE);
    }
}
static __attribute__((noinline)) unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
WORK(recursion) {
    for (;;) counter += fib(15);
}
WORK(drain) {
    for (unsigned todo = 0; !stopped;) {
        if (todo) {
            todo--;
            counter += slots[todo % 8].go;
        } else {
            todo = 3000;
            plain_counter++;
        }
    }
}

/* --- threads that pass a token: they wait and work in turn ------------------------------------ */
static _Alignas(64) volatile unsigned token;
static __attribute__((noinline, section("waiting"))) void wait_for_token(unsigned mine) {
    while ((token & 1) != mine) pause();
}
static __attribute__((noinline)) void turns(unsigned mine) {
    for (;;) {
        wait_for_token(mine);
        for (volatile int i = 0; i < 200; i++) {}
        plain_counter++;
        token = token + 1;
    }
}
static void *other_turn(void *unused) {
    (void)unused;
    turns(1);
    return NULL;
}
WORK(pass_on) {
    pthread_t other;
    pthread_create(&other, NULL, other_turn, NULL);
    turns(0);
}

/* ---------------------------------------------------------------------------------------------- */
static const struct loop {
    const char *name;
    void (*run)(void);
    bool waits;
} loops[] = {
#define WAITS(name) {#name, name, true}
#define WORKS(name) {#name, name, false}
    WAITS(flag_plain),
    WAITS(flag_pause),
    WAITS(ttas),
    WAITS(ttas_plain),
    WAITS(tas),
    WAITS(tas_pause),
    WAITS(cas),
    WAITS(cas_pause),
    WAITS(ticket_lock),
    WAITS(bit_lock),
    WAITS(mcs),
    WAITS(clh),
    WAITS(two_flags),
    WAITS(round_robin),
    WAITS(scan),
    WAITS(through_pointer),
    WAITS(call),
    WAITS(call_pause),
    WAITS(plt),
    WAITS(posix_spin),
    WAITS(posix_spin_try),
    WAITS(posix_mutex_try),
    WAITS(tls),
    WAITS(state),
    WAITS(sequence),
    WORKS(count),
    WORKS(count_until),
    WORKS(count_asm),
    WORKS(count_atomic),
    WORKS(count_cas),
    WORKS(count_register),
    WORKS(count_waits),
    WORKS(fill_rep),
    WORKS(fill_same),
    WORKS(fill_bytes),
    WORKS(copy_memory),
    WORKS(ring_alone),
    WORKS(swap),
    WORKS(toggle),
    WORKS(delay),
    WORKS(delay_pause),
    WORKS(wait_a_while),
    WORKS(wait_a_while_memory),
    WORKS(backoff),
    WORKS(deadline),
    WORKS(deadline_clock),
    WORKS(yield),
    WORKS(ask),
    WORKS(random_numbers),
    WORKS(random_memory),
    WORKS(walk),
    WORKS(probe),
    WORKS(sum),
    WORKS(uncontended),
    WORKS(recursion),
    WORKS(drain),
    WORKS(pass_on),
};

static void *thread(void *l) {
    printf("%ld %lx %lx\n", (long)syscall(SYS_gettid), (unsigned long)__start_waiting,
           (unsigned long)__stop_waiting);
    fflush(stdout);
    ((const struct loop *)l)->run();
    return NULL;
}

int main(int argc, char **argv) {
    const struct loop *end = loops + sizeof loops / sizeof *loops;
    const char *name = argc > 1 ? argv[1] : "";
    char c;
    pthread_t t;
    for (int i = 0; i + 1 < CELLS; i++) chain[i] = (struct chain){&chain[i + 1], i};
    pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&spinlock);
    pthread_mutex_lock(&mutex);
    for (const struct loop *l = loops; l < end; l++) {
        if (!strcmp(name, "list")) printf("%s %s\n", l->waits ? "waits" : "works", l->name);
        if (strcmp(name, l->name)) continue;
        if (pthread_create(&t, NULL, thread, (void *)l)) return 1;
        while (read(0, &c, 1) > 0) {}
        _exit(0);
    }
    return strcmp(name, "list") ? 2 : 0;
}
