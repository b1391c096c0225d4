// A system call preserves the flags: the arithmetic ones in all combinations, direction and
// identification. Tested with a call that returns at once, one that wakes, and one that waits while
// other threads run.
#include "pthread_test.h"
#include <linux/futex.h>

enum {
    ARITHMETIC = 0x8d5,
    DIRECTION = 0x400,
    IDENTIFICATION = 0x200000,
    FIXED = 0x202,
    ROUNDS = 20
};
long call_with_flags(unsigned long *flags, long nr, long a, long b, long c, long d);
__asm__(".type call_with_flags, @function\n"
        "call_with_flags:\n"
        "\t.cfi_startproc\n"
        "\tpush %rdi\n"
        "\t.cfi_adjust_cfa_offset 8\n"
        "\tmov %rsi, %rax\n"
        "\tmov %rdx, %rdi\n"
        "\tmov %rcx, %rsi\n"
        "\tmov %r8, %rdx\n"
        "\tmov %r9, %r10\n"
        "\tmov (%rsp), %r11\n"
        "\tpush (%r11)\n"
        "\tpopfq\n"
        "\tsyscall\n"
        "\tlea 0(%rax), %rsi\n" // makes room for a jump
        "\tpushfq\n"
        "\tpop %rdx\n"
        "\tpop %rdi\n"
        "\t.cfi_adjust_cfa_offset -8\n"
        "\tmov %rdx, (%rdi)\n"
        "\tcld\n"
        "\tret\n"
        "\t.cfi_endproc\n"
        "\t.size call_with_flags, . - call_with_flags\n");

static uint32_t turn;

static long with_flags(unsigned long flags, long nr, long a, long b, long c, long d) {
    unsigned long now = flags | FIXED;
    long r = call_with_flags(&now, nr, a, b, c, d);
    EQ((long)now, (long)(flags | FIXED));
    return r;
}

static unsigned long combination(unsigned n) {
    static const unsigned long bit[] = {1, 4, 0x10, 0x40, 0x80, 0x800, DIRECTION, IDENTIFICATION};
    unsigned long flags = 0;
    for (unsigned i = 0; i < sizeof bit / sizeof *bit; i++)
        if (n >> i & 1) flags |= bit[i];
    return flags;
}

static void *work(void *arg) {
    long me = (long)arg, threads = t_threads();
    for (unsigned n = 0; n < 256; n++)
        EQ(with_flags(combination(n), SYS_getpid, 0, 0, 0, 0), getpid());
    for (long i = 0; i < ROUNDS; i++) {
        unsigned long flags = combination((unsigned)(i * 37 + me * 11) % 256);
        for (uint32_t now; (now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) % threads != me;) {
            long r = with_flags(flags, SYS_futex, (long)&turn, FUTEX_WAIT_PRIVATE, now, 0);
            CHECK(r == 0 || r == -EAGAIN || r == -EINTR, "futex");
        }
        __atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
        with_flags(flags, SYS_futex, (long)&turn, FUTEX_WAKE_PRIVATE, INT_MAX, 0);
    }
    return NULL;
}

int main(void) {
    pthread_t t[1024];
    long threads = t_threads();
    t_watchdog();
    for (long i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)i);
    for (long i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("process_flags");
}
