/* SPDX-License-Identifier: MIT */
#include "rseq.h"
#include "patch/internal.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <link.h>
#include <sys/mman.h>

enum {
    BYTES = 32, /* size of an area in the first version of the interface */
    UNREGISTER = 1,
    SIGNATURE = 0x53053053, /* in front of each abort handler; glibc's on x86 */
    ANOTHER = -22,          /* EINVAL: another area is registered */
};

bool rseq_is_registered(void)
{
    static _Alignas(BYTES) char area[BYTES];
    long refused = prim_syscall4(SYS_rseq, area, BYTES, 0, SIGNATURE);
    if (!refused)
        prim_syscall4(SYS_rseq, area, BYTES, UNREGISTER, SIGNATURE);
    return refused == ANOTHER;
}

/* --- glibc's areas ---------------------------------------------------------------------------- */

extern struct r_debug _r_debug __attribute__((weak)); /* the dynamic loader's */

/* Set *used if an object other than the loader and libc uses glibc's areas. */
static int look_for_use(struct dl_phdr_info *info, size_t size, void *used)
{
    struct object o;
    (void)size;
    if (info->dlpi_addr == _r_debug.r_ldbase || same(elf_basename(info->dlpi_name), "libc.so.6"))
        return 0;
    if (elf_object(&o, info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum)) {
        elf_dynamic(&o, info->dlpi_phdr, info->dlpi_phnum);
        /* a program may have a copy of the loader's variable */
        *(bool *)used |= elf_imported(&o, "__rseq_offset") || elf_defined(&o, "__rseq_offset");
    } else {
        *(bool *)used |= o.code_hi != 0; /* cannot be parsed: assume use, if it has code */
    }
    return 0;
}

struct areas {
    uint32_t *size;          /* __rseq_size: bytes registered; NULL before glibc 2.35 */
    const ptrdiff_t *offset; /* __rseq_offset: from the thread pointer */
};

/* Find glibc's variables in the loader's own tables. If they do not exist, dlsym(3) would leave an
 * error for the program. */
static struct areas areas(void)
{
    struct object o;
    const Elf64_Ehdr *e = &_r_debug ? (const Elf64_Ehdr *)_r_debug.r_ldbase : NULL;
    const Elf64_Phdr *phdr = (const Elf64_Phdr *)(e + 1);
    struct areas a = {NULL, NULL};
    if (!e || __builtin_memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_phoff != sizeof *e ||
        !elf_object(&o, "", (uintptr_t)e, phdr, e->e_phnum))
        return a;
    elf_dynamic(&o, phdr, e->e_phnum);
    const Elf64_Sym *size = elf_defined(&o, "__rseq_size"),
                    *offset = elf_defined(&o, "__rseq_offset");
    if (size && offset) {
        a.size = (uint32_t *)(o.bias + size->st_value);
        a.offset = (const ptrdiff_t *)(o.bias + offset->st_value);
    }
    return a;
}

/* Write a word that the loader has made read-only. No other thread exists that could see it
 * change. */
static bool write_word(uint32_t *at, uint32_t value)
{
    void *page = (void *)((uintptr_t)at & ~(PATCH_PAGE - 1));
    if (prim_mprotect(page, PATCH_PAGE, PROT_READ | PROT_WRITE))
        return false;
    *at = value;
    prim_mprotect(page, PATCH_PAGE, PROT_READ);
    return true;
}

/* New threads have an area if their creator has one. Objects that are loaded later, and callers of
 * dlsym(3), see by the size that there are none. */
bool rseq_end_of_libc(void)
{
    bool used = false;
    struct areas a = areas();
    if (!a.size || !*a.size)
        return true;
    uint32_t size = *a.size;
    objects_each(look_for_use, &used);
    if (used || !write_word(a.size, 0))
        return false;
    /* the size that glibc has registered: __rseq_size may be less, but not more */
    if (!prim_syscall4(SYS_rseq, (char *)__builtin_thread_pointer() + *a.offset,
                       size < BYTES ? BYTES : size, UNREGISTER, SIGNATURE))
        return true;
    write_word(a.size, size);
    return false;
}
