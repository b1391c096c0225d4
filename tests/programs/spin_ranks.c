// Processes that wait for each other as the ranks of an MPI program do. One thread of each polls
// words in shared memory, more than a proof records, and counts its polls in memory of its own;
// another thread sleeps. All meet in each round, and the sums must be right. With `sessions` each
// process is a session of its own, as with mpiexec: the kernel may make a scheduling group of each.
// With `alone` there is no second thread.
#include "spin_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 40, MOST = 16 };

static struct shared {
    struct spin_cell rank[MOST]; // the rank's current round
    volatile uint32_t last;
    uint64_t sum[MOST];
} *shared;
static volatile uint32_t words[WORDS];
static volatile uint32_t looks;
static int ranks, alone;

static void *sleeps(void *arg) {
    pause();
    return arg;
}

__attribute__((noinline)) static uint32_t look(int me) {
    uint32_t any = 0;
    for (int i = 0; i < WORDS; i++) any |= words[i];
    looks++;
    return any | shared->rank[me].word;
}

// Every eighth poll takes another path.
static void wait_for(int who, uint32_t round) {
    while (look(who) < round)
        if (looks % 8 == 0) __asm__ volatile("nop");
}

static void rank(int me) {
    pthread_t t;
    if (!alone) pthread_create(&t, NULL, sleeps, NULL);
    for (uint32_t round = 1; round <= shared->last; round++) {
        shared->sum[me] += round;
        if (me == 0 && round < shared->last && round >= 20 && spin_time_over())
            shared->last = round;
        __atomic_store_n(&shared->rank[me].word, round, __ATOMIC_SEQ_CST);
        for (int i = 0; i < ranks; i++)
            if (i != me) wait_for(i, round);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int sessions = argc > 1 && !strcmp(argv[1], "sessions");
    alone = argc > 1 && !strcmp(argv[1], "alone");
    t_watchdog();
    ranks = t_threads() < 4 ? 4 : t_threads() > MOST ? MOST : t_threads();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "no memory");
    shared->last = UINT32_MAX;
    spin_time_begins(3000);
    for (int i = 0; i < ranks; i++)
        if (fork() == 0) {
            if (sessions) setsid();
            rank(i);
        }
    for (int i = 0, status; i < ranks; i++) {
        CHECK(wait(&status) > 0 && status == 0, "a rank has ended with %#x", status);
    }
    for (int i = 0; i < ranks; i++)
        EQ(shared->sum[i], (uint64_t)shared->last * (shared->last + 1) / 2);
    return t_ok("spin_ranks");
}
