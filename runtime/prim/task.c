/* SPDX-License-Identifier: MIT */
#include "prim/task.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <fcntl.h>
#include <string.h>

/* fields of proc(5), stat, from `state`, the first after the name, to `processor` */
enum { FIELDS_BEFORE_CPU = 36 };

enum { TEXT = 512 };

/* Read a file of the thread, NUL-terminated. Returns false if that fails. name: at most 15
 * characters. */
static bool read_text(int32_t tid, const char *name, char text[static TEXT])
{
    char path[48] = "/proc/self/task/";
    memcpy(write_number(path + strlen(path), (uint32_t)tid), name, strlen(name) + 1);
    int fd = prim_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long bytes = prim_read(fd, text, TEXT - 1);
    prim_close(fd);
    if (bytes <= 0)
        return false;
    text[bytes] = 0;
    return true;
}

static const char *read_number(const char *from, uint64_t *n)
{
    for (*n = 0; is_digit(*from); from++)
        *n = *n * 10 + (uint64_t)(*from - '0');
    return from;
}

bool task_times(int32_t tid, uint64_t *ran, uint64_t *delay)
{
    char text[TEXT];
    if (!read_text(tid, "/schedstat", text))
        return false;
    const char *p = read_number(text, ran);
    if (!*ran || *p != ' ') /* zero: the kernel does not count */
        return false;
    read_number(p + 1, delay);
    return true;
}

bool task_stat(int32_t tid, struct task_stat *s)
{
    char text[TEXT];
    if (!read_text(tid, "/stat", text))
        return false;
    char *after = text;
    for (char *c = text; *c; c++)
        if (*c == ')') /* the name may contain some */
            after = c;
    int blanks = 0;
    const char *p = after;
    for (; *p && blanks <= FIELDS_BEFORE_CPU; p++)
        blanks += *p == ' ';
    if (!is_digit(*p))
        return false;
    s->state = after[2];
    uint64_t cpu;
    read_number(p, &cpu);
    s->cpu = (long)cpu;
    return true;
}

bool task_is_traced(int32_t tid)
{
    static const char key[] = "TracerPid:\t"; /* in one of the first lines */
    char text[TEXT];
    size_t matched = 0;
    if (!read_text(tid, "/status", text))
        return false;
    for (const char *c = text; *c; c++) {
        if (matched == sizeof key - 1)
            return *c != '0';
        matched = *c == key[matched] ? matched + 1 : *c == key[0];
    }
    return false;
}
