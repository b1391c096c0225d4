// Check for drivers that test one part of the runtime: counts passed and failed checks and prints
// the failed ones.
#ifndef CHECK_H
#define CHECK_H
#include <stdbool.h>
#include <stdio.h>

static int passed, failed;

static void check(bool ok, const char *what) {
    if (ok) {
        passed++;
    } else {
        failed++;
        printf("%s\n", what);
    }
}
#endif
