// Pairs of processes that wait for each other in a loop. At random, pairs are killed and restarted,
// or stopped for a moment. The others must make progress, and in the end every pair. With
// `sessions` each process is a session of its own, so that they take turns. KILLS in the
// environment: number of kills and stops.
#include "spin_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAIRS = 4, MORE = 1000, NAPS_US = 20000 };

static struct pair {
    struct spin_cell side[2];
} *pairs;
static pid_t processes[PAIRS][2];
static int sessions;

static uint64_t seed;
static uint32_t below(uint32_t n) { return t_rand(&seed) % n; }

static void *sleeps(void *arg) {
    pause();
    return arg;
}

static void side(struct pair *p, int me) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sessions) setsid();
    t_spawn(sleeps, NULL);
    for (uint32_t round = 1;; round++) {
        p->side[me].word = round;
        while (p->side[!me].word < round) {}
    }
}

static void start(int i) {
    memset(&pairs[i], 0, sizeof pairs[i]);
    for (int me = 0; me < 2; me++)
        if ((processes[i][me] = fork()) == 0) side(&pairs[i], me);
}

static void end(int i) {
    for (int me = 0; me < 2; me++) kill(processes[i][me], SIGKILL);
    for (int me = 0; me < 2; me++) {
        int status = 0;
        EQ(waitpid(processes[i][me], &status, 0), processes[i][me]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "it has ended with %#x", status);
    }
}

static void stop(int i, int me) {
    kill(processes[i][me], SIGSTOP);
    t_sleep_us((int)below(NAPS_US));
    kill(processes[i][me], SIGCONT);
}

static void wait_until_all_go_on(void) {
    for (int i = 0; i < PAIRS; i++) {
        uint32_t from = pairs[i].side[0].word;
        while (pairs[i].side[0].word < from + MORE) t_sleep_ms(1);
    }
}

int main(int argc, char **argv) {
    sessions = argc > 1 && !strcmp(argv[1], "sessions");
    t_watchdog();
    seed = t_seed();
    pairs = mmap(NULL, PAIRS * sizeof *pairs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    CHECK(pairs != MAP_FAILED, "no memory");
    for (int i = 0; i < PAIRS; i++) start(i);
    for (int n = t_env("KILLS", 40); n > 0; n--) {
        int i = (int)below(PAIRS);
        t_sleep_us((int)below(NAPS_US));
        if (below(4) == 0) {
            stop(i, (int)below(2));
        } else {
            end(i);
            start(i);
        }
    }
    wait_until_all_go_on();
    for (int i = 0; i < PAIRS; i++) end(i);
    return t_ok("spin_killed");
}
