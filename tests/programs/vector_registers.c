// Each thread has its own vector state. In a ring of threads that wait and wake each other by
// system calls, each uses different registers. Only the test's own code runs in between.
#include "pthread_test.h"
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { ZERO, XMM, YMM, HIGH_16, ZMM, X87, X87_FLAG, ROUNDING, KEY, KINDS };
enum { TOWARDS_ZERO = 0x7f80, DEFAULT_MXCSR = 0x1f80, SINGLE = 0x07f, DEFAULT_CONTROL = 0x37f };
static int rounds, threads, has_avx, has_avx512, key = -1;
static struct {
    _Alignas(64) uint32_t is;
} turn[1024];

// A private FUTEX_WAIT while `turn` is 0.
#define WAIT_ASM "xor %%r10d, %%r10d\n\tmov $202, %%eax\n\tsyscall\n\t"
#define WAIT_IN(turn) "D"(turn), "S"(FUTEX_WAIT | FUTEX_PRIVATE_FLAG), "d"(0)
#define WAIT_CLOBBERS \
    "rax", "rcx", "r10", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define EACH(op) \
    op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) \
        op(15)
#define LOAD_XMM(i) "movups " #i "*16(%%r8), %%xmm" #i "\n\t"
#define STORE_XMM(i) "movups %%xmm" #i ", " #i "*16(%%r9)\n\t"
#define LOAD_YMM(i) "vmovups " #i "*32(%%r8), %%ymm" #i "\n\t"
#define STORE_YMM(i) "vmovups %%ymm" #i ", " #i "*32(%%r9)\n\t"
#define LOAD_ZMM(i) "vmovups " #i "*64(%%r8), %%zmm" #i "\n\t"
#define STORE_ZMM(i) "vmovups %%zmm" #i ", " #i "*64(%%r9)\n\t"
#define CLEAR_ZMM(i) "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n\t"
// The 16 registers and the masks that only AVX-512 has.
#define EACH_HIGH(op) \
    op(16) op(17) op(18) op(19) op(20) op(21) op(22) op(23) op(24) op(25) op(26) op(27) op(28) \
        op(29) op(30) op(31)
#define EACH_MASK(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define LOAD_MASK(i) "kmovq 2048+" #i "*8(%%r8), %%k" #i "\n\t"
#define STORE_MASK(i) "kmovq %%k" #i ", 2048+" #i "*8(%%r9)\n\t"
#define CLEAR_MASK(i) "kxorq %%k" #i ", %%k" #i ", %%k" #i "\n\t"
enum { VECTORS = 2048 + 64 };

static void wait_with(int kind, const uint8_t *in, uint8_t *out, uint32_t *turn) {
    register const uint8_t *from __asm__("r8") = in;
    register uint8_t *to __asm__("r9") = out;
    if (kind == ZERO && has_avx512)
        __asm__ volatile("vzeroall\n\t" EACH_HIGH(CLEAR_ZMM) EACH_MASK(CLEAR_MASK)
                             WAIT_ASM EACH(STORE_ZMM) EACH_HIGH(STORE_ZMM)
                                 EACH_MASK(STORE_MASK) "vzeroupper"
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
    else if (kind == ZERO)
        __asm__ volatile("vzeroall\n\t" WAIT_ASM EACH(STORE_YMM) "vzeroupper"
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
    else if (kind == YMM)
        __asm__ volatile(EACH(LOAD_YMM) WAIT_ASM EACH(STORE_YMM) "vzeroupper"
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
    else if (kind == HIGH_16) // with the lower halves of the first 16
        __asm__ volatile(EACH(LOAD_YMM) EACH_HIGH(LOAD_ZMM) EACH_MASK(LOAD_MASK)
                             WAIT_ASM EACH(STORE_YMM) EACH_HIGH(STORE_ZMM)
                                 EACH_MASK(STORE_MASK) "vzeroupper"
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
    else if (kind == ZMM)
        __asm__ volatile(EACH(LOAD_ZMM) EACH_HIGH(LOAD_ZMM) EACH_MASK(LOAD_MASK)
                             WAIT_ASM EACH(STORE_ZMM) EACH_HIGH(STORE_ZMM)
                                 EACH_MASK(STORE_MASK) "vzeroupper"
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
    else
        __asm__ volatile(EACH(LOAD_XMM) WAIT_ASM EACH(STORE_XMM)
                         :
                         : "r"(from), "r"(to), WAIT_IN(turn)
                         : WAIT_CLOBBERS);
}

static void set_mxcsr(uint32_t value) { __asm__ volatile("ldmxcsr %0" : : "m"(value)); }

static uint32_t mxcsr(void) {
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static uint16_t control_word(void) {
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value));
    return value;
}

// Divide inexactly: sets the flag and leaves no register in use.
static void raise_inexact(void) { __asm__ volatile("fld1\n\tfldpi\n\tfdivrp\n\tfstp %%st(0)" : :); }

static uint16_t exceptions(void) {
    uint16_t value;
    __asm__ volatile("fnstsw %0" : "=a"(value));
    return value & 0x3f;
}

static uint32_t rights(void) {
    uint32_t value;
    __asm__ volatile("rdpkru" : "=a"(value) : "c"(0) : "rdx");
    return value;
}

// Return the number of bytes of the first 16 registers that `kind` stores.
static size_t bytes_of(int kind) {
    if (kind == ZMM || (kind == ZERO && has_avx512)) return 1024;
    return kind == YMM || kind == HIGH_16 || kind == ZERO ? 512 : 256;
}

static int has_high(int kind) {
    return kind == ZMM || kind == HIGH_16 || (kind == ZERO && has_avx512);
}

static void wait_turn(int me, int kind, uint64_t *state) {
    static const uint16_t single = SINGLE;
    uint8_t in[VECTORS], out[VECTORS];
    double number = (double)(t_rand(state) % 1000), got = -1;
    for (size_t i = 0; i < sizeof in; i++) in[i] = kind == ZERO ? 0 : (uint8_t)(t_rand(state) >> 8);
    memcpy(out, in, sizeof out); // for bytes that `kind` does not store
    for (size_t i = 0; i < bytes_of(kind); i++) out[i] = (uint8_t)~in[i];
    for (size_t i = 1024; i < sizeof out && has_high(kind); i++) out[i] = (uint8_t)~in[i];
    if (kind == X87) __asm__ volatile("fldcw %1\n\tfldl %0" : : "m"(number), "m"(single));
    if (kind == X87_FLAG) raise_inexact();
    if (kind == ROUNDING) set_mxcsr(TOWARDS_ZERO);
    uint32_t before = key < 0 ? 0 : rights();
    if (kind == KEY) OK(pkey_set(key, PKEY_DISABLE_WRITE));
    uint32_t mine = key < 0 ? 0 : rights();
    do wait_with(kind, in, out, &turn[me].is);
    while (!__atomic_load_n(&turn[me].is, __ATOMIC_ACQUIRE));
    if (kind == X87) {
        EQ(control_word(), SINGLE);
        __asm__ volatile("fstpl %0\n\tfninit" : "=m"(got));
        CHECK(got == number, "another number in st0");
    }
    EQ(exceptions(), kind == X87_FLAG ? 0x20 : 0);
    if (kind == X87_FLAG) __asm__ volatile("fnclex");
    EQ(control_word(), DEFAULT_CONTROL);
    EQ(mxcsr() & ~0x3fu, (kind == ROUNDING ? TOWARDS_ZERO : DEFAULT_MXCSR) & ~0x3fu);
    set_mxcsr(DEFAULT_MXCSR);
    if (key >= 0) {
        EQ(rights(), mine);
        __asm__ volatile("wrpkru" : : "a"(before), "c"(0), "d"(0));
    }
    CHECK(!memcmp(in, out, sizeof in), "other vectors after a wait, kind %d", kind);
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, next = (me + 1) % threads;
    uint64_t state = (uint64_t)me * 1000003 + 1;
    for (int i = 0; i < rounds; i++) {
        int kind = (int)(t_rand(&state) % KINDS);
        if (((kind == YMM || kind == ZERO) && !has_avx) ||
            ((kind == ZMM || kind == HIGH_16) && !has_avx512) || (kind == KEY && key < 0))
            kind = XMM;
        wait_turn(me, kind, &state);
        turn[me].is = 0;
        __atomic_store_n(&turn[next].is, 1, __ATOMIC_RELEASE);
        SYS(syscall(SYS_futex, &turn[next].is, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1));
    }
    return NULL;
}

int main(void) {
    pthread_t thread[1024];
    t_watchdog();
    threads = t_threads();
    rounds = t_share(40000, threads);
    has_avx = __builtin_cpu_supports("avx");
    has_avx512 = __builtin_cpu_supports("avx512bw");
    key = pkey_alloc(0, 0); // fails if the CPU has no keys
    turn[0].is = 1;
    for (int i = 0; i < threads; i++) thread[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) t_join(thread[i]);
    puts("ok vector_registers");
    return 0;
}
