#!/usr/bin/python3
"""Is packaging/grafana/lissom.json right? Every query of every panel is answered by a real Prometheus, which asks a real `lissom manager` while programs
run under lissom. Grafana itself is not needed: grafana.py does what it does with the file.

    tests/dashboard/run.py                    exit code 0: all is well
    LISSOM_TEST_BIN=/usr/bin/lissom ...       another binary than target/release/lissom
"""

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import grafana
import promtool
from scene import LISSOM, ROOT, Scene, until

DASHBOARD = ROOT / "packaging/grafana/lissom.json"
SECONDS = 24
SCRAPE = 1
# The scrape interval set in Grafana: rates cover four intervals, and a busy machine may miss some
# scrapes.
TOLD_SCRAPE = 3
# Any character of a program's name must survive the metrics, Prometheus and the choice of a
# program.
ODD = 'a"b\\c {d}(1)+'
OURS = {"stat_target", "by_kernel", "spins", "comes_and_goes", "spin_omp", ODD}

counts = {"ok": 0, "FAILED": 0}


def check(ok, what):
    word = "ok" if ok else "FAILED"
    counts[word] += 1
    print(f"{word}: {what}", flush=True)


def end(skipped=0):
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {skipped} skipped")
    return 1 if counts["FAILED"] else 0


def missing():
    """Why the queries cannot be asked here, or None."""
    for program in ("prometheus", "promtool", "gcc"):
        if not shutil.which(program):
            return f"{program} is not there"
    done = subprocess.run([LISSOM, "doctor"], stdout=subprocess.DEVNULL, check=False)
    return (
        "lissom is not active on this machine; lissom doctor says why" if done.returncode else None
    )


def begin(scene):
    """Programs that do all that the panels show. Post: Prometheus, and whether there is a quota."""
    target = scene.built(ROOT / "tests/programs/stat_target.c")
    sweep = scene.built(ROOT / "workloads/spin_omp.c", "-fopenmp")
    address = scene.manager()
    port = address.rsplit(":", 1)[1]
    # Scrape the manager as two machines: panels have to distinguish programs of different machines.
    prometheus = scene.prometheus([f"127.0.0.1:{port}", f"localhost:{port}"])
    scene.lissom("barrier", target, "barrier", "16")
    scene.lissom(
        "kernel", scene.copy(target, "by_kernel"), "barrier", "8", options=["--switch=kernel"]
    )
    scene.lissom("spin", scene.copy(target, "spins"), "spin", "4")
    scene.lissom("come", scene.copy(target, "comes_and_goes"), "come", "6")
    scene.lissom("odd", scene.copy(target, ODD), "barrier", "4")
    work = ["lu", "--threads", "8", "--rounds", "1000000", "--work", "200000"]
    return prometheus, address, scene.lissom("quota", sweep, *work, percent=10)


def scraped(prometheus, scene):
    def up():
        scene.check_running()
        targets = prometheus.ask("targets")["activeTargets"]
        return targets if targets and all(t["health"] != "unknown" for t in targets) else None

    for target in until("a scrape", 20, up):
        check(
            target["health"] == "up",
            f"{target['scrapeUrl']} is {target['health']} {target['lastError']}".strip(),
        )


def names_are_there(prometheus, text):
    """docs/operate/metrics.md and the endpoint tell of the same metrics as far as they are named in full."""
    names = set(prometheus.ask("label/__name__/values"))
    documented = set(
        re.findall(r"^\| (lissom_[a-z_]+) \|", (ROOT / "docs/operate/metrics.md").read_text(), re.M)
    )
    check(
        documented <= names,
        f"{len(documented)} names of docs/operate/metrics.md are there {sorted(documented - names) or ''}".strip(),
    )
    return set(re.findall(r"lissom_\w+", text)) <= names


def counters_count(prometheus, pids, start, end):
    """A counter that goes back is a new one for Prometheus, and rate() of it is anything."""
    names = [
        n
        for n in prometheus.ask("label/__name__/values")
        if n.startswith("lissom_program_") and n.endswith("_total")
    ]
    backwards = 0
    for name in names:
        query = f'resets({name}{{pid=~"{"|".join(pids)}"}}[{round(end - start)}s]) > 0'
        for series in prometheus.ask("query", query=query, time=end)["result"]:
            backwards += 1
            check(
                False,
                f"{name} of {series['metric']['program']} went back {series['value'][1]} times",
            )
    check(not backwards, f"none of {len(names)} counters of programs goes back")


def variables(prometheus, dashboard, start, end):
    """Post: the values of each variable that is asked for, in the order of the file."""
    values = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        chosen = {name: ".*" for name in values}
        query = grafana.put_in(variable["definition"], chosen)
        check(
            variable["definition"] == variable["query"]["query"],
            f"variable {variable['name']}: its two queries are the same",
        )
        series, label = re.fullmatch(r"label_values\((.*), *(\w+)\)", query).groups()
        values[variable["name"]] = prometheus.ask(
            f"label/{label}/values", **{"match[]": series, "start": start, "end": end}
        )
        check(
            values[variable["name"]],
            f"variable {variable['name']}: {query} is {' '.join(map(repr, values[variable['name']]))}",
        )
    return values


def numbers(series):
    """Of what query or query_range has answered."""
    return [
        n for _, v in series.get("values", [series.get("value")]) if not math.isnan(n := float(v))
    ]


def asked(prometheus, target, values, start, end):
    query = grafana.put_in(target["expr"], values)
    if target.get("instant"):
        return prometheus.ask("query", query=query, time=end)["result"]
    return prometheus.over(query, start, end, SCRAPE)


def panel_answers(prometheus, panel, values, start, end, quota):
    legends, rows = [], []
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        what = f"panel {panel['id']} {panel['title']!r} {target['refId']}"
        try:
            result = asked(prometheus, target, values, start, end)
        except ValueError as e:
            check(False, f"{what}: {e}: {target['expr']}")
            continue
        found = [n for series in result for n in numbers(series)]
        needed = quota or "throttled" not in target["expr"]
        check(
            found and (any(found) or not needed),
            f"{what}: {len(result)} series, {describe(found)}{'' if needed else ' (there is no quota here)'}",
        )
        if unit == "percentunit" and found:
            check(0 <= min(found) and max(found) <= 1, f"{what}: a part is from 0 to 1")
        if panel["type"] == "table":
            rows.append([series["metric"] for series in result])
            continue
        try:
            legends += [
                grafana.legend(target["legendFormat"], series["metric"]) for series in result
            ]
        except KeyError as label:
            check(False, f"{what}: its legend has {label}, which a series has not")
    doubles = sorted({name for name in legends if legends.count(name) > 1})
    if doubles:
        check(False, f"panel {panel['id']}: several series are called {', '.join(doubles)}")
    if rows:
        table_answers(panel, rows)


def table_answers(panel, rows):
    """The queries have the same labels, so that a program is one row; each of them is a column with a name."""
    labels = {tuple(sorted(row)) for answer in rows for row in answer}
    check(
        len(labels) == 1, f"panel {panel['id']}: all rows have the labels {', '.join(min(labels))}"
    )
    named = next(
        t["options"]["renameByName"] for t in panel["transformations"] if t["id"] == "organize"
    )
    check(set(min(labels)) <= named.keys(), f"panel {panel['id']}: its columns have names")
    check(
        max(map(len, rows))
        == len({tuple(sorted(row.items())) for answer in rows for row in answer}),
        f"panel {panel['id']}: {max(map(len, rows))} rows",
    )


def describe(found):
    if not found:
        return "no number"
    return f"{min(found):.4g} to {max(found):.4g}"


def one_program(prometheus, dashboard, values, everything, start, end):
    """If one program is chosen, nothing else is shown where programs are. (There may be others than ours.)"""
    targets = [
        t for panel in dashboard["panels"] for t in panel["targets"] if "$program" in t["expr"]
    ]
    for name in OURS:
        seen = set()
        for target in targets:
            result = asked(
                prometheus, target, values | {"program": grafana.chosen([name])}, start, end
            )
            seen |= {series["metric"].get("program", name) for series in result}
        check(seen == {name}, f"with {name!r} chosen, the panels show {' '.join(map(repr, seen))}")
    query = grafana.put_in(
        'lissom_program_threads{program=~"$program"}',
        {"program": grafana.chosen(everything["program"])},
    )
    found = {series["metric"]["program"] for series in prometheus.over(query, start, end, SCRAPE)}
    # Other programs may have run meanwhile.
    check(
        OURS <= found, f"with each of {len(everything['program'])} programs chosen, ours are there"
    )


def ask_all(dashboard, text):
    with tempfile.TemporaryDirectory(prefix="lissom-dashboard.") as folder, Scene(folder) as scene:
        prometheus, address, quota = begin(scene)
        scraped(prometheus, scene)
        start = time.time() + 5
        time.sleep(5 + SECONDS)
        scene.check_running()
        stop = time.time()
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            promtool.look(answer.read().decode(), check)
        check(names_are_there(prometheus, text), "all metrics of the panels exist")
        slow = prometheus.over("max(scrape_duration_seconds)", start, stop, SCRAPE)
        up = prometheus.over("avg(up)", start, stop, SCRAPE)
        share = 100 * sum(numbers(up[0])) / len(numbers(up[0]))
        check(
            share >= 50,
            f"{share:.0f} % of scrapes were answered in time, in up to {max(numbers(slow[0])):.3f} s",
        )
        counters_count(prometheus, scene.pids(), start, stop)
        everything = variables(prometheus, dashboard, start, stop)
        values = grafana.intervals(stop - start, SECONDS, TOLD_SCRAPE) | {
            name: ".*" for name in everything
        }
        for panel in dashboard["panels"]:
            panel_answers(prometheus, panel, values, start, stop, quota)
        if "program" in everything:
            check(OURS <= set(everything["program"]), "they are seen, whatever they are called")
            one_program(prometheus, dashboard, values, everything, start, stop)


def main():
    text = DASHBOARD.read_text()
    dashboard = json.loads(text)
    problems = list(grafana.wrong(dashboard))
    for problem in problems:
        check(False, problem)
    check(not problems, f"{DASHBOARD.name} is a dashboard of {len(dashboard['panels'])} panels")
    why = missing()
    if why:
        print(f"skipped: the queries: {why}")
        return end(skipped=1)
    try:
        ask_all(dashboard, text)
    except OSError as e:
        check(False, f"{type(e).__name__}: {e}")
    return end()


if __name__ == "__main__":
    sys.exit(main())
