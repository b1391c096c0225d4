/* SPDX-License-Identifier: MIT */
#include "rseq.h"
#include "patch/internal.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_RSEQ_FEATURE_SIZE /* Linux 6.3 */
#define AT_RSEQ_FEATURE_SIZE 27
#define AT_RSEQ_ALIGN 28
#endif

enum {
    BYTES = 32, /* of an area in the first version of the interface */
    UNREGISTER = 1,
    SIGNATURE = 0x53053053, /* in front of where sequences are aborted to; glibc's on x86 */
    NOT_HERE = -38,         /* ENOSYS */
};

bool rseq_is_registered(void)
{
    static _Alignas(BYTES) char area[BYTES];
    /* a second one is refused */
    if (prim_syscall4(SYS_rseq, area, BYTES, 0, SIGNATURE))
        return prim_syscall4(SYS_rseq, area, BYTES, UNREGISTER, SIGNATURE) != NOT_HERE;
    prim_syscall4(SYS_rseq, area, BYTES, UNREGISTER, SIGNATURE);
    return false;
}

/* --- glibc's areas ---------------------------------------------------------------------------- */

struct areas {
    bool used;               /* by an object that is neither the loader nor libc */
    uint32_t *size;          /* __rseq_size: that there are some; NULL before glibc 2.35 */
    const ptrdiff_t *offset; /* __rseq_offset: where, from the thread pointer */
};

extern struct r_debug _r_debug __attribute__((weak)); /* the dynamic loader's */

static int look(struct dl_phdr_info *info, size_t size, void *areas)
{
    struct areas *a = areas;
    struct object o;
    (void)size;
    if (same(elf_basename(info->dlpi_name), "libc.so.6") ||
        !elf_object(&o, info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum))
        return 0;
    elf_dynamic(&o, info->dlpi_phdr, info->dlpi_phnum);
    const Elf64_Sym *s = elf_symbol(&o, "__rseq_offset");
    if (!s)
        return 0;
    if (o.bias != _r_debug.r_ldbase) {
        a->used = true; /* by an import, or by a copy of the loader's */
        return 0;
    }
    a->offset = (const ptrdiff_t *)(o.bias + s->st_value);
    s = elf_symbol(&o, "__rseq_size");
    a->size = s ? (uint32_t *)(o.bias + s->st_value) : NULL;
    return 0;
}

/* The word is among what the loader has made read-only. */
static bool write_word(uint32_t *at, uint32_t value)
{
    void *page = (void *)((uintptr_t)at & ~(PATCH_PAGE - 1));
    int memory = patch_memory();
    bool written = patch_write(memory, (uintptr_t)at, &value, sizeof value);
    patch_memory_close(memory);
    if (written || prim_mprotect(page, PATCH_PAGE, PROT_READ | PROT_WRITE))
        return written;
    *at = value;
    prim_mprotect(page, PATCH_PAGE, PROT_READ);
    return true;
}

/* glibc has registered the first version's size, or from 2.41 on what the kernel knows. */
static bool unregister(char *area)
{
    uint64_t known = getauxval(AT_RSEQ_FEATURE_SIZE), unit = getauxval(AT_RSEQ_ALIGN);
    uint64_t bytes = unit ? (known + unit - 1) / unit * unit : 0;
    return !prim_syscall4(SYS_rseq, area, BYTES, UNREGISTER, SIGNATURE) ||
           !prim_syscall4(SYS_rseq, area, bytes, UNREGISTER, SIGNATURE);
}

/* New threads have an area if the one that makes them has. Objects that are loaded later, and those
 * that ask dlsym(3), learn by the size that there are none. */
bool rseq_end_of_libc(void)
{
    struct areas a = {0};
    objects_each(look, &a);
    if (!a.size || !*a.size)
        return true;
    uint32_t size = *a.size;
    if (a.used || !write_word(a.size, 0))
        return false;
    if (unregister((char *)__builtin_thread_pointer() + *a.offset))
        return true;
    write_word(a.size, size);
    return false;
}
