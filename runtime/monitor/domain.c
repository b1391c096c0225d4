/* SPDX-License-Identifier: MIT */
#include "monitor/domain.h"
#include "prim/prim.h"
#include "prim/text.h"
#include "sched/thread.h"
#include "sched/turns.h"
#include "spin/exchange.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    /* domains mapped at most: one that is left stays mapped, since a thread may sleep in it */
    SWITCHES = 8,
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
};

static struct {
    int fd; /* -1: none */
    uint32_t id;
    struct lissom_domain *at;
    uint32_t switches;
    uint32_t unusable;          /* id of a domain that could not be opened */
    uint32_t self;              /* entry passed to turns_join */
    uint64_t mask;              /* hash passed to turns_join */
    struct lissom_domain *told; /* domain passed to turns_join */
} own = {.fd = -1};

void domain_begin(void)
{
    own.fd = -1;
    own.told = NULL;
    turns_join(NULL, 0, 0);
}

void domain_after_fork(void)
{
    memset(&own, 0, sizeof own);
    own.fd = -1;
    turns_after_fork();
    spin_exchange(NULL, false);
}

static bool map(int fd, bool is_new)
{
    struct lissom_domain *at =
        prim_mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (prim_is_error(at))
        return false;
    if (is_new)
        at->magic = LISSOM_DOMAIN_MAGIC;
    if (at->magic != LISSOM_DOMAIN_MAGIC) {
        prim_munmap(at, sizeof *at);
        return false;
    }
    prim_syscall3(SYS_madvise, at, sizeof *at, MADV_DONTFORK);
    own.at = at;
    own.switches++;
    return true;
}

/* Take over fd, and map it unless it is mapped. Returns false if it is no domain of this user; the
 * caller then closes fd. */
static bool take(int fd, bool is_new)
{
    struct stat about;
    if (prim_syscall3(SYS_fstat, fd, &about, 0) || !S_ISREG(about.st_mode) ||
        about.st_uid != (uint32_t)prim_syscall3(SYS_geteuid, 0, 0, 0) ||
        about.st_size != sizeof *own.at ||
        (prim_syscall3(SYS_fcntl, fd, F_GET_SEALS, 0) & SEALS) != SEALS)
        return false;
    if (!(own.at && own.id == (uint32_t)about.st_ino) && !map(fd, is_new))
        return false;
    if (own.fd >= 0)
        prim_close(own.fd);
    own.fd = fd;
    own.id = (uint32_t)about.st_ino;
    return true;
}

static void take_or_close(int fd, bool is_new)
{
    if (fd >= 0 && !take(fd, is_new))
        prim_close(fd);
}

static void make(void)
{
    int fd =
        (int)prim_syscall3(SYS_memfd_create, "lissom-domain", MFD_CLOEXEC | MFD_ALLOW_SEALING, 0);
    if (fd >= 0 && (prim_syscall3(SYS_ftruncate, fd, sizeof *own.at, 0) ||
                    prim_syscall3(SYS_fcntl, fd, F_ADD_SEALS, SEALS))) {
        prim_close(fd);
        return;
    }
    take_or_close(fd, true);
}

static void open_of(const struct lissom_peer *p)
{
    char path[80] = "/proc/";
    char *end = write_number(path + strlen(path), p->pid);
    memcpy(end, "/task/", sizeof "/task/");
    end = write_number(end + strlen(end), p->domain_tid);
    memcpy(end, "/fd/", sizeof "/fd/");
    write_number(end + strlen(end), p->domain_fd);
    take_or_close((int)prim_syscall4(SYS_openat, AT_FDCWD, path,
                                     O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0),
                  false);
    if (own.id != p->domain)
        own.unusable = p->domain;
}

void domain_follow(struct lissom_peer *entry, uint32_t self,
                   const struct lissom_peer peer[LISSOM_MAX_PEERS],
                   const bool fresh[LISSOM_MAX_PEERS])
{
    const struct lissom_peer *leader = NULL;
    for (uint32_t i = 0; i < LISSOM_MAX_PEERS && !leader; i++) {
        if (i == self && own.fd >= 0)
            break; /* the others follow this process */
        if (i != self && fresh[i] && peer[i].domain && peer[i].domain != own.unusable &&
            peer[i].pid_namespace == entry->pid_namespace)
            leader = &peer[i];
    }
    if (own.switches < SWITCHES && leader && (own.fd < 0 || leader->domain != own.id))
        open_of(leader);
    if (own.switches < SWITCHES && !leader && own.fd < 0)
        make();
    entry->domain = own.fd < 0 ? 0 : own.id;
    entry->domain_fd = (uint32_t)own.fd;
    entry->domain_tid = (uint32_t)prim_syscall3(SYS_gettid, 0, 0, 0);
    if (own.fd < 0)
        return;
    spin_exchange(own.at, __atomic_load_n(&sched.lone_contended, __ATOMIC_RELAXED));
    if (own.told == own.at && own.self == self && own.mask == entry->mask_hash)
        return;
    own.told = own.at;
    own.self = self;
    own.mask = entry->mask_hash;
    turns_join(own.at->turn, self, own.mask);
}
