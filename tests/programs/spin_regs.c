// Wait loops of many shapes, in assembly. A thread may be suspended anywhere in such a loop.
// Afterwards all registers, flags, vector registers, the modes of both floating-point units and the
// red zone must be unchanged.
#include "spin_test.h"

struct state {
    uint64_t gpr[16];     // in the order of their encoding
    uint64_t flags;       // 128
    uint32_t mxcsr;       // 136
    uint16_t fcw, pad;    // 140
    uint8_t x87[16];      // 144: one 80-bit value
    uint64_t redzone[16]; // 160
    uint8_t vec[16][32];  // 288
};
_Static_assert(__builtin_offsetof(struct state, vec) == 288, "layout");
uint32_t regs_avx;
volatile uint32_t regs_word;

#define EACH_VEC "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
// Arguments: (volatile uint32_t *flag, uint32_t value, const struct state *in, struct state *out).
// A body waits until *rdi == esi.
#define LOOP(name, body) \
    ".globl regs_" name "\n.type regs_" name ", @function\nregs_" name ":\n ENTER\n" body \
    "\n LEAVE\n.size regs_" name ", .-regs_" name "\n"
// clang-format off: one instruction or loop a line
__asm__(
    ".macro ENTER\n .cfi_startproc\n"
    " .irp r, rbx, rbp, r12, r13, r14, r15\n push %\\r\n .cfi_adjust_cfa_offset 8\n .endr\n"
    " sub $40, %rsp\n .cfi_adjust_cfa_offset 40\n"
    " mov %rcx, 0(%rsp)\n mov %rsp, 8(%rsp)\n stmxcsr 16(%rsp)\n fnstcw 20(%rsp)\n"
    " ldmxcsr 136(%rdx)\n fldcw 140(%rdx)\n fldt 144(%rdx)\n"
    " cmpl $0, regs_avx(%rip)\n je 1f\n"
    " .irp n, " EACH_VEC "\n vmovdqu 288+32*\\n(%rdx), %ymm\\n\n .endr\n jmp 2f\n1:\n"
    " .irp n, " EACH_VEC "\n movdqu 288+32*\\n(%rdx), %xmm\\n\n .endr\n2:\n"
    " pushq 128(%rdx)\n .cfi_adjust_cfa_offset 8\n popfq\n .cfi_adjust_cfa_offset -8\n"
    " .irp n, " EACH_VEC "\n mov 160+8*\\n(%rdx), %rax\n mov %rax, -128+8*\\n(%rsp)\n .endr\n"
    " mov 0(%rdx), %rax\n mov 8(%rdx), %rcx\n mov 24(%rdx), %rbx\n mov 40(%rdx), %rbp\n"
    " mov 64(%rdx), %r8\n mov 72(%rdx), %r9\n mov 80(%rdx), %r10\n mov 88(%rdx), %r11\n"
    " mov 96(%rdx), %r12\n mov 104(%rdx), %r13\n mov 112(%rdx), %r14\n mov 120(%rdx), %r15\n"
        " mov 16(%rdx), %rdx\n"
    ".endm\n"
    ".macro LEAVE\n"
    " mov %rax, 24(%rsp)\n mov 0(%rsp), %rax\n"
    " mov %rcx, 8(%rax)\n mov %rdx, 16(%rax)\n mov %rbx, 24(%rax)\n mov %rbp, 40(%rax)\n"
        " mov %rsi, 48(%rax)\n mov %rdi, 56(%rax)\n"
    " mov %r8, 64(%rax)\n mov %r9, 72(%rax)\n mov %r10, 80(%rax)\n mov %r11, 88(%rax)\n"
    " mov %r12, 96(%rax)\n mov %r13, 104(%rax)\n mov %r14, 112(%rax)\n mov %r15, 120(%rax)\n"
    " mov 24(%rsp), %rcx\n mov %rcx, 0(%rax)\n"
    " .irp n, " EACH_VEC "\n mov -128+8*\\n(%rsp), %rcx\n mov %rcx, 160+8*\\n(%rax)\n .endr\n"
    " pushfq\n .cfi_adjust_cfa_offset 8\n popq 128(%rax)\n .cfi_adjust_cfa_offset -8\n"
    " mov %rsp, %rcx\n sub 8(%rsp), %rcx\n mov %rcx, 32(%rax)\n"
    " stmxcsr 136(%rax)\n fnstcw 140(%rax)\n fstpt 144(%rax)\n"
    " cmpl $0, regs_avx(%rip)\n je 1f\n"
    " .irp n, " EACH_VEC "\n vmovdqu %ymm\\n, 288+32*\\n(%rax)\n .endr\n vzeroupper\n jmp 2f\n1:\n"
    " .irp n, " EACH_VEC "\n movdqu %xmm\\n, 288+32*\\n(%rax)\n .endr\n2:\n"
    " ldmxcsr 16(%rsp)\n fldcw 20(%rsp)\n"
    " add $40, %rsp\n .cfi_adjust_cfa_offset -40\n"
    " .irp r, r15, r14, r13, r12, rbp, rbx\n pop %\\r\n .cfi_adjust_cfa_offset -8\n .endr\n"
    " ret\n .cfi_endproc\n"
    ".endm\n"
    ".text\n"
    LOOP("pause", "3: cmp %esi, (%rdi)\n je 4f\n pause\n jmp 3b\n4:")
    LOOP("jcc", "3: cmp %esi, (%rdi)\n jne 3b\n")
    LOOP("jmp", "3: mov (%rdi), %eax\n cmp %esi, %eax\n je 4f\n jmp 3b\n4:")
    LOOP("rip", "3: mov regs_word(%rip), %eax\n cmp %esi, %eax\n jne 3b\n")
    LOOP("rip_cmp", "3: cmp %esi, regs_word(%rip)\n je 4f\n pause\n jmp 3b\n4:")
    LOOP("setcc", "3: mov (%rdi), %eax\n xor %edx, %edx\n cmp %esi, %eax\n sete %dl\n"
        " cmovne %r8, %r9\n cmove %r10, %r9\n test %dl, %dl\n je 3b\n cmp %esi, %eax\n")
    LOOP("live", "3: mov (%rdi), %eax\n cmp %esi, %eax\n pause\n jne 3b\n")
    LOOP("live2", "3: mov (%rdi), %eax\n cmp %esi, %eax\n lea 0(%rax), %rcx\n mov %rcx, %r9\n nop\n"
        " jne 3b\n")
    // No instruction here changes the flags: they must survive. rcx: esi - word.
    LOOP("noflags", " not %rsi\n3: mov (%rdi), %ecx\n lea 1(%rcx,%rsi), %ecx\n jrcxz 4f\n pause\n"
        " jmp 3b\n4: not %rsi\n")
    LOOP("redzone", " mov %rdi, -8(%rsp)\n3: mov -8(%rsp), %rax\n mov (%rax), %eax\n"
        " cmp %esi, %eax\n je 4f\n pause\n jmp 3b\n4:")
    LOOP("stored", "3: mov (%rdi), %eax\n mov %eax, -16(%rsp)\n cmp %esi, -16(%rsp)\n jne 3b\n")
    "regs_helper: .cfi_startproc\n mov (%rdi), %eax\n xor %esi, %eax\n ret\n .cfi_endproc\n"
    LOOP("call", "3: call regs_helper\n test %eax, %eax\n je 4f\n pause\n jmp 3b\n4:")
    LOOP("push", "3: push %r15\n mov (%rdi), %r15d\n cmp %esi, %r15d\n pop %r15\n jne 3b\n")
    LOOP("byte", "3: mov (%rdi), %al\n pause\n cmp %sil, %al\n jne 3b\n cmp %esi, (%rdi)\n"
        " jne 3b\n")
    LOOP("wide", "3: mov (%rdi), %rax\n cmp %rsi, %rax\n jne 3b\n")
    LOOP("prefixes", "3: .byte 0x2e\n cmp %esi, (%rdi)\n .byte 0x3e\n je 4f\n rep nop\n"
        " data16 nop\n jmp 3b\n4:")
    LOOP("vector", "3: mov (%rdi), %eax\n movd %eax, %xmm3\n movd %xmm3, %ecx\n cmp %esi, %ecx\n"
        " jne 3b\n")
    // The site is entered in one of several iterations.
    LOOP("count", "0: mov $1000000, %r9d\n3: cmp %esi, (%rdi)\n je 4f\n dec %r9\n jne 3b\n"
        " jmp 0b\n4:")
);
// clang-format on
typedef void fn(volatile uint32_t *flag, uint32_t value, const struct state *in, struct state *out);
extern fn regs_pause, regs_jcc, regs_jmp, regs_rip, regs_rip_cmp, regs_setcc, regs_live, regs_live2,
    regs_noflags, regs_redzone, regs_stored, regs_call, regs_push, regs_byte, regs_wide,
    regs_prefixes, regs_vector, regs_count;

enum { RAX = 1, RCX = 2, RDX = 4, R9 = 512, ARITH = 0x8d5, EQUAL = 0x44 };
#define VEC3 (1 << 16)
#define KEEP (1 << 17)      // keeps the flags
#define ZONE(n) ((n) << 20) // uses n words of the red zone, from its top
static const struct kind {
    const char *name;
    fn *f;
    int changes, global;
} kinds[] = {
    {"pause", regs_pause, 0, 0},
    {"jcc", regs_jcc, 0, 0},
    {"jmp", regs_jmp, RAX, 0},
    {"rip", regs_rip, RAX, 1},
    {"rip_cmp", regs_rip_cmp, 0, 1},
    {"setcc", regs_setcc, RAX | RDX | R9, 0},
    {"live", regs_live, RAX, 0},
    {"live2", regs_live2, RAX | RCX | R9, 0},
    {"noflags", regs_noflags, RCX | KEEP, 0},
    {"redzone", regs_redzone, RAX | ZONE(1), 0},
    {"stored", regs_stored, RAX | ZONE(2), 0},
    {"call", regs_call, RAX | ZONE(1), 0},
    {"push", regs_push, ZONE(1), 0},
    {"byte", regs_byte, RAX, 0},
    {"wide", regs_wide, RAX, 0},
    {"prefixes", regs_prefixes, 0, 0},
    {"vector", regs_vector, RAX | RCX | VEC3, 0},
    {"count", regs_count, R9, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void fill(struct state *s, uint64_t *seed) {
    unsigned char *p = (unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) p[i] = (unsigned char)t_rand(seed);
    long double x = (long double)(t_rand(seed) + 1) / 3;
    memset(s->x87, 0, sizeof s->x87);
    memcpy(s->x87, &x, 10);
    s->flags = 0x202 | (t_rand(seed) & ARITH);
    s->mxcsr = 0x1f80 | (t_rand(seed) & 3) << 13 | (t_rand(seed) & 1) << 15;
    s->fcw = 0x37f & ~((t_rand(seed) & 1) << 8);
    s->fcw |= (t_rand(seed) & 3) << 10;
}
static void compare(const struct kind *k, const struct state *in, const struct state *out,
                    uintptr_t flag, uint32_t value, int me, uint32_t round) {
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    for (int i = 0; i < 16; i++) {
        uint64_t want = i == 4 ? 0 : i == 6 ? value : i == 7 ? flag : in->gpr[i];
        if (k->changes & 1 << i) continue;
        CHECK(out->gpr[i] == want, "%s: %s is %lx, expected %lx, thread %d round %u", k->name,
              names[i], out->gpr[i], want, me, round);
    }
    if ((k->changes & RAX) && k->f != regs_call && k->f != regs_byte)
        CHECK(out->gpr[0] == value, "%s: rax is %lx, expected %x, thread %d round %u", k->name,
              out->gpr[0], value, me, round);
    if (k->f == regs_setcc)
        CHECK(out->gpr[9] == in->gpr[10] && out->gpr[2] == 1, "r9 %lx, expected %lx; rdx %lx",
              out->gpr[9], in->gpr[10], out->gpr[2]);
    uint64_t flags = k->changes & KEEP ? in->flags & ARITH : EQUAL;
    CHECK((out->flags & (ARITH | 0x400)) == flags,
          "%s: flags %lx, expected %lx, thread %d round %u", k->name, out->flags, flags, me, round);
    CHECK(out->mxcsr == in->mxcsr, "%s: mxcsr %x, expected %x, thread %d round %u", k->name,
          out->mxcsr, in->mxcsr, me, round);
    CHECK(out->fcw == in->fcw, "%s: x87 control word %x, expected %x, thread %d round %u", k->name,
          out->fcw, in->fcw, me, round);
    CHECK(!memcmp(in->x87, out->x87, 10), "%s: st0, thread %d round %u", k->name, me, round);
    for (int i = 0; i < 16 - (k->changes >> 20 & 15); i++)
        CHECK(in->redzone[i] == out->redzone[i], "%s: red zone at rsp-%d, thread %d round %u",
              k->name, 128 - 8 * i, me, round);
    for (int i = 0; i < 16; i++)
        CHECK((i == 3 && (k->changes & VEC3)) ||
                  !memcmp(in->vec[i], out->vec[i], regs_avx ? 32 : 16),
              "%s: vector register %d, thread %d round %u", k->name, i, me, round);
}
static int of_kind = -1;
static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    uint64_t seed = (uint64_t)t_env("SEED", 1) * 1000 + (uint64_t)me;
    struct state in, out;
    for (uint32_t round = 1;; round++) {
        // All threads use the same loop for a while, so that it becomes a site.
        const struct kind *k =
            &kinds[of_kind >= 0
                       ? (uint32_t)of_kind
                       : (round / 8 + (uint32_t)me / 4 + (uint32_t)t_env("SEED", 1)) % KINDS];
        fill(&in, &seed);
        memset(&out, 0, sizeof out);
        uint32_t value = k->global ? round * 1024 + (uint32_t)me : round;
        volatile uint32_t *flag = k->global ? &regs_word : &spin_cell[me].word;
        k->f(flag, value, &in, &out);
        compare(k, &in, &out, (uintptr_t)flag, value, me, round);
        int next = (me + 1) % spin_threads, more = spin_more(me, round);
        regs_word = (next ? round : round + 1) * 1024 + (uint32_t)next;
        spin_pass(me, round);
        if (!more) return NULL;
    }
}

int main(int argc, char **argv) {
    t_watchdog();
    if (argc > 1) of_kind = atoi(argv[1]);
    spin_threads = t_threads();
    if (spin_threads > 64) spin_threads = 64;
    __builtin_cpu_init();
    regs_avx = __builtin_cpu_supports("avx") ? 1 : 0;
    spin_begin(800);
    regs_word = 1024;
    spin_start_token();
    PHASE("token");
    t_run(spin_threads, work);
    return t_ok("spin_regs");
}
