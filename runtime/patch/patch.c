/* SPDX-License-Identifier: MIT
 *
 * Patch one object after the other: write the stubs, publish the sites, and then write the jumps.
 *
 * A jump is not written atomically: patch_startup runs before there are threads, patch_mapped
 * before the object's code can run.
 */
#include "internal.h"

#include "../prim/prim.h"

#include <link.h>
#include <sys/mman.h>

static struct patch_config config;
static uintptr_t loader_base; /* of the dynamic loader, from the auxiliary vector; 0: unknown */

/* Begin to write the windows of n sites. Returns as patch_write_begin. Pre: n > 0. */
static int begin(int mem, const struct patch_site *site, uint32_t n)
{
    uintptr_t lo = UINTPTR_MAX, hi = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (site[i].window < lo)
            lo = site[i].window;
        if (site[i].window + site[i].window_len > hi)
            hi = site[i].window + site[i].window_len;
    }
    return patch_write_begin(mem, lo, hi);
}

/* Restore the windows of sites. Pre: between patch_write_begin and patch_write_end. */
static void restore(int mem, const struct patch_site *site, size_t count)
{
    for (size_t i = count; i-- > 0;)
        patch_write(mem, site[i].window, site[i].original, site[i].window_len);
}

static void report(const struct object *o, uintptr_t offset, const char *reason)
{
    if (config.report)
        config.report(o->name, offset, reason);
}

/* --- one object ------------------------------------------------------------------------------- */

static bool begins(const char *s, const char *with)
{
    while (*with)
        if (*s++ != *with++)
            return false;
    return true;
}

static bool is_loader(const struct object *o)
{
    if (loader_base)
        return loader_base >= o->lo && loader_base < o->hi;
    /* Started as `ld.so program`: the kernel passes no base. */
    return begins(o->name, "ld-linux") || begins(o->name, "ld-2.");
}

static void refuse_all(struct object *o, const char *reason)
{
    for (size_t i = 0; i < o->sites; i++) {
        struct site *s = &o->site[i];
        if (s->refused)
            continue;
        s->refused = reason;
        s->harmless = code_not_futex(o, s);
    }
}

static void found(struct object *o)
{
    o->kind = config.object_found ? config.object_found(o->name, o->lo, o->hi) : 0;
}

int patch_redirect_to(struct record *r, uint32_t n, int mem)
{
    int err = prim_mprotect((void *)r->stubs, r->stubs_end - r->stubs, PROT_READ | PROT_EXEC);
    if (err < 0)
        return err == PATCH_ENOMEM ? err : PATCH_EACCES;
    if (n == 0)
        return 0;
    if ((err = begin(mem, r->site, n)) < 0)
        return err;
    /* Publish the sites before the first jump exists, so that a signal handler always finds the
     * site that it is in. */
    index_publish(r, n);
    for (uint32_t i = 0; i < n && err == 0; i++) {
        uint8_t bytes[32];
        stub_jump(&r->site[i], bytes);
        if (!patch_write(mem, r->site[i].window, bytes, r->site[i].window_len)) {
            restore(mem, r->site, i + 1); /* the one that failed may be half written */
            index_retire(r);
            err = PATCH_EIO;
        }
    }
    patch_write_end();
    return err;
}

/* Write the stubs of an object's sites, and the jumps. Returns 0, or a negative errno with the code
 * as it was. */
static int write_object(struct object *o, int mem, size_t count, size_t stub_bytes)
{
    struct record *r = index_record(o, count, stub_bytes + 16);
    if (!r)
        return PATCH_ENOMEM;

    uint8_t *at = (uint8_t *)r->stubs;
    uintptr_t entry = (uintptr_t)config.entry;
    /* The entry is reached through a word beside the stubs, since it may be further away than 2
     * GiB. */
    struct stub_target target = {is_loader(o) ? config.class_table_rtld : config.class_table,
                                 r->stubs};
    __builtin_memset(at, 0xcc, r->stubs_end - r->stubs);
    __builtin_memcpy(at, &entry, sizeof entry);
    at += 16;

    uint32_t n = 0;
    for (size_t i = 0; i < o->sites; i++) {
        struct site *s = &o->site[i];
        if (s->refused)
            continue;
        size_t len = stub_write(at, s, &target, &r->site[n]);
        if (!len) {
            s->refused = "an operand is out of reach";
            s->harmless = code_not_futex(o, s);
            continue;
        }
        r->site[n].object_kind = o->kind;
        r->site[n].loader = is_loader(o);
        n++;
        at += (len + 15) & ~15ul;
    }
    return patch_redirect_to(r, n, mem);
}

/* Return whether a site may get a window. Large objects often have none, and the search for targets
 * takes longest. */
static bool movable(const struct object *o)
{
    for (size_t i = 0; i < o->sites; i++)
        if (!o->site[i].refused)
            return true;
    return false;
}

int patch_find_windows(struct object *o)
{
    enum { SMALL = 65536 }; /* bytes of code that are searched faster than a file is read */
    bool keep = o->code_hi - o->code_lo > SMALL && !o->text_relocations && !target_spares();
    if (keep && cache_read(o))
        return 0;
    long found = scan_sites(o);
    if (found < 0)
        return (int)found;
    if (movable(o)) {
        int err = target_mark(o);
        if (err < 0)
            return err;
        window_choose(o);
    }
    if (keep)
        cache_write(o);
    return 0;
}

/* Patch an object. Returns the number of sites patched, or a negative errno. Sets *unsafe if the
 * process must not be managed. */
static int patch_object(struct object *o, int mem, bool relocated, const char **unsafe)
{
    int err = patch_find_windows(o);
    if (err == 0) {
        if (o->text_relocations && !relocated)
            refuse_all(o, "the loader has not relocated its code yet");
        size_t count = 0, bytes = 0;
        for (size_t i = 0; i < o->sites; i++)
            if (!o->site[i].refused) {
                count++;
                bytes += stub_bound(&o->site[i]);
            }
        if (count)
            err = write_object(o, mem, count, bytes);
    }
    if (err < 0)
        refuse_all(o, err == PATCH_ENOMEM   ? "no free memory near it"
                      : err == PATCH_EACCES ? "a policy forbids changing code"
                                            : "its code cannot be written");

    if (o->has_go)
        *unsafe = PATCH_UNSAFE_GO;
    unsigned patched = 0, left = 0;
    for (size_t i = 0; i < o->sites; i++) {
        const struct site *s = &o->site[i];
        if (!s->refused) {
            patched++;
            continue;
        }
        left++;
        if (!s->harmless && !*unsafe)
            *unsafe = PATCH_UNSAFE_CALL;
        report(o, s->syscall - o->bias, s->refused);
    }
    if (o->sites && config.object_done)
        config.object_done(o->name, patched, left);
    if (o->kind && o->kind == config.functions_in && !(o->text_relocations && !relocated))
        function_redirect(o, mem, &config);
    arena_release(o->boundary, o->boundary_bytes);
    arena_release(o->swept, o->swept_bytes);
    arena_release(o->site, o->site_bytes);
    arena_release(o->cached, o->cached_bytes);
    return err < 0 ? err : (int)patched;
}

/* --- all objects at start --------------------------------------------------------------------- */

struct loaded {
    uintptr_t bias;
    const Elf64_Phdr *phdr;
    const char *name;
    unsigned phnum;
};

struct list {
    struct loaded *entry; /* NULL: count only */
    size_t count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct list *l = arg;
    (void)size;
    if (l->entry)
        l->entry[l->count] =
            (struct loaded){info->dlpi_addr, info->dlpi_phdr, info->dlpi_name, info->dlpi_phnum};
    l->count++;
    return 0;
}

/* Read the addresses of the vdso and of the loader from the auxiliary vector. */
static void read_auxv(uintptr_t *vdso, uintptr_t *loader)
{
    Elf64_auxv_t a[8];
    *vdso = *loader = 0;
    int fd = prim_open("/proc/self/auxv", 02000000 /* O_CLOEXEC */);
    long n;
    if (fd < 0)
        return;
    while ((n = prim_read(fd, a, sizeof a)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof *a; i++) {
            if (a[i].a_type == AT_SYSINFO_EHDR)
                *vdso = a[i].a_un.a_val;
            else if (a[i].a_type == AT_BASE)
                *loader = a[i].a_un.a_val;
        }
    prim_close(fd);
}

static const char *program_name(char *buf, size_t size)
{
    long n = prim_readlink("/proc/self/exe", buf, size - 1);
    if (n <= 0)
        return "(program)";
    buf[n] = 0;
    return elf_basename(buf);
}

int patch_startup(const struct patch_config *c, const char **unsafe)
{
    static char program[512];
    uintptr_t vdso;
    struct list list = {NULL, 0};
    int total = 0, failed = 0;

    *unsafe = NULL;
    config = *c;
    patch_write_by_mprotect(c->by_mprotect);
    code_init();
    read_auxv(&vdso, &loader_base);
    int mem = patch_memory();

    /* The only call into libc, from the constructor. Nothing is patched before it has returned. */
    objects_each(collect, &list);
    size_t bytes = list.count * sizeof *list.entry;
    list = (struct list){arena_scratch(bytes), 0};
    if (!list.entry) {
        patch_memory_close(mem);
        return PATCH_ENOMEM;
    }
    objects_each(collect, &list);

    for (size_t i = 0; i < list.count; i++) {
        const struct loaded *l = &list.entry[i];
        struct object o;
        const char *name =
            l->name && *l->name ? elf_basename(l->name) : program_name(program, sizeof program);
        /* Skip the vdso: its code is shared with the kernel and has its own callers. It makes
         * system calls only if a clock needs one. */
        if (begins(name, "linux-vdso"))
            continue;
        if (!elf_object(&o, name, l->bias, l->phdr, l->phnum)) {
            report(&o, 0, "not a supported ELF object");
            continue;
        }
        if ((vdso >= o.lo && vdso < o.hi) ||
            ((uintptr_t)patch_startup >= o.lo && (uintptr_t)patch_startup < o.hi))
            continue;
        o.fixed = l->bias == 0;
        o.path = l->name && *l->name ? l->name : "/proc/self/exe";
        elf_dynamic(&o, l->phdr, l->phnum);
        found(&o);
        int n = patch_object(&o, mem, true, unsafe);
        if (n < 0)
            failed = n;
        else
            total += n;
    }
    arena_release(list.entry, bytes);
    patch_memory_close(mem);
    return total == 0 && failed < 0 ? failed : total;
}

/* --- objects loaded and unmapped later -------------------------------------------------------- */

/* Return whether [base, base+len) holds an object whose sites are in place. Forgets those of
 * objects that were unmapped unnoticed. */
static bool already_patched(uintptr_t base, size_t len)
{
    for (struct record *r = index_next(NULL); r; r = index_next(r)) {
        if (r->lo >= base + len || r->hi <= base)
            continue;
        uint8_t bytes[32];
        stub_jump(&r->site[0], bytes);
        uintptr_t at = r->site[0].window;
        if (at >= base && at + r->site[0].window_len <= base + len &&
            !__builtin_memcmp((const void *)at, bytes, r->site[0].window_len))
            return true;
        index_retire(r);
    }
    return false;
}

/* Read the program headers from the file: patchelf moves them to its end, where memory may not have
 * them at base + e_phoff. */
static bool read_headers(const Elf64_Ehdr *e, const char *path, Elf64_Phdr *phdr, unsigned max)
{
    size_t bytes = e->e_phnum * sizeof *phdr;
    if (e->e_phnum > max)
        return false;
    int fd = prim_open(path, 02000000 /* O_CLOEXEC */);
    if (fd < 0)
        return false;
    Elf64_Ehdr there;
    bool ok = prim_pread(fd, &there, sizeof there, 0) == sizeof there &&
              !__builtin_memcmp(&there, e, sizeof there) &&
              prim_pread(fd, phdr, bytes, (long)e->e_phoff) == (long)bytes;
    prim_close(fd);
    return ok;
}

int patch_mapped(uintptr_t base, size_t len, const char *name, const char **unsafe)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)base;
    struct object o;

    *unsafe = NULL;
    if (!config.entry)
        return PATCH_EINVAL;
    if (len < sizeof *e || __builtin_memcmp(e->e_ident, ELFMAG, SELFMAG) ||
        e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != EM_X86_64 || e->e_type != ET_DYN ||
        e->e_phentsize != sizeof(Elf64_Phdr))
        return PATCH_ENOEXEC;
    static Elf64_Phdr phdr[64];
    if (!read_headers(e, name, phdr, sizeof phdr / sizeof *phdr))
        return PATCH_ENOEXEC;
    uintptr_t bias = 0;
    unsigned i = 0;
    while (i < e->e_phnum && phdr[i].p_type != PT_LOAD)
        i++;
    /* The header is at base, so the first segment begins with the file. */
    if (i == e->e_phnum || phdr[i].p_offset != 0)
        return PATCH_ENOEXEC;
    bias = base - phdr[i].p_vaddr;
    if (!elf_object(&o, elf_basename(name), bias, phdr, e->e_phnum))
        return PATCH_ENOEXEC;
    for (i = 0; i < o.segments; i++)
        if (o.segment[i].lo < base || o.segment[i].hi > base + len)
            return PATCH_ENOEXEC;
    o.path = name;
    elf_dynamic(&o, phdr, e->e_phnum);
    found(&o);
    if (already_patched(base, len))
        return 0;

    int mem = patch_memory();
    int n = patch_object(&o, mem, false, unsafe);
    patch_memory_close(mem);
    return n;
}

void patch_unmapped(uintptr_t base, size_t len)
{
    for (struct record *r = index_next(NULL); r; r = index_next(r))
        if (r->lo >= base && r->lo < base + len)
            index_retire(r);
}

void patch_undo_all(void)
{
    int mem = patch_memory();
    for (struct record *r = index_next(NULL); r; r = index_next(r)) {
        if (begin(mem, r->site, r->count) < 0)
            continue; /* its jumps and its stubs stay */
        restore(mem, r->site, r->count);
        index_retire(r);
        patch_write_end();
    }
    patch_memory_close(mem);
}
