#!/usr/bin/env bash
# The same programs as in test_workloads on eight CPUs, which wake and take from each other.
. "$(dirname "$0")/lib.sh"
build_scheduler
put sync spin
inside --cpus 8 -- workloads.sh
