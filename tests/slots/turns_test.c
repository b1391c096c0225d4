/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/sched/turns.h with processes that are killed at any time. Each passes its turn
 * in a loop. After the last kill all remaining processes have to make progress. Prints `N passed, M
 * failed`.
 *
 */
#include "sched/turns.h"
#include "abi.h"
#include "sched/nap.h"
#include "../check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 6, MOST = 2, KILLS = 1000, ROUNDS = 200 };

struct scheduler sched;
static struct lissom_record counters;
struct lissom_record *record = &counters;
static struct slot slot;
static struct thread self = {.slot = &slot};

void nap_begin(const struct thread *t, enum nap_kind kind) { t->slot->napping = kind; }
bool nap_may_sleep(const struct thread *t) {
    (void)t;
    return true;
}
bool nap_finish(const struct thread *t) {
    t->slot->napping = NAP_NONE;
    return false;
}

static struct shared {
    struct lissom_turn turn[LISSOM_MAX_PEERS];
    volatile uint64_t rounds[PROCESSES];
    volatile uint32_t stop;
} *shared;

static pid_t process(uint32_t i, bool leaves) {
    pid_t pid = fork();
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* for the case that the alarm ends the test */
    srand((unsigned)getpid());
    turns_join(shared->turn, i, 1);
    turns_set(PROCESSES, MOST);
    while (!shared->stop) {
        turns_pass(&self);
        shared->rounds[i]++; /* rounds, not passes: an unwanted turn is not passed */
        if (leaves && rand() % 1024 == 0) {
            turns_leave();
            usleep(50);
        }
    }
    turns_leave();
    _exit(0);
}

static uint32_t held(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PROCESSES; i++) n += shared->turn[i].word == TURN_HELD;
    return n;
}

/* Return once each process has made ROUNDS further rounds. Otherwise the alarm ends the test. */
static bool all_go_on(void) {
    uint64_t from[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) from[i] = shared->rounds[i];
    for (int i = 0; i < PROCESSES; i++)
        while (shared->rounds[i] - from[i] < ROUNDS) usleep(200);
    return true;
}

static void all_end(pid_t *pid) {
    shared->stop = 1;
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        check(waitpid(pid[i], &status, 0) == pid[i] && status == 0, "a process failed");
    }
    check(held() == 0, "a process has left with a turn");
    shared->stop = 0;
}

static void killed(bool leaves) {
    pid_t pid[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) pid[i] = process(i, leaves);
    check(all_go_on(), "not all go on");
    for (int k = 0; k < KILLS; k++) {
        uint32_t i = (uint32_t)rand() % PROCESSES;
        usleep((unsigned)rand() % 300);
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
        pid[i] = process(i, leaves);
    }
    check(all_go_on(), "not all go on");
    all_end(pid);
}

/* Check that a stopped process holds up no other. */
static void stopped(void) {
    pid_t pid[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) pid[i] = process(i, false);
    check(all_go_on(), "not all go on");
    for (int k = 0; k < 50; k++) {
        int i = rand() % PROCESSES, other = (i + 1) % PROCESSES;
        uint64_t from = shared->rounds[other];
        kill(pid[i], SIGSTOP);
        while (shared->rounds[other] - from < ROUNDS) usleep(200);
        kill(pid[i], SIGCONT);
    }
    check(all_go_on(), "not all go on");
    all_end(pid);
}

/* Check that a thread that becomes ready ends the sleep while another process holds the turn and
 * does not pass it. If the machine is busy and the sleep times out, the other process has lost its
 * turn; then try again. */
static void woken(void) {
    struct lissom_turn *turn = shared->turn;
    memset(turn, 0, sizeof shared->turn);
    turns_join(turn, 1, 1);
    turns_set(2, 1);
    turn[0].mask = 1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) turns_end();
    }
    bool sleeps;
    do {
        usleep(10); /* turns_pass does not sleep right after a sleep */
        turn[0].word = TURN_HELD;
        sleeps = turns_pass(&self);
    } while (sleeps && turn[0].word != TURN_HELD);
    check(sleeps, "the turn was not passed");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    check(turn[1].word == TURN_HELD && turns_taken() && !turns_wanted(), "no turn after a wake-up");
    /* a process on other CPUs does not count */
    turn[0].mask = 2;
    usleep(10);
    check(!turns_pass(&self), "passed to other CPUs");
    turns_join(NULL, 0, 0);
    check(!turns_taken() && !turns_wanted() && !turns_pass(&self), "takes part");
}

int main(void) {
    alarm(50);
    sched.tsc_per_us = 2000;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    woken();
    killed(false);
    killed(true);
    stopped();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
