/* SPDX-License-Identifier: MIT */
#include "prim/task.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <fcntl.h>
#include <string.h>

enum { FIELDS_BEFORE_CPU = 36 }; /* of proc(5), stat: from `state`, the first after the name, to `processor` */

bool task_stat(int32_t tid, struct task_stat *s)
{
    char path[40] = "/proc/self/task/", text[512];
    memcpy(write_number(path + strlen(path), (uint32_t)tid), "/stat", 6);
    int fd = prim_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long bytes = prim_read(fd, text, sizeof text - 1);
    prim_close(fd);
    if (bytes <= 0)
        return false;
    text[bytes] = 0;
    char *after = text;
    for (char *c = text; *c; c++)
        if (*c == ')') /* the name may hold some */
            after = c;
    int blanks = 0;
    const char *p = after;
    for (; *p && blanks <= FIELDS_BEFORE_CPU; p++)
        blanks += *p == ' ';
    if (!is_digit(*p))
        return false;
    s->state = after[2];
    s->cpu = 0;
    for (; is_digit(*p); p++)
        s->cpu = s->cpu * 10 + (*p - '0');
    return true;
}
