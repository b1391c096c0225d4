/* SPDX-License-Identifier: MIT */
#include "prim/maps.h"
#include "prim/prim.h"

#include <sys/mman.h>

enum { SIZE = 65536 }; /* longer than any line */

static const char *hex(const char *p, const char *end, uintptr_t *value)
{
    *value = 0;
    for (; p < end; p++) {
        unsigned digit =
            *p >= '0' && *p <= '9' ? (unsigned)(*p - '0') : (unsigned)(*p | 32) - 'a' + 10;
        if (digit > 15)
            break;
        *value = *value << 4 | digit;
    }
    return p;
}

/* Return the position behind the next space. */
static const char *field(const char *p, const char *end)
{
    while (p < end && *p != ' ')
        p++;
    return p < end ? p + 1 : p;
}

static bool ends_with(const char *p, const char *end, const char *with, long n)
{
    return end - p > n && !__builtin_memcmp(end - n, with, (size_t)n);
}

/* Parse a line: "lo-hi rwxp offset major:minor inode   name". */
static struct mapping parse(const char *p, const char *end)
{
    struct mapping m = {.stack = ends_with(p, end, "[stack]", 7),
                        .heap = ends_with(p, end, "[heap]", 6)};
    p = hex(p, end, &m.lo);
    p = field(hex(p + 1, end, &m.hi), end);
    if (end - p >= 4) {
        m.readable = p[0] == 'r';
        m.writable = p[1] == 'w';
        m.executable = p[2] == 'x';
        m.is_private = p[3] == 'p';
    }
    uintptr_t offset;
    hex(p = field(p, end), end, &offset);
    m.offset = offset;
    p = field(field(p, end), end);
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        m.inode = m.inode * 10 + (uint64_t)(*p - '0');
    while (p < end && *p == ' ')
        p++;
    m.name = p;
    m.name_length = (uint32_t)(end - p);
    return m;
}

bool maps_walk(bool (*f)(void *, const struct mapping *), void *argument)
{
    int fd = prim_open("/proc/self/maps", 02000000 /* O_CLOEXEC */);
    if (fd < 0)
        return false;
    char *text = prim_mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t have = 0;
    long n = -1;
    bool going = !prim_is_error(text);
    while (going && (n = prim_read(fd, text + have, SIZE - have)) > 0) {
        const char *p = text, *end = text + have + n, *line_end;
        for (; going; p = line_end + 1) {
            for (line_end = p; line_end < end && *line_end != '\n'; line_end++)
                ;
            if (line_end == end)
                break;
            struct mapping m = parse(p, line_end);
            going = f(argument, &m);
        }
        have = (size_t)(end - p);
        __builtin_memmove(text, p, have);
    }
    if (!prim_is_error(text))
        prim_munmap(text, SIZE);
    prim_close(fd);
    return n >= 0;
}
