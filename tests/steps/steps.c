// Count the instructions of a wait, until the next thread runs, and of a wake:
//     steps FOLDER COMMAND...
// Runs COMMAND until int3, and from then on in single steps, with a clock that advances one tick
// per instruction, so that no slice ends; the monitor is stopped. FOLDER gets `trace`, the
// addresses of one wait and one wake, and `maps`. The load of the machine does not matter.
#define _GNU_SOURCE
#include "marks.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WANTED = 101, TRACED = 50, CODE = 16 };
struct count {
    long instructions, locked, clocks, calls;
};
struct series {
    const char *what;
    struct count at[WANTED];
    int n;
};
static struct series waits = {.what = "wait, until the next thread goes on"},
                     wakes = {.what = "wake of one"};
static FILE *trace;
static pid_t program, monitor;

static void fail(const char *what) {
    perror(what);
    kill(program, SIGKILL);
    exit(2);
}
static FILE *open_in(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) fail(path);
    return f;
}
static void copy_maps(const char *folder) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", program);
    FILE *from = fopen(path, "r"), *to = open_in(folder, "maps");
    while (from && fgets(line, sizeof line, from)) fputs(line, to);
    if (from) fclose(from);
    fclose(to);
}
// Stop the monitor. It is traced, as all threads of the program are, and stops at its next signal.
static void stop_monitor(const pid_t *threads, int n) {
    for (int i = 0; i < n; i++) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/%d/task/%d/comm", program, threads[i]);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && !strncmp(name, "lissom-monitor", 14)) {
            monitor = threads[i];
            syscall(SYS_tgkill, program, monitor, SIGSTOP);
        }
        if (f) fclose(f);
    }
}

static bool is_locked(const uint8_t *b) { // lock prefix, or xchg with memory, with or without REX
    if ((b[0] & 0xf0) == 0x40) b++;
    return b[0] == 0xf0 || ((b[0] | 1) == 0x87 && b[1] < 0xc0);
}
static void add(struct series *s, const struct count *c) {
    if (s->n < WANTED) s->at[s->n++] = *c;
}
// Examine the next instruction. Returns false once enough waits and wakes were counted.
static bool look(pid_t p) {
    static int at;
    static bool was_clock;
    static uint64_t clock, steps;
    static struct count c;
    struct user_regs_struct r;
    uint8_t b[CODE] = {0};
    if (ptrace(PTRACE_GETREGS, p, 0, &r)) fail("registers");
    struct iovec to = {b, sizeof b}, from = {(void *)(uintptr_t)r.rip, sizeof b};
    if (process_vm_readv(p, &to, 1, &from, 1, 0) < 8) fail("code");
    steps++;
    if (was_clock) {
        if (!clock) clock = (r.rdx << 32 | (uint32_t)r.rax) - steps;
        r.rax = (uint32_t)(clock + steps);
        r.rdx = (clock + steps) >> 32;
        if (ptrace(PTRACE_SETREGS, p, 0, &r)) fail("registers");
    }
    was_clock = b[0] == 0x0f && b[1] == 0x31;
    uint32_t nop, number;
    memcpy(&nop, b, 4);
    memcpy(&number, b + 4, 4);
    if (nop != MARK_NOP || number - MARK_BASE >= MARKS) {
        c.instructions++;
        c.locked += is_locked(b);
        c.clocks += was_clock;
        c.calls += b[0] == 0x0f && b[1] == 0x05;
        if (trace && waits.n == TRACED) fprintf(trace, "%llx\n", r.rip);
        return true;
    }
    int mark = (int)(number - MARK_BASE);
    if (mark == AFTER_WAIT && at == BEFORE_WAIT) add(&waits, &c);
    if (mark == AFTER_WAKE && at == BEFORE_WAKE) add(&wakes, &c);
    at = mark;
    c = (struct count){0};
    return waits.n < WANTED || wakes.n < WANTED;
}

static int by_instructions(const void *a, const void *b) {
    long x = ((const struct count *)a)->instructions, y = ((const struct count *)b)->instructions;
    return (x > y) - (x < y);
}
static void print(struct series *s) {
    qsort(s->at, (size_t)s->n, sizeof *s->at, by_instructions);
    const struct count *m = &s->at[s->n / 2];
    printf("%s: %ld instructions, %ld locked, %ld clocks, %ld system calls (least %ld, most %ld)\n",
           s->what, m->instructions, m->locked, m->clocks, m->calls, s->at[0].instructions,
           s->at[s->n - 1].instructions);
}

int main(int argc, char **argv) {
    static pid_t threads[1024];
    int n = 0, status;
    pid_t stepped = 0;
    if (argc < 3) return 2;
    trace = open_in(argv[1], "trace");
    program = fork();
    if (!program) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (waitpid(program, &status, 0) < 0) fail("fork");
    long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options)) fail("ptrace");
    ptrace(PTRACE_CONT, program, 0, 0);
    for (bool more = true; more;) {
        pid_t p = waitpid(-1, &status, __WALL);
        if (p < 0 || (p == program && !WIFSTOPPED(status))) fail("the program has ended");
        if (!WIFSTOPPED(status) || p == monitor) continue;
        int sig = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_CLONE) {
            unsigned long made = 0;
            ptrace(PTRACE_GETEVENTMSG, p, 0, &made);
            if (n < 1024) threads[n++] = (pid_t)made;
        }
        if (sig == SIGTRAP && !event && !stepped) { // int3
            stepped = p;
            copy_maps(argv[1]);
            stop_monitor(threads, n);
        } else if (sig == SIGTRAP && !event && p == stepped) {
            more = look(p);
        }
        bool to_us = event || sig == SIGTRAP || sig == SIGSTOP;
        ptrace(p == stepped ? PTRACE_SINGLESTEP : PTRACE_CONT, p, 0, to_us ? 0 : sig);
    }
    print(&waits);
    print(&wakes);
    fclose(trace);
    kill(program, SIGKILL);
    return 0;
}
