// Load and use a Go library (lang_go_library.go) while threads compute and wait for each other.
#include "pthread_test.h"
#include <dlfcn.h>

static pthread_barrier_t barrier;
static volatile int stop;

static void *compute(void *arg) {
    while (!stop)
        for (volatile long k = 0; k < 1000000; k++) {}
    return arg;
}
static void *meet(void *arg) {
    for (int i = 0; i < 3000; i++) pthread_barrier_wait(&barrier);
    return arg;
}

int main(int argc, char **argv) {
    t_watchdog();
    CHECK(argc == 2, "usage: lang_go_host LIBRARY");
    int threads = t_threads();
    pthread_t *t = calloc(1024, sizeof *t);
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)(threads + 1) / 2));
    for (int i = 0; i < threads; i++) t[i] = t_spawn(i % 2 ? compute : meet, NULL);
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library, "%s", dlerror());
    long (*sum)(long);
    *(void **)&sum = dlsym(library, "Sum");
    CHECK(sum, "%s", dlerror());
    for (int i = 0; i < 10; i++) EQ(sum(300000), 16 * 300000L);
    stop = 1;
    for (int i = 0; i < threads; i++) t_join(t[i]);
    return t_ok("lang_go_host");
}
