/* SPDX-License-Identifier: MIT */
#include "loops.h"
void plt_pause(void) { __builtin_ia32_pause(); }
int plt_load(const volatile int *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
