// Common part of all conformance programs: precise failure reports, THREADS, clocks, a seeded
// generator, and a watchdog that uses neither a thread nor a signal of the program under test.
#ifndef PTHREAD_TEST_H
#define PTHREAD_TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wregister" // t_raw needs registers by name
#endif

static long t_seed_value;
// Report a failure and exit. Writes one line at once, without stdio's lock, which a failing thread
// may hold.
static inline void t_fail(const char *file, int line, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), noreturn));
static inline void t_fail(const char *file, int line, const char *what, const char *fmt, ...) {
    char text[512];
    int n = snprintf(text, 300, "FAIL %s:%d: %.200s",
                     strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what);
    if (n > 299) n = 299;
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(text + n, sizeof text - 1 - (size_t)n, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof text - 32) n = (int)sizeof text - 32;
    if (t_seed_value) n += snprintf(text + n, 31, " (SEED=%ld)", t_seed_value);
    text[n++] = '\n';
    if (write(1, text, (size_t)n) < 0) _exit(2);
    _exit(1);
}
#define FAIL(...) t_fail(__FILE__, __LINE__, "", __VA_ARGS__)
#define CHECK(cond, ...) \
    do { \
        if (!(cond)) t_fail(__FILE__, __LINE__, #cond, ": " __VA_ARGS__); \
    } while (0)
#define EQ(got, want) \
    do { \
        long long g_ = (long long)(got), w_ = (long long)(want); \
        if (g_ != w_) \
            t_fail(__FILE__, __LINE__, "", "%s = %lld, expected %s = %lld", #got, g_, #want, w_); \
    } while (0)
// Fail unless a pthread call returns 0.
#define OK(call) \
    do { \
        int r_ = (call); \
        if (r_) \
            t_fail(__FILE__, __LINE__, "", "%s = %d (%s), expected 0", #call, r_, strerror(r_)); \
    } while (0)
// Fail if a system call returns -1.
#define SYS(call) \
    do { \
        if ((call) == -1) t_fail(__FILE__, __LINE__, "", "%s: %s", #call, strerror(errno)); \
    } while (0)
// Fail unless a call returns -1 with this errno.
#define ERR(call, want) \
    do { \
        errno = 0; \
        long r_ = (long)(call); \
        int e_ = errno; \
        if (r_ != -1 || e_ != (want)) \
            t_fail(__FILE__, __LINE__, "", "%s = %ld, errno %d (%s), expected -1, errno %d (%s)", \
                   #call, r_, e_, strerror(e_), (want), strerror(want)); \
    } while (0)

// Return THREADS from the environment, or twice the CPUs: the lowest ratio with contention.
static inline int t_threads(void) {
    const char *s = getenv("THREADS");
    int n = s ? atoi(s) : 0;
    if (n <= 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof set, &set) ? 4 : 2 * CPU_COUNT(&set);
    }
    return n < 2 ? 2 : n > 1024 ? 1024 : n;
}
// Divide a fixed amount of work, so that a test takes about the same time with any number of
// threads.
static inline int t_share(int total, int threads) {
    return total / threads > 1 ? total / threads : 1;
}
static inline long t_env(const char *name, long otherwise) {
    const char *s = getenv(name);
    return s && *s ? strtol(s, NULL, 0) : otherwise;
}

static inline int64_t t_now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline struct timespec t_ts(int64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return t;
}
static inline struct timespec t_after_ms(clockid_t clock, int ms) {
    return t_ts(t_now(clock) + (int64_t)ms * 1000000);
}
static inline void t_sleep_us(int us) {
    struct timespec t = t_ts((int64_t)us * 1000);
    while (nanosleep(&t, &t) && errno == EINTR) {}
}
static inline void t_sleep_ms(int ms) { t_sleep_us(ms * 1000); }

static inline uint32_t t_rand(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// Return the seed of a stress program: SEED or a new one. Each failure prints it.
static inline uint64_t t_seed(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t_seed_value = t_env("SEED", t.tv_nsec / 7 % 1000000 + 1);
    if (!getenv("SEED")) fprintf(stderr, "SEED=%ld\n", t_seed_value); // a hang prints nothing more
    return (uint64_t)t_seed_value;
}

static inline pthread_t t_spawn(void *(*fn)(void *), void *arg) {
    pthread_t t;
    int r = pthread_create(&t, NULL, fn, arg);
    if (r) FAIL("pthread_create: %s", strerror(r));
    return t;
}
static inline void *t_join(pthread_t t) {
    void *v = NULL;
    int r = pthread_join(t, &v);
    if (r) FAIL("pthread_join: %s", strerror(r));
    return v;
}
// Run fn(0) .. fn(n-1) in n threads and join them.
static inline void t_run(int n, void *(*fn)(void *)) {
    pthread_t *t = (pthread_t *)calloc(n > 0 ? (size_t)n : 1, sizeof *t);
    for (int i = 0; i < n; i++) t[i] = t_spawn(fn, (void *)(intptr_t)i);
    for (int i = 0; i < n; i++) t_join(t[i]);
    free(t);
}
// Return a thread's state letter in /proc ('S': sleeps in the kernel); 0 if it has exited.
static inline char t_state(pid_t tid) {
    char path[64], buf[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    fclose(f);
    buf[n] = 0;
    char *p = strrchr(buf, ')');
    return p ? p[2] : 0;
}

static inline long t_raw(long nr, long a, long b, long c, long d, long e) {
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return ret;
}

// Return a function that issues a system call. Its code is generated at run time, so the runtime
// does not redirect it.
typedef long t_syscall(long nr, long a, long b, long c, long d);
static inline t_syscall *t_hidden_syscall(void) {
    static const unsigned char code[] = {
        0x48, 0x89, 0xf8, // mov %rdi, %rax
        0x48, 0x89, 0xf7, // mov %rsi, %rdi
        0x48, 0x89, 0xd6, // mov %rdx, %rsi
        0x48, 0x89, 0xca, // mov %rcx, %rdx
        0x4d, 0x89, 0xc2, // mov %r8, %r10
        0x0f, 0x05, 0xc3, // syscall; ret
    };
    t_syscall *call;
    void *p =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED, "mmap");
    memcpy(p, code, sizeof code);
    memcpy(&call, &p, sizeof call);
    return call;
}

static const char *volatile *t_phase_word;
// Set the phase for the watchdog's message. Only literals work: the watchdog is another process.
#define PHASE(text) \
    do { \
        if (t_phase_word) *t_phase_word = "" text; \
    } while (0)
// Start the watchdog: an orphan made by a raw fork watches the program through a pidfd and kills it
// after WATCHDOG seconds (default 60; 0: none). The fork is raw, so that neither libc nor a
// preloaded runtime is involved.
static inline void t_watchdog(void) {
    long seconds = t_env("WATCHDOG", 60);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seconds <= 0 || page == MAP_FAILED) return;
    t_phase_word = (const char *volatile *)page;
    *t_phase_word = "start";
    long fd = t_raw(SYS_pidfd_open, getpid(), 0, 0, 0, 0);
    if (fd < 0) return;
    long child = t_raw(SYS_fork, 0, 0, 0, 0, 0);
    if (child == 0) {
        if (t_raw(SYS_fork, 0, 0, 0, 0, 0) == 0) {
            struct {
                int fd;
                short events, revents;
            } p = {(int)fd, 1, 0};
            if (t_raw(SYS_poll, (long)&p, 1, seconds * 1000, 0, 0) == 0) {
                const char *head = "FAIL watchdog: hung in phase: ", *phase = *t_phase_word;
                long n = 0;
                while (head[n]) n++;
                t_raw(SYS_write, 1, (long)head, n, 0, 0);
                for (n = 0; phase[n];) n++;
                t_raw(SYS_write, 1, (long)phase, n, 0, 0);
                t_raw(SYS_write, 1, (long)"\n", 1, 0, 0);
                t_raw(SYS_pidfd_send_signal, fd, 9, 0, 0, 0);
            }
        }
        t_raw(SYS_exit_group, 0, 0, 0, 0, 0);
    }
    t_raw(SYS_close, fd, 0, 0, 0, 0);
    if (child > 0)
        while (waitpid((pid_t)child, NULL, 0) == -1 && errno == EINTR) {}
}
// Print the last line of the program. Returns the exit code.
static inline int t_ok(const char *name) {
    printf("ok %s\n", name);
    return fflush(stdout) ? 1 : 0;
}
#endif
