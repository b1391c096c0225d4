/* SPDX-License-Identifier: MIT
 *
 * A program without threads that loads a library with threads. Before glibc 2.34, the library also
 * brings the thread functions. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    int (*start)(void) = (int (*)(void))dlsym(library, "threads_start");
    int (*sum)(int) = (int (*)(int))dlsym(library, "threads_sum");
    int error = start();
    if (error) return printf("no thread: %d\n", error), 1;
    printf("sum: %d\n", sum(1000));
    return 0;
}
