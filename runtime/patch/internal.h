/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of runtime/patch. In order of the work for one object:
 *
 *     elf.c       which bytes belong to it, which of them are code
 *     scan.c      where `syscall` may be: the bytes 0F 05
 *     code.c      which of those are instructions: linear sweep of the function around
 *                 (bounds from eh.c, elf.c)
 *     target.c    which bytes near a site may be jumped to
 *     window.c    which instructions to displace
 *     arena.c     where to put the stubs
 *     emit.c      how to write instructions
 *     stub.c      the code of a stub
 *     function.c  functions that are redirected at their first instruction
 *     write.c     how to write code
 *     patch.c     the order, the jumps, and undoing them
 *     cache.c     what other processes have found in an object
 *     index.c     finding a site again from a signal handler
 *     symbol.c    finding a function by its name
 *
 * Objects share nothing but the arena and the index, so a failure concerns one object only.
 */
#ifndef LISSOM_PATCH_INTERNAL_H
#define LISSOM_PATCH_INTERNAL_H

#include "patch.h"

#include <elf.h>
#include <stdbool.h>

#define PATCH_PAGE 4096ul
#define PATCH_MAX_SEGMENTS 32
#define PATCH_SITE_BEFORE 72 /* bytes before a site in which jump targets are recorded */
/* bytes recorded in all; three instructions are at most 45 bytes */
#define PATCH_SITE_SPAN 128

enum {
    PATCH_ENOEXEC = -8,
    PATCH_ENOMEM = -12,
    PATCH_EACCES = -13,
    PATCH_EINVAL = -22,
    PATCH_EIO = -5,
};

/* --- elf.c ------------------------------------------------------------------------------------ */

struct segment { /* the file-backed part of a PT_LOAD: reading it cannot fault */
    uintptr_t lo, hi;
    bool code; /* executable */
};

struct site;
struct record;

struct object {
    const char *name;           /* without folders */
    uintptr_t bias;             /* added to a link-time address */
    uintptr_t lo, hi;           /* the whole object, bss included */
    uintptr_t code_lo, code_hi; /* from its first to its last executable byte */
    struct segment segment[PATCH_MAX_SEGMENTS];
    unsigned segments;
    bool fixed;               /* ET_EXEC: code may hold absolute addresses */
    bool text_relocations;    /* DT_TEXTREL: the loader may still write into code */
    const Elf64_Sym *symbols; /* .dynsym, or NULL */
    size_t symbol_count;
    size_t imports_end;       /* end of the symbols that it imports, and perhaps of others */
    const uint32_t *gnu_hash; /* finds symbols from there on by name; or NULL */
    const char *strings;      /* the names of symbols, or NULL */
    size_t string_bytes;
    /* .eh_frame_hdr with a search table of the usual encoding, or 0 */
    uintptr_t eh_hdr;
    const int32_t *eh_table; /* pairs (function, FDE), relative to eh_hdr, sorted */
    size_t eh_count;

    bool has_id;
    uint8_t id[20]; /* build ID */
    bool has_go;    /* Go's linker has written a note */

    const char *path; /* its file, if known, for section headers */
    uint16_t kind;    /* what patch_config.object_found returned */
    bool sections_read;
    struct {
        uintptr_t lo, hi;
    } section[16];     /* sections that contain code */
    unsigned sections; /* 0: unknown */

    /* Scratch memory while it is patched. */
    /* a bit for each byte from code_lo: an instruction starts here */
    uint8_t *boundary;
    size_t boundary_bytes;
    uint8_t *swept; /* two bits for each FDE: see code.c */
    size_t swept_bytes;
    struct site *site; /* sorted by address */
    size_t sites;
    size_t site_bytes;
    void *cached; /* cache file that the sites come from (cache.c), or NULL */
    size_t cached_bytes;
};

/* A site that has no stub yet. */
struct site {
    uintptr_t syscall;
    uintptr_t fn_lo, fn_hi; /* the function swept; empty if bounds or decoding failed */
    /* a bit for each byte from syscall - PATCH_SITE_BEFORE: may be jumped to */
    uint64_t target[2];
    const char *refused;   /* why it is left alone, or NULL */
    bool harmless;         /* left alone, but it cannot be a futex call */
    bool called;           /* its function is called, or its address is taken */
    uint8_t before, after; /* instructions displaced on either side */
    uintptr_t window;
    uint8_t window_len;
};

/* Fill in `o` from program headers. Returns false if the object is not understood. Pre: it is
 * mapped. */
bool elf_object(struct object *o, const char *name, uintptr_t bias, const Elf64_Phdr *phdr,
                unsigned phnum);
/* Fill in what only the dynamic section shows: symbols and text relocations. */
void elf_dynamic(struct object *o, const Elf64_Phdr *phdr, unsigned phnum);
/* Return whether [addr, addr+len) lies in the file-backed part of one segment. */
bool elf_readable(const struct object *o, uintptr_t addr, size_t len);
/* Return the code segment that contains addr, or NULL. */
const struct segment *elf_code(const struct object *o, uintptr_t addr);
/* Find the function symbol around addr in .dynsym. Returns false if there is none. */
bool elf_symbol_around(const struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi);
/* Return the symbol of that name, or NULL: elf_defined if the object exports it, elf_imported if
 * the object imports it, weakly or not. */
const Elf64_Sym *elf_defined(const struct object *o, const char *name);
const Elf64_Sym *elf_imported(const struct object *o, const char *name);
/* Return the address of the function of that name, or 0. */
uintptr_t elf_function(const struct object *o, const char *name);
/* Return false if addr certainly lies in no section of code, although its segment is executable. */
bool elf_may_be_code(struct object *o, uintptr_t addr);
const char *elf_basename(const char *path);

/* --- eh.c ------------------------------------------------------------------------------------- */

struct fde {
    uintptr_t lo, hi; /* the code it covers */
    uintptr_t lsda;   /* language-specific data, or 0 */
    size_t index;     /* in eh_table */
    bool signal;      /* signal return trampoline */
};

void eh_open(struct object *o, uintptr_t hdr, size_t len);
uintptr_t eh_start(const struct object *o, size_t index);
bool eh_at(const struct object *o, size_t index, struct fde *fde);
/* Find the FDE that covers addr. */
bool eh_around(const struct object *o, uintptr_t addr, struct fde *fde);
/* For an address that no FDE covers, find the last FDE before it, and the start of the next. */
bool eh_in_front(const struct object *o, uintptr_t addr, struct fde *fde, uintptr_t *next);
/* Return whether an FDE starts in (lo, hi). */
bool eh_starts_within(const struct object *o, uintptr_t lo, uintptr_t hi);
/* Call `pad` for each landing pad of the function. Returns false if its table is not understood. */
bool eh_landing_pads(const struct object *o, const struct fde *fde,
                     void (*pad)(struct object *, uintptr_t), struct object *arg);

/* --- code.c ----------------------------------------------------------------------------------- */

enum insn_kind {
    INSN_PLAIN, /* may be displaced; if disp_at != 0 its 32-bit displacement must be re-based */
    INSN_SYSCALL,
    INSN_JCC,   /* direct conditional jump in its plain two- or six-byte form */
    INSN_JMP,   /* direct jump in its plain two- or five-byte form */
    INSN_CALL,  /* direct call in its plain five-byte form */
    INSN_FIXED, /* must stay where it is */
};

struct insn {
    uint8_t len;
    uint8_t kind;
    uint8_t disp_at;   /* offset of a RIP-relative disp32, or 0 */
    uint8_t condition; /* of INSN_JCC: the low four bits of its opcode */
    bool relative;     /* a branch, call, loop or xbegin to `target` */
    uintptr_t target;  /* also that of a RIP-relative operand */
};

void code_init(void);
bool code_decode(uintptr_t addr, uintptr_t limit, struct insn *out);
/* Sweep the function around addr, once. Sets its bounds [*lo, *hi). Returns whether it was decoded
 * to its end. */
bool code_sweep(struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi);
bool code_boundary(const struct object *o, uintptr_t addr);
/* Return the start of the instruction before addr, not below lo; 0 if there is none. */
uintptr_t code_previous(const struct object *o, uintptr_t addr, uintptr_t lo);
/* Follow eax back from the site. Returns true if it provably holds *number there. */
bool code_number(const struct object *o, const struct site *s, uint32_t *number);
/* Return whether eax provably holds a number at the site that is not a futex call's. */
bool code_not_futex(const struct object *o, const struct site *s);
/* Return whether the code before a 0F 05 in no known function could set up a futex call. */
bool code_plausible_futex(const struct object *o, uintptr_t addr);

/* --- eight bytes at a time -------------------------------------------------------------------- */

#define SWAR_ONES 0x0101010101010101ull
static inline uint64_t swar_load(uintptr_t p)
{
    uint64_t v;
    __builtin_memcpy(&v, (const void *)p, 8);
    return v;
}
/* Return the top bit of each byte of v that is zero. May flag bytes above a zero byte, too: check
 * again. */
static inline uint64_t swar_zero(uint64_t v) { return (v - SWAR_ONES) & ~v & 0x80 * SWAR_ONES; }

/* --- scan.c ----------------------------------------------------------------------------------- */

/* Fill in o->site with the system calls of the object. Returns their number, or a negative
 * errno. */
long scan_sites(struct object *o);

/* Make the tables that code_sweep needs, once. Returns false if out of memory. */
bool scan_prepare(struct object *o);

/* --- cache.c ---------------------------------------------------------------------------------- */

/* Find the build ID of o, and whether Go's linker has written a note. */
void cache_note(struct object *o, const Elf64_Phdr *phdr, unsigned phnum);
/* Fill in o->site, with windows, from the cache. Returns false if the object is not in it. */
bool cache_read(struct object *o);
/* Store o->site in the cache. Pre: nothing is patched yet. */
void cache_write(const struct object *o);

/* --- target.c --------------------------------------------------------------------------------- */

/* Return whether windows are kept clear of interrupted code (patch_spare), which does not concern
 * other processes. */
bool target_spares(void);
/* Mark in every site what may be jumped to. Returns 0 or a negative errno. */
int target_mark(struct object *o);
static inline bool target_is(const struct site *s, uintptr_t addr)
{
    uintptr_t bit = addr - (s->syscall - PATCH_SITE_BEFORE);
    return bit >= PATCH_SITE_SPAN || (s->target[bit / 64] >> (bit % 64) & 1);
}

/* --- window.c --------------------------------------------------------------------------------- */

/* Choose windows, or set why there are none. Pre: o->site is in order of address. */
void window_choose(struct object *o);

/* --- emit.c ----------------------------------------------------------------------------------- */

struct emitter {
    uint8_t *at;       /* where to write the next byte */
    uintptr_t address; /* where that byte will be executed */
    bool bad;          /* a displacement does not fit */
};

void emit(struct emitter *e, const void *bytes, size_t n);
#define EMIT(e, ...) emit(e, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
void emit_64(struct emitter *e, uint64_t v);
/* Emit a displacement to target, counted from the byte behind it. */
void emit_rel32(struct emitter *e, uintptr_t target);
void emit_jump(struct emitter *e, uintptr_t target);
/* Copy the instruction at `from` so that it does the same. Pre: it is PLAIN, JCC, JMP or CALL. */
void emit_insn(struct emitter *e, uintptr_t from, const struct insn *in);
/* Return whether 32 bits are enough. */
bool emit_fits(intptr_t displacement);

/* --- stub.c ----------------------------------------------------------------------------------- */

struct stub_target {
    const uint8_t *class_table;
    /* address of an 8-byte word that holds the address of lissom_syscall_entry */
    uintptr_t entry_word;
};

/* Return an upper bound of the bytes that stub_write needs, alignment included. */
size_t stub_bound(const struct site *s);
/* Write the stub of `s` at `at` and describe it in *out. Returns its length, or 0 if an operand is
 * out of reach. */
size_t stub_write(uint8_t *at, const struct site *s, const struct stub_target *t,
                  struct patch_site *out);
/* Write the stub of a function with the first instructions `s->window`, and describe it in *out.
 * The stub passes `redirect` to the entry. Sets redirect->real. Returns its length, or 0 if an
 * operand is out of reach. */
size_t stub_write_function(uint8_t *at, const struct site *s, uintptr_t entry_word,
                           struct patch_redirect *redirect, struct patch_site *out);
/* Fill in the jump that replaces the window. */
void stub_jump(const struct patch_site *p, uint8_t bytes[32]);

/* --- arena.c ---------------------------------------------------------------------------------- */

void *arena_scratch(size_t bytes); /* zeroed pages, or NULL */
void arena_release(void *p, size_t bytes);
void *arena_keep(size_t bytes); /* zeroed, never released; or NULL */
/* Return whether every byte of [lo, hi) is within reach of a 32-bit displacement of every byte of
 * the object. */
bool arena_reaches(uintptr_t lo, uintptr_t hi, const struct object *o);
/* Return writable pages for stubs, within reach of the whole object; or NULL. */
uint8_t *arena_stubs(const struct object *o, size_t bytes);

/* --- write.c ---------------------------------------------------------------------------------- */

enum { PATCH_NO_FILE = -1000 };

/* Open the memory of this process as a file, to write code through it. Returns a descriptor, or
 * PATCH_NO_FILE: code is then written in another way, if at all. */
int patch_memory(void);
void patch_memory_close(int memory);
/* Begin to write code in [lo, hi). Only the caller may write code until patch_write_end. Returns 0,
 * or PATCH_EACCES (forbidden), PATCH_ENOMEM or PATCH_EIO; on error do not call patch_write_end.
 * Pre: lo is code. */
int patch_write_begin(int memory, uintptr_t lo, uintptr_t hi);
void patch_write_end(void);
/* Write n bytes of code. Returns false if not all were written. Never faults. */
bool patch_write(int memory, uintptr_t at, const void *bytes, size_t n);

/* --- patch.c ---------------------------------------------------------------------------------- */

/* Find the sites of o and their windows, or why they have none. The caller releases what is
 * allocated for o (arena_release). Returns 0 or a negative errno. */
int patch_find_windows(struct object *o);
/* Publish r's first n sites, and write the jumps to their stubs. Returns 0, or a negative errno
 * with the code as it was. Pre: the stubs are written. */
int patch_redirect_to(struct record *r, uint32_t n, int memory);

/* --- function.c ------------------------------------------------------------------------------- */

/* Redirect the functions of `o` that config wants. Leaves alone those that cannot be redirected.
 * Pre: o's system calls are done. */
void function_redirect(struct object *o, int memory, const struct patch_config *config);

/* --- index.c ---------------------------------------------------------------------------------- */

struct record {                 /* one patched object; never freed, may be reused for another */
    uintptr_t stubs, stubs_end; /* fixed for the record's life: readers take no lock */
    struct patch_site *site;    /* sorted by stub; its capacity is fixed as well */
    uint32_t capacity;
    uint32_t count;   /* 0: unused */
    uintptr_t lo, hi; /* the object */
};

/* Return a record with room, whose stubs reach all of `o`; NULL if there is no memory. Its pages
 * are writable. Lookups do not see it yet. */
struct record *index_record(const struct object *o, size_t sites, size_t stub_bytes);
void index_publish(struct record *r, uint32_t count);
void index_retire(struct record *r);
/* Return the record in use that follows `after` (NULL: the first one), or NULL. */
struct record *index_next(struct record *after);

/* --- symbol.c --------------------------------------------------------------------------------- */

struct dl_phdr_info;
/* Set [*lo, *hi) to libc's first segment of code. Returns false if no object has libc's name. */
bool libc_code(uintptr_t *lo, uintptr_t *hi);
/* Call f for each loaded object, by libc's own dl_iterate_phdr(3). Takes the loader's lock. */
void objects_each(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument);

#endif
