// build: -ldl
// omp_late [-s|-g LIBRARY]...: load libraries with an OpenMP runtime while threads run. Several
// threads run their loops, one library after the other and all at once. -s: load with local
// symbols; -g: with global ones.
#include "dlopen_test.h"
#include "pthread_test.h"
#include <dlfcn.h>

typedef long loops_function(int threads, int n);
enum { MOST = 8, ROUNDS = 3, N = 400 };
static loops_function *loops[MOST];
static int count, threads;
static volatile int stop;

static void *beside(void *arg) { // threads that run before and during the loading
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static volatile long guarded;
    while (!stop) {
        OK(pthread_mutex_lock(&mutex));
        guarded++;
        OK(pthread_mutex_unlock(&mutex));
        t_sleep_us(200);
    }
    return arg;
}

static void *team(void *arg) {
    for (int r = 0; r < ROUNDS; r++)
        EQ(loops[(intptr_t)arg % count](threads, N), (long)N * (N - 1) / 2 * 4);
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    threads = t_threads();
    pthread_t t[4];
    for (int i = 0; i < 4; i++) t[i] = t_spawn(beside, NULL);
    t_sleep_ms(20);
    for (int i = 1; i + 1 < argc && count < MOST; i += 2) {
        void *library =
            dlopen(argv[i + 1], RTLD_NOW | (!strcmp(argv[i], "-g") ? RTLD_GLOBAL : RTLD_LOCAL));
        CHECK(library, "%s", dlerror());
        loops[count] = (loops_function *)dlsym(library, "late_loops");
        CHECK(loops[count]);
        count++;
        team((void *)(intptr_t)(count - 1));
    }
    CHECK(count);
    t_run(count * 2, team);
    stop = 1;
    for (int i = 0; i < 4; i++) t_join(t[i]);
    // Count the copies of the OpenMP runtime by their file names.
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int copies = 0;
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        copies += strstr(line, " r-xp ") && (strstr(line, "/libgomp") || strstr(line, "/libomp"));
    fclose(maps);
    printf("%d runtimes\n", copies);
    return t_ok("omp_late");
}
