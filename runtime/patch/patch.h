/* SPDX-License-Identifier: MIT
 *
 * Redirect `syscall` instructions (docs/design/patching.md).
 *
 * A *site* is a `syscall` instruction of a loaded ELF object. Its *window* is the syscall and up to
 * three neighbours before or after it, at least five bytes. Nothing jumps into the window except to
 * its first byte. The window is overwritten with `jmp rel32` to a *stub*, and its rest with int3.
 * The stub:
 *
 *     stub:     displaced instructions before the syscall, fixed up
 *     check:    movzwl %ax,%ecx ; movabs $class_table,%r11 ; movzbl (%r11,%rcx),%ecx ; jrcxz direct
 *               movabs $site,%rcx ; jmp *lissom_syscall_entry          (see sched/switch.S)
 *     direct:   syscall
 *     after:    displaced instructions behind the syscall, fixed up
 *               jmp resume
 *
 * Code from `check` to `after` changes no flags, and no registers but rcx and r11, which the system
 * call clobbers anyway. It does not touch the stack, so the red zone is kept. lissom_syscall_entry
 * returns to `after` with the result in rax, or to `direct` with every register as it was.
 *
 * No function here calls libc, except its dl_iterate_phdr(3), or allocates outside of its own
 * arena. The only lock here is that of code writing (write.c).
 */
#ifndef LISSOM_PATCH_H
#define LISSOM_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct patch_site {
    uintptr_t syscall;    /* native address of the syscall instruction */
    uintptr_t direct;     /* the stub's own syscall instruction */
    uintptr_t after;      /* the instruction behind it */
    uintptr_t stub;       /* first byte of the stub */
    uintptr_t stub_end;   /* end of the stub */
    uintptr_t window;     /* first byte overwritten */
    uint8_t window_len;   /* bytes overwritten, >= 5 */
    uint8_t insns;        /* entries of map[] in use */
    bool loader;          /* in the dynamic loader */
    uint16_t object_kind; /* what patch_config.object_found returned */
    /* instruction starts: offsets from `window` and from `stub` */
    struct {
        uint8_t native, stub;
    } map[12];
    uint8_t original[32]; /* bytes of the window before */
};

/* A redirected function of an object. Its first instructions are replaced by a jump to
 *
 *     stub:     movabs $redirect,%r11 ; jmp *function_entry
 *     real:     displaced instructions, fixed up ; jmp behind the window
 *
 * The entry finds everything but r11 as the caller left it. It continues at `real`, or calls
 * `real`. */
enum { PATCH_BESIDE = 3, PATCH_EVERY_LAYER = 0xff };
struct patch_redirect {
    uintptr_t real; /* first field: assembly reads it */
    uint32_t what;  /* what patch_config.function_what returned; not 0 */
    /* the functions of patch_config.functions_beside in the same object; 0: it has none */
    const uintptr_t *beside;
};

/* Configuration, filled in by the caller. */
struct patch_config {
    /* 65536 bytes, indexed by the low 16 bits of eax: 0 = direct */
    const uint8_t *class_table;
    const uint8_t *class_table_rtld; /* for sites of the dynamic loader */
    void (*entry)(void);             /* lissom_syscall_entry */
    /* Report to the user an object or a site that is left alone; may be NULL. */
    void (*report)(const char *object, uintptr_t offset, const char *reason);
    /* Called before the first site of an object is patched. name: its file name without folders.
     * The result is stored in each site. May be NULL. */
    uint16_t (*object_found)(const char *name, uintptr_t lo, uintptr_t hi);
    /* Called when an object is done. name: its file name without folders. May be NULL. */
    void (*object_done)(const char *name, unsigned patched, unsigned left);
    /* Functions to redirect in objects of kind `functions_in` (0: none). function_what returns the
     * caller's number of a function, or 0 to leave it alone. If an object has functions of several
     * layers (what >> 8), only the highest layer is redirected, and PATCH_EVERY_LAYER: the others
     * call these. */
    uint16_t functions_in;
    uint32_t (*function_what)(const char *name);
    const char *const *functions_beside; /* PATCH_BESIDE names */
    void (*function_entry)(void);
    /* Called when an object's functions are done. left: functions that could not be redirected. */
    void (*functions_done)(const char *name, unsigned redirected, unsigned left);
    /* For tests: make code writable by mprotect, as where the kernel refuses forced writes. */
    bool by_mprotect;
};

/* Patch every loaded object except the vdso and the one that contains this function. Returns the
 * number of sites patched. Returns a negative errno, with nothing changed, if nothing could be
 * patched: no memory within 2 GiB of libc, or a policy forbids changing code (-EACCES), for
 * example. *unsafe: why the process must not be managed, for the user: one of the two below; NULL:
 * it may be. Pre: the process has one thread. */
int patch_startup(const struct patch_config *config, const char **unsafe);

#define PATCH_UNSAFE_CALL "a futex call could not be redirected"
/* Most calls of such an object are in functions without bounds (docs/guide/limits.md). */
#define PATCH_UNSAFE_GO "Go's runtime is in it, which schedules its own threads"

/* Keep the windows of patch_startup clear of ip, where a signal handler has interrupted the
 * program, which will continue there. Returns false if there are too many. Pre: the process has one
 * thread. */
bool patch_spare(uintptr_t ip);

/* Cache search results in the folder base/below. Returns false if it does not exist, or another
 * user may write it. */
bool patch_cache_in(const char *base, const char *below);

/* Patch an object that the dynamic loader has just mapped. [base, base+len) are its file-backed
 * segments, complete but not yet relocated, and none of its code has run. Returns, and sets
 * *unsafe, as patch_startup. The loader's lock serializes the calls. */
int patch_mapped(uintptr_t base, size_t len, const char *name, const char **unsafe);

/* Forget the sites of an object that is unmapped: [base, base+len). */
void patch_unmapped(uintptr_t base, size_t len);

/* Return the native address of the instruction that ip in a stub stands for; 0 if ip is in no stub.
 * That is a displaced instruction's own address. Everything from `check` to `direct` stands for the
 * syscall, and `after` for the instruction behind it. Async-signal-safe, lock-free. */
uintptr_t patch_native_ip(uintptr_t ip);

/* Return the site whose stub contains ip, or NULL. Async-signal-safe, lock-free. */
const struct patch_site *patch_site_at(uintptr_t ip);

/* Remove every patch. Pre: the process has one thread, or all other threads are known to be outside
 * of stubs. */
void patch_undo_all(void);

/* For tests: write code as on a kernel that refuses forced writes. */
void patch_write_by_mprotect(bool for_test);

/* Return whether some code had to be made writable, because the kernel refuses forced writes to
 * /proc/self/mem. */
bool patch_needs_mprotect(void);

/* Return the function of that name in the first object loaded behind this one that has it; 0 if
 * none has. Takes the loader's lock. */
uintptr_t patch_function_behind(const char *name);

/* Clean up in a fork's child: another thread of the parent may have been writing code. Pre: the
 * caller is the only thread. */
void patch_after_fork(void);

#endif
