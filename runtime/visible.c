/* SPDX-License-Identifier: MIT */
#include "visible.h"
#include "calls.h"
#include "monitor/limit.h"
#include "prim/prim.h"
#include "prim/text.h"
#include "sched/actions.h"
#include "sched/bind.h"
#include "sched/user.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum content {
    LIST,   /* the numbers of the CPUs, as ranges */
    BLOCKS, /* a block of lines for each CPU, which begins with its number */
    LINES,  /* a line for each CPU, and others */
};

static const struct file {
    const char *path;
    const char *begin; /* of the line with a CPU's number, which follows it */
    enum content content;
} files[] = {
    {"/sys/devices/system/cpu/online", NULL, LIST},
    {"/proc/cpuinfo", "processor\t: ", BLOCKS},
    {"/proc/stat", "cpu", LINES},
};

enum { FILES = sizeof files / sizeof *files, LONGEST = 32 /* path, with its NUL */ };

static bool is_on, is_whole;

bool visible_is_limited(void) { return is_on; }

/* Set *m to the visible CPUs. Returns false if these are all CPUs of the process. */
static bool visible_mask(struct cpu_mask *m)
{
    if (!is_on)
        return false;
    *m = *cpus_of_process();
    uint32_t left = cpus_limit_last(is_whole);
    if (!m->bytes || left >= cpus_count(m))
        return false;
    for (uint32_t i = 0; i < CPU_MASK_WORDS; i++) {
        uint64_t kept = 0;
        for (uint64_t rest = m->word[i]; rest && left; rest &= rest - 1, left--)
            kept |= rest & -rest;
        m->word[i] = kept;
    }
    return true;
}

static bool equal(const struct cpu_mask *a, const struct cpu_mask *b)
{
    return memcmp(a->word, b->word, sizeof a->word) == 0;
}

void visible_limit(struct cpu_mask *m)
{
    struct cpu_mask visible;
    if (is_on && equal(m, cpus_of_process()) && visible_mask(&visible))
        *m = visible;
}

bool visible_is(const struct cpu_mask *mask)
{
    struct cpu_mask visible;
    return visible_mask(&visible) && equal(mask, &visible);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Return the file that the program opens by a path of its own memory; NULL: another, or the memory
 * is bad. */
static const struct file *file_at(const struct thread *t, uintptr_t path)
{
    char text[LONGEST];
    for (uint32_t n = 0; n < LONGEST; n++) {
        bool any = false;
        if (user_copy(t, text + n, (const void *)(path + n), 1))
            return NULL;
        for (uint32_t i = 0; i < FILES; i++)
            if (memcmp(files[i].path, text, n + 1) == 0) {
                if (!text[n])
                    return &files[i];
                any = true;
            }
        if (!any)
            return NULL;
    }
    return NULL;
}

enum { BUFFER = 16384 /* longer than any line of these files */ };

static bool write_all(int fd, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        long n = prim_syscall3(SYS_write, fd, text + at, bytes - at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool has(const struct cpu_mask *m, uint64_t cpu)
{
    return cpu < CPU_MASK_WORDS * 64 && (m->word[cpu / 64] >> (cpu % 64) & 1);
}

/* Write ranges such as 0-1,4. */
static bool write_list(int to, const struct cpu_mask *m)
{
    bool is_first = true, done = true;
    for (uint32_t cpu = 0, last; cpu < CPU_MASK_WORDS * 64; cpu = last + 1) {
        last = cpu;
        if (!has(m, cpu))
            continue;
        while (has(m, last + 1))
            last++;
        char range[32], *end = range;
        if (!is_first)
            *end++ = ',';
        end = write_number(end, cpu);
        if (last > cpu) {
            *end++ = '-';
            end = write_number(end, last);
        }
        done = done && write_all(to, range, (size_t)(end - range));
        is_first = false;
    }
    return done && write_all(to, "\n", 1);
}

/* Return whether the line names a CPU, and set *cpu. */
static bool names_cpu(const struct file *file, const char *line, const char *end, uint64_t *cpu)
{
    size_t n = strlen(file->begin);
    if ((size_t)(end - line) <= n || memcmp(line, file->begin, n) != 0 || !is_digit(line[n]))
        return false;
    *cpu = 0;
    for (const char *p = line + n; p < end && is_digit(*p) && *cpu < 1 << 20; p++)
        *cpu = *cpu * 10 + (uint64_t)(*p - '0');
    return true;
}

/* Copy the lines of visible CPUs, and those of none. */
static bool write_lines(int to, int from, const struct file *file, const struct cpu_mask *m,
                        char *buffer)
{
    bool is_shown = true;
    size_t used = 0;
    for (;;) {
        long n = prim_read(from, buffer + used, BUFFER - used);
        if (n < 0)
            return false;
        used += (size_t)n;
        char *line = buffer, *const end = buffer + used;
        for (char *p = line; p < end; p++) {
            uint64_t cpu;
            if (*p != '\n')
                continue;
            if (names_cpu(file, line, p, &cpu))
                is_shown = has(m, cpu);
            else if (file->content == LINES)
                is_shown = true;
            if (is_shown && !write_all(to, line, (size_t)(p + 1 - line)))
                return false;
            line = p + 1;
        }
        used = (size_t)(end - line);
        memmove(buffer, line, used);
        if (n == 0 || used == BUFFER)
            return n == 0;
    }
}

/* Return a descriptor of a copy that only has the visible CPUs, at its beginning; negative: there
 * is none. */
static int copy_of(const struct file *file, const struct cpu_mask *m, bool is_closed_on_exec)
{
    int to = (int)prim_syscall3(SYS_memfd_create, file->path + 1,
                                is_closed_on_exec ? MFD_CLOEXEC : 0, 0);
    if (to < 0)
        return to;
    bool done = false;
    if (file->content == LIST) {
        done = write_list(to, m);
    } else {
        int from = prim_open(file->path, O_RDONLY | O_CLOEXEC);
        void *memory =
            prim_mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        done = from >= 0 && !prim_is_error(memory) && write_lines(to, from, file, m, memory);
        if (from >= 0)
            prim_close(from);
        if (!prim_is_error(memory))
            prim_munmap(memory, BUFFER);
    }
    if (done && prim_syscall3(SYS_lseek, to, 0, SEEK_SET) == 0)
        return to;
    prim_close(to);
    return -1;
}

static long open_call(struct thread *t, struct user_registers *r, uintptr_t path, long flags)
{
    struct cpu_mask m;
    const struct file *file;
    if (flags & (O_ACCMODE | O_DIRECTORY | O_PATH) || !(file = file_at(t, path)) ||
        !visible_mask(&m))
        return ACTION_DIRECT;
    int fd = copy_of(file, &m, flags & O_CLOEXEC);
    if (fd < 0)
        return ACTION_DIRECT;
    r->rax = fd;
    return ACTION_RETURN;
}

static long open_first(struct thread *t, struct user_registers *r)
{
    return open_call(t, r, (uintptr_t)r->rdi, r->rsi);
}

static long open_second(struct thread *t, struct user_registers *r)
{
    return open_call(t, r, (uintptr_t)r->rsi, r->rdx);
}

void visible_begin(bool whole)
{
    is_whole = whole;
    is_on = true;
    calls_handle(SYS_open, open_first);
    calls_handle(SYS_openat, open_second);
}
