"""The Linux Test Project's system-call tests; the folder `futex` of them by default.

LTP_SYSCALLS="futex signal" names other folders below testcases/kernel/syscalls, and "all" takes
every one. LTP builds in its own tree, so it is copied first.
"""

import os
import re
import shlex
import shutil

import suite
from suite import Plan, Test

NAME = "ltp"
TITLE = "Linux Test Project: syscalls"
HOW = "clone linux-test-project/ltp from GitHub into SUITES/ltp"
RUNS_PER_CPU = 1
PASSING_ONLY = False

SYSCALLS = "testcases/kernel/syscalls"
TIMEOUT_FACTOR = "3"  # of LTP's own limits, under lissom: only the results matter here
NEVER = [  # name of a test, and why it is never run
    (
        r"clock_settime|settimeofday|^stime|adjtimex|clock_adjtime|leapsec",
        "sets the machine's clock",
    ),
    (r"_module", "loads kernel modules"),
    (r"mount|^fsopen|^fsconfig|^fspick|open_tree|pivot_root|^statmount|^listmount", "mounts"),
    (r"^setsockopt11", "takes 19 GiB of memory"),
    (r"^swapo|^reboot|^kexec|^quotactl|^acct|^sethostname|^setdomainname", "changes the machine"),
    (
        r"^syslog|^vhangup|^io(pl|perm)|^bpf_map|^perf_event_open03",
        "changes the machine",
    ),
    (
        r"^oom|^fork1[34]|^msgget03|^shmget0[23]|^semget05|^inotify09|^fallocate05",
        "fills the machine",
    ),
]
NEEDS = re.compile(r"\.(needs_device|mount_device|all_filesystems|format_device)\s*=\s*1")


def find(suites):
    path = os.path.join(suites or "", "ltp")
    return path if suites and os.path.isdir(os.path.join(path, SYSCALLS)) else None


def folders(source):
    names = os.environ.get("LTP_SYSCALLS", "futex").split()
    if names == ["all"]:
        names = sorted(os.listdir(os.path.join(source, SYSCALLS)))
    return [n for n in names if os.path.isdir(os.path.join(source, SYSCALLS, n))]


def build(source, copy, log, jobs, names):
    """Return the reason of each folder that does not build."""
    if not os.path.exists(os.path.join(copy, "lib/libltp.a")):
        print("  copying and configuring LTP", flush=True)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        steps = (["make", "autotools"], ["./configure"])
        for step in [*steps, *(["make", f"-j{jobs}", "-C", part] for part in ("lib", "libs"))]:
            if not suite.make(copy, log, *step):
                return {name: f"`{shlex.join(step)}` failed: see {log}" for name in names}
    problems = {}
    for name in names:
        folder = os.path.join(copy, SYSCALLS, name)
        if not suite.make(folder, log, "make", f"-j{jobs}"):
            problems[name] = f"`make` failed in {folder}: see {log}"
    return problems


def commands(copy):
    """Return name -> words of the command, of the list that LTP's runner uses."""
    found = {}
    with open(os.path.join(copy, "runtest/syscalls"), encoding="utf-8") as f:
        for line in f:
            words = line.split("#")[0].split(None, 1)
            if len(words) == 2:
                found[words[0]] = words[1].strip()
    return found


def prepare(source, work, jobs, _wanted):
    plan = Plan()
    copy, log = os.path.join(work, "source"), os.path.join(work, "log")
    names = folders(source)
    inputs = [os.path.join(source, "runtest/syscalls"), os.path.join(source, "VERSION"), __file__]
    stamp = suite.fingerprint(names, files=inputs)
    problems = suite.saved(work, stamp)
    if problems is None:
        problems = build(source, copy, log, jobs, names)
        suite.save(work, stamp, problems)
    plan.problems = problems
    where = {}
    for name in names:
        for path in suite.files_below(os.path.join(copy, SYSCALLS, name)):
            if os.access(path, os.X_OK):
                where[os.path.basename(path)] = path
    path = os.pathsep.join(dict.fromkeys(map(os.path.dirname, where.values())))
    for name, line in commands(copy).items() if where else []:
        words = shlex.split(line)
        program = where.get(words[0])
        if program is None:
            continue
        why = next((why for pattern, why in NEVER if re.search(pattern, name)), None)
        text = program + ".c"
        if why is None and os.path.exists(text):
            with open(text, encoding="utf-8", errors="replace") as f:
                why = "needs a device of its own" if NEEDS.search(f.read()) else None
        if why:
            plan.leave_out(why, name)
            continue
        shell = re.search(r"[$`|;&<>]", line)
        plan.tests.append(
            Test(
                name,
                [program, *words[1:]],
                script="{lissom} " + line if shell else None,
                environment={"PATH": path + os.pathsep + os.environ["PATH"], "LTPROOT": copy},
                under_lissom={"LTP_TIMEOUT_MUL": TIMEOUT_FACTOR},
            )
        )
    return plan
