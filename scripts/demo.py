#!/usr/bin/env python3
"""`make demo`: one real program with far more threads than CPUs, natively and under lissom.

Trains the same model three times a round: with as many threads as CPUs (the bound: no program can be
expected to beat that), with 16 times as many natively, and the same under `lissom run`.
"""

import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"))
LISSOM = os.path.join(TARGET, "release/lissom")
TRAIN = [os.path.join(ROOT, "target/venv/bin/python3"), os.path.join(ROOT, "workloads/ml.py")]
ROUNDS = 3
RATIO = 16


def train(prefix, threads):
    command = prefix + TRAIN + ["--library", "histgb", "--threads", str(threads)]
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "LISSOM"))
    }
    done = subprocess.run(
        command, stdout=subprocess.PIPE, env=environment, timeout=300, check=False
    )
    if done.returncode != 0:
        sys.exit(f"failed with exit code {done.returncode}: {' '.join(command)}")
    return json.loads(done.stdout)


def main():
    cpus = len(os.sched_getaffinity(0))
    many = RATIO * cpus
    rows = [
        (f"{cpus} threads, natively: the bound", [], cpus),
        (f"{many} threads, natively", [], many),
        (f"{many} threads, lissom run --switch=user", [LISSOM, "run", "--switch=user", "--"], many),
    ]
    load = os.getloadavg()[0]
    if load > cpus / 2:
        print(
            f"Other programs are busy here (load {load:.1f} on {cpus} CPUs): the figures will be off."
        )
    print(f"scikit-learn HistGradientBoosting on {cpus} CPUs, {ROUNDS} rounds, median seconds")
    seconds = {name: [] for name, _, _ in rows}
    errors = {name: [] for name, _, _ in rows}
    for _ in range(ROUNDS):  # interleaved, so that a disturbance meets all three
        for name, prefix, threads in rows:
            result = train(prefix, threads)
            seconds[name].append(result["seconds"])
            errors[name].append(result["error"])
    bound = statistics.median(seconds[rows[0][0]])
    for name, _, _ in rows:
        median = statistics.median(seconds[name])
        print(f"  {name:<45} {median:7.2f} s   {median / bound:5.2f} x bound")
    largest, least = (f(e for list_ in errors.values() for e in list_) for f in (max, min))
    print(f"training error {least:.4f} to {largest:.4f}: the same model")
    if largest > 1.05 * least:
        sys.exit("the models differ by more than the order of summation explains")


if __name__ == "__main__":
    main()
