#!/usr/bin/env python3
"""`make conformance`: glibc's own thread tests, natively and under lissom at every level.

The tests are compiled as they stand from the sources that Debian packages (glibc-source), against the system's
libc. What passes natively has to pass under `lissom run`. A result that differs is repeated with nothing else
running, and counts if it differs again; what tests/conformance/known.txt lists is expected to differ.

    scripts/conformance.py [--repeat N] [TEST ...]      all tests, or those named
"""
import argparse
import concurrent.futures
import functools
import glob
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LISSOM = os.path.join(ROOT, "target/release/lissom")
HERE = os.path.join(ROOT, "tests/conformance")
WORK = os.path.join(ROOT, "target/conformance")
SOURCE = os.path.join(WORK, "source")
SHIM = os.path.join(WORK, "shim")
BUILT = os.path.join(WORK, "built")
RUNS = os.path.join(WORK, "runs")

LEVELS = {
    "native": [],
    "kernel": [LISSOM, "run", "--switch=kernel", "--"],
    "user": [LISSOM, "run", "--switch=user", "--"],
    "auto": [LISSOM, "run", "--"],
}
LONGEST_NATIVE = 20  # seconds; what takes longer natively is left out
LONGEST = 120  # seconds, under lissom
TIMEOUT_FACTOR = 3  # of the tests' own limits, under lissom: what is looked at is whether they are right
AGAIN = 2  # more runs of a result that differs

# Where tests are, and whether all of them are taken or only those that make threads.
FOLDERS = {
    "nptl": True,
    "sysdeps/pthread": True,
    "rt": True,
    "signal": True,
    "sysdeps/unix/sysv/linux": False,
    "malloc": False,
    "posix": False,
    "stdlib": False,
}
# What the tests include from elsewhere.
OTHER_SOURCES = [
    "argp/tst-argp1.c",
    "elf/tst-execstack-mod.c",
    "elf/tst-execstack.c",
    "elf/tst-unwind-main.c",
    "locale/tst-C-locale.c",
    "sysdeps/generic/eloop-threshold.h",
    "sysdeps/nptl/internaltypes.h",
    "sysdeps/x86/nptl/pthreaddef.h",
    "sysdeps/x86/nptl/thread_pointer.h",
    "sysdeps/generic/tst-stack-align.h",
    "sysdeps/x86_64/stackguard-macros.h",
]
SYSTEM_HEADERS = ("/usr/include", "/usr/include/x86_64-linux-gnu")
# tests/conformance/shim.h has what is needed of these.
EMPTY_HEADERS = [
    "atomic.h",
    "config.h",
    "descr.h",
    "elf/dl-tunables.h",
    "internal-signals.h",
    "pthreadP.h",
    "shlib-compat.h",
    "stackinfo.h",
]
LEFT_OUT = [  # name, and why
    (r"-static$", "statically linked: lissom leaves it alone"),
    (r"-time64$", "the same program where time_t has 64 bits"),
    (r"^tst-initializers1", "tests the compiler only"),
    (r"^tst-skeleton-", "part of another test"),
    (r"gdb-attach", "needs the test driver's container"),
    (r"^tst-clock_settime|^tst-settimeofday", "sets the machine's clock"),
]
# Shared libraries that a test is linked with; others it opens by name.
LINKED = {
    "tst-_res1": ["tst-_res1mod1", "tst-_res1mod2"],
    "tst-_res1mod2": ["tst-_res1mod1"],
    "tst-tls5": ["tst-tls5mod"],
    "tst-fini1": ["tst-fini1mod"],
    "tst-compat-forwarder": ["tst-compat-forwarder-mod"],
    "tst-audit-threads": ["tst-audit-threads-mod2"],
}
PARTS = {"tst-cleanup4": ["tst-cleanup4aux"], "tst-cleanupx4": ["tst-cleanupx4aux"]}
ARGUMENTS = {
    "tst-cancel7": ["--command", "exec {program}"],
    "tst-cancelx7": ["--command", "exec {program}"],
    "tst-exec4": ["{program}"],
    "tst-mqueue7": ["--", "{program}"],
    "tst-oddstacklimit": ["--command", "{built}/tst-basic1"],
    "tst-stackguard1": ["--command", "{program} --child"],
    "tst-umask1": ["{run}/tst-umask1.temp"],
}
VARIABLES = {
    "tst-audit-threads": ("LD_AUDIT", "{built}/tst-audit-threads-mod1.so"),
    "tst-mutex10": ("GLIBC_TUNABLES", "glibc.elision.enable=1"),
}


# --- sources --------------------------------------------------------------------------------------


def stamp():
    """What was built from what: changes when a build would."""
    with open(__file__, "rb") as f:
        digest = hashlib.sha256(f.read())
    with open(os.path.join(HERE, "shim.h"), "rb") as f:
        digest.update(f.read())
    for name in (tarball(), "/lib/x86_64-linux-gnu/libc.so.6"):
        status = os.stat(name)
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()


def tarball():
    found = sorted(glob.glob("/usr/src/glibc/glibc-*.tar.xz"))
    if not found:
        sys.exit("no /usr/src/glibc/glibc-*.tar.xz: install the package glibc-source")
    return found[-1]


def extract():
    for folder in (SOURCE, SHIM, BUILT):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    wanted = ["support", "include", "test-skeleton.c", *OTHER_SOURCES, *FOLDERS]
    version = os.path.basename(tarball()).removesuffix(".tar.xz")
    subprocess.run(
        ["tar", "-xJf", tarball(), "-C", SOURCE, "--strip-components=1", *(f"{version}/{w}" for w in wanted)],
        check=True,
    )
    # The headers of libc itself have to be the system's; of the source's own only what the system
    # lacks.
    headers = glob.glob(os.path.join(SOURCE, "include/*.h"))
    for folder in FOLDERS:
        headers += glob.glob(os.path.join(SOURCE, folder, "tst-*.h"))
    for header in headers + [os.path.join(SOURCE, name) for name in OTHER_SOURCES if name.endswith(".h")]:
        name = os.path.basename(header)
        if not any(os.path.exists(os.path.join(s, name)) for s in SYSTEM_HEADERS):
            shutil.copy(header, SHIM)
    for name in EMPTY_HEADERS:
        os.makedirs(os.path.dirname(os.path.join(SHIM, name)), exist_ok=True)
        with open(os.path.join(SHIM, name), "w", encoding="utf-8"):
            pass
    shutil.rmtree(os.path.join(SOURCE, "include"))


@functools.cache
def makefile_flags():
    """(CFLAGS or LDFLAGS, name) -> flags, of the lines that need no make to be understood."""
    flags = {}
    line = re.compile(r"^(CFLAGS|LDFLAGS)-(tst-[^ ]*?)(?:\.c|\.o|\.so)? *[+:]?= *(.*)$")
    for folder in FOLDERS:
        path = os.path.join(SOURCE, folder, "Makefile")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as f:
            for match in filter(None, map(line.match, f)):
                if "$" not in match[3]:
                    flags.setdefault((match[1], match[2]), []).extend(match[3].split())
    return flags


def is_module(name):
    return re.search(r"\d[a-z-]*mod[a-z0-9]*$|-mod\d*$", name) is not None


def sources():
    """name -> path of every test; of every module; why -> names of those left out."""
    tests, modules, left_out = {}, {}, {}
    for folder, all_of_it in FOLDERS.items():
        pattern = os.path.join(SOURCE, folder, "tst-*.c")
        for path in sorted(glob.glob(pattern) + glob.glob(pattern + "c")):
            name = os.path.splitext(os.path.basename(path))[0]
            if is_module(name):
                modules[name] = path
                continue
            if name in tests or any(name in parts for parts in PARTS.values()) or name.endswith("-common"):
                continue
            if not all_of_it:
                with open(path, encoding="utf-8") as f:
                    if "pthread_create" not in f.read():
                        continue
            reason = next((why for pattern_, why in LEFT_OUT if re.search(pattern_, name)), None)
            if reason:
                left_out.setdefault(reason, []).append(name)
            else:
                tests[name] = path
    return tests, modules, left_out


# --- building -------------------------------------------------------------------------------------


def compile_(output, arguments):
    """None, or the compiler's first complaint."""
    done = subprocess.run(
        [*arguments, "-o", output], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode == 0:
        return None
    with open(output + ".log", "w", encoding="utf-8") as f:
        f.write(shlex.join(arguments) + "\n" + done.stdout)
    complaints = [line for line in done.stdout.splitlines() if re.search("error|undefined", line)]
    complaint = complaints[0] if complaints else done.stdout.strip().splitlines()[-1]
    return re.sub(r".*?(fatal error|error|undefined)", r"\1", complaint)


def compiler(path):
    cplusplus = path.endswith(".cc")
    return [
        *(["g++", "-std=gnu++11"] if cplusplus else ["gcc", "-std=gnu11", "-fgnu89-inline"]),
        "-O2", "-g", "-w", "-pthread", "-D_GNU_SOURCE=1", "-D_ISOMAC", "-include", os.path.join(HERE, "shim.h"),
        "-I" + SOURCE, "-I" + os.path.join(SOURCE, "support"), "-I" + SHIM,
        *(f"-iquote{os.path.join(SOURCE, folder)}" for folder in FOLDERS),
    ]  # fmt: skip


def support_object(path):
    output = os.path.join(BUILT, "support-" + os.path.basename(path)[:-2] + ".o")
    paths = [f'-D{name}_PATH="{value}"' for name, value in {
        "SRCDIR": SOURCE, "OBJDIR": BUILT, "OBJDIR_ELF_LDSO": "/lib64/ld-linux-x86-64.so.2", "INSTDIR": "/usr",
        "LIBDIR": "/usr/lib", "BINDIR": "/usr/bin", "SBINDIR": "/usr/sbin", "SLIBDIR": "/lib",
        "ROOTSBINDIR": "/sbin", "COMPLOCALEDIR": "/usr/lib/locale",
    }.items()]  # fmt: skip
    return output if compile_(output, [*compiler(path), *paths, "-c", path]) is None else None


def program_path(name):
    return os.path.join(BUILT, name)


def build_module(name, path):
    flags = makefile_flags()
    linked = [program_path(m) + ".so" for m in LINKED.get(name, [])]
    return compile_(
        program_path(name) + ".so",
        [*compiler(path), *flags.get(("CFLAGS", name), []), "-shared", "-fPIC", f"-Wl,-soname,{name}.so", path,
         *flags.get(("LDFLAGS", name), []), *linked],
    )  # fmt: skip


def build_test(name, path):
    flags = makefile_flags()
    parts = [os.path.join(os.path.dirname(path), part + ".c") for part in PARTS.get(name, [])]
    linked = [program_path(m) + ".so" for m in LINKED.get(name, [])]
    return compile_(
        program_path(name),
        [*compiler(path), *flags.get(("CFLAGS", name), []), path, *parts, "-Wl,--no-as-needed", *linked,
         "-Wl,--as-needed", *flags.get(("LDFLAGS", name), []), os.path.join(BUILT, "libsupport.a"),
         "-lrt", "-ldl", "-lm"],
    )  # fmt: skip


def build(tests, modules, pool):
    """name -> why it cannot be built."""
    main = "support_test_main.c"
    parts = sorted(glob.glob(os.path.join(SOURCE, "support/*.c")))
    parts = [p for p in parts if not re.match(r"tst-|test-|.*-container|links-dso|.*time64", os.path.basename(p))]
    objects = [o for o in pool.map(support_object, parts) if o]
    if not any(main[:-2] in o for o in objects):
        sys.exit(f"glibc's {main} does not compile here: see {BUILT}/*.log")
    subprocess.run(["ar", "rcs", os.path.join(BUILT, "libsupport.a"), *objects], check=True)
    for name in sorted(modules, key=lambda n: n in LINKED):
        build_module(name, modules[name])
    module = program_path("tst-stack4mod.so")
    for i in range(20) if os.path.exists(module) else []:
        for j in range(20):
            os.link(module, program_path(f"tst-stack4mod-{i}-{j}.so"))
    problems = pool.map(build_test, tests, tests.values())
    return {name: problem for name, problem in zip(tests, problems) if problem}


# --- running --------------------------------------------------------------------------------------


def end_session(leader):
    """The tests make process groups of their own, but stay in the session."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                if int(f.read().rpartition(")")[2].split()[3]) == leader:
                    os.kill(int(entry), signal.SIGKILL)
        except (OSError, IndexError):
            pass


def run(name, level, attempt=0):
    """(result, seconds, last line of output)"""
    folder = os.path.join(RUNS, f"{name}.{level}.{attempt}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    words = {"program": program_path(name), "built": BUILT, "run": folder}
    arguments = [a.format(**words) for a in ARGUMENTS.get(name, [])]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LISSOM", "LD_", "GLIBC_TUNABLES"))}
    with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8"):
        pass  # glibc's build runs the tests where there is one, and some open it
    environment |= {"LD_LIBRARY_PATH": BUILT, "TMPDIR": folder}
    if level != "native":
        environment["TIMEOUTFACTOR"] = str(TIMEOUT_FACTOR)
    if name in VARIABLES:
        environment[VARIABLES[name][0]] = VARIABLES[name][1].format(**words)
    start = time.monotonic()
    with open(os.path.join(folder, "output"), "wb") as output:
        process = subprocess.Popen(
            [*LEVELS[level], program_path(name), *arguments],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(LONGEST_NATIVE if level == "native" else LONGEST)
        except subprocess.TimeoutExpired:
            code = None
        end_session(process.pid)
        process.wait()
    seconds = time.monotonic() - start
    with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as f:
        lines = f.read().strip().splitlines()
    return describe(code, lines), seconds, lines[-1] if lines else ""


def describe(code, lines):
    if code is None or any(line.startswith("Timed out: killed the child process") for line in lines):
        return "timeout"
    if code == 0:
        return "pass"
    if code == 77:
        return "unsupported"
    return f"signal {-code}" if code < 0 else f"fail {code}"


# --- the result -----------------------------------------------------------------------------------


def known_differences():
    """(test, level) -> reason"""
    known = {}
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                test, level, reason = line.split(None, 2)
                for each in LEVELS if level == "all" else [level]:
                    known[test, each] = reason.strip()
    return known


def steady(reason):
    return not reason.startswith("sometimes")


def main():
    parser = argparse.ArgumentParser(description="glibc's own thread tests, natively and under lissom")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run every test N times at every level")
    parser.add_argument("test", nargs="*", help="names of tests; all without")
    arguments = parser.parse_args()
    if subprocess.run([LISSOM, "doctor"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit("lissom would not be active here: see lissom doctor")

    cpus = len(os.sched_getaffinity(0))
    start = time.monotonic()
    mark = os.path.join(WORK, "stamp")
    os.makedirs(WORK, exist_ok=True)
    fresh = os.path.exists(mark) and open(mark, encoding="utf-8").read() == stamp()
    if not fresh:
        print(f"extracts {tarball()}", flush=True)
        extract()
    tests, modules, left_out = sources()
    problems_file = os.path.join(WORK, "problems")
    if fresh:
        problems = dict(line.rstrip("\n").split("\t") for line in open(problems_file, encoding="utf-8"))
    else:
        print(f"builds {len(tests)} tests", flush=True)
        with concurrent.futures.ThreadPoolExecutor(cpus) as pool:
            problems = build(tests, modules, pool)
        with open(problems_file, "w", encoding="utf-8") as f:
            f.writelines(f"{name}\t{problem}\n" for name, problem in problems.items())
        with open(mark, "w", encoding="utf-8") as f:
            f.write(stamp())
    unknown = [name for name in arguments.test if name not in tests]
    if unknown:
        sys.exit(f"no such test: {' '.join(unknown)}")
    if arguments.test:
        tests = {name: tests[name] for name in arguments.test}
    built = [name for name in tests if name not in problems]

    # They mostly sleep.
    print(f"runs {len(built)} tests natively and at {len(LEVELS) - 1} levels", flush=True)
    results = {}  # (test, level) -> [result ...]
    native = {}  # test -> result
    with concurrent.futures.ThreadPoolExecutor(3 * cpus) as pool:
        for name, outcome in zip(built, pool.map(lambda n: run(n, "native"), built)):
            native[name] = outcome
    for name in built:
        if native[name][0] not in ("pass", "unsupported", "timeout"):
            native[name] = run(name, "native", 1)  # perhaps only because the machine was busy
    can = [name for name in built if native[name][0] == "pass"]
    # One test's runs far apart: some use a semaphore or a queue of a fixed name.
    jobs = [(n, l, i) for i in range(arguments.repeat) for l in LEVELS if l != "native" for n in can]
    with concurrent.futures.ThreadPoolExecutor(3 * cpus) as pool:
        for job, outcome in zip(jobs, pool.map(lambda j: run(*j), jobs)):
            results.setdefault(job[:2], []).append(outcome)
    notes = []
    known = known_differences()
    for (name, level), outcomes in results.items():
        if all(o[0] == "pass" for o in outcomes) or (name, level) in known:
            continue
        again = [run(name, level, arguments.repeat + i) for i in range(AGAIN)]
        if arguments.repeat == 1 and all(o[0] == "pass" for o in again):
            notes.append(f"{name} {level}: {outcomes[0][0]} once, then passed {AGAIN} times with nothing else running")
            results[name, level] = again
        else:
            results[name, level] = outcomes + again

    report(tests, problems, native, results, left_out if not arguments.test else {}, notes)
    different = {pair for pair, outcomes in results.items() if any(o[0] != "pass" for o in outcomes)}
    wrong = 0
    for pair in sorted(different):
        reason = known.get(pair)
        last = next(o[2] for o in results[pair] if o[0] != "pass")
        print(f"{' '.join(pair)}: {'known: ' + reason if reason else 'DIFFERS: ' + last}")
        wrong += reason is None
    for pair, reason in known.items():
        if pair in results and pair not in different and steady(reason):
            print(f"{' '.join(pair)}: PASSES, but known.txt lists it: {reason}")
            wrong += 1
    print(f"{time.monotonic() - start:.0f} seconds")
    tests_different = {name for name, _ in different}
    left = sum(map(len, left_out.values())) if not arguments.test else 0
    print(
        f"{len(can) - len(tests_different)} same, {len(tests_different)} different, "
        f"{len(tests) - len(can) + left} not run here"
    )
    return 1 if wrong else 0


def cell(outcomes):
    good = sum(o[0] == "pass" for o in outcomes)
    if good == len(outcomes):
        return "pass"
    kinds = sorted({o[0] for o in outcomes if o[0] != "pass"})
    return "/".join(kinds) + (f" {len(outcomes) - good} of {len(outcomes)}" if len(outcomes) > 1 else "")


def report(tests, problems, native, results, left_out, notes):
    levels = [l for l in LEVELS if l != "native"]
    print(f"\n{'test':<36} {'native':<12} " + " ".join(f"{l:<16}" for l in levels).rstrip())
    for name in sorted(tests):
        if name in problems:
            print(f"{name:<36} native: does not build: {problems[name][:80]}")
            continue
        result, seconds, last = native[name]
        if result == "pass":
            cells = " ".join(f"{cell(results[name, l]):<16}" for l in levels)
            print(f"{name:<36} {'pass':<6}{seconds:4.1f}s {cells}".rstrip())
        elif result == "timeout" and seconds >= LONGEST_NATIVE:
            print(f"{name:<36} native: takes more than {LONGEST_NATIVE} s")
        else:
            print(f"{name:<36} native: {result}: {last[:80]}".rstrip())
    print()
    for reason, names in left_out.items():
        print(f"left out, {reason}: {' '.join(names)}")
    for note in notes:
        print(note)


if __name__ == "__main__":
    sys.exit(main())
