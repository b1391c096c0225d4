# Ranks of MPICH and of Open MPI.
. "$(dirname "$0")/lib.sh"
cat >solver.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, ranks, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 20; i++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, sum %d\n", ranks, sum);
    MPI_Finalize();
    return 0;
}
C
# For Open MPI, which refuses root, and which has no other machine here.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export LISSOM_VERBOSE=1
# use LIBRARY: build the solver, and make its mpiexec the one in PATH
use() {
    local name
    command_needed "mpicc.$1" "lib$1-dev"
    "mpicc.$1" -O2 solver.c -o solver
    for name in mpiexec mpirun; do
        # No link: mpiexec looks for its parts beside itself.
        printf '#!/bin/sh\nexec %s.%s "$@"\n' "$name" "$1" >"bin/$name"
        chmod 755 "bin/$name"
    done
}

managed() {
    has out "8 ranks, sum 28"
    # Not by lines: ranks write at the same time.
    grep -oE 'active, [0-9]+ slots' messages >active || true
    count active slots 8
}

use mpich
run_recipe mpich
managed
use openmpi
run_recipe openmpi
managed
