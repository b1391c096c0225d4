/* SPDX-License-Identifier: MIT
 *
 * Finding a function of another object by its name, where the loader's own way (dlsym) cannot be had.
 */
#include "internal.h"

#include "../prim/text.h"

#include <link.h>

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
    struct search s = { .name = name };
    dl_iterate_phdr(look, &s);
    return s.found;
}
