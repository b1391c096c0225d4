/* SPDX-License-Identifier: MIT
 *
 * A library to preload: patches every loaded object of the program, and later ones by probe_mapped.
 *   PROBE_CLASS=1    every system call goes through the entry (0: the stub's own instruction)
 *   PROBE_REPORT=FD  report patched objects and skipped sites, one a line
 *   PROBE_UNDO=1     undo the patching at once
 *   PROBE_MPROTECT=1 patch by mprotect; fail if any page stays writable and executable
 *
 */
#include "../../runtime/patch/patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void entry_direct(void);
extern long entry_count;
static uint8_t classes[65536];
static int out = -1;
static struct timespec last;

static double lap(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double us =
        (double)(now.tv_sec - last.tv_sec) * 1e6 + (double)(now.tv_nsec - last.tv_nsec) / 1e3;
    last = now;
    return us;
}

static void left(const char *object, uintptr_t offset, const char *reason) {
    if (out >= 0) dprintf(out, "left %s+0x%lx %s\n", object, (unsigned long)offset, reason);
}

static void done(const char *name, unsigned patched, unsigned n) {
    if (out >= 0) dprintf(out, "object %s patched %u left %u us %.0f\n", name, patched, n, lap());
}

__attribute__((visibility("default"))) int probe_mapped(uintptr_t base, size_t len,
                                                        const char *name) {
    const char *unsafe;
    lap();
    return patch_mapped(base, len, name, &unsafe);
}
__attribute__((visibility("default"))) void probe_unmapped(uintptr_t base, size_t len) {
    patch_unmapped(base, len);
}
__attribute__((visibility("default"))) uintptr_t probe_native_ip(uintptr_t ip) {
    return patch_native_ip(ip);
}
__attribute__((visibility("default"))) long probe_count(void) { return entry_count; }
__attribute__((visibility("default"))) void probe_undo(void) { patch_undo_all(); }

static int anything_open(void) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps)) found |= strstr(line, " rwx") != NULL;
    fclose(maps);
    return found;
}

__attribute__((constructor)) static void start(void) {
    const char *class = getenv("PROBE_CLASS"), *fd = getenv("PROBE_REPORT"),
               *undo = getenv("PROBE_UNDO");
    struct patch_config c = {.class_table = classes,
                             .class_table_rtld = classes,
                             .entry = entry_direct,
                             .report = left,
                             .object_done = done,
                             .by_mprotect = getenv("PROBE_MPROTECT")};
    const char *unsafe;
    if (fd) out = atoi(fd);
    memset(classes, class && *class == '1', sizeof classes);
    lap();
    struct timespec begin = last;
    int n = patch_startup(&c, &unsafe);
    last = begin;
    if (out >= 0)
        dprintf(out, "total patched %d unsafe %s us %.0f\n", n, unsafe ? unsafe : "no", lap());
    if (undo) patch_undo_all();
    if (c.by_mprotect && (n <= 0 || !patch_needs_mprotect() || anything_open())) _exit(99);
}
