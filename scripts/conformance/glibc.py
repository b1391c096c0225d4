"""glibc's own thread tests.

They are compiled as they stand from the sources that Debian packages (glibc-source), against the
system's C library.
"""

import concurrent.futures
import functools
import glob
import os
import re
import shutil
import subprocess
import sys

import suite
from suite import HERE, WORK, Plan, Test, compile_

NAME = "glibc"
TITLE = "glibc's thread tests"
HOW = "install Debian's package glibc-source"
RUNS_PER_CPU = 3
PASSING_ONLY = True

SOURCE = os.path.join(WORK, NAME, "source")
SHIM = os.path.join(WORK, NAME, "shim")
BUILT = os.path.join(WORK, NAME, "built")
TIMEOUT_FACTOR = 3  # of the tests' own limits, under lissom: only their results matter here

# Folders with tests. True: take all tests, False: only those that create threads.
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
# Files that tests include from elsewhere.
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
# tests/conformance/shim.h has the definitions that the tests need from these.
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
# Shared libraries that a test is linked to. It opens others by name.
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
    "tst-umask1": ["{folder}/tst-umask1.temp"],
}
VARIABLES = {
    "tst-audit-threads": ("LD_AUDIT", "{built}/tst-audit-threads-mod1.so"),
    "tst-mutex10": ("GLIBC_TUNABLES", "glibc.elision.enable=1"),
}


# --- sources -------------------------------------------------------------------------------------


def find(_suites):
    found = sorted(glob.glob("/usr/src/glibc/glibc-*.tar.xz"))
    return found[-1] if found else None


def extract(tarball):
    for folder in (SOURCE, SHIM, BUILT):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    wanted = ["support", "include", "test-skeleton.c", *OTHER_SOURCES, *FOLDERS]
    version = os.path.basename(tarball).removesuffix(".tar.xz")
    subprocess.run(
        ["tar", "-xJf", tarball, "-C", SOURCE, "--strip-components=1"]
        + [f"{version}/{w}" for w in wanted],
        check=True,
    )
    with open(os.path.join(SOURCE, "Makefile"), "w", encoding="utf-8"):
        pass
    # libc's own headers have to be the system's: add only those that the system lacks.
    headers = glob.glob(os.path.join(SOURCE, "include/*.h"))
    for folder in FOLDERS:
        headers += glob.glob(os.path.join(SOURCE, folder, "tst-*.h"))
    for header in headers + [
        os.path.join(SOURCE, name) for name in OTHER_SOURCES if name.endswith(".h")
    ]:
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
    """Return (CFLAGS or LDFLAGS, name) -> flags, from the lines without variables of make."""
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
    """Return name -> path of the tests, the same of their modules, and why -> names left out."""
    tests, modules, left_out = {}, {}, {}
    for folder, all_of_it in FOLDERS.items():
        pattern = os.path.join(SOURCE, folder, "tst-*.c")
        for path in sorted(glob.glob(pattern) + glob.glob(pattern + "c")):
            name = os.path.splitext(os.path.basename(path))[0]
            if is_module(name):
                modules[name] = path
                continue
            if (
                name in tests
                or any(name in parts for parts in PARTS.values())
                or name.endswith("-common")
            ):
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


# --- building ------------------------------------------------------------------------------------


def compiler(path):
    cplusplus = path.endswith(".cc")
    return [
        *(["g++", "-std=gnu++11"] if cplusplus else ["gcc", "-std=gnu11", "-fgnu89-inline"]),
        "-O2", "-g", "-w", "-pthread", "-D_GNU_SOURCE=1", "-D_ISOMAC",
        "-include", os.path.join(HERE, "shim.h"), "-I" + SOURCE,
        "-I" + os.path.join(SOURCE, "support"), "-I" + SHIM,
        *(f"-iquote{os.path.join(SOURCE, folder)}" for folder in FOLDERS),
    ]  # fmt: skip


def support_object(path):
    output = os.path.join(BUILT, "support-" + os.path.basename(path)[:-2] + ".o")
    paths = [f'-D{name}_PATH="{value}"' for name, value in {
        "SRCDIR": SOURCE, "OBJDIR": BUILT, "OBJDIR_ELF_LDSO": "/lib64/ld-linux-x86-64.so.2",
        "INSTDIR": "/usr", "LIBDIR": "/usr/lib", "BINDIR": "/usr/bin", "SBINDIR": "/usr/sbin",
        "SLIBDIR": "/lib",
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
        [*compiler(path), *flags.get(("CFLAGS", name), []), "-shared", "-fPIC",
         f"-Wl,-soname,{name}.so", path, *flags.get(("LDFLAGS", name), []), *linked],
    )  # fmt: skip


def build_test(name, path):
    flags = makefile_flags()
    parts = [os.path.join(os.path.dirname(path), part + ".c") for part in PARTS.get(name, [])]
    linked = [program_path(m) + ".so" for m in LINKED.get(name, [])]
    return compile_(
        program_path(name),
        [*compiler(path), *flags.get(("CFLAGS", name), []), path, *parts,
         "-Wl,--no-as-needed", *linked, "-Wl,--as-needed", *flags.get(("LDFLAGS", name), []),
         os.path.join(BUILT, "libsupport.a"), "-lrt", "-ldl", "-lm"],
    )  # fmt: skip


def build(tests, modules, pool):
    """Build the tests. Return the name of each failure, and why."""
    main = "support_test_main.c"
    parts = sorted(glob.glob(os.path.join(SOURCE, "support/*.c")))
    parts = [
        p
        for p in parts
        if not re.match(r"tst-|test-|.*-container|links-dso|.*time64", os.path.basename(p))
    ]
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
    return {name: problem for name, problem in zip(tests, problems, strict=True) if problem}


# --- the tests -----------------------------------------------------------------------------------


def judge(code, output):
    if re.search("^Timed out: killed the child process", output, re.MULTILINE):
        return "timeout"
    return suite.describe(code, output)


def test_of(name):
    words = {"program": program_path(name), "built": BUILT, "folder": "{folder}"}
    environment = {"LD_LIBRARY_PATH": BUILT}
    if name in VARIABLES:
        environment[VARIABLES[name][0]] = VARIABLES[name][1].format(**words)
    return Test(
        name,
        [program_path(name), *(a.format(**words) for a in ARGUMENTS.get(name, []))],
        environment=environment,
        under_lissom={"TIMEOUTFACTOR": str(TIMEOUT_FACTOR)},
        # Like glibc's build, run tests in a folder with a Makefile: some open it.
        files=[os.path.join(SOURCE, "Makefile")],
        judge=judge,
    )


def prepare(tarball, work, jobs, _wanted):
    inputs = [tarball, __file__, suite.__file__, os.path.join(HERE, "shim.h")]
    stamp = suite.fingerprint(files=inputs)
    problems = suite.saved(work, stamp)
    if problems is None:
        extract(tarball)
        tests, modules, _ = sources()
        print(f"  compiling {len(tests)} tests of {tarball}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            problems = build(tests, modules, pool)
        suite.save(work, stamp, problems)
    tests, _, left_out = sources()
    return Plan([test_of(name) for name in tests if name not in problems], problems, left_out)
