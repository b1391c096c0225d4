/* SPDX-License-Identifier: MIT */
#include "restrict.h"
#include "lissom.h"
#include "notice.h"
#include "prim/prim.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef long syscall_function(long, long, long, long, long, long, long);
typedef int prctl_function(long, long, long, long, long);
typedef int chroot_function(const char *);

static long answer(long r)
{
    if (r < 0 && r >= -4095) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

/* Used until libc's functions are found, or if there are none. */
static long own_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
    return answer(prim_syscall6(nr, a, b, c, d, e, f));
}
static int own_prctl(long option, long a, long b, long c, long d)
{
    return (int)answer(prim_syscall6(SYS_prctl, option, a, b, c, d, 0));
}
static int own_chroot(const char *path)
{
    return (int)answer(prim_syscall3(SYS_chroot, path, 0, 0));
}

syscall_function *restrict_syscall = own_syscall;
prctl_function *restrict_prctl = own_prctl;
static chroot_function *real_chroot = own_chroot;

void restrict_init(uintptr_t (*find)(const char *))
{
    uintptr_t found;
    if ((found = find("syscall")))
        restrict_syscall = (syscall_function *)found;
    if ((found = find("prctl")))
        restrict_prctl = (prctl_function *)found;
    if ((found = find("chroot")))
        real_chroot = (chroot_function *)found;
}

/* prctl and syscall jump to libc's functions, so arguments on the stack stay where they are, and
 * calls may return twice.
 *
 * Keeps the arguments, rdi to r9. Leaves 0 in al, as in calls of variadic functions. */
#define NOTE_RESTRICTION \
    "    push %rdi\n" \
    "    push %rsi\n" \
    "    push %rdx\n" \
    "    push %rcx\n" \
    "    push %r8\n" \
    "    push %r9\n" \
    "    sub $8, %rsp\n" \
    "    call lissom_before_restriction\n" \
    "    add $8, %rsp\n" \
    "    pop %r9\n" \
    "    pop %r8\n" \
    "    pop %rcx\n" \
    "    pop %rdx\n" \
    "    pop %rsi\n" \
    "    pop %rdi\n" \
    "    xor %eax, %eax\n"

__asm__("    .text\n"
        "    .globl prctl\n"
        "    .type prctl, @function\n"
        "prctl:\n"
        "    cmp $22, %edi\n" /* PR_SET_SECCOMP */
        "    jne 1f\n" NOTE_RESTRICTION "1:  jmp *restrict_prctl(%rip)\n"
        "    .size prctl, . - prctl\n"
        "    .globl syscall\n"
        "    .type syscall, @function\n"
        "syscall:\n"
        "    cmp $317, %edi\n" /* SYS_seccomp */
        "    je 2f\n"
        "    cmp $157, %edi\n" /* SYS_prctl */
        "    jne 1f\n"
        "    cmp $22, %esi\n"
        "    jne 1f\n"
        "2:\n" NOTE_RESTRICTION "1:  jmp *restrict_syscall(%rip)\n"
        "    .size syscall, . - syscall\n");
_Static_assert(PR_SET_SECCOMP == 22 && SYS_seccomp == 317 && SYS_prctl == 157, "numbers above");

__attribute__((visibility("default"))) int chroot(const char *path)
{
    notice_now(false);
    return real_chroot(path);
}
