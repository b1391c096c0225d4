"""The Open POSIX Test Suite: threads, semaphores, message queues, signals, timers and scheduling.

Each test is one source file whose exit code is its result: 0 pass, 1 fail, 2 unresolved,
4 unsupported, 5 untested. Every code that stays the same natively is compared.
"""

import os
import re

import suite
from suite import Plan, Test

NAME = "openposix"
TITLE = "Open POSIX Test Suite: threads, semaphores, message queues, signals, timers, scheduling"
HOW = "clone linux-test-project/ltp from GitHub into SUITES/ltp"
RUNS_PER_CPU = 3
PASSING_ONLY = False

BELOW = "testcases/open_posix_testsuite"
INTERFACES = re.compile(
    r"pthread_|sem_|sig|raise$|kill$|killpg$|timer_|clock_|nanosleep$|mq_|sched_|fork$"
)
FUNCTIONAL = ("mqueues", "semaphores", "threads", "timers")
SETS_CLOCK = re.compile(r"\b(clock_settime|settimeofday|stime)\s*\(")
LEFT_OUT = [  # name, and why
    (r"^clock_settime/|^functional/timers/clocks/", "sets the machine's clock"),
]
FLAGS = [
    "-std=gnu99",
    "-D_POSIX_C_SOURCE=200809L",
    "-D_XOPEN_SOURCE=700",
    "-O1",
    "-g",
    "-w",
    "-pthread",
]


def find(suites):
    for name in ("ltp", "open_posix_testsuite", "."):
        for below in (BELOW, "."):
            path = os.path.normpath(os.path.join(suites or "", name, below))
            if suites and os.path.exists(os.path.join(path, "include/posixtest.h")):
                return path
    return None


def sources(top):
    """Return the name and the path of each test."""
    found = {}
    interfaces = os.path.join(top, "conformance/interfaces")
    for folder in sorted(os.listdir(interfaces)):
        if not INTERFACES.match(folder):
            continue
        for path in suite.files_below(os.path.join(interfaces, folder)):
            if re.fullmatch(r"\d+-\d+(-buildonly)?\.(c|sh)", os.path.basename(path)):
                name = os.path.relpath(path, interfaces)
                found[name if name.endswith(".sh") else name.removesuffix(".c")] = path
    for folder in FUNCTIONAL:
        for path in suite.files_below(os.path.join(top, "functional", folder)):
            if path.endswith(".c"):
                found[os.path.relpath(path, top).removesuffix(".c")] = path
    return found


def why_left_out(name, path):
    """Return why a test is never run, or None."""
    for pattern, why in LEFT_OUT:
        if re.search(pattern, name):
            return why
    if name.endswith(".sh"):
        return "a shell script, which runs another test or has nothing to run"
    if name.endswith("-buildonly"):
        return "tests the compiler only"
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return "sets the machine's clock" if SETS_CLOCK.search(text) else None


def prepare(source, work, jobs, wanted):
    plan = Plan()
    built = os.path.join(work, "built")
    common = os.path.join(source, "lib/common.c")
    programs = []
    for name, path in sources(source).items():
        why = why_left_out(name, path)
        if why:
            plan.leave_out(why, name)
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        parts = [path]
        if not re.search(r"^(int|void)?\s*main\s*\(", text, re.MULTILINE) and os.path.exists(
            common
        ):
            parts.append(common)
        if "affinity.h" in text:
            parts.append("-D_GNU_SOURCE")
        output = os.path.join(built, name)
        words = ["gcc", *FLAGS, f"-I{source}/include", f"-I{os.path.dirname(path)}", *parts]
        programs.append(suite.Program(name, [(output, [*words, "-lpthread", "-lrt", "-lm"])]))
    programs = [p for p in programs if wanted(p.name)]
    plan.problems = suite.compile_programs(work, programs, jobs)
    for program in programs:
        if program.name not in plan.problems:
            plan.tests.append(Test(program.name, [program.steps[0][0]]))
    return plan
