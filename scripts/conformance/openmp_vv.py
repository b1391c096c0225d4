"""OpenMP_VV: the validation tests of OpenMP 4.5 to 6.0 that the system's GCC builds.

Target regions run on the host. A test that prints `failed` also says so with its exit code.
"""

import os
import shutil

import suite
from suite import Plan, Test

NAME = "openmp_vv"
TITLE = "OpenMP Validation and Verification, on the host"
HOW = "clone OpenMP-Validation-and-Verification/OpenMP_VV from GitHub into SUITES/OpenMP_VV"
RUNS_PER_CPU = 0.5  # each makes eight threads
PASSING_ONLY = False

FLAGS = ["-O3", "-w", "-fopenmp", "-foffload=disable", "-DVERBOSE_MODE=1"]
COMPILERS = {
    ".c": ["gcc", "-std=c99", "-D_GNU_SOURCE"],
    ".cpp": ["g++", "-std=c++11"],
    ".F90": ["gfortran", "-ffree-line-length-none"],
}


def find(suites):
    path = os.path.join(suites or "", "OpenMP_VV")
    return path if suites and os.path.exists(os.path.join(path, "ompvv/ompvv.h")) else None


def prepare(source, work, jobs, wanted):
    tests = os.path.join(source, "tests")
    built = os.path.join(work, "built")
    programs = []
    for end, compiler in COMPILERS.items():
        if not shutil.which(compiler[0]):
            print(f"  without {compiler[0]}: no tests of that language")
            continue
        for path in suite.files_below(tests):
            if not path.endswith(end):
                continue
            # Names with suffix: the same test may exist in several languages.
            name = os.path.relpath(path, tests)
            output = os.path.join(built, name, "test")
            words = [*compiler, *FLAGS, f"-I{source}/ompvv", path, "-lm"]
            programs.append(suite.Program(name, [(output, words)], cwd=os.path.dirname(output)))
    programs = [p for p in programs if wanted(p.name)]
    plan = Plan(problems=suite.compile_programs(work, programs, jobs))
    for program in programs:
        if program.name not in plan.problems:
            plan.tests.append(
                Test(
                    program.name,
                    [program.steps[0][0]],
                    environment={"OMP_NUM_THREADS": "8"},
                )
            )
    return plan
