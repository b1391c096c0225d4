// Wait until all processes are in STATE at the same time, as in /proc/PID/stat: T stopped, S
// asleep. Fails if one has ended.
//
//     await_state STATE PID...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Return the state of the process; 0 if it does not exist or is a zombie.
static char state_of(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    // Skip the name, which may contain any character.
    char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] != 'Z' ? name_end[2] : 0;
}

int main(int argc, char **argv) {
    if (argc < 3 || strlen(argv[1]) != 1) {
        fputs("await_state STATE PID...\n", stderr);
        return 2;
    }
    for (;;) {
        int there = 0;
        for (int i = 2; i < argc; i++) {
            char state = state_of(argv[i]);
            if (!state) {
                fprintf(stderr, "process %s has ended\n", argv[i]);
                return 1;
            }
            there += state == argv[1][0];
        }
        if (there == argc - 2) return 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}
