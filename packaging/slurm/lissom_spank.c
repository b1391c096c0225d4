/* SPDX-License-Identifier: MIT
 *
 * A SPANK plugin for `srun --lissom[=OPTIONS]`, sbatch and salloc. It changes the environment of a
 * task as `lissom run` changes that of its program (src/run.rs). docs/operate/slurm.md is for users
 * and administrators.
 *
 * It works in slurm_spank_task_init, not in slurm_spank_user_init. Slurm calls task_init in the
 * process that becomes the task:
 * - as the user, and with the task's files (job_container/tmpfs): files that cannot be read there
 *   could not be loaded either;
 * - after the task's environment is complete (MPI, GRES) and its CPUs are bound;
 * - an error concerns one task, and its message goes to that task's standard error. In user_init it
 *   would go to slurmd's log.
 *
 * No failure prevents the start of the task. So every function called by Slurm returns
 * ESPANK_SUCCESS, except the check of options in srun, sbatch and salloc: there the user can still
 * correct them.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "abi.h"

SPANK_PLUGIN(lissom, 1);

/* --- the text of --lissom --------------------------------------------------------------------- */

enum {
    SWITCH,
    SPIN,
    SPIN_THRESHOLD,
    IDLE,
    SHARE,
    CPUS,
    MALLEABLE,
    OMP_TEAM,
    MAX_THREADS,
    VERBOSE,
    OPTIONS
};

/* The options of `lissom run` that have an environment variable. */
static const struct {
    const char *name, *variable;
    const char *words;     /* permitted values */
    unsigned least, most;  /* or a number; most 0: none */
    const char *otherwise; /* default of `lissom run`; NULL: none */
} options[OPTIONS] = {
    [SWITCH] = {"switch", LISSOM_ENV_SWITCH, "auto|user|kernel|off", 0, 0, "auto"},
    [SPIN] = {"spin", LISSOM_ENV_SPIN, "auto|observe|off", 0, 0, "auto"},
    [SPIN_THRESHOLD] = {"spin-threshold", LISSOM_ENV_SPIN_THRESHOLD, "auto", 0, 1000000, "auto"},
    [IDLE] = {"idle", LISSOM_ENV_IDLE, "haltpoll|sleep|poll", 0, 0, "haltpoll"},
    [SHARE] = {"share", LISSOM_ENV_SHARE, "auto|off", 0, 0, "auto"},
    [CPUS] = {"cpus", LISSOM_ENV_CPUS, "", 1, LISSOM_MAX_SLOTS, NULL},
    [MALLEABLE] = {"malleable", LISSOM_ENV_MALLEABLE, "0|1", 0, 0, NULL},
    [OMP_TEAM] = {"omp-team", LISSOM_ENV_OMP_TEAM, "program|slots", 0, 0, NULL},
    [MAX_THREADS] = {"max-threads", LISSOM_ENV_MAX_THREADS, "", 1, LISSOM_MAX_SLOTS, NULL},
    [VERBOSE] = {"verbose", LISSOM_ENV_VERBOSE, "0|1", 0, 0, NULL},
};

struct settings {
    char value[OPTIONS][16]; /* empty: not given */
};

static bool is_word(const char *words, const char *text)
{
    size_t length = strlen(text);
    for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|')
        if (strcspn(w, "|") == length && memcmp(w, text, length) == 0)
            return true;
    return false;
}

/* Parse a number. Returns 0..most, or most + 1 for anything else. */
static unsigned number(const char *text, unsigned most)
{
    unsigned n = 0;
    if (!*text)
        return most + 1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return most + 1;
        n = n * 10 + (unsigned)(*text - '0');
        if (n > most)
            return most + 1;
    }
    return n;
}

static bool is_value(int option, const char *text)
{
    if (is_word(options[option].words, text))
        return true;
    unsigned most = options[option].most, n = number(text, most);
    return most && n >= options[option].least && n <= most;
}

/* Append "cpus=1..1024" for the option to `to`. */
static void describe(int option, char *to, size_t size)
{
    size_t used = strlen(to);
    used += (size_t)snprintf(to + used, size - used, "%s=%s", options[option].name,
                             options[option].words);
    if (options[option].most && used < size)
        snprintf(to + used, size - used, "%s%u..%u", *options[option].words ? "|" : "",
                 options[option].least, options[option].most);
}

/* Parse one part between commas. On failure, returns false and sets `problem` to a message that
 * lists what is valid. */
static bool read_part(const char *part, struct settings *settings, char *problem, size_t size)
{
    if (strcmp(part, "on") == 0)
        return true;
    if (strcmp(part, "off") == 0)
        part = "switch=off";
    if (strcmp(part, "verbose") == 0)
        part = "verbose=1";
    size_t length = strcspn(part, "=");
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(options[i].name) != length || memcmp(options[i].name, part, length) != 0)
            continue;
        const char *value = part[length] ? part + length + 1 : "";
        if (is_value(i, value)) {
            snprintf(settings->value[i], sizeof settings->value[i], "%s", value);
            return true;
        }
        snprintf(problem, size, "`%s` is not understood; what it may be: ", part);
        describe(i, problem, size);
        return false;
    }
    snprintf(problem, size, "there is no option `%s`; there are: on, off, verbose", part);
    for (int i = 0; i < VERBOSE; i++) {
        strncat(problem, ", ", size - strlen(problem) - 1);
        describe(i, problem, size);
    }
    return false;
}

/* Parse the text of --lissom. NULL and "(null)", which Slurm may pass, are the same as "". Returns
 * false, and sets `problem`, if it is invalid. */
static bool read_text(const char *text, struct settings *settings, char *problem, size_t size)
{
    memset(settings, 0, sizeof *settings);
    if (!text || !*text || strcmp(text, "(null)") == 0)
        return true;
    char *copy = strdup(text);
    if (!copy) {
        snprintf(problem, size, "no memory");
        return false;
    }
    bool good = true;
    char *rest = copy;
    for (char *part; good && (part = strsep(&rest, ","));)
        good = read_part(part, settings, problem, size);
    free(copy);
    return good;
}

/* Check the option in srun, sbatch and salloc. The task parses it again: in its own check there is
 * no standard error for a message yet. */
static int check(int value, const char *text, int remote)
{
    (void)value;
    struct settings settings;
    char problem[1024];
    if (remote || read_text(text, &settings, problem, sizeof problem))
        return ESPANK_SUCCESS;
    slurm_error("lissom: --lissom=%s: %s", text, problem);
    return -1;
}

static struct spank_option option = {
    .name = "lissom",
    .arginfo = "[OPTIONS]",
    .usage = "run the tasks under lissom, so that they may have more threads than CPUs. OPTIONS "
             "are those of `lissom run`, "
             "separated by commas (switch=user,cpus=4), or off",
    .has_arg = 2,
    .cb = check,
};

/* --- plugstack.conf --------------------------------------------------------------------------- */

struct arguments {
    const char *library;
    const char *usual; /* text of --lissom for jobs that do not give it */
};

/* Parse the arguments of plugstack.conf. Ignores invalid ones; reports them if `say`. */
static struct arguments read_arguments(int count, char **argument, bool say)
{
    struct arguments a = {.library = LISSOM_LIBRARY, .usual = "off"};
    for (int i = 0; i < count; i++) {
        struct settings settings;
        char problem[1024] = "no such argument; there are lib=PATH and default=on|off|OPTIONS";
        if (strncmp(argument[i], "lib=/", 5) == 0) {
            a.library = argument[i] + 4;
        } else if (strncmp(argument[i], "lib=", 4) == 0) {
            if (say)
                slurm_error("lissom: plugstack.conf: %s: a path that begins with / is needed",
                            argument[i]);
        } else if (strncmp(argument[i], "default=", 8) == 0 &&
                   read_text(argument[i] + 8, &settings, problem, sizeof problem)) {
            a.usual = argument[i] + 8;
        } else if (say) {
            slurm_error("lissom: plugstack.conf: %s: %s", argument[i], problem);
        }
    }
    return a;
}

/* --- the task's environment ------------------------------------------------------------------- */

/* Return the value of a variable of the task; NULL if it is not set, or without memory. The caller
 * frees it. */
static char *get(spank_t spank, const char *name)
{
    char *value = NULL;
    for (int size = 4096; size <= 1 << 22; size *= 2) {
        char *larger = realloc(value, (size_t)size);
        if (!larger)
            break;
        value = larger;
        spank_err_t error = spank_getenv(spank, name, value, size);
        if (error == ESPANK_SUCCESS)
            return value;
        if (error != ESPANK_NOSPACE)
            break;
    }
    free(value);
    return NULL;
}

static bool has(spank_t spank, const char *name)
{
    char *value = get(spank, name);
    free(value);
    return value != NULL;
}

static bool is_set_to(spank_t spank, const char *name, const char *wanted)
{
    char *value = get(spank, name);
    bool is_it = value && strcmp(value, wanted) == 0;
    free(value);
    return is_it;
}

static bool set(spank_t spank, const char *name, const char *value)
{
    return spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS;
}

/* Print why the program runs natively. Only the first task reports: there may be hundreds on a
 * node. */
__attribute__((format(printf, 2, 3))) static void runs_without(spank_t spank, const char *format,
                                                               ...)
{
    int task;
    if (spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task != 0)
        return;
    char why[1024], node[256] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    gethostname(node, sizeof node - 1);
    slurm_error("lissom: on %s the program runs without it: %s", node, why);
}

/* --- LD_PRELOAD ------------------------------------------------------------------------------- */

/* Return whether the entry is the runtime of an outer `lissom run`, or of a batch script under
 * lissom. A runtime in a descriptor is usable only in the process that created it. */
static bool is_runtime(const char *entry, size_t length)
{
    const char *name = memrchr(entry, '/', length);
    name = name ? name + 1 : entry;
    size_t name_length = length - (size_t)(name - entry);
    const char begin[] = "liblissom", end[] = ".so", descriptor[] = "/proc/self/fd/";
    return (name_length >= sizeof begin + sizeof end - 2 &&
            memcmp(name, begin, sizeof begin - 1) == 0 &&
            memcmp(name + name_length - (sizeof end - 1), end, sizeof end - 1) == 0) ||
           (length > sizeof descriptor - 1 &&
            memcmp(entry, descriptor, sizeof descriptor - 1) == 0);
}

/* Return the entries that are no runtime, separated by colons; NULL without memory. The caller
 * frees it. Sets *had_one to whether there was a runtime. */
static char *others_preloaded(const char *list, bool *had_one)
{
    char *others = malloc(strlen(list) + 1), *end = others;
    *had_one = false;
    if (!others)
        return NULL;
    for (const char *entry = list; *entry;) {
        size_t length = strcspn(entry, " :");
        if (is_runtime(entry, length)) {
            *had_one = true;
        } else if (length) {
            if (end != others)
                *end++ = ':';
            end = mempcpy(end, entry, length);
        }
        entry += length;
        entry += *entry != 0;
    }
    *end = 0;
    return others;
}

/* Preload the runtime before the user's libraries. */
static bool preload(spank_t spank, const char *library)
{
    bool had_one;
    char *list = get(spank, "LD_PRELOAD"), *others = others_preloaded(list ? list : "", &had_one),
         *whole = NULL;
    bool done = others && asprintf(&whole, "%s%s%s", library, *others ? ":" : "", others) >= 0 &&
                set(spank, "LD_PRELOAD", whole);
    free(list);
    free(others);
    free(whole);
    return done;
}

/* Return the real path, by which a `lissom run` inside of the task recognizes it; or NULL and *why.
 * The caller frees it. */
static char *find_library(const char *configured, const char **why)
{
    char *path = realpath(configured, NULL);
    if (!path) {
        *why = strerror(errno);
        return NULL;
    }
    Elf64_Ehdr header;
    *why = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, &header, sizeof header) : -1;
    if (got < 0)
        *why = strerror(errno);
    else if ((size_t)got < sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
             header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
             header.e_machine != EM_X86_64)
        *why = "not a library for x86-64";
    else if (strpbrk(path, " \t\n:;$"))
        *why = "the loader cannot preload from a path with a blank, colon, semicolon or $";
    if (file >= 0)
        close(file);
    if (!*why)
        return path;
    free(path);
    return NULL;
}

/* --- other settings of `lissom run` ----------------------------------------------------------- */

/* Keep OpenMP's threads from spinning before they block, as idle slots do that instead. Does
 * nothing if the user has chosen how they spin. */
static bool calm_openmp(spank_t spank)
{
    char *policy = get(spank, "OMP_WAIT_POLICY");
    bool passive = policy && strcasecmp(policy, "active") != 0;
    free(policy);
    if (passive || has(spank, "GOMP_SPINCOUNT") || has(spank, "KMP_BLOCKTIME"))
        return true;
    return set(spank, "GOMP_SPINCOUNT", "0") && set(spank, "KMP_BLOCKTIME", "0") &&
           set(spank, LISSOM_ENV_OPENMP, "poll");
}

/* Set teams of `most` threads, of which the number that the user wanted is active. */
static bool enlarge_teams(spank_t spank, const char *most)
{
    if (has(spank, LISSOM_ENV_ACTIVE_THREADS))
        return true;
    char *wanted = get(spank, "OMP_NUM_THREADS");
    bool done = true;
    if (wanted) {
        /* One number for each level of nested regions; blanks are allowed. */
        wanted[strcspn(wanted, ",")] = 0;
        char *first = wanted + strspn(wanted, " \t");
        first[strcspn(first, " \t")] = 0;
        unsigned n = number(first, LISSOM_MAX_SLOTS);
        char text[16];
        snprintf(text, sizeof text, "%u", n);
        if (n >= 1 && n <= LISSOM_MAX_SLOTS)
            done = set(spank, LISSOM_ENV_ACTIVE_THREADS, text);
    }
    free(wanted);
    return done && set(spank, "OMP_NUM_THREADS", most) && set(spank, LISSOM_ENV_MAX_THREADS, most);
}

/* Set all variables. Returns NULL, or the variable that could not be set. The runtime comes last,
 * so that it is loaded with all its settings, or not at all. */
static const char *set_up(spank_t spank, const struct settings *settings, const char *library)
{
    for (int i = 0; i < OPTIONS; i++) {
        const char *value = settings->value[i];
        if (i == MAX_THREADS)
            continue;
        if (!*value && options[i].otherwise && !has(spank, options[i].variable))
            value = options[i].otherwise;
        if (*value && !set(spank, options[i].variable, value))
            return options[i].variable;
    }
    char *inherited = get(spank, LISSOM_ENV_MAX_THREADS);
    const char *most = *settings->value[MAX_THREADS] ? settings->value[MAX_THREADS] : inherited;
    bool done = !most || enlarge_teams(spank, most);
    free(inherited);
    if (!done)
        return "OMP_NUM_THREADS";
    if (!calm_openmp(spank))
        return "GOMP_SPINCOUNT";
    return preload(spank, library) ? NULL : "LD_PRELOAD";
}

/* Remove variables inherited from a batch script or shell under lissom. */
static void switch_off(spank_t spank)
{
    char *list = get(spank, "LD_PRELOAD");
    bool had_one = false;
    char *others = list ? others_preloaded(list, &had_one) : NULL;
    if (others && had_one) {
        if (*others)
            set(spank, "LD_PRELOAD", others);
        else
            spank_unsetenv(spank, "LD_PRELOAD");
        /* Only lissom sets this variable, together with the other two. */
        if (has(spank, LISSOM_ENV_OPENMP)) {
            spank_unsetenv(spank, LISSOM_ENV_OPENMP);
            spank_unsetenv(spank, "GOMP_SPINCOUNT");
            spank_unsetenv(spank, "KMP_BLOCKTIME");
        }
        if (has(spank, LISSOM_ENV_MAX_THREADS)) {
            char *wanted = get(spank, LISSOM_ENV_ACTIVE_THREADS);
            if (wanted)
                set(spank, "OMP_NUM_THREADS", wanted);
            else
                spank_unsetenv(spank, "OMP_NUM_THREADS");
            free(wanted);
            spank_unsetenv(spank, LISSOM_ENV_MAX_THREADS);
            spank_unsetenv(spank, LISSOM_ENV_ACTIVE_THREADS);
        }
    }
    free(list);
    free(others);
}

/* --- called by Slurm -------------------------------------------------------------------------- */

int slurm_spank_init(spank_t spank, int count, char **argument)
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
    case S_CTX_REMOTE: break;
    default: return ESPANK_SUCCESS;
    }
    read_arguments(count, argument, true);
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
        slurm_error("lissom: Slurm does not take the option --lissom");
    return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int count, char **argument)
{
    struct arguments arguments = read_arguments(count, argument, false);
    char *text = NULL;
    bool asked = spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS;
    /* `sbatch --export=NONE` hides the variables in which Slurm passes sbatch's options to the
     * script's task, except for this one. */
    char *handed_down = asked ? NULL : get(spank, "SLURM_SPANK__SLURM_SPANK_OPTION_lissom_lissom");
    if (handed_down) {
        asked = true;
        text = handed_down;
    }
    struct settings settings;
    char problem[1024];
    bool good = read_text(asked ? text : arguments.usual, &settings, problem, sizeof problem);
    /* srun has checked it, but this node may have another version of the plugin. */
    if (!good)
        runs_without(spank, "--lissom=%s: %s", text, problem);
    free(handed_down);
    if (!good)
        return ESPANK_SUCCESS;
    static const char *const no[] = {"0", "off", "no", "false"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (is_set_to(spank, LISSOM_ENV_ENABLE, no[i]))
            return ESPANK_SUCCESS;
    const char *chosen = settings.value[SWITCH];
    if (strcmp(chosen, "off") == 0 || (!*chosen && is_set_to(spank, LISSOM_ENV_SWITCH, "off"))) {
        if (asked)
            switch_off(spank);
        return ESPANK_SUCCESS;
    }

    const char *why;
    char *library = find_library(arguments.library, &why);
    if (!library) {
        runs_without(spank, "%s: %s; install lissom there, or set lib= in plugstack.conf",
                     arguments.library, why);
        return ESPANK_SUCCESS;
    }
    const char *variable = set_up(spank, &settings, library);
    if (variable)
        runs_without(spank, "%s cannot be set", variable);
    free(library);
    return ESPANK_SUCCESS;
}
