// Linked into each C and C++ test program. Records which processes should load the runtime, and
// which of them had more than one thread, so that it should be active. The runtime's own records
// cannot show this: an inactive runtime writes none.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static void put_number(char **end, unsigned n) {
    if (n >= 10) put_number(end, n / 10);
    *(*end)++ = (char)('0' + n % 10);
}

// Append a line `PID what` to the file TEST_WITNESS. Does nothing if the program is linked
// statically, set-user-ID, or started without the runtime in LD_PRELOAD.
static void note(const char *what) {
    const char *path = getenv("TEST_WITNESS"), *preload = getenv("LD_PRELOAD");
    if (!path || !preload || !strstr(preload, "lissom") || !getauxval(AT_BASE) ||
        getauxval(AT_SECURE))
        return;
    int saved = errno;
    char line[32], *end = line;
    put_number(&end, (unsigned)getpid());
    *end++ = ' ';
    while (*what) *end++ = *what++;
    *end++ = '\n';
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, line, (size_t)(end - line)) < 0) errno = saved;
        close(fd);
    }
    errno = saved;
}

__attribute__((constructor)) static void begins(void) { note("begins"); }

// Set by libc: false once the process has created a thread. glibc before 2.32 lacks it.
extern char __libc_single_threaded __attribute__((weak));

__attribute__((destructor)) static void ends(void) {
    if (&__libc_single_threaded && !__libc_single_threaded) note("had threads");
}
