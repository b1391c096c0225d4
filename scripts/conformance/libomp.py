"""LLVM's tests of its OpenMP runtime, libomp, with the clang and the libomp that are installed.

Take the RUN lines for lit apart: run the compilers once; the rest of a line is the test, with
`lissom run` before the program. The sources have to be of the version of clang, or near it.
"""

import glob
import os
import re
import shlex

import suite
from suite import Plan, Test

NAME = "libomp"
TITLE = "LLVM's openmp/runtime tests"
HOW = (
    "put the source tree of LLVM, or its folder openmp, into SUITES/llvm-project or SUITES/openmp, "
    "of the version of libomp (Debian: `apt-get source` of llvm-toolchain-14)"
)
RUNS_PER_CPU = 0.5  # each makes eight threads
PASSING_ONLY = False

TESTS = "runtime/test"


def find(suites):
    for name in ("llvm-project/openmp", "openmp"):
        path = os.path.join(suites or "", name, TESTS)
        if suites and os.path.exists(os.path.join(path, "omp_testsuite.h")):
            return path
    return None


def toolchain():
    """Return the version, the compilers and FileCheck (or None) beside the newest libomp."""
    for library in sorted(glob.glob("/usr/lib/llvm-*/lib/libomp.so"), reverse=True):
        top = os.path.dirname(os.path.dirname(library))
        clang = os.path.join(top, "bin/clang")
        if os.path.exists(clang):
            check = os.path.join(top, "bin/FileCheck")
            return top.rpartition("-")[2], clang, check if os.path.exists(check) else None
    return None, None, None


# --- lit -----------------------------------------------------------------------------------------


def joined(text, keyword):
    """Return the words behind each KEYWORD: in the text; a line that ends with \\ goes on."""
    found, going_on = [], False
    for match in re.finditer(rf"\b{keyword}:(.*)$", text, re.MULTILINE):
        line = match[1].strip()
        if going_on:
            found[-1] = found[-1] + " " + line.rstrip("\\")
        else:
            found.append(line.rstrip("\\"))
        going_on = line.endswith("\\")
    return found


def features(version, check):
    found = {"clang", f"clang-{version}", "linux", "affinity", "x86_64", "x86_64-unknown-linux-gnu"}
    if check:
        found.add("ompt")
    if len(os.sched_getaffinity(0)) > 1:
        found.add("multicpu")
    return found


def why_left_out(text, have):
    for line in joined(text, "REQUIRES"):
        for word in re.split(r"[\s,]+", line.strip()):
            if word and word not in have:
                need = "FileCheck, of the LLVM tools" if word == "ompt" else word
                return f"needs {need}"
    for line in joined(text, "UNSUPPORTED"):
        if have & set(re.split(r"[\s,]+", line)):
            return f"not for this machine or compiler: {line.strip()}"
    return None


class Lines:
    """The RUN lines of a test, taken apart."""

    def __init__(self, path, top, folder, clang):
        self.path, self.folder = path, folder
        self.words = [clang, "-fopenmp", "-w", "-O0", f"-I{top}", f"-I{top}/ompt"]
        self.steps = []  # (output, words) of the compilers
        self.runs = []
        self.programs = 0
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for line in joined(text, "RUN"):
            line = re.sub(
                r"%libomp-((?:c99|cxx)-)?compile-and-run", r"%libomp-\1compile && %libomp-run", line
            )
            parts = [part.strip() for part in line.split("&&")]
            rest = [part for part in parts if part and not self.compiles(part)]
            if rest:
                self.runs.append(" && ".join(self.expand(part) for part in rest))

    def program(self):
        return os.path.join(self.folder, f"test{self.programs}")

    def compiles(self, part):
        """If the part is a compiler, keep its step and return True."""
        match = re.match(r"%(libomp-(?:(c99|cxx)-)?compile(?:-c)?|clangXX|clang)(?=\s|$)(.*)", part)
        if not match:
            return False
        kind, dialect, rest = match[1], match[2], match[3]
        rest = rest.replace("%openmp_flags", "").replace("%flags-use-compiler-omp-h", "")
        rest = rest.replace("%no-as-needed-flag", "-Wl,--no-as-needed").replace("%flags", "")
        rest = rest.replace("%s", self.path).replace("%T", self.folder)
        words = list(self.words)
        if dialect == "cxx" or kind == "clangXX":
            words[0] += "++"
            words.append("-std=c++14")
        if dialect == "c99":
            words.append("-std=c99")
        if kind.endswith("-c"):
            words += ["-x", "c++"]
        arguments = shlex.split(rest)
        output = None
        if "-o" in arguments:
            at = arguments.index("-o")
            output = arguments[at + 1] if arguments[at + 1] != "%t" else None
            del arguments[at : at + 2]
        if output is None:
            self.programs += 1
            output = self.program()
        source = [] if self.path in arguments else [self.path]
        # Put libraries after the source, so that their symbols are found.
        self.steps.append((output, [*words, *source, *arguments, "-x", "none", "-lm", "-latomic"]))
        return True

    def expand(self, part):
        """Return the part of a RUN line as bash has to run it."""
        part = re.sub(r"%T/(?=\w+\.log)", "{folder}/", part)  # written by each run
        for word, value in {
            "%libomp-run": "{lissom} " + self.program(),
            "%preload-tool": f"env LD_PRELOAD={self.folder}/tool.so",
            "%sort-threads": "sort -n -s",
            "%python": "python3",
            "%not": "!",
            "%S": os.path.dirname(self.path),
            "%T": self.folder,
            "%t": self.program(),
            "%s": self.path,
        }.items():
            part = re.sub(re.escape(word) + r"(?![\w-])", lambda _, value=value: value, part)
        return part


# --- the tests -----------------------------------------------------------------------------------


def prepare(source, work, jobs, wanted):
    version, clang, check = toolchain()
    if clang is None:
        raise SystemExit("libomp: no clang beside a libomp: install clang-14 and libomp-14-dev")
    have = features(version, check)
    plan = Plan()
    built = os.path.join(work, "built")
    programs, scripts = [], {}
    for path in suite.files_below(source):
        if not path.endswith((".c", ".cpp")):
            continue
        name = os.path.splitext(os.path.relpath(path, source))[0]
        with open(path, encoding="utf-8", errors="replace") as f:
            text = f.read()
        why = why_left_out(text, have)
        if "RUN:" not in text:
            continue
        if why is None and check is None and "FileCheck" in text:
            why = "needs FileCheck, of the LLVM tools"
        if why:
            plan.leave_out(why, name)
            continue
        lines = Lines(path, source, os.path.join(built, name), clang)
        if not lines.runs:
            plan.leave_out("tests the compiler only", name)
            continue
        scripts[name] = lines.runs
        programs.append(suite.Program(name, lines.steps, cwd=os.path.join(built, name)))
    programs = [p for p in programs if wanted(p.name)]
    plan.problems = suite.compile_programs(work, programs, jobs)
    path = os.path.dirname(check) + os.pathsep if check else ""
    for program in programs:
        if program.name in plan.problems:
            continue
        runs = scripts[program.name]
        plan.tests.append(
            Test(
                program.name,
                script="\n".join(["set -e -o pipefail", *(f"( {run} )" for run in runs)]),
                environment={
                    "OMP_NUM_THREADS": "8",
                    "PATH": path + os.environ["PATH"],
                    "LD_LIBRARY_PATH": os.path.join(os.path.dirname(os.path.dirname(clang)), "lib"),
                },
            )
        )
    return plan
