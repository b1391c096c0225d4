# Rscript with a library that computes in OpenMP threads.
. "$(dirname "$0")/lib.sh"
command_needed Rscript r-base-core
cat >sum.c <<'C'
#include <omp.h>
void sum(int *threads, int *n, double *result) {
    double s = 0;
    for (int round = 0; round < 20; round++) {
        s = 0;
#pragma omp parallel for num_threads(*threads) reduction(+ : s)
        for (int i = 1; i <= *n; i++) s += i;
    }
    *result = s;
}
C
cc -O2 -fopenmp -shared -fPIC sum.c -o sum.so
cat >fit.R <<'R'
dyn.load("sum.so")
cat(.C("sum", 16L, 100000L, result = 0)$result, "\n")
model <- lm(dist ~ speed, cars)
cat(round(coef(model), 4), "\n")
R
export LISSOM_VERBOSE=1
run_recipe r
has out 5000050000
has out "-17.5791 3.9324"
has messages "lissom: active,"
