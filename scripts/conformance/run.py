"""Run tests natively and under lissom, and say where the results differ."""

import collections
import concurrent.futures
import dataclasses
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

from suite import LISSOM, Plan, Test

NATIVE = "native"
LEVELS = ("kernel", "auto")
LONGEST = 120  # seconds, under lissom
AGAIN = 2  # more runs of a result that differs
PROGRESS_AFTER = 2  # seconds
SCRUBBED = ("LISSOM", "LD_", "GLIBC_TUNABLES", "OMP_", "GOMP_", "KMP_", "LIBOMP_", "GCOV_")


@dataclasses.dataclass(frozen=True)
class Outcome:
    result: str
    seconds: float
    last: str  # line of the output


@dataclasses.dataclass
class Setting:
    """How to run: the folder for the runs, how many at once, and more words for `lissom run`."""

    folder: str
    workers: int
    options: list[str]
    levels: list[str]
    repeat: int
    passing_only: bool


one_at_a_time = collections.defaultdict(threading.Lock)  # name of the test -> its lock


def words_of(level: str, options: list[str]) -> list[str]:
    """Return what goes before a program to run it at that level."""
    if level == NATIVE:
        return []
    switch = [] if level == "auto" else [f"--switch={level}"]
    return [LISSOM, "run", *switch, *options, "--"]


def end_session(leader: int) -> None:
    """Kill every process of the session. Tests make process groups of their own in it."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rpartition(")")[2].split()[3]) == leader:
                    os.kill(int(entry), signal.SIGKILL)
        except (OSError, IndexError):
            pass


def run(test: Test, level: str, attempt: int, setting: Setting) -> Outcome:
    """Run a test once. Two runs of a test never overlap: some use a queue of a fixed name."""
    with one_at_a_time[test.name]:
        return run_now(test, level, attempt, setting)


def run_now(test: Test, level: str, attempt: int, setting: Setting) -> Outcome:
    name = f"{test.name.replace('/', '.')}.{level}.{attempt}"
    folder = os.path.join(setting.folder, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for path in test.files:
        os.symlink(path, os.path.join(folder, os.path.basename(path)))
    prefix = words_of(level, setting.options)
    if test.script is not None:
        command = ["bash", "-c", test.script.replace("{lissom}", shlex.join(prefix))]
    else:
        command = [*prefix, *test.command]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED)}
    environment |= {"TMPDIR": folder} | test.environment
    if level != NATIVE:
        environment |= test.under_lissom
    output = os.path.join(folder, "output")
    start = time.monotonic()
    with open(output, "wb") as out, open(test.stdin, "rb") as stdin:
        process = subprocess.Popen(
            [word.replace("{folder}", folder) for word in command],
            stdin=stdin,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={k: v.replace("{folder}", folder) for k, v in environment.items()},
            start_new_session=True,
        )
        try:
            code = process.wait(test.longest if level == NATIVE else LONGEST)
        except subprocess.TimeoutExpired:
            code = None
        end_session(process.pid)
        process.wait()
    seconds = time.monotonic() - start
    with open(output, encoding="utf-8", errors="replace") as f:
        text = f.read(1 << 22)
    lines = text.strip().splitlines()
    return Outcome(test.judge(code, text), seconds, lines[-1].strip() if lines else "")


class Progress:
    """A line that counts, on a terminal, once the work has taken two seconds."""

    def __init__(self, title: str, total: int):
        self.title, self.total, self.done = title, total, 0
        self.start = time.monotonic()
        self.shown = False

    def __enter__(self):
        return self

    def step(self) -> None:
        self.done += 1
        if sys.stderr.isatty() and time.monotonic() - self.start > PROGRESS_AFTER:
            print(f"\r\x1b[K  {self.title}: {self.done} of {self.total}", end="", file=sys.stderr)
            self.shown = True

    def __exit__(self, *_):
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def in_pool(title: str, jobs: list, workers: int, function: Callable) -> Iterable[Outcome]:
    """Call the function for each job, so many at a time; return the results in order."""
    with (
        Progress(title, len(jobs)) as progress,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):

        def one(job):
            outcome = function(*job)
            progress.step()
            return outcome

        return list(pool.map(one, jobs))


@dataclasses.dataclass
class Comparison:
    """The outcomes of a suite. `skipped` are the tests that do not run here, and why."""

    native: dict[str, list[Outcome]] = dataclasses.field(default_factory=dict)
    levels: dict[tuple[str, str], list[Outcome]] = dataclasses.field(default_factory=dict)
    skipped: dict[str, str] = dataclasses.field(default_factory=dict)
    different: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)


def run_natively(tests: list[Test], setting: Setting, found: Comparison) -> list[Test]:
    """Run each test natively. Return those whose result is good for a comparison."""
    outcomes = in_pool(
        "natively",
        [(test, NATIVE, 0, setting) for test in tests],
        setting.workers,
        run,
    )
    good = []
    for test, outcome in zip(tests, outcomes, strict=True):
        seen = found.native[test.name] = [outcome]
        if outcome.result == "timeout":
            took = outcome.seconds >= test.longest
            why = f"takes more than {test.longest:g} s natively" if took else "times out natively"
            found.skipped[test.name] = why
            continue
        if not outcome.result.startswith("pass"):
            # The machine may have been too busy. A result that persists is compared as it is.
            seen += [run(test, NATIVE, 1 + i, setting) for i in range(AGAIN)]
            results = {o.result for o in seen[1:]}
            if len(results) > 1 or "timeout" in results:
                found.skipped[test.name] = "natively not always the same: " + ", ".join(
                    sorted({o.result for o in seen})
                )
                continue
            if results != {outcome.result}:
                del seen[0]
            if setting.passing_only and not seen[0].result.startswith("pass"):
                found.skipped[test.name] = f"natively {seen[0].result}: {seen[0].last[:80]}"
                continue
        good.append(test)
    return good


def compare(plan: Plan, setting: Setting, expected: Callable[[str, str], bool]) -> Comparison:
    """Compare native results with those at each level.

    A result that differs, unless it is expected to, is repeated with nothing else running, natively
    and at that level. It counts if the level gives again what no native run gave.
    """
    found = Comparison()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    good = run_natively(plan.tests, setting, found)
    # Schedule the runs of one test far apart: they must not overlap.
    jobs = [
        (t, lv, i, setting) for i in range(setting.repeat) for lv in setting.levels for t in good
    ]
    for job, outcome in zip(jobs, in_pool("under lissom", jobs, setting.workers, run), strict=True):
        found.levels.setdefault((job[0].name, job[1]), []).append(outcome)
    tests = {test.name: test for test in good}
    for (name, level), outcomes in sorted(found.levels.items()):
        native = {o.result for o in found.native[name]}
        if all(o.result in native for o in outcomes):
            continue
        if not expected(name, level):
            test = tests[name]
            attempts = range(setting.repeat, setting.repeat + AGAIN)
            found.native[name] += [run(test, NATIVE, 2 + i, setting) for i in attempts]
            again = [run(test, level, i, setting) for i in attempts]
            outcomes += again
            native = {o.result for o in found.native[name]}
            once = outcomes[0] if setting.repeat == 1 else None
            if once and all(o.result in native for o in again):
                if once.result not in native:
                    found.notes.append(
                        f"{name} {level}: {once.result} once, but not in {AGAIN} more runs alone"
                    )
                continue
            if all(o.result in native for o in outcomes):
                continue
        odd = [o for o in outcomes if o.result not in native]
        if odd:
            results = ", ".join(sorted({o.result for o in odd}))
            found.different[name, level] = (
                f"natively {', '.join(sorted(native))}; here {results} in {len(odd)} of "
                f"{len(outcomes)} runs" + (f": {odd[0].last[:120]}" if odd[0].last else "")
            )
    return found
