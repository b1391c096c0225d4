#!/usr/bin/env bash
# The programs of test_workloads on eight CPUs, which wake threads on each other and steal from each
# other.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync spin
inside --cpus 8 -- workloads.sh
