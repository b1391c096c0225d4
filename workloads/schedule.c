/* SPDX-License-Identifier: MIT */
// Run a program while its CPUs change, and print how much CPU time was available to it:
//
//     schedule --by affinity|pins|cpuset|quota|nothing --steps CPUS:SECONDS[,CPUS:SECONDS...] --
//     COMMAND...
//
// The steps repeat until the program ends; a step without `:SECONDS` does not end.
//
// affinity  the mask of all threads of the program and its children, as `taskset -a` sets it
// pins      as affinity, but a thread keeps those of its own CPUs that are left, as a bound thread
//           does in a cpuset; if none is left, it gets all of the step
// cpuset    the CPUs of a cgroup; needs root
// quota     the CPU quota of a cgroup; needs root; CPUS may be a fraction
//
// Prints the last line of the program's output, if that is a line of JSON, after these members:
// cpu_seconds (available to the program), whole_seconds (duration of the program), and with quota
// periods, throttled, throttled_percent, throttled_seconds (summed over CPUs).
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 64, PERIOD_US = 100000 };
static struct step {
    double cpus, seconds;
} step[STEPS];
static int steps;
static enum by { AFFINITY, PINS, CPUSET, QUOTA, NOTHING } by;
static cpu_set_t all;
static char folder[256];
static int version_2;
static sigset_t waited_for;

// Remove the cgroup. It stays busy for a moment after its process was waited for.
static void leave(void) {
    for (int i = 0; *folder && rmdir(folder) && errno == EBUSY && i < 1000; i++)
        usleep(1000);
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("schedule: ", stderr);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- options -------------------------------------------------------------------------------------

static void read_steps(const char *text) {
    const char *p = text;
    do {
        char *end;
        if (steps == STEPS)
            fail("at most %d steps", STEPS);
        step[steps].cpus = strtod(p, &end);
        step[steps].seconds = 1e9;
        if (end != p && *end == ':') {
            p = end + 1;
            step[steps].seconds = strtod(p, &end);
        }
        if (end == p || (*end && *end != ',') || !(step[steps].cpus > 0) ||
            !(step[steps].seconds > 0))
            fail("--steps are CPUS:SECONDS, by commas, not %s", text);
        steps++;
        p = end + (*end == ',');
    } while (*p);
}

static void read_by(const char *text) {
    static const char *const names[] = {"affinity", "pins", "cpuset", "quota", "nothing"};
    for (by = AFFINITY; strcmp(text, names[by]);)
        if (by++ == NOTHING)
            fail("--by is affinity, pins, cpuset, quota or nothing");
}

// --- cgroups -------------------------------------------------------------------------------------

static int put(const char *file, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "w");
    int bad = !f || fputs(text, f) < 0;
    return (f && fclose(f)) || bad ? -1 : 0;
}

static int is_there(const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return access(path, W_OK) == 0;
}

// Make a cgroup where the hierarchy is: in the controller's own (version 1), or in the common one.
static void make_group(void) {
    const char *places[3] = {by == QUOTA ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup/cpuset",
                             by == QUOTA ? "/sys/fs/cgroup/cpu,cpuacct" : NULL, "/sys/fs/cgroup"};
    for (int i = 0; i < 3; i++) {
        if (!places[i])
            continue;
        snprintf(folder, sizeof folder, "%s/lissom-schedule-%d", places[i], (int)getpid());
        rmdir(folder); // left by a killed process with the same pid
        if (mkdir(folder, 0755) == 0 && is_there(by == QUOTA ? "cpu.cfs_quota_us" : "cpuset.mems"))
            break;
        version_2 = is_there(by == QUOTA ? "cpu.max" : "cpuset.cpus");
        if (version_2)
            break;
        rmdir(folder);
        *folder = 0;
    }
    if (!*folder)
        fail("no cgroup with a %s can be made: be root", by == QUOTA ? "CPU quota" : "cpuset");
    atexit(leave);
    if (by == CPUSET && !version_2) {
        char nodes[256] = "0";
        FILE *f = fopen("/sys/fs/cgroup/cpuset/cpuset.mems", "r");
        if (f && fgets(nodes, sizeof nodes, f))
            put("cpuset.mems", nodes);
        if (f)
            fclose(f);
    }
}

static void set_quota(double cpus) {
    char text[64];
    snprintf(text, sizeof text, version_2 ? "%d %d" : "%d", (int)(cpus * PERIOD_US), PERIOD_US);
    if (put(version_2 ? "cpu.max" : "cpu.cfs_quota_us", text))
        fail("%s: %s", folder, strerror(errno));
}

// Read how often the cgroup was throttled, and for how long: the sum over CPUs, in seconds.
static void throttled(long *periods, long *stood, double *seconds) {
    char path[512], line[128];
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "nr_periods %ld", periods);
        sscanf(line, "nr_throttled %ld", stood);
        long time;
        if (sscanf(line, "throttled_time %ld", &time) == 1)
            *seconds = (double)time * 1e-9;
        if (sscanf(line, "throttled_usec %ld", &time) == 1)
            *seconds = (double)time * 1e-6;
    }
    if (f)
        fclose(f);
}

// --- CPUs ----------------------------------------------------------------------------------------

// Return the first n of all CPUs.
static cpu_set_t first(int n) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE && n > 0; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &set);
            n--;
        }
    return set;
}

// Set a thread's mask. Ignores errors: the thread may have ended.
static void set_mask(pid_t tid, const cpu_set_t *set) {
    cpu_set_t kept = *set;
    if (by == PINS && !sched_getaffinity(tid, sizeof kept, &kept)) {
        CPU_AND(&kept, &kept, set);
        if (!CPU_COUNT(&kept))
            kept = *set;
    }
    sched_setaffinity(tid, sizeof kept, &kept);
}

static void set_affinity(pid_t pid, const cpu_set_t *set) {
    char path[64], children[320];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        set_mask(atoi(e->d_name), set);
        snprintf(children, sizeof children, "/proc/%d/task/%s/children", (int)pid, e->d_name);
        FILE *f = fopen(children, "r");
        for (int child; f && fscanf(f, "%d", &child) == 1;)
            set_affinity(child, set);
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
}

static void set_cpuset(const cpu_set_t *set) {
    char text[4096] = "";
    size_t n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < sizeof text - 8; cpu++)
        if (CPU_ISSET(cpu, set))
            n += (size_t)snprintf(text + n, sizeof text - n, n ? ",%d" : "%d", cpu);
    if (put("cpuset.cpus", text))
        fail("%s: %s", folder, strerror(errno));
}

static double cpus_of(const struct step *s) {
    double most = CPU_COUNT(&all);
    double cpus = by == QUOTA ? s->cpus : (double)(int)s->cpus;
    return by == NOTHING || cpus > most ? most : cpus < 1 && by != QUOTA ? 1 : cpus;
}

static void take(pid_t pid, const struct step *s) {
    cpu_set_t set = first((int)cpus_of(s));
    if (by == AFFINITY || by == PINS)
        set_affinity(pid, &set);
    else if (by == CPUSET)
        set_cpuset(&set);
    else if (by == QUOTA)
        set_quota(cpus_of(s));
}

// --- the program ---------------------------------------------------------------------------------

static pid_t start(char **command, int *output) {
    int ends[2], go[2];
    if (pipe(ends) || pipe(go))
        fail("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        fail("fork: %s", strerror(errno));
    if (!pid) {
        char c;
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        close(go[1]);
        if (read(go[0], &c, 1) < 0) // wait until the process is in its cgroup
            _exit(126);
        close(go[0]);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execvp(*command, command);
        fprintf(stderr, "schedule: %s: %s\n", *command, strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    close(go[0]);
    *output = ends[0];
    if (by == CPUSET || by == QUOTA) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)pid);
        if (by == CPUSET)
            set_cpuset(&all);
        if (put("cgroup.procs", text))
            fail("%s: %s", folder, strerror(errno));
    }
    take(pid, &step[0]);
    close(go[1]);
    return pid;
}

// Take all steps, again and again, until the program ends. Returns its exit status. *available: the
// CPU time in seconds.
static int follow(pid_t pid, double *available) {
    double begun = now(), ends = begun + step[0].seconds;
    for (int i = 0;;) {
        double left = ends - now();
        struct timespec t = {.tv_sec = (time_t)(left > 1 ? 1 : 0),
                             .tv_nsec = left > 0 && left < 1 ? (long)(left * 1e9) : 0};
        int status = 0;
        int sent = left > 0 ? sigtimedwait(&waited_for, NULL, &t) : 0;
        if (sent == SIGTERM || sent == SIGINT)
            kill(pid, sent); // forward it; the program decides what to do
        pid_t ended = waitpid(pid, &status, WNOHANG);
        double at = now();
        if (ended == pid || at >= ends) {
            *available += cpus_of(&step[i]) * (at - begun);
            begun = at;
        }
        if (ended == pid)
            return status;
        if (at < ends)
            continue;
        i = (i + 1) % steps;
        ends = at + step[i].seconds;
        take(pid, &step[i]);
    }
}

int main(int argc, char **argv) {
    const char *text = NULL;
    int i = 1;
    for (; i + 1 < argc && strcmp(argv[i], "--"); i += 2) {
        if (!strcmp(argv[i], "--by"))
            read_by(argv[i + 1]);
        else if (!strcmp(argv[i], "--steps"))
            text = argv[i + 1];
        else
            fail("unknown option %s", argv[i]);
    }
    if (i + 1 >= argc || !text)
        fail("schedule --by WHAT --steps CPUS:SECONDS,... -- COMMAND...");
    read_steps(text);
    if (sched_getaffinity(0, sizeof all, &all))
        fail("sched_getaffinity: %s", strerror(errno));
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGCHLD);
    sigaddset(&waited_for, SIGTERM);
    sigaddset(&waited_for, SIGINT);
    sigprocmask(SIG_BLOCK, &waited_for, NULL);
    if (by == CPUSET || by == QUOTA)
        make_group();

    int output;
    double begun = now(), available = 0;
    pid_t pid = start(argv + i + 1, &output);
    int status = follow(pid, &available);
    double seconds = now() - begun;
    static char said[65536];
    // The program has ended, so the pipe has all of its output: with more it would have blocked.
    ssize_t n = read(output, said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail("%s failed, status %#x", argv[i + 1], status);
    while (n > 0 && said[n - 1] == '\n')
        said[--n] = 0;
    char *last = strrchr(said, '\n');
    last = last ? last + 1 : said;
    printf("{\"cpu_seconds\": %.6f, \"whole_seconds\": %.6f", available, seconds);
    if (by == QUOTA) {
        long periods = 0, stood = 0;
        double time = 0;
        throttled(&periods, &stood, &time);
        printf(", \"periods\": %ld, \"throttled\": %ld, \"throttled_percent\": %.2f, "
               "\"throttled_seconds\": %.6f",
               periods, stood, periods ? 100.0 * (double)stood / (double)periods : 0.0, time);
    }
    printf("%s%s\n", *last == '{' && last[1] != '}' ? ", " : "}", *last == '{' ? last + 1 : "");
    return 0;
}
