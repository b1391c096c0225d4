// The program that spin_gdb.sh attaches to: a token travels around threads that spin in spin_here()
// until a file named "stop" appears. Prints "ready PID" after enough rounds.
#include "spin_test.h"
#include <sys/prctl.h>

__attribute__((noinline)) void spin_here(volatile uint32_t *w, uint32_t value) {
    while (*w != value) __builtin_ia32_pause();
}
__attribute__((noinline)) void spin_caller(volatile uint32_t *w, uint32_t value) {
    spin_here(w, value);
    __asm__ volatile("");
}
static volatile int stop;
static void *member(void *arg) {
    int me = (int)(intptr_t)arg;
    for (uint32_t round = 1;; round++) {
        spin_caller(&spin_cell[me].word, round);
        if (!me && stop) spin_until = 0;
        int more = spin_more(me, round);
        for (volatile int i = 0; i < 3000; i++) {}
        spin_pass(me, round);
        if (!more) return NULL;
    }
}
int main(void) {
    t_watchdog();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    spin_threads = t_threads() > 32 ? 32 : t_threads();
    spin_begin(1000000);
    pthread_t *t = calloc((size_t)spin_threads, sizeof *t);
    for (int i = 0; i < spin_threads; i++) t[i] = t_spawn(member, (void *)(intptr_t)i);
    spin_start_token();
    while (spin_cell[0].word < 5) t_sleep_ms(2);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (access("stop", F_OK)) t_sleep_ms(5);
    stop = 1;
    for (int i = 0; i < spin_threads; i++) t_join(t[i]);
    return t_ok("spin_gdb_target");
}
