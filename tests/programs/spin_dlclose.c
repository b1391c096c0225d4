// build: -ldl
// Wait loops of a library that is loaded, used, unloaded and loaded again, sometimes with other
// code at its address in between. Also a loop that the program has generated in anonymous memory,
// which the runtime must not change.
#include "dlopen_test.h"
#include "spin_test.h"

typedef void wait_fn(volatile uint32_t *, uint32_t);
static wait_fn *waits[2];
static unsigned char jit_code[64];
static int jit_bytes;

static void *member(void *arg) {
    int me = (int)(intptr_t)arg;
    for (uint32_t round = 1;; round++) {
        waits[(round / 4 + (uint32_t)me) % 2](&spin_cell[me].word, round);
        int more = spin_more(me, round);
        spin_pass(me, round);
        if (!more) return NULL;
    }
}
static void ring(int ms) {
    spin_begin(ms);
    spin_until = t_now(CLOCK_MONOTONIC) + (int64_t)ms * 1000000;
    spin_start_token();
    t_run(spin_threads, member);
}
// 3: cmp %esi,(%rdi); je 4f; pause; jmp 3b; 4: ret. The second variant has other instructions.
static const unsigned char code[2][16] = {
    {0x39, 0x37, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf8, 0xc3},
    {0x90, 0x8b, 0x07, 0x90, 0x39, 0xf0, 0x90, 0x75, 0xf8, 0xc3},
};
static void jit(unsigned char *page, int which) {
    memset(page, 0xcc, 64);
    memcpy(page, code[which], 16);
    memcpy(page + 32, code[!which], 16);
    memcpy(jit_code, page, 64);
    waits[0] = (wait_fn *)(void *)page;
    waits[1] = (wait_fn *)(void *)(page + 32);
}
static void check_jit(const unsigned char *page) {
    for (int i = 0; i < 64; i++)
        CHECK(page[i] == jit_code[i], "byte %d of generated code is %x, was %x", i, page[i],
              jit_code[i]);
    jit_bytes++;
}

int main(int argc, char **argv) {
    t_watchdog();
    const char *path = t_library(argc, argv);
    // natively each round takes 6 ms per thread
    spin_threads = t_threads() > 12 ? 12 : t_threads();
    spin_begin(800);
    int64_t over = spin_until;
    void *at = NULL;
    int same = 0, rounds;
    unsigned char *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "mmap");
    for (rounds = 0; rounds < 3 || t_now(CLOCK_MONOTONIC) < over; rounds++) {
        PHASE("library");
        void *lib = t_dlopen(path, RTLD_NOW);
        waits[0] = (wait_fn *)t_dlsym(lib, "lib_wait");
        waits[1] = (wait_fn *)t_dlsym(lib, "lib_wait2");
        int (*number)(void) = (int (*)(void))t_dlsym(lib, "lib_number");
        same += at == (void *)waits[0];
        at = (void *)waits[0];
        ring(30);
        EQ(number(), 41);
        t_dlclose(lib);
        PHASE("generated code");
        jit(page, rounds & 1);
        ring(15);
        check_jit(page);
        if (rounds % 3 == 1) { // other code at the library's address
            PHASE("other code at the library's place");
            unsigned char *there = (unsigned char *)((uintptr_t)at & ~4095ul);
            unsigned char *got = mmap(there, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == there) {
                jit(there, rounds & 1);
                ring(15);
                check_jit(there);
            }
            if (got != MAP_FAILED) SYS(munmap(got, 4096));
        }
    }
    if (getenv("SHOW")) printf("%d rounds, %d at the same place\n", rounds, same);
    return t_ok("spin_dlclose");
}
