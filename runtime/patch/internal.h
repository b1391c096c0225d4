/* SPDX-License-Identifier: MIT
 *
 * What the files of runtime/patch share.  The order of the work for one object:
 *
 *     elf.c     which bytes belong to it, which of them are code
 *     scan.c    where `syscall` might be: the bytes 0F 05
 *     code.c    which of those are instructions: linear sweep of the function around (bounds from
 * eh.c, elf.c) target.c  which bytes near a site something might jump to window.c  which
 * instructions to displace arena.c   where the stubs go emit.c    how instructions are written
 *     stub.c    what is in a stub
 *     function.c functions that are redirected at their first instruction
 *     write.c   how code is written
 *     patch.c   the order, the jumps and the undoing
 *     cache.c   what other processes have found out about an object
 *     index.c   finding a site again from a signal handler
 *     symbol.c  finding a function by its name
 *
 * Nothing is shared between objects but the arena and the index, so one object's failure is its
 * own.
 */
#ifndef LISSOM_PATCH_INTERNAL_H
#define LISSOM_PATCH_INTERNAL_H

#include "patch.h"

#include <elf.h>
#include <stdbool.h>

#define PATCH_PAGE 4096ul
#define PATCH_MAX_SEGMENTS 32
#define PATCH_SITE_BEFORE 72 /* bytes in front of a site in which jump targets are recorded ... */
/* ... of this many in all; three instructions are at most 45 bytes */
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
    uintptr_t bias;             /* what to add to a link-time address */
    uintptr_t lo, hi;           /* everything the object occupies, bss included */
    uintptr_t code_lo, code_hi; /* from its first to its last executable byte */
    struct segment segment[PATCH_MAX_SEGMENTS];
    unsigned segments;
    bool fixed;               /* ET_EXEC: code may hold absolute addresses */
    bool text_relocations;    /* DT_TEXTREL: the loader may yet write into code */
    const Elf64_Sym *symbols; /* .dynsym, or NULL */
    size_t symbol_count;
    size_t imports_end;       /* the first are those that it imports, and perhaps others */
    const uint32_t *gnu_hash; /* finds the others by name; or NULL */
    const char *strings;      /* the names of symbols, or NULL */
    size_t string_bytes;
    /* .eh_frame_hdr with a search table of the usual encoding, or 0 */
    uintptr_t eh_hdr;
    const int32_t *eh_table; /* pairs (function, FDE), relative to eh_hdr, sorted */
    size_t eh_count;

    bool has_id;
    uint8_t id[20]; /* its build ID */
    bool has_go;    /* Go's linker has written a note */

    const char *path; /* the file, if known: for its section headers */
    uint16_t kind;    /* what patch_config.object_found said of it */
    bool sections_read;
    struct {
        uintptr_t lo, hi;
    } section[16];     /* those that hold code */
    unsigned sections; /* 0: not known */

    /* Scratch of one patching. */
    /* a bit for each byte from code_lo: an instruction starts here */
    uint8_t *boundary;
    size_t boundary_bytes;
    uint8_t *swept; /* two bits for each FDE: see code.c */
    size_t swept_bytes;
    struct site *site; /* sorted by address */
    size_t sites;
    size_t site_bytes;
    void *cached; /* the file in which they were (cache.c), or NULL */
    size_t cached_bytes;
};

/* A site on the way to its stub. */
struct site {
    uintptr_t syscall;
    uintptr_t fn_lo, fn_hi; /* the function swept; empty if bounds or decoding failed */
    /* a bit for each byte from syscall - PATCH_SITE_BEFORE: may be jumped to */
    uint64_t target[2];
    const char *refused;   /* why it is left alone, or NULL */
    bool harmless;         /* left alone, but it cannot be a futex call */
    bool called;           /* something calls its function, or takes the function's address */
    uint8_t before, after; /* instructions displaced on either side */
    uintptr_t window;
    uint8_t window_len;
};

/* Fills in `o` from program headers. Pre: the object is mapped. Post: false if it is not one we
 * understand. */
bool elf_object(struct object *o, const char *name, uintptr_t bias, const Elf64_Phdr *phdr,
                unsigned phnum);
/* Finds what is known only from the dynamic section: symbols and text relocations. */
void elf_dynamic(struct object *o, const Elf64_Phdr *phdr, unsigned phnum);
/* True if [addr, addr+len) lies in the file-backed part of one segment. */
bool elf_readable(const struct object *o, uintptr_t addr, size_t len);
/* The code segment that contains addr, or NULL. */
const struct segment *elf_code(const struct object *o, uintptr_t addr);
/* Bounds of the function symbol around addr, from .dynsym. */
bool elf_symbol_around(const struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi);
/* The symbol of that name that the object exports; or imports, weakly or not; or NULL. */
const Elf64_Sym *elf_defined(const struct object *o, const char *name);
const Elf64_Sym *elf_imported(const struct object *o, const char *name);
/* The function of that name, or 0. */
uintptr_t elf_function(const struct object *o, const char *name);
/* False if addr certainly lies in no section of code, although its segment is executable. */
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
/* The FDE that covers addr. */
bool eh_around(const struct object *o, uintptr_t addr, struct fde *fde);
/* For an address that no FDE covers: the last one in front of it, and where the next begins. */
bool eh_in_front(const struct object *o, uintptr_t addr, struct fde *fde, uintptr_t *next);
/* True if some FDE starts in (lo, hi). */
bool eh_starts_within(const struct object *o, uintptr_t lo, uintptr_t hi);
/* Calls `pad` for each landing pad of the function. Post: false if the table is not understood. */
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
    uintptr_t target;  /* also what a RIP-relative operand refers to */
};

void code_init(void);
bool code_decode(uintptr_t addr, uintptr_t limit, struct insn *out);
/* Sweeps the function around addr, once. Post: true if it was decoded to its end; [*lo, *hi) are
 * its bounds. */
bool code_sweep(struct object *o, uintptr_t addr, uintptr_t *lo, uintptr_t *hi);
bool code_boundary(const struct object *o, uintptr_t addr);
/* The start of the instruction in front of addr, not below lo; 0 if there is none. */
uintptr_t code_previous(const struct object *o, uintptr_t addr, uintptr_t lo);
/* Follows eax back from the site. Post: true: it provably holds *number there. */
bool code_number(const struct object *o, const struct site *s, uint32_t *number);
/* True if eax provably holds a number at the site which is not a futex call's. */
bool code_not_futex(const struct object *o, const struct site *s);
/* For a 0F 05 in no known function: true if what stands in front of it could set up a futex
 * call. */
bool code_plausible_futex(const struct object *o, uintptr_t addr);

/* --- eight bytes at a time -------------------------------------------------------------------- */

#define SWAR_ONES 0x0101010101010101ull
static inline uint64_t swar_load(uintptr_t p)
{
    uint64_t v;
    __builtin_memcpy(&v, (const void *)p, 8);
    return v;
}
/* The top bit of each byte of v that is zero. Bytes above a zero byte may be flagged too: look
 * again. */
static inline uint64_t swar_zero(uint64_t v) { return (v - SWAR_ONES) & ~v & 0x80 * SWAR_ONES; }

/* --- scan.c ----------------------------------------------------------------------------------- */

/* Fills in o->site with the system calls of the object. Post: the number, or a negative errno. */
long scan_sites(struct object *o);

/* Makes the tables that code_sweep needs, once. Post: false: no memory. */
bool scan_prepare(struct object *o);

/* --- cache.c ---------------------------------------------------------------------------------- */

/* Finds the build ID of o, and Go's. */
void cache_note(struct object *o, const Elf64_Phdr *phdr, unsigned phnum);
/* Fills in o->site with windows, as an earlier process has found them. Post: false: nothing is
 * known of this object. */
bool cache_read(struct object *o);
/* Keeps o->site for others. Pre: nothing is patched yet. */
void cache_write(const struct object *o);

/* --- target.c --------------------------------------------------------------------------------- */

/* Whether code is to be kept clear of that other processes need not mind (patch_spare). */
bool target_spares(void);
/* Marks in every site what might be jumped to. Post: 0 or a negative errno. */
int target_mark(struct object *o);
static inline bool target_is(const struct site *s, uintptr_t addr)
{
    uintptr_t bit = addr - (s->syscall - PATCH_SITE_BEFORE);
    return bit >= PATCH_SITE_SPAN || (s->target[bit / 64] >> (bit % 64) & 1);
}

/* --- window.c --------------------------------------------------------------------------------- */

/* Chooses windows, or says why not. `o->site` in order of address. */
void window_choose(struct object *o);

/* --- emit.c ----------------------------------------------------------------------------------- */

struct emitter {
    uint8_t *at;       /* where the next byte is written ... */
    uintptr_t address; /* ... and where it will be executed */
    bool bad;          /* a displacement does not fit */
};

void emit(struct emitter *e, const void *bytes, size_t n);
#define EMIT(e, ...) emit(e, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
void emit_64(struct emitter *e, uint64_t v);
/* A displacement counted from the byte behind it. */
void emit_rel32(struct emitter *e, uintptr_t target);
void emit_jump(struct emitter *e, uintptr_t target);
/* Copies the instruction at `from` to where it does the same. Pre: it is PLAIN, JCC, JMP
 * or CALL. */
void emit_insn(struct emitter *e, uintptr_t from, const struct insn *in);
/* Whether 32 bits are enough. */
bool emit_fits(intptr_t displacement);

/* --- stub.c ----------------------------------------------------------------------------------- */

struct stub_target {
    const uint8_t *class_table;
    /* address of an 8-byte word that holds the address of lissom_syscall_entry */
    uintptr_t entry_word;
};

/* An upper bound of what stub_write needs, alignment included. */
size_t stub_bound(const struct site *s);
/* Writes the stub of `s` at `at` and describes it in `out`. Post: its length, or 0 if it does not
 * reach. */
size_t stub_write(uint8_t *at, const struct site *s, const struct stub_target *t,
                  struct patch_site *out);
/* The same of a function's first instructions, `s->window`: the stub hands `redirect` to the entry,
 * and redirect->real is filled in. */
size_t stub_write_function(uint8_t *at, const struct site *s, uintptr_t entry_word,
                           struct patch_redirect *redirect, struct patch_site *out);
/* The jump that replaces the window. */
void stub_jump(const struct patch_site *p, uint8_t bytes[32]);

/* --- arena.c ---------------------------------------------------------------------------------- */

void *arena_scratch(size_t bytes); /* zeroed pages, or NULL */
void arena_release(void *p, size_t bytes);
void *arena_keep(size_t bytes); /* zeroed, for ever, or NULL */
/* True if every byte of [lo, hi) is within reach of a 32-bit displacement of every byte of the
 * object. */
bool arena_reaches(uintptr_t lo, uintptr_t hi, const struct object *o);
/* Pages (RW) for stubs, all within reach of all of the object; or NULL. */
uint8_t *arena_stubs(const struct object *o, size_t bytes);

/* --- write.c ---------------------------------------------------------------------------------- */

enum { PATCH_NO_FILE = -1000 };

/* The memory of this process as a file, through which code is written. Returns a descriptor, or
 * PATCH_NO_FILE: code is then written in another way, if at all. */
int patch_memory(void);
void patch_memory_close(int memory);
/* Between these two the caller alone may write code, that in [lo, hi). Pre: lo is code. Post: 0, or
 * PATCH_EACCES (forbidden), PATCH_ENOMEM or PATCH_EIO; then there is nothing to end. */
int patch_write_begin(int memory, uintptr_t lo, uintptr_t hi);
void patch_write_end(void);
/* Never faults. Post: false: not all of it has been written. */
bool patch_write(int memory, uintptr_t at, const void *bytes, size_t n);

/* --- patch.c ---------------------------------------------------------------------------------- */

/* Finds the sites of o and their windows, or why they have none. What it allocates is for
 * arena_release. Post: 0 or a negative errno. */
int patch_find_windows(struct object *o);
/* Writes the jumps to the stubs of r's first n sites, and makes them known. Pre: the stubs are
 * written. Post: 0 or a negative errno; then the code is as it was. */
int patch_redirect_to(struct record *r, uint32_t n, int memory);

/* --- function.c ------------------------------------------------------------------------------- */

/* Redirects the functions of `o` that config wants. Pre: o's system calls are done. What goes wrong
 * leaves them alone. */
void function_redirect(struct object *o, int memory, const struct patch_config *config);

/* --- index.c ---------------------------------------------------------------------------------- */

struct record {                 /* one patched object; never freed, may be used again for another */
    uintptr_t stubs, stubs_end; /* fixed for the record's life, so readers need not lock */
    struct patch_site *site;    /* sorted by stub; capacity fixed as well */
    uint32_t capacity;
    uint32_t count;   /* 0: not in use */
    uintptr_t lo, hi; /* the object */
};

/* A record with room, whose stubs reach all of `o`; its pages are RW. Not yet visible to
 * lookups. */
struct record *index_record(const struct object *o, size_t sites, size_t stub_bytes);
void index_publish(struct record *r, uint32_t count);
void index_retire(struct record *r);
/* The records in use, one after the other; NULL to begin and at the end. */
struct record *index_next(struct record *after);

/* --- symbol.c --- */

/* dl_iterate_phdr(3), of libc itself. Takes the loader's lock. */
struct dl_phdr_info;
/* libc's first segment of code. Returns false if no object has its name. */
bool libc_code(uintptr_t *lo, uintptr_t *hi);
void objects_each(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument);

#endif
