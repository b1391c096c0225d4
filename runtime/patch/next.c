/* SPDX-License-Identifier: MIT
 *
 * The function of a name in the next object that has one, as dlsym finds it with RTLD_NEXT.  Not by dlsym itself: linked to a glibc
 * of 2.34 or newer it is wanted in that version, and no older one loads a library that wants it, or starts its program.
 */
#include "internal.h"

#include "../prim/text.h"

#include <link.h>

struct search {
    const char *name;
    uintptr_t behind;
    bool behind_it;     /* its object has been seen */
    void *found;
};

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

/* The table is whole, or elf_dynamic would not have counted the symbols by it. Post: the first symbol of those that may have the
 * name, or 0: none has. */
static uint32_t first_of_bucket(const uint32_t *table, uint32_t hash)
{
    uint32_t buckets = table[0], blooms = table[2], shift = table[3];
    const uint64_t *bloom = (const uint64_t *)(table + 4);
    if (!buckets || !blooms)
        return 0;
    uint64_t word = bloom[hash / 64 % blooms], both = 1ull << hash % 64 | 1ull << (hash >> shift) % 64;
    if ((word & both) != both)
        return 0;
    return ((const uint32_t *)(bloom + blooms))[hash % buckets];
}

static bool is_function(const struct object *o, uint32_t i, const char *name)
{
    const Elf64_Sym *s = &o->symbols[i];
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_name < o->string_bytes &&
           same(o->strings + s->st_name, name);
}

static void *function_in(const struct object *o, const char *name)
{
    if (!o->symbols || !o->strings)
        return NULL;
    uint32_t i = 0, hash = gnu_hash(name);
    const uint32_t *table = (const uint32_t *)o->gnu_hash, *chain = NULL;
    if (table) {
        i = first_of_bucket(table, hash);
        if (i < table[1] || i >= o->symbol_count)
            return NULL;
        chain = table + 4 + 2ul * table[2] + table[0] - table[1];
    }
    for (; i < o->symbol_count; i++) {
        if ((!chain || (chain[i] | 1) == (hash | 1)) && is_function(o, i, name))
            return (void *)(o->bias + o->symbols[i].st_value);
        if (chain && chain[i] & 1)
            return NULL;
    }
    return NULL;
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    struct object o;
    (void)size;
    if (!elf_object(&o, "", info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
        return 0;
    if (!s->behind_it) {
        s->behind_it = s->behind >= o.lo && s->behind < o.hi;
        return 0;
    }
    elf_dynamic(&o, info->dlpi_phdr, info->dlpi_phnum);
    s->found = function_in(&o, s->name);
    return s->found != NULL;
}

void *patch_next_function(const char *name, uintptr_t behind)
{
    struct search s = { .name = name, .behind = behind };
    dl_iterate_phdr(look, &s);
    return s.found;
}
