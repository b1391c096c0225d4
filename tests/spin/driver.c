/* SPDX-License-Identifier: MIT
 *
 * Run each loop in a thread, interrupt it at random times, interpret the code from there, and check
 * the verdict.
 *     driver LABEL [SAMPLES [NAME]]
 *     driver fuzz SECONDS
 *     driver check LABEL STEPS       single-step each loop; compare each instruction with the CPU
 *
 */
#include "loops.h"
#include "spin/internal.h"

#include <asm/prctl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf leave, fault;
static volatile sig_atomic_t quit, answered;
static struct spin_scratch scratch;
static struct spin_result result;
static double spent_waits, spent_work, last_spent;
static uintptr_t stack_lo, stack_hi;
static volatile unsigned long sink;
static uintptr_t clock_lo, clock_hi;

static long load(uintptr_t address, void *to, unsigned bytes) {
    if (sigsetjmp(fault, 0)) return -14;
    memcpy(to, (const void *)address, bytes);
    return 0;
}
static void on_fault(int n) {
    (void)n;
    siglongjmp(fault, 1);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static void registers_of(const ucontext_t *u, struct spin_registers *from) {
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    *from = (struct spin_registers){.rip = (uint64_t)u->uc_mcontext.gregs[REG_RIP],
                                    .flags = (uint64_t)u->uc_mcontext.gregs[REG_EFL]};
    for (int i = 0; i < 16; i++) from->r[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
    from->xmm = u->uc_mcontext.fpregs ? u->uc_mcontext.fpregs->_xmm : NULL;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &from->fs_base);
}

/* --- comparison with the CPU ------------------------------------------------------------------ */
static volatile long steps_left;
static int checking, predicted;
static unsigned long compared, differing;
static unsigned long repeated, varied; /* proofs repeated; registers varied for that */
static uint64_t predicted_at;

/* Return the flags that the manual defines after the instruction at `at`. */
static uint32_t defined_flags(uint64_t at) {
    struct spin *s = (void *)&scratch;
    const struct op *op = &s->op[at % OPS];
    switch (op->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR: return F_ALL & ~(uint32_t)F_OF;
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_IMUL: return F_CF | F_OF;
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: return 0;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC: return F_CF | F_ZF;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: return F_ZF;
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT: return F_CF | F_ZF;
    default: return F_ALL;
    }
}

static void on_step(int n, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    struct spin_registers from;
    struct spin *s = (void *)&scratch;
    (void)n, (void)info;
    registers_of(u, &from);
    if (predicted) {
        /* after a clock read or a fence, values and flags cannot be predicted */
        int timed = s->now.flags_taint & (T_CLOCK | T_OPAQUE);
        int wrong =
            (s->now.rip != from.rip && !timed) ||
            (!timed && ((s->now.flags ^ (uint32_t)from.flags) & defined_flags(predicted_at)) != 0);
        for (int i = 0; i < 16; i++)
            wrong |= !((s->now.low[i] | s->now.high[i]) & (T_OPAQUE | T_CLOCK)) &&
                     s->now.r[i] != from.r[i];
        for (int i = 0; i < 16; i++)
            wrong |= !(s->now.xmm_taint[i] & (T_OPAQUE | T_CLOCK)) &&
                     memcmp(s->now.xmm[i], (const char *)from.xmm + 16 * i, 16) != 0;
        compared++;
        if (wrong && differing++ < 20)
            printf("differs: mnemonic %u at %#lx, flags %#x not %#x\n",
                   s->op[predicted_at % OPS].mnemonic, predicted_at, s->now.flags & F_ALL,
                   (unsigned)from.flags & F_ALL);
    }
    if (steps_left-- <= 0) {
        u->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
        predicted = 0;
        answered = 1;
        return;
    }
    struct spin_config config = {.load = load,
                                 .stack_lo = stack_lo,
                                 .stack_hi = stack_hi,
                                 .budget = 1,
                                 .clock_lo = clock_lo,
                                 .clock_hi = clock_hi};
    spin_interpret(&config, &from, &scratch, &result);
    predicted = result.reason == SPIN_R_BUDGET && result.steps == 1;
    predicted_at = from.rip;
}

/* Interpret again with each of the loop's heads as config->head. If one of them yields another
 * proof, changes the result to an unexpected verdict. */
static void told_head(struct spin_config *config, const struct spin_registers *from) {
    struct spin *s = (struct spin *)(void *)&scratch;
    struct spin_result told;
    uint64_t heads[HEADS];
    unsigned n = s->heads;
    for (unsigned i = 0; i < n; i++) heads[i] = s->head[i].address;
    for (unsigned i = 0; i < n; i++) {
        config->head = heads[i];
        spin_interpret(config, from, &scratch, &told);
        if ((told.verdict == SPIN_ENDLESS) != (result.verdict == SPIN_ENDLESS) ||
            (told.verdict == SPIN_ENDLESS && told.loads != result.loads))
            result.verdict = told.verdict == SPIN_ENDLESS ? SPIN_ENDLESS : SPIN_UNKNOWN;
    }
}

/* Interpret again with random values in every register and flag that is not an input. The thread
 * must again be proven to wait for the same words; otherwise the result becomes SPIN_UNKNOWN. */
static void other_registers(const struct spin_config *config, const struct spin_registers *from) {
    struct spin_registers other = *from;
    struct spin_result again;
    static uint64_t x = 0x9e3779b97f4a7c15ull;
    if (result.verdict != SPIN_ENDLESS || !result.repeatable) return;
    for (unsigned i = 0; i < 16; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (!(result.inputs >> i & 1)) other.r[i] = x, varied++;
    }
    if (!(result.inputs & SPIN_INPUT_CARRY)) other.flags ^= x & F_CF;
    if (!(result.inputs & SPIN_INPUT_FLAGS)) other.flags ^= x & F_OTHERS;
    repeated++;
    spin_interpret(config, &other, &scratch, &again);
    int same = again.verdict == SPIN_ENDLESS;
    for (unsigned i = 0; same && i < again.loads; i++) { /* the same words or fewer */
        same = again.load[i].stack; /* maybe stored before the recording, in each turn */
        for (unsigned j = 0; j < result.loads; j++)
            same |= again.load[i].address == result.load[j].address &&
                    again.load[i].value == result.load[j].value;
    }
    if (!same) result.verdict = SPIN_UNKNOWN;
}

static void on_scan(int n, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    struct spin_registers from;
    (void)n, (void)info;
    if (quit) siglongjmp(leave, 1);
    if (checking) {
        predicted = 0;
        u->uc_mcontext.gregs[REG_EFL] |= 0x100;
        return;
    }
    registers_of(u, &from);
    struct spin_config config = {.load = load,
                                 .stack_lo = stack_lo,
                                 .stack_hi = stack_hi,
                                 .find_pauses = 1,
                                 .yields = 1,
                                 .time = __builtin_ia32_rdtsc(),
                                 .clock_lo = clock_lo,
                                 .clock_hi = clock_hi};
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    spin_interpret(&config, &from, &scratch, &result);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    last_spent = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    told_head(&config, &from);
    config.head = 0;
    other_registers(&config, &from);
    answered = 1;
}

static void *thread(void *arg) {
    const struct loop *l = arg;
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    stack_lo = (uintptr_t)low;
    stack_hi = stack_lo + size;
    pthread_attr_destroy(&attr);
    if (!sigsetjmp(leave, 1)) {
        answered = 1;
        for (;;)
            sink +=
                l->run() + 1; /* changes state: endlessly repeated identical work would be a wait */
    }
    return NULL;
}

static const char *const verdicts[] = {"no-wait", "endless", "counted", "pause-only", "unknown"};
static const unsigned accepts[] = {N, E, C, P, N};

static int predicate_has(const struct loop *l) {
    for (unsigned i = 0; i < result.loads; i++)
        if ((uintptr_t)l->flag >= result.load[i].address &&
            (uintptr_t)l->flag < result.load[i].address + result.load[i].bytes)
            return 1;
    return 0;
}

static void fuzz(double seconds) {
    static uint8_t code[4096];
    uint64_t x = 0x9e3779b97f4a7c15ull, runs = 0, most = 0, count[5] = {0};
    struct spin_config config = {.load = load, .budget = 1000, .find_pauses = 1};
    for (double end = now() + seconds; now() < end; runs++) {
        struct spin_registers from = {.flags = 2};
        for (unsigned i = 0; i < 64 + 16; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            if (i < 64)
                memcpy(code + 2048 + 8 * i, &x, 8);
            else
                from.r[i - 64] = x % 4 == 0   ? x
                                 : x % 4 == 1 ? (uint64_t)(uintptr_t)code + x / 4 % 4096
                                 : x % 4 == 2 ? x / 4 % 64
                                              : x >> 17;
        }
        /* Generate backward jumps, which form loops, with plain instructions between them. */
        static const uint8_t plain[][3] = {
            {0x90, 0x90, 0x90}, {0xf3, 0x90, 0x90}, {0xff, 0xc1, 0x90}, {0x8b, 0x06, 0x90},
            {0x85, 0xc0, 0x90}, {0x48, 0x01, 0xc8}, {0x89, 0x07, 0x90}, {0x39, 0xd1, 0x90}};
        if (runs % 2)
            for (unsigned i = 0; i < 170; i++) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                if (x % 4) memcpy(code + 2048 + 3 * i, plain[x / 8 % 8], 3);
                if (x / 64 % 5 == 0) {
                    code[2048 + 3 * i] = (uint8_t)(0x70 + x / 1024 % 16);
                    code[2048 + 3 * i + 1] = (uint8_t)-(int)(x / 65536 % 100);
                }
            }
        from.rip = (uintptr_t)code + 2048 + x % 400;
        config.head = runs % 4 ? 0 : (uintptr_t)code + 2048 + x / 512 % 400;
        enum spin_verdict v = spin_interpret(&config, &from, &scratch, &result);
        if (v > SPIN_UNKNOWN || result.steps > 2 * SPIN_SEARCH * config.budget ||
            result.reason >= SPIN_REASONS || result.loads > SPIN_MAX_LOADS)
            abort();
        count[v]++;
        if (result.steps > most) most = result.steps;
    }
    printf("fuzz: %lu runs, at most %lu steps;", runs, most);
    for (int i = 0; i < 5; i++) printf(" %s %lu", verdicts[i], count[i]);
    printf("\n1 passed, 0 failed\n");
}

static void find_clock_pages(void) {
    char line[512];
    uintptr_t lo, hi;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "[vvar") && sscanf(line, "%lx-%lx", &lo, &hi) == 2) {
            clock_lo = clock_lo ? clock_lo : lo;
            clock_hi = hi;
        }
    if (f) fclose(f);
}

/* Return loop i of both tables. */
static const struct loop *loop_at(unsigned i) {
    return i < loops_wait_count ? &loops_wait[i] : &loops_work[i - loops_wait_count];
}

int main(int argc, char **argv) {
    unsigned loop_count = loops_wait_count + loops_work_count;
    find_clock_pages();
    struct sigaction sample = {.sa_sigaction = on_scan, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction bad = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &sample, NULL);
    sigaction(SIGSEGV, &bad, NULL);
    sigaction(SIGBUS, &bad, NULL);
    if (argc > 2 && !strcmp(argv[1], "fuzz")) {
        fuzz(atof(argv[2]));
        return 0;
    }
    if (argc > 3 && !strcmp(argv[1], "check")) {
        struct sigaction trap = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigaction(SIGTRAP, &trap, NULL);
        checking = 1;
        for (unsigned i = 0; i < loop_count; i++) {
            pthread_t t;
            quit = answered = 0;
            pthread_create(&t, NULL, thread, (void *)loop_at(i));
            while (!answered) usleep(50);
            usleep(500);
            answered = 0;
            steps_left = atol(argv[3]);
            pthread_kill(t, SIGUSR1);
            while (!answered) usleep(50);
            quit = 1;
            pthread_kill(t, SIGUSR1);
            pthread_join(t, NULL);
        }
        printf("%s: %lu instructions compared with the processor, %lu differ\n", argv[2], compared,
               differing);
        printf("%d passed, %d failed\n", !differing && compared, differing || !compared);
        return differing != 0;
    }
    int samples = argc > 2 ? atoi(argv[2]) : 50;
    unsigned passed = 0, failed = 0, all = 0, waits = 0, waits_right = 0, work = 0, work_wrong = 0,
             all_ending = 0;
    unsigned long long steps = 0;
    for (unsigned i = 0; i < loop_count; i++) {
        const struct loop *l = loop_at(i);
        if (argc > 3 && strcmp(argv[3], l->name)) continue;
        pthread_t t;
        unsigned right = 0, seen[5] = {0}, without = 0, elsewhere = 0, ending = 0, busy = 0;
        struct spin_result wrong = {0};
        uintptr_t loop = 0;
        quit = 0;
        answered = 0;
        pthread_create(&t, NULL, thread, (void *)l);
        while (!answered) usleep(50);
        usleep(300);
        for (int k = 0; k < samples; k++) {
            usleep(1 + (unsigned)rand() % 100);
            answered = 0;
            pthread_kill(t, SIGUSR1);
            while (!answered) usleep(20);
            seen[result.verdict]++;
            *(l->expected & N ? &spent_work : &spent_waits) += last_spent;
            steps += result.steps;
            all++;
            int good = (accepts[result.verdict] & l->expected) != 0;
            if (good && l->flag && (accepts[result.verdict] & (E | C)) && !predicate_has(l)) {
                good = 0;
                without++;
            }
            /* All samples, also those in called functions, must report the same loop. */
            if (good && result.verdict == SPIN_ENDLESS) {
                if (loop && loop != result.loop) good = 0, elsewhere++;
                loop = result.loop;
            }
            /* A delay with few pauses left will end: NO_WAIT is right then, but must be rare (see
             * below). */
            if (!good && (l->expected & P) && result.verdict == SPIN_NO_WAIT &&
                result.reason == SPIN_R_STORE && result.pauses < SPIN_MIN_PAUSES) {
                good = 1;
                ending++;
                all_ending++;
            }
            /* A waiting thread must not get a working thread's long slices. */
            int works = result.lines >= SPIN_WORK_LINES && result.verdict != SPIN_ENDLESS &&
                        result.verdict != SPIN_COUNTED;
            if (l->expected & W ? !works : works && !(l->expected & N)) good = 0, busy++;
            right += good;
            if (!good) wrong = result;
        }
        if (ending * 10 > (unsigned)samples) right -= ending;
        /* Such a loop spends most time in pauses, so most samples are right after one. */
        if ((l->expected & H) && seen[SPIN_PAUSE_ONLY] * 5 < (unsigned)samples) right = 0;
        quit = 1;
        pthread_kill(t, SIGUSR1);
        pthread_join(t, NULL);
        if (l->expected & N) {
            work += samples;
            work_wrong += samples - right;
        } else {
            waits += samples;
            waits_right += right;
        }
        if (right == (unsigned)samples)
            passed++;
        else
            failed++;
        if (right != (unsigned)samples || argc > 3) {
            printf("%s: %s:", argv[1], l->name);
            for (int v = 0; v < 5; v++)
                if (seen[v]) printf(" %s %u", verdicts[v], seen[v]);
            printf(", flag not in the predicate %u, loop at another address %u, work or not %u; "
                   "reason %u at %#lx after %u steps\n",
                   without, elsewhere, busy, wrong.reason, wrong.rip - (uintptr_t)l->run,
                   wrong.steps);
            if (argc > 3)
                printf("loop +%#lx head +%#lx turn %u counter r%u mem %d stride %ld remaining %llu "
                       "loads %u\n",
                       loop - (uintptr_t)l->run, result.head - (uintptr_t)l->run, result.turn,
                       result.counter_register, result.counter_in_memory, result.stride,
                       (unsigned long long)result.remaining, result.loads);
        }
    }
    printf("%s: waits %u of %u right (%u at the end of a delay), false positives %u of %u; a wait "
           "costs %.1f us, work %.1f us, %llu steps on average\n",
           argv[1], waits_right, waits, all_ending, work_wrong, work,
           spent_waits / (waits ? waits : 1) * 1e6, spent_work / (work ? work : 1) * 1e6,
           steps / (all ? all : 1));
    printf("%s: %lu proofs done again with other numbers in %.1f registers on average\n", argv[1],
           repeated, (double)varied / (double)(repeated ? repeated : 1));
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
