/* SPDX-License-Identifier: MIT
 *
 * The process connects to the manager's socket and receives a page of memory (struct
 * lissom_program). Both write to that page from then on. So no signal is taken from the program,
 * and nothing that the manager does, or fails to do, can stop it. The page is sealed, so nobody can
 * truncate it. Its contents are clamped. A target holds for a short time only, and a manager that
 * ends closes the connection.
 *
 * No thread is woken when the target grows: the monitor checks every 3 ms while threads are ready,
 * and otherwise there is no thread to run.
 */
#include "monitor/manager.h"
#include "cpus/cpus.h"
#include "prim/prim.h"
#include "sched/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

enum {
    RETRY_MS = 1000,
    FAR_MS = 60000, /* ignore a target that claims to hold for longer */
    PATHS = 2,
};

static struct sockaddr_un path[PATHS]; /* sun_path empty: none */

static struct {
    bool forbidden;
    int socket;                     /* -1: not connected */
    uint64_t retry;                 /* ms: time of the next attempt */
    struct lissom_program *program; /* NULL: not received */
    bool has_target;                /* a target holds */
} manager = {.forbidden = true, .socket = -1};

static void path_is(struct sockaddr_un *a, const char *folder, const char *file)
{
    size_t n = strlen(folder), m = strlen(file);
    a->sun_family = AF_UNIX;
    if (n + m >= sizeof a->sun_path)
        return;
    memcpy(a->sun_path, folder, n);
    memcpy(a->sun_path + n, file, m + 1);
}

void manager_paths(const char *socket, const char *runtime_dir)
{
    if (socket) {
        path_is(&path[0], socket, "");
        return;
    }
    if (runtime_dir && *runtime_dir == '/')
        path_is(&path[0], runtime_dir, "/" LISSOM_MANAGER_SOCKET);
    path_is(&path[1], LISSOM_MANAGER_SYSTEM, "");
}

/* --- the connection --------------------------------------------------------------------------- */

static void disconnect(void)
{
    if (manager.program)
        prim_munmap(manager.program, LISSOM_PROGRAM_BYTES);
    manager.program = NULL;
    manager.has_target = false;
    if (manager.socket >= 0)
        prim_close(manager.socket);
    manager.socket = -1;
}

/* Returns whether the manager runs as this user, or as root. */
static bool may_manage(int socket)
{
    struct ucred c;
    socklen_t n = sizeof c;
    if (prim_syscall6(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, (long)&c, (long)&n, 0) < 0)
        return false;
    return c.uid == 0 || c.uid == (uid_t)prim_syscall3(SYS_geteuid, 0, 0, 0);
}

static void connect_to(const struct sockaddr_un *a)
{
    /* Check for the socket first: a program may be forbidden to make sockets, and without a manager
     * none is made. */
    struct stat about;
    if (!a->sun_path[0] || prim_syscall4(SYS_newfstatat, AT_FDCWD, a->sun_path, &about, 0) ||
        !S_ISSOCK(about.st_mode))
        return;
    manager.socket =
        (int)prim_syscall3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (manager.socket >= 0 && (prim_syscall3(SYS_connect, manager.socket, a, sizeof *a) < 0 ||
                                !may_manage(manager.socket)))
        disconnect();
}

/* Map a page that cannot be truncated. Returns NULL if fd is none. */
static struct lissom_program *map(int fd)
{
    struct stat about;
    if (!prim_cannot_shrink(fd) || prim_syscall3(SYS_fstat, fd, &about, 0) ||
        about.st_size < LISSOM_PROGRAM_BYTES)
        return NULL;
    struct lissom_program *p =
        prim_mmap(NULL, LISSOM_PROGRAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (prim_is_error(p))
        return NULL;
    if (p->magic == LISSOM_PROGRAM_MAGIC && p->version == LISSOM_PROGRAM_VERSION &&
        !prim_syscall3(SYS_madvise, p, LISSOM_PROGRAM_BYTES, MADV_DONTFORK))
        return p;
    prim_munmap(p, LISSOM_PROGRAM_BYTES);
    return NULL;
}

/* Receive the page. It comes in the only message; anything after that is the end. Returns false if
 * the connection is over. */
static bool receive(void)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    uint64_t hello = 0;
    struct iovec v = {&hello, sizeof hello};
    /* If there is more than one descriptor, the kernel drops the others and sets MSG_CTRUNC. */
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_LEN(sizeof(int))};
    long n = prim_syscall3(SYS_recvmsg, manager.socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == -EAGAIN || n == -EINTR)
        return true;
    /* A message without a byte can carry a descriptor, too. */
    const struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(sizeof(int)))
        return false;
    int fd;
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    bool alone = !(m.msg_flags & MSG_CTRUNC);
    if (alone && !manager.program && n == sizeof hello && hello == LISSOM_PROGRAM_MAGIC)
        manager.program = map(fd);
    prim_close(fd);
    return alone && manager.program;
}

/* Connect if necessary, and receive the page. Returns whether there is one. */
static bool is_connected(uint64_t now_ms)
{
    if (manager.forbidden)
        return false;
    if (manager.socket < 0 && now_ms >= manager.retry) {
        manager.retry = now_ms + RETRY_MS;
        for (int i = 0; i < PATHS && manager.socket < 0; i++)
            connect_to(&path[i]);
    }
    if (manager.socket < 0)
        return false;
    if (!receive())
        disconnect();
    return manager.program;
}

void manager_after_fork(void)
{
    manager.program = NULL; /* the child has neither the page nor the descriptor */
    manager.has_target = false;
}

void manager_begin(bool own_descriptors)
{
    manager.socket = -1; /* the old descriptor table is gone */
    disconnect();
    manager.retry = 0;
    manager.forbidden = !own_descriptors;
}

bool manager_is_there(void) { return manager.program; }

bool manager_decides(void) { return manager.has_target; }

/* --- the page --------------------------------------------------------------------------------- */

static uint64_t waits(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < LISSOM_STRIPES; i++)
        n += __atomic_load_n(&record->stripe[i][LISSOM_C_blocks], __ATOMIC_RELAXED) +
             __atomic_load_n(&record->stripe[i][LISSOM_C_blocks_spun], __ATOMIC_RELAXED) +
             __atomic_load_n(&record->stripe[i][LISSOM_C_parks], __ATOMIC_RELAXED);
    return n;
}

static void set(uint32_t *field, uint32_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

uint32_t manager_target(uint32_t limit, const struct cpu_mask *mask)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), now_ms = now / 1000000;
    if (!is_connected(now_ms))
        return 0;
    struct lissom_program *p = manager.program;
    uint32_t running, demand = slots_demand(&running);
    set(&p->is_malleable, !__atomic_load_n(&sched.native_waits, __ATOMIC_RELAXED));
    set(&p->slots, slots_open());
    set(&p->active_threads, running);
    set(&p->demand, demand);
    set(&p->threads, __atomic_load_n(&sched.threads, __ATOMIC_RELAXED));
    set(&p->limit, limit);
    __atomic_store_n(&p->waits, waits(), __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < LISSOM_PEER_CPUS / 64; i++)
        __atomic_store_n(&p->cpus[i], mask->word[i], __ATOMIC_RELAXED);
    __atomic_store_n(&p->heartbeat, now, __ATOMIC_RELAXED);
    uint64_t target = __atomic_load_n(&p->target, __ATOMIC_RELAXED), until = target >> 16;
    manager.has_target = (target & 0xffff) && until > now_ms && until <= now_ms + FAR_MS;
    return manager.has_target ? (uint32_t)(target & 0xffff) : 0;
}

const struct cpu_mask *manager_cpus(const struct cpu_mask *mask, uint32_t n)
{
    static struct cpu_mask told;
    if (!manager.has_target)
        return NULL;
    memset(&told, 0, sizeof told);
    told.bytes = mask->bytes;
    for (uint32_t i = 0; i < LISSOM_PEER_CPUS / 64; i++)
        told.word[i] =
            __atomic_load_n(&manager.program->keep_to[i], __ATOMIC_RELAXED) & mask->word[i];
    return cpus_count(&told) >= n ? &told : NULL;
}
