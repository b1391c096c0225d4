/* SPDX-License-Identifier: MIT
 *
 * The parts of a mapped ELF object. Only the file-backed parts of its segments are read: they exist
 * as long as the object. The tail of a segment (bss) may not be mapped yet when the loader has just
 * begun.
 */
#include "internal.h"

#include "../prim/prim.h"
#include "../prim/text.h"

const char *elf_basename(const char *path)
{
    const char *name = path;
    for (const char *p = path; *p; p++)
        if (*p == '/' && p[1])
            name = p + 1;
    return name;
}

bool elf_readable(const struct object *o, uintptr_t addr, size_t len)
{
    for (unsigned i = 0; i < o->segments; i++)
        if (addr >= o->segment[i].lo && addr < o->segment[i].hi)
            return len <= o->segment[i].hi - addr;
    return false;
}

const struct segment *elf_code(const struct object *o, uintptr_t addr)
{
    for (unsigned i = 0; i < o->segments; i++)
        if (o->segment[i].code && addr >= o->segment[i].lo && addr < o->segment[i].hi)
            return &o->segment[i];
    return NULL;
}

bool elf_object(struct object *o, const char *name, uintptr_t bias, const Elf64_Phdr *phdr,
                unsigned phnum)
{
    *o = (struct object){.name = name, .bias = bias, .lo = UINTPTR_MAX, .code_lo = UINTPTR_MAX};
    for (unsigned i = 0; i < phnum; i++) {
        const Elf64_Phdr *p = &phdr[i];
        uintptr_t lo = bias + p->p_vaddr;
        if (p->p_type != PT_LOAD || p->p_memsz == 0)
            continue;
        /* Execute-only code cannot be read, and a segment that wraps is malformed. */
        if (!(p->p_flags & PF_R) || p->p_filesz > p->p_memsz || lo + p->p_memsz < lo)
            return false;
        if (lo < o->lo)
            o->lo = lo;
        if (lo + p->p_memsz > o->hi)
            o->hi = lo + p->p_memsz;
        if (p->p_filesz == 0)
            continue;
        if (o->segments == PATCH_MAX_SEGMENTS)
            return false;
        struct segment *s = &o->segment[o->segments++];
        *s = (struct segment){lo, lo + p->p_filesz, (p->p_flags & PF_X) != 0};
        if (s->code && s->lo < o->code_lo)
            o->code_lo = s->lo;
        if (s->code && s->hi > o->code_hi)
            o->code_hi = s->hi;
    }
    /* All that follows assumes that 32-bit displacements span the object. */
    if (o->code_hi == 0 || o->hi - o->lo >= 1ul << 31)
        return false;
    for (unsigned i = 0; i < phnum; i++)
        if (phdr[i].p_type == PT_GNU_EH_FRAME)
            eh_open(o, bias + phdr[i].p_vaddr, phdr[i].p_memsz);
    cache_note(o, phdr, phnum);
    return true;
}

/* Return the address in a dynamic section. glibc rewrites most of these pointers in place when it
 * relocates the object. Before that, and with other loaders, they are link-time addresses, which
 * lie below the load address. */
static uintptr_t dynamic_pointer(const struct object *o, uintptr_t value)
{
    return value >= o->lo ? value : value + o->bias;
}

/* Words of a table's header, which is followed by the filter, the buckets and the chains. */
enum { BUCKETS, FIRST, FILTER, SHIFT, HEADER };

static const uint32_t *gnu_buckets(const uint32_t *h) { return h + HEADER + 2ul * h[FILTER]; }

/* Return the number of symbols by the table; 0 if it is damaged. h[FIRST] if it is empty, as that
 * of an object that exports nothing: the number is then unknown. */
static size_t gnu_hash_symbols(const struct object *o, const uint32_t *h)
{
    if (!elf_readable(o, (uintptr_t)h, HEADER * sizeof *h))
        return 0;
    const uint32_t *bucket = gnu_buckets(h), *chain = bucket + h[BUCKETS];
    uint32_t last = 0;
    if (!elf_readable(o, (uintptr_t)bucket, 4ul * h[BUCKETS]))
        return 0;
    for (uint32_t i = 0; i < h[BUCKETS]; i++)
        if (bucket[i] > last)
            last = bucket[i];
    if (last < h[FIRST] || !h[BUCKETS])
        return h[FIRST];
    for (;; last++) {
        const uint32_t *link = chain + (last - h[FIRST]);
        if (!elf_readable(o, (uintptr_t)link, 4))
            return 0;
        if (*link & 1)
            return last + 1ul;
    }
}

void elf_dynamic(struct object *o, const Elf64_Phdr *phdr, unsigned phnum)
{
    uintptr_t symtab = 0, hash = 0, gnu_hash = 0, strtab = 0;
    size_t strsz = 0;
    for (unsigned i = 0; i < phnum; i++) {
        if (phdr[i].p_type != PT_DYNAMIC ||
            !elf_readable(o, o->bias + phdr[i].p_vaddr, phdr[i].p_filesz))
            continue;
        const Elf64_Dyn *d = (const Elf64_Dyn *)(o->bias + phdr[i].p_vaddr);
        const Elf64_Dyn *end = d + phdr[i].p_filesz / sizeof *d;
        for (; d < end && d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_SYMTAB)
                symtab = dynamic_pointer(o, d->d_un.d_ptr);
            else if (d->d_tag == DT_STRTAB)
                strtab = dynamic_pointer(o, d->d_un.d_ptr);
            else if (d->d_tag == DT_STRSZ)
                strsz = d->d_un.d_val;
            else if (d->d_tag == DT_HASH)
                hash = dynamic_pointer(o, d->d_un.d_ptr);
            else if (d->d_tag == DT_GNU_HASH)
                gnu_hash = dynamic_pointer(o, d->d_un.d_ptr);
            else if (d->d_tag == DT_TEXTREL ||
                     (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
                o->text_relocations = true;
        }
    }
    const uint32_t *gnu = (const uint32_t *)gnu_hash, *sysv = (const uint32_t *)hash;
    size_t count = gnu ? gnu_hash_symbols(o, gnu) : 0, exported_from = count ? gnu[FIRST] : 0;
    bool empty = count && count == exported_from;
    if ((empty || !gnu) && sysv && elf_readable(o, hash, 8))
        count = sysv[1];
    else if (empty && strtab > symtab) /* as all linkers order them */
        count = (strtab - symtab) / sizeof(Elf64_Sym);
    if (symtab && count && elf_readable(o, symtab, count * sizeof(Elf64_Sym))) {
        o->symbols = (const Elf64_Sym *)symtab;
        o->symbol_count = count;
        o->gnu_hash = gnu && !empty ? gnu : NULL;
        o->imports_end = o->gnu_hash ? exported_from : count;
        if (strsz && elf_readable(o, strtab, strsz) && ((const char *)strtab)[strsz - 1] == 0) {
            o->strings = (const char *)strtab;
            o->string_bytes = strsz;
        }
    }
}

bool elf_symbol_around(const struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi)
{
    for (size_t i = 0; i < o->symbol_count; i++) {
        const Elf64_Sym *s = &o->symbols[i];
        uintptr_t start = o->bias + s->st_value;
        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF || addr < start ||
            addr - start >= s->st_size)
            continue;
        const struct segment *g = elf_code(o, start);
        if (!g || s->st_size > g->hi - start)
            continue;
        *lo = start;
        *hi = start + s->st_size;
        return true;
    }
    return false;
}

static bool has_name(const struct object *o, const Elf64_Sym *s, const char *name)
{
    return s->st_name < o->string_bytes && same(o->strings + s->st_name, name);
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    while (*name)
        h = h * 33 + (uint8_t)*name++;
    return h;
}

const Elf64_Sym *elf_defined(const struct object *o, const char *name)
{
    const uint32_t *h = o->gnu_hash;
    if (!o->strings)
        return NULL;
    if (!h) {
        for (size_t i = 0; i < o->symbol_count; i++)
            if (o->symbols[i].st_shndx != SHN_UNDEF && has_name(o, &o->symbols[i], name))
                return &o->symbols[i];
        return NULL;
    }
    const uint32_t *bucket = gnu_buckets(h), *chain = bucket + h[BUCKETS];
    uint32_t hash = gnu_hash(name);
    for (size_t i = bucket[hash % h[BUCKETS]]; i >= h[FIRST] && i < o->symbol_count; i++) {
        uint32_t link = chain[i - h[FIRST]];
        if ((link | 1) == (hash | 1) && has_name(o, &o->symbols[i], name))
            return &o->symbols[i];
        if (link & 1)
            break;
    }
    return NULL;
}

const Elf64_Sym *elf_imported(const struct object *o, const char *name)
{
    for (size_t i = 0; o->strings && i < o->imports_end; i++)
        if (o->symbols[i].st_shndx == SHN_UNDEF && has_name(o, &o->symbols[i], name))
            return &o->symbols[i];
    return NULL;
}

uintptr_t elf_function(const struct object *o, const char *name)
{
    const Elf64_Sym *s = elf_defined(o, name);
    return s && ELF64_ST_TYPE(s->st_info) == STT_FUNC && elf_code(o, o->bias + s->st_value)
               ? o->bias + s->st_value
               : 0;
}

/* --- sections --------------------------------------------------------------------------------- */

/* Older linkers, and lld and bolt on request, put read-only data into the executable segment. In
 * such megabytes the bytes of a system call occur by accident. Only the section headers distinguish
 * data from code. They are not mapped, so they are read from the file, if there is a doubt. They
 * only decide whether such bytes are worth a warning: nothing is patched because of them. */
static void read_sections(struct object *o, int fd)
{
    Elf64_Ehdr e;
    Elf64_Shdr s[16];
    if (prim_pread(fd, &e, sizeof e, 0) != sizeof e || e.e_shentsize != sizeof *s)
        return;
    /* Check that this is the mapped file: an update may have replaced it. */
    if (!elf_readable(o, o->lo, sizeof e) || __builtin_memcmp((const void *)o->lo, &e, sizeof e))
        return;
    for (unsigned i = 0; i < e.e_shnum; i += 16) {
        unsigned n = e.e_shnum - i < 16 ? e.e_shnum - i : 16;
        if (prim_pread(fd, s, n * sizeof *s, (long)(e.e_shoff + i * sizeof *s)) !=
            (long)(n * sizeof *s)) {
            o->sections = 0;
            return;
        }
        for (unsigned k = 0; k < n; k++) {
            if ((s[k].sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR))
                continue;
            if (o->sections == sizeof o->section / sizeof *o->section) {
                o->sections = 0;
                return;
            }
            o->section[o->sections].lo = o->bias + s[k].sh_addr;
            o->section[o->sections].hi = o->bias + s[k].sh_addr + s[k].sh_size;
            o->sections++;
        }
    }
}

bool elf_may_be_code(struct object *o, uintptr_t addr)
{
    if (!o->sections_read) {
        o->sections_read = true;
        int fd = o->path ? prim_open(o->path, 02000000 /* O_CLOEXEC */) : -1;
        if (fd >= 0) {
            read_sections(o, fd);
            prim_close(fd);
        }
    }
    for (unsigned i = 0; i < o->sections; i++)
        if (addr >= o->section[i].lo && addr < o->section[i].hi)
            return true;
    return o->sections == 0;
}
