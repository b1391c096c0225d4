/* SPDX-License-Identifier: MIT
 *
 * The only access to the kernel. Each function is one raw system call and nothing else: no errno,
 * no cancellation point, no libc. A result in [-4095, -1] is a negated errno. All are
 * async-signal-safe.
 */
#ifndef LISSOM_PRIM_H
#define LISSOM_PRIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

struct timespec;

static inline long prim_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#define prim_syscall4(nr, a, b, c, d) \
    prim_syscall6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define prim_syscall3(nr, a, b, c) prim_syscall6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* --- processes and threads -------------------------------------------------------------------- */

/* Return the id of the caller's process. */
static inline int32_t prim_pid(void) { return (int32_t)prim_syscall3(SYS_getpid, 0, 0, 0); }
/* Return the scheduling policy of thread tid (0: the caller), without SCHED_RESET_ON_FORK, or a
 * negated errno. */
static inline long prim_policy(int32_t tid)
{
    long policy = prim_syscall3(SYS_sched_getscheduler, tid, 0, 0);
    return policy < 0 ? policy : policy & ~0x40000000l;
}

/* --- CPUs ------------------------------------------------------------------------------------- */

/* Return the CPU that the caller runs on, modulo 4096, without a system call. The kernel stores it
 * in the limit of this segment for the vDSO's getcpu. */
static inline uint32_t prim_cpu(void)
{
    uint32_t limit;
    __asm__ volatile("lsl %1, %0" : "=r"(limit) : "r"(0x7bu) : "cc");
    return limit & 0xfff;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Map memory as mmap(2). An error is a negated errno, cast to a pointer: test with
 * prim_is_error. */
static inline void *prim_mmap(void *addr, size_t len, int prot, int flags, int fd, long off)
{
    return (void *)prim_syscall6(SYS_mmap, (long)addr, (long)len, prot, flags, fd, off);
}
static inline int prim_munmap(void *addr, size_t len)
{
    return (int)prim_syscall3(SYS_munmap, addr, len, 0);
}
static inline int prim_mprotect(void *addr, size_t len, int prot)
{
    return (int)prim_syscall3(SYS_mprotect, addr, len, prot);
}
/* Let a fork's child find zeros in these pages. Returns false before Linux 4.14. Pre: whole pages
 * of anonymous private memory. */
static inline bool prim_wipe_on_fork(void *addr, size_t len)
{
    return prim_syscall3(SYS_madvise, addr, len, 18 /* MADV_WIPEONFORK */) == 0;
}
/* Return the end of the heap, which is also its start if nothing has been allocated from it. */
static inline uintptr_t prim_brk_now(void) { return (uintptr_t)prim_syscall3(SYS_brk, 0, 0, 0); }
static inline int prim_is_error(const void *p) { return (uintptr_t)p >= (uintptr_t)-4095; }

/* --- files ------------------------------------------------------------------------------------ */

static inline int prim_open(const char *path, int flags)
{
    return (int)prim_syscall4(SYS_openat, -100 /* AT_FDCWD */, path, flags, 0);
}
static inline long prim_read(int fd, void *buf, size_t n)
{
    return prim_syscall3(SYS_read, fd, buf, n);
}
static inline long prim_pread(int fd, void *buf, size_t n, long off)
{
    return prim_syscall4(SYS_pread64, fd, buf, n, off);
}
static inline long prim_pwrite(int fd, const void *buf, size_t n, long off)
{
    return prim_syscall4(SYS_pwrite64, fd, buf, n, off);
}
static inline long prim_write(int fd, const void *buf, size_t n)
{
    return prim_syscall3(SYS_write, fd, buf, n);
}
static inline long prim_readlink(const char *path, char *buf, size_t n)
{
    return prim_syscall4(SYS_readlinkat, -100 /* AT_FDCWD */, path, buf, n);
}
/* Return whether fd is a memfd that no process can truncate: its mappings stay valid. */
static inline int prim_cannot_shrink(int fd)
{
    long seals = prim_syscall3(SYS_fcntl, fd, 1034 /* F_GET_SEALS */, 0);
    return seals >= 0 && (seals & 2 /* F_SEAL_SHRINK */);
}
static inline int prim_close(int fd) { return (int)prim_syscall3(SYS_close, fd, 0, 0); }

#endif
