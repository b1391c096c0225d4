/* SPDX-License-Identifier: MIT */
#include "cpus/others.h"
#include "cpus/cpus.h"
#include "prim/clock.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

enum {
    TICK_NS = 10000000, /* unit of /proc/stat: USER_HZ is 100 on x86 */
    SPAN_NS = 200000000,
    SPAN_MAX_NS = 2000000000,
    SHARE = 8,  /* others ran: for 1/SHARE of the time of a CPU */
    COST = 500, /* readings take at most 1/COST of the time, unless SPAN_MAX_NS is too short */
    SLOW = 10,  /* a reading that takes longer than SPAN_NS / SLOW is worthless */
    /* Fields of proc(5), cpu: idle, iowait. Not steal: idle and the CPU time of threads may contain
     * it. */
    UNUSED = 1 << 3 | 1 << 4,
};

static struct {
    uint64_t at;     /* ns: last reading; 0: none */
    uint64_t after;  /* ns: next reading */
    uint64_t unused; /* ns: of all CPUs */
    uint64_t used;   /* ns: by the process */
    uint32_t cpus;   /* 0: unknown */
    bool ran;
} last = {.ran = true};

/* --- /proc/stat ------------------------------------------------------------------------------- */

static struct {
    int fd;
    long at, used;
    char text[1024];
} reader;

/* Return the next character; -1: there is none. */
static int next(void)
{
    if (reader.at == reader.used) {
        reader.at = 0;
        reader.used = prim_read(reader.fd, reader.text, sizeof reader.text);
        if (reader.used <= 0) {
            reader.used = 0;
            return -1;
        }
    }
    return reader.text[reader.at++];
}

/* Read a number that begins with `c`. Returns the character after it. */
static int number(int c, uint64_t *n)
{
    for (*n = 0; c >= 0 && is_digit((char)c); c = next())
        *n = *n * 10 + (uint64_t)(c - '0');
    return c;
}

static bool has(const struct cpu_mask *m, uint64_t cpu)
{
    return cpu < m->bytes * 8 && m->word[cpu / 64] >> cpu % 64 & 1;
}

bool others_parse(int fd, const struct cpu_mask *mask, uint32_t *cpus, uint64_t *ticks)
{
    reader.fd = fd;
    reader.at = reader.used = 0;
    *cpus = 0;
    *ticks = 0;
    for (;;) {
        for (const char *p = "cpu"; *p; p++) {
            int c = next();
            if (c != *p)
                return c >= 0;
        }
        int c = next();
        uint64_t cpu, n;
        bool counts = c >= 0 && is_digit((char)c); /* the first line is the sum of all CPUs */
        c = number(c, &cpu);
        counts = counts && has(mask, cpu);
        *cpus += counts;
        for (uint32_t field = 0; c == ' '; field++) {
            while (c == ' ')
                c = next();
            c = number(c, &n);
            *ticks += counts && UNUSED >> field & 1 ? n : 0;
        }
        if (c != '\n')
            return false;
    }
}

/* CPUs of the last reading. Static, because the monitor's stack is small. */
static struct cpu_mask mask;

/* Update `mask`. Returns whether it has changed. */
static bool read_mask(void)
{
    static struct cpu_mask m;
    cpus_mask_of(&m, cpus_sentinel());
    bool changed = memcmp(&m, &mask, sizeof m);
    if (changed)
        memcpy(&mask, &m, sizeof m);
    return changed;
}

/* Read *cpus and *ticks from the kernel. A file system in user space that replaces /proc/stat
 * (lxcfs) does not count programs outside of the container. */
static bool read_stat(uint32_t *cpus, uint64_t *ticks)
{
    int fd = prim_open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct statfs s;
    bool ok = !prim_syscall3(SYS_fstatfs, fd, &s, 0) && s.f_type == PROC_SUPER_MAGIC &&
              others_parse(fd, &mask, cpus, ticks);
    prim_close(fd);
    return ok;
}

/* --- others ----------------------------------------------------------------------------------- */

void others_after_fork(void)
{
    last.at = last.after = 0;
    last.ran = true;
}

bool others_ran(void)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), ticks = 0;
    uint32_t cpus = 0;
    if (now < last.after)
        return last.ran;
    uint64_t cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool changed = read_mask();
    if (!read_stat(&cpus, &ticks))
        cpus = 0;
    uint64_t unused = ticks * TICK_NS, used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    cost = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost) * COST;
    /* This thread may have been stopped in between. */
    if (clock_ns(CLOCK_MONOTONIC) - now > SPAN_NS / SLOW)
        cpus = 0;
    /* Rounding makes it negative. Far below, the process has used other CPUs than these. */
    int64_t others =
        (int64_t)(cpus * (now - last.at) - (unused - last.unused) - (used - last.used));
    int64_t share = (int64_t)(now - last.at) / SHARE;
    last.ran =
        !last.at || changed || !cpus || cpus != last.cpus || others >= share || others <= -share;
    last.at = now;
    last.after = now + (cost < SPAN_NS ? SPAN_NS : cost > SPAN_MAX_NS ? SPAN_MAX_NS : cost);
    last.unused = unused;
    last.used = used;
    last.cpus = cpus;
    return last.ran;
}
