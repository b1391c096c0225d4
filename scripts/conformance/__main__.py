"""`make conformance`: public test suites, natively and under lissom at every level.

    python3 scripts/conformance [--suites DIR] [--suite NAME ...] [TEST ...]

Each suite is built from sources that the user has, outside of the repository, into
target/conformance/SUITE. Printed are the differences only; the table of all results is
target/conformance/SUITE/table, and the output of a run is
target/conformance/SUITE/runs/TEST.LEVEL.N/output. tests/conformance/known.txt lists the differences
that are expected. The exit code is 0 only if exactly those are seen.
"""

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import time
from types import ModuleType

import glibc
import known
import libgomp
import libomp
import ltp
import openmp_vv
import openposix
import run
import splash3
from suite import LISSOM, WORK, Plan

SUITES = {m.NAME: m for m in (glibc, ltp, openposix, libgomp, libomp, openmp_vv, splash3)}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/conformance",
        description="Run public test suites natively and under lissom, and print the differences",
    )
    parser.add_argument(
        "--suites",
        metavar="DIR",
        help="folder with the sources of the suites [default: run glibc's tests only]",
    )
    parser.add_argument(
        "--suite",
        action="append",
        choices=SUITES,
        metavar="NAME",
        help="run this suite only; may be repeated: " + ", ".join(SUITES),
    )
    parser.add_argument(
        "--level",
        action="append",
        choices=run.LEVELS,
        help="run at this level only; may be repeated [default: kernel and auto]",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="ARG",
        help="add an argument to `lissom run`, such as --option=--malleable=1; may be repeated",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="run every test N times at every level, and count each odd result [default: 1]",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="maximum number of compilers at once [default: CPUs available]",
    )
    parser.add_argument(
        "--list-left-out",
        action="store_true",
        help="print each test that does not run here, and why",
    )
    parser.add_argument(
        "test", nargs="*", help="tests to run, as NAME or SUITE/NAME; * and ? match [default: all]"
    )
    return parser.parse_args()


def wanted(suite: str, test: str, patterns: list[str]) -> bool:
    names = (test, f"{suite}/{test}")
    return not patterns or any(fnmatch.fnmatchcase(n, p) for n in names for p in patterns)


def chosen(plan: Plan, suite: str, patterns: list[str]) -> Plan:
    """Return the part of a plan whose names match."""
    return Plan(
        [t for t in plan.tests if wanted(suite, t.name, patterns)],
        {n: why for n, why in plan.problems.items() if wanted(suite, n, patterns)},
        {
            why: [n for n in names if wanted(suite, n, patterns)]
            for why, names in plan.left_out.items()
        },
    )


def not_run(plan: Plan, found: run.Comparison) -> dict[str, str]:
    """Return the tests that do not run here, and why."""
    reasons = {name: why for why, names in plan.left_out.items() for name in names}
    reasons |= {name: f"does not build: {why}" for name, why in plan.problems.items()}
    return reasons | found.skipped


def write_table(folder: str, plan: Plan, found: run.Comparison, levels: list[str]) -> None:
    with open(os.path.join(folder, "table"), "w", encoding="utf-8") as f:
        for name, outcomes in sorted(found.native.items()):
            cells = [f"native {outcomes[0].seconds:.1f} s {outcomes[0].result}"]
            for level in levels:
                results = [o.result for o in found.levels.get((name, level), [])]
                cells += [f"{level} {'/'.join(results)}"] if results else []
            print(f"{name}: {'; '.join(cells)}", file=f)
        for name, why in sorted(not_run(plan, found).items()):
            print(f"{name}: not run: {why}", file=f)


def judge_known(suite: str, plan: Plan, found: run.Comparison, reasons: dict) -> int:
    """Print the differences of a suite. Return how many are not as expected."""
    wrong = 0
    for pair, what in sorted(found.different.items()):
        test, level = pair
        reason = reasons.get((f"{suite}/{test}", level))
        print(f"  {test} {level}: {what}")
        print(f"    known: {reason}" if reason else "    DIFFERS")
        wrong += reason is None
    for (name, level), reason in reasons.items():
        pair = (name.removeprefix(suite + "/"), level)
        if pair in found.levels and pair not in found.different and known.must_differ(reason):
            print(f"  {' '.join(pair)}: THE SAME, but known.txt lists it: {reason}")
            wrong += 1
    return wrong


def run_suite(module: ModuleType, source: str, arguments: argparse.Namespace) -> tuple[int, int]:
    """Return how many tests matched the names, and how many results are not as expected."""
    start = time.monotonic()
    name = module.NAME
    print(f"{name}: {module.TITLE}", flush=True)
    work = os.path.join(WORK, name)
    os.makedirs(work, exist_ok=True)
    plan = module.prepare(
        source, work, arguments.jobs, lambda test: wanted(name, test, arguments.test)
    )
    plan = chosen(plan, name, arguments.test)
    levels = arguments.level or list(run.LEVELS)
    workers = int(len(os.sched_getaffinity(0)) * module.RUNS_PER_CPU)
    setting = run.Setting(
        os.path.join(work, "runs"),
        max(1, workers),
        arguments.option,
        levels,
        arguments.repeat,
        module.PASSING_ONLY,
    )
    if not arguments.test:
        shutil.rmtree(setting.folder, ignore_errors=True)
    if plan.tests:
        print(f"  running {len(plan.tests)} tests natively and at {len(levels)} levels", flush=True)
    reasons = known.read()
    found = run.compare(plan, setting, lambda test, level: (f"{name}/{test}", level) in reasons)
    write_table(work, plan, found, levels)
    for note in found.notes:
        print(f"  {note}")
    wrong = judge_known(name, plan, found, reasons)
    skipped = not_run(plan, found)
    if arguments.list_left_out:
        groups = {}
        for test, why in sorted(skipped.items()):
            groups.setdefault(why, []).append(test)
        for why, tests in groups.items():
            print(f"  not run, {why}: {' '.join(tests)}")
    different = {test for test, _ in found.different}
    same = {test for test, _ in found.levels} - different
    seconds = time.monotonic() - start
    print(
        f"{name}: {len(same)} same, {len(different)} different, {len(skipped)} not run here "
        f"({seconds:.0f} s)",
        flush=True,
    )
    return len(same) + len(different) + len(skipped), wrong


def main() -> int:
    arguments = options()
    if subprocess.run([LISSOM, "doctor"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit("lissom would not be active here: see `lissom doctor`")
    suites = os.path.abspath(arguments.suites) if arguments.suites else None
    names = arguments.suite or (list(SUITES) if suites else [glibc.NAME])
    matched = wrong = missing = 0
    for name in dict.fromkeys(names):
        module = SUITES[name]
        source = module.find(suites)
        if source is None:
            print(f"{name}: not there: {module.HOW}")
            missing += arguments.suite is not None or name == glibc.NAME
            continue
        count, bad = run_suite(module, source, arguments)
        matched += count
        wrong += bad
    if arguments.test and not matched and not missing:
        sys.exit(f"no such test: {' '.join(arguments.test)}")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
