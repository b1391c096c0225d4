/* SPDX-License-Identifier: MIT */
#include "takeover.h"
#include "lissom.h"
#include "monitor/monitor.h"
#include "prim/text.h"
#include "rseq.h"
#include "sched/actions.h"
#include "sched/thread.h"

#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>

enum { MQUEUE_MAGIC = 0x19800202 }; /* not in linux/magic.h */

/* --- descriptors ------------------------------------------------------------------------------ */

struct entry { /* linux_dirent64 of getdents64(2) */
    uint64_t inode, offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

struct found {
    bool perf, userfaultfd, mqueue;
};

static void join(char *to, const char *a, const char *b)
{
    while (*a)
        *to++ = *a++;
    while (*b)
        *to++ = *b++;
    *to = 0;
}

static bool has_folders(const char *path)
{
    for (path++; *path; path++)
        if (*path == '/')
            return true;
    return false;
}

/* Return the hexadecimal number after `name` in /proc/self/fdinfo/NUMBER; 0 if there is none. */
static uint64_t fdinfo_hex(const char *number, const char *name)
{
    char path[64], text[512];
    uint64_t n = 0;
    join(path, "/proc/self/fdinfo/", number);
    int fd = prim_open(path, O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : prim_read(fd, text, sizeof text - 1);
    prim_close(fd);
    text[size > 0 ? size : 0] = 0;
    for (const char *p = text; *p; p++) {
        size_t length = strlen(name);
        if (strlen(p) < length || memcmp(p, name, length))
            continue;
        for (p += length; *p == '\t' || *p == ' '; p++)
            ;
        for (; is_digit(*p) || (*p >= 'a' && *p <= 'f'); p++)
            n = n * 16 + (uint64_t)(is_digit(*p) ? *p - '0' : *p - 'a' + 10);
        return n;
    }
    return 0;
}

/* Keep the signalfd from reading the runtime's preemption signals. */
static void look_at_signalfd(const char *number)
{
    uint64_t mask = fdinfo_hex(number, "sigmask:");
    int fd = 0;
    if (mask & signal_bit(PREEMPT_QUIET))
        preempt_leave_quiet();
    if (!(mask & signal_bit(PREEMPT_COUNTED)))
        return;
    for (const char *p = number; *p; p++)
        fd = fd * 10 + (*p - '0');
    mask &= ~signal_bit(PREEMPT_COUNTED);
    prim_syscall4(SYS_signalfd4, fd, &mask, sizeof mask, 0);
}

static void look_at_descriptor(const char *number, struct found *f)
{
    char path[64], link[64];
    join(path, "/proc/self/fd/", number);
    long n = prim_readlink(path, link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    f->perf |= same(link, "anon_inode:[perf_event]");
    f->userfaultfd |= same(link, "anon_inode:[userfaultfd]");
    if (same(link, "anon_inode:[signalfd]"))
        look_at_signalfd(number);
    /* links of other forms are no queues: the file system of queues has no folders */
    struct statfs s;
    if (link[0] == '/' && !has_folders(link) && !prim_syscall3(SYS_statfs, path, &s, 0))
        f->mqueue |= s.f_type == MQUEUE_MAGIC;
}

static struct found look_at_descriptors(void)
{
    struct found f = {0};
    _Alignas(8) char buffer[4096];
    int folder = prim_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return f;
    for (long n; (n = prim_syscall3(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < n;) {
            const struct entry *e = (const struct entry *)(buffer + at);
            if (is_digit(e->name[0]))
                look_at_descriptor(e->name, &f);
            at += e->length;
        }
    prim_close(folder);
    return f;
}

/* --- the process ------------------------------------------------------------------------------ */

/* Return whether there are POSIX timers: they may count the thread's CPU time, or signal its kernel
 * thread. */
static bool has_timers(void)
{
    char byte;
    int fd = prim_open("/proc/self/timers", O_RDONLY | O_CLOEXEC);
    bool has = fd >= 0 && prim_read(fd, &byte, 1) == 1;
    if (fd >= 0)
        prim_close(fd);
    return has;
}

const char *takeover(void)
{
    struct found f = look_at_descriptors();
    if (f.userfaultfd)
        return REASON_USERFAULTFD;
    if (f.mqueue)
        monitor_before_mq_notify();
    sched.first_is_tied = f.perf || (!sched.uses_rseq && rseq_is_registered()) || has_timers();
    return NULL;
}
