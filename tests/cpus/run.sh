#!/bin/bash
# SPDX-License-Identifier: MIT
# Tests of what the runtime reads of cgroups, with trees of files as on machines, in containers and
# after careless administration. Also tests of dividing CPUs, with programs that take no part, too,
# of their use of CPUs, and of clocks. Last line: `N passed, M failed`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() { echo "build failed: $*"; echo "0 passed, 1 failed"; exit 1; }
# build PROGRAM SOURCE...: compile $here/PROGRAM.c with these sources of the runtime
build() {
    local program=$1
    shift
    ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fsanitize=address,undefined \
        -I"$root/runtime" "$here/$program.c" "${@/#/$root/runtime/}" -o "$out/$program" ||
        fail "$program"
}
build driver cpus/cgroup.c cpus/share.c
build share_test cpus/share.c
build beside_test cpus/beside.c
build clock_test prim/clock.c
build others_test cpus/others.c cpus/at_load.c cpus/sentinel.c prim/clock.c
passed=0 failed=0
t=$out/t

# file PATH TEXT: create a file below the current tree. new NAME begins another tree.
file() { mkdir -p "$t$(dirname "$1")"; printf '%s' "$2" >"$t$1"; }
new() { t=$out/$1; mkdir -p "$t"; name=$1; }
# expect ANSWER [TREE...]: check the answer for the current tree, or for several in turn, as if
# files changed.
expect() {
    local want=$1
    shift
    local trees=()
    for tree in "${@:-$name}"; do trees+=("$out/$tree"); done
    local got
    got=$(timeout 10 "$out/driver" "${trees[@]}" 2>&1)
    compare "$got" "$want"
}
compare() {
    if [ "$1" = "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: $1, expected $2"
    fi
}
v2='31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
'

new nothing
expect 0
new online
file /sys/devices/system/cpu/online '0-2,5
'
expect 0:27
new v2
file /proc/self/cgroup '0::/user.slice/app.scope
'
file /proc/self/mountinfo "22 1 8:1 / / rw - ext4 /dev/sda1 rw
$v2"
file /sys/fs/cgroup/user.slice/app.scope/cpu.max 'max 100000
'
expect 0
file /sys/fs/cgroup/user.slice/cpu.max '150000 100000
'
expect 2
file /sys/fs/cgroup/user.slice/app.scope/cpu.max '50000 100000
'
file /sys/fs/cgroup/user.slice/app.scope/cpuset.cpus.effective '1-3
'
expect 1:e
file /sys/fs/cgroup/cpu.max '1000 100000
' # a root has none, but a container's has
file /sys/fs/cgroup/user.slice/app.scope/cpu.max '800000 100000
'
expect 1:e

new 'v2-container'
file /proc/self/cgroup '0::/
'
file /proc/self/mountinfo "$v2"
file /sys/fs/cgroup/cpu.max '200000 100000
'
expect 2
new 'v2-host-namespace' # the group's path on the host, of which the container's mount is the part
file /proc/self/cgroup '0::/docker/0123
'
file /proc/self/mountinfo '31 23 0:28 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw
'
file /sys/fs/cgroup/cpu.max '300000 100000
'
expect 3
file /proc/self/cgroup '0::/docker/0123/inner
'
file /sys/fs/cgroup/inner/cpu.max '100000 100000
'
expect 1
file /proc/self/cgroup '0::/docker/01234
' # not below it: another
expect 3
new 'v2-outside' # a process that was moved out of what its namespace shows
file /proc/self/cgroup '0::/../../other
'
file /proc/self/mountinfo '31 23 0:28 /../.. /mnt rw - cgroup2 cgroup rw
31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw
'
file /sys/fs/cgroup/cpu.max '300000 100000
'
file /mnt/other/cpu.max '100000 100000
'
expect 1

v1='32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpuacct,cpu
33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
'
new v1
file /proc/self/cgroup '12:cpuset:/a/b
5:cpuacct,cpu:/a/b
0::/unified
'
file /proc/self/mountinfo "$v1"
file /sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us '-1
'
file /sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us '100000
'
file /sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus '0
'
expect 0:1
file /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us '250000
'
file /sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us '100000
'
expect 3:1
file /sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us '5000
'
expect 1:1
new 'v1-docker'
file /proc/self/cgroup '4:cpu,cpuacct:/docker/abc
'
file /proc/self/mountinfo '32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
'
file /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us 400000
file /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us 100000
expect 4
new hybrid # quotas in version 1, version 2 without controllers beside it
file /proc/self/cgroup '1:cpu:/x
0::/x
'
file /proc/self/mountinfo '32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
'
mkdir -p "$t/sys/fs/cgroup/unified/x"
file /sys/fs/cgroup/cpu/x/cpu.cfs_quota_us 100000
file /sys/fs/cgroup/cpu/x/cpu.cfs_period_us 100000
expect 1

new elsewhere # mount points with blanks, and two mounts of which one has the group
file /proc/self/cgroup '0::/mine
'
file /proc/self/mountinfo '31 23 0:28 /others /mnt/a rw - cgroup2 cgroup rw
32 23 0:28 /mine /mnt/with\040blank rw - cgroup2 cgroup rw
'
file '/mnt/a/cpu.max' '900000 100000
'
file '/mnt/with blank/cpu.max' '600000 100000
'
expect 6
for text in 'max' '' 'x 100000' '-5 100000' '100000' '100000 0' '100000 x' '100000,100000' $'\n' '99999999999999999999999 0'; do
    new nonsense
    file /proc/self/cgroup '0::/
'
    file /proc/self/mountinfo "$v2"
    file /sys/fs/cgroup/cpu.max "$text"
    expect 0
done
new huge
file /sys/fs/cgroup/cpu.max '9223372036854775807 100000'
file /proc/self/cgroup '0::/'$'\n'
file /proc/self/mountinfo "$v2"
expect 4294967295
new 'nonsense-proc'
file /proc/self/cgroup 'a
:
::
0:cpu
1:cpu:
0::/'"$(printf 'x/%.0s' $(seq 3000))"'
0::/fine
'
file /proc/self/mountinfo "1
1 2
1 2 3:4 / /x
1 2 3:4 / /x - cgroup
1 2 3:4 / /x - cgroup none
- - - - -
$(printf 'long%.0s' $(seq 5000))
$v2"
file /sys/fs/cgroup/fine/cpu.max '200000 100000'
expect 2
new 'no-end-of-line'
file /proc/self/cgroup '0::/a'
file /proc/self/mountinfo "$v2"
file /sys/fs/cgroup/a/cpu.max '200000 100000'
expect 0 # /proc's lines end with one

# Changes: two trees read in turn.
new before
file /proc/self/cgroup '0::/a'$'\n'
file /proc/self/mountinfo "$v2"
file /sys/fs/cgroup/a/cpu.max '200000 100000'
new after
file /proc/self/cgroup '0::/b'$'\n'
file /proc/self/mountinfo "$v2"
file /sys/fs/cgroup/b/cpu.max '100000 100000'
new gone # the folder, not the process
file /proc/self/cgroup '0::/b (deleted)'$'\n'
file /proc/self/mountinfo "$v2"
expect '2 1 0 1' before after gone after
expect '2 2 1' before nothing after # /proc cannot be read: as before

# weigh ANSWER: check whether there is a group, and its weight.
weigh() {
    local got
    got=$(timeout 10 "$out/driver" --weight "$t" 2>&1)
    compare "$got" "$1"
}
new 'weight-v2'
file /proc/self/cgroup '0::/a'$'\n'
file /proc/self/mountinfo "$v2"
weigh 'a group of 100'
file /sys/fs/cgroup/a/cpu.weight '250'$'\n'
weigh 'a group of 250'
file /sys/fs/cgroup/a/cpu.weight '999999'$'\n'
weigh 'a group of 10000'
file /sys/fs/cgroup/a/cpu.weight 'none'$'\n'
weigh 'a group of 100'
new 'weight-v1'
file /proc/self/cgroup '1:cpu,cpuacct:/a'$'\n''0::/'$'\n'
file /proc/self/mountinfo '31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
'
file /sys/fs/cgroup/cpu/a/cpu.shares '512'$'\n'
weigh 'a group of 50'
new 'weight-session'
file /proc/self/cgroup '0::/'$'\n'
file /proc/self/mountinfo "$v2"
weigh 'no group of 100'
file /proc/self/autogroup '/autogroup-7 nice 10'$'\n'
weigh 'no group of 100' # the kernel makes none
file /proc/sys/kernel/sched_autogroup_enabled '1'$'\n'
weigh 'a group of 10'
file /proc/self/autogroup '/autogroup-7 nice -3'$'\n'
weigh 'a group of 195'
for bad in '' ' ' '/autogroup-7' '/autogroup-7 nice' '/autogroup-7 nice x' $'\n'; do
    file /proc/self/autogroup "$bad"
    weigh 'no group of 100'
done
file /proc/self/autogroup '/autogroup-7 nice 10'$'\n'
file /sys/fs/cgroup/cpu.weight '70'$'\n' # a container's root
weigh 'a group of 70'

# Two containers that see their own groups as the root, and one that sees the first one's files.
for tree in pod-a pod-b; do
    new $tree
    file /proc/self/cgroup '0::/'$'\n'
    file /proc/self/mountinfo "$v2"
    file /sys/fs/cgroup/cpu.weight '70'$'\n'
    file /sys/fs/cgroup/cpu.max '200000 100000'$'\n'
done
ln -s pod-a "$out/pod-a-again"
compare "$("$out/driver" --groups "$out/pod-a" "$out/pod-b")" 'quota different, weight different'
compare "$("$out/driver" --groups "$out/pod-a" "$out/pod-a-again")" 'quota same, weight same'
for test in share_test beside_test others_test clock_test; do
    timeout 60 "$out/$test" >"$out/$test.txt" 2>&1
    sed '$d' "$out/$test.txt"
    counts=$(tail -1 "$out/$test.txt")
    if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
