/* SPDX-License-Identifier: MIT
 *
 * How code is written.
 *
 * Through /proc/self/mem: a forced write reaches read-only private mappings by copy-on-write. No
 * page is writable at any time, and its protection need not be known.
 *
 * Since 6.12 Linux may force writes for debuggers only (CONFIG_PROC_MEM_FORCE_PTRACE,
 * proc_mem.force_override=). The file then opens as ever, but pwrite fails with EIO. In that case
 * the mappings are made writable while code is written. The bytes still go through the file. If the
 * page is gone or has a protection key, the write fails, where a store would end the program.
 *
 * A process that has given up its privileges since it was executed cannot open the file (it belongs
 * to root), nor can one without /proc. There the mappings are made writable as well, and the bytes
 * are written by process_vm_writev(2), which fails in the same cases.
 *
 * The mappings stay executable meanwhile, since other threads may run there. So a policy against
 * pages that are both refuses the first mprotect, when nothing has been changed. If the second one
 * fails, the mappings only stay writable.
 *
 * The lock lets one thread write at a time: closing a page takes it away from any other writer.
 * Code is written by the constructor, by the caller of dlopen, and by the monitor. Code of the
 * program cannot interrupt them meanwhile, and this is the last lock that they take. No thread
 * executes code of which some bytes are still to be written (patch.h). Or it is one byte
 * (spin/site.h), which the kernel stores at once. The program's own mprotect is not seen:
 * docs/guide/limits.md.
 */
#include "internal.h"

#include "../prim/lock.h"
#include "../prim/maps.h"
#include "../prim/prim.h"

#include <sys/mman.h>
#include <sys/uio.h>

static bool always; /* use mprotect, whether or not writes can be forced */
static bool needed; /* mprotect has been used */
static struct lock writing;

/* Mappings that are writable now, or about to be; under `writing`. In a fork's child: those that
 * another thread had left so. */
static struct {
    uintptr_t lo, hi;
} opened[PATCH_MAX_SEGMENTS];
static uint32_t opened_count;

int patch_memory(void)
{
    int memory = prim_open("/proc/self/mem", 02 /* O_RDWR */ | 02000000 /* O_CLOEXEC */);
    return memory >= 0 ? memory : PATCH_NO_FILE;
}

void patch_memory_close(int memory)
{
    if (memory >= 0)
        prim_close(memory);
}

bool patch_write(int memory, uintptr_t at, const void *bytes, size_t n)
{
    struct iovec from = {(void *)(uintptr_t)bytes, n}, to = {(void *)at, n};
    if (memory >= 0)
        return prim_pwrite(memory, bytes, n, (long)at) == (long)n;
    long pid = prim_pid();
    return prim_syscall6(SYS_process_vm_writev, pid, (long)&from, 1, (long)&to, 1, 0) == (long)n;
}

/* Return whether writes can be forced: write the byte that is there. */
static bool has_force(int memory, uintptr_t at)
{
    uint8_t byte;
    return memory >= 0 && prim_pread(memory, &byte, 1, (long)at) == 1 &&
           patch_write(memory, at, &byte, 1);
}

static void close_all(void)
{
    /* Opened mappings were r-x. Entries that were never opened still are. */
    for (uint32_t i = 0; i < opened_count; i++)
        prim_mprotect((void *)opened[i].lo, opened[i].hi - opened[i].lo, PROT_READ | PROT_EXEC);
    __atomic_store_n(&opened_count, 0, __ATOMIC_RELEASE);
}

struct search {
    uintptr_t lo, hi;
    uint32_t found;
};

/* Note mappings that are r-x. All else in between is left alone: a write there shows whether it can
 * be written. */
static bool find(void *argument, const struct mapping *m)
{
    struct search *s = argument;
    if (m->lo >= s->hi)
        return false;
    if (m->hi <= s->lo || !m->is_private || !m->readable || m->writable || !m->executable)
        return true;
    if (s->found < PATCH_MAX_SEGMENTS) {
        opened[s->found].lo = m->lo > s->lo ? m->lo : s->lo;
        opened[s->found].hi = m->hi < s->hi ? m->hi : s->hi;
    }
    return ++s->found <= PATCH_MAX_SEGMENTS;
}

static int open_all(uintptr_t lo, uintptr_t hi)
{
    struct search s = {lo & ~(PATCH_PAGE - 1), (hi + PATCH_PAGE - 1) & ~(PATCH_PAGE - 1), 0};
    if (!maps_walk(find, &s) || s.found > PATCH_MAX_SEGMENTS)
        return PATCH_EIO;
    /* Before the first is opened: the process may fork at any time. */
    __atomic_store_n(&opened_count, s.found, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < s.found; i++) {
        int err = prim_mprotect((void *)opened[i].lo, opened[i].hi - opened[i].lo,
                                PROT_READ | PROT_WRITE | PROT_EXEC);
        if (err < 0) {
            close_all();
            return err == PATCH_ENOMEM ? err : PATCH_EACCES;
        }
    }
    needed |= s.found > 0;
    return 0;
}

int patch_write_begin(int memory, uintptr_t lo, uintptr_t hi)
{
    lock_take(&writing);
    int err = !always && has_force(memory, lo) ? 0 : open_all(lo, hi);
    if (err < 0)
        lock_drop(&writing);
    return err;
}

void patch_write_end(void)
{
    if (opened_count)
        close_all();
    lock_drop(&writing);
}

void patch_write_by_mprotect(bool for_test) { always = for_test; }

bool patch_needs_mprotect(void) { return needed; }

void patch_after_fork(void)
{
    writing.word = 0;
    if (opened_count)
        close_all();
}
