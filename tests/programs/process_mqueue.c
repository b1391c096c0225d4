/* SPDX-License-Identifier: MIT */
// mq_notify(3) stays registered although the program and lissom create threads afterwards.
// build: -lrt
#include "pthread_test.h"
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>

static sem_t told;
static pthread_barrier_t barrier;

static void on_message(int sig) {
    (void)sig;
    sem_post(&told);
}

static void *meets(void *arg) {
    for (int i = 0; i < 100; i++) pthread_barrier_wait(&barrier);
    return arg;
}

static void let_threads_run(void) {
    int threads = t_threads() + 1;
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(meets, NULL);
    for (int i = 0; i < threads; i++) t_join(t[i]);
    free(t);
}

int main(void) {
    t_watchdog();
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct sigaction action = {.sa_handler = on_message};
    char name[32], message[8] = "";
    snprintf(name, sizeof name, "/lissom-test-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    SYS(queue);
    SYS(mq_unlink(name));
    SYS(sem_init(&told, 0, 0));
    SYS(sigaction(SIGRTMIN, &action, NULL));
    for (int round = 0; round < 3; round++) {
        SYS(mq_notify(queue, &event));
        let_threads_run();
        SYS(mq_send(queue, message, sizeof message, 0));
        while (sem_wait(&told)) EQ(errno, EINTR);
        EQ(mq_receive(queue, message, sizeof message, NULL), sizeof message);
    }
    return t_ok("process_mqueue");
}
