/* SPDX-License-Identifier: MIT */
#include "prim/lock.h"

void lock_slow(struct lock *l)
{
    for (int i = 0; i < 200; i++) {
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 && lock_try(l))
            return;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0)
        prim_futex_wait(&l->word, 2);
}
