"""Reads the metrics of `lissom manager` with Prometheus's own parser, which is strict:
`metrics.py URL PID THREADS [observe]`, for a program with that many threads. With `observe`, there
must be no manager.
"""

import sys
import time
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def families(url):
    with urllib.request.urlopen(url) as answer:
        assert answer.headers["Content-Type"].startswith(
            "application/openmetrics-text; version=1.0.0"
        ), answer.headers
        return {f.name: f for f in text_string_to_metric_families(answer.read().decode())}


def of(families, name, pid):
    values = [s for s in families[name].samples if s.labels.get("pid") == pid]
    return values[0] if values else None


def main():
    url, pid, number, *mode = sys.argv[1:]
    has_manager = mode != ["observe"]
    counters = ["blocks", "cpu_seconds", "switches_user", "wakes_avoided"]
    # Wait until the program's series appear, and have caught up: the runtime publishes its numbers
    # now and then.
    while True:
        first = families(url)
        threads = of(first, "lissom_program_threads", pid)
        if (
            of(first, "lissom_program_threads_running", pid)
            and (not has_manager or of(first, "lissom_program_target_threads", pid))
            and threads.value == int(number)
        ):
            break
        time.sleep(0.1)
    print(f"{threads.labels['program']}: {threads.value:.0f} threads")
    while True:
        second = families(url)
        grown = [
            c
            for c in counters
            if of(second, f"lissom_program_{c}", pid).value
            > of(first, f"lissom_program_{c}", pid).value
        ]
        if grown == counters:
            break
        time.sleep(0.1)
    print("counters that grow:", *grown)
    for f in second.values():
        assert f.documentation and f.name.startswith("lissom_"), f
        assert f.type in ("gauge", "counter"), f
    assert second["lissom_program_cpu_seconds"].unit == "seconds"
    assert second["lissom_cpus"].samples[0].value > 0
    print("units and kinds are as they say")
    of_manager = [name for name in second if "_manager_" in name or "_target_" in name]
    assert bool(of_manager) == has_manager, of_manager


main()
