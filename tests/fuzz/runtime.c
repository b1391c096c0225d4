/* SPDX-License-Identifier: MIT
 *
 * Fuzz what the runtime reads from other processes. Inputs are entries of the file shared by the
 * programs of one user (monitor/peers.c), files that the entries name as shared memory
 * (monitor/domain.c), and a manager's messages and page (monitor/manager.c). `runtime N SEED` makes
 * N inputs of whole fields, with values that code tends to get wrong. The program checks
 * invariants; the sanitizers check the rest.
 *
 */
#include "abi.h"
#undef LISSOM_PEERS_PATH
#define LISSOM_PEERS_PATH "/dev/shm/lissom-fuzz-"
#include "monitor/manager.c"
#include "monitor/peers.c"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct scheduler sched;
static struct lissom_record own_record;
struct lissom_record *record = &own_record;
uint32_t slots_demand(uint32_t *running) {
    if (running) *running = 1;
    return 3;
}
uint32_t cgroup_quota_group(void) { return 77; }
uint32_t cgroup_weight(uint32_t *weight) {
    *weight = 100;
    return 7;
}

static uint64_t state;
static uint64_t any(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static uint32_t below(uint32_t n) { return (uint32_t)(any() % n); }

static uint64_t value(uint64_t now) {
    switch (below(9)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return ~0ull;
    case 3: return any();
    case 4: return 1ull << below(64);
    case 5: return now;
    case 6: return now - below(1000000000);
    case 7: return now + below(1000000000);
    default: return below(2000);
    }
}

static void check(bool holds, const char *what, uint64_t input) {
    if (holds) return;
    fprintf(stderr, "input %llu: %s\n", (unsigned long long)input, what);
    abort();
}

/* Abort if a system call that the test itself needs has failed. */
static void need(bool done, const char *call) {
    if (done) return;
    perror(call);
    abort();
}

static struct cpu_mask some_mask(void) {
    struct cpu_mask m = {.bytes = 8};
    m.word[0] = any() | 1;
    if (below(4) == 0) m.word[below(CPU_MASK_WORDS)] = any();
    return m;
}

/* --- shared memory ---------------------------------------------------------------------------- */

enum { DOMAIN_FILES = 16 };
static struct {
    int fd;
    uint32_t inode;
} domain_file[DOMAIN_FILES];
static struct lissom_turn *joined[16]; /* in mapped memory */
static uint32_t n_joined, domains;     /* currently; in total */

void turns_after_fork(void) {}
void turns_set(uint32_t entries, uint32_t most) {
    check(entries <= LISSOM_MAX_PEERS && most >= 1, "turns of what is not there", entries);
}
void turns_join(struct lissom_turn *turn, uint32_t self, uint64_t mask) {
    check(!turn || self < LISSOM_MAX_PEERS, "an entry that is not there", self);
    (void)mask;
    bool known = !turn;
    for (uint32_t i = 0; i < n_joined; i++) known |= joined[i] == turn;
    if (known) return;
    check(n_joined < 16, "all that was left stays mapped", n_joined);
    joined[n_joined++] = turn;
    domains++;
}
void spin_exchange(struct lissom_domain *domain, bool takes) {
    (void)takes;
    if (domain) /* raises a signal if the file is shorter */
        domain->site[LISSOM_FOUND_SITES - 1].reserved[0]++;
}

static void open_domain_file(uint32_t i) {
    int fd = below(8) ? memfd_create("fuzz", MFD_ALLOW_SEALING)
                      : open(below(2) ? "/dev/zero" : "/tmp", O_RDONLY);
    need(fd >= 0, "memfd_create");
    if (domain_file[i].fd > 0) close(domain_file[i].fd);
    domain_file[i].fd = fd;
    struct stat about;
    need(fstat(fd, &about) == 0, "fstat");
    domain_file[i].inode = (uint32_t)about.st_ino;
    if (!S_ISREG(about.st_mode)) return;
    need(ftruncate(fd, (long)(sizeof(struct lissom_domain) - (below(4) ? 0 : below(5000)))) == 0,
         "ftruncate");
    uint64_t magic = below(4) ? LISSOM_DOMAIN_MAGIC : any();
    need(pwrite(fd, &magic, sizeof magic, 0) == sizeof magic, "pwrite");
    need(fcntl(fd, F_ADD_SEALS,
               F_SEAL_SHRINK | (below(4) ? F_SEAL_GROW | F_SEAL_SEAL : 0) |
                   (below(8) ? 0 : F_SEAL_WRITE)) == 0,
         "fcntl");
}

/* Reset the state to that of a new process: a process maps only few domains. */
static void forget_domain(void) {
    if (own.entry.domain) {
        close((int)own.entry.domain_fd);
        own.entry.domain = 0;
    }
    while (n_joined)
        munmap((char *)joined[--n_joined] - offsetof(struct lissom_domain, turn),
               sizeof(struct lissom_domain));
    domain_after_fork();
}

static void domain_of(struct lissom_peer *p, uint64_t now) {
    uint32_t i = below(DOMAIN_FILES);
    if (below(8) == 0) open_domain_file(i);
    p->domain = below(4) ? domain_file[i].inode : (uint32_t)value(now);
    p->domain_fd = below(8) ? (uint32_t)domain_file[i].fd : (uint32_t)value(now);
    p->domain_tid = below(8) ? (uint32_t)getpid() : (uint32_t)value(now);
    if (below(2) == 0) return;
    p->pid = (uint32_t)getpid();
    p->heartbeat = now;
    p->pid_namespace = own.entry.pid_namespace;
}

/* --- the peers' file -------------------------------------------------------------------------- */

static int peers_file(void) {
    char path[64];
    snprintf(path, sizeof path, LISSOM_PEERS_PATH "%u", geteuid());
    return open(path, O_RDWR);
}

static void scribble(int fd, uint64_t now) {
    uint32_t n = below(6);
    for (uint32_t k = 0; k < n; k++) {
        struct lissom_peer p = {
            .heartbeat = value(now),
            .pid = (uint32_t)value(now),
            .demand = (uint32_t)value(now),
            .slots = (uint32_t)value(now),
            .cpus = (uint32_t)value(now),
            .mask_hash = value(now),
            .pid_namespace = below(2) ? own.entry.pid_namespace : value(now),
            .quota_group = below(2) ? 77 : (uint32_t)value(now),
            .group = below(2) ? 7 : (uint32_t)value(now),
            .group_weight = (uint16_t)value(now),
            .nice = (int8_t)value(now),
            .asleep = below(4),
        };
        domain_of(&p, now);
        uint32_t i = below(LISSOM_MAX_PEERS);
        need(pwrite(fd, &p, sizeof p, i * sizeof p) >= 0, "pwrite");
        struct lissom_peer_mask m;
        for (uint32_t w = 0; w < LISSOM_PEER_CPUS / 64; w++) m.word[w] = value(now);
        need(pwrite(fd, &m, below(sizeof m + 1), LISSOM_MAX_PEERS * sizeof p + i * sizeof m) >= 0,
             "pwrite");
    }
    if (below(50) == 0) need(ftruncate(fd, below(20000)) == 0, "ftruncate");
}

static void peers_input(uint64_t input) {
    static int fd = -1;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (fd >= 0) scribble(fd, now);
    struct cpu_mask mask = some_mask();
    uint32_t limit = 1 + below(LISSOM_MAX_SLOTS),
             share = peers_share(limit, &mask, below(2) ? 1 + below(8) : 0);
    check(share >= 1 && share <= limit, "a share of no slots, or of more than there are", input);
    if (below(20) == 0) peers_asleep();
    if (below(100) == 0) forget_domain();
    if (fd < 0) fd = peers_file();
}

/* --- a manager -------------------------------------------------------------------------------- */

static int some_file(uint32_t kind, struct lissom_program **page) {
    int fd = kind == 5 ? open("/dev/zero", O_RDONLY) : memfd_create("fuzz", MFD_ALLOW_SEALING);
    *page = NULL;
    if (kind == 5) return fd;
    need(fd >= 0, "memfd_create");
    need(ftruncate(fd, kind == 1   ? 100
                       : kind == 2 ? 3 * LISSOM_PROGRAM_BYTES
                                   : LISSOM_PROGRAM_BYTES) == 0,
         "ftruncate");
    if (kind != 3)
        need(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | (below(2) ? F_SEAL_GROW : 0)) == 0, "fcntl");
    if (kind != 1) {
        *page = mmap(NULL, LISSOM_PROGRAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        need(*page != MAP_FAILED, "mmap");
        (*page)->magic = below(8) ? LISSOM_PROGRAM_MAGIC : any();
        (*page)->version = below(8) ? LISSOM_PROGRAM_VERSION : (uint32_t)any();
    }
    return fd;
}

/* Send a random message. Sets *page to the mapping of the first file sent, or NULL. */
static void some_message(int to, struct lissom_program **page) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    uint64_t text[4] = {below(4) ? LISSOM_PROGRAM_MAGIC : any(), any(), any(), any()};
    struct iovec v = {text, below(4) ? sizeof(uint64_t) : below(sizeof text + 1)};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    uint32_t n = below(4) ? 1 : below(4);
    *page = NULL;
    int fds[3];
    for (uint32_t i = 0; i < n; i++) {
        struct lissom_program *p;
        fds[i] = some_file(below(2) ? 0 : below(6), &p);
        if (i == 0)
            *page = p;
        else if (p)
            munmap(p, LISSOM_PROGRAM_BYTES);
    }
    if (n) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (uint32_t i = 0; i < n; i++) close(fds[i]);
}

static void scribble_page(struct lissom_program *p, uint64_t now) {
    uint64_t *word = (uint64_t *)p;
    for (uint32_t k = below(8); k > 0; k--)
        word[2 + below(LISSOM_PROGRAM_BYTES / 8 - 2)] = value(now);
    if (below(2)) p->target = (now / 1000000 + below(70000)) << 16 | below(below(2) ? 70000 : 5);
}

/* Check the page several times, while its contents change under the reader. */
static void manager_input(uint64_t input) {
    int pair[2];
    struct lissom_program *page = NULL;
    need(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    manager_begin(true);
    manager.socket = pair[0];
    some_message(pair[1], &page);
    for (uint32_t look = 0; look < 4; look++) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        struct cpu_mask mask = some_mask();
        uint32_t target = manager_target(1 + below(64), &mask);
        check(target <= 0xffff, "a target that is none", input);
        const struct cpu_mask *told = manager_cpus(&mask, target);
        for (uint32_t w = 0; told && w < LISSOM_PEER_CPUS / 64; w++)
            check(!(told->word[w] & ~mask.word[w]), "a CPU that the program may not use", input);
        if (page) scribble_page(page, now);
        if (manager.socket < 0) break;
        if (below(8) == 0) {
            struct lissom_program *other = NULL;
            some_message(pair[1], &other);
            if (other) munmap(other, LISSOM_PROGRAM_BYTES);
        }
    }
    disconnect();
    close(pair[1]);
    if (page) munmap(page, LISSOM_PROGRAM_BYTES);
}

static uint32_t open_descriptors(void) {
    uint32_t n = 0;
    for (int fd = 0; fd < 20000; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int main(int argc, char **argv) {
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000,
             seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    state = seed * 0x9e3779b97f4a7c15ull | 1;
    sched.shares = true;
    sched.slots = 2;
    sched.pid = getpid();
    peers_begin(true);
    for (uint32_t i = 0; i < DOMAIN_FILES; i++) open_domain_file(i);
    uint32_t first = open_descriptors();
    for (uint64_t i = 0; i < n; i++) {
        if (i % 4)
            peers_input(i);
        else
            manager_input(i);
    }
    /* The peers' file is open twice, the domain once. */
    check(open_descriptors() - first <= 3, "descriptors are left open", n);
    check(n < 1000 || domains, "no shared memory was mapped", n);
    char path[64];
    snprintf(path, sizeof path, LISSOM_PEERS_PATH "%u", geteuid());
    unlink(path);
    printf("%llu inputs, seed %llu; %u domains\n", (unsigned long long)n, (unsigned long long)seed,
           domains);
    return 0;
}
