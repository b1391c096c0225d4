// What the iterations of loops do: so much that loops last long enough for threads to be made to
// wait, and some of them much more than others. It cannot be left out, and takes as long by any
// compiler.
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
