# `lissom manager` knows the tasks of a node, and divides its CPUs between them.
. "$(dirname "$0")/lib.sh"

build manager_threads
# --keep=0: keep no CPU for programs that have just become idle, so that the remaining CPUs are
# known exactly.
"$lissom" manager --verbose --json --keep=0 --socket="$work/socket" >decisions 2>manager.messages &
managers=($!)
trap 'scancel --name=shared; kill "${managers[@]}"; wait "${managers[@]}" || true' EXIT
until_true 20 test -S socket || fail "no manager: $(cat manager.messages)"
export LISSOM_MANAGER=$work/socket decisions=decisions

# shared.py TASKS THREADS: check decisions with TASKS malleable programs that have more than THREADS
# threads. Their targets must add up to the CPUs that other programs leave, with at least one each.
# Exits with 1 if there is no such decision yet.
cat >shared.py <<'PYTHON'
import json, sys
tasks, threads, decisions = int(sys.argv[1]), int(sys.argv[2]), 0
for line in open("decisions"):
    try:
        decision = json.loads(line)
    except ValueError:  # the last one is being written
        continue
    ours = [p for p in decision["programs"] if p["name"] == "manager_threads" and p["kind"] == "malleable"]
    # Skip decisions made before all tasks have created their threads: none gets more CPUs than
    # threads.
    if len(ours) != tasks or any(p["target_threads"] is None or p["threads"] <= threads for p in ours):
        continue
    decisions += 1
    targets = [p["target_threads"] for p in ours]
    left = len(decision["cpus"]) - sum(p["typical_thread_count"] for p in decision["programs"] if p["kind"] == "active")
    if min(targets) < 1 or sum(targets) != max(tasks, left):
        sys.exit(f"targets {targets}, where others leave {left} CPUs: {line}")
if not decisions:
    sys.exit(1)
print(f"{tasks} tasks: {decisions} decisions, the last one {targets} of {len(decision['cpus'])} CPUs")
PYTHON
# followed.py TASKS WHAT: check that each of TASKS tasks runs as many threads as a decision of this
# period says. WHAT is `share`, or `all`: the only task has every CPU. Prints the slots; fails if
# the tasks do not follow yet.
cat >followed.py <<'PYTHON'
import json, subprocess, sys, os
tasks, what = int(sys.argv[1]), sys.argv[2]

def decisions():
    return [json.loads(line) for line in open(os.environ["decisions"]).read().splitlines(True) if line.endswith("\n")]

def targets(decision):
    return {p["pid"]: p["target_threads"] for p in decision["programs"] if p["name"] == "manager_threads" and p["kind"] == "malleable"}

before = decisions()
pids = [str(pid) for pid in targets(before[-1])]
if len(pids) != tasks:
    sys.exit(f"{len(pids)} tasks, not {tasks}")
# Measuring takes a CPU, which the manager takes from the tasks. So use the second measurement,
# after some seconds without any.
stat = subprocess.run([os.environ["lissom"], "stat", "--json", "--interval=2s", *pids], stdout=subprocess.PIPE, check=True)
seen = {p["pid"]: (p["slots"], p["limit"]) for p in json.loads(stat.stdout)["programs"]}
slots = {pid: s for pid, (s, _) in seen.items()}
meanwhile = decisions()[len(before) - 1:]
cpus = len(meanwhile[0]["cpus"])
print(f"{tasks} tasks: slots {list(slots.values())} of {cpus} CPUs, told {set(tuple(targets(d).values()) for d in meanwhile)}")
if slots not in [targets(d) for d in meanwhile]:
    sys.exit("not as told")
# Without the manager, each task would have all CPUs.
if any(limit != cpus for _, limit in seen.values()) or sum(slots.values()) > max(tasks, cpus):
    sys.exit(f"slots and their limits: {seen}")
if what == "all" and list(slots.values()) != [cpus]:
    sys.exit("not all of the CPUs")
PYTHON

followed() {
    python3 followed.py "$@" >followed 2>&1
}

# Programs follow within milliseconds if a CPU is free for them. On a busy machine no time is
# promised.
patience=300
threads=$((4 * $(nproc)))
for tasks in 1 2 4; do
    # Run on the whole node: a job with --overcommit gets one CPU unless it asks for more. No
    # binding: it would give each task a CPU of its own.
    srun --partition=whole --job-name=shared -n "$tasks" --overcommit --cpu-bind=none --lissom ./manager_threads busy "$threads" >out 2>messages &
    step=$!
    until_true 60 python3 shared.py "$tasks" "$threads" >said 2>&1 || fail "$tasks tasks: $(cat said messages; tail -n 1 decisions)"
    # Measuring takes a CPU: wait for some decisions without it.
    sleep 2
    python3 shared.py "$tasks" "$threads" || fail "$tasks tasks"
    until_true "$patience" followed "$tasks" share || fail "$tasks tasks do not follow: $(cat followed; tail -n 1 decisions)"
    cat followed
    scancel --name=shared
    wait "$step" || true
    until_true 30 queue_is_empty || fail "the step does not end: $(squeue)"
done

# A remaining task gets the CPUs of those that ended. A manager that is not root's sees only its
# user's programs: they have all CPUs, whatever else this machine runs.
as_user=()
[ "$(id -u)" != 0 ] || as_user=(runuser -u nobody --)
mkdir -m 777 users
cd users || exit
ln -s ../followed.py .
export LISSOM_MANAGER=$PWD/socket decisions=decisions
"${as_user[@]}" "$lissom" manager --verbose --json --keep=0 --socket="$LISSOM_MANAGER" >decisions 2>manager.messages &
managers+=($!)
until_true 20 test -S socket || fail "no manager: $(cat manager.messages)"
"${as_user[@]}" srun --chdir=/ --partition=whole --job-name=shared -n 4 --overcommit --cpu-bind=none --lissom "$work/manager_threads" busy "$threads" >out 2>messages &
step=$!
until_true "$patience" followed 4 share || fail "4 tasks of a user: $(cat followed messages; tail -n 1 decisions)"
cat followed
# A decision is written when it differs from the previous one.
mapfile -t running < <(python3 -c 'import json
whole = [line for line in open("decisions").read().splitlines(True) if line.endswith("\n")]
print(*[p["pid"] for p in json.loads(whole[-1])["programs"] if p["name"] == "manager_threads"], sep="\n")')
[ "${#running[@]}" = 4 ] || fail "running: ${running[*]}; $(tail -n 3 decisions)"
kill "${running[@]:1}"
until_true "$patience" followed 1 all || fail "the last of them: $(cat followed; tail -n 1 decisions)"
cat followed
scancel --name=shared
wait "$step" || true
until_true 30 queue_is_empty || fail "the step does not end: $(squeue)"
