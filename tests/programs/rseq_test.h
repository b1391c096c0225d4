// Counters per CPU that are incremented in restartable sequences (rseq(2)), without locks and
// atomic instructions. If a sequence is not restarted, or counts for a CPU other than its thread's,
// counts are missing at the end.
#include "pthread_test.h"

#include <stdbool.h>

enum { AREA_BYTES = 32, CPUS = 4096, LINE = 8 };
struct area { // struct rseq of linux/rseq.h, which may be older
    uint32_t cpu_start, cpu;
    uint64_t sequence;
    uint32_t flags, unused[3];
} __attribute__((aligned(AREA_BYTES)));
static volatile long counter[CPUS][LINE];

// Increment the counter of `cpu`. Returns false if the sequence was restarted or the thread is on
// another CPU.
static inline bool count_on(volatile struct area *a, uint32_t cpu) {
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "3: .long 0, 0\n"
                 ".quad 1f, 2f - 1f, 4f\n"
                 ".popsection\n"
                 "leaq 3b(%%rip), %%rax\n"
                 "movq %%rax, 8(%[area])\n"
                 "1: cmpl %[cpu], 4(%[area])\n"
                 "jne 4f\n"
                 "movq (%[n]), %%rax\n"
                 ".rept 16\n"
                 "pause\n"
                 ".endr\n"
                 "addq $1, %%rax\n"
                 "movq %%rax, (%[n])\n"
                 "2:\n"
                 ".pushsection __rseq_failure, \"ax\"\n"
                 ".byte 0x0f, 0xb9, 0x3d\n" // ud1, with the signature as its displacement
                 ".long 0x53053053\n"
                 "4: jmp %l[restarted]\n"
                 ".popsection\n"
                 :
                 : [area] "r"(a), [cpu] "r"(cpu), [n] "r"(&counter[cpu][0])
                 : "rax", "memory", "cc"
                 : restarted);
    return true;
restarted:
    return false;
}
static void count_up(volatile struct area *a) {
    for (;;) {
        uint32_t cpu = a->cpu_start;
        CHECK(cpu < CPUS && (int)a->cpu >= 0, "no CPU: %d", (int)a->cpu);
        if (count_on(a, cpu)) return;
    }
}

// Return this thread's CPU, from the segment that the kernel keeps for that.
static uint32_t real_cpu(void) {
    uint32_t limit;
    __asm__ volatile("lsl %1, %0" : "=r"(limit) : "r"(0x7bu) : "cc");
    return limit & 0xfff;
}
static void look_at_cpu(void) {
    for (int tries = 0; tries < 100; tries++) {
        uint32_t before = real_cpu(), said = (uint32_t)sched_getcpu();
        if (said == before) return;
        if (before == real_cpu() && before == (uint32_t)sched_getcpu()) return;
    }
    FAIL("sched_getcpu() says %d, it is %u", sched_getcpu(), real_cpu());
}

static struct area *area_of_thread(void); // defined by the program
static pthread_barrier_t barrier;
static int rounds;

static void *work(void *arg) {
    struct area *a = (intptr_t)arg % 2 == 0 ? area_of_thread() : NULL;
    long counted = 0;
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 50; k++) {
            if (a) {
                count_up(a);
                counted++;
            }
            look_at_cpu();
        }
        pthread_barrier_wait(&barrier);
    }
    return (void *)counted;
}
static void run(const char *name) {
    int threads = t_threads();
    pthread_t t[threads];
    long all = 0, there = 0;
    rounds = t_share(3000, threads);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)threads));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(work, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) all += (long)t_join(t[i]);
    for (int i = 0; i < CPUS; i++) there += counter[i][0];
    EQ(there, all);
    printf("ok %s\n", name);
}
