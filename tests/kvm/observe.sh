#!/usr/bin/env bash
# Compare the counts of `lissom kvm observe` with those of the kernel's own tracing in the same
# run, in a virtual machine:
#     tests/kvm/observe.sh [--kernel VERSION] [LISSOM]
# Some VMs contend for a lock with PAUSE, others sleep by HLT; one process has two VMs. Every event
# is counted twice, by BPF programs and by histograms of tracefs and kprobes. The guests count
# PAUSEs themselves, too. LISSOM: the binary [default: target/debug/lissom]. Exit code: 0: all
# counts agree; 1: some differ; 125: the machine did not start.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
kernel=6.12
[ "${1:-}" != --kernel ] || { kernel=$2; shift 2; }
lissom=${1:-$target/debug/lissom}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -o "$work/guest" "$here/guest.c"
strip -o "$work/lissom" "$lissom"

mkdir "$work/files"
cat >"$work/files/run.sh" <<'INSIDE'
cd /sys/kernel/tracing
echo hist:keys=exit_reason >events/kvm/kvm_exit/trigger
echo hist:keys=immediate_exit >events/kvm/kvm_entry/trigger 2>/dev/null || echo hist:keys=vcpu_id >events/kvm/kvm_entry/trigger
echo hist:keys=waited >events/kvm/kvm_vcpu_wakeup/trigger
echo hist:keys=grow >events/kvm/kvm_halt_poll_ns/trigger
echo 'r:lissom/yield yield_to result=$retval:s32' >kprobe_events
echo hist:keys=result >events/lissom/yield/trigger
lissom kvm observe --json --interval 1s >/tmp/observed 2>/tmp/errors &
observer=$!
while [ ! -s /tmp/observed ]; do
    kill -0 $observer 2>/dev/null || { cat /tmp/errors; exit 1; }
    sleep 0.1
done
guest --vms 2 --vcpus 2 --seconds 4 && guest --vms 2 --vcpus 1 --hlt 100 --seconds 3 && guest --one-process --vms 2 --vcpus 2 --hlt 1000 --burst 8 --seconds 3 || exit 1
sleep 1.5
kill -INT $observer && wait $observer || { cat /tmp/errors; exit 1; }
cat /tmp/errors /tmp/observed
for event in kvm/kvm_exit kvm/kvm_entry kvm/kvm_vcpu_wakeup kvm/kvm_halt_poll_ns lissom/yield; do
    grep hitcount: events/$event/hist | sed "s|^|hist $event |"
done

# Observe a VM by its process, then kill the VM.
guest --one-process --vcpus 1 --seconds 0 >/dev/null &
guest=$!
sleep 0.5
lissom kvm observe --vm $guest --interval 500ms >/tmp/table 2>/tmp/errors &
observer=$!
while ! grep -q " guest  " /tmp/table && kill -0 $observer 2>/dev/null; do sleep 0.1; done
kill -9 $guest
wait $observer
echo "gone: exit $?, $(cat /tmp/errors)"
tail -n 3 /tmp/table | sed "s/^/table: /"
lissom kvm observe --vm $guest --count 1 2>&1 | sed "s/^/gone: /"
rmmod kvm_amd && lissom kvm observe --count 1 2>&1 | sed "s/^/unloaded: /"
rmmod kvm && lissom kvm observe --count 1 2>&1 | sed "s/^/unloaded: /"
exit 0
INSIDE

code=0
"$here/../vm/vm.sh" --kvm --kernel "$kernel" --program "$work/guest" --program "$work/lissom" --files "$work/files" -- sh run.sh >"$work/output" || code=$?
[ "$code" = 0 ] || { cat "$work/output"; exit "$code"; }
python3 - "$work/output" <<'COMPARE'
import json, re, sys

lines = open(sys.argv[1]).read().splitlines()
reports = [json.loads(line) for line in lines if line.startswith("{")]
ours, vms = {}, set()
for report in reports:
    for vm in report["vms"]:
        vms.add((vm["pid"], vm["number"]))
        for name, n in vm["counts"].items():
            ours[name] = ours.get(name, 0) + n
theirs = {}
for line in lines:
    found = re.match(r"hist \w+/(\w+) \{ \w+:\s*(-?\d+) \} hitcount:\s*(\d+)", line)
    if found:
        event, key, n = found.groups()
        theirs.setdefault(event, {})[int(key)] = int(n)
guests = [dict(re.findall(r"(\w+) (\d+)", line)) for line in lines if line.startswith("all:")]

total = lambda event: sum(theirs.get(event, {}).values())
some = lambda event, test: sum(n for key, n in theirs.get(event, {}).items() if test(key))
expected = {
    "entries": total("kvm_entry"),
    "exits": total("kvm_exit"),
    "pause_exits": some("kvm_exit", lambda reason: reason in (0x77, 40)),
    "yields": total("yield"),
    "yields_done": some("yield", lambda result: result > 0),
    "wakeups": total("kvm_vcpu_wakeup"),
    "slept": some("kvm_vcpu_wakeup", lambda waited: waited != 0),
    "poll_grows": some("kvm_halt_poll_ns", lambda grow: grow != 0),
    "poll_shrinks": some("kvm_halt_poll_ns", lambda grow: grow == 0),
}
wrong = []
def check(name, is_right, *what):
    print("   ok" if is_right else "WRONG", name, *what)
    if not is_right:
        wrong.append(name)

# Directed yields are counted by a probe of a function. A yield during another probe on its CPU is
# lost, and counted as lost.
lost = reports[-1]["lost"]
for name, n in expected.items():
    room = lost if name.startswith("yields") else 0
    check(name, n - room <= ours.get(name) <= n, f"observed {ours.get(name)}, the kernel counts {n}")
pauses = sum(int(g["pauses"]) for g in guests)
check("the guests' own PAUSEs", ours.get("pause_exits") == pauses, pauses)
check("something happened", all(expected[n] > 0 for n in ("pause_exits", "wakeups", "yields", "poll_grows")))
resumed = ours["back_to_same"] + ours["back_to_other"] + ours["left"]
# If nothing runs on the CPU after a pause, its end is not seen.
check("each PAUSE exit has an end", pauses - 8 <= resumed <= pauses, resumed, f"(same vCPU {ours['back_to_same']}, other {ours['back_to_other']}, none {ours['left']})")
check("hits are among the polls", ours["poll_hits"] <= ours["polls"] <= ours["wakeups"], ours["poll_hits"], ours["polls"])
check("6 VMs, of which two share a process", len(vms) == 6 and len({pid for pid, _ in vms}) == 5)
check("next to nothing lost", lost * 100 <= expected["yields"], lost)
said = lambda what: [line[len(what) + 2:] for line in lines if line.startswith(what + ": ")]
gone, unloaded = said("gone"), said("unloaded")
check("a VM that ends", len(gone) == 2 and re.fullmatch(r"exit 1, lissom: the VM of process \d+ has ended", gone[0]), *gone[:1])
check("a process that has ended", len(gone) == 2 and re.fullmatch(r"lissom: there is no process \d+", gone[1]), *gone[1:])
check("modules that are unloaded", len(unloaded) == 2 and all(re.match("lissom: (KVM is not loaded|there is no /dev/kvm): modprobe", line) for line in unloaded), *unloaded)
print(*said("table"), sep="\n")
print("      guest time %.2f s, switches after PAUSE %.2f s, mean %.1f us, polled %.3f s" % (
    ours["guest_ns"] / 1e9, ours["switch_ns"] / 1e9, ours["switch_ns"] / 1e3 / max(resumed, 1), (ours["poll_hit_ns"] + ours["poll_miss_ns"]) / 1e9))
sys.exit(1 if wrong else 0)
COMPARE
