/* SPDX-License-Identifier: MIT
 *
 * Layout shared between the runtime (C, inside the user's process) and the tools (Rust).
 *
 * A *region* is a memfd of LISSOM_REGION_BYTES: a header and an array of process records. `lissom
 * run --stats` creates it, passes its descriptor in LISSOM_STATS_FD, and reads it when the program
 * has ended. Every process of the tree claims one record with an atomic increment of
 * `header.claimed`, and from then on is that record's only writer. Without a region the runtime
 * keeps its record in private memory.
 *
 * Every number is a naturally aligned little-endian integer, written with relaxed atomic stores. A
 * reader sees each field whole, but not all fields at the same moment.
 *
 * The lists below are X-macros, from which build.rs generates the reader: one entry a line,
 * `X(name, "what it counts, for the user")`.
 */
#ifndef LISSOM_ABI_H
#define LISSOM_ABI_H

#include <stdint.h>

#define LISSOM_ABI_VERSION 10u
#define LISSOM_ABI_MAGIC 0x6d6f7373696c0001ull /* "\1\0lissom" */

/* Environment. `lissom run` sets these variables; the runtime reads them once, in its
 * constructor. */
/* "0", "off", "no", "false": switch the runtime off */
#define LISSOM_ENV_ENABLE "LISSOM"
#define LISSOM_ENV_VERBOSE "LISSOM_VERBOSE" /* not empty, not "0": report on stderr */
#define LISSOM_ENV_SWITCH "LISSOM_SWITCH"   /* auto | user (the same) | kernel | off */
/* maximum number of slots; 1..LISSOM_MAX_SLOTS */
#define LISSOM_ENV_CPUS "LISSOM_CPUS"
/* "poll": OpenMP must not spin; slots poll in its place */
#define LISSOM_ENV_OPENMP "LISSOM_OPENMP"
/* "1": malleable OpenMP loops (default: if MAX_THREADS is set). For tests "shake": also change the
 * number of active threads all the time */
#define LISSOM_ENV_MALLEABLE "LISSOM_MALLEABLE"
/* program | slots: whether to limit OpenMP teams to the number of slots */
#define LISSOM_ENV_OMP_TEAM "LISSOM_OMP_TEAM"
/* threads of each OpenMP team: `lissom run` sets OMP_NUM_THREADS to it */
#define LISSOM_ENV_MAX_THREADS "LISSOM_MAX_THREADS"
/* threads of a team active at first: OMP_NUM_THREADS as the user had set it */
#define LISSOM_ENV_ACTIVE_THREADS "LISSOM_ACTIVE_THREADS"
/* auto | observe | off. For tests misjudge: as auto, but every scanned thread counts as waiting */
#define LISSOM_ENV_SPIN "LISSOM_SPIN"
/* for tests: us between two scans of a slot at `observe`, at most 1 s */
#define LISSOM_ENV_SPIN_PERIOD "LISSOM_SPIN_PERIOD"
/* auto | ns: how long a waiter spins before its slot runs another thread */
#define LISSOM_ENV_SPIN_THRESHOLD "LISSOM_SPIN_THRESHOLD"
/* for tests "mprotect": make code writable to patch it, as where the kernel refuses forced
 * writes */
#define LISSOM_ENV_PATCH "LISSOM_PATCH"
/* "now": begin when the program is executed, not at its second thread */
#define LISSOM_ENV_START "LISSOM_START"
/* sleep | poll | haltpoll: what an idle slot does */
#define LISSOM_ENV_IDLE "LISSOM_IDLE"
#define LISSOM_ENV_STATS_FD "LISSOM_STATS_FD" /* descriptor of the region */
#define LISSOM_ENV_MANAGER "LISSOM_MANAGER"   /* path of the manager's socket */
/* machine | slots | floor: which CPUs the program sees (visible.h) */
#define LISSOM_ENV_VISIBLE_CPUS "LISSOM_VISIBLE_CPUS"
/* auto | off: whether to share the CPUs with other programs under lissom */
#define LISSOM_ENV_SHARE "LISSOM_SHARE"

#define LISSOM_MAX_SLOTS 1024
#define LISSOM_MAX_RECORDS 256
#define LISSOM_STRIPES 16 /* copies of the counters of hot paths */
#define LISSOM_MAX_OBJECTS 64
#define LISSOM_MAX_LOOPS 64
#define LISSOM_OBJECT_NAME 48

/* Counters of one process. Those of hot paths come first (record.stripe). */
#define LISSOM_COUNTERS(X) \
    X(blocks, "waits that blocked in user space") \
    X(event_waits, "of these, waits of event loops (epoll)") \
    X(blocks_spun, "futex waits that ended in the short spin before blocking") \
    X(wakes, "threads made ready by a futex wake in user space") \
    X(wakes_avoided, "futex wake system calls avoided") \
    X(switches_user, "switches between application threads in user space") \
    X(parks, "times a busy-waiting thread was parked") \
    X(steals, "ready threads stolen from another slot") \
    X(threads, "application threads seen") \
    X(threads_peak, "maximum number of application threads at once") \
    X(timed_waits, "timed waits that kept no kernel thread") \
    X(blocks_kernel, "futex waits passed through to the kernel") \
    X(wakes_kernel, "futex wake system calls made") \
    X(switches_kernel, "switches to another kernel thread") \
    X(contentions, "times CPU contention was detected (polling is suspended for a while)") \
    X(spin_scans, "times a running thread was scanned for busy-waiting") \
    X(spin_waits, "of these, times it was found waiting") \
    X(spin_sites, "spin sites in the program's loops") \
    X(spin_sites_taken, "of these, sites that another process had found") \
    X(naps, "short sleeps of busy-waiting threads while no other thread could run") \
    X(turns, "times a busy-waiting thread passed its CPU to another process") \
    X(threshold_epochs, "times the spin threshold was adapted") \
    X(threshold_ns, "ns: the spin threshold at the end") \
    X(overcommits, "times a slot was retaken from a thread that blocked or overran its slice") \
    X(longer_slices, "longer slices of threads that only compute") \
    X(went_first, "times a woken thread preempted a computing thread") \
    X(resizes, "times the number of slots changed") \
    X(neighbour_bounds, "times other programs reduced the number of slots") \
    X(yields, "times a thread yielded, or its slice ended") \
    X(migrations_home, "times a context migrated to its home kernel thread") \
    X(signals_deferred, "signals deferred until their thread left the runtime") \
    X(loop_waits, "times a thread waited because an OpenMP loop had enough threads") \
    X(loop_functions, "OpenMP functions redirected") \
    X(loop_functions_left, "OpenMP functions left alone") \
    X(sites_patched, "system call sites redirected") \
    X(sites_left, "system call sites left alone")

/* Why a thread stays on its own kernel thread, for good or for one wait. The first reason
 * counts. */
#define LISSOM_PIN_REASONS(X) \
    X(option, "--switch=kernel") \
    X(signal_mask, "its kernel thread needs its signal mask for a call") \
    X(affinity, "set its own affinity or scheduling attributes") \
    X(pi_futex, "uses priority-inheriting or robust futexes") \
    X(identity, "uses a system call that depends on the kernel thread") \
    X(blocking, "often blocks outside futexes") \
    X(timed, "waits with a timeout") \
    X(no_fsgsbase, "the CPU or kernel lacks what a switch in user space needs") \
    X(rseq, "uses restartable sequences")

#define X(name, text) LISSOM_C_##name,
enum lissom_counter { LISSOM_COUNTERS(X) LISSOM_COUNTER_COUNT };
#undef X
#define X(name, text) LISSOM_PIN_##name,
enum lissom_pin_reason { LISSOM_PIN_NONE = -1, LISSOM_PIN_REASONS(X) LISSOM_PIN_COUNT };
#undef X

/* State of a process (record.state). */
#define LISSOM_STATES(X) \
    X(starting, "starting") \
    X(active, "active") \
    X(native, "runs natively: see reason") \
    X(off, "switched off") \
    X(single, "has had one thread only, so the runtime has not started")
#define X(name, text) LISSOM_STATE_##name,
enum lissom_state { LISSOM_STATES(X) LISSOM_STATE_COUNT };
#undef X

struct lissom_object { /* a loaded ELF object with system call sites */
    /* file name without its folders, NUL-terminated; its start if it is longer */
    char name[LISSOM_OBJECT_NAME];
    uint32_t patched;
    uint32_t left; /* sites left alone */
};

struct lissom_loop {      /* a loop in which threads were found waiting */
    uint64_t offset;      /* in the file */
    uint64_t samples;     /* times a scan found a thread there */
    uint64_t waits;       /* times a thread was parked there */
    uint64_t yields;      /* times a thread yielded there, not proven to wait (a hint site) */
    uint64_t short_spins; /* spins there that ended within the threshold */
    /* total waiting time in ticks of the time stamp counter (record.tsc_per_us) */
    uint64_t waited_tsc;
    uint32_t site;    /* 1: it has a spin site; 2: it can have none */
    uint32_t retired; /* 1: its spin site is retired: waits there were rare */
    char path[192];   /* of the file, NUL-terminated; its end if it is longer */
};

struct lissom_record { /* one process */
    uint32_t pid;
    uint32_t state;       /* enum lissom_state */
    uint32_t slots;       /* now */
    uint32_t objects;     /* entries of object[] in use */
    char comm[32];        /* name of the program, NUL-terminated */
    char reason[128];     /* why it runs natively, NUL-terminated; empty otherwise */
    uint64_t counter[64]; /* indexed by enum lissom_counter */
    /* added to counter[0..7] by readers; a slot counts in stripe[its index % LISSOM_STRIPES] */
    uint64_t stripe[LISSOM_STRIPES][8];
    uint64_t pinned[32]; /* threads pinned, indexed by enum lissom_pin_reason */
    /* futex and event waits that kept their kernel thread, indexed by enum lissom_pin_reason */
    uint64_t kept_waits[32];
    struct lissom_object object[LISSOM_MAX_OBJECTS];
    uint32_t loops; /* entries of loop[] in use */
    uint32_t tsc_per_us;
    struct lissom_loop loop[LISSOM_MAX_LOOPS];
};

struct lissom_header {
    uint64_t magic;   /* LISSOM_ABI_MAGIC */
    uint32_t version; /* LISSOM_ABI_VERSION */
    uint32_t records; /* LISSOM_MAX_RECORDS */
    /* records claimed so far; processes beyond `records` have none */
    uint32_t claimed;
    uint32_t record_bytes; /* sizeof(struct lissom_record) */
    uint64_t reserved[4];
};

struct lissom_region {
    struct lissom_header header;
    struct lissom_record record[LISSOM_MAX_RECORDS];
};
#define LISSOM_REGION_BYTES sizeof(struct lissom_region)

/* --- a running process: docs/guide/stat.md ---------------------------------------------------- */

/* The monitor is a thread of this name. It holds a memfd of this name, whose size is sealed, and
 * writes a struct lissom_live to it ten times a second. While at most one thread can run, it writes
 * once more and then stops. */
#define LISSOM_MONITOR_NAME "lissom-monitor"
#define LISSOM_LIVE_NAME "lissom-live"
#define LISSOM_LIVE_MAGIC 0x6d6f7373696c0003ull
#define LISSOM_LIVE_VERSION 2u
#define LISSOM_MAX_LOCKS 32
#define LISSOM_LOCK_CODE 7

struct lissom_lock_profile { /* a futex on which threads wait */
    uint64_t address;
    /* sampled waits, one in PROFILE_EVERY; 0: unused entry. Too high by the samples of the replaced
     * entry at most */
    uint64_t samples;
    /* the instruction that one of the waits began with, then addresses of code of other objects on
     * its stack, innermost first; then 0 */
    uint64_t code[LISSOM_LOCK_CODE];
};

struct lissom_live {
    uint64_t magic;      /* LISSOM_LIVE_MAGIC */
    uint32_t version;    /* LISSOM_LIVE_VERSION */
    uint32_t bytes;      /* sizeof(struct lissom_live) */
    uint64_t heartbeat;  /* CLOCK_MONOTONIC in ns: time of this write */
    uint32_t is_asleep;  /* 1: nothing is written until two threads can run */
    uint32_t is_native;  /* 1: given up, all waits are the kernel's */
    uint32_t threads;    /* alive */
    uint32_t slots;      /* now */
    uint32_t limit;      /* slots that it would have alone */
    uint32_t running;    /* threads that hold a slot */
    uint32_t demand;     /* running and ready threads */
    uint32_t lock_every; /* waits per sample of a lock */
    struct lissom_lock_profile lock[LISSOM_MAX_LOCKS];
    struct lissom_record record;
};

/* --- programs of one user: docs/design/sharing.md --------------------------------------------- */

/* The file that the programs share: LISSOM_MAX_PEERS entries, then as many masks. Its name contains
 * the version of this layout. It is read and written, not mapped: truncating a mapped file would
 * kill the processes that map it. Entry i belongs to the process that holds an
 * open-file-description lock on the entry's first byte. */
#define LISSOM_PEERS_PATH "/dev/shm/lissom-peers-2-" /* then the uid */
#define LISSOM_MAX_PEERS 128
#define LISSOM_PEER_CPUS 1024 /* of a mask; CPUs with higher numbers are not shared */

struct lissom_peer { /* one process */
    /* CLOCK_MONOTONIC in ns: time of this write; 0: unused entry */
    uint64_t heartbeat;
    uint32_t pid;
    uint32_t demand;        /* threads that could run, in the last checks */
    uint32_t slots;         /* now */
    uint32_t cpus;          /* in its mask */
    uint64_t mask_hash;     /* equal for equal masks */
    uint64_t pid_namespace; /* inode */
    /* hash of the cgroup with the smallest CPU quota; 0: none */
    uint32_t quota_group;
    /* hash of its scheduling group, a cgroup or a group of sessions, and the weight by which the
     * kernel gives that group CPUs: 1..10000; 100 is usual */
    uint32_t group;
    uint16_t group_weight;
    int8_t nice; /* in that group: -20..19, SHARE_NICE_IDLE */
    /* not 0: its monitor has slept since `heartbeat`, and demand is of that time. 1: no thread
     * could run; 2: one could */
    uint8_t asleep;
    /* the lissom_domain that it has mapped: inode (0: none), and the descriptor of it that thread
     * domain_tid, its monitor, has open */
    uint32_t domain, domain_fd, domain_tid;
};
struct lissom_peer_mask {
    uint64_t word[LISSOM_PEER_CPUS / 64];
};
_Static_assert(sizeof(struct lissom_peer) == 64, "no entry is in two cache lines");

/* Entry i belongs to the process of the i-th lissom_peer: runtime/sched/turns.h. */
struct lissom_turn {
    uint32_t word; /* futex: TURN_* */
    uint32_t cpu;  /* where its thread last asked for a turn */
    uint64_t at;   /* tsc of that request */
    uint64_t mask; /* hash of its CPU mask */
    uint64_t reserved[5];
};
/* A spin site that one process has found, for others with the same code:
 * runtime/spin/exchange.h. */
struct lissom_found_site {
    uint64_t number;        /* n: the n-th site ever found; 0: being written */
    uint64_t inode, offset; /* the file with its code, and where */
    int64_t head, of_loop;  /* relative to the site */
    uint64_t code;          /* hash of the loop's code */
    uint32_t flags;         /* LISSOM_FOUND_* */
    uint32_t reserved[3];
};
enum {
    LISSOM_FOUND_PAUSES = 1,
    LISSOM_FOUND_HINT = 2,
    LISSOM_FOUND_COUNTS = 4,
    LISSOM_FOUND_OFTEN = 8,
};
#define LISSOM_FOUND_SITES 64

#define LISSOM_DOMAIN_MAGIC 0x316e69616d6f6473ull /* "sdomain1" */

struct lissom_domain { /* a sealed memfd: runtime/monitor/domain.h */
    uint64_t magic;
    uint64_t found; /* sites found so far; the last LISSOM_FOUND_SITES are in site[] */
    uint64_t reserved[6];
    struct lissom_turn turn[LISSOM_MAX_PEERS];
    struct lissom_found_site site[LISSOM_FOUND_SITES];
};
_Static_assert(sizeof(struct lissom_found_site) == 64, "no entry is in two cache lines");
_Static_assert(sizeof(struct lissom_turn) == 64, "no entry is in two cache lines");

/* --- the manager: docs/operate/manager.md ----------------------------------------------------- */

/* Where programs search for its socket. LISSOM_MANAGER, if set, is the only place; otherwise these
 * are $XDG_RUNTIME_DIR and then LISSOM_MANAGER_SYSTEM. */
#define LISSOM_MANAGER_SOCKET "lissom/manager.sock"
#define LISSOM_MANAGER_SYSTEM "/run/lissom/manager.sock"

/* The manager sends one message to a program that connects (SOCK_SEQPACKET): LISSOM_PROGRAM_MAGIC,
 * and the descriptor of a memfd of LISSOM_PROGRAM_BYTES, sealed against truncation. Nothing more is
 * sent: the open connection shows that the other side is alive. */
#define LISSOM_PROGRAM_MAGIC 0x6d6f7373696c0002ull
#define LISSOM_PROGRAM_VERSION 2u
#define LISSOM_PROGRAM_BYTES 4096

struct lissom_program { /* one process */
    uint64_t magic;     /* LISSOM_PROGRAM_MAGIC */
    uint32_t version;   /* LISSOM_PROGRAM_VERSION */
    uint32_t reserved;
    /* By the manager: maximum number of threads running at once, and until when it holds.
     * CLOCK_MONOTONIC in ms << 16 | threads, 1..LISSOM_MAX_SLOTS; one word, so that it is read
     * whole. No target: 0, or a time that is past or more than a minute away. */
    uint64_t target;
    uint64_t by_manager[5];
    /* By the program, at each check of its monitor. */
    uint64_t heartbeat;      /* CLOCK_MONOTONIC in ns */
    uint32_t is_malleable;   /* 1: it follows the target; 0: it runs natively */
    uint32_t slots;          /* maximum number of threads running at once */
    uint32_t active_threads; /* running threads */
    uint32_t demand;         /* running and ready threads */
    uint32_t threads;        /* alive */
    /* slots that it would have alone, by its mask, CPU quota and --cpus */
    uint32_t limit;
    /* ended waits of its threads for each other: its progress */
    uint64_t waits;
    uint64_t cpus[LISSOM_PEER_CPUS / 64]; /* its mask: CPUs 0 to 1023 */
    /* By the manager: CPUs of this mask on which the threads are to run while the target holds.
     * None: wherever the kernel puts them. */
    uint64_t keep_to[LISSOM_PEER_CPUS / 64];
};
_Static_assert(sizeof(struct lissom_program) <= LISSOM_PROGRAM_BYTES, "");

_Static_assert(LISSOM_C_steals < 8, "stripe[][] is too small");
_Static_assert(LISSOM_COUNTER_COUNT <= 64, "counter[] is too small");
_Static_assert(LISSOM_PIN_COUNT <= 32, "pinned[] is too small");

#endif
