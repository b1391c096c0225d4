/* SPDX-License-Identifier: MIT
 *
 * The interrupted state as the program knows it: the instruction and stack pointers are translated
 * from our code (switch.S, spin/enter.S, the stubs) to the system call or the instruction that it
 * stands for, so that unwinding (cancellation, exceptions), siglongjmp and glibc's own checks work.
 * The labels named lissom_at_* say where the stack pointer is.
 */
#include "sched/thread.h"
#include "sched/view.h"
#include "spin/site.h"

extern const char lissom_at_entry_swapped[], lissom_at_entry_committed[], lissom_at_exit[],
    lissom_at_exit_end[], lissom_at_direct[], lissom_at_direct_end[], lissom_at_call[],
    lissom_at_call_made[], lissom_at_call_end[], lissom_at_done_committed[], lissom_at_raise[],
    lissom_at_raise_end[], lissom_at_raise_gone[], lissom_at_guarded[], lissom_at_guarded_end[],
    lissom_at_guarded_fault[], lissom_at_event_sleep[], lissom_at_event_slept[],
    lissom_at_event_awake[], lissom_at_spin_pushed[], lissom_at_spin_committed[],
    lissom_at_spin_exit[], lissom_at_spin_popped[], lissom_at_spin_raise[], lissom_at_spin_raised[],
    lissom_at_spin_end[], lissom_at_spin_unknown[], lissom_at_spin_unknown_popped[];
void lissom_spin_entry(void);

static bool within(uintptr_t ip, const char *from, const char *to)
{
    return ip >= (uintptr_t)from && ip < (uintptr_t)to;
}

/* In spin/enter.S: how far below the program's the stack pointer is; the return address into the
 * site's stub is the word RED_ZONE + 8 below. -1: not there. */
static long spin_entry_depth(uintptr_t ip)
{
    if (within(ip, (const char *)lissom_spin_entry, lissom_at_spin_pushed) ||
        ip == (uintptr_t)lissom_at_spin_popped || ip == (uintptr_t)lissom_at_spin_unknown_popped)
        return 136;
    if (within(ip, lissom_at_spin_raise, lissom_at_spin_raised))
        return 192;
    return ip == (uintptr_t)lissom_at_spin_unknown ||
                   within(ip, lissom_at_spin_pushed, lissom_at_spin_committed) ||
                   within(ip, lissom_at_spin_exit, lissom_at_spin_popped) ||
                   within(ip, lissom_at_spin_raised, lissom_at_spin_end)
               ? 144
               : -1;
}

void view_leave_spin_site(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    long depth = spin_entry_depth((uintptr_t)g[REG_RIP]), off;
    const struct spin_site *site;
    if (depth < 0) {
        site = spin_site_at((uintptr_t)g[REG_RIP]);
        if (!site)
            return;
        g[REG_RIP] = (greg_t)spin_site_view(site, (uintptr_t)g[REG_RIP], &off);
        g[REG_RSP] += off;
        return;
    }
    const greg_t *stack = (const greg_t *)g[REG_RSP]; /* [six registers,] [rcx,] return address */
    site = spin_site_at((uintptr_t)stack[depth / 8 - 17]);
    if (!site)
        return;
    if (depth == 192) {
        static const uint8_t pushed[6] = {REG_R10, REG_RDX, REG_RSI, REG_RDI, REG_RAX, REG_R11};
        for (unsigned i = 0; i < 6; i++)
            g[pushed[i]] = stack[i];
    }
    if (depth > 136)
        g[REG_RCX] = stack[depth / 8 - 18];
    g[REG_RIP] = (greg_t)site->address;
    g[REG_RSP] += depth;
}

struct view view_native(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    struct view v = {g[REG_RIP], g[REG_RSP], g[REG_RAX]};
    uintptr_t ip = (uintptr_t)v.rip;
    const struct patch_site *rcx = (const void *)g[REG_RCX], *r11 = (const void *)g[REG_R11];
    const uintptr_t *stack = (const uintptr_t *)v.rsp;
    if (!within(ip, (const char *)lissom_syscall_entry, lissom_at_raise_gone)) {
        uintptr_t native = patch_native_ip(ip);
        if (native)
            v.rip = (greg_t)native;
    } else if (within(ip, (const char *)lissom_syscall_entry, lissom_at_entry_swapped)) {
        v.rip = (greg_t)rcx->syscall;
    } else if (within(ip, lissom_at_entry_swapped, lissom_at_entry_committed) ||
               within(ip, lissom_at_direct, lissom_at_direct_end)) {
        v.rip = (greg_t)r11->syscall;
    } else if (within(ip, lissom_at_exit, lissom_at_exit_end)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (within(ip, lissom_at_call, lissom_at_call_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip = (greg_t)site->syscall + (within(ip, lissom_at_call, lissom_at_call_made) ? 0 : 2);
        v.rsp += 8 + 128;
    } else if (within(ip, lissom_at_call_end, lissom_at_done_committed)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (within(ip, lissom_at_raise, lissom_at_raise_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip = (greg_t)site->syscall + (stack[1] == (uintptr_t)lissom_syscall_entry ? 0 : 2);
        v.rsp += 64 + 128;
        v.rax = (greg_t)stack[2];
    } else if (within(ip, lissom_at_raise_end, lissom_at_raise_gone)) {
        v.rip = (greg_t)rcx->syscall + 2;
    }
    return v;
}

void view_no_event_sleep(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (within((uintptr_t)g[REG_RIP], lissom_at_event_sleep, lissom_at_event_slept))
        g[REG_RIP] = (greg_t)lissom_at_event_awake;
}

bool view_guarded_fault(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (!within((uintptr_t)g[REG_RIP], lissom_at_guarded, lissom_at_guarded_end))
        return false;
    g[REG_RIP] = (greg_t)lissom_at_guarded_fault;
    return true;
}
