/* SPDX-License-Identifier: MIT */
// Loops that wait for another thread, and loops that work but look similar from outside.
//
//     loops list works|spins
//     loops NAME [--seconds S] [--hold MS] [--stay]
//
// Runs the loop for S seconds and prints a line of JSON. `progress` counts completed loops, or
// acquisitions. `cpu_seconds` is the CPU time of the process; `waiting_seconds` that of the thread
// that waits in the loop (0 for loops that work). The process has the loop's name, as ps shows it.
// With --stay, it sleeps until SIGTERM after its report, so that its entries in other programs'
// statistics can be examined.
//
// For loops that spin, one thread computes for --hold ms [5], longer than a time slice, while
// another waits for it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAUSE() __builtin_ia32_pause()
// Unoptimized code: every variable is on the stack.
#define PLAIN __attribute__((noinline, optimize("O0")))

// Has a cache line of its own, at an address that the assembly below can name.
static _Alignas(128) volatile uint64_t progress;

static double clock_seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- loops that work -----------------------------------------------------------------------------
//
// Each function below works for some milliseconds and returns, or never returns and counts in
// `progress` itself.

static void register_counter(void) {
    uint64_t left = 20000000;
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(left) : : "cc");
}

// No register changes, and the loop never ends.
static void memory_counter(void) {
    __asm__ volatile("1: addq $1, %0\n jmp 1b" : "+m"(progress) : : "cc");
}

static void locked_counter(void) {
    __asm__ volatile("1: lock incq %0\n jmp 1b" : "+m"(progress) : : "cc");
}

static void memory_countdown(void) {
    static volatile uint64_t left;
    left = 5000000;
    __asm__ volatile("1: decq %0\n jnz 1b" : "+m"(left) : : "cc");
}

PLAIN static void stack_counter(void) {
    volatile long i;
    for (i = 0; i < 3000000; i++);
}

// The registers take the same values again; the progress is in memory.
static void chase(void) {
    static struct node {
        struct node *next;
        uint64_t visits;
    } ring[64];
    for (int i = 0; i < 64; i++)
        ring[i].next = &ring[(i * 5 + 1) % 64]; // 5 and 1: a single cycle through all nodes
    struct node *first = ring;
    __asm__ volatile("1: incq 8(%0)\n mov (%0), %0\n cmpq $100000, 8(%0)\n jb 1b"
                     : "+r"(first)
                     :
                     : "cc", "memory");
    for (int i = 0; i < 64; i++) ring[i].visits = 0;
}

// The registers take the same values in each pass.
static void hash(void) {
    static unsigned char buffer[4096];
    static volatile uint64_t sum;
    for (volatile int pass = 0; pass < 1000; pass++) {
        uint64_t h = 14695981039346656037u;
        for (size_t i = 0; i < sizeof buffer; i++) h = (h ^ buffer[i]) * 1099511628211u;
        sum += h;
    }
}

static void store_string(void) {
    static char buffer[65536];
    for (volatile int pass = 0; pass < 100; pass++) {
        void *to = buffer;
        size_t count = sizeof buffer;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
    }
}

static void wait_for_ticks(void) {
    for (int i = 0; i < 50; i++)
        for (uint64_t begun = __builtin_ia32_rdtsc(); __builtin_ia32_rdtsc() - begun < 100000;)
            PAUSE();
}

static void wait_for_clock(void) {
    for (double begun = clock_seconds(CLOCK_MONOTONIC);
         clock_seconds(CLOCK_MONOTONIC) - begun < 5e-3;)
        PAUSE();
}

// A lock-free counter without contention: each attempt succeeds, after a delay.
static void backoff(void) {
    static atomic_ulong count;
    for (int i = 0; i < 100; i++) {
        for (int delay = 1; delay <= 1024; delay *= 2) {
            unsigned long seen = atomic_load_explicit(&count, memory_order_relaxed);
            atomic_compare_exchange_strong(&count, &seen, seen + 1);
            for (int j = 0; j < delay; j++) PAUSE();
        }
    }
}

static void divide(void) {
    static volatile uint64_t quotient, left;
    left = 1000000;
    __asm__ volatile("1: xor %%edx, %%edx\n mov $1000003, %%eax\n mov $7, %%ecx\n div %%rcx\n mov "
                     "%%rax, %0\n decq %1\n jnz 1b"
                     : "=m"(quotient), "+m"(left)
                     :
                     : "rax", "rcx", "rdx", "cc");
}

// Only a vector register changes.
static void vector(void) {
    double sum = 0, one = 1, end = 5e6;
    __asm__ volatile("1: addsd %1, %0\n ucomisd %0, %2\n ja 1b"
                     : "+x"(sum)
                     : "x"(one), "x"(end)
                     : "cc");
}

static void system_calls(void) {
    for (int i = 0; i < 20000; i++) syscall(SYS_getppid);
}

// --- loops that wait -----------------------------------------------------------------------------
//
// The holder calls `hold`, computes, then calls `let_go`. The waiter calls `wait`.

static _Alignas(128) atomic_int word;
static _Alignas(128) volatile int plain_word;

static void word_hold(void) { atomic_store(&word, 1); }
static void word_let_go(void) { atomic_store_explicit(&word, 0, memory_order_release); }
static void plain_hold(void) { plain_word = 1; }
static void plain_let_go(void) { plain_word = 0; }

static void flag_pause_wait(void) {
    while (atomic_load_explicit(&word, memory_order_acquire)) PAUSE();
}

static void flag_wait(void) { while (atomic_load_explicit(&word, memory_order_acquire)); }

PLAIN static void flag_plain_wait(void) {
    int seen = plain_word;
    while (seen != 0) seen = plain_word;
}

__attribute__((noinline)) static int is_held(const volatile int *which) { return *which != 0; }

static void flag_call_wait(void) {
    while (is_held(&plain_word)) PAUSE();
}

static void ttas_pause_wait(void) {
    do {
        while (atomic_load_explicit(&word, memory_order_relaxed)) PAUSE();
    } while (atomic_exchange_explicit(&word, 1, memory_order_acquire));
    word_let_go();
}

static void ttas_wait(void) {
    do {
        while (atomic_load_explicit(&word, memory_order_relaxed));
    } while (atomic_exchange_explicit(&word, 1, memory_order_acquire));
    word_let_go();
}

static void ttas_backoff_wait(void) {
    for (int delay = 1;; delay = delay < 1024 ? delay * 2 : delay) {
        if (!atomic_load_explicit(&word, memory_order_relaxed) &&
            !atomic_exchange_explicit(&word, 1, memory_order_acquire))
            break;
        for (int i = 0; i < delay; i++) PAUSE();
    }
    word_let_go();
}

static void exchange_wait(void) {
    while (atomic_exchange_explicit(&word, 1, memory_order_acquire));
    word_let_go();
}

static void compare_exchange_wait(void) {
    int expected = 0;
    while (!atomic_compare_exchange_weak_explicit(&word, &expected, 1, memory_order_acquire,
                                                  memory_order_relaxed))
        expected = 0;
    word_let_go();
}

// Keep waiting, however often the count runs out.
static void counted_wait(void) {
    for (;;) {
        for (long i = 1000000; i > 0; i--) {
            if (!atomic_load_explicit(&word, memory_order_acquire)) return;
            PAUSE();
        }
        sched_yield();
    }
}

static struct {
    _Alignas(128) atomic_uint next;
    _Alignas(128) atomic_uint serving;
} ticket;

static void ticket_lock(void) {
    unsigned mine = atomic_fetch_add(&ticket.next, 1);
    while (atomic_load_explicit(&ticket.serving, memory_order_acquire) != mine) PAUSE();
}

static void ticket_unlock(void) {
    atomic_fetch_add_explicit(&ticket.serving, 1, memory_order_release);
}

static void ticket_wait(void) {
    ticket_lock();
    ticket_unlock();
}

struct queued {
    _Alignas(128) _Atomic(struct queued *) next;
    atomic_int waits;
};
static _Atomic(struct queued *) tail;
static struct queued holder_node, waiter_node;

static void mcs_lock(struct queued *node) {
    atomic_store(&node->next, NULL);
    atomic_store(&node->waits, 1);
    struct queued *before = atomic_exchange(&tail, node);
    if (before) {
        atomic_store(&before->next, node);
        while (atomic_load_explicit(&node->waits, memory_order_acquire)) PAUSE();
    }
}

static void mcs_unlock(struct queued *node) {
    struct queued *mine = node, *next = atomic_load(&node->next);
    if (!next) {
        if (atomic_compare_exchange_strong(&tail, &mine, NULL)) return;
        while (!(next = atomic_load(&node->next))) PAUSE();
    }
    atomic_store_explicit(&next->waits, 0, memory_order_release);
}

static void mcs_hold(void) { mcs_lock(&holder_node); }
static void mcs_let_go(void) { mcs_unlock(&holder_node); }

static void mcs_wait(void) {
    mcs_lock(&waiter_node);
    mcs_unlock(&waiter_node);
}

// -------------------------------------------------------------------------------------------------

static const struct loop {
    const char *name; // at most 15 characters, as for process names
    void (*work)(void);
    void (*hold)(void), (*wait)(void), (*let_go)(void);
} loops[] = {
    {.name = "register-count", .work = register_counter},
    {.name = "memory-count", .work = memory_counter},
    {.name = "locked-count", .work = locked_counter},
    {.name = "memory-down", .work = memory_countdown},
    {.name = "stack-count", .work = stack_counter},
    {.name = "chase", .work = chase},
    {.name = "hash", .work = hash},
    {.name = "store-string", .work = store_string},
    {.name = "wait-ticks", .work = wait_for_ticks},
    {.name = "wait-clock", .work = wait_for_clock},
    {.name = "backoff", .work = backoff},
    {.name = "divide", .work = divide},
    {.name = "vector", .work = vector},
    {.name = "system-calls", .work = system_calls},
    {.name = "flag-pause", .hold = word_hold, .wait = flag_pause_wait, .let_go = word_let_go},
    {.name = "flag", .hold = word_hold, .wait = flag_wait, .let_go = word_let_go},
    {.name = "flag-plain", .hold = plain_hold, .wait = flag_plain_wait, .let_go = plain_let_go},
    {.name = "flag-call", .hold = plain_hold, .wait = flag_call_wait, .let_go = plain_let_go},
    {.name = "ttas-pause", .hold = word_hold, .wait = ttas_pause_wait, .let_go = word_let_go},
    {.name = "ttas", .hold = word_hold, .wait = ttas_wait, .let_go = word_let_go},
    {.name = "ttas-backoff", .hold = word_hold, .wait = ttas_backoff_wait, .let_go = word_let_go},
    {.name = "exchange", .hold = word_hold, .wait = exchange_wait, .let_go = word_let_go},
    {.name = "cmpxchg", .hold = word_hold, .wait = compare_exchange_wait, .let_go = word_let_go},
    {.name = "counted", .hold = word_hold, .wait = counted_wait, .let_go = word_let_go},
    {.name = "ticket", .hold = ticket_lock, .wait = ticket_wait, .let_go = ticket_unlock},
    {.name = "mcs", .hold = mcs_hold, .wait = mcs_wait, .let_go = mcs_let_go},
};

static const struct loop *loop;
static double hold_seconds = 5e-3;
static sem_t begun, done;

__attribute__((noreturn)) static void *work(void *argument) {
    (void)argument;
    for (;;) {
        loop->work();
        progress++;
    }
}

__attribute__((noreturn)) static void *hold(void *argument) {
    static volatile uint64_t x;
    (void)argument;
    for (;;) {
        loop->hold();
        sem_post(&begun);
        for (double end = clock_seconds(CLOCK_THREAD_CPUTIME_ID) + hold_seconds;
             clock_seconds(CLOCK_THREAD_CPUTIME_ID) < end;)
            for (int i = 0; i < 10000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
        loop->let_go();
        while (sem_wait(&done) != 0);
        progress++;
    }
}

__attribute__((noreturn)) static void *wait_for_it(void *argument) {
    (void)argument;
    for (;;) {
        while (sem_wait(&begun) != 0);
        loop->wait();
        sem_post(&done);
    }
}

// Signal handler: only a signal can leave a loop that never ends.
static void rest(int signal_number) {
    (void)signal_number;
    for (;;) pause();
}

__attribute__((noreturn)) static void usage(void) {
    fputs("usage: loops NAME [--seconds S] [--hold MS] [--stay] | loops list works|spins\n",
          stderr);
    exit(2);
}

static double number(const char *text) {
    char *end;
    double value = text ? strtod(text, &end) : -1;
    if (!text || end == text || *end || !(value > 0 && value < 1e6)) usage();
    return value;
}

static pthread_t thread_of(void *(*function)(void *)) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, function, NULL);
    if (error) {
        fprintf(stderr, "loops: %s\n", strerror(error));
        exit(1);
    }
    return thread;
}

static double cpu_seconds(pthread_t thread) {
    clockid_t clock;
    return pthread_getcpuclockid(thread, &clock) == 0 ? clock_seconds(clock) : 0;
}

int main(int argc, char **argv) {
    double seconds = 3;
    int stays = 0;
    if (argc == 3 && !strcmp(argv[1], "list")) {
        int spins = !strcmp(argv[2], "spins");
        if (!spins && strcmp(argv[2], "works")) usage();
        for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
            if ((loops[i].work == NULL) == spins) puts(loops[i].name);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof loops / sizeof *loops; i++)
        if (!strcmp(argv[1], loops[i].name)) loop = &loops[i];
    if (!loop) usage();
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--stay"))
            stays = 1;
        else if (!strcmp(argv[i], "--seconds"))
            seconds = number(argv[++i]);
        else if (!strcmp(argv[i], "--hold"))
            hold_seconds = number(argv[++i]) * 1e-3;
        else
            usage();
    }
    prctl(PR_SET_NAME, loop->name);
    signal(SIGUSR1, rest);
    sem_init(&begun, 0, 0);
    sem_init(&done, 0, 0);

    pthread_t waiter = 0, worker;
    if (loop->work) {
        worker = thread_of(work);
    } else {
        waiter = thread_of(wait_for_it);
        worker = thread_of(hold);
    }
    double start = clock_seconds(CLOCK_MONOTONIC);
    for (double left = seconds; left > 0; left = start + seconds - clock_seconds(CLOCK_MONOTONIC)) {
        struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&t, NULL);
    }
    uint64_t made = progress;
    printf("{\"loop\": \"%s\", \"kind\": \"%s\", \"seconds\": %.3f, \"progress\": %llu, "
           "\"cpu_seconds\": %.3f, \"waiting_seconds\": %.3f}\n",
           loop->name, loop->work ? "works" : "spins", clock_seconds(CLOCK_MONOTONIC) - start,
           (unsigned long long)made, clock_seconds(CLOCK_PROCESS_CPUTIME_ID),
           waiter ? cpu_seconds(waiter) : 0);
    fflush(stdout);
    if (stays) {
        pthread_kill(worker, SIGUSR1);
        if (waiter) pthread_kill(waiter, SIGUSR1);
        for (;;) pause();
    }
    return 0;
}
