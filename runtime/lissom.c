/* SPDX-License-Identifier: MIT
 *
 * The constructor, fork, giving up, and the threads of OpenMP runtimes.
 *
 * The library is linked with -z initfirst: this constructor runs before those of all other objects,
 * while there is one thread, and before libc's own. So it takes the environment from its arguments,
 * and calls nothing of libc.
 */
#include "alone.h"
#include "attributes.h"
#include "cpus/cpus.h"
#include "lissom.h"
#include "sched/bind.h"
#include "monitor/limit.h"
#include "monitor/manager.h"
#include "events/events.h"
#include "futex/futex.h"
#include "policy/haltpoll.h"
#include "omp/loops.h"
#include "notice.h"
#include "omp/teams.h"
#include "options.h"
#include "prim/text.h"
#include "prim/vector.h"
#include "report.h"
#include "rseq.h"
#include "sched/actions.h"
#include "sched/ext.h"
#include "sched/frame.h"
#include "sched/profile.h"
#include "sched/release.h"
#include "sched/signals.h"
#include "restrict.h"
#include "spin/loops.h"
#include "spin/site.h"
#include "calls.h"
#include "monitor/monitor.h"
#include "sched/hooks.h"
#include "takeover.h"
#include "visible.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The record of a process that has none in the region. Whole pages, so that the kernel can zero it
 * in a fork's child. */
static union {
    struct lissom_record record;
    char pages[(sizeof(struct lissom_record) + 4095) / 4096 * 4096];
} private_record __attribute__((aligned(4096)));
static bool record_wiped;
struct lissom_record *record = &private_record.record;

static struct lissom_region *region;

extern uint64_t lissom_xsave_mask;
extern uint32_t lissom_vector_slow;

static bool begins(const char *s, const char *prefix)
{
    while (*prefix && *s == *prefix)
        s++, prefix++;
    return !*prefix;
}

/* --- the record ------------------------------------------------------------------------------- */

static void claim_record(void)
{
    struct lissom_record *r = &private_record.record;
    if (region) {
        uint32_t i = __atomic_fetch_add(&region->header.claimed, 1, __ATOMIC_RELAXED);
        if (i < LISSOM_MAX_RECORDS)
            r = &region->record[i];
    }
    r->pid = (uint32_t)sched.pid;
    r->slots = sched.slots;
    /* of the main thread, or of the only thread of a fork's child, where /proc would take 30 us */
    prim_syscall3(SYS_prctl, PR_GET_NAME, (long)r->comm, 0);
    record = r;
}

static void open_region(void)
{
    if (options.stats_fd < 0)
        return;
    struct lissom_header h;
    if (!prim_cannot_shrink(options.stats_fd) ||
        prim_pread(options.stats_fd, &h, sizeof h, 0) != sizeof h || h.magic != LISSOM_ABI_MAGIC ||
        h.version != LISSOM_ABI_VERSION || h.record_bytes != sizeof(struct lissom_record))
        return; /* a descriptor of the program that happens to have this number */
    void *p = prim_mmap(NULL, LISSOM_REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        options.stats_fd, 0);
    if (!prim_is_error(p))
        region = p;
}

static void state(enum lissom_state s, const char *reason)
{
    record->state = s;
    size_t n = strlen(reason);
    if (n >= sizeof record->reason)
        n = sizeof record->reason - 1;
    memcpy(record->reason, reason, n);
    record->reason[n] = 0;
}

static void object_done(const char *name, unsigned patched, unsigned left)
{
    count_add(sites_patched, patched);
    count_add(sites_left, left);
    if (record->objects < LISSOM_MAX_OBJECTS) {
        struct lissom_object *o = &record->object[record->objects++];
        size_t n = strlen(name);
        if (n >= sizeof o->name)
            n = sizeof o->name - 1;
        memcpy(o->name, name, n);
        o->patched = patched;
        o->left = left;
    }
    if (options.verbose)
        report("%s: %u system call sites redirected, %u left alone", name, patched, left);
}

static void site_left(const char *object, uintptr_t offset, const char *reason)
{
    if (options.verbose)
        report("%s+0x%x left alone: %s", object, (unsigned)offset, reason);
}

/* --- start ------------------------------------------------------------------------------------ */

/* Return whether it is libgomp, libomp or libiomp, also as a copy that a Python package has
 * renamed. */
static bool is_openmp(const char *name)
{
    return begins(name, "libgomp") || begins(name, "libomp") || begins(name, "libiomp");
}

/* Code of OpenMP libraries, for pthread_create. That must not take the loader's lock, as dladdr
 * does: the holder may be in a constructor that waits for the new thread. Written under that lock;
 * lo is 0 or valid. */
static struct {
    uintptr_t lo, hi;
} openmp[8];

static uint16_t object_found(const char *name, uintptr_t lo, uintptr_t hi)
{
    if (!is_openmp(name))
        return OBJECT_OTHER;
    for (unsigned i = 0; i < sizeof openmp / sizeof *openmp; i++)
        if (!openmp[i].lo || openmp[i].lo == lo) {
            __atomic_store_n(&openmp[i].hi, hi, __ATOMIC_RELAXED);
            __atomic_store_n(&openmp[i].lo, lo, __ATOMIC_RELEASE);
            break;
        }
    return OBJECT_OPENMP;
}

static void functions_done(const char *name, unsigned redirected, unsigned left)
{
    count_add(loop_functions, redirected);
    count_add(loop_functions_left, left);
    if (options.verbose && redirected + left)
        report("%s: %u OpenMP functions redirected, %u left alone", name, redirected, left);
}

static struct patch_config patch_config = {
    .class_table = calls_kind,
    .class_table_rtld = calls_kind_rtld,
    .entry = lissom_syscall_entry,
    .report = site_left,
    .object_found = object_found,
    .object_done = object_done,
    .functions_in = OBJECT_OPENMP,
    .function_what = omp_function_what,
    .functions_beside = omp_functions_beside,
    .function_entry = lissom_omp_entry,
    .functions_done = functions_done,
};

typedef int pthread_create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static pthread_create_function *real_pthread_create;

static void find_pthread_create(void)
{
    real_pthread_create = (pthread_create_function *)patch_function_behind("pthread_create");
}

/* AddressSanitizer's runtime calls this function by name. It wants to be the first library, in case
 * another one brings an allocator; this one does not. A program's own function of this name comes
 * before this one. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

/* Not imported: glibc before 2.16 lacks it, and its loader would end the program. */
typedef unsigned long getauxval_function(unsigned long);
static getauxval_function *libcs_getauxval;

typedef int clock_gettime_function(clockid_t, struct timespec *);
static clock_gettime_function *real_clock_gettime;

/* Ask the kernel for the calling thread's CPU time by a redirected call: the vDSO, which is not
 * redirected, would answer for the carrier. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID || !real_clock_gettime)
        return (int)syscall(SYS_clock_gettime, clock, t);
    return real_clock_gettime(clock, t);
}

/* Return whether threads exist already. The program has created them by system calls of its own.
 * Or, before glibc 2.34, a library's constructor has run before this one: the loader lets one
 * library go first, the last one that asks, and that may be libpthread. */
static bool is_late(void)
{
    struct stat tasks;
    enum { ALONE = 3 }; /* two links that each folder has, and one per thread */
    return prim_syscall4(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks, 0) == 0 &&
           tasks.st_nlink > ALONE;
}

/* Return whether user shadow stacks are on. They only allow returns to the caller, but the runtime
 * returns from signals elsewhere, and switches stacks. */
static bool has_shadow_stacks(void)
{
    enum { ARCH_SHSTK_STATUS = 0x5005, ARCH_SHSTK_SHSTK = 1 }; /* asm/prctl.h of Linux 6.6 */
    unsigned long features = 0;
    return prim_syscall3(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features, 0) == 0 &&
           (features & ARCH_SHSTK_SHSTK);
}

static void say_state(void)
{
    if (options.verbose)
        report("%s, %u slots%s%s", sched.active ? "active" : "native", sched.slots,
               sched.active ? "" : ": ", record->reason);
}

/* NULL: another libc. A child may have musl, for example, which gives constructors no arguments. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* Minor versions of glibc 2, of which a container may bring any: the oldest that has been tried,
 * the first with clone3, and the first that is one library. */
enum { LIBC_OLDEST = 28, LIBC_CLONE3 = 34, LIBC_ONE_LIBRARY = 34 };

/* Return N for version 2.N, otherwise 0. */
static uint32_t libc_minor(void)
{
    const char *v = gnu_get_libc_version ? gnu_get_libc_version() : "";
    uint32_t minor = 0;
    if (!begins(v, "2."))
        return 0;
    for (v += 2; is_digit(*v) && minor < 1000; v++)
        minor = minor * 10 + (uint32_t)(*v - '0');
    return minor;
}

/* Return why the process has to run natively, or NULL. */
static const char *unfit_process(void)
{
    if (is_late())
        return "threads were created before the runtime could start";
    if (has_shadow_stacks())
        return "user shadow stacks are on";
    if (sched.openmp_binds && libc_minor() < LIBC_ONE_LIBRARY)
        return "glibc is older than 2.34, and OpenMP may have bound the first thread already";
    return frames_fit() ? NULL : "the signal frames of this CPU are too large";
}

/* Begin to manage the process: it is about to have two threads, or waits for others. unfit: why it
 * cannot be managed, or NULL. */
static void begin(const char *unfit)
{
    alone_end();
    sched.pid = prim_pid();
    if (record->pid != (uint32_t)sched.pid)
        claim_record(); /* a child of the executed process */
    state(LISSOM_STATE_starting, "");
    sched.slots = cpus_init(options.cpus, sched.openmp_binds);
    record->slots = sched.slots;
    if (!unfit)
        unfit = unfit_process();
    if (unfit) {
        state(LISSOM_STATE_native, unfit);
        say_state();
        return;
    }
    slots_init(sched.slots);
    futex_init();
    record_wiped = prim_wipe_on_fork(&private_record, sizeof private_record);
    loops_init(options.active_threads, options.shake_loops);
    teams_init(options.max_threads);
    sched.user_switch = vector_state(libcs_getauxval(AT_HWCAP2), &lissom_xsave_mask) == VECTOR_FITS;
    lissom_vector_slow = vector_slow(lissom_xsave_mask);
    sched.tsc_per_us = clock_tsc_per_us(clock_read);
    record->tsc_per_us = (uint32_t)sched.tsc_per_us;
    ext_ask();
    calls_init();
    if (options.visible_cpus)
        visible_begin(options.visible_cpus == SEES_WHOLE);
    actions_init();
    unfit = takeover();
    if (unfit) {
        actions_end();
        state(LISSOM_STATE_native, unfit);
        say_state();
        return;
    }

    const struct omp_wanted wanted = {options.malleable, options.small_teams,
                                      options.max_threads > 0};
    omp_functions(&wanted);
    if (!wanted.loops && !wanted.teams && !wanted.ceiling)
        patch_config.functions_in = OBJECT_OTHER;
    patch_config.by_mprotect = options.patch_by_mprotect;
    const char *unsafe;
    int n = patch_startup(&patch_config, &unsafe);
    if (n < 0) {
        state(LISSOM_STATE_native,
              n == -EACCES ? REASON_NO_CODE : "the code of libc could not be patched");
    } else if (unsafe) {
        patch_undo_all();
        state(LISSOM_STATE_native, unsafe);
    } else {
        state(LISSOM_STATE_active, "");
        sched.active = true;
        if (sched.observe_spinning)
            monitor_kick();
    }
    if (!sched.active)
        actions_end();
    if (options.verbose && patch_needs_mprotect())
        report("code was made writable for a moment: %s",
               options.patch_by_mprotect ? "LISSOM_PATCH requests it"
                                         : "/proc/self/mem refuses forced writes");
    say_state();
}

/* Begin in a process of one thread, in a signal handler. */
static void begin_alone(void)
{
    notice_now(true);
    if (!sched.active)
        return;
    sched_yield(); /* redirected: the thread gets its slot */
    sched.has_made_threads = true;
    monitor_kick();
}

__attribute__((constructor)) static void start(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv;
    /* also if nothing else is done */
    restrict_init(patch_function_behind);
    alone_init(patch_function_behind);
    real_clock_gettime = (clock_gettime_function *)patch_function_behind("clock_gettime");
    uint32_t libc = libc_minor();
    libcs_getauxval = (getauxval_function *)patch_function_behind("getauxval");
    if (libc < LIBC_OLDEST || !libcs_getauxval)
        return;
    /* The program has rights that the user who started it, and set its environment, does not have.
     * The loader drops LD_PRELOAD for it, but not /etc/ld.so.preload. */
    if (libcs_getauxval(AT_SECURE))
        return;
    if (!options_read(environment))
        return;
    if (sched.openmp_binds)
        cpus_loaded();
    find_pthread_create();
    sched.pid = prim_pid();
    open_region();
    claim_record();
    state(LISSOM_STATE_single, "");
    thread_class_at_start();
    sched.uses_rseq = sched.level != LEVEL_KERNEL && !rseq_end_of_libc();
    patch_write_by_mprotect(options.patch_by_mprotect);
    bool at_once = options.at_once || options.malleable || options.max_threads ||
                   options.visible_cpus || options.small_teams || sched.observe_spinning ||
                   (libc < LIBC_CLONE3 && is_late());
    if (at_once ||
        !notice_second_thread(patch_function_behind("clone"), libc >= LIBC_CLONE3, begin))
        begin(NULL);
    else if (sched.detect_spinning)
        alone_look(begin_alone);
}

void lissom_before_restriction(void)
{
    alone_end();
    if (!notice_never())
        return;
    state(LISSOM_STATE_native, REASON_RESTRICTS);
    say_state();
}

/* --- changes at run time ---------------------------------------------------------------------- */

static void path_of(int fd, char *path, size_t size)
{
    char link[32] = "/proc/self/fd/";
    write_number(link + strlen(link), (uint32_t)fd);
    long n = prim_syscall3(SYS_readlink, link, path, size - 1);
    path[n > 0 ? n : 0] = 0;
}

void lissom_object_mapped(uintptr_t base, size_t len, int fd)
{
    static char path[4096]; /* the loader's lock is held */
    const char *unsafe;
    path_of(fd, path, sizeof path);
    patch_mapped(base, len, path, &unsafe);
    if (unsafe)
        lissom_give_up(unsafe);
}

long lissom_object_munmap(uintptr_t base, size_t len)
{
    for (unsigned i = 0; i < sizeof openmp / sizeof *openmp; i++)
        if (openmp[i].lo >= base && openmp[i].lo - base < len)
            __atomic_store_n(&openmp[i].lo, 0, __ATOMIC_RELEASE);
    patch_unmapped(base, len);
    spin_loops_unmapped(base, len);
    return spin_sites_munmap(base, len);
}

void lissom_give_up(const char *reason)
{
    /* First: a thread that sees native_waits waits where only wakers that see this wake it
     * (docs/model/giveup.pml). */
    __atomic_fetch_add(&futex_foreign_waiters, 1, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&sched.native_waits, true, __ATOMIC_SEQ_CST))
        return;
    futex_end_all_waits();
    events_give_up();
    cpus_give_up();
    monitor_kick();
    state(LISSOM_STATE_native, reason);
    if (options.verbose)
        report("gives up: %s", reason);
}

/* The start of a thread that an OpenMP runtime creates. */
struct start {
    void *(*function)(void *);
    void *argument;
    struct start *next;
};
static struct lock starts_lock;
static struct start *starts_free;

void lissom_forked(struct thread *t)
{
    /* Block the child's own signals until the deferred queue, which holds the parent's, is
     * empty. */
    uint64_t mask = signals_block_all();
    if (t->home->closed)
        mask = t->home->mask;
    starts_lock.word = 0;
    starts_free = NULL; /* another thread of the parent may have been changing it */
    patch_after_fork();
    thread_forget_others(t);
    futex_after_fork();
    profile_after_fork();
    threshold_after_fork();
    events_after_fork();
    monitor_after_fork();
    signals_after_fork(t);
    cpus_after_fork();
    spin_sites_after_fork();
    spin_loops_after_fork();
    loops_after_fork(t);
    if (!record_wiped)
        memset(&private_record, 0, sizeof private_record);
    uint32_t objects = record->objects;
    struct lissom_record *old = record;
    claim_record();
    if (record != old) {
        record->objects = objects;
        memcpy(record->object, old->object, sizeof record->object);
    }
    record->state = giving_up() ? LISSOM_STATE_native : LISSOM_STATE_active;
    record->tsc_per_us = (uint32_t)sched.tsc_per_us;
    count(threads);
    record->counter[LISSOM_C_threads_peak] = 1;
    signals_set_mask(mask);
}

/* --- threads of OpenMP runtimes --------------------------------------------------------------- */

static struct start *start_get(void)
{
    uint64_t mask = signals_block_all();
    lock_take(&starts_lock);
    if (!starts_free) {
        struct start *s =
            prim_mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!prim_is_error(s))
            for (unsigned i = 0; i < 4096 / sizeof *s; i++) {
                s[i].next = starts_free;
                starts_free = &s[i];
            }
    }
    struct start *s = starts_free;
    if (s)
        starts_free = s->next;
    lock_drop(&starts_lock);
    signals_set_mask(mask);
    return s;
}

/* Pre: all signals are blocked. */
static void start_put(struct start *s)
{
    lock_take(&starts_lock);
    s->next = starts_free;
    starts_free = s;
    lock_drop(&starts_lock);
}

static void *openmp_worker(void *argument)
{
    struct start *s = argument, copy = *s;
    uint64_t mask = signals_block_all();
    start_put(s);
    if (lissom_self) {
        lissom_self->openmp = true;
        if (sched.openmp_binds)
            attributes_were_set(lissom_self);
    }
    signals_set_mask(mask);
    return copy.function(copy.argument);
}

static bool from_openmp(void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    for (unsigned i = 0; i < sizeof openmp / sizeof *openmp; i++) {
        uintptr_t lo = __atomic_load_n(&openmp[i].lo, __ATOMIC_ACQUIRE);
        if (lo && at >= lo && at < __atomic_load_n(&openmp[i].hi, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attr,
                                                          void *(*function)(void *), void *argument)
{
    if (!real_pthread_create)
        find_pthread_create();
    if (!real_pthread_create)
        return EAGAIN;
    notice_now(true);
    if (sched.active && from_openmp(__builtin_return_address(0))) {
        struct start *s = start_get();
        if (s) {
            s->function = function;
            s->argument = argument;
            int error = real_pthread_create(thread, attr, openmp_worker, s);
            if (error) {
                uint64_t mask = signals_block_all();
                start_put(s);
                signals_set_mask(mask);
            }
            return error;
        }
    }
    return real_pthread_create(thread, attr, function, argument);
}
