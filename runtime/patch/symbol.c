/* SPDX-License-Identifier: MIT
 *
 * Find a function of another object by name, where dlsym cannot be used; and libc's own
 * dl_iterate_phdr. A sanitizer's would run before the sanitizer has begun.
 */
#include "internal.h"

#include "../prim/text.h"

#include <link.h>

typedef int iterate_function(int (*)(struct dl_phdr_info *, size_t, void *), void *);

extern struct r_debug _r_debug __attribute__((weak)); /* the dynamic loader's */

/* Fill in *o for libc, without what elf_dynamic finds. Returns its header, which is mapped as it is
 * in the file, or NULL. */
static const Elf64_Ehdr *libc_object(struct object *o)
{
    for (struct link_map *m = &_r_debug ? _r_debug.r_map : NULL; m; m = m->l_next) {
        const Elf64_Ehdr *e = (const Elf64_Ehdr *)m->l_addr;
        if (e && m->l_name && same(elf_basename(m->l_name), "libc.so.6") &&
            !__builtin_memcmp(e->e_ident, ELFMAG, SELFMAG))
            return e->e_phoff == sizeof *e && elf_object(o, m->l_name, m->l_addr,
                                                         (const Elf64_Phdr *)(e + 1), e->e_phnum)
                       ? e
                       : NULL;
    }
    return NULL;
}

bool libc_code(uintptr_t *lo, uintptr_t *hi)
{
    struct object o;
    if (!libc_object(&o))
        return false;
    for (unsigned i = 0; i < o.segments; i++)
        if (o.segment[i].code) {
            *lo = o.segment[i].lo;
            *hi = o.segment[i].hi;
            return true;
        }
    return false;
}

static iterate_function *libcs_own(void)
{
    struct object o;
    const Elf64_Ehdr *e = libc_object(&o);
    if (!e)
        return NULL;
    elf_dynamic(&o, (const Elf64_Phdr *)(e + 1), e->e_phnum);
    return (iterate_function *)elf_function(&o, "dl_iterate_phdr");
}

void objects_each(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    iterate_function *iterate = libcs_own();
    (iterate ? iterate : dl_iterate_phdr)(f, argument);
}

struct search {
    const char *name;
    uintptr_t found;
    bool behind; /* this library's object has been seen */
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *s = arg;
    struct object o;
    if (!elf_object(&o, info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
        return 0;
    if ((uintptr_t)look >= o.lo && (uintptr_t)look < o.hi)
        s->behind = true;
    else if (s->behind) {
        elf_dynamic(&o, info->dlpi_phdr, info->dlpi_phnum);
        s->found = elf_function(&o, s->name);
    }
    return s->found != 0;
}

uintptr_t patch_function_behind(const char *name)
{
    struct search s = {.name = name};
    objects_each(look, &s);
    return s.found;
}
