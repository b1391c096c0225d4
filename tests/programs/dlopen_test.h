// For programs with a library of their own (NAME.c with NAME_lib.c): find, open and close it.
#ifndef DLOPEN_TEST_H
#define DLOPEN_TEST_H
#include "pthread_test.h"
#include <dlfcn.h>

// Return the library's path: the first argument, or a file beside this program.
static inline const char *t_library(int argc, char **argv) {
    static char path[PATH_MAX];
    if (argc > 1) return argv[1];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 8);
    CHECK(n > 0, "readlink");
    path[n] = 0;
    return strcat(path, "_lib");
}
static inline void *t_dlopen(const char *path, int flags) {
    void *lib = dlopen(path, flags);
    CHECK(lib, "dlopen: %s", dlerror());
    return lib;
}
static inline void *t_dlsym(void *lib, const char *name) {
    void *at = dlsym(lib, name);
    CHECK(at, "dlsym: %s", dlerror());
    return at;
}
static inline void t_dlclose(void *lib) { CHECK(!dlclose(lib), "dlclose: %s", dlerror()); }
#endif
