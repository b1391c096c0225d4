/* SPDX-License-Identifier: MIT
 *
 * The interrupted state as the program knows it. The instruction and stack pointers are translated
 * from our code (switch.S, spin/enter.S, the stubs) to the system call or instruction that it
 * replaces. So unwinding (cancellation, exceptions), siglongjmp and glibc's own checks work. The
 * labels named lissom_at_* show where the stack pointer is.
 */
#include "sched/thread.h"
#include "sched/view.h"

extern const char lissom_at_entry_swapped[], lissom_at_entry_committed[], lissom_at_exit[],
    lissom_at_exit_end[], lissom_at_direct[], lissom_at_direct_end[], lissom_at_call[],
    lissom_at_call_made[], lissom_at_call_end[], lissom_at_done_committed[], lissom_at_raise[],
    lissom_at_raise_end[], lissom_at_raise_gone[], lissom_at_guarded[], lissom_at_guarded_end[],
    lissom_at_guarded_fault[], lissom_at_event_sleep[], lissom_at_event_slept[],
    lissom_at_event_awake[];

struct view view_native(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    struct view v = {g[REG_RIP], g[REG_RSP], g[REG_RAX]};
    uintptr_t ip = (uintptr_t)v.rip;
    const struct patch_site *rcx = (const void *)g[REG_RCX], *r11 = (const void *)g[REG_R11];
    const uintptr_t *stack = (const uintptr_t *)v.rsp;
    if (!code_within(ip, (const char *)lissom_syscall_entry, lissom_at_raise_gone)) {
        uintptr_t native = patch_native_ip(ip);
        if (native)
            v.rip = (greg_t)native;
    } else if (code_within(ip, (const char *)lissom_syscall_entry, lissom_at_entry_swapped)) {
        v.rip = (greg_t)rcx->syscall;
    } else if (code_within(ip, lissom_at_entry_swapped, lissom_at_entry_committed) ||
               code_within(ip, lissom_at_direct, lissom_at_direct_end)) {
        v.rip = (greg_t)r11->syscall;
    } else if (code_within(ip, lissom_at_exit, lissom_at_exit_end)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (code_within(ip, lissom_at_call, lissom_at_call_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip =
            (greg_t)site->syscall + (code_within(ip, lissom_at_call, lissom_at_call_made) ? 0 : 2);
        v.rsp += 8 + 128;
    } else if (code_within(ip, lissom_at_call_end, lissom_at_done_committed)) {
        v.rip = (greg_t)r11->syscall + 2;
    } else if (code_within(ip, lissom_at_raise, lissom_at_raise_end)) {
        const struct patch_site *site = (const void *)stack[0];
        v.rip = (greg_t)site->syscall + (stack[1] == (uintptr_t)lissom_syscall_entry ? 0 : 2);
        v.rsp += 64 + 128;
        v.rax = (greg_t)stack[2];
    } else if (code_within(ip, lissom_at_raise_end, lissom_at_raise_gone)) {
        v.rip = (greg_t)rcx->syscall + 2;
    }
    return v;
}

void view_no_event_sleep(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (code_within((uintptr_t)g[REG_RIP], lissom_at_event_sleep, lissom_at_event_slept))
        g[REG_RIP] = (greg_t)lissom_at_event_awake;
}

bool view_guarded_fault(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (!code_within((uintptr_t)g[REG_RIP], lissom_at_guarded, lissom_at_guarded_end))
        return false;
    g[REG_RIP] = (greg_t)lissom_at_guarded_fault;
    return true;
}
