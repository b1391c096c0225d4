// Restartable sequences of a program that asks dlsym whether libc has areas, as librseq does, and
// otherwise registers one for each thread. Every second thread has none.
#include "rseq_test.h"
#include <dlfcn.h>
#include <stddef.h>

enum { SIGNATURE = 0x53053053 };

static struct area *area_of_thread(void) {
    static __thread struct area own;
    const ptrdiff_t *offset = dlsym(RTLD_NEXT, "__rseq_offset");
    const unsigned *size = dlsym(RTLD_NEXT, "__rseq_size");
    if (size && *size) return (struct area *)((char *)__builtin_thread_pointer() + *offset);
    SYS(syscall(SYS_rseq, &own, sizeof own, 0, SIGNATURE));
    return &own;
}
int main(void) { run("process_rseq"); }
