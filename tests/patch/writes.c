/* SPDX-License-Identifier: MIT
 *
 * Writing code by mprotect (runtime/patch/write.c): while threads execute that code, while others
 * write, in a forked child, and where it is forbidden. Usage: writes SECONDS
 *
 */
#define _GNU_SOURCE
#include "../../runtime/patch/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static unsigned passed, failed;
#define check(ok, ...) \
    ((ok) ? (void)passed++ : (void)(failed++, printf("FAILED: " __VA_ARGS__), puts("")))

/* Pages of functions, 16 bytes apart: mov $0,%eax ; ret. */
enum { FUNCTIONS = 256, PAGES = 3 };
static uint8_t *page;
static int memory;
static volatile bool stop;
static bool has_force; /* the kernel also lets us write to pages that are not opened by mprotect */

static uint8_t *map_code(int protection) {
    uint8_t *bytes = calloc(PAGES, PATCH_PAGE);
    for (unsigned i = 0; i < FUNCTIONS * PAGES; i++) memcpy(bytes + 16 * i, "\xb8\0\0\0\0\xc3", 6);
    FILE *file = tmpfile();
    fwrite(bytes, PATCH_PAGE, PAGES, file);
    fflush(file);
    free(bytes);
    uint8_t *at = mmap(NULL, PAGES * PATCH_PAGE, protection, MAP_PRIVATE, fileno(file), 0);
    fclose(file);
    return at;
}

static void protection_of(const uint8_t *at, char as[5]) {
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long lo, hi;
    strcpy(as, "none");
    while (fscanf(maps, "%lx-%lx %4s %*[^\n]", &lo, &hi, as) == 3 &&
           !((uintptr_t)at >= lo && (uintptr_t)at < hi))
        strcpy(as, "none");
    fclose(maps);
}

static bool is(const uint8_t *at, const char *protection) {
    char as[5];
    protection_of(at, as);
    return !strcmp(as, protection);
}

static int call(unsigned i) { return ((int (*)(void))(void *)(page + 16 * i))(); }

static int write_one(unsigned i, uint8_t value) {
    uintptr_t at = (uintptr_t)page + 16 * i + 1;
    int err = patch_write_begin(memory, at, at + 1);
    if (err < 0) return err;
    bool ok = patch_write(memory, at, &value, 1);
    patch_write_end();
    return ok ? 0 : PATCH_EIO;
}

static void *execute(void *arg) {
    long calls = 0;
    while (!stop)
        for (unsigned i = 0; i < FUNCTIONS * PAGES; i++, calls++)
            if (call(i) & ~0xff) {
                printf("FAILED: function %u: %d\n", i, call(i));
                _exit(1);
            }
    (void)arg;
    return (void *)calls;
}

static void *write_some(void *arg) {
    unsigned from = (unsigned)(uintptr_t)arg;
    uint8_t value = 0;
    long n = 0;
    while (!stop) {
        value++;
        for (unsigned i = from; i < FUNCTIONS * PAGES && !stop; i += 61, n++) {
            int err = write_one(i, value), is = call(i);
            if (err || is != value) {
                printf("FAILED: function %u: %d, %d instead of %d\n", i, err, is, value);
                _exit(1);
            }
        }
    }
    return (void *)n;
}

/* Check, in a child forked while other threads were writing, that patch_after_fork makes every page
 * r-x, and that the child can write. Returns 0, or the number of the failed check. */
static int child(void) {
    alarm(10);
    memory = patch_memory(); /* the inherited descriptor refers to the parent's memory */
    patch_after_fork();
    for (unsigned p = 0; p < PAGES; p++)
        if (!is(page + p * PATCH_PAGE, "r-xp")) return 1;
    if (write_one(7, 77) != 0 || call(7) != 77) return 2;
    return is(page, "r-xp") ? 0 : 3;
}

static void beside_others(int seconds) {
    pthread_t t[6];
    for (uintptr_t i = 0; i < 6; i++)
        pthread_create(&t[i], NULL, i < 3 ? execute : write_some, (void *)i);
    time_t end = time(NULL) + seconds;
    long forks = 0, bad = 0, writes = 0, calls = 0;
    while (time(NULL) < end) {
        int status;
        pid_t pid = fork();
        if (pid == 0) _exit(child());
        waitpid(pid, &status, 0);
        forks++;
        bad += status != 0;
    }
    stop = true;
    for (unsigned i = 0; i < 6; i++) {
        void *n;
        pthread_join(t[i], &n);
        *(i < 3 ? &calls : &writes) += (long)n;
    }
    printf("%ld writes, %ld calls, %ld forks\n", writes, calls, forks);
    check(writes > 100 && calls > 100 && forks > 10, "something has been done");
    check(bad == 0, "%ld of %ld children", bad, forks);
    for (unsigned p = 0; p < PAGES; p++)
        check(is(page + p * PATCH_PAGE, "r-xp"), "page %u is r-x again", p);
}

/* Check that all other protections are left as they are. */
static void other_protections(void) {
    uint8_t *code = page, *open = map_code(PROT_READ | PROT_WRITE | PROT_EXEC),
            *data = map_code(PROT_READ);
    page = open;
    check(write_one(1, 9) == 0 && call(1) == 9 && is(page, "rwxp"),
          "what was writable is so afterwards");
    page = data;
    check((write_one(1, 9) == PATCH_EIO || has_force) && is(page, "r--p"),
          "what is no code is not made so");
    munmap(data, PAGES * PATCH_PAGE);
    check(write_one(1, 9) == PATCH_EIO, "what is gone does no harm");
    page = code;
    mprotect(code + PATCH_PAGE, PATCH_PAGE, PROT_READ);
    uintptr_t at = (uintptr_t)code;
    uint8_t value = 5;
    check(patch_write_begin(memory, at, at + PAGES * PATCH_PAGE) == 0, "several mappings at once");
    check(is(code, "rwxp") && is(code + PATCH_PAGE, "r--p") && is(code + 2 * PATCH_PAGE, "rwxp"),
          "only code is opened");
    check(patch_write(memory, at + 2 * PATCH_PAGE + 1, &value, 1) && call(2 * FUNCTIONS) == 5,
          "behind a gap");
    check(has_force || !patch_write(memory, at + PATCH_PAGE, &value, 1), "but not in it");
    patch_write_end();
    check(is(code, "r-xp") && is(code + PATCH_PAGE, "r--p") && is(code + 2 * PATCH_PAGE, "r-xp"),
          "and all is closed");
    mprotect(code + PATCH_PAGE, PATCH_PAGE, PROT_READ | PROT_EXEC);
}

static void forbidden(void) {
    pid_t pid = fork();
    if (pid == 0) {
        memory = patch_memory();
        if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)) _exit(77);
        int before = call(3);
        _exit(write_one(3, 99) == PATCH_EACCES && call(3) == before && is(page, "r-xp") &&
                      write_one(3, 99) == PATCH_EACCES
                  ? 0
                  : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        puts("this kernel has no PR_SET_MDWE");
    else
        check(status == 0, "forbidden: it says so, and nothing is changed");
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    memory = patch_memory();
    page = map_code(PROT_READ | PROT_EXEC);
    check(write_one(0, 3) == 0 && call(0) == 3 && is(page, "r-xp"), "as this kernel allows it");
    has_force = !patch_needs_mprotect();
    patch_write_by_mprotect(true);
    check(write_one(0, 4) == 0 && call(0) == 4 && is(page, "r-xp") && patch_needs_mprotect(),
          "by mprotect");
    other_protections();
    forbidden();
    beside_others(argc > 1 ? atoi(argv[1]) : 2);
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
