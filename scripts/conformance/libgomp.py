"""GCC's tests of its OpenMP runtime, libgomp: C, C++, and Fortran where gfortran is there.

Compile each with -fopenmp and with what its comments for DejaGnu ask for, and run it on the host
with eight threads. Only exit codes are compared, so a test that has to fail needs no special care.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess

import suite
from suite import Plan, Test

NAME = "libgomp"
TITLE = "GCC's libgomp tests"
HOW = (
    "put a source tree of GCC, or its folder libgomp/testsuite, into SUITES/gcc "
    "(Debian: install the package gcc-12-source)"
)
RUNS_PER_CPU = 0.5  # each makes eight threads
PASSING_ONLY = False

TARBALLS = "/usr/src/gcc-*/gcc-*.tar.xz"
TESTS = "libgomp/testsuite"
LANGUAGES = {  # prefix of the name -> compiler, folders and ends of the sources
    "c": (["gcc"], [("libgomp.c", ".c"), ("libgomp.c-c++-common", ".c")]),
    "c++": (["g++", "-x", "c++"], [("libgomp.c++", ".C"), ("libgomp.c-c++-common", ".c")]),
    "fortran": (["gfortran"], [("libgomp.fortran", f".{end}") for end in ("f", "f90", "F90")]),
}
# DejaGnu targets that apply here, unlike those of an offload device or of another machine.
TRUE = {
    "*-*-*", "*-*-linux*", "*-*-gnu*", "x86_64-*-*", "lp64", "tls", "tls_runtime", "pthread",
    "sync_int_long", "cas_int", "sse2_runtime", "sse2", "vect_simd_clones", "size32plus", "lto",
    "fpic", "shared", "fd_truncate", "__float128", "large_long_double", "fortran_real_16",
    "fortran_integer_16", "alloca",
}  # fmt: skip
NO_DEVICE = "needs an offload device"


def find(suites):
    """Return a folder with libgomp/testsuite, or a tarball that has it."""
    if suites is None:
        return None
    for path in sorted(glob.glob(os.path.join(suites, "gcc*")), reverse=True):
        if os.path.isdir(os.path.join(path, TESTS)):
            return path
    found = sorted(glob.glob(TARBALLS))
    return found[-1] if found else None


def unpack(source, work):
    """Return the folder testsuite, from a source tree as it is or from a tarball."""
    if os.path.isdir(source):
        return os.path.join(source, TESTS)
    folder = os.path.join(work, "source")
    stamp = suite.fingerprint(files=[source])
    if suite.saved(folder, stamp) is None:
        print(f"  unpacking {source}", flush=True)
        suite.empty(folder)
        subprocess.run(
            ["tar", "-xJf", source, "-C", folder, "--strip-components=1", "--wildcards"]
            + [f"*/{TESTS}", "*/libgomp/*.h", "*/include/gomp-constants.h"],
            check=True,
        )
        suite.save(folder, stamp, {})
    return os.path.join(folder, TESTS)


# --- the comments for DejaGnu --------------------------------------------------------------------


def words_of(text):
    """Split a DejaGnu directive: "quoted words", {groups}, and plain words."""
    found, i = [], 0
    while i < len(text):
        if text[i].isspace():
            i += 1
        elif text[i] == '"':
            end = i + 1
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            found.append(text[i + 1 : end])
            i = end + 1
        elif text[i] == "{":
            depth, end = 1, i + 1
            while end < len(text) and depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            found.append(text[i:end])
            i = end
        else:
            end = re.compile(r"[\s{}]|$").search(text, i + 1).start()
            found.append(text[i:end])
            i = end
    return found


def directives(text):
    """Return the directives as lists: the name, and its words."""
    found = []
    for match in re.finditer(r"\{\s*(dg-[a-z-]+)\b(.*)\}", text):
        found.append([match[1], *words_of(match[2].strip())])
    return found


def holds(selector, language):
    """Whether a selector such as { target { lp64 && { ! ia32 } } } holds here."""
    words = re.findall(r"&&|\|\||!|[{}]|[^\s{}!]+", selector)
    words = [w for w in words if w != "target"]

    def any_of():  # words next to each other are alternatives
        value = all_of()
        while words and words[0] != "}":
            if words[0] == "||":
                words.pop(0)
            value = all_of() or value
        return value

    def all_of():
        value = one()
        while words and words[0] == "&&":
            words.pop(0)
            value = one() and value
        return value

    def one():
        word = words.pop(0) if words else "*-*-*"
        if word == "!":
            return not one()
        if word == "{":
            value = any_of()
            if words:
                words.pop(0)
            return value
        return word in TRUE or word == language

    return any_of()


def selectors(words):
    return [w for w in words if w.startswith("{") and "target" in w]


class Header:
    """What a test's comments ask for."""

    def __init__(self, path, language):
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        self.options = ["-O2"]
        self.sources = []
        self.environment = {}
        self.why_not = None
        more = []
        for name, *words in directives(text):
            true = all(holds(s, language) for s in selectors(words))
            if name == "dg-do" and words:
                self.do(words, true)
            elif name == "dg-options" and words and true:
                self.options = shlex.split(words[0])
            elif name == "dg-additional-options" and words and true:
                more += shlex.split(words[0])
            elif name == "dg-additional-sources" and words:
                folder = os.path.dirname(path)
                self.sources += [os.path.join(folder, w) for w in " ".join(words).split()]
            elif name == "dg-set-target-env-var" and len(words) > 1:
                self.environment[words[0]] = words[1]
            elif name == "dg-require-effective-target" and words and words[0] not in TRUE:
                self.leave_out(words[0])
            elif name == "dg-skip-if" and len(words) > 1 and holds(words[1], language):
                run_expensive = "run_expensive_tests" in words[1]
                self.why_not = None if run_expensive else "skipped by its own header"
            elif name == "dg-error":
                self.why_not = "tests the compiler only"
        self.options += more

    def do(self, words, true):
        if words[0] != "run":
            self.why_not = self.why_not or "tests the compiler only"
        elif not true:
            self.leave_out(" ".join(words[1:]))

    def leave_out(self, target):
        self.why_not = NO_DEVICE if "offload" in target else f"not for this machine: {target}"


# --- the tests -----------------------------------------------------------------------------------


def name_of(language, folder, path):
    name = os.path.relpath(path, folder)
    common = "common/" if folder.endswith("common") else ""
    name = name if name.endswith(".f") else os.path.splitext(name)[0]
    return f"{language}/{common}{name}"


def prepare(source, work, jobs, wanted):
    tests = unpack(source, work)
    top = os.path.dirname(os.path.dirname(tests))
    plan = Plan()
    built = os.path.join(work, "built")
    programs, headers = [], {}
    for language, (compiler, folders) in LANGUAGES.items():
        if not shutil.which(compiler[0]):
            print(f"  without {compiler[0]}: no tests of that language")
            continue
        for folder, end in folders:
            for path in sorted(
                glob.glob(os.path.join(tests, folder, "**/*" + end), recursive=True)
            ):
                name = name_of(language, os.path.join(tests, folder), path)
                header = Header(path, language)
                if header.why_not:
                    plan.leave_out(header.why_not, name)
                    continue
                headers[name] = header
                output = os.path.join(built, name.replace("++", "xx"), "test")
                plain = [] if language == "fortran" else ["-x", "none"]
                words = [*compiler, "-w", "-pthread", "-fopenmp", *header.options]
                words += [f"-I{top}/libgomp", f"-I{top}/include", path, *header.sources]
                # Each program has a folder of its own, for Fortran's modules.
                programs.append(
                    suite.Program(
                        name, [(output, [*words, *plain, "-lm"])], cwd=os.path.dirname(output)
                    )
                )
    programs = [p for p in programs if wanted(p.name)]
    plan.problems = suite.compile_programs(work, programs, jobs)
    for program in programs:
        if program.name in plan.problems:
            continue
        environment = {"OMP_NUM_THREADS": "8"} | headers[program.name].environment
        plan.tests.append(
            Test(
                program.name,
                [program.steps[0][0]],
                environment=environment,
            )
        )
    return plan
