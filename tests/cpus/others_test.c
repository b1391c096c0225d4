/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/cpus/others.c: /proc/stat as the kernel writes it, and cut off at each byte.
 */
#include "cpus/others.h"
#include "cpus/cpus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

static void check(const char *what, bool ok) {
    if (ok)
        passed++;
    else
        failed++, printf("others_test: %s\n", what);
}

static bool parse(const char *text, size_t bytes, const struct cpu_mask *mask, uint32_t *cpus,
                  uint64_t *ticks) {
    FILE *f = tmpfile();
    if (!f || fwrite(text, 1, bytes, f) != bytes || fflush(f)) return false;
    lseek(fileno(f), 0, SEEK_SET);
    bool ok = others_parse(fileno(f), mask, cpus, ticks);
    fclose(f);
    return ok;
}

static const char three[] = "cpu  1 2 3 400 50 6 7 80 9 10\n"
                            "cpu0 10 0 10 100 20 1 2 3 0 0\n"
                            "cpu1 10 0 10 200 40 1 2 6 0 0\n"
                            "cpu12 10 0 10 1000 0 1 2 0 0 0\n"
                            "intr 123 4 5\nctxt 7\n";

int main(void) {
    struct cpu_mask m = {.bytes = 8};
    uint32_t cpus;
    uint64_t ticks;
    m.word[0] = 1 << 1 | 1 << 12;
    check("two of three CPUs",
          parse(three, strlen(three), &m, &cpus, &ticks) && cpus == 2 && ticks == 1240);
    m.word[0] = ~0ull;
    check("all CPUs", parse(three, strlen(three), &m, &cpus, &ticks) && cpus == 3 && ticks == 1360);
    m.word[0] = 1 << 5;
    check("a CPU that is offline", parse(three, strlen(three), &m, &cpus, &ticks) && !cpus);
    static const char old[] = "cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 1\n"; /* before Linux 2.6 */
    m.word[0] = 1;
    check("four fields", parse(old, strlen(old), &m, &cpus, &ticks) && cpus == 1 && ticks == 4);
    m.word[0] = ~0ull;
    size_t whole = (size_t)(strstr(three, "intr") - three) + 1;
    for (size_t n = 0; n < strlen(three); n++)
        if (parse(three, n, &m, &cpus, &ticks) != (n >= whole)) check("cut off", false);
    check("no CPU: another system", !parse("", 0, &m, &cpus, &ticks));
    check("no CPU in the text", parse("intr 1\n", 7, &m, &cpus, &ticks) && !cpus);
    int fd = open("/proc/stat", O_RDONLY);
    cpus_mask_of(&m, 0);
    check("the kernel's own",
          others_parse(fd, &m, &cpus, &ticks) && cpus == cpus_count(&m) && ticks);
    close(fd);

    others_after_fork();
    check("unknown at first", others_ran());
    usleep(50000);
    check("still unknown", others_ran());
    pid_t child = fork();
    if (!child)
        for (volatile int i = 0;; i = i + 1);
    usleep(250000);
    check("a child computes", others_ran());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
