# cgroups share one CPU by cpu.weight; tasks may move between them, and groups may be removed.
. ./lib.sh
groups=/sys/fs/cgroup

# in_group GROUP COMMAND...: run the command in the group, in the background; $! is its process
in_group() {
    sh -c 'echo $$ >/sys/fs/cgroup/'"$1"'/cgroup.procs; shift; exec "$@"' sh "$@" &
}

# ratio SECONDS: print the ratio of the two hogs' CPU time, b to a, in percent
ratio() {
    local a0 b0 a1 b1
    get_ticks $a
    a0=$ticks
    get_ticks $b
    b0=$ticks
    sleep "$1"
    get_ticks $a
    a1=$ticks
    get_ticks $b
    b1=$ticks
    [ $a1 -gt $a0 ] || fail "the one with less weight got nothing"
    echo "$((a1 - a0)) and $((b1 - b0)) ticks" >&2
    echo $(((b1 - b0) * 100 / (a1 - a0)))
}

# between LEAST MOST VALUE WHAT: fail unless LEAST <= VALUE <= MOST
between() {
    [ "$3" -ge "$1" ] && [ "$3" -le "$2" ] || fail "$4: $3 percent, and not $1 to $2"
}

mkdir $groups/a $groups/b
echo 100 >$groups/a/cpu.weight
echo 400 >$groups/b/cpu.weight
start_sched
in_group a ./sync hog
a=$!
in_group b ./sync hog
b=$!
sleep 1
between 200 800 "$(ratio 3)" "weights 100 and 400"
echo 400 >$groups/a/cpu.weight
sleep 1
between 50 200 "$(ratio 2)" "weights 400 and 400"
# Two tasks in one group have half of its share each: 1 to 2 with the task in the other group.
echo 100 >$groups/a/cpu.weight
echo 100 >$groups/b/cpu.weight
in_group a ./sync hog
third=$!
sleep 1
between 110 400 "$(ratio 3)" "one task of two in a group, and one alone in another"
# Inner groups divide the share of the outer one.
echo +cpu >$groups/b/cgroup.subtree_control 2>/dev/null
mkdir $groups/c
echo +cpu >$groups/c/cgroup.subtree_control
mkdir $groups/c/one $groups/c/two
echo $third >$groups/c/one/cgroup.procs
in_group c/two ./sync hog
fourth=$!
sleep 1
between 50 200 "$(ratio 2)" "two of three equal groups"

echo "tasks that move"
i=0
while [ $i -lt 30 ]; do
    mkdir $groups/new$i
    for task in $a $b $third $fourth; do
        echo $task >$groups/new$i/cgroup.procs
    done
    usleep 10000
    for task in $a $b $third $fourth; do
        echo $task >$groups/a/cgroup.procs
    done
    rmdir $groups/new$i || fail "new$i cannot go"
    i=$((i + 1))
done
hogs="$a $b $third $fourth"
runs || fail "ended while tasks moved"
end_hogs
rmdir $groups/c/one $groups/c/two $groups/c $groups/a $groups/b || fail "the groups cannot go"
stop_sched
end
