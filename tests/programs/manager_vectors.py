"""What `lissom manager` says about a program whose numbers of runnable threads are known.

    manager_vectors.py LISSOM MS before=STATES|after COMMAND...

Starts COMMAND, and lets the manager look at it for one period of MS. before=STATES: the manager
begins when the states of the program's threads match this regular expression, a letter for each
thread as in /proc/PID/stat, the first thread's first. after: COMMAND begins when the manager looks.
Prints the program's activity vector (percent of the period, which is longer on a busy
machine), its threads, its typical thread count and its name.
"""

import json
import os
import re
import subprocess
import sys
import time


def main():
    lissom, period, order, *command = sys.argv[1:]
    order, _, states = order.partition("=")
    manager_command = [lissom, "manager", "--dry-run", "--once", "--json", "--activity=bpf"]
    manager_command.append("--period=" + period)
    if order == "before":
        program = subprocess.Popen(command)
        wait_until(lambda: re.fullmatch(states, thread_states(program.pid)))
        manager = subprocess.Popen(manager_command, stdout=subprocess.PIPE)
    else:
        manager = subprocess.Popen(manager_command, stdout=subprocess.PIPE)
        wait_until(lambda: sleeps_for_a_time(manager.pid))
        program = subprocess.Popen(command)
    output, _ = manager.communicate()
    program.kill()
    program.wait()
    (found,) = [p for p in json.loads(output)["programs"] if p["pid"] == program.pid]
    took = sum(found["activity_ms"])
    if took < float(period) / 2:
        sys.exit(f"the period had only {took} ms")
    print(
        [round(100 * t / took) for t in found["activity_ms"]],
        found["threads"],
        found["typical_thread_count"],
        found["name"],
    )


def wait_until(condition):
    while not condition():
        time.sleep(0.001)


def thread_states(pid):
    """A letter for each thread, the first thread's first."""
    threads = sorted(map(int, os.listdir(f"/proc/{pid}/task")), key=lambda t: (t != pid, t))
    return "".join(state(f"/proc/{pid}/task/{thread}/stat") for thread in threads)


def state(path):
    with open(path) as file:
        return file.read().rpartition(")")[2].split()[0]


def sleeps_for_a_time(pid):
    """Whether it sleeps until a time has come, which the manager does when all is set up."""
    with open(f"/proc/{pid}/wchan") as file:
        return "nanosleep" in file.read()


main()
