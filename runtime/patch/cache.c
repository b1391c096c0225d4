/* SPDX-License-Identifier: MIT
 *
 * Store the sites of an object and their windows in a file, so that the next process need not
 * search for them. A search takes 6 ms for libc, and up to a second for objects of 100 MB.
 *
 * A file is for one build of an object (its build ID and its size in memory) and of the runtime. It
 * is only trusted if only this user can have written it: the user owns the folder and the file, and
 * no other user may write them. Besides, a checksum detects a damaged file, and each window has to
 * hold the bytes that it had.
 */
#include "internal.h"

#include "../prim/prim.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
    ID_BYTES = 20, /* the beginning of longer ones */
    MAX_BYTES = 16 << 20,
    FOLDER = 512,
    NAME = 64,
};
#define MAGIC 0x316574697373696cull /* "lissite1" */

struct entry {
    uint32_t syscall, window; /* relative to the object's lowest byte */
    uint8_t window_len, before, after, harmless;
    char refused[52]; /* empty: it has a window */
    uint8_t original[32];
};
struct header {
    uint64_t magic;
    uint8_t writer[ID_BYTES], object[ID_BYTES]; /* build IDs */
    uint64_t span;                              /* bytes that the object occupies */
    uint64_t sum;                               /* of the entries */
    uint64_t sites;
};

static char folder[FOLDER];
static uint8_t writer[ID_BYTES];
static bool usable;

/* --- notes ------------------------------------------------------------------------------------ */

static bool is_note(const Elf64_Nhdr *n, const char name[4], uint32_t type)
{
    return n->n_type == type && n->n_namesz == 4 && !__builtin_memcmp(n + 1, name, 4);
}

/* Read GNU's build ID, and whether there is one of Go's linker, from the notes [at, end). */
static void look_at_notes(struct object *o, uintptr_t at, uintptr_t end)
{
    enum { GO_BUILD_ID = 4 };
    while (end - at >= sizeof(Elf64_Nhdr) && at < end) {
        const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
        uintptr_t name = at + sizeof *n, text = name + ((n->n_namesz + 3) & ~3u),
                  next = text + ((n->n_descsz + 3) & ~3u);
        if (next > end || next <= at)
            return;
        o->has_go |= is_note(n, "Go\0", GO_BUILD_ID);
        if (!o->has_id && is_note(n, "GNU", NT_GNU_BUILD_ID) && n->n_descsz >= 8) {
            o->has_id = true;
            __builtin_memcpy(o->id, (const void *)text,
                             n->n_descsz < ID_BYTES ? n->n_descsz : ID_BYTES);
        }
        at = next;
    }
}

void cache_note(struct object *o, const Elf64_Phdr *phdr, unsigned phnum)
{
    for (unsigned i = 0; i < phnum; i++)
        if (phdr[i].p_type == PT_NOTE &&
            elf_readable(o, o->bias + phdr[i].p_vaddr, phdr[i].p_filesz))
            look_at_notes(o, o->bias + phdr[i].p_vaddr,
                          o->bias + phdr[i].p_vaddr + phdr[i].p_filesz);
}

/* --- the folder ------------------------------------------------------------------------------- */

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

static bool is_own(const struct stat *s)
{
    return s->st_uid == (uint32_t)prim_syscall3(SYS_geteuid, 0, 0, 0) && !(s->st_mode & 022);
}

bool patch_cache_in(const char *base, const char *below)
{
    struct stat s;
    const Elf64_Phdr *phdr = (const Elf64_Phdr *)((uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
    size_t n = base ? __builtin_strlen(base) : 0, m = __builtin_strlen(below);
    if (!n || *base != '/' || n + m >= FOLDER - NAME)
        return false;
    __builtin_memcpy(folder, base, n);
    __builtin_memcpy(folder + n, below, m + 1);
    if (prim_syscall4(SYS_newfstatat, AT_FDCWD, folder, &s, AT_SYMLINK_NOFOLLOW) ||
        !S_ISDIR(s.st_mode) || !is_own(&s))
        return false;
    struct object own = {0};
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (phdr[i].p_type == PT_NOTE) {
            uintptr_t at = (uintptr_t)&__ehdr_start + phdr[i].p_vaddr;
            look_at_notes(&own, at, at + phdr[i].p_filesz);
        }
    usable = own.has_id;
    __builtin_memcpy(writer, own.id, ID_BYTES);
    return true;
}

/* Store the path of the object's file. suffix: appended to it. */
static void path_of(const struct object *o, const char *suffix, char path[FOLDER])
{
    static const char hex[] = "0123456789abcdef";
    size_t n = __builtin_strlen(folder);
    __builtin_memcpy(path, folder, n);
    __builtin_memcpy(path + n, "/sites-", 7);
    n += 7;
    for (unsigned i = 0; i < ID_BYTES; i++) {
        path[n++] = hex[o->id[i] >> 4];
        path[n++] = hex[o->id[i] & 15];
    }
    do
        path[n++] = *suffix;
    while (*suffix++);
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t sum_of(const struct entry *e, uint64_t sites)
{
    const uint64_t *word = (const uint64_t *)e;
    uint64_t sum = sites;
    for (uint64_t i = 0; i < sites * sizeof *e / 8; i++)
        sum = (sum ^ word[i]) * 0x100000001b3ull;
    return sum;
}
_Static_assert(sizeof(struct entry) % 8 == 0 && sizeof(struct header) % 8 == 0, "whole words");

/* Read the object's file into scratch memory of *bytes. Returns NULL if that fails. */
static struct header *load(const struct object *o, size_t *bytes)
{
    char path[FOLDER];
    struct stat s;
    struct header *h = NULL;
    path_of(o, "", path);
    int fd = prim_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    if (!prim_syscall3(SYS_fstat, fd, &s, 0) && S_ISREG(s.st_mode) && is_own(&s) &&
        s.st_size >= (long)sizeof *h && s.st_size <= MAX_BYTES) {
        *bytes = (size_t)s.st_size;
        h = arena_scratch(*bytes);
        if (h && prim_read(fd, h, *bytes) != (long)*bytes) {
            arena_release(h, *bytes);
            h = NULL;
        }
    }
    prim_close(fd);
    return h;
}

static bool is_for(const struct header *h, size_t bytes, const struct object *o)
{
    return h->magic == MAGIC && !__builtin_memcmp(h->writer, writer, ID_BYTES) &&
           !__builtin_memcmp(h->object, o->id, ID_BYTES) && h->span == o->hi - o->lo &&
           h->sites <= MAX_BYTES / sizeof(struct entry) &&
           bytes == sizeof *h + h->sites * sizeof(struct entry) &&
           h->sum == sum_of((const struct entry *)(h + 1), h->sites);
}

static bool holds(const struct object *o, const struct entry *e)
{
    uintptr_t call = o->lo + e->syscall, window = o->lo + e->window;
    const struct segment *s = elf_code(o, call);
    if (!s || s->hi - call < 2 || __builtin_memcmp((const void *)call, "\x0f\x05", 2) ||
        e->refused[sizeof e->refused - 1])
        return false;
    return e->refused[0] ||
           (e->window_len >= 5 && e->window_len <= sizeof e->original && window >= s->lo &&
            window <= call && window + e->window_len >= call + 2 &&
            window + e->window_len <= s->hi &&
            !__builtin_memcmp((const void *)window, e->original, e->window_len));
}

bool cache_read(struct object *o)
{
    size_t bytes;
    struct header *h = usable && o->has_id ? load(o, &bytes) : NULL;
    if (!h)
        return false;
    const struct entry *e = (const struct entry *)(h + 1);
    bool good = is_for(h, bytes, o);
    for (uint64_t i = 0; good && i < h->sites; i++)
        good = holds(o, &e[i]);
    if (good && h->sites) {
        o->site_bytes = h->sites * sizeof *o->site;
        o->site = arena_scratch(o->site_bytes);
        good = o->site != NULL;
    }
    if (!good) {
        arena_release(h, bytes);
        return false;
    }
    for (uint64_t i = 0; i < h->sites; i++)
        o->site[i] = (struct site){.syscall = o->lo + e[i].syscall,
                                   .fn_lo = o->lo + e[i].window,
                                   .fn_hi = o->lo + e[i].window + e[i].window_len,
                                   .refused = e[i].refused[0] ? e[i].refused : NULL,
                                   .harmless = e[i].harmless,
                                   .before = e[i].before,
                                   .after = e[i].after,
                                   .window = o->lo + e[i].window,
                                   .window_len = e[i].window_len};
    o->sites = h->sites;
    o->cached = h; /* the reasons point into it */
    o->cached_bytes = bytes;
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Write under another name first, so that no process reads half a file. */
static void store(const struct object *o, const struct header *h, size_t bytes)
{
    char suffix[16] = ".", path[FOLDER], temporary[FOLDER];
    long pid = prim_pid();
    char *end = suffix + 1;
    for (; pid; pid /= 10)
        *end++ = (char)('0' + pid % 10);
    *end = 0;
    path_of(o, "", path);
    path_of(o, suffix, temporary);
    int fd = (int)prim_syscall4(SYS_openat, AT_FDCWD, temporary,
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool whole = prim_write(fd, h, bytes) == (long)bytes;
    prim_close(fd);
    if (!whole || prim_syscall4(SYS_renameat, AT_FDCWD, temporary, AT_FDCWD, path))
        prim_syscall3(SYS_unlinkat, AT_FDCWD, temporary, 0);
}

void cache_write(const struct object *o)
{
    size_t bytes = sizeof(struct header) + o->sites * sizeof(struct entry);
    if (!usable || !o->has_id || bytes > MAX_BYTES)
        return;
    struct header *h = arena_scratch(bytes);
    if (!h)
        return;
    struct entry *e = (struct entry *)(h + 1);
    for (size_t i = 0; i < o->sites; i++) {
        const struct site *s = &o->site[i];
        e[i] = (struct entry){.syscall = (uint32_t)(s->syscall - o->lo), .harmless = s->harmless};
        size_t n = s->refused ? __builtin_strlen(s->refused) : 0;
        if (n) {
            __builtin_memcpy(e[i].refused, s->refused,
                             n < sizeof e[i].refused ? n : sizeof e[i].refused - 1);
            continue;
        }
        e[i].window = (uint32_t)(s->window - o->lo);
        e[i].window_len = s->window_len;
        e[i].before = s->before;
        e[i].after = s->after;
        __builtin_memcpy(e[i].original, (const void *)s->window, s->window_len);
    }
    h->magic = MAGIC;
    __builtin_memcpy(h->writer, writer, ID_BYTES);
    __builtin_memcpy(h->object, o->id, ID_BYTES);
    h->span = o->hi - o->lo;
    h->sites = o->sites;
    h->sum = sum_of(e, o->sites);
    store(o, h, bytes);
    arena_release(h, bytes);
}
