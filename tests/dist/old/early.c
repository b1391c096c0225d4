/* SPDX-License-Identifier: MIT
 *
 * A library of this program has started a thread before main begins. */
#include <stdio.h>

int threads_sum(int to);

int main(void) {
    printf("sum: %d\n", threads_sum(1000));
    return 0;
}
