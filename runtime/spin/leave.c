/* SPDX-License-Identifier: MIT
 *
 * A signal has interrupted a thread at a spin site: in the site's stub, or in enter.S. All
 * registers are the program's, in place or on the stack.
 */
#include "sched/view.h"
#include "spin/site.h"
#include "spin/spin.h"

extern const char lissom_at_spin_pushed[], lissom_at_spin_committed[], lissom_at_spin_exit[],
    lissom_at_spin_popped[], lissom_at_spin_raise[], lissom_at_spin_raised[], lissom_at_spin_end[],
    lissom_at_spin_unknown[], lissom_at_spin_unknown_popped[], lissom_at_spin_seldom[],
    lissom_at_spin_counting[], lissom_at_spin_counted[], lissom_at_spin_passed[];
void lissom_spin_entry(void);
void lissom_spin_entry_seldom(void);

/* Returns how many bytes the program's stack pointer is above rsp at ip in spin/enter.S; -1: not
 * there. The return address into the site's stub is RED_ZONE + 8 below the program's stack
 * pointer. */
static long spin_entry_depth(uintptr_t ip)
{
    if (code_within(ip, (const char *)lissom_spin_entry, lissom_at_spin_pushed) ||
        ip == (uintptr_t)lissom_spin_entry_seldom || ip == (uintptr_t)lissom_at_spin_popped ||
        ip == (uintptr_t)lissom_at_spin_unknown_popped || ip == (uintptr_t)lissom_at_spin_passed)
        return 136;
    if (code_within(ip, lissom_at_spin_counting, lissom_at_spin_counted))
        return 152;
    if (code_within(ip, lissom_at_spin_raise, lissom_at_spin_raised))
        return 192;
    return ip == (uintptr_t)lissom_at_spin_unknown ||
                   code_within(ip, lissom_at_spin_pushed, lissom_at_spin_committed) ||
                   code_within(ip, lissom_at_spin_seldom, lissom_at_spin_counting) ||
                   code_within(ip, lissom_at_spin_counted, lissom_at_spin_passed) ||
                   code_within(ip, lissom_at_spin_exit, lissom_at_spin_popped) ||
                   code_within(ip, lissom_at_spin_raised, lissom_at_spin_end)
               ? 144
               : -1;
}

void spin_leave_site(ucontext_t *uc)
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
    const greg_t *stack = (const greg_t *)g[REG_RSP]; /* [registers,] [rcx,] return address */
    site = spin_site_at((uintptr_t)stack[depth / 8 - 17]);
    if (!site)
        return;
    if (depth == 192) {
        static const uint8_t pushed[6] = {REG_R10, REG_RDX, REG_RSI, REG_RDI, REG_RAX, REG_R11};
        for (unsigned i = 0; i < 6; i++)
            g[pushed[i]] = stack[i];
    }
    if (depth == 152)
        g[REG_R11] = stack[0];
    if (depth > 136)
        g[REG_RCX] = stack[depth / 8 - 18];
    g[REG_RIP] = (greg_t)site->address;
    g[REG_RSP] += depth;
}
