/* SPDX-License-Identifier: MIT
 *
 * Its library has started a thread when main begins. */
#include <stdio.h>

int threads_sum(int to);

int main(void) {
    printf("sum: %d\n", threads_sum(1000));
    return 0;
}
