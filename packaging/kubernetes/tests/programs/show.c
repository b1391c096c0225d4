/* SPDX-License-Identifier: MIT */
// Show what a program in a container sees of lissom. `show` prints whether the library is loaded
// and starts some threads. `show watch` computes with four threads and prints the number of slots
// whenever it changes, until it is killed. `show pause` waits to be killed.
#define _GNU_SOURCE
#include "../../../../runtime/abi.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4 };

static struct lissom_region *region;

// Restart the program with a region for statistics, as `lissom run --stats` would.
static void get_region(char **argv)
{
    const char *fd = getenv(LISSOM_ENV_STATS_FD);
    if (!fd) {
        int made = memfd_create("region", MFD_ALLOW_SEALING);
        struct lissom_header h = {.magic = LISSOM_ABI_MAGIC,
                                  .version = LISSOM_ABI_VERSION,
                                  .records = LISSOM_MAX_RECORDS,
                                  .record_bytes = sizeof(struct lissom_record)};
        char number[16];
        if (made < 0 || ftruncate(made, LISSOM_REGION_BYTES) ||
            pwrite(made, &h, sizeof h, 0) != sizeof h)
            exit(1);
        // The runtime accepts no region that other processes could shrink.
        if (fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
            exit(1);
        snprintf(number, sizeof number, "%d", made);
        setenv(LISSOM_ENV_STATS_FD, number, 1);
        execv("/proc/self/exe", argv);
        exit(1);
    }
    region = mmap(NULL, LISSOM_REGION_BYTES, PROT_READ, MAP_SHARED, atoi(fd), 0);
    if (region == MAP_FAILED)
        exit(1);
}

static int slots(void)
{
    for (uint32_t i = 0; i < region->header.claimed && i < LISSOM_MAX_RECORDS; i++)
        if (region->record[i].pid == (uint32_t)getpid() &&
            region->record[i].state == LISSOM_STATE_active)
            return (int)__atomic_load_n(&region->record[i].slots, __ATOMIC_RELAXED);
    return 0;
}

static void show_library(void)
{
    char line[4096], *path = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !path && fgets(line, sizeof line, maps))
        if (strstr(line, "/liblissom-"))
            path = strchr(line, '/');
    printf("library: %s", path ? path : "none\n");
    printf("preload: %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *add(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10000; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *compute(void *unused)
{
    (void)unused;
    for (volatile unsigned long n = 0;; n++)
        ;
    return NULL;
}

static void start(pthread_t *threads, void *(*function)(void *))
{
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, function, NULL))
            exit(1);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc > 1 && !strcmp(argv[1], "pause"))
        for (;;)
            pause();
    get_region(argv);
    show_library();
    if (argc > 1 && !strcmp(argv[1], "watch")) {
        start(threads, compute);
        for (int last = -1;; usleep(10000)) {
            int now = slots();
            if (now != last) {
                printf("slots: %d\n", now);
                fflush(stdout);
            }
            last = now;
        }
    }
    start(threads, add);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("sum: %ld\n", sum);
    return 0;
}
