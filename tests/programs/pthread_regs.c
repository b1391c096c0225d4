// Every register but rax, rcx and r11, the vector and mask registers, the x87 stack and the red
// zone survive a futex wait: the kernel preserves them, so a switch in user space must. Pairs of
// threads pass a turn. Each wait is made from assembly with a pattern of its own in all registers,
// by an instruction of this object or through libc's syscall().
#include "pthread_futex.h"

struct args {
    uint64_t nr, w, op, val, timeout, w2, val3;
};
struct state {
    uint64_t gpr[6];      // 0: rbx rbp r12-r15
    uint64_t arg[6];      // 48: rdi rsi rdx r10 r8 r9 (the instruction only)
    uint64_t redzone[16]; // 96 (the instruction only)
    uint64_t k[8];        // 224 (AVX-512)
    uint8_t x87[16];      // 288: one 80-bit value
    uint64_t rsp_ok;      // 304
    uint64_t pad;
    uint8_t vec[32][64]; // 320
};
_Static_assert(__builtin_offsetof(struct state, vec) == 320, "layout");
// long regs_KIND_HOW(const struct args *, const struct state *in, struct state *out)
long regs_sse_inline(const struct args *, const struct state *, struct state *);
long regs_sse_libc(const struct args *, const struct state *, struct state *);
long regs_avx_inline(const struct args *, const struct state *, struct state *);
long regs_avx_libc(const struct args *, const struct state *, struct state *);
long regs_avx512_inline(const struct args *, const struct state *, struct state *);
long regs_avx512_libc(const struct args *, const struct state *, struct state *);

// clang-format off: one instruction or loop a line
__asm__(
    ".macro VEC kind, store, base\n"
    ".ifc \\kind, sse\n"
    " .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  .if \\store\n movdqu %xmm\\n, 320+64*\\n(\\base)\n .else\n"
        " movdqu 320+64*\\n(\\base), %xmm\\n\n .endif\n"
    " .endr\n"
    ".endif\n"
    ".ifc \\kind, avx\n"
    " .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "  .if \\store\n vmovdqu %ymm\\n, 320+64*\\n(\\base)\n .else\n"
        " vmovdqu 320+64*\\n(\\base), %ymm\\n\n .endif\n"
    " .endr\n"
    ".endif\n"
    ".ifc \\kind, avx512\n"
    " .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,"
        "16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "  .if \\store\n vmovdqu64 %zmm\\n, 320+64*\\n(\\base)\n .else\n"
        " vmovdqu64 320+64*\\n(\\base), %zmm\\n\n .endif\n"
    " .endr\n"
    " .irp n, 0,1,2,3,4,5,6,7\n"
    "  .if \\store\n kmovq %k\\n, 224+8*\\n(\\base)\n .else\n kmovq 224+8*\\n(\\base), %k\\n\n"
        " .endif\n"
    " .endr\n"
    ".endif\n"
    ".endm\n"
    ".macro ENTER\n" // rsp: [0] args [8] in [16] out, then the saved registers; aligned for a call
    " .cfi_startproc\n"
    " push %rbx\n .cfi_adjust_cfa_offset 8\n push %rbp\n .cfi_adjust_cfa_offset 8\n push %r12\n"
        " .cfi_adjust_cfa_offset 8\n"
    " push %r13\n .cfi_adjust_cfa_offset 8\n push %r14\n .cfi_adjust_cfa_offset 8\n push %r15\n"
        " .cfi_adjust_cfa_offset 8\n"
    " sub $40, %rsp\n .cfi_adjust_cfa_offset 40\n"
    " mov %rdi, 0(%rsp)\n mov %rsi, 8(%rsp)\n mov %rdx, 16(%rsp)\n mov %rsp, 24(%rsp)\n"
    ".endm\n"
    ".macro LEAVE kind\n"
    " add $40, %rsp\n .cfi_adjust_cfa_offset -40\n"
    " pop %r15\n .cfi_adjust_cfa_offset -8\n pop %r14\n .cfi_adjust_cfa_offset -8\n pop %r13\n"
        " .cfi_adjust_cfa_offset -8\n"
    " pop %r12\n .cfi_adjust_cfa_offset -8\n pop %rbp\n .cfi_adjust_cfa_offset -8\n pop %rbx\n"
        " .cfi_adjust_cfa_offset -8\n"
    " .ifnc \\kind, sse\n vzeroupper\n .endif\n"
    " ret\n .cfi_endproc\n"
    ".endm\n"
    ".macro STORE kind\n" // rcx = out; preserves rax
    " mov %rbx, 0(%rcx)\n mov %rbp, 8(%rcx)\n mov %r12, 16(%rcx)\n mov %r13, 24(%rcx)\n"
        " mov %r14, 32(%rcx)\n mov %r15, 40(%rcx)\n"
    " fstpt 288(%rcx)\n"
    " VEC \\kind, 1, %rcx\n"
    " xor %r11d, %r11d\n cmp %rsp, 24(%rsp)\n sete %r11b\n mov %r11, 304(%rcx)\n"
    ".endm\n"
    ".macro PAIR kind\n"
    ".globl regs_\\kind\\()_inline\n.type regs_\\kind\\()_inline, @function\n"
    "regs_\\kind\\()_inline:\n ENTER\n"
    " mov %rsi, %rcx\n mov %rdi, %r11\n"
    " fldt 288(%rcx)\n"
    " VEC \\kind, 0, %rcx\n"
    " .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n mov 96+8*\\i(%rcx), %rax\n"
        " mov %rax, -128+8*\\i(%rsp)\n .endr\n"
    " mov 0(%rcx), %rbx\n mov 8(%rcx), %rbp\n mov 16(%rcx), %r12\n mov 24(%rcx), %r13\n"
        " mov 32(%rcx), %r14\n mov 40(%rcx), %r15\n"
    " mov 0(%r11), %rax\n mov 8(%r11), %rdi\n mov 16(%r11), %rsi\n mov 24(%r11), %rdx\n"
        " mov 32(%r11), %r10\n mov 40(%r11), %r8\n mov 48(%r11), %r9\n"
    " syscall\n"
    " mov 16(%rsp), %rcx\n"
    " mov %rdi, 48(%rcx)\n mov %rsi, 56(%rcx)\n mov %rdx, 64(%rcx)\n mov %r10, 72(%rcx)\n"
        " mov %r8, 80(%rcx)\n mov %r9, 88(%rcx)\n"
    " .irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n mov -128+8*\\i(%rsp), %rdx\n"
        " mov %rdx, 96+8*\\i(%rcx)\n .endr\n"
    " STORE \\kind\n LEAVE \\kind\n.size regs_\\kind\\()_inline, .-regs_\\kind\\()_inline\n"
    ".globl regs_\\kind\\()_libc\n.type regs_\\kind\\()_libc, @function\n"
    "regs_\\kind\\()_libc:\n ENTER\n"
    " mov %rsi, %rcx\n mov %rdi, %r11\n"
    " fldt 288(%rcx)\n"
    " VEC \\kind, 0, %rcx\n"
    " mov 0(%rcx), %rbx\n mov 8(%rcx), %rbp\n mov 16(%rcx), %r12\n mov 24(%rcx), %r13\n"
        " mov 32(%rcx), %r14\n mov 40(%rcx), %r15\n"
    " sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
    " mov 48(%r11), %rax\n mov %rax, 0(%rsp)\n"
    " mov 0(%r11), %rdi\n mov 8(%r11), %rsi\n mov 16(%r11), %rdx\n mov 24(%r11), %rcx\n"
        " mov 32(%r11), %r8\n mov 40(%r11), %r9\n"
    " call syscall@PLT\n"
    " add $16, %rsp\n .cfi_adjust_cfa_offset -16\n"
    " mov 16(%rsp), %rcx\n"
    " STORE \\kind\n LEAVE \\kind\n.size regs_\\kind\\()_libc, .-regs_\\kind\\()_libc\n"
    ".endm\n"
    ".text\n PAIR sse\n PAIR avx\n PAIR avx512\n"
);
// clang-format on

typedef long (*fn)(const struct args *, const struct state *, struct state *);
static const fn fns[3][2] = {{regs_sse_inline, regs_sse_libc},
                             {regs_avx_inline, regs_avx_libc},
                             {regs_avx512_inline, regs_avx512_libc}};
static int width, rounds;
static uint32_t turns[512][16]; // each on a cache line of its own

static void fill(struct state *s, uint64_t *seed) {
    unsigned char *p = (unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) p[i] = (unsigned char)t_rand(seed);
    // a valid value, since fldt would normalize others or fault
    long double x = (long double)(t_rand(seed) + 1) / 3;
    memset(s->x87, 0, sizeof s->x87);
    memcpy(s->x87, &x, 10);
}
static void compare(const struct state *in, const struct state *out, const struct args *a, int libc,
                    int level, int who, int round) {
    static const char *const names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"}, *const argn[] = {
                                                                                       "rdi", "rsi",
                                                                                       "rdx", "r10",
                                                                                       "r8",  "r9"};
    const char *how = libc ? "libc" : "inline";
    CHECK(out->rsp_ok == 1, "rsp, thread %d round %d", who, round);
    for (int i = 0; i < 6; i++)
        CHECK(in->gpr[i] == out->gpr[i], "%s %s, thread %d round %d: %lx, expected %lx", names[i],
              how, who, round, out->gpr[i], in->gpr[i]);
    CHECK(!memcmp(in->x87, out->x87, 10), "st0 %s, thread %d round %d", how, who, round);
    if (!libc) {
        const uint64_t *w = &a->w;
        for (int i = 0; i < 6; i++)
            CHECK(out->arg[i] == w[i], "%s, thread %d round %d: %lx, expected %lx", argn[i], who,
                  round, out->arg[i], w[i]);
        for (int i = 0; i < 16; i++)
            CHECK(in->redzone[i] == out->redzone[i], "red zone at rsp-%d, thread %d round %d",
                  128 - 8 * i, who, round);
    }
    static const int regs[] = {16, 16, 32}, bytes[] = {16, 32, 64};
    for (int i = 0; i < regs[level]; i++)
        CHECK(!memcmp(in->vec[i], out->vec[i], (size_t)bytes[level]),
              "vector register %d (%d bytes) %s, thread %d round %d", i, bytes[level], how, who,
              round);
    if (level == 2)
        for (int i = 0; i < 8; i++)
            CHECK(in->k[i] == out->k[i], "k%d %s, thread %d round %d", i, how, who, round);
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, side = me & 1;
    uint32_t *turn = turns[me / 2];
    uint64_t seed = (uint64_t)t_env("SEED", 1) * 1000 + (uint64_t)me;
    struct state in, out;
    for (int r = 0; r < rounds; r++) {
        for (;;) {
            uint32_t seen = __atomic_load_n(turn, __ATOMIC_ACQUIRE);
            if ((int)(seen & 1) == side) break;
            int libc = (int)(t_rand(&seed) & 1),
                level = (int)(t_rand(&seed) % (unsigned)(width + 1));
            struct timespec until = t_after_ms(CLOCK_MONOTONIC, 100000);
            struct args a = {SYS_futex,
                             (uint64_t)turn,
                             FUTEX_WAIT_PRIVATE,
                             seen,
                             0,
                             0x1234567800000000u + (unsigned)r,
                             0x77};
            if (t_rand(&seed) % 4 == 0) {
                a.op = FUTEX_WAIT_BITSET_PRIVATE;
                a.timeout = (uint64_t)&until;
                a.val3 = FUTEX_BITSET_MATCH_ANY;
            }
            fill(&in, &seed);
            memset(&out, 0, sizeof out);
            long ret = fns[level][libc](&a, &in, &out);
            if (libc && ret == -1) ret = -errno;
            CHECK(ret == 0 || ret == -EAGAIN || ret == -EINTR, "futex wait: %ld", ret);
            compare(&in, &out, &a, libc, level, me, r);
        }
        __atomic_add_fetch(turn, 1, __ATOMIC_ACQ_REL);
        // The waker's registers are checked, too.
        int libc = r & 1;
        struct args a = {SYS_futex, (uint64_t)turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0};
        fill(&in, &seed);
        long ret = fns[r % (width + 1)][libc](&a, &in, &out);
        CHECK(ret >= 0 && ret <= 1, "futex wake: %ld", ret);
        compare(&in, &out, &a, libc, r % (width + 1), me, r);
    }
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads() & ~1;
    __builtin_cpu_init();
    width = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512f") ? 2
            : __builtin_cpu_supports("avx")                                         ? 1
                                                                                    : 0;
    rounds = t_share(20000, threads);
    PHASE("pairs");
    t_run(threads, work);
    return t_ok("pthread_regs");
}
