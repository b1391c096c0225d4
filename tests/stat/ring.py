"""Compares what `lissom stat --json` says about stat_ring with its own count: `ring.py FILE SHARE`,
for the share of its CPU time that the ring has spent waiting.
"""

import json
import sys

# Maximum difference, besides the error that stat gives.
TOLERANCE = 0.1


def main():
    path, own = sys.argv[1], float(sys.argv[2])
    with open(path) as file:
        p = json.load(file)["programs"][0]
    cpu, spin = p["cpu_percent"], p["spin_percent"]
    share, error = spin / cpu, p["spin_error_percent"] / cpu
    agree = abs(share - own) <= TOLERANCE + error
    print("waits as it counts itself" if agree else f"{share:.3f} +- {error:.3f}, itself {own:.3f}")
    parts = spin + p["work_percent"] + p["undecided_percent"] + p["kernel_percent"]
    print("the parts add up" if abs(parts - cpu) < 1e-6 else f"{parts} of {cpu}")
    sites = p["spin_sites"]
    is_there = "wait_for_" in sites[0]["place"] and abs(sites[0]["percent"] - 100 * share) < 5
    print("in its loop" if is_there else sites)


main()
