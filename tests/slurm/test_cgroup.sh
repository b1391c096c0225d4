# Cores constrained by Slurm with a cpuset (task/cgroup, ConstrainCores=yes), and jobs that it
# freezes, in a cluster of their own.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip "root is needed for cgroups"
[ -e /sys/fs/cgroup/cpuset/cpuset.cpus ] && [ -e /sys/fs/cgroup/freezer/tasks ] || skip "no cgroups of version 1"
[ "$(nproc)" -ge 2 ] || skip "one CPU only"
# The cgroups have the same names as those of a Slurm of this machine.
! find /sys/fs/cgroup/cpuset /sys/fs/cgroup/freezer -maxdepth 1 -name 'slurm*' | grep -q . || skip "another Slurm has cgroups here"

scratch=$work/cluster
mkdir "$scratch"
cat >"$scratch/cgroup.conf" <<CONF
CgroupPlugin=cgroup/v1
ConstrainCores=yes
CONF
clean_up() {
    stop_cluster
    find /sys/fs/cgroup/cpuset /sys/fs/cgroup/freezer -depth -path '*/slurm*' -type d -exec rmdir {} + 2>/dev/null || true
}
trap clean_up EXIT
start_cluster "$scratch" task/cgroup,task/affinity proctrack/cgroup || fail "see above"
plugin
build manager_threads
build pthread_barrier
threads=$((4 * $(nproc)))

# slots PID WANTED: whether the process has WANTED slots; prints the slots
slots() {
    # shellcheck disable=SC2094 # the first `stat` is a verb
    "$lissom" stat --json "$1" >stat && python3 - "$2" <<'PYTHON'
import json, sys
program = json.load(open("stat"))["programs"][0]
print(program["state"], program["slots"], program["limit"])
sys.exit((program["state"], program["slots"]) != ("active", int(sys.argv[1])))
PYTHON
}

# task: set $pid to the process of the running step: the newest one, since slurmstepd starts it last
task() {
    pid=$(pgrep --newest --full '^[^ ]*manager_threads busy')
}

# The mask is left alone: the cpuset applies.
srun -n 1 -c 1 --cpu-bind=none --lissom=verbose ./pthread_barrier >out 2>messages
has messages "lissom: active, 1 slots"
has out "ok pthread_barrier"
srun -n 1 -c 2 --cpu-bind=none --lissom=verbose ./pthread_barrier >out 2>messages
has messages "lissom: active, 2 slots"

# A cpuset that changes during the run, but never to more than at the beginning of the job:
# slurmstepd has set the tasks' mask, even without binding, and Linux obeys it.
srun --job-name=cores -n 1 -c "$(nproc)" --cpu-bind=none --lissom ./manager_threads busy "$threads" &
step=$!
until_true 60 task || fail "no task"
until_true 60 slots "$pid" "$(nproc)" || fail "a job of all cores: $(cat stat)"
group=/sys/fs/cgroup/cpuset$(sed -n 's/^[0-9]*:cpuset://p' "/proc/$pid/cgroup")
all=$(cat "$group/cpuset.cpus")
echo "a task in ${group##*cpuset}, CPUs $all"
case $group in */slurm*/job_*/step_*) ;; *) fail "it is in $group" ;; esac
for cpus in "${all%%[-,]*}" "$all" "${all##*[-,]}"; do
    echo "$cpus" >"$group/cpuset.cpus"
    expected=1
    [ "$cpus" != "$all" ] || expected=$(nproc)
    until_true 60 slots "$pid" "$expected" || fail "CPUs $cpus: $(cat stat)"
done

# Freeze the job and resume it.
job=$(squeue -h -n cores -o %A)
scontrol suspend "$job"
frozen() {
    local before
    before=$(cut -d' ' -f14,15 "/proc/$pid/stat")
    sleep 0.5
    [ "$before" = "$(cut -d' ' -f14,15 "/proc/$pid/stat")" ]
}
until_true 60 frozen || fail "it is not suspended"
says_stopped() {
    "$lissom" stat "$pid" >said
    grep -qF "its cgroup is frozen" said
}
until_true 60 says_stopped || fail "it is suspended, and this is said: $(cat said)"
head -n 2 said
scontrol resume "$job"
thaw() { ! frozen; }
until_true 60 thaw || fail "it does not go on"
until_true 60 slots "$pid" 1 || fail "after it was suspended: $(cat stat)"
scancel --name=cores
wait "$step" || true
until_true 30 queue_is_empty || fail "the step does not end: $(squeue)"
