#!/usr/bin/env bash
# Install lissom and its Slurm plugin into a temporary folder and start a Slurm on this machine
# with them. Runs tests/slurm/test_*.sh, or the named ones, and prints for each: ok, skipped (why)
# or FAILED.
#     tests/slurm/run.sh [NAME]...       NAME: the part between test_ and .sh
#     LISSOM_TEST_BIN=/usr/bin/lissom    another binary than target/release/lissom
cd "$(dirname "$0")" || exit
. ../vm/tests.sh
. ./cluster.sh
root=$(cd ../.. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
binary=${LISSOM_TEST_BIN:-$target/release/lissom}
unset LISSOM_TEST_BIN # `verbose` reports unknown variables

skip_all() {
    echo "skipped: $*"
    skipped=1
    end_tests
    exit 0
}

export PATH=$PATH:/usr/sbin
for command in munged slurmctld slurmd srun sbatch salloc cc python3; do
    command -v "$command" >/dev/null || skip_all "$command is not there"
done
"$binary" doctor >/dev/null || skip_all "lissom is not active on this machine; lissom doctor says why"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/lissom-slurm.XXXXXX")
trap 'stop_cluster; rm -rf "$scratch"' EXIT
# Tasks may run as another user.
chmod 755 "$scratch"
export scratch root prefix=$scratch/prefix
export lissom=$prefix/bin/lissom
if ! make -C "$root" install install-slurm BINARY="$binary" SLURM="$scratch/plugin" PREFIX="$prefix" >"$scratch/make.out" 2>&1; then
    cat "$scratch/make.out"
    failed=1
    end_tests
    exit 1
fi
if ! start_cluster "$scratch"; then
    failed=1
    end_tests
    exit 1
fi
run_tests . "$target/slurm/logs" "" "$@"
end_tests
