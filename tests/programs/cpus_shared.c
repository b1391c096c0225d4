/* SPDX-License-Identifier: MIT */
// Several processes of many threads share the CPUs. Together they have as many slots as CPUs, and a
// single one has all, whether the others sleep, are stopped or are killed. All keep working, also
// if a program overwrites the file that they share.
#include "cpus_change.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PROCESSES = 3 };

// Check that the processes at some time have as many slots as CPUs together, but at least one each.
// (A remainder rotates between them.)
static void share(const pid_t *pid, int n) {
    int sum = 0, want = c_n_cpus > n ? c_n_cpus : n;
    if (c_slots(pid[0]) < 0) return;
    for (int tries = 0; tries < 10000; tries++) {
        sum = 0;
        for (int i = 0; i < n; i++) sum += c_slots(pid[i]);
        if (sum == want) return;
        t_sleep_ms(1);
    }
    EQ(sum, want);
}

static int peers_file(void) { return open(c_peers_path(), O_RDWR); }

// Attack from the same user: overwrite all entries again and again, also with plausible values;
// truncate the file.
static void spoil(const pid_t *pid) {
    uint64_t seed = t_seed();
    int fd = peers_file();
    if (fd < 0) return; // natively
    for (int k = 0; k < 300; k++) {
        struct lissom_peer p[LISSOM_MAX_PEERS];
        for (size_t i = 0; i < sizeof p / 8; i++) ((uint64_t *)p)[i] = t_rand(&seed);
        for (int i = 0; i < LISSOM_MAX_PEERS; i++) {
            if (t_rand(&seed) % 2)
                p[i].heartbeat = (uint64_t)t_now(CLOCK_MONOTONIC) - t_rand(&seed) % 100000000;
            if (t_rand(&seed) % 2) p[i].pid = (uint32_t)pid[t_rand(&seed) % PROCESSES];
            if (t_rand(&seed) % 2) p[i].asleep = (uint8_t)(t_rand(&seed) % 3);
        }
        SYS(pwrite(fd, p, sizeof p, 0));
        if (k % 50 == 49) SYS(ftruncate(fd, (off_t)(t_rand(&seed) % 10000)));
        t_sleep_us((int)(t_rand(&seed) % 2000));
        if (k % 60 == 0) c_goes_on(k / 60 % PROCESSES);
    }
    SYS(ftruncate(fd, 0));
    close(fd);
}

int main(int argc, char **argv) {
    (void)argc;
    c_region(argv);
    t_watchdog();
    c_share();
    pid_t pid[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) pid[i] = c_begin(i);
    for (int i = 0; i < PROCESSES; i++) c_goes_on(i);
    share(pid, PROCESSES);
    spoil(pid);
    share(pid, PROCESSES);
    for (int i = 0; i < PROCESSES; i++) c_goes_on(i);

    // A single process, while the others sleep.
    c_gate_close(&c_shared->gate[1], 1);
    c_gate_close(&c_shared->gate[2], 1);
    c_slots_become(pid[0], c_n_cpus);
    c_gate_close(&c_shared->gate[1], 0);
    share(pid, 2);
    // A stopped process does not count, nor one that has ended.
    kill(pid[1], SIGSTOP);
    c_slots_become(pid[0], c_n_cpus);
    c_goes_on(0);
    kill(pid[1], SIGCONT);
    share(pid, 2);
    c_goes_on(1);
    // A process with less weight has only its minimum of one slot, and the kernel divides that CPU.
    SYS(setpriority(PRIO_PROCESS, (id_t)pid[1], 19));
    c_slots_become(pid[0], c_n_cpus);
    c_slots_become(pid[1], 1);
    c_goes_on(1);
    kill(pid[0], SIGKILL);
    waitpid(pid[0], NULL, 0);
    c_slots_become(pid[1], c_n_cpus);

    // New processes find the others by the file's name, also after it was removed.
    unlink(c_peers_path());
    c_gate_close(&c_shared->gate[2], 0);
    pid[0] = c_begin(0);
    share(pid, PROCESSES);
    atomic_store(&c_shared->over, 1);
    for (int i = 0; i < PROCESSES; i++) c_ended_well(pid[i]);
    unlink(c_peers_path());
    return t_ok("cpus_shared");
}
