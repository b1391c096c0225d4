// Bad pointers: calls that the runtime handles return EFAULT as the kernel does, also if SIGSEGV
// and SIGBUS are blocked. A word on a page that only a userfaultfd(2) can fill makes just its own
// thread wait; from then on the process runs natively.
#include "pthread_test.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>

enum { PAGE = 4096 };
static char *none, *readable; // an inaccessible page, and a readable one
static pthread_barrier_t barrier;

static long call(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#define FAULTS(...) EQ(call(__VA_ARGS__), -EFAULT)

static void pointers(void) {
    uint32_t word = 0;
    long bad = (long)none, half = (long)none - 4, w = (long)&word;
    struct timespec t = {0, 1000};
    FAULTS(SYS_rt_sigprocmask, SIG_BLOCK, bad, 0, 8, 0, 0);
    FAULTS(SYS_rt_sigprocmask, SIG_BLOCK, half, 0, 8, 0, 0);
    FAULTS(SYS_rt_sigprocmask, SIG_BLOCK, 0, bad, 8, 0, 0);
    FAULTS(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)readable, 8, 0, 0);
    EQ(call(SYS_rt_sigprocmask, 17, w, 0, 8, 0, 0), -EINVAL);
    FAULTS(SYS_rt_sigaction, SIGUSR1, bad, 0, 8, 0, 0);
    FAULTS(SYS_rt_sigaction, SIGUSR1, 0, bad, 8, 0, 0);
    EQ(call(SYS_rt_sigaction, SIGKILL, 0, 0, 8, 0, 0), 0);
    FAULTS(SYS_clone3, bad, sizeof(struct clone_args), 0, 0, 0, 0);
    FAULTS(SYS_clone3, half, sizeof(struct clone_args), 0, 0, 0, 0);
    EQ(call(SYS_clone3, bad, 8, 0, 0, 0, 0), -EINVAL);
    EQ(call(SYS_clone3, bad, PAGE + 1, 0, 0, 0, 0), -E2BIG);
    FAULTS(SYS_sigaltstack, bad, 0, 0, 0, 0, 0);
    FAULTS(SYS_sigaltstack, 0, bad, 0, 0, 0, 0);
    FAULTS(SYS_futex, bad, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    FAULTS(SYS_futex, bad, FUTEX_WAIT_PRIVATE, 0, (long)&t, 0, 0);
    FAULTS(SYS_futex, w, FUTEX_WAIT_PRIVATE, 0, bad, 0, 0);
    FAULTS(SYS_futex, w, FUTEX_WAIT_PRIVATE, 0, half, 0, 0);
    FAULTS(SYS_futex, w, FUTEX_WAKE_OP_PRIVATE, 1, 1, bad,
           FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
    FAULTS(SYS_futex, w, FUTEX_WAKE_OP_PRIVATE, 1, 1, (long)readable,
           FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
    FAULTS(SYS_futex, bad, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, w, 0);
    FAULTS(SYS_sched_getaffinity, 0, 128, bad, 0, 0, 0);
    EQ(call(SYS_futex, w, FUTEX_WAKE_OP_PRIVATE, 1, 1, w,
            FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)),
       0);
    EQ(word, 5);
}
static void *work(void *arg) {
    for (int i = 0; i < t_share(300, t_threads()); i++) {
        pthread_barrier_wait(&barrier);
        pointers();
        sigset_t faults, old;
        sigemptyset(&faults);
        sigaddset(&faults, SIGSEGV);
        sigaddset(&faults, SIGBUS);
        OK(pthread_sigmask(SIG_BLOCK, &faults, &old));
        pointers();
        pthread_barrier_wait(&barrier);
        OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
    }
    return arg;
}

static char *missing;
static int uffd;
static atomic_int waiting;
static void *faults(void *arg) { // its word is 0 once the page exists
    atomic_fetch_add(&waiting, 1);
    EQ(call(SYS_futex, (long)missing + 64 * (long)(intptr_t)arg, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0),
       -EAGAIN);
    return NULL;
}
static void *meet(void *arg) {
    for (int i = 0; i < 2000; i++) pthread_barrier_wait(&barrier);
    return arg;
}
static void user_faults(void) {
    struct uffdio_api api = {.api = UFFD_API};
    pthread_t w[8], t[64];
    int threads = t_threads() > 64 ? 64 : t_threads();
    // not permitted here
    if ((uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)) < 0) return;
    SYS(ioctl(uffd, UFFDIO_API, &api));
    missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register r = {.range = {(uintptr_t)missing, PAGE},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    SYS(ioctl(uffd, UFFDIO_REGISTER, &r));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < 8; i++) w[i] = t_spawn(faults, (void *)(intptr_t)i);
    while (waiting < 8) sched_yield();
    t_sleep_ms(5);
    // many words, some in the same bucket
    for (int i = 0; i < threads; i++) t[i] = t_spawn(meet, NULL);
    for (int i = 0; i < 20000; i++) {
        static uint32_t words[4096];
        call(SYS_futex, (long)&words[i % 4096], FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
        call(SYS_futex, (long)missing + 64 * (i % 8), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    }
    for (int i = 0; i < threads; i++) t_join(t[i]);
    struct uffdio_zeropage z = {.range = {(uintptr_t)missing, PAGE}};
    SYS(ioctl(uffd, UFFDIO_ZEROPAGE, &z));
    for (int i = 0; i < 8; i++) t_join(w[i]);
}

// Threads that busy-wait, and were detected, lose the page with their words.
static void *spins(void *arg) {
    volatile uint32_t *word = (volatile uint32_t *)(missing + 64 * (long)(intptr_t)arg);
    atomic_fetch_add(&waiting, 1);
    while (!*word) __builtin_ia32_pause();
    return NULL;
}
static void user_faults_of_spinners(void) {
    static _Alignas(PAGE) uint32_t ones[PAGE / 4];
    pthread_t w[8], t[64];
    int threads = t_threads() > 64 ? 64 : t_threads();
    struct uffdio_copy c = {.dst = (uintptr_t)missing, .src = (uintptr_t)ones, .len = PAGE};
    if (uffd < 0) return;
    for (int i = 0; i < PAGE / 4; i++) ones[i] = 1;
    waiting = 0;
    for (int i = 0; i < 8; i++) w[i] = t_spawn(spins, (void *)(intptr_t)i);
    while (waiting < 8) sched_yield();
    for (int i = 0; i < threads; i++) t[i] = t_spawn(meet, NULL);
    t_sleep_ms(50);
    SYS(madvise(missing, PAGE, MADV_DONTNEED));
    for (int i = 0; i < threads; i++) t_join(t[i]);
    SYS(ioctl(uffd, UFFDIO_COPY, &c));
    for (int i = 0; i < 8; i++) t_join(w[i]);
}

int main(void) {
    t_watchdog();
    char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    none = p + PAGE;
    readable = p + 2 * PAGE;
    SYS(mprotect(none, PAGE, PROT_NONE));
    SYS(mprotect(readable, PAGE, PROT_READ));
    int threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    PHASE("pointers");
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, NULL);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    PHASE("userfaultfd");
    user_faults();
    PHASE("userfaultfd and spinning");
    user_faults_of_spinners();
    return t_ok("process_pointers");
}
