/* Waits until process PID is in state STATE: `await_state PID STATE`, with a letter of
 * /proc/PID/stat (S: sleeps, T: stopped, Z: dead). Exits with 1 if the process is gone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of the process's first thread; 0: there is no such process. */
static char state(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end ? name_end[2] : 0;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    for (;;) {
        char now = state(argv[1]);
        if (now == argv[2][0]) return 0;
        if (!now) {
            fprintf(stderr, "await_state: there is no process %s\n", argv[1]);
            return 1;
        }
        usleep(1000);
    }
}
