# `lissom manager` knows the tasks of a node, and shares its CPUs among them.
. "$(dirname "$0")/lib.sh"

build manager_threads
# --keep=0: no CPU is kept for who has just become idle, so that what is left is known exactly.
"$lissom" manager --verbose --json --keep=0 --socket="$work/socket" >decisions 2>manager.messages &
manager=$!
trap 'scancel --name=shared; kill "$manager"; wait "$manager"' EXIT
until_true 20 test -S socket || fail "no manager: $(cat manager.messages)"
export LISSOM_MANAGER=$work/socket

# shared.py TASKS THREADS: there is a decision with so many malleable programs of more threads, and in all of these the targets add up to the CPUs that others
# leave at the moment; each has one at least.
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
threads=$((4 * $(nproc)))
for tasks in 1 2 4; do
    # Of the whole node: a job with --overcommit gets one CPU, unless it asks for more.
    srun --partition=whole --job-name=shared -n "$tasks" --overcommit --lissom ./manager_threads busy "$threads" >out 2>messages &
    step=$!
    until_true 60 python3 shared.py "$tasks" "$threads" >said 2>&1 || fail "$tasks tasks: $(cat said messages; tail -n 1 decisions)"
    # Looking takes a CPU itself: some decisions while nobody looks.
    sleep 2
    python3 shared.py "$tasks" "$threads" || fail "$tasks tasks"
    scancel --name=shared
    wait "$step" || true
    until_true 30 queue_is_empty || fail "the step does not end: $(squeue)"
done
