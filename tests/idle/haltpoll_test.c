/* SPDX-License-Identifier: MIT
 *
 * Tests of runtime/policy/haltpoll.h. Prints `N passed, M failed`.
 *
 */
#include "policy/haltpoll.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX = 200000 };

/* Return the window after n waits of `waited` ns. */
static uint32_t after(uint32_t window, int n, uint64_t waited) {
    while (n--) window = haltpoll_next(window, waited, MAX);
    return window;
}

int main(void) {
    check(haltpoll_next(0, 1, MAX) == HALTPOLL_GROW_START_NS,
          "the first short wait opens a window");
    check(haltpoll_next(0, 0, MAX) == 0, "no wait, no window");
    check(haltpoll_next(0, MAX, MAX) == 0, "a long wait opens none");
    check(haltpoll_next(40000, 30000, MAX) == 40000, "a wait that was caught leaves it");
    check(haltpoll_next(40000, 40000, MAX) == 40000, "to the end");
    check(haltpoll_next(40000, 40001, MAX) == 80000, "one that was just missed makes it longer");
    check(haltpoll_next(150000, 160000, MAX) == MAX, "not above the most");
    check(haltpoll_next(MAX, MAX + 1, MAX) == MAX / 2, "a long wait halves it");
    check(haltpoll_next(10001, MAX, MAX) == 0, "what is left below the first window is none");
    check(haltpoll_next(3000000, 1, MAX) == MAX, "another wait's most: brought down to its own");
    check(haltpoll_next(0, 5, 0) == 0, "none where none is allowed");
    check(haltpoll_next(0, 5, 3000) == 3000, "the first window is not above the most");
    check(after(0, 100, 60000) >= 60000 && after(0, 100, 60000) < 120000,
          "settles at a window that catches a steady wait");
    check(after(MAX, 5, UINT64_MAX) == 0, "long waits close it");
    srandom(1);
    int within = 1, steady = 1;
    uint32_t window = 0;
    for (int i = 0; i < 1000000; i++) {
        uint32_t max = i % 1000 ? MAX : (uint32_t)random(); /* occasionally another kind of wait */
        uint64_t waited = (uint64_t)random() >> (random() % 31);
        uint32_t next = haltpoll_next(window, waited, max);
        within &= next <= max;
        steady &= waited > window || next == window || window > max;
        window = next;
    }
    check(within, "stays within its bounds");
    check(steady, "moves only if a wait was missed");
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
