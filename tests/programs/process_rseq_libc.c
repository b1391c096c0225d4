// Restartable sequences of a program that uses libc's areas by name: through its table of
// addresses, with copies of the words (fixed), or in a program that exports nothing (exportless).
// build@fixed: -no-pie
// build@exportless: -no-pie -fPIC
#include "rseq_test.h"
#include <sys/rseq.h>

static struct area *area_of_thread(void) {
    CHECK(__rseq_size >= 20, "libc has registered none");
    return (struct area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}
int main(void) { run("process_rseq_libc"); }
