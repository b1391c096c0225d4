/* SPDX-License-Identifier: MIT
 *
 * OpenMP with a patched libgomp: barriers, locks and tasks, with more threads than CPUs.
 *
 */
#include <omp.h>
#include <stdio.h>

int main(void) {
    long sum = 0, critical = 0, tasks = 0;
    omp_set_num_threads(8);
    for (int round = 0; round < 200; round++) {
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7)
        for (int i = 0; i < 1000; i++) sum += i;
#pragma omp parallel
        {
#pragma omp critical
            critical++;
#pragma omp barrier
#pragma omp single
            for (int i = 0; i < 10; i++)
#pragma omp task
#pragma omp atomic
                tasks++;
        }
    }
    printf("%ld %ld %ld\n", sum, critical, tasks);
    return sum != 200l * 499500 || critical != 1600 || tasks != 2000;
}
