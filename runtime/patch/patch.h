/* SPDX-License-Identifier: MIT
 *
 * Redirecting `syscall` instructions (docs/patch.md).
 *
 * A *site* is a `syscall` instruction of a loaded ELF object. Its *window* is the syscall and up to
 * three neighbours before or after it, at least five bytes, into which nothing jumps except to its
 * first byte. The window is overwritten with `jmp rel32` to a *stub*; the rest of the window
 * becomes int3. The stub:
 *
 *     stub:     displaced instructions before the syscall, fixed up
 *     check:    movzwl %ax,%ecx ; movabs $class_table,%r11 ; movzbl (%r11,%rcx),%ecx ; jrcxz direct
 *               movabs $site,%rcx ; jmp *lissom_syscall_entry          (see sched/switch.S)
 *     direct:   syscall
 *     after:    displaced instructions behind the syscall, fixed up
 *               jmp resume
 *
 * Nothing between `check` and `after` changes the flags or any register but rcx and r11, which the
 * system call clobbers anyway; the stack is not touched, so the red zone is kept.
 * lissom_syscall_entry either returns to `after` with the result in rax, or to `direct` with every
 * register as it was.
 *
 * No function here calls libc or allocates outside its own arena. The only lock is that of who
 * writes code (write.c).
 */
#ifndef LISSOM_PATCH_H
#define LISSOM_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct patch_site {
    uintptr_t syscall;    /* native address of the syscall instruction */
    uintptr_t direct;     /* the stub's own syscall instruction */
    uintptr_t after;      /* the stub's instruction behind it */
    uintptr_t stub;       /* the stub's first byte ... */
    uintptr_t stub_end;   /* ... and one past its last */
    uintptr_t window;     /* first byte overwritten */
    uint8_t window_len;   /* bytes overwritten, >= 5 */
    uint8_t insns;        /* entries of map[] in use */
    bool loader;          /* it is the dynamic loader's */
    uint16_t object_kind; /* what patch_config.object_found said of the object */
    /* instruction starts: offset from `window` / from `stub` */
    struct {
        uint8_t native, stub;
    } map[12];
    uint8_t original[32]; /* the window's bytes before */
};

/* A function of an object that is redirected: its first instructions have become a jump to
 *
 *     stub:     movabs $redirect,%r11 ; jmp *function_entry
 *     real:     displaced instructions, fixed up ; jmp behind the window
 *
 * The entry finds everything but r11 as the caller left it, and goes on, or calls what it stands
 * for, at `real`. */
enum { PATCH_BESIDE = 3, PATCH_EVERY_LAYER = 0xff };
struct patch_redirect {
    uintptr_t real; /* first: assembly reads it */
    uint32_t what;  /* what patch_config.function_what said of it; not 0 */
    /* the functions of patch_config.functions_beside, of the same object; 0: it has none */
    const uintptr_t *beside;
};

/* What to do with the objects: filled in by the caller. */
struct patch_config {
    /* 65536 bytes, indexed by the low 16 bits of eax: 0 = direct */
    const uint8_t *class_table;
    const uint8_t *class_table_rtld; /* the same for sites of the dynamic loader */
    void (*entry)(void);             /* lissom_syscall_entry */
    /* One line for the user about an object or a site that was left alone; may be NULL. */
    void (*report)(const char *object, uintptr_t offset, const char *reason);
    /* Called before the first site of an object is patched; `name` is its file name without
     * folders. What it returns is remembered in each site. May be NULL. */
    uint16_t (*object_found)(const char *name, uintptr_t lo, uintptr_t hi);
    /* Called when an object is done; `name` as above. May be NULL. */
    void (*object_done)(const char *name, unsigned patched, unsigned left);
    /* Functions that are redirected, of objects of kind `functions_in` (0: of none): what the
     * caller wants to know one by; 0: it is to be left alone. If an object has some of several
     * layers (what >> 8), only those of the highest are, and of PATCH_EVERY_LAYER: the others call
     * them. */
    uint16_t functions_in;
    uint32_t (*function_what)(const char *name);
    const char *const *functions_beside; /* PATCH_BESIDE names */
    void (*function_entry)(void);
    /* Called when an object's are done; `left`: those that could not be redirected. */
    void (*functions_done)(const char *name, unsigned redirected, unsigned left);
    /* For tests: code is made writable by mprotect, as where the kernel refuses other ways. */
    bool by_mprotect;
};

/* Patches every object that is loaded now, except the vdso and the one that contains this function.
 * Pre: single-threaded. Post: returns the number of sites patched, or a negative errno if nothing
 * could be done (no memory within 2 GiB of libc, -EACCES: a policy forbids to
 * change code ...); then nothing has been changed.
 * `*unsafe` is set to why the process must not be managed: for people to read, and one of the two
 * below; NULL: it may be. */
int patch_startup(const struct patch_config *config, const char **unsafe);

#define PATCH_UNSAFE_CALL "a futex call could not be redirected"
/* Most of its calls are in functions without bounds (docs/limits.md). */
#define PATCH_UNSAFE_GO "Go's runtime is in it, which schedules its own threads"

/* A signal handler has interrupted the program at ip, and it will go on there: no window of
 * patch_startup has it in its middle. Returns false if there are too many. Pre: single-threaded. */
bool patch_spare(uintptr_t ip);

/* Keeps what is found out about objects in the folder base/below, which exists and which nobody but
 * this user may write. Returns false if it is no such folder. */
bool patch_cache_in(const char *base, const char *below);

/* Patches an object the dynamic loader has just mapped: [base, base+len) are its file-backed
 * segments, complete but not yet relocated, and no code of it has run. Same result as
 * patch_startup. The loader's own lock serialises calls. */
int patch_mapped(uintptr_t base, size_t len, const char *name, const char **unsafe);

/* Forgets the sites of an object that is unmapped: [base, base+len). */
void patch_unmapped(uintptr_t base, size_t len);

/* If ip lies in a stub, the native address of the instruction that it stands for: the displaced
 * instruction's own; the syscall's for everything from `check` to `direct`; the one behind the
 * syscall for `after`. 0 if ip is in no stub. Async-signal-safe, lock-free. */
uintptr_t patch_native_ip(uintptr_t ip);

/* The site whose stub contains ip, or NULL. Async-signal-safe, lock-free. */
const struct patch_site *patch_site_at(uintptr_t ip);

/* Takes every patch back. Pre: single-threaded or all other threads known to be outside of
 * stubs. */
void patch_undo_all(void);

/* For tests: as on a kernel that refuses forced writes. */
void patch_write_by_mprotect(bool for_test);

/* Whether some code had to be made writable, because the kernel refuses forced writes to
 * /proc/self/mem. */
bool patch_needs_mprotect(void);

/* The function of that name, of the first object loaded behind ours that has one; 0: none has.
 * Takes the loader's lock. */
uintptr_t patch_function_behind(const char *name);

/* In a fork's child, by its only thread: another may have been writing code. */
void patch_after_fork(void);

#endif
