// Threads on stacks that grow down into unmapped memory: lissom must map nothing there.
#include "pthread_test.h"

enum { PAGE = 4096, GUARD = 256 * PAGE, STACK = 256 * PAGE, MAPPED = 2 * PAGE };

static __attribute__((noinline)) long deep(char *limit, long n) {
    volatile char frame[256];
    frame[0] = (char)n;
    return (char *)&frame < limit ? n : deep(limit, n + 1) + frame[0] * 0;
}
static void *work(void *arg) { return (void *)deep(arg, 1); }

int main(void) {
    t_watchdog();
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        SYS(child);
        if (!child) {
            char *p = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                           -1, 0);
            SYS(munmap(p, GUARD + STACK));
            char *bottom = p + GUARD, *top = bottom + STACK;
            CHECK(mmap(top - MAPPED, MAPPED, PROT_READ | PROT_WRITE,
                       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1,
                       0) == top - MAPPED,
                  "mmap");
            pthread_attr_t a;
            pthread_t on_it;
            OK(pthread_attr_init(&a));
            OK(pthread_attr_setstack(&a, bottom, STACK));
            OK(pthread_create(&on_it, &a, work, bottom + 2 * PAGE));
            CHECK((long)t_join(on_it) > 100, "not deep");
            _exit(0);
        }
        int status;
        EQ(waitpid(child, &status, 0), child);
        CHECK(status == 0, "round %d: status %x", round, (unsigned)status);
    }
    return t_ok("process_growsdown");
}
