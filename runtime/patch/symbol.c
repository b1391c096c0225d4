/* SPDX-License-Identifier: MIT
 *
 * Finding a function of another object by its name, where the loader's own way (dlsym) cannot be
 * had; and libc's own dl_iterate_phdr. A sanitizer's would run before the sanitizer has begun.
 */
#include "internal.h"

#include "../prim/text.h"

#include <link.h>

typedef int iterate_function(int (*)(struct dl_phdr_info *, size_t, void *), void *);

extern struct r_debug _r_debug __attribute__((weak)); /* the dynamic loader's */

static iterate_function *libcs_own(void)
{
    for (struct link_map *m = &_r_debug ? _r_debug.r_map : NULL; m; m = m->l_next) {
        const Elf64_Ehdr *e = (const Elf64_Ehdr *)m->l_addr;
        struct object o;
        if (!m->l_name || !same(elf_basename(m->l_name), "libc.so.6") ||
            __builtin_memcmp(e->e_ident, ELFMAG, SELFMAG))
            continue;
        const Elf64_Phdr *phdr = (const Elf64_Phdr *)(m->l_addr + e->e_phoff);
        if (e->e_phoff != sizeof *e || !elf_object(&o, m->l_name, m->l_addr, phdr, e->e_phnum))
            return NULL;
        elf_dynamic(&o, phdr, e->e_phnum);
        return (iterate_function *)elf_function(&o, "dl_iterate_phdr");
    }
    return NULL;
}

void objects_each(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    iterate_function *iterate = libcs_own();
    (iterate ? iterate : dl_iterate_phdr)(f, argument);
}

struct search {
    const char *name;
    uintptr_t found;
    bool behind; /* our own object has been seen */
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
