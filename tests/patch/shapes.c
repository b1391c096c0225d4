/* SPDX-License-Identifier: MIT
 *
 * Run every shape of sites.S before and after patching, on every path through the stub. Registers,
 * flags, vector and mask registers and the red zone must not differ. Single-steps each shape, too:
 * patch_native_ip must yield the same addresses as the unpatched run.
 *
 */
#define _GNU_SOURCE
#include "../../runtime/patch/patch.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct shape {
    int32_t name, function, site, from, len;
};
extern const struct shape shapes[];

struct state {
    uint64_t gpr[16]; /* rax rbx rcx rdx rsi rdi rbp rsp r8..r15 */
    uint64_t flags;
    uint64_t mask[8];
    uint8_t pad[256 - 136 - 64];
    uint8_t vector[32][64];
};
enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8, R11 = 11 };
#define STATUS 0x8d5ull /* carry, parity, adjust, zero, sign, overflow */

void run_site(void *function, const struct state *in, struct state *out);
extern int have_avx512;
void entry_direct(void);
void entry_emulate(void);
extern long entry_count;

static uint8_t classes[65536];
static unsigned passed, failed;
static bool verbose;

__attribute__((format(printf, 2, 3))) static void check(bool ok, const char *format, ...) {
    va_list ap;
    if (ok)
        passed++;
    else
        failed++;
    if (ok && !verbose) return;
    va_start(ap, format);
    printf(ok ? "ok: " : "FAILED: ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
}

static const char *name_of(const struct shape *s) { return (const char *)shapes + s->name; }
static uint8_t *function_of(const struct shape *s) { return (uint8_t *)shapes + s->function; }

/* --- running one function --------------------------------------------------------------------- */

static uint8_t stack[8192] __attribute__((aligned(64)));
#define TOP (stack + 4096)

static struct state run(const struct shape *s, uint64_t rdi, bool flags) {
    static struct state in, out;
    for (unsigned i = 0; i < 16; i++) in.gpr[i] = 0x1111111111111111ull * i + 0xfedcba9876543210ull;
    in.gpr[RDI] = rdi;
    in.gpr[R8] = 110;
    in.gpr[RSP] = (uint64_t)TOP;
    in.flags = 0x202 | (flags ? STATUS : 0);
    for (unsigned i = 0; i < 8; i++) in.mask[i] = 0x0123456789abcdefull * (2 * i + 1);
    for (unsigned i = 0; i < sizeof in.vector; i++)
        in.vector[i / 64][i % 64] = (uint8_t)(i * 37 + i / 64);
    for (unsigned i = 0; i < sizeof stack; i++) stack[i] = (uint8_t)(i * 11 + 3);
    memset(&out, 0, sizeof out);
    run_site(function_of(s), &in, &out);
    return out;
}

struct outcome {
    struct state state[4];
    uint8_t around[4][1024]; /* the stack: red zone below TOP, the caller's part above */
};

static void run_all(const struct shape *s, struct outcome *o) {
    for (unsigned i = 0; i < 4; i++) {
        o->state[i] = run(s, i & 1, i & 2);
        /* clobbered by the system call itself */
        o->state[i].gpr[RCX] = o->state[i].gpr[R11] = 0;
        memcpy(o->around[i], TOP - 512, 1024);
    }
}

/* --- patching --------------------------------------------------------------------------------- */

static unsigned ours_patched, libc_patched;

static void done(const char *name, unsigned patched, unsigned left) {
    if (verbose) printf("object %s: %u patched, %u left\n", name, patched, left);
    if (!strcmp(name, "libsites.so"))
        ours_patched = patched;
    else if (!strcmp(name, "libc.so.6"))
        libc_patched = patched;
}

static void left(const char *object, uintptr_t offset, const char *reason) {
    if (verbose) printf("left: %s+0x%lx %s\n", object, (unsigned long)offset, reason);
}

static void patch(void (*entry)(void), int class) {
    struct patch_config c = {.class_table = classes,
                             .class_table_rtld = classes,
                             .entry = entry,
                             .report = left,
                             .object_done = done,
                             .by_mprotect = getenv("BY_MPROTECT")};
    const char *unsafe;
    memset(classes, class, sizeof classes);
    int n = patch_startup(&c, &unsafe);
    if (n <= 0) {
        printf("FAILED: patch_startup: %d\n", n);
        exit(1);
    }
}

/* Check that the jump is at the expected place, and the contents of its patch_site. */
static void check_bytes(const struct shape *s, const uint8_t *before, uintptr_t shift) {
    const uint8_t *f = function_of(s) + shift, *site = f + s->site;
    const struct patch_site *p = NULL;
    for (const uint8_t *b = f; b < f + 64 && !p; b++) {
        const uint8_t *stub = b + 5 + *(const int32_t *)(b + 1);
        if (*b == 0xe9 && (uintptr_t)b != (uintptr_t)stub) {
            p = patch_site_at((uintptr_t)stub);
            if (p && (p->window != (uintptr_t)b || p->syscall != (uintptr_t)site)) p = NULL;
        }
    }
    if (s->len == 0) {
        check(!p && !memcmp(site, before + s->site, 2), "%s: its call is left alone", name_of(s));
        return;
    }
    check(p && p->window == (uintptr_t)f + s->from && p->window_len == s->len,
          "%s: window at +%ld, %u bytes; expected +%d, %d", name_of(s),
          p ? (long)(p->window - (uintptr_t)f) : -1, p ? p->window_len : 0, s->from, s->len);
    if (!p) return;
    check(!memcmp(p->original, before + s->from, s->len), "%s: original bytes are kept",
          name_of(s));
    bool trap = true;
    for (int i = 5; i < s->len; i++) trap &= f[s->from + i] == 0xcc;
    check(trap, "%s: the window's rest is int3", name_of(s));
    check(patch_site_at(p->stub) == p && patch_site_at(p->stub_end - 1) == p &&
              patch_site_at(p->direct) == p && patch_site_at(p->stub - 1) != p &&
              patch_site_at(p->stub_end) != p,
          "%s: lookup by address", name_of(s));
    check(patch_native_ip(p->stub) == p->window && patch_native_ip(p->direct) == p->syscall &&
              patch_native_ip(p->direct - 1) == p->syscall &&
              patch_native_ip(p->after) == p->syscall + 2 &&
              patch_native_ip(p->stub_end - 1) == p->window + p->window_len,
          "%s: native addresses", name_of(s));
}

/* --- stepping --------------------------------------------------------------------------------- */

static uintptr_t trail[256];
static unsigned steps;
static volatile bool stepping;
static uintptr_t step_lo, step_hi;

static void on_trap(int sig, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    (void)sig, (void)info;
    uintptr_t ip = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP], native = patch_native_ip(ip);
    if (native) ip = native;
    if (ip >= step_lo && ip < step_hi && steps < 256 && (steps == 0 || trail[steps - 1] != ip))
        trail[steps++] = ip;
    if (!stepping) uc->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
}

static void step(const struct shape *s) {
    steps = 0;
    step_lo = (uintptr_t)function_of(s);
    step_hi = step_lo + 64;
    stepping = true;
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    struct state in = {0}, out;
    in.gpr[R8] = 110;
    in.gpr[RSP] = (uint64_t)TOP;
    in.flags = 0x302; /* popfq in run_site would end the stepping */
    run_site(function_of(s), &in, &out);
    stepping = false;
    __asm__ volatile("nop; nop" ::: "memory");
}

/* Compare two trails of addresses. The trap of a stepped system call comes one instruction late,
 * so a run may miss the instruction after it. */
static bool same_story(const uintptr_t *a, unsigned na, const uintptr_t *b, unsigned nb) {
    unsigned i = 0, j = 0, missed = 0;
    while (i < na && j < nb) {
        if (a[i] == b[j]) {
            i++, j++;
        } else if (i + 1 < na && a[i + 1] == b[j]) {
            i++, missed++;
        } else if (j + 1 < nb && a[i] == b[j + 1]) {
            j++, missed++;
        } else {
            return false;
        }
    }
    return missed <= 1 && na - i <= 1 && nb - j <= 1;
}

/* --- an object mapped by hand, as the loader leaves it before relocating ---------------------- */

static uint8_t *map_object(const char *path, size_t *len) {
    Elf64_Ehdr e;
    Elf64_Phdr ph[32];
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, &e, sizeof e) != sizeof e || e.e_phnum > 32 ||
        pread(fd, ph, e.e_phnum * sizeof *ph, (off_t)e.e_phoff) !=
            (ssize_t)(e.e_phnum * sizeof *ph))
        return NULL;
    uintptr_t end = 0;
    for (int i = 0; i < e.e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end)
            end = ph[i].p_vaddr + ph[i].p_memsz;
    end = (end + 4095) & ~4095ul;
    uint8_t *base = mmap(NULL, end, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < e.e_phnum; i++) {
        uintptr_t lo = ph[i].p_vaddr & ~4095ul;
        int prot = (ph[i].p_flags & PF_R ? PROT_READ : 0) |
                   (ph[i].p_flags & PF_W ? PROT_WRITE : 0) | (ph[i].p_flags & PF_X ? PROT_EXEC : 0);
        if (ph[i].p_type == PT_LOAD)
            mmap(base + lo, ph[i].p_vaddr + ph[i].p_filesz - lo, prot, MAP_PRIVATE | MAP_FIXED, fd,
                 (off_t)(ph[i].p_offset & ~4095ul));
    }
    close(fd);
    *len = end;
    return base;
}

static uint8_t code[64][64]; /* each function before patching */

static void check_late(const char *path, unsigned expected, const struct shape *s) {
    const char *base_name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t len;
    uint8_t *base = map_object(path, &len);
    const char *unsafe;
    if (!base) {
        check(false, "%s: mapping it", path);
        return;
    }
    Dl_info info;
    dladdr(shapes, &info);
    uintptr_t shift = (uintptr_t)base - (uintptr_t)info.dli_fbase;
    int n = patch_mapped((uintptr_t)base, len, path, &unsafe);
    check(n == (int)expected, "%s mapped late: %d patched, %u when loaded", base_name, n, expected);
    check(patch_mapped((uintptr_t)base, len, path, &unsafe) == 0, "%s: a second time is a no-op",
          base_name);
    if (s) {
        for (unsigned i = 0; s[i].name; i++) check_bytes(&s[i], code[i], shift);
        uintptr_t window = (uintptr_t)function_of(s) + shift + (uintptr_t)s->from;
        uintptr_t stub = window + 5 + (uintptr_t)(intptr_t)*(int32_t *)(window + 1);
        patch_unmapped((uintptr_t)base, len);
        check(!patch_site_at(stub), "%s unmapped: forgotten", base_name);
        /* repeated map and unmap must reuse the stub pages */
        munmap(base, len);
        for (int i = 0; i < 50; i++) {
            base = map_object(path, &len);
            shift = (uintptr_t)base - (uintptr_t)info.dli_fbase;
            if (patch_mapped((uintptr_t)base, len, path, &unsafe) != (int)expected)
                check(false, "%s: mapped again", base_name);
            window = (uintptr_t)function_of(s) + shift + (uintptr_t)s->from;
            if (window + 5 + (uintptr_t)(intptr_t)*(int32_t *)(window + 1) != stub)
                check(false, "%s: stub pages are not used again", base_name);
            patch_unmapped((uintptr_t)base, len);
            munmap(base, len);
        }
    } else {
        patch_unmapped((uintptr_t)base, len);
        munmap(base, len);
    }
}

static bool avx512(void) {
    unsigned a, b, c, d, lo, hi;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX512F) || !(b & bit_AVX512BW))
        return false;
    __get_cpuid(1, &a, &b, &c, &d);
    if (!(c & bit_OSXSAVE)) return false;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & 0xe6) == 0xe6;
}

int main(int argc, char **argv) {
    enum { MAX = 64 };
    static struct outcome native[MAX], now;
    static uintptr_t native_trail[MAX][256];
    unsigned native_steps[MAX], count = 0, expected = 0;

    verbose = argc > 1 && !strcmp(argv[1], "-v");
    (void)argv;
    have_avx512 = avx512();
    setvbuf(stdout, NULL, _IONBF, 0);
    struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &sa, NULL);

    for (const struct shape *s = shapes; s->name; s++, count++) {
        memcpy(code[count], function_of(s), 64);
        expected += s->len != 0;
        if (!strcmp(name_of(s), "sigreturn")) continue;
        run_all(s, &native[count]);
        step(s);
        native_steps[count] = steps;
        memcpy(native_trail[count], trail, sizeof trail);
    }
    expected += 3; /* the one real call of constant_inside, and the second call of each pair */

    static const struct {
        const char *name;
        void (*entry)(void);
        int class;
    } modes[] = {
        {"class 0", entry_direct, 0},
        {"class 1, back to direct", entry_direct, 1},
        {"class 1, emulated", entry_emulate, 1},
    };
    for (unsigned m = 0; m < 3; m++) {
        patch(modes[m].entry, modes[m].class);
        check(ours_patched == expected, "%s: %u of %u sites patched", modes[m].name, ours_patched,
              expected);
        unsigned i = 0;
        for (const struct shape *s = shapes; s->name; s++, i++) {
            check_bytes(s, code[i], 0);
            if (!strcmp(name_of(s), "sigreturn")) continue;
            long before = entry_count;
            run_all(s, &now);
            if (s->len)
                check((entry_count - before != 0) == (modes[m].class != 0),
                      "%s, %s: the entry is asked", name_of(s), modes[m].name);
            check(!memcmp(&now.state, &native[i].state, sizeof now.state), "%s, %s: registers",
                  name_of(s), modes[m].name);
            check(!memcmp(now.around, native[i].around, sizeof now.around),
                  "%s, %s: stack and red zone", name_of(s), modes[m].name);
            step(s);
            bool same = same_story(trail, steps, native_trail[i], native_steps[i]);
            check(same && steps > 0, "%s, %s: stepping", name_of(s), modes[m].name);
            for (unsigned k = 0; !same && k < 20 && (k < steps || k < native_steps[i]); k++)
                printf("   native +%ld, patched +%ld\n",
                       k < native_steps[i] ? (long)(native_trail[i][k] - step_lo) : -1L,
                       k < steps ? (long)(trail[k] - step_lo) : -1L);
        }
        if (m == 0) {
            Dl_info info;
            dladdr(shapes, &info);
            check_late(info.dli_fname, expected, shapes);
            dladdr((void *)getppid, &info);
            check_late(info.dli_fname, libc_patched, NULL);
        }
        patch_undo_all();
        i = 0;
        bool restored = true;
        for (const struct shape *s = shapes; s->name; s++, i++)
            restored &= !memcmp(code[i], function_of(s), 64);
        check(restored, "%s: undone to the byte", modes[m].name);
    }
    printf("%s\n", have_avx512 ? "vector state: 32 zmm, 8 mask registers" : "vector state: 16 xmm");
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
