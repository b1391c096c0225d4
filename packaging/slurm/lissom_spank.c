/* SPDX-License-Identifier: MIT
 *
 * A SPANK plugin for `srun --lissom[=OPTIONS]`, sbatch and salloc. It asks `lissom run --print-env`
 * how to change a task's environment. docs/operate/slurm.md is for users and administrators.
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
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(lissom, 1);

enum {
    PATIENCE_MS = 5000, /* longest run of `lissom run --print-env` */
    WRONG_USE = 2,      /* its exit codes */
    NOT_EXECUTABLE = 126
};

/* --- `lissom run --print-env` ----------------------------------------------------------------- */

struct answer {
    int code;       /* exit code; -1: killed, not started, or not finished in time */
    char *output;   /* standard output */
    char *messages; /* lines of standard error, without help for the command line; or why not */
};

/* Make the command line for the text of --lissom. NULL and "(null)", which Slurm may pass, are the
 * same as "". Returns NULL without memory. */
static char **command_line(char *lissom, const char *text)
{
    if (!text || strcmp(text, "(null)") == 0)
        text = "";
    size_t length = strlen(text), count = 0;
    char **argv = calloc(length + 4, sizeof *argv), *copy = strdup(text), *rest = NULL;
    if (!argv || !copy)
        return NULL;
    argv[count++] = lissom;
    argv[count++] = "run";
    argv[count++] = "--print-env";
    for (char *part = strtok_r(copy, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
        if (strcmp(part, "on") == 0)
            continue;
        if (strcmp(part, "off") == 0)
            part = "switch=off";
        if (asprintf(&argv[count++], "--%s", part) < 0)
            return NULL;
    }
    return argv;
}

/* Wait for the process for at most `ms`. Returns whether it has ended. */
static bool wait_for(pid_t pid, int *status, int ms)
{
    for (; ms > 0; ms--) {
        if (waitpid(pid, status, WNOHANG) == pid)
            return true;
        usleep(1000);
    }
    return false;
}

/* Return the content of a file as a string; "" if there is none. */
static char *content(int file)
{
    off_t size = lseek(file, 0, SEEK_END);
    char *text = calloc(1, (size_t)(size > 0 ? size : 0) + 1);
    if (!text || (size > 0 && pread(file, text, (size_t)size, 0) != size))
        return "";
    return text;
}

/* Run `lissom run --print-env` with the options in `text` and this environment. Frees nothing: the
 * process becomes the task, or submits a job and ends. */
static struct answer ask(char *lissom, const char *text, char **environment)
{
    struct answer answer = {-1, "", "no answer within 5 s, or killed; run it there to see why"};
    char **argv = command_line(lissom, text);
    /* If it is ignored, the kernel keeps no exit code. */
    struct sigaction usual = {.sa_handler = SIG_DFL}, before;
    sigaction(SIGCHLD, &usual, &before);
    int output = memfd_create("output", MFD_CLOEXEC), status;
    int messages = memfd_create("messages", MFD_CLOEXEC);
    pid_t pid = argv && output >= 0 && messages >= 0 ? fork() : -1;
    if (pid == 0) {
        dup2(output, STDOUT_FILENO);
        dup2(messages, STDERR_FILENO);
        execve(lissom, argv, environment);
        dprintf(STDERR_FILENO, "%s", strerror(errno));
        _exit(NOT_EXECUTABLE);
    }
    if (pid < 0) {
        answer.messages = strerror(errno);
    } else if (!wait_for(pid, &status, PATIENCE_MS)) {
        kill(pid, SIGKILL);
        /* If it hangs in the kernel, as on a file server, leave it: the task must start. */
        wait_for(pid, &status, 1000);
    } else if (WIFEXITED(status)) {
        answer = (struct answer){WEXITSTATUS(status), content(output), content(messages)};
        char *end = strstr(answer.messages, "\n\n");
        if (end)
            *end = 0;
        if (*answer.messages && answer.messages[strlen(answer.messages) - 1] == '\n')
            answer.messages[strlen(answer.messages) - 1] = 0;
        if (strncmp(answer.messages, "error: ", 7) == 0)
            answer.messages += 7;
    }
    sigaction(SIGCHLD, &before, NULL);
    close(output);
    close(messages);
    return answer;
}

/* --- plugstack.conf --------------------------------------------------------------------------- */

static struct {
    char *lissom;
    char *usual; /* text of --lissom for jobs that do not give it */
} arguments = {LISSOM_BINARY, "off"};

/* Parse the arguments of plugstack.conf. Ignores invalid ones, with a message. */
static void read_arguments(int count, char **argument)
{
    for (int i = 0; i < count; i++) {
        if (strncmp(argument[i], "bin=/", 5) == 0)
            arguments.lissom = strdup(argument[i] + 4);
        else if (strncmp(argument[i], "default=", 8) == 0)
            arguments.usual = strdup(argument[i] + 8);
        else
            slurm_error("lissom: plugstack.conf: %s: no such argument; there are bin=/PATH and "
                        "default=on|off|OPTIONS",
                        argument[i]);
    }
}

/* --- the option ------------------------------------------------------------------------------- */

/* Check the option in srun, sbatch and salloc. If lissom cannot say whether it is right, the tasks
 * will. */
static int check(int value, const char *text, int remote)
{
    (void)value;
    if (remote)
        return ESPANK_SUCCESS;
    /* Without variables: a wrong one is no mistake in the option. */
    struct answer answer = ask(arguments.lissom, text, (char *[]){NULL});
    if (answer.code != WRONG_USE)
        return ESPANK_SUCCESS;
    slurm_error("lissom: --lissom=%s: %s", text, answer.messages);
    slurm_error("lissom: see `lissom run --help`; separate options by commas, and omit their --");
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

/* --- the task's environment ------------------------------------------------------------------- */

static bool is_first(spank_t spank)
{
    int task;
    return spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task == 0;
}

/* Print why the program runs natively. Only the first task reports: there may be hundreds on a
 * node. */
__attribute__((format(printf, 2, 3))) static void runs_without(spank_t spank, const char *format,
                                                               ...)
{
    if (!is_first(spank))
        return;
    char why[1024], node[256] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    gethostname(node, sizeof node - 1);
    slurm_error("lissom: on %s the program runs without it: %s", node, why);
}

/* Apply lines of NAME=VALUE. A variable without a value is removed. Returns NULL, or the line that
 * could not be applied. */
static char *apply(spank_t spank, char *lines)
{
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');
        if (!value)
            return line;
        *value++ = 0;
        if ((*value ? spank_setenv(spank, line, value, 1) : spank_unsetenv(spank, line)) !=
            ESPANK_SUCCESS)
            return line;
    }
    return NULL;
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
    read_arguments(count, argument);
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
        slurm_error("lissom: Slurm does not take the option --lissom");
    return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int count, char **argument)
{
    (void)count;
    (void)argument;
    /* `sbatch --export=NONE` hides the variables in which Slurm passes sbatch's options to the
     * script's task, except for this one. */
    static const char handed_down[] = "SLURM_SPANK__SLURM_SPANK_OPTION_lissom_lissom=";
    char *text = NULL, **environment;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) {
        runs_without(spank, "Slurm does not show the plugin the task's environment");
        return ESPANK_SUCCESS;
    }
    if (spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS) {
        text = text ? text : "";
    } else {
        for (char **v = environment; *v && !text; v++)
            if (strncmp(*v, handed_down, sizeof handed_down - 1) == 0)
                text = *v + sizeof handed_down - 1;
        if (!text && strcmp(arguments.usual, "off") == 0)
            return ESPANK_SUCCESS;
        if (!text)
            text = arguments.usual;
    }
    struct answer answer = ask(arguments.lissom, text, environment);
    const char *failed = NULL;
    if (answer.code == NOT_EXECUTABLE)
        runs_without(spank, "%s: %s; install lissom there, or set bin= in plugstack.conf",
                     arguments.lissom, answer.messages);
    else if (answer.code != 0)
        runs_without(spank, "%s run --print-env, for --lissom=%s: %s", arguments.lissom, text,
                     answer.messages);
    else if ((failed = apply(spank, answer.output)))
        runs_without(spank, "cannot apply `%s`, for --lissom=%s", failed, text);
    else if (*answer.messages && is_first(spank))
        dprintf(STDERR_FILENO, "%s\n", answer.messages);
    return ESPANK_SUCCESS;
}
