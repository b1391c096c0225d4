# `lissom manager` knows the tasks of a node, and shares its CPUs among them.
. "$(dirname "$0")/lib.sh"

build manager_threads
# --keep=0: no CPU is kept for who has just become idle, so that what is left is known exactly.
"$lissom" manager --verbose --json --keep=0 --socket="$work/socket" >decisions 2>manager.messages &
managers=($!)
trap 'scancel --name=shared; kill "${managers[@]}"; wait "${managers[@]}" || true' EXIT
until_true 20 test -S socket || fail "no manager: $(cat manager.messages)"
export LISSOM_MANAGER=$work/socket decisions=decisions

# shared.py TASKS THREADS: there is a decision with so many malleable programs of more threads, and
# in all of these the targets add up to the CPUs that others leave at the moment; each has one at
# least.
cat >shared.py <<'PYTHON'
import json, sys
tasks, threads, decisions = int(sys.argv[1]), int(sys.argv[2]), 0
for line in open("decisions"):
    try:
        decision = json.loads(line)
    except ValueError:  # the last one is being written
        continue
    ours = [p for p in decision["programs"] if p["name"] == "manager_threads" and p["kind"] == "malleable"]
    # Not while some have yet to make their threads: nobody gets more CPUs than that.
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
# followed.py TASKS WHAT: each of so many tasks runs as many threads as a decision says that was
# made meanwhile. WHAT is `share`, or `all`: the only task has every CPU. Prints what it saw; false:
# not yet.
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
# Looking takes a CPU, which the manager would take from the tasks: what counts is the second look, after some seconds in which nobody looks.
stat = subprocess.run([os.environ["lissom"], "stat", "--json", "--interval=2", *pids], stdout=subprocess.PIPE, check=True)
seen = {p["pid"]: (p["slots"], p["limit"]) for p in json.loads(stat.stdout)["programs"]}
slots = {pid: s for pid, (s, _) in seen.items()}
meanwhile = decisions()[len(before) - 1:]
cpus = len(meanwhile[0]["cpus"])
print(f"{tasks} tasks: slots {list(slots.values())} of {cpus} CPUs, told {set(tuple(targets(d).values()) for d in meanwhile)}")
if slots not in [targets(d) for d in meanwhile]:
    sys.exit("not as told")
# Alone each would have all of them.
if any(limit != cpus for _, limit in seen.values()) or sum(slots.values()) > max(tasks, cpus):
    sys.exit(f"slots and their limits: {seen}")
if what == "all" and list(slots.values()) != [cpus]:
    sys.exit("not all of the CPUs")
PYTHON

followed() {
    python3 followed.py "$@" >followed 2>&1
}

# Programs follow within milliseconds where there is a CPU for them. How long that takes on a busy
# machine is nothing that is promised.
patience=300
threads=$((4 * $(nproc)))
for tasks in 1 2 4; do
    # Of the whole node: a job with --overcommit gets one CPU, unless it asks for more; and without
    # binding, which would give each task its own CPU.
    srun --partition=whole --job-name=shared -n "$tasks" --overcommit --cpu-bind=none --lissom ./manager_threads busy "$threads" >out 2>messages &
    step=$!
    until_true 60 python3 shared.py "$tasks" "$threads" >said 2>&1 || fail "$tasks tasks: $(cat said messages; tail -n 1 decisions)"
    # Looking takes a CPU itself: some decisions while nobody looks.
    sleep 2
    python3 shared.py "$tasks" "$threads" || fail "$tasks tasks"
    until_true "$patience" followed "$tasks" share || fail "$tasks tasks do not follow: $(cat followed; tail -n 1 decisions)"
    cat followed
    scancel --name=shared
    wait "$step" || true
    until_true 30 queue_is_empty || fail "the step does not end: $(squeue)"
done

# Who is left gets back what the others had. A manager that is not root's sees the programs of its
# user only: whatever else this machine does, those have all of its CPUs.
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
# A decision is written when it is another than the last one.
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
