/* SPDX-License-Identifier: MIT */
#include "notice.h"
#include "lissom.h"
#include "patch/internal.h"
#include "prim/prim.h"
#include "sched/actions.h"

#include <signal.h>
#include <ucontext.h>

void notice_at_clone(void), notice_at_clone3(void);     /* notice.S */
void notice_make_clone(void), notice_make_clone3(void); /* notice.S: make the call only */
void notice_begins(void);
void notice_call(uintptr_t sp);

/* For notice.S: where to repeat the call after f has returned, and the instruction after the
 * call. */
uintptr_t notice_clone_again, notice_clone_behind, notice_clone3_again, notice_clone3_behind;

enum { CLONE_NR = 56, CLONE3_NR = 435, SITE_BYTES = 10, CALL_BYTES = 7, JUMP_BYTES = 5 };

struct call {
    uint32_t number;
    uintptr_t site; /* 0: none */
    void (*at)(void), (*make)(void);
    uintptr_t *again, *behind;
};
static struct call calls[] = {
    {CLONE_NR, 0, notice_at_clone, notice_make_clone, &notice_clone_again, &notice_clone_behind},
    {CLONE3_NR, 0, notice_at_clone3, notice_make_clone3, &notice_clone3_again,
     &notice_clone3_behind},
};
enum { CALLS = sizeof calls / sizeof *calls };

static notice_function *function; /* NULL: nothing is arranged */
static int32_t arranged_by;       /* pid of the caller of notice_second_thread */

/* Store the code of a call: mov $number,%eax ; syscall ; test %rax,%rax */
static void site_bytes(const struct call *c, uint8_t bytes[SITE_BYTES])
{
    static const uint8_t call[SITE_BYTES] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0};
    __builtin_memcpy(bytes, call, SITE_BYTES);
    __builtin_memcpy(bytes + 1, &c->number, 4);
}

/* Find `bytes` in [lo, hi). Returns 0 if they are not there. Horspool's algorithm: the byte under
 * the last one of `bytes` says how far to advance. */
static uintptr_t search(uintptr_t lo, uintptr_t hi, const uint8_t bytes[SITE_BYTES])
{
    enum { LAST = SITE_BYTES - 1 };
    uint8_t step[UINT8_MAX + 1];
    for (uint32_t i = 0; i <= UINT8_MAX; i++)
        step[i] = SITE_BYTES;
    for (uint8_t i = 0; i < LAST; i++)
        step[bytes[i]] = (uint8_t)(LAST - i);
    for (uintptr_t p = lo; p + SITE_BYTES <= hi; p += step[((const uint8_t *)p)[LAST]])
        if (!__builtin_memcmp((const void *)p, bytes, SITE_BYTES))
            return p;
    return 0;
}

/* Write the jumps, or the code that was there before. Returns false if the code of a call could not
 * be written. */
static bool write_calls(bool jumps)
{
    int memory = patch_memory();
    uint32_t done = 0;
    for (; done < CALLS; done++) {
        const struct call *c = &calls[done];
        uint8_t bytes[SITE_BYTES];
        site_bytes(c, bytes);
        if (jumps) {
            int32_t to = (int32_t)((intptr_t)c->at - (intptr_t)(c->site + JUMP_BYTES));
            bytes[0] = 0xe9;
            __builtin_memcpy(bytes + 1, &to, 4);
        }
        if (!c->site)
            continue;
        if (patch_write_begin(memory, c->site, c->site + JUMP_BYTES) < 0)
            break;
        bool written = patch_write(memory, c->site, bytes, JUMP_BYTES);
        patch_write_end();
        if (!written)
            break;
    }
    patch_memory_close(memory);
    return done == CALLS;
}

bool notice_second_thread(uintptr_t clone, bool has_clone3, notice_function *f)
{
    uintptr_t lo, hi;
    enum { CLONE_SIZE = 128 };
    if (!clone || !libc_code(&lo, &hi) || clone < lo || clone >= hi)
        return false;
    for (uint32_t i = 0; i < CALLS; i++) {
        struct call *c = &calls[i];
        uint8_t bytes[SITE_BYTES];
        site_bytes(c, bytes);
        c->site = 0;
        if (c->number == CLONE3_NR && !has_clone3)
            continue;
        /* __clone3 has no symbol; in all versions it is not far behind clone */
        uintptr_t end = c->number == CLONE_NR && clone + CLONE_SIZE < hi ? clone + CLONE_SIZE : hi;
        c->site = search(clone, end, bytes);
        if (!c->site && c->number == CLONE3_NR)
            c->site = search(lo, clone, bytes);
        if (!c->site || !emit_fits((intptr_t)c->at - (intptr_t)(c->site + JUMP_BYTES)))
            return false;
        *c->again = c->site;
        *c->behind = c->site + CALL_BYTES;
    }
    if (!write_calls(true)) {
        write_calls(false);
        return false;
    }
    function = f;
    arranged_by = prim_pid();
    return true;
}

/* Return whether the caller is a child that shares its memory with its parent until it executes a
 * program. Its changes to itself do not concern the parent, whose code this is. unknown: the result
 * if the kernel does not say. */
static bool is_vfork_child(bool unknown)
{
    enum { KCMP_VM = 1 };
    int32_t pid = prim_pid();
    if (pid == arranged_by)
        return false;
    long parent = prim_syscall3(SYS_getppid, 0, 0, 0),
         order = prim_syscall6(SYS_kcmp, pid, parent, KCMP_VM, 0, 0, 0);
    return order < 0 ? unknown : order == 0;
}

static void forget(void)
{
    function = NULL;
    if (write_calls(false))
        return;
    /* Let the jumps, which stay, make the calls only. */
    for (uint32_t i = 0; i < CALLS; i++)
        *calls[i].again = (uintptr_t)calls[i].make;
}

bool notice_never(void)
{
    if (!function || is_vfork_child(true))
        return false;
    forget();
    return true;
}

void notice_forked(void) { arranged_by = prim_pid(); }

void notice_now(bool for_thread)
{
    if (function && !is_vfork_child(!for_thread))
        notice_begins();
}

/* --- signal frames ---------------------------------------------------------------------------- */

extern char *__libc_stack_end __attribute__((weak));

/* Find the addresses to which signal handlers return, usually one. Returns their number. */
static uint32_t restorers(uintptr_t found[], uint32_t room)
{
    uint32_t n = 0;
    for (int sig = 1; sig <= SIGNALS; sig++) {
        struct kernel_sigaction a;
        uint32_t i = 0;
        if (prim_syscall4(SYS_rt_sigaction, sig, 0, &a, 8) || !action_has_handler(&a))
            continue;
        while (i < n && found[i] != (uintptr_t)a.restorer)
            i++;
        if (i == n && n < room)
            found[n++] = (uintptr_t)a.restorer;
    }
    return n;
}

/* Keep windows clear of interrupted code, which exists if a signal handler creates the thread: its
 * address must not become the middle of a moved window. Searches the stack for signal frames,
 * including stale ones. Returns false if the addresses cannot be determined. */
static bool spare_interrupted(uintptr_t sp)
{
    enum { RESTORERS = 4, FAR = 64 << 20 };
    uintptr_t restorer[RESTORERS], end = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
    uint32_t n = restorers(restorer, RESTORERS);
    stack_t stack;
    if (!n)
        return true;
    /* The kernel only says whether the caller is on the alternate stack; this is a stack of the
     * runtime. */
    if (prim_syscall3(SYS_sigaltstack, 0, &stack, 0) || sp - (uintptr_t)stack.ss_sp < stack.ss_size)
        return false;
    if (sp >= end || end - sp > FAR)
        return true; /* a coroutine's stack: handlers create no threads there */
    for (uintptr_t p = sp; p + sizeof(ucontext_t) + 8 < end; p += 8) {
        const ucontext_t *uc = (const ucontext_t *)(p + 8);
        bool is = false;
        for (uint32_t i = 0; i < n; i++)
            is |= *(const uintptr_t *)p == restorer[i];
        if (is && !patch_spare((uintptr_t)uc->uc_mcontext.gregs[REG_RIP]))
            return false;
    }
    return true;
}

void notice_call(uintptr_t sp)
{
    notice_function *f = function;
    if (!f)
        return;
    forget();
    const char *unfit = NULL;
    if (*calls[0].again != calls[0].site)
        unfit = REASON_NO_CODE;
    else if (!spare_interrupted(sp))
        unfit = "a signal handler created the second thread";
    f(unfit);
}
