// Do the work of a loop's iteration. Loops last long enough for threads to be suspended, and some
// iterations take much longer than others. Compilers cannot omit the work, and it takes the same
// time with each.
#ifndef OMP_WORK_H
#define OMP_WORK_H
static inline void work(long i) {
    unsigned long x = (unsigned long)i;
    for (int k = i % 53 ? 6000 : 200000; k > 0; k--) {
        x = x * 6364136223846793005u + 1;
        __asm__ volatile("" : "+r"(x));
    }
}
#endif
