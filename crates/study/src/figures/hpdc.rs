//! Virtual blocking and busy-waiting detection: the figures and tables of the paper.

use super::View::Groups;
use super::hpdc_detection::{OWN_SPECIFICITY, TABLE_2, TABLE_3};
use super::hpdc_memcached::FIG_12;
use super::hpdc_resize::FIG_11;
use super::hpdc_view::{
    blocking, by_threads, cores, gains, intervals, locality, locks, oversubscribed, spinlocks,
    spinning, utilization,
};
use super::own::to_bound;
use super::{Figure, Published};

const SWITCHES: &str = "Real: only one CPU is used. A virtual machine and mitigations make a \
                        switch more expensive than on bare metal.";
const PROGRAMS: &str = "Real. With more CPUs, a wake-up may cross caches or NUMA nodes. So \
                        oversubscription costs more there natively than here.";

const PROGRAMS_DIFFER: &str = "The programs are ours, written from the specifications of the \
                               suites (docs/guide/bench-programs.md). We add programs of \
                               Rodinia. 2 CPUs, not 8.";

const FIGURE: Figure = Figure {
    measurement: "papers",
    differs: PROGRAMS_DIFFER,
    elsewhere: PROGRAMS,
    ..Figure::EMPTY
};

pub const OWN: &[Figure] = &[
    Figure {
        name: "own-cores",
        title: "As CPUs become more",
        measurement: "cores",
        shows: "Time with 8 threads, natively and under lissom, relative to the program with as \
                many threads as CPUs.",
        elsewhere: "Real. The axis ends at the number of CPUs of this machine.",
        view: Groups(cores),
        ..FIGURE
    },
    Figure {
        name: "own-spinning",
        title: "Programs with spin loops of their own",
        measurement: "spinning",
        shows: "Programs that wait by flags, at spinning barriers, or in OpenMP's own loops, with \
                8 threads.",
        elsewhere: SPINNING,
        view: Groups(spinning),
        ..FIGURE
    },
    OWN_SPECIFICITY,
];

const SPINNING: &str = "Real. With more CPUs, more waiting threads run at once, so programs slow \
                        down less natively.";

pub const FIGURES: &[Figure] = &[
    Figure {
        name: "hpdc-fig1",
        paper: "PARSEC, NPB and SPLASH-2 with 32 against 8 threads on 8 cores",
        title: "Programs with four times as many threads as CPUs",
        shows: "Native time, relative to the same program with as many threads as CPUs. Programs \
                that hardly synchronize are as fast; programs that block or spin get slower.",
        stated: "Some programs are unaffected, some get faster, and some get slower, by up to 25 \
                 times.",
        view: Groups(oversubscribed),
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig2",
        paper: "direct cost of a switch: fixed work split among more and more threads on one core, \
                without and with a shared atomic",
        title: "What a context switch costs by itself",
        measurement: "switch",
        shows: "Time of a fixed amount of work, split among more and more threads on one CPU, and \
                time of a hand-over. Switching by itself does not make programs slow.",
        stated: "A switch takes 1.5 us for any number of threads, or 0.2 % of the time. An atomic \
                 adds nothing.",
        published: &[Published {
            columns: &[("yield", "published")],
            rows: &[("2", &[1.5]), ("4", &[1.5]), ("8", &[1.5]), ("16", &[1.5]), ("32", &[1.5])],
        }],
        differs: "We also measure hand-overs by sched_yield and by futex.",
        elsewhere: SWITCHES,
        view: Groups(by_threads),
    },
    Figure {
        name: "hpdc-fig3",
        paper: "interval between synchronizations of each program at its best thread count",
        title: "Time between two synchronizations",
        shows: "CPU time for each wait, by the runtime's counters. The shorter it is, the more the \
                cost of a wait matters.",
        stated: "Most intervals are 1000 us and more.",
        published: &[Published {
            columns: &[("CPU time for each wait", "published")],
            rows: &[("facesim (shortest)", &[160.0])],
        }],
        differs: "With four times as many threads as CPUs, not with the best number of threads.",
        view: Groups(intervals),
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig4",
        paper: "indirect cost of a switch: two threads on one core walk over arrays of up to 128 \
                MiB",
        title: "What a switch costs by the caches that others have used",
        measurement: "locality",
        shows: "Indirect cost of a switch, by the size of the array. It is below zero if half of \
                the array fits into a cache or TLB, and the whole array does not.",
        stated: "Sequential access: the cost rises from 512 KiB on, to 1 ms at 128 MiB, below 6 % \
                 of the time. Random reads: negative from 256 KiB, positive from 1 to 4 MiB, \
                 negative beyond. Random read-modify-write: always negative.",
        published: &[Published {
            columns: &[("sequential-read", "published")],
            rows: &[("128 MiB", &[1000.0])],
        }],
        differs: "The method is the same.",
        elsewhere: "Real. The sign changes at the sizes of this CPU's caches and TLBs. On other \
                    CPUs the curve has the same shape, with other sizes.",
        view: Groups(locality),
    },
    Figure {
        name: "hpdc-fig9",
        paper: "programs that oversubscription slows down, with virtual blocking and vanilla, on 8 \
                cores and on 8 hyper-threads",
        title: "Programs that block",
        shows: "Time with four times as many threads as CPUs, relative to as many as CPUs. \
                lissom's bar should reach 1.",
        stated: "Vanilla is 5.5 to 56.7 % slower than the baseline. Virtual blocking is near the \
                 baseline, except for fluidanimate (17 % slower). It beats the baseline for \
                 freqmine, ocean, cg and mg. Elsewhere its overhead is 0.5 % at most.",
        published: &[Published {
            columns: &[("programs that block", "published, virtual blocking")],
            rows: &[("parsec-fluidanimate", &[1.17])],
        }],
        view: Groups(blocking),
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig10",
        paper: "mutex, barrier and condition variable, 10,000 calls by 32 threads: virtual \
                blocking's gain over vanilla, on one core and on several",
        title: "Barrier, condition variable, mutex by themselves",
        measurement: "primitives",
        shows: "Gain: how many times as fast 32 threads are under lissom as natively. Further \
                panels are relative to the bound.",
        stated: "On one core, a barrier is 1.52 times and a condition variable 2.34 times as fast. \
                 On several cores, the gains are up to 3 and 5 times. A mutex gains nothing.",
        published: &[
            Published {
                columns: &[("gain over native, 32 threads, one CPU", "published")],
                rows: &[("barrier", &[1.52]), ("cond", &[2.34]), ("mutex", &[1.0])],
            },
            Published {
                columns: &[("gain over native, 32 threads, all CPUs", "published, at most")],
                rows: &[("barrier", &[3.0]), ("cond", &[5.0]), ("mutex", &[1.0])],
            },
        ],
        differs: "The number of rounds is chosen by time, instead of 10,000 calls. We have 2 CPUs.",
        elsewhere: "Real. On more CPUs, a mutex's cache line travels further, and native wake-ups \
                    cost more.",
        view: Groups(gains),
    },
    FIG_11,
    FIG_12,
    Figure {
        name: "hpdc-fig13",
        paper: "a pipeline of spinning stages with ten spin locks, 8 and 32 threads on 8 cores, in \
                a container and in KVM",
        title: "Spin locks",
        measurement: "spinlocks",
        shows: "8 threads pass a token on, by each kind of lock. Natively, a queue of spinning \
                threads may wait a time slice for each hand-over. Runs that took too long are \
                shown with a lower limit.",
        stated: "With busy-waiting detection, 32 threads are nearly as fast as 8. Pause-loop \
                 exiting does not help.",
        differs: "One token for all threads, and 8 threads on 2 CPUs. There is no KVM column: \
                  lissom starts no guest, and pause-loop exiting needs a host with kvm_intel or \
                  kvm_amd.",
        elsewhere: SPINNING,
        view: Groups(spinlocks),
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig14",
        paper: "lu of NPB and volrend of SPLASH-2, 8 to 32 threads on 8 cores, container and VM",
        title: "Programs that wait in loops of their own",
        measurement: "own-loops",
        shows: "Time with 1 to 16 threads a CPU, relative to as many threads as CPUs.",
        stated: "With busy-waiting detection, both are near the baseline, and a little slower with \
                 more threads. Pause-loop exiting does not help.",
        differs: "The programs are ours, written from the specifications. There is no KVM column: \
                  lissom starts no guest, and pause-loop exiting needs a host with kvm_intel or \
                  kvm_amd.",
        elsewhere: SPINNING,
        view: Groups(to_bound),
        ..FIGURE
    },
    Figure {
        name: "hpdc-fig15",
        paper: "five programs, 32 threads on 8 cores, with pthread, Mutexee, MCS-TP, SHFLLOCK, and \
                both mechanisms",
        title: "Against locks of the literature",
        measurement: "locks",
        shows: "Five unmodified programs, with glibc's mutex replaced by Mutexee, MCS-TP or \
                SHFLLOCK, and under lissom with glibc's. The locks are written from their papers \
                (workloads/locks). The programs are those of ours that lock mutexes most often per \
                second.",
        stated: "With both mechanisms, programs are up to 5.4 times as fast as with spin-then-park \
                 locks. SHFLLOCK is the slowest.",
        differs: "The programs are ours, chosen by calls of pthread_mutex_lock \
                  (docs/guide/bench-programs.md). As in the paper, there are 4 threads a CPU. \
                  We add single locks, condition variables and queues.",
        elsewhere: "Real. Only a machine with several NUMA nodes shows the effect of SHFLLOCK's \
                    shuffling by node.",
        view: Groups(locks),
        ..FIGURE
    },
    Figure {
        name: "hpdc-table1",
        paper: "CPU use and migrations within and across nodes: 8 threads, 32 threads, 32 with \
                virtual blocking",
        title: "CPU utilization, context switches and migrations",
        shows: "By the kernel's counters: CPUs used, context switches a second, and migrations \
                between CPUs in a run.",
        published: TABLE_1,
        differs: "The programs are ours, on 2 CPUs. The paper's CPU use is of 8 CPUs.",
        elsewhere: "Real. Migrations across NUMA nodes need a machine with several nodes.",
        view: Groups(utilization),
        ..FIGURE
    },
    TABLE_2,
    TABLE_3,
];

/// Table 1, with each of the three ways of running.
const TABLE_1: &[Published] = &[Published {
    columns: &[
        ("CPU utilization", "published, 8 threads"),
        ("CPU utilization", "published, 32 threads"),
        ("CPU utilization", "published, virtual blocking"),
        ("migrations", "published, 32 threads"),
        ("migrations", "published, virtual blocking"),
    ],
    rows: &[
        ("parsec-fluidanimate", &[7.34, 7.01, 7.82, 147_219.0, 84.0]),
        ("parsec-freqmine", &[7.59, 7.41, 7.80, 701.0, 454.0]),
        ("parsec-streamcluster", &[7.25, 5.42, 7.75, 735_629.0, 408.0]),
        ("splash-lu_cb", &[5.67, 5.52, 5.81, 10_875.0, 111.0]),
        ("splash-ocean", &[6.77, 6.64, 7.63, 139_722.0, 134.0]),
        ("splash-radix", &[6.94, 7.24, 7.25, 621.0, 175.0]),
        ("npb-is", &[7.57, 7.64, 7.64, 775.0, 48.0]),
        ("npb-cg", &[6.67, 6.74, 7.97, 76_162.0, 45.0]),
        ("npb-mg", &[6.77, 6.82, 7.87, 28_567.0, 33.0]),
        ("npb-ft", &[7.54, 7.58, 7.93, 4236.0, 67.0]),
        ("npb-sp", &[7.96, 7.28, 7.99, 80_426.0, 98.0]),
        ("npb-bt", &[7.86, 7.71, 7.99, 33_348.0, 88.0]),
        ("npb-ua", &[7.76, 6.22, 7.99, 595_329.0, 144.0]),
    ],
}];
