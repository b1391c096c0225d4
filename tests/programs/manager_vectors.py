"""What `lissom manager` says about a program whose numbers of runnable threads are known.

    manager_vectors.py LISSOM before|after MS COMMAND...

Starts COMMAND before or after the manager begins to look, for one period of MS, and prints its activity vector (ms), its threads, its typical thread count and its name.
"""

import json
import subprocess
import sys
import time

lissom, order, period, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]


def start():
    return subprocess.Popen(command)


program = start() if order == "before" else None
if program:
    time.sleep(0.2)
manager = subprocess.Popen(
    [lissom, "manager", "--dry-run", "--once", "--json", "--activity=bpf", "--period=" + period],
    stdout=subprocess.PIPE,
)
if not program:
    # It takes a moment to load.
    time.sleep(0.3)
    program = start()
output, _ = manager.communicate()
program.kill()
program.wait()
found = [p for p in json.loads(output)["programs"] if p["pid"] == program.pid]
if len(found) != 1:
    sys.exit("not found")
found = found[0]
print(
    [round(t) for t in found["activity_ms"]],
    found["threads"],
    found["typical_thread_count"],
    found["name"],
)
