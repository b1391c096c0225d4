/* SPDX-License-Identifier: MIT */
#include "report.h"
#include "prim/prim.h"

#include <stdarg.h>

struct line {
    char text[512];
    size_t used;
};

static void put(struct line *l, char c)
{
    if (l->used < sizeof l->text)
        l->text[l->used++] = c;
}

static void put_number(struct line *l, unsigned n, unsigned base)
{
    char digits[16];
    int i = 0;
    do
        digits[i++] = "0123456789abcdef"[n % base];
    while (n /= base);
    while (i)
        put(l, digits[--i]);
}

void report(const char *format, ...)
{
    struct line l = {.used = 0};
    va_list args;
    va_start(args, format);
    for (const char *p = "lissom: "; *p; p++)
        put(&l, *p);
    for (const char *p = format; *p; p++) {
        if (*p != '%') {
            put(&l, *p);
            continue;
        }
        switch (*++p) {
        case 's':
            for (const char *s = va_arg(args, const char *); *s; s++)
                put(&l, *s);
            break;
        case 'u': put_number(&l, va_arg(args, unsigned), 10); break;
        case 'x': put_number(&l, va_arg(args, unsigned), 16); break;
        }
    }
    va_end(args);
    put(&l, '\n');
    prim_write(2, l.text, l.used);
}
