/* SPDX-License-Identifier: MIT
 *
 * Choose the instructions around a `syscall` that make room for a five-byte jump.
 */
#include "internal.h"

#define NEIGHBOURS 3
#define JUMP 5

struct neighbours {
    uintptr_t edge[NEIGHBOURS + 1]; /* start (or end) of the window with that many of them */
    unsigned count;
};

static struct neighbours look_back(const struct object *o, const struct site *s)
{
    struct neighbours n = {.edge = {s->syscall}};
    struct insn in;
    while (n.count < NEIGHBOURS) {
        uintptr_t p = code_previous(o, n.edge[n.count], s->fn_lo);
        /* A branch before the call is not displaced: it would have to be taken inside the stub. */
        if (!p || !code_decode(p, s->fn_hi, &in) || in.kind != INSN_PLAIN ||
            p + in.len != n.edge[n.count])
            break;
        n.edge[++n.count] = p;
    }
    return n;
}

static struct neighbours look_ahead(const struct site *s)
{
    struct neighbours n = {.edge = {s->syscall + 2}};
    struct insn in;
    while (n.count < NEIGHBOURS) {
        uintptr_t p = n.edge[n.count];
        /* Another syscall is not displaced either: its stub would hold two sites, and patch_site
         * describes one. So of two calls that close together the second may be left alone. In
         * practice calls are never that close. */
        if (!code_decode(p, s->fn_hi, &in) || in.kind == INSN_FIXED || in.kind == INSN_CALL ||
            in.kind == INSN_SYSCALL)
            break;
        n.edge[++n.count] = p + in.len;
        if (in.kind != INSN_PLAIN)
            break; /* a jump must come last in the stub */
    }
    return n;
}

static bool jumped_into(const struct site *s, uintptr_t lo, uintptr_t hi)
{
    for (uintptr_t t = lo + 1; t < hi; t++)
        if (target_is(s, t))
            return true;
    return false;
}

static void choose(struct object *o, struct site *s, uintptr_t floor, uintptr_t ceiling)
{
    struct neighbours back = look_back(o, s), ahead = look_ahead(s);
    s->refused = "the instructions around it cannot be moved";
    /* Take the fewest instructions, and of equal numbers those before the call: code that skips the
     * setting of eax is rarer than code that joins behind the call. */
    for (unsigned total = 1; total <= back.count + ahead.count; total++) {
        for (unsigned before = total < back.count ? total : back.count;; before--) {
            unsigned after = total - before;
            if (after > ahead.count)
                break;
            uintptr_t lo = back.edge[before], hi = ahead.edge[after];
            if (hi - lo >= JUMP && hi - lo <= sizeof((struct patch_site *)0)->original) {
                if (lo < floor || hi > ceiling)
                    s->refused = "too close to another site";
                else if (jumped_into(s, lo, hi))
                    s->refused = "a jump may target the instructions around it";
                else {
                    s->refused = NULL;
                    s->before = (uint8_t)before;
                    s->after = (uint8_t)after;
                    s->window = lo;
                    s->window_len = (uint8_t)(hi - lo);
                    return;
                }
            }
            if (before == 0)
                break;
        }
    }
}

void window_choose(struct object *o)
{
    uintptr_t floor = 0; /* end of the window before: windows must not overlap */
    for (size_t i = 0; i < o->sites; i++) {
        struct site *s = &o->site[i];
        uintptr_t ceiling = i + 1 < o->sites ? o->site[i + 1].syscall : UINTPTR_MAX;
        if (!s->refused)
            choose(o, s, floor, ceiling);
        if (!s->refused)
            floor = s->window + s->window_len;
        else if (!s->harmless && s->fn_lo < s->fn_hi)
            s->harmless = code_not_futex(o, s);
    }
}
