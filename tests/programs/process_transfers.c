/* SPDX-License-Identifier: MIT */
// Calls that transfer in parts, beside threads that want the CPUs. No signal is sent to the
// process, so each call has to transfer everything, as natively.
#include "pthread_test.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { BYTES = 1 << 18, MANY = 1 << 22 };
static atomic_bool over;
static char *from, *into;

static void *computes(void *arg) {
    for (volatile long n = 0; !over;) n++;
    return arg;
}

// Read all data slowly.
static void *reads(void *arg) {
    char part[16384];
    t_sleep_ms(20);
    while (read((int)(intptr_t)arg, part, sizeof part) > 0) t_sleep_us(200);
    return NULL;
}

// Write slowly, in parts, as much as recv waits for.
static void *writes(void *arg) {
    for (int i = 0; i < 100; i++) {
        t_sleep_us(500);
        EQ(write((int)(intptr_t)arg, from, BYTES / 100), BYTES / 100);
    }
    return NULL;
}

static void make(bool sockets, int fd[2]) {
    if (sockets)
        SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
    else
        SYS(pipe(fd));
}

enum how { WRITE, WRITEV, SEND, SENDMSG, SENDFILE, HOWS };

static ssize_t transfer(enum how how, int fd, int file) {
    struct iovec v[2] = {{from, BYTES / 2}, {from + BYTES / 2, BYTES / 2}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    off_t at = 0;
    switch (how) {
    case WRITE: return write(fd, from, BYTES);
    case WRITEV: return writev(fd, v, 2);
    case SEND: return send(fd, from, BYTES, 0);
    case SENDMSG: return sendmsg(fd, &m, 0);
    case SENDFILE: return sendfile(fd, file, &at, BYTES);
    default: return -1;
    }
}

static void writers(int file) {
    for (enum how how = 0; how < HOWS; how++)
        for (int sockets = 0; sockets < 2; sockets++) {
            // send does not work on pipes, and sendfile stops when a pipe is full.
            if (!sockets && how != WRITE && how != WRITEV) continue;
            int fd[2];
            make(sockets, fd);
            pthread_t reader = t_spawn(reads, (void *)(intptr_t)fd[0]);
            ssize_t n = transfer(how, fd[1], file);
            CHECK(n == BYTES, "way %d, %s: %zd bytes", how, sockets ? "socket" : "pipe", n);
            SYS(close(fd[1]));
            t_join(reader);
            SYS(close(fd[0]));
        }
}

static void readers(void) {
    int fd[2];
    make(true, fd);
    pthread_t writer = t_spawn(writes, (void *)(intptr_t)fd[1]);
    ssize_t n = recv(fd[0], into, BYTES / 100 * 100, MSG_WAITALL);
    CHECK(n == BYTES / 100 * 100, "recv: %zd bytes", n);
    t_join(writer);
    EQ(close(fd[0]) | close(fd[1]), 0);
    n = getrandom(into, MANY, 0);
    CHECK(n == MANY, "getrandom: %zd bytes", n);
    const char *devices[] = {"/dev/urandom", "/dev/zero"};
    for (int i = 0; i < 2; i++) {
        int device = open(devices[i], O_RDONLY);
        SYS(device);
        n = read(device, into, MANY);
        CHECK(n == MANY, "%s: %zd bytes", devices[i], n);
        SYS(close(device));
    }
}

int main(void) {
    t_watchdog();
    from = calloc(1, BYTES);
    into = malloc(MANY);
    CHECK(from && into);
    int file = memfd_create("file", 0);
    SYS(file);
    EQ(write(file, from, BYTES), BYTES);
    int threads = t_threads() < 8 ? t_threads() : 8;
    pthread_t *t = calloc((size_t)threads, sizeof *t);
    for (int i = 0; i < threads; i++) t[i] = t_spawn(computes, NULL);
    for (int round = 0; round < 2; round++) {
        writers(file);
        readers();
        EQ(posix_fallocate(file, 0, 64 << 20), 0);
        SYS(ftruncate(file, BYTES));
    }
    over = true;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    free(t);
    return t_ok("process_transfers");
}
