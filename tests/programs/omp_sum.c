/* SPDX-License-Identifier: MIT */
// build: -fopenmp
// A few parallel regions, for tests that compare outputs: it prints a number that does not depend
// on the size of teams.
#include <stdio.h>

int main(void) {
    long sum = 0;
    for (int k = 0; k < 20; k++) {
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 1000; i++) sum += i;
    }
    printf("%ld\n", sum);
    return 0;
}
