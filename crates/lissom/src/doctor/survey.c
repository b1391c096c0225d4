/* SPDX-License-Identifier: MIT
 *
 * The system calls of a file that the runtime would leave as they are: found by the runtime's own
 * search (runtime/patch), in the file as the dynamic loader would map it. Nothing of it is run.
 */
#include "patch/internal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_HEADERS = 64 };

struct left_alone {
    uint64_t offset; /* from where the object is loaded */
    int64_t number;  /* of the system call; -1: not known */
    const char *why;
};

static uintptr_t down(uintptr_t a) { return a & ~(uintptr_t)(PAGE - 1); }
static uintptr_t up(uintptr_t a) { return down(a + PAGE - 1); }

/* Maps the file's segments. Post: the first address, or NULL: it is not understood, or its place is
 * taken. */
static char *map(int fd, const Elf64_Ehdr *e, const Elf64_Phdr *phdr, uintptr_t *lowest,
                 size_t *bytes)
{
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (phdr[i].p_type != PT_LOAD)
            continue;
        lo = down(phdr[i].p_vaddr) < lo ? down(phdr[i].p_vaddr) : lo;
        hi =
            up(phdr[i].p_vaddr + phdr[i].p_memsz) > hi ? up(phdr[i].p_vaddr + phdr[i].p_memsz) : hi;
    }
    if (lo >= hi)
        return NULL;
    bool fixed = e->e_type == ET_EXEC;
    char *base = mmap(
        fixed ? (void *)lo : NULL, hi - lo, PROT_READ,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    *lowest = lo;
    *bytes = hi - lo;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        const Elf64_Phdr *p = &phdr[i];
        uintptr_t at = down(p->p_vaddr), slack = p->p_vaddr - at;
        if (p->p_type == PT_LOAD && p->p_filesz &&
            mmap(base + (at - lo), p->p_filesz + slack, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
                 (off_t)(p->p_offset - slack)) == MAP_FAILED) {
            munmap(base, hi - lo);
            return NULL;
        }
    }
    return base;
}

/* Calls found(to, ...) for each. Post: how many there are in all, redirected or not; -1: the file
 * is not understood. */
long lissom_survey(const char *path, void (*found)(void *to, const struct left_alone *), void *to);
long lissom_survey(const char *path, void (*found)(void *to, const struct left_alone *), void *to)
{
    Elf64_Ehdr e;
    Elf64_Phdr phdr[MOST_HEADERS];
    uintptr_t lowest;
    size_t bytes;
    long all = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    char *base = NULL;
    if (pread(fd, &e, sizeof e, 0) == sizeof e && e.e_phnum <= MOST_HEADERS &&
        e.e_phentsize == sizeof *phdr &&
        pread(fd, phdr, e.e_phnum * sizeof *phdr, (off_t)e.e_phoff) ==
            (ssize_t)(e.e_phnum * sizeof *phdr))
        base = map(fd, &e, phdr, &lowest, &bytes);
    close(fd);
    if (!base)
        return -1;
    code_init();
    struct object o;
    uintptr_t bias = (uintptr_t)base - lowest;
    if (elf_object(&o, elf_basename(path), bias, phdr, e.e_phnum)) {
        o.fixed = bias == 0;
        o.path = path;
        elf_dynamic(&o, phdr, e.e_phnum);
        if (patch_find_windows(&o) == 0)
            all = (long)o.sites;
        for (long i = 0; i < all; i++) {
            const struct site *s = &o.site[i];
            uint32_t number;
            if (!s->refused)
                continue;
            bool known = code_number(&o, s, &number);
            struct left_alone l = {s->syscall - bias, known ? (int64_t)number : -1, s->refused};
            found(to, &l);
        }
        arena_release(o.boundary, o.boundary_bytes);
        arena_release(o.swept, o.swept_bytes);
        arena_release(o.site, o.site_bytes);
        arena_release(o.cached, o.cached_bytes);
    }
    munmap(base, bytes);
    return all;
}
