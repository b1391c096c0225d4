// The futex system call as programs issue it themselves: through libc's syscall() and through an
// instruction of their own.
#ifndef PTHREAD_FUTEX_H
#define PTHREAD_FUTEX_H
#include "pthread_test.h"
#include <linux/futex.h>

// Call futex by libc's syscall(). Returns its result, or -errno.
static inline long futex_libc(void *w, int op, uint32_t val, const void *timeout_or_val2, void *w2,
                              uint32_t val3) {
    long r = syscall(SYS_futex, w, op, val, timeout_or_val2, w2, val3);
    return r == -1 ? -errno : r;
}
// Call futex by an instruction in this object. Returns its result, or -errno.
static inline long futex_inline(void *w, int op, uint32_t val, const void *timeout_or_val2,
                                void *w2, uint32_t val3) {
    long ret;
    register const void *r10 __asm__("r10") = timeout_or_val2;
    register void *r8 __asm__("r8") = w2;
    register long r9 __asm__("r9") = (long)val3;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"((long)SYS_futex), "D"(w), "S"((long)op), "d"((long)val), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
// Call futex in one of both ways, by the lowest bit of `how`, so that wakers of one kind meet
// waiters of the other.
static inline long futex(int how, void *w, int op, uint32_t val, const void *t, void *w2,
                         uint32_t val3) {
    return how & 1 ? futex_inline(w, op, val, t, w2, val3) : futex_libc(w, op, val, t, w2, val3);
}
#endif
