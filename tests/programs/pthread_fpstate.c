// build: -lm -frounding-math
// Each thread keeps its rounding mode and exception masks (MXCSR, x87 control word) across
// barriers, condition variables and computing. Its arithmetic really rounds that way.
#include "pthread_test.h"
#include <fenv.h>

static pthread_barrier_t barrier;
static int rounds;

static unsigned mxcsr(void) {
    unsigned v;
    __asm__ volatile("stmxcsr %0" : "=m"(v));
    return v;
}
static unsigned short cw(void) {
    unsigned short v;
    __asm__ volatile("fnstcw %0" : "=m"(v));
    return v;
}
static void *work(void *arg) {
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    int me = (int)(intptr_t)arg, mode = modes[me % 4];
    EQ(fegetround(), FE_TONEAREST); // its creator has this mode
    CHECK(!fesetround(mode), "fesetround");
    unsigned m = mxcsr() & 0xffc0;
    if (me & 4) m |= 0x8040; // flush to zero, denormals are zero
    unsigned full = m;
    __asm__ volatile("ldmxcsr %0" : : "m"(full));
    unsigned short c = cw();
    if (me & 8) c = (unsigned short)(c & ~0x300); // 24-bit precision
    __asm__ volatile("fldcw %0" : : "m"(c));
    volatile double one = 1, three = 3;
    volatile float fone = 1, fthree = 3;
    double third = one / three, negative = -one / three;
    float fthird = fone / fthree;
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&barrier);
        EQ(mxcsr() & 0xffc0, m);
        EQ(cw(), c);
        EQ(fegetround(), mode);
        CHECK(one / three == third && -one / three == negative && fone / fthree == fthird,
              "rounds differently, thread %d round %d", me, i);
    }
    CHECK((third > -negative) == (mode == FE_UPWARD) &&
              (third < -negative) == (mode == FE_DOWNWARD),
          "mode %x: %a %a", (unsigned)mode, third, negative);
    return NULL;
}
static void *inherits(void *arg) { // a new thread starts with its creator's mode
    EQ(fegetround(), (intptr_t)arg);
    return NULL;
}
static void *creator(void *arg) {
    (void)arg;
    CHECK(!fesetround(FE_UPWARD), "fesetround");
    t_join(t_spawn(inherits, (void *)(intptr_t)FE_UPWARD));
    EQ(fegetround(), FE_UPWARD);
    return NULL;
}

int main(void) {
    t_watchdog();
    int threads = t_threads();
    rounds = t_share(16000, threads);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    PHASE("barriers");
    t_run(threads, work);
    PHASE("inheritance");
    t_run(1, creator);
    EQ(fegetround(), FE_TONEAREST);
    return t_ok("pthread_fpstate");
}
